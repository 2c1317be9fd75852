//! A pacer, for underlays without backpressure.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::{PACE_BURST, PACE_DEBT_MAX, PACE_SLEEP_MIN};

/// Two frames leave together if the second follows within this fraction of a frame's time.
pub(crate) const PAIR_DIVISOR: u32 = 8;

/// Holds frames back to a configured or measured rate.
pub(crate) struct Pacer {
    rate_bps: Option<u64>,
    next_at: Time,
    /// Since when a frame would have had to wait.
    busy_since: Time,
    /// A frame was held back since the last one was sent.
    waiting: bool,
    /// Frames are held back until [`Self::next_at`] and this long: zero unless one has been held
    /// back, so that those of one [`PACE_SLEEP_MIN`] leave together.
    held_for: Duration,
    /// They are leaving now.
    in_burst: bool,
    /// How many long frames leave alone between pairs, two that leave together; `None`: all do.
    singles_between: Option<u32>,
    /// How many left alone since the last pair, and when the last one left, if no other frame has
    /// since.
    singles: u32,
    long_at: Option<Time>,
    /// Usual length of long frames, in bytes, where they leave in pairs.
    long_len: usize,
    /// Length of the longest frame sent, in bytes.
    longest: usize,
}

impl Pacer {
    pub(crate) fn new(rate_bps: Option<u64>) -> Self {
        Pacer {
            rate_bps,
            next_at: Time::ZERO,
            busy_since: Time::ZERO,
            waiting: false,
            held_for: Duration::ZERO,
            in_burst: false,
            singles_between: None,
            singles: 0,
            long_at: None,
            long_len: 0,
            longest: 0,
        }
    }

    /// Sets the configured rate in bit/s; `None`: no limit.
    pub(crate) fn set_configured(&mut self, rate_bps: Option<u64>) {
        *self = Pacer { longest: self.longest, ..Pacer::new(rate_bps) };
    }

    /// Sets the measured rate in bit/s.
    pub(crate) fn set_rate(&mut self, rate_bps: u64) {
        self.rate_bps = Some(rate_bps);
    }

    /// Of long frames, so many leave alone between pairs from now on, at the same rate: the second
    /// frame of a pair leaves with the first, before it is due. `None`: all of them leave alone.
    /// `long_len`: usual length of long ones, in bytes.
    pub(crate) fn set_pairs(&mut self, singles_between: Option<u32>, long_len: usize) {
        (self.singles_between, self.long_len) = (singles_between, long_len);
    }

    /// When the next frame is due.
    pub(crate) fn due_at(&self) -> Time {
        self.next_at + self.held_for
    }

    /// Whether the next frame may leave now, before it is due, with the long one that just left.
    fn is_second(&self, now: Time) -> bool {
        self.singles_between.is_some_and(|between| self.singles > between)
            && self.follows_long(now)
            && self.next_at <= now + self.time_of(self.long_len)
    }

    /// Whether a frame that leaves now leaves with a long one.
    fn follows_long(&self, now: Time) -> bool {
        let apart = self.time_of(self.long_len) / PAIR_DIVISOR;
        self.long_at.is_some_and(|at| now < at + apart)
    }

    /// Clears the record of a frame held back, before the next is asked for.
    pub(crate) fn begin_poll(&mut self) {
        self.waiting = false;
    }

    /// Whether a frame may be sent now.
    pub(crate) fn allows(&mut self, now: Time) -> bool {
        let is_due = now >= self.due_at();
        self.waiting = !is_due && !self.is_second(now);
        if self.waiting {
            self.held_for = PACE_SLEEP_MIN.saturating_sub(self.time_of(self.longest));
            self.in_burst = false;
        } else {
            // After a pause nothing has been held back.
            let held = self.held_for > Duration::ZERO && now < self.next_at + PACE_BURST;
            self.in_burst |= held || !is_due;
            self.held_for = Duration::ZERO;
        }
        !self.waiting
    }

    /// How long a frame of this length takes at this rate.
    fn time_of(&self, len_bytes: usize) -> Duration {
        let nanos = |rate_bps| 8 * len_bytes as u64 * 1_000_000_000 / rate_bps;
        Duration::from_nanos(self.rate_bps.map_or(0, nanos))
    }

    /// Whether the next frame is one of those that were held back until they could leave together.
    pub(crate) fn is_in_burst(&self) -> bool {
        self.in_burst
    }

    /// Records that there is no frame to send.
    pub(crate) fn note_idle(&mut self) {
        self.in_burst = false;
    }

