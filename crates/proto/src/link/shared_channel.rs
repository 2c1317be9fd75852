//! Detects from traffic whether both directions share the channel.
//!
//! On a shared channel, each frame of the peer delays ours: while this station always has something
//! to send, the more frames the peer sends in an interval, the fewer of ours arrive. On separate
//! channels the peer's frames follow ours, as acknowledgments follow data, so more of one come with
//! more of the other, or the two are unrelated. The test is therefore the sign and strength of a
//! regression of our frame rate on the peer's.
//!
//! Both are counted over the same interval of the receiver's clock: feedback states when the newest
//! of our frames arrived, and the counter of the feedback's own frame states how many frames the
//! peer had sent by then, lost ones included. Whatever slows frames down, above all retries,
//! reduces both rates, which can hide a shared channel but never feign one.

use core::time::Duration;

/// How long feedback may wait on a shared channel. There it takes airtime from the data that it
/// reports on, and TCP acknowledgments inside the tunnel carry it along all the time.
const ACK_INTERVAL_SHARED: Duration = Duration::from_millis(250);
/// Shortest interval counted over: one frame more or less at its ends must not matter much.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Longest interval: a longer one had too little feedback to learn from.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Round trips per interval at least, so that what the peer sends in reply falls into the same
/// interval.
const ROUND_TRIPS: u32 = 2;
/// Share of an interval that may be idle, since a sender with nothing to send is not delayed.
/// Frames queued in the interface are still in transit during a short idle time, so this may be
/// large; but once a channel counts as shared, only intervals with hardly any idle time can refute
/// that.
const IDLE_MAX: f64 = 0.5;
/// See [`IDLE_MAX`]; once a medium counts as shared.
const IDLE_MAX_SHARED: f64 = 0.1;
/// Time constant of the regression, in intervals of ours.
const MEMORY: f64 = 200.0;
/// Fewest intervals for a result.
const INTERVALS_MIN: f64 = 48.0;
/// A slope above this means that a frame of the peer hardly takes airtime from ours.
const SLOPE_SHARED: f64 = -0.08;
/// No frame of the peer takes more airtime than a full one of ours. A steeper slope has other
/// causes, and counts as this one.
const SLOPE_STEEPEST: f64 = -1.0;
/// Share of the variance of our rate that the peer's rate has to explain.
const EXPLAINED_MIN: f64 = 0.05;
/// Standard errors by which the slope must be negative to indicate a shared channel. From then on
/// the peer's acknowledgments wait for each other, which is an experiment whose outcome soon
/// confirms or refutes the result.
const ERRORS_SHARED: f64 = 3.0;
/// Standard errors by which the slope must exceed [`SLOPE_SHARED`] to refute it.
const ERRORS_SEPARATE: f64 = 4.0;
/// Weight of a small frame of ours relative to one with a symbol. Too large a weight makes a shared
/// channel look separate, too small a weight the opposite. Where each frame has a fixed overhead
/// the true weight is about this, elsewhere less.
const SMALL: f64 = 0.3;
/// More frames of the peer in an interval than it could have sent: its counter was reset.
const PEER_FRAMES_MAX: u32 = 1 << 20;

/// The detector.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    interval: Option<Interval>,
    sums: Sums,
    shared: bool,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    began_us: u32,
    peer_counter: u32,
    symbols: u32,
    others: u32,
    idle: Duration,
}

/// What one feedback reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossed {
    /// When the newest of our frames arrived, by the receiver's clock, in microseconds modulo 2^32.
    pub(crate) received_at_us: u32,
    /// Counter of the peer's frame that carries this feedback.
    pub(crate) peer_counter: u32,
    /// Frames with symbols sent since the last feedback, up to the newest one reported.
    pub(crate) symbols: u32,
    /// Other frames sent, which are small.
    pub(crate) others: u32,
    /// Time with nothing to send since then.
    pub(crate) idle: Duration,
}

impl Sharing {
    /// Whether the channel is shared, as far as this station can tell.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Drops the interval in progress: counters restart, or say nothing.
    pub(crate) fn restart(&mut self) {
        self.interval = None;
    }

