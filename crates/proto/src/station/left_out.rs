//! Tags of ends at a station: whether there are any, and for how long a helper is ignored whose
//! rows made them fail.
//!
//! A helper is ignored only for a limited time, since it may have been deceived, by rows of an
//! earlier run of its encoder, or have been repaired, after its memory failed. The cost of
//! listening to it again is bounded: a decoder waits at most a deadline for what a bad row
//! prevents.

use core::time::Duration;

use corridor_base::Time;

use super::Station;
use crate::bounds::{FORGED_TOLD, LEFT_OUT_DEADLINES, LEFT_OUT_MAX};

/// Whether a helper is ignored, and since when it has been heard again.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    until: Option<Time>,
    /// How long it was last ignored.
    span: Duration,
    /// When forged rows in the encoder's name were last reported.
    told_at: Option<Time>,
}

impl LeftOut {
    /// For how long it will still be ignored; `None` if it is not.
    pub(super) fn rest(&self, now: Time) -> Option<Duration> {
        self.until.filter(|&until| now < until).map(|until| until - now)
    }

    /// Ignores the helper from now on; returns for how long. This is twice as long as the last
    /// time, unless it has meanwhile been heard for as long as it was ignored then.
    pub(super) fn blame(&mut self, now: Time, deadline: Duration) -> Duration {
        let least = deadline * LEFT_OUT_DEADLINES;
        let is_again = self.until.is_some_and(|until| now < until + self.span);
        self.span = if is_again { self.span * 2 } else { least }.min(LEFT_OUT_MAX.max(least));
        self.until = Some(now + self.span);
        self.span
    }

    /// Whether it is time to report forged rows of unknown origin.
    pub(super) fn tells_of_unknown(&mut self, now: Time) -> bool {
        let tells = self.told_at.is_none_or(|at| now - at >= FORGED_TOLD);
        if tells {
            self.told_at = Some(now);
        }
        tells
    }
}

impl Station {
    /// Bytes that an end's tag takes in each source symbol: 0 unless a helper recodes what this
    /// station sends, and there is a key that the helper does not have.
    pub fn tag_len(&self) -> usize {
        self.role.tag_len()
    }

    /// For how long the helper will still be ignored because its rows made tags fail.
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
