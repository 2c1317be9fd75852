//! Tags from end to end, at a station: whether there are any, and for how long a helper is left out
//! whose rows made them fail.
//!
//! It comes back, for it may have been deceived, or have been mended since: by rows of a run of its
//! encoder before, by memory that failed. What coming back may cost is bounded: a decoder waits at
//! most a deadline for what a bad row keeps it from.

use core::time::Duration;

use corridor_base::Time;

use super::Station;
use crate::bounds::{FORGED_TOLD, LEFT_OUT_DEADLINES, LEFT_OUT_MAX};

/// Whether a helper is left out, and since when it has been in again.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    until: Option<Time>,
    /// How long it was left out last.
    span: Duration,
    /// When it was last told that rows are forged in the encoder's name.
    told_at: Option<Time>,
}

impl LeftOut {
    /// How long it is left out yet.
    pub(super) fn rest(&self, now: Time) -> Option<Duration> {
        self.until.filter(|&until| now < until).map(|until| until - now)
    }

    /// It is left out from here on; for how long. Twice as long as the last time, if it has not
    /// been in for as long as it was out then.
    pub(super) fn blame(&mut self, now: Time, deadline: Duration) -> Duration {
        let least = deadline * LEFT_OUT_DEADLINES;
        let is_again = self.until.is_some_and(|until| now < until + self.span);
        self.span = if is_again { self.span * 2 } else { least }.min(LEFT_OUT_MAX.max(least));
        self.until = Some(now + self.span);
        self.span
    }

    /// Whether it is time to tell of rows that nobody owns to.
    pub(super) fn tells_of_unknown(&mut self, now: Time) -> bool {
        let tells = self.told_at.is_none_or(|at| now - at >= FORGED_TOLD);
        if tells {
            self.told_at = Some(now);
        }
        tells
    }
}

impl Station {
    /// Bytes that a tag from end to end takes of each source symbol: where a helper recodes what
    /// this station sends, and there is a key that the helper has not.
    pub fn tag_len(&self) -> usize {
        self.role.tag_len()
    }

    /// How long the helper is left out yet, since what it sent made tags fail.
    pub fn helper_left_out(&self, now: Time) -> Option<Duration> {
        self.role.left_out(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(1);

    #[test]
    fn who_fails_again_soon_is_left_out_for_longer_and_who_has_been_good_is_not() {
        let (mut left_out, mut now) = (LeftOut::default(), Time::ZERO);
        let mut spans = Vec::new();
        for _ in 0..8 {
            assert_eq!(left_out.rest(now), None);
            let span = left_out.blame(now, DEADLINE);
            assert_eq!(left_out.rest(now), Some(span));
            spans.push(span.as_secs());
            now += span + Duration::from_millis(1);
        }
        assert_eq!(spans, [100, 200, 400, 800, 1_600, 3_200, 3_600, 3_600]);
        now += LEFT_OUT_MAX;
        assert_eq!(left_out.blame(now, DEADLINE).as_secs(), 100);
    }

    #[test]
    fn coming_back_costs_a_hundredth_of_the_time_at_most_with_any_deadline() {
        for deadline in [Duration::from_millis(10), DEADLINE, Duration::from_secs(60)] {
            let mut left_out = LeftOut::default();
            for _ in 0..20 {
                assert!(left_out.blame(Time::ZERO, deadline) >= deadline * 100);
            }
        }
    }
}
