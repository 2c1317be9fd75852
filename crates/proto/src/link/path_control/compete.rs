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
/// If the queue is as long as before within this many round trips, nobody has met with loss: BBR
/// sends less in one of eight round trips without a queue, four of those with the queue that it
/// keeps. Less where CUBIC regains its window sooner.
const BACK_ROUND_TRIPS_MAX: f64 = 5.0;
/// Round trips of competing after which a drain checks whether others still fill the queue: the
/// first time, the factor from check to check while they do, and the most.
const CHECK_ROUND_TRIPS: u32 = 20;
const CHECK_FACTOR: u32 = 4;
const CHECK_ROUND_TRIPS_MAX: u32 = 150;

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
    /// chance; `per_s`: frames/s that the path carries at least. Returns the share of the path that
    /// a flow must have if its reduction by 0.3 explains the change. A change that is soon over is
    /// no such reduction.
    fn note(
        &mut self,
        now: Time,
        queueing: Duration,
        round_trip: Duration,
        noticed: Duration,
        per_s: f64,
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
        let passed = now - since;
        if passed < GIVEN_WAY_ROUND_TRIPS * self.round_trip {
            self.since = Some((since, least.min(queueing)));
            return None;
        }
        let by = self.most - least;
        // At least so many frames were queued before and are not now; another flow and this one
        // grow until they are again.
        let regained = by.as_secs_f64() * per_s / (2.0 * COMPETE_GROWTH);
        if passed < self.round_trip.mul_f64(regained.min(BACK_ROUND_TRIPS_MAX)) {
            if queueing + noticed >= self.most {
                *self = GivenWay::begin(self.most.max(queueing), self.round_trip);
            }
            return None;
        }
        let by = by.div_duration_f64(self.round_trip);
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
    /// Round trips until the next check.
    check_round_trips: u32,
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
            check_round_trips: CHECK_ROUND_TRIPS,
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
        self.check_round_trips = CHECK_ROUND_TRIPS;
    }

    /// When a drain should check whether others still fill the queue. Flows that follow delay, as
    /// this one does, may have seemed to when they began, and give way to it until then.
    pub(super) fn next_check(&mut self, now: Time, round_trip: Duration) -> Time {
        let span = self.check_round_trips * round_trip;
        self.check_round_trips = (CHECK_FACTOR * self.check_round_trips).min(CHECK_ROUND_TRIPS_MAX);
        now + span
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
    /// others have reduced theirs ([`GivenWay::note`]), that is, when they met with loss at a full
    /// queue. Paced frames hardly meet such a loss, where others send in bursts. So each such loss
    /// costs this flow what it would have cost on average if it had hit each frame in the queue
    /// with the same probability. If all losses hit others, the flow gets 0.62 of the path beside
    /// one of them and 0.39 beside two; if they hit everybody in proportion, 0.45.
    pub(super) fn heed_others(
        &mut self,
        now: Time,
        queueing: Duration,
        round_trip: Duration,
        noticed: Duration,
        per_s: f64,
    ) {
        if self.was_smaller(now, round_trip) {
            self.given_way = GivenWay::begin(queueing, round_trip);
        } else if let Some(share) = self.given_way.note(now, queueing, round_trip, noticed, per_s) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const NOTICED: Duration = Duration::from_millis(1);

    /// The window of 100 frames after 10 s beside a queue of this length, in milliseconds, at each
    /// time in seconds.
    fn window_beside(queueing_ms: impl Fn(f64) -> f64) -> f64 {
        let mut compete = Competition::new();
        compete.begin(100.0);
        for ms in (0..10_000).step_by(10) {
            let now = Time::ZERO + Duration::from_millis(ms);
            let queueing = Duration::from_secs_f64(queueing_ms(now.as_secs_f64()) / 1e3);
            compete.heed_others(now, queueing, RTT, NOTICED, 2_000.0);
        }
        compete.window
    }

    /// BBR sends less in one round trip of each eight, of the path without a queue.
    #[test]
    fn a_queue_that_is_soon_back_is_nobodys_loss() {
        let cycle = |now: f64| if now % 0.4 < 0.05 { 45.0 } else { 60.0 };
        assert_eq!(window_beside(cycle), 100.0);
    }

    #[test]
    fn a_queue_that_stays_shorter_shows_the_loss_of_others() {
        // CUBIC at half of the path: its window falls by 0.3, and takes 4 s to grow back.
        let sawtooth = |now: f64| 60.0 - 15.0 * (1.0 - now % 4.0 / 4.0);
        let window = window_beside(sawtooth);
        // Each of the two losses costs 0.3 of the other half, as far as the queue shows it.
        assert!((65.0..80.0).contains(&window), "{window}");
    }

    #[test]
    fn the_first_checks_come_early() {
        let mut compete = Competition::new();
        let mut checks = || compete.next_check(Time::ZERO, RTT).as_secs_f64();
        assert_eq!([checks(), checks(), checks(), checks()], [2.0, 8.0, 15.0, 15.0]);
        compete.begin(100.0);
        assert_eq!(compete.next_check(Time::ZERO, RTT).as_secs_f64(), 2.0);
    }
}