    /// Takes feedback.
    pub(crate) fn note(&mut self, crossed: Crossed, round_trip: Duration) {
        let Some(interval) = &mut self.interval else {
            self.begin(crossed);
            return;
        };
        interval.symbols += crossed.symbols;
        interval.others += crossed.others;
        interval.idle += crossed.idle;
        let passed_us = crossed.received_at_us.wrapping_sub(interval.began_us);
        let passed = Duration::from_micros(u64::from(passed_us));
        if passed < INTERVAL_MIN.max(ROUND_TRIPS * round_trip) {
            return;
        }
        let interval = *interval;
        self.begin(crossed);
        let peer_frames = crossed.peer_counter.wrapping_sub(interval.peer_counter);
        let idle = interval.idle.as_secs_f64() / passed.as_secs_f64();
        if passed > INTERVAL_MAX.max(2 * ROUND_TRIPS * round_trip)
            || peer_frames > PEER_FRAMES_MAX
            || idle > if self.shared { IDLE_MAX_SHARED } else { IDLE_MAX }
        {
            return;
        }
        let per_s = |frames: u32| f64::from(frames) / passed.as_secs_f64();
        let ours = per_s(interval.symbols) + SMALL * per_s(interval.others);
        self.sums.add(per_s(peer_frames), ours);
        self.judge();
    }

    fn begin(&mut self, crossed: Crossed) {
        self.interval = Some(Interval {
            began_us: crossed.received_at_us,
            peer_counter: crossed.peer_counter,
            symbols: 0,
            others: 0,
            idle: Duration::ZERO,
        });
    }

    fn judge(&mut self) {
        let Some(line) = self.sums.line() else { return };
        if self.shared {
            self.shared = line.slope < SLOPE_SHARED + ERRORS_SEPARATE * line.error;
        } else {
            self.shared = line.slope < SLOPE_SHARED
                && line.slope.max(SLOPE_STEEPEST) < -ERRORS_SHARED * line.error
                && line.explained > EXPLAINED_MIN;
        }
    }
}

/// Sums of a regression with exponential forgetting.
#[derive(Debug, Default)]
struct Sums {
    weight: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

/// The fitted line.
#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    /// Standard error of the slope.
    error: f64,
    /// Share of the variance explained, 0 to 1.
    explained: f64,
}

impl Sums {
    /// Adds a point: means and sums of squares are updated as Welford's, with decaying weights.
    fn add(&mut self, x: f64, y: f64) {
        let kept = 1.0 - 1.0 / MEMORY;
        let weight = kept * self.weight + 1.0;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        let share = kept * self.weight / weight;
        self.xx = kept * self.xx + share * dx * dx;
        self.xy = kept * self.xy + share * dx * dy;
        self.yy = kept * self.yy + share * dy * dy;
        self.mean_x += dx / weight;
        self.mean_y += dy / weight;
        self.weight = weight;
    }

    /// The fitted line; `None` if there are too few points, or all are equal.
    fn line(&self) -> Option<Line> {
        if self.weight < INTERVALS_MIN || self.xx <= 0.0 || self.yy <= 0.0 {
            return None;
        }
        let slope = self.xy / self.xx;
        let explained = self.xy * slope / self.yy;
        let error = ((1.0 - explained).max(0.0) * self.yy / self.xx / self.weight).sqrt();
        Some(Line { slope, error, explained })
    }
}

