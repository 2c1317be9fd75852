//! How a connection comes about: both hosts say how their windows are to be read, before data.

use core::time::Duration;

use corridor_base::Time;

use super::packet::Content;

/// How long an answer is waited for. Linux waits equally long for the first four times
/// (`tcp_syn_linear_timeouts`), and the lab no longer than that.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The sender's end of a connection that is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// When the first segment is sent, or sent again; `None` once it was answered.
    asks_at: Option<Time>,
    /// An answer has come that is to be confirmed.
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

    /// Asks no more.
    pub(super) fn give_up(&mut self) {
        self.asks_at = None;
    }

    /// The receiver has answered.
    pub(super) fn note_answer(&mut self) {
        self.asks_at = None;
        self.owes_confirmation = true;
    }

    /// What is to be said next.
    pub(super) fn poll(&mut self, now: Time) -> Option<Content> {
        if self.asks_at.is_some_and(|at| at <= now) {
            self.asks_at = Some(now + TIMEOUT);
            return Some(Content::Syn);
        }
        core::mem::take(&mut self.owes_confirmation).then_some(Content::Confirmation)
    }

    /// When [`Opening::poll`] has something to say by itself.
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
