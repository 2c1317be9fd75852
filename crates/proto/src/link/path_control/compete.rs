//! Beside flows that fill the queue: a window of frames that grows and shrinks as cubic's (RFC
//! 9438).

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
/// Part of a round trip, with its queue, by which the queue becomes shorter at once if others have
/// given way: cubic's decrease of a flow that has a tenth of the path. What is less may be chance.
const GIVEN_WAY_MIN: f64 = 0.1 * (1.0 - COMPETE_DECREASE);
/// How long it takes, in round trips.
const GIVEN_WAY_ROUND_TRIPS: u32 = 2;

/// Whether others have given way: the queue was at its longest, and is shorter all at once.
#[derive(Clone, Copy, Debug, Default)]
struct GivenWay {
    /// The longest queue since anybody has, and the round trip through it.
    most: Duration,
    round_trip: Duration,
    /// Since when it is shorter by what tells, and the least since.
    since: Option<(Time, Duration)>,
}

impl GivenWay {
    /// Begins anew with a queue that is so long.
    fn begin(queueing: Duration, round_trip: Duration) -> Self {
        GivenWay { most: queueing, round_trip, since: None }
    }

    /// The queue is so long, and the round trip through it; shorter by less than `noticed` is by
    /// chance. Returns the share of the path that somebody had who has given way by 0.3 of it.
    fn note(
        &mut self,
        now: Time,
        queueing: Duration,
        round_trip: Duration,
        noticed: Duration,
    ) -> Option<f64> {
        let Some((since, least)) = self.since else {
            if queueing >= self.most {
                (self.most, self.round_trip) = (queueing, round_trip);
            }
            let by = self.most - queueing;
            if by > noticed.max(self.round_trip.mul_f64(GIVEN_WAY_MIN)) {
                self.since = Some((now, queueing));
            }
            return None;
        };
        let least = least.min(queueing);
        self.since = Some((since, least));
        if now - since < GIVEN_WAY_ROUND_TRIPS * self.round_trip {
            return None;
        }
        let by = (self.most - least).div_duration_f64(self.round_trip);
        *self = GivenWay::begin(queueing, round_trip);
        Some((by / (1.0 - COMPETE_DECREASE)).min(1.0))
    }
}

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
    pub(super) queued_at_loss: Duration,
    /// The window before and after it became smaller last, and when; what it is without cubic's
    /// part.
    peak: Option<(f64, f64, Time)>,
    linear: f64,
    given_way: GivenWay,
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
            given_way: GivenWay::default(),
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
        self.set_window(window);
        (self.linear, self.peak) = (self.window, None);
        self.given_way = GivenWay::default();
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
        let cubic = self.peak.map_or(0.0, |(most, least, at)| {
            let inflection = ((most - least) / CUBIC_C).cbrt();
            let time = (now + round_trip - at).as_secs_f64();
            (CUBIC_C * (time - inflection).powi(3) + most).min(1.5 * self.window)
        });
        self.set_window(self.window.max(self.linear).max(cubic));
    }

    /// There was congestion.
    pub(super) fn shrink(&mut self, now: Time) {
        self.decrease(now, 1.0 - COMPETE_DECREASE);
        (self.longest, self.is_certain) = (self.queued_at_loss, true);
    }

    /// Takes how long the queue is, and the round trip through it. Others that have
    /// given way have met with loss at a full queue. Frames that are paced hardly meet one, where
    /// others send in bursts: so what the loss would have cost on average, had it met each frame
    /// in the queue as likely as the next, is paid for each. Where all losses are others', 0.62 of
    /// the path is had beside one of them, 0.39 beside two; where everybody has his part, 0.45.
    pub(super) fn heed_others(
        &mut self,
        now: Time,
        queueing: Duration,
        round_trip: Duration,
        noticed: Duration,
    ) {
        if self.was_smaller(now, round_trip) {
            self.given_way = GivenWay::begin(queueing, round_trip);
        } else if let Some(share) = self.given_way.note(now, queueing, round_trip, noticed) {
            self.decrease(now, (1.0 - COMPETE_DECREASE) * (1.0 - share));
        }
    }

    fn decrease(&mut self, now: Time, by: f64) {
        let before = self.window;
        self.set_window((1.0 - by) * before);
        self.peak = Some((before.max(self.window), self.window, now));
        self.linear = self.window;
    }

    /// Whether the window became smaller so shortly before that feedback still reports frames sent
    /// before: those of that round trip, in the next one.
    pub(super) fn was_smaller(&self, now: Time, round_trip: Duration) -> bool {
        self.peak.is_some_and(|(_, _, at)| now - at <= 5 * round_trip / 2)
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
