//! Beside flows that fill the queue: a window of frames that grows and shrinks as cubic's (RFC 9438).

use core::time::Duration;

use corridor_base::Time;

use super::Sample;
use super::model::{EXCESS_ERRORS, EXCESS_MIN};

/// Beside flows that fill the queue: frames by which the window grows in a round trip, and what
/// stays of it after a loss, as cubic's in its Reno-friendly region (RFC 9438, Section 4.3).
const COMPETE_GROWTH: f64 = 3.0 * (1.0 - COMPETE_DECREASE) / (1.0 + COMPETE_DECREASE);
const COMPETE_DECREASE: f64 = 0.7;
/// Cubic's constant, frames a second cubed.
const CUBIC_C: f64 = 0.4;
/// A loss is one of congestion where more than this share of the longest queue stood.
const CONGESTED_RATIO: f64 = 0.7;
/// And where more were lost then than by chance: by so many standard deviations.
const CONGESTED_DEVIATIONS: f64 = 2.0;
/// Bounds of the window beside such flows, frames.
const COMPETE_WINDOW_MIN: f64 = 4.0;
const COMPETE_WINDOW_MAX: f64 = 100_000.0;
/// A queue that stands again so soon after it was drained may be another's, and after the flow
/// competed it is; less by this factor comes through than at the time before, so often in a row.
const DRAIN_MEMORY: Duration = Duration::from_secs(10);
const DECLINE_RATIO: f64 = 0.9;
const DECLINES: u32 = 2;

/// Beside flows that fill the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competition {
    /// Frames that may be on their way.
    pub(super) window: f64,
    /// The longest queue.
    pub(super) longest: Duration,
    /// When there was one last.
    pub(super) at: Option<Time>,
    /// Frames that feedback of the round trip reported while little was queued, and those of them
    /// that came; the same while much was; and the longest queue when some were lost.
    sent_while_short: (f64, f64),
    sent_while_long: (f64, f64),
    queued_at_loss: Duration,
    /// The window before it became smaller last, and when; what it is without cubic's part.
    peak: Option<(f64, Time)>,
    linear: f64,
    /// The last time that a queue was to be drained, and what came through then, frames a second.
    drain: Option<(Time, f64)>,
    /// How often in a row less came through when the next one stood soon after.
    declines: u32,
    /// Since the flow began to compete, somebody else has been there for certain: the queue stayed
    /// although little was sent, or was so long that frames were dropped.
    pub(super) is_certain: bool,
}

impl Competition {
    pub(super) fn new() -> Self {
        Competition {
            window: COMPETE_WINDOW_MIN,
            longest: Duration::ZERO,
            at: None,
            sent_while_short: (0.0, 0.0),
            sent_while_long: (0.0, 0.0),
            queued_at_loss: Duration::ZERO,
            peak: None,
            linear: COMPETE_WINDOW_MIN,
            drain: None,
            declines: 0,
            is_certain: false,
        }
    }

    /// Whether the flow competes, or did a moment ago.
    pub(super) fn is_recent(&self, now: Time, competes: bool) -> bool {
        competes || self.at.is_some_and(|at| now - at < DRAIN_MEMORY)
    }

    /// Goes on with so many frames.
    pub(super) fn begin(&mut self, window: f64) {
        (self.window, self.linear, self.peak) = (window, window, None);
    }

    /// Takes feedback of frames that came while so much was queued, if that is known.
    pub(super) fn note(&mut self, sample: &Sample, queueing: Option<Duration>) {
        let queueing = queueing.unwrap_or(Duration::ZERO);
        self.longest = self.longest.max(queueing);
        if sample.came < sample.frames {
            self.queued_at_loss = self.queued_at_loss.max(queueing);
        }
        let much = queueing > self.longest.mul_f64(CONGESTED_RATIO);
        let counted = if much { &mut self.sent_while_long } else { &mut self.sent_while_short };
        counted.0 += sample.frames as f64;
        counted.1 += sample.came as f64;
    }

    /// Whether frames of the round trip that has passed were dropped, where the path loses this
    /// share of them besides, with this factor of a count's variance.
    pub(super) fn was_congested(&mut self, radio: f64, bursts: f64) -> bool {
        let (short, short_came) = core::mem::take(&mut self.sent_while_short);
        let (long, long_came) = core::mem::take(&mut self.sent_while_long);
        let by_chance = |sent: f64, deviations: f64| {
            radio * sent + deviations * (radio * (1.0 - radio) * bursts * sent).sqrt()
        };
        // Where the least delay is not known any more, losses tell alone.
        let sent = short + long;
        let lost = sent - short_came - long_came;
        long - long_came > by_chance(long, CONGESTED_DEVIATIONS)
            || lost > EXCESS_MIN * sent + by_chance(sent, EXCESS_ERRORS)
    }

    /// A round trip without congestion has passed, in which as much was sent as the window allows:
    /// cubic's growth (RFC 9438, Sections 4.2 and 4.3).
    pub(super) fn grow(&mut self, now: Time, round_trip: Duration) {
        self.linear += COMPETE_GROWTH;
        let cubic = self.peak.map_or(0.0, |(most, at)| {
            let inflection = (most * (1.0 - COMPETE_DECREASE) / CUBIC_C).cbrt();
            let time = (now + round_trip - at).as_secs_f64();
            (CUBIC_C * (time - inflection).powi(3) + most).min(1.5 * self.window)
        });
        self.set_window(self.window.max(self.linear).max(cubic));
    }

    /// There was congestion.
    pub(super) fn shrink(&mut self, now: Time) {
        self.peak = Some((self.window, now));
        self.set_window(COMPETE_DECREASE * self.window);
        (self.linear, self.longest, self.is_certain) = (self.window, self.queued_at_loss, true);
    }

    /// Whether the window became smaller so shortly before that feedback still reports frames sent
    /// before: those of that round trip, in the next one.
    pub(super) fn was_smaller(&self, now: Time, round_trip: Duration) -> bool {
        self.peak.is_some_and(|(_, at)| now - at <= 5 * round_trip / 2)
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(COMPETE_WINDOW_MIN, COMPETE_WINDOW_MAX);
    }

    /// A queue stands although it was drained a moment ago, if it was, and so much comes through.
    /// Whether that tells of somebody who fills it: a path that becomes slower does so once, and
    /// is followed; who yields to a filler gets less each time.
    pub(super) fn is_beside_filler(&mut self, now: Time, per_s: f64) -> bool {
        if self.is_recent(now, false) && core::mem::take(&mut self.is_certain) {
            return true;
        }
        let before = self.drain.replace((now, per_s));
        let declines = before
            .is_some_and(|(at, before)| now - at < DRAIN_MEMORY && per_s < DECLINE_RATIO * before);
        self.declines = if declines { self.declines + 1 } else { 0 };
        self.is_certain = false;
        self.declines >= DECLINES
    }
}
