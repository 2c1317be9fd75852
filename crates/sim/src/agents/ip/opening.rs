//! The TCP handshake, in which both hosts exchange their window scales before any data.

use core::time::Duration;

use corridor_base::Time;

use super::packet::Content;

/// Time to wait for an answer. Linux does not back off for the first four retries
/// (`tcp_syn_linear_timeouts`), and the lab waits no longer than those.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The sender's end of a connection that is being opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// When to send, or resend, the SYN; `None` once it was answered.
    asks_at: Option<Time>,
    /// Whether a SYN-ACK has come that has to be acknowledged.
    owes_confirmation: bool,
}

impl Opening {
    pub(super) fn new(now: Time) -> Self {
        Opening { asks_at: Some(now), owes_confirmation: false }
    }

    /// Whether data may be sent.
    pub(super) fn is_over(&self) -> bool {
        self.asks_at.is_none()
    }

    /// Stops trying.
    pub(super) fn give_up(&mut self) {
        self.asks_at = None;
    }

    /// The receiver has answered.
    pub(super) fn note_answer(&mut self) {
        self.asks_at = None;
        self.owes_confirmation = true;
    }

    /// The next packet to send.
    pub(super) fn poll(&mut self, now: Time) -> Option<Content> {
        if self.asks_at.is_some_and(|at| at <= now) {
            self.asks_at = Some(now + TIMEOUT);
            return Some(Content::Syn);
        }
        core::mem::take(&mut self.owes_confirmation).then_some(Content::Confirmation)
    }

    /// When to call [`Opening::poll`] next.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.asks_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said_again() {
        let begin = Time::from_millis(5);
        let mut opening = Opening::new(begin);
        assert_eq!(opening.poll(begin), Some(Content::Syn));
        assert_eq!(opening.poll(begin), None);
        assert_eq!(opening.poll_timeout(), Some(begin + TIMEOUT));
        assert_eq!(opening.poll(begin + TIMEOUT), Some(Content::Syn));
        assert!(!opening.is_over());
        for _ in 0..2 {
            opening.note_answer();
            assert!(opening.is_over());
            assert_eq!(opening.poll(begin + 2 * TIMEOUT), Some(Content::Confirmation));
        }
        assert_eq!(opening.poll_timeout(), None);
    }
}