    /// Records a frame sent now, whatever the rate.
    pub(crate) fn grant(&mut self, now: Time) {
        self.next_at = self.next_at.min(now);
        (self.held_for, self.in_burst) = (Duration::ZERO, false);
    }

    pub(crate) fn note_sent(&mut self, now: Time, len_bytes: usize) {
        self.longest = self.longest.max(len_bytes);
        let is_long = 2 * len_bytes > self.long_len;
        let is_second = is_long && self.in_burst && self.follows_long(now);
        if is_long {
            self.singles = if is_second { 0 } else { self.singles.saturating_add(1) };
        }
        self.long_at = is_long.then_some(now);
        if self.rate_bps.is_none() {
            return;
        }
        let earliest =
            Time::from_nanos(now.as_nanos().saturating_sub(PACE_BURST.as_nanos() as u64));
        let takes = self.time_of(len_bytes);
        if self.next_at <= now {
            self.busy_since = now;
        }
        // Feedback is not held back. A lot of it at a low rate must not silence what is held back,
        // nor reduce what a long frame before it still owes.
        let latest = self.next_at.max(self.busy_since + PACE_DEBT_MAX.max(takes));
        let next_at = self.next_at.max(earliest) + takes;
        // The second frame of a pair owes all of its time.
        self.next_at = if is_second { next_at } else { next_at.min(latest) };
    }