/// Least time between two acknowledgments if nothing is urgent or lost.
pub(crate) fn ack_interval(configured: Duration, shares_air: bool) -> Duration {
    if shares_air { configured.max(ACK_INTERVAL_SHARED) } else { configured }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::StreamKey;
    use corridor_base::rand::Rng;

    const ROUND_TRIP: Duration = Duration::from_millis(4);
    /// Airtime of a frame with a symbol, and of a small frame of the peer, in microseconds.
    const OURS_US: f64 = 1_400.0;
    const THEIRS_US: f64 = 440.0;

    /// A second of feedback, every 10 ms, about a link that is always busy in this direction. The
    /// peer sends `theirs_per_ours` frames per frame of ours on average, but unevenly; `jitter`: by
    /// what share the time of our frames varies.
    struct Link {
        now_us: f64,
        peer_counter: u32,
        sharing: Sharing,
        random: corridor_base::Stream,
    }

    impl Link {
        fn new() -> Self {
            let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "sharing" };
            let (sharing, random) = (Sharing::default(), key.stream());
            Link { now_us: 0.0, peer_counter: 0, sharing, random }
        }

        fn uniform(&mut self) -> f64 {
            f64::from(self.random.next_u32()) / f64::from(u32::MAX)
        }

        fn run(&mut self, seconds: u32, shared: bool, jitter: f64, idle: f64) -> bool {
            for _ in 0..100 * seconds {
                let mut spent_us = 0.0;
                let (mut symbols, mut theirs) = (0, 0);
                let ratio = 0.2 + 0.6 * self.uniform();
                while spent_us < 10_000.0 {
                    let longer = 1.0 + jitter * (2.0 * self.uniform() - 1.0);
                    spent_us += OURS_US * longer;
                    symbols += 1;
                    if self.uniform() < ratio {
                        theirs += 1;
                        spent_us += if shared { THEIRS_US } else { 0.0 };
                    }
                }
                let idle_us = idle * spent_us;
                self.now_us += spent_us + idle_us;
                self.peer_counter += theirs;
                let crossed = Crossed {
                    received_at_us: self.now_us as u32,
                    peer_counter: self.peer_counter,
                    symbols,
                    others: 0,
                    idle: Duration::from_secs_f64(idle_us / 1e6),
                };
                self.sharing.note(crossed, ROUND_TRIP);
            }
            self.sharing.is_shared()
        }
    }

    #[test]
    fn a_medium_that_changes_is_followed_both_ways() {
        let mut link = Link::new();
        assert!(!link.run(20, false, 0.05, 0.0), "nobody delays anybody");
        assert!(link.run(60, true, 0.05, 0.0));
        assert!(!link.run(60, false, 0.05, 0.0));
        assert!(link.run(60, true, 0.05, 0.0));
    }

    #[test]
    fn frames_of_uneven_length_do_not_feign_a_shared_medium() {
        for jitter in [0.0, 0.3, 1.0] {
            assert!(!Link::new().run(60, false, jitter, 0.0), "jitter {jitter}");
        }
    }

    /// A sender whose application now and then sends less, and a peer that sends about as many
    /// frames in each interval: in the long run chance alone makes the slope steep.
    #[test]
    fn rates_that_vary_by_themselves_do_not_feign_a_shared_medium() {
        for seed in 0..20 {
            let key = StreamKey { seed, replication: 0, entity: 0, purpose: "sharing" };
            let (mut sharing, mut random) = (Sharing::default(), key.stream());
            let mut uniform = || f64::from(random.next_u32()) / f64::from(u32::MAX);
            let (mut now_us, mut peer_counter) = (0, 0);
            for interval in 0..2_000 {
                let symbols = (1_800.0 + 1_800.0 * uniform()) as u32;
                now_us += 50_000;
                peer_counter += (130.0 + 20.0 * uniform()) as u32;
                let (received_at_us, idle) = (now_us, Duration::ZERO);
                let crossed = Crossed { received_at_us, peer_counter, symbols, others: 0, idle };
                sharing.note(crossed, ROUND_TRIP);
                assert!(!sharing.is_shared(), "seed {seed}, interval {interval}");
            }
        }
    }

    #[test]
    fn what_is_idle_tells_nothing() {
        let mut link = Link::new();
        assert!(!link.run(20, true, 0.0, 2.0));
        assert!(link.run(20, true, 0.0, 0.0));
        // A result holds until there is evidence against it.
        assert!(link.run(20, false, 0.0, 2.0));
    }

    #[test]
    fn acknowledgements_that_follow_data_are_no_shared_medium() {
        // The channel is alternately faster and slower, and correspondingly more frames come back.
        let mut sharing = Sharing::default();
        let (mut now_us, mut peer_counter) = (0, 0);
        for turn in 0..4_000u32 {
            let symbols = 5 + turn / 7 % 5;
            now_us += 10_000;
            peer_counter += symbols.div_ceil(2);
            let (received_at_us, idle) = (now_us, Duration::ZERO);
            let crossed = Crossed { received_at_us, peer_counter, symbols, others: 1, idle };
            sharing.note(crossed, ROUND_TRIP);
            assert!(!sharing.is_shared(), "in turn {turn}");
        }
    }

    #[test]
    fn counters_that_begin_anew_are_passed_over() {
        let mut link = Link::new();
        assert!(link.run(20, true, 0.0, 0.0));
        link.peer_counter = 0;
        link.sharing.restart();
        assert!(link.run(1, true, 0.0, 0.0));
        link.peer_counter = 0;
        assert!(link.run(1, true, 0.0, 0.0));
    }
}
