//! Competing with flows that fill the queue: a window of frames that grows and shrinks as CUBIC's
//! (RFC 9438).

use core::time::Duration;

use corridor_base::Time;

use super::Sample;
use super::model::{EXCESS_ERRORS, EXCESS_MIN};

/// Frames by which the window grows in a round trip, and the share of it that remains after a loss,
/// as in CUBIC's Reno-friendly region (RFC 9438, Section 4.3).
const COMPETE_GROWTH: f64 = 3.0 * (1.0 - COMPETE_DECREASE) / (1.0 + COMPETE_DECREASE);
const COMPETE_DECREASE: f64 = 0.7;
/// CUBIC's constant C, in frames/s^3.
const CUBIC_C: f64 = 0.4;
/// A loss indicates congestion if the queue was longer than this share of the longest.
const CONGESTED_RATIO: f64 = 0.7;
/// And if losses at that time exceed random losses by this many standard deviations.
const CONGESTED_DEVIATIONS: f64 = 2.0;
/// Bounds of the window in frames.
const COMPETE_WINDOW_MIN: f64 = 4.0;
const COMPETE_WINDOW_MAX: f64 = 100_000.0;
/// A queue that stands again within this time after the flow competed is somebody else's.
const COMPETED_MEMORY: Duration = Duration::from_secs(10);
/// A sudden shortening of the queue by this share of a round trip (queue included) means that
/// others have reduced their windows: CUBIC's decrease of a flow with a tenth of the path. Less
/// than this may be chance.
const GIVEN_WAY_MIN: f64 = 0.1 * (1.0 - COMPETE_DECREASE);
/// How long such a shortening takes, in round trips.
const GIVEN_WAY_ROUND_TRIPS: u32 = 2;

/// Detects that others have reduced their windows: the queue was at its longest, and is suddenly
/// shorter.
#[derive(Clone, Copy, Debug, Default)]
struct GivenWay {
    /// The longest queue since the last reduction, and the round trip through it.
    most: Duration,
    round_trip: Duration,
    /// Since when the queue has been significantly shorter, and its minimum since.
    since: Option<(Time, Duration)>,
}

impl GivenWay {
    /// Starts again from a queue of this length.
    fn begin(queueing: Duration, round_trip: Duration) -> Self {
        GivenWay { most: queueing, round_trip, since: None }
    }

    /// Takes the length of the queue and the round trip through it; changes below `noticed` are
    /// chance. Returns the share of the path that a flow must have if its reduction by 0.3 explains
    /// the change.
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

/// State of competing with flows that fill the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competition {
    /// Frames that may be in flight.
    pub(super) window: f64,
    /// The longest queue.
    pub(super) longest: Duration,
    /// When the flow last competed.
    pub(super) at: Option<Time>,
    /// Frames that feedback of this round trip reported while the queue was short, and how many of
    /// them arrived; the same while it was long; and the longest queue when some were lost.
    sent_while_short: (f64, f64),
    sent_while_long: (f64, f64),
    pub(super) queued_at_loss: Duration,
    /// The window before and after its last decrease, and when that was; the window without CUBIC's
    /// cubic part.
    peak: Option<(f64, f64, Time)>,
    linear: f64,
    given_way: GivenWay,
    /// Since the flow began to compete, others were certainly present: the queue stayed although
    /// little was sent, or was so long that frames were dropped.
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
            is_certain: false,
        }
    }

    /// Whether the flow competes, or did so recently.
    pub(super) fn is_recent(&self, now: Time, competes: bool) -> bool {
        competes || self.at.is_some_and(|at| now - at < COMPETED_MEMORY)
    }

    /// Goes on with this window, in frames.
    pub(super) fn begin(&mut self, window: f64) {
        self.set_window(window);
        (self.linear, self.peak) = (self.window, None);
        self.given_way = GivenWay::default();
    }

    /// Takes feedback about frames that arrived at this queue length, if it is known.
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

    /// Whether frames were dropped in the past round trip, given the random loss ratio, and the
    /// factor by which bursts raise the variance of a count.
    pub(super) fn was_congested(&mut self, radio: f64, bursts: f64) -> bool {
        let (short, short_came) = core::mem::take(&mut self.sent_while_short);
        let (long, long_came) = core::mem::take(&mut self.sent_while_long);
        let by_chance = |sent: f64, deviations: f64| {
            radio * sent + deviations * (radio * (1.0 - radio) * bursts * sent).sqrt()
        };
        // If the minimum delay is no longer known, only losses show congestion.
        let sent = short + long;
        let lost = sent - short_came - long_came;
        long - long_came > by_chance(long, CONGESTED_DEVIATIONS)
            || lost > EXCESS_MIN * sent + by_chance(sent, EXCESS_ERRORS)
    }

    /// A round trip without congestion has passed, in which the window was used: CUBIC's growth
    /// (RFC 9438, Sections 4.2 and 4.3).
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

    /// Takes the length of the queue and the round trip through it, and shrinks the window when
    /// others have reduced theirs, that is, when they met with loss at a full queue. Paced frames
    /// hardly meet such a loss, where others send in bursts. So each such loss costs this flow what
    /// it would have cost on average if it had hit each frame in the queue with the same
    /// probability. If all losses hit others, the flow gets 0.62 of the path beside one of them and
    /// 0.39 beside two; if they hit everybody in proportion, 0.45.
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

    /// Whether the window was decreased so recently that feedback still reports frames sent before:
    /// within the next round trip, feedback covers that one.
    pub(super) fn was_smaller(&self, now: Time, round_trip: Duration) -> bool {
        self.peak.is_some_and(|(_, _, at)| now - at <= 5 * round_trip / 2)
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(COMPETE_WINDOW_MIN, COMPETE_WINDOW_MAX);
    }

    /// Whether a queue that stands now belongs to a flow that fills it: to those that certainly
    /// were there when this flow last competed. Anything else, a drain shows.
    pub(super) fn is_beside_filler(&mut self, now: Time) -> bool {
        core::mem::take(&mut self.is_certain) && self.is_recent(now, false)
    }
}