    /// Sends nothing for this long.
    pub(crate) fn pause(&mut self, now: Time, pause: Duration) {
        self.next_at = self.next_at.max(now) + pause.min(PACE_DEBT_MAX);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.waiting.then_some(self.due_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_frames_is_the_rate() {
        let mut pacer = Pacer::new(Some(1_000_000));
        let mut sent_bits = 0;
        for ms in 1_000..2_000 {
            let now = Time::from_millis(ms);
            while pacer.allows(now) {
                pacer.note_sent(now, 125);
                sent_bits += 1_000;
            }
            assert_eq!(pacer.poll_timeout(), Some(pacer.next_at));
        }
        assert!((1_000_000..=1_004_000).contains(&sent_bits), "{sent_bits}");
    }

    /// A sender that wakes for each frame of 5 us spends its time on waking.
    #[test]
    fn at_high_rates_frames_leave_together() {
        let mut pacer = Pacer::new(Some(2_000_000_000));
        let (mut now, mut sent, mut wakes) = (Time::from_millis(1_000), 0, 0);
        while now < Time::from_millis(2_000) {
            while pacer.allows(now) {
                pacer.note_sent(now, 1_250);
                sent += 1;
            }
            wakes += 1;
            // What wakes it for another reason sends nothing either.
            assert!(!pacer.allows(now + Duration::from_micros(50)));
            now = pacer.poll_timeout().unwrap();
        }
        assert!((200_000..=200_500).contains(&sent), "{sent}");
        assert!((9_000..=10_500).contains(&wakes), "{wakes}");
        // Where a frame takes longer, each leaves when it is due, and short ones do too.
        pacer.set_rate(100_000_000);
        now += Duration::from_millis(10);
        for len in [1_250, 60] {
            while pacer.allows(now) {
                pacer.note_sent(now, len);
            }
            assert_eq!(pacer.poll_timeout(), Some(pacer.next_at));
            now = pacer.next_at;
        }
    }

    /// Sends long frames until `until`, as long as they may leave; returns how many left together
    /// each time.
    fn send_all(pacer: &mut Pacer, now: &mut Time, until: Time) -> Vec<u32> {
        let mut sizes = Vec::new();
        while *now < until {
            let mut sent = 0;
            while pacer.allows(*now) {
                pacer.note_sent(*now, 1_250);
                sent += 1;
            }
            sizes.push(sent);
            *now = pacer.poll_timeout().unwrap();
        }
        sizes
    }

    #[test]
    fn frames_leave_in_pairs_at_the_same_rate() {
        // A frame takes 10 ms, or longer than a debt may be.
        for (between, rate_bps) in [(0_u32, 1_000_000), (1, 1_000_000), (3, 1_000_000), (0, 50_000)]
        {
            let mut pacer = Pacer::new(Some(rate_bps));
            pacer.set_pairs(Some(between), 1_250);
            let mut now = Time::from_millis(1_000);
            pacer.note_sent(now, 1_250);
            let until = now + Duration::from_millis(2_000_000_000 / rate_bps);
            let sizes = send_all(&mut pacer, &mut now, until);
            assert!((199..=203).contains(&sizes.iter().sum::<u32>()), "{sizes:?}");
            // After the first ones.
            for period in sizes[4..].chunks_exact(between as usize + 1) {
                assert_eq!(period.iter().filter(|&&sent| sent == 2).count(), 1, "{sizes:?}");
                assert_eq!(period.iter().sum::<u32>(), between + 2, "{sizes:?}");
            }
        }
    }

    /// Of short ones, only one leaves early; and none does later, or once a rate is configured.
    #[test]
    fn a_third_frame_does_not_leave_with_a_pair() {
        // How many short frames may leave so much later than a first frame of this length.
        let early = |wait_us, first_len, configured| {
            let mut pacer = Pacer::new(Some(1_000_000));
            pacer.set_pairs(Some(0), 1_250);
            if configured {
                pacer.set_configured(Some(1_000_000));
            }
            let now = Time::from_millis(1_000);
            // After a pause a burst is free.
            (0..2).for_each(|_| pacer.note_sent(now, first_len));
            let now = pacer.due_at();
            assert!(pacer.allows(now));
            pacer.note_sent(now, first_len);
            let now = now + Duration::from_micros(wait_us);
            let allowed = |_: &u32| {
                let allows = pacer.allows(now);
                pacer.note_sent(now, if allows { 25 } else { 0 });
                allows
            };
            (0..10).take_while(allowed).count()
        };
        assert_eq!(early(0, 1_250, false), 1);
        assert_eq!(early(1_000, 1_250, false), 1);
        assert_eq!(early(2_000, 1_250, false), 0);
        assert_eq!(early(0, 500, false), 0, "a short one is not the first of a pair");
        assert_eq!(early(0, 1_250, true), 0);
    }

    /// A pacer with a burst to send, and when it may.
    fn pacer_that_held_back() -> (Pacer, Time) {
        let mut pacer = Pacer::new(Some(2_000_000_000));
        let now = Time::from_millis(1_000);
        while pacer.allows(now) {
            assert!(!pacer.is_in_burst());
            pacer.note_sent(now, 1_250);
        }
        let at = pacer.poll_timeout().unwrap();
        (pacer, at)
    }

    #[test]
    fn what_leaves_together_has_been_held_back_and_what_comes_later_has_not() {
        let (mut pacer, at) = pacer_that_held_back();
        while pacer.allows(at) {
            assert!(pacer.is_in_burst());
            pacer.note_sent(at, 1_250);
        }
        // After a pause, when the queue has run empty, and where it sends regardless of the rate.
        let (mut pacer, at) = pacer_that_held_back();
        assert!(pacer.allows(at + PACE_BURST) && !pacer.is_in_burst());
        let ends: [fn(&mut Pacer, Time); 3] = [
            |pacer, _| pacer.note_idle(),
            |pacer, now| pacer.grant(now),
            |pacer, _| pacer.set_configured(None),
        ];
        for ends in ends {
            let (mut pacer, at) = pacer_that_held_back();
            assert!(pacer.allows(at) && pacer.is_in_burst());
            ends(&mut pacer, at);
            assert!(pacer.allows(at) && !pacer.is_in_burst());
        }
    }

    #[test]
    fn what_is_not_held_back_silences_others_for_a_while_only() {
        let mut pacer = Pacer::new(Some(10_000));
        let now = Time::from_millis(5_000);
        (0..1_000).for_each(|_| pacer.note_sent(now, 50));
        assert!(!pacer.allows(now));
        assert_eq!(pacer.poll_timeout(), Some(now + PACE_DEBT_MAX));
        // A frame that takes longer than that is waited for.
        pacer.note_sent(now, 12_500);
        assert!(!pacer.allows(now) && pacer.poll_timeout() == Some(now + Duration::from_secs(10)));
        // Even if feedback is sent after it.
        pacer.note_sent(now, 50);
        assert!(!pacer.allows(now) && pacer.poll_timeout() == Some(now + Duration::from_secs(10)));
    }

    #[test]
    fn what_is_not_held_back_does_not_silence_others_by_going_on() {
        let mut pacer = Pacer::new(Some(10_000));
        let allowed = (0..10_000).filter(|ms| {
            let now = Time::from_millis(*ms);
            let allows = pacer.allows(now);
            // A frame that has waited goes first; either takes 48 ms.
            (0..1 + usize::from(allows)).for_each(|_| pacer.note_sent(now, 60));
            allows
        });
        assert!((40..=60).contains(&allowed.count()));
    }
}
