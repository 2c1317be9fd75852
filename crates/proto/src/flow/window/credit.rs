//! Credit: how many new symbols the receiver has room for, as it tells the sender.
//!
//! A forwarding hub accepts no more than it can send on, so it drops nothing that was decoded. What
//! cannot be forwarded waits in its sender's ingress queue, where flows notice it. Repair is not
//! held back, because its symbols had credit when they were first sent.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::{WINDOW_TIMEOUT_MAX, WINDOW_TIMEOUT_MIN};

/// How often the interval between credit probes doubles at most.
const DOUBLINGS_MAX: u32 = 7;

/// Credit from the receiver, and what to do without any: the message with more credit may have been
/// lost, and nothing else may be in flight that the receiver would answer. So one new symbol is
/// sent after a while nevertheless, and then less and less often, like TCP's probes of a zero
/// window (RFC 9293, Section 3.8.6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Credit {
    /// The first symbol without credit; `None`: no limit.
    limit: Option<u64>,
    asking: Asking,
    /// Probes for more credit since there was last any.
    asked: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum Asking {
    /// There was credit at the last check.
    #[default]
    No,
    /// One symbol may be sent then.
    At(Time),
    /// One symbol may be sent now.
    Now,
}

impl Credit {
    /// Feedback has granted `symbols` symbols from `next` on.
    pub(super) fn tell(&mut self, next: u64, symbols: Option<u16>) {
        let limit = symbols.map(|symbols| next + u64::from(symbols));
        if limit.is_none_or(|limit| self.limit.is_some_and(|before| limit > before)) {
            (self.asking, self.asked) = (Asking::No, 0);
        }
        self.limit = limit;
    }

    /// Whether the next new symbol, numbered `id`, has to wait. `timeout`: time after which
    /// feedback about a frame sent now is late.
    pub(super) fn holds_back(&mut self, now: Time, id: u64, timeout: Duration) -> bool {
        if self.limit.is_none_or(|limit| id < limit) {
            self.asking = Asking::No;
            return false;
        }
        if let Asking::No = self.asking {
            let first = timeout.max(WINDOW_TIMEOUT_MIN);
            let wait = first * (1 << self.asked.min(DOUBLINGS_MAX));
            self.asking = Asking::At(now + wait.min(WINDOW_TIMEOUT_MAX));
        }
        !matches!(self.asking, Asking::Now)
    }

    /// Whether the next new symbol had to wait at the last check.
    pub(super) fn is_used_up(&self) -> bool {
        !matches!(self.asking, Asking::No)
    }

    /// A new symbol is sent.
    pub(super) fn note_source(&mut self) {
        if let Asking::Now = self.asking {
            self.asking = Asking::No;
            self.asked += 1;
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.asking = Asking::Now;
        }
    }

    /// When the next credit probe may be sent.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self.asking {
            Asking::At(at) => Some(at),
            Asking::No | Asking::Now => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(20);

    #[test]
    fn new_symbols_wait_from_the_first_on_that_there_is_no_room_for() {
        let (mut credit, now) = (Credit::default(), Time::from_millis(1));
        assert!(!credit.holds_back(now, 1 << 40, TIMEOUT), "nobody has said anything");
        credit.tell(100, Some(3));
        assert!(!credit.holds_back(now, 102, TIMEOUT) && credit.holds_back(now, 103, TIMEOUT));
        credit.tell(103, Some(0));
        assert!(credit.holds_back(now, 103, TIMEOUT));
        credit.tell(103, None);
        assert!(!credit.holds_back(now, 1 << 40, TIMEOUT));
        assert_eq!(credit.poll_timeout(), None);
    }

    #[test]
    fn without_room_one_symbol_asks_and_less_and_less_often() {
        let mut credit = Credit::default();
        credit.tell(0, Some(0));
        let (mut at, mut waits) = (Time::from_millis(5), Vec::new());
        for id in 0..10 {
            assert!(credit.holds_back(at, id, TIMEOUT));
            let due = credit.poll_timeout().expect("it will ask");
            waits.push((due - at).as_millis());
            at = due;
            credit.handle_timeout(at);
            assert_eq!(credit.poll_timeout(), None, "what is due is no timer any more");
            assert!(!credit.holds_back(at, id, TIMEOUT));
            credit.note_source();
        }
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1280, 2000, 2000, 2000]);
        credit.tell(10, Some(5));
        assert!(!credit.holds_back(at, 14, TIMEOUT) && credit.holds_back(at, 15, TIMEOUT));
        assert_eq!(credit.poll_timeout(), Some(at + TIMEOUT), "there was room since");
    }
}
