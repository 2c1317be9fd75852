//! How much delays vary by themselves from span to span.
//!
//! A queue of our own changes slowly, as the rate does: from one span of about half a round trip to
//! the next it grows or shrinks about as much as before. Jitter has no memory, so the delay at the
//! end of a span may be any of its values. The second differences of these delays show the jitter,
//! because steady growth has none. Each span contributes one delay, not its minimum: the minimum of
//! many varies less than the values that the queue is judged by, and jitter between adjacent frames
//! would look like a queue.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

/// Number of second differences; their median counts, so that rare events do not.
const DIFFERENCES: usize = 16;
/// Standard deviation over the median of the second differences |b - (a + c) / 2| of independent,
/// normally distributed values: 1 / (0.6745 sqrt(1.5)).
const DEVIATION_PER_MEDIAN: f64 = 1.211;

/// Standard deviation of a Gumbel distribution with scale 1: pi / sqrt(6).
const DEVIATION_SCALES: f64 = 1.282_550;

/// The spread of delays.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    /// When the current span ends, and the delay at its beginning in nanoseconds.
    span: Option<(Time, i64)>,
    /// The delays at the beginning of the two spans before it.
    before: [Option<i64>; 2],
    differences: ArrayVec<i64, DIFFERENCES>,
    next: usize,
    deviation_ns: f64,
}

impl Spread {
    /// Takes a delay; `span`: length of spans.
    pub(crate) fn note(&mut self, now: Time, delay_ns: i64, span: Duration) {
        let (ends, third) = *self.span.get_or_insert((now + span, delay_ns));
        if now < ends {
            return;
        }
        if now > ends + span {
            self.before = [None; 2]; // The time in between is unknown.
        }
        if let [Some(first), Some(second)] = self.before {
            self.take((second - (first + third) / 2).abs());
        }
        self.before = [self.before[1], Some(third)];
        self.span = Some((now + span, delay_ns));
    }

    /// The rate changes on purpose: later spans must not be compared with earlier ones.
    pub(crate) fn restart(&mut self) {
        (self.span, self.before) = (None, [None; 2]);
    }

    /// Standard deviation of these delays.
    pub(crate) fn deviation(&self) -> Duration {
        Duration::from_nanos(self.deviation_ns as u64)
    }

    fn take(&mut self, difference: i64) {
        if self.differences.is_full() {
            self.differences[self.next % DIFFERENCES] = difference;
        } else {
            self.differences.push(difference);
        }
        self.next += 1;
        let mut sorted = self.differences.clone();
        sorted.sort_unstable();
        self.deviation_ns = DEVIATION_PER_MEDIAN * sorted[sorted.len() / 2] as f64;
    }

    /// How far the minimum delay of a span of this length usually is above the minimum of all spans
    /// in `memory`. The delay of frames delivered in order is the maximum of many, and so about
    /// Gumbel-distributed: the minimum of n such values is ln ln n scales below the mode, and a
    /// standard deviation is pi / sqrt(6) scales.
    ///
    /// If each frame is late by an exponentially distributed time, delays of frames in order also
    /// grow with the rate: the mode at `per_s` frames/s is ln(rate x scale) scales, while the
    /// minimum may be from a time with few frames.
    pub(crate) fn above_least(&self, span: Duration, memory: Duration, per_s: f64) -> Duration {
        let spans = memory.div_duration_f64(span).max(core::f64::consts::E);
        let scale_ns = self.deviation_ns / DEVIATION_SCALES;
        let of_rate = (per_s * scale_ns / 1e9).max(1.0).ln();
        let scales = of_rate.max(spans.ln().ln());
        Duration::from_nanos((scale_ns * scales) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(10);

    fn spread(delay_ms: impl Fn(u64) -> i64) -> Spread {
        let mut spread = Spread::default();
        (0..400).for_each(|ms| spread.note(Time::from_millis(ms), 1_000_000 * delay_ms(ms), SPAN));
        spread
    }

    #[test]
    fn what_grows_evenly_or_seldom_changes_has_no_spread() {
        for delay_ms in [|_: u64| 5, |ms: u64| ms as i64, |ms: u64| if ms < 200 { 5 } else { 30 }] {
            let above = spread(delay_ms).above_least(SPAN, Duration::from_secs(20), 100.0);
            assert!(above <= Duration::from_millis(1), "{above:?}");
        }
    }

    #[test]
    fn what_changes_from_span_to_span_has_as_much_as_it_changes() {
        let above = |factor: i64| {
            let delay_ms = |ms: u64| factor * (ms / 11 * 5 % 13) as i64;
            spread(delay_ms).above_least(SPAN, Duration::from_secs(20), 100.0)
        };
        assert!(above(1) > Duration::from_millis(3), "{:?}", above(1));
        assert!(above(3).abs_diff(3 * above(1)) < Duration::from_micros(1));
    }

    #[test]
    fn nothing_is_held_against_what_was_before_a_pause() {
        let mut spread = spread(|_| 5);
        spread.restart();
        (500..520).for_each(|ms| spread.note(Time::from_millis(ms), 50_000_000, SPAN));
        assert_eq!(spread.above_least(SPAN, Duration::from_secs(20), 100.0), Duration::ZERO);
    }
}
