//! Whether both directions share the channel, found out from what crosses.
//!
//! Where they do, each frame of the peer delays ours: while this station always has something to
//! send, the more frames the peer sends in an interval, the fewer of ours arrive. Where they do
//! not, the peer's frames follow ours, as acknowledgements follow data: more of one go with more of
//! the other, or the two have nothing to do with each other. So it is the sign and the strength of
//! a regression of our frames a second on the peer's that tells.
//!
//! Both are counted over the same interval of the receiver's clock: feedback says when the newest
//! of our frames came, and the counter of its own frame says how many frames the peer had sent by
//! then, those that got lost included. Whatever makes frames slow, retries above all, makes both
//! fewer, and hides a medium that is shared, but never feigns one.

use core::time::Duration;

/// How long feedback may wait where both directions share the channel: there it takes the air from
/// what it is about, and the acknowledgements of TCP inside give it a ride all the time.
const ACK_INTERVAL_SHARED: Duration = Duration::from_millis(250);
/// Least interval counted over: a frame more or less at its ends must not matter much.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Longest one: then nothing was heard for long, and nothing is to be learned.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Round trips in an interval at least: what the peer sends in answer belongs to the same one.
const ROUND_TRIPS: u32 = 2;
/// Share of an interval that may have been idle: who has nothing to send is delayed by nobody. What
/// the interface holds is still on its way then, so some of it says little; a shared medium is only
/// doubted where there is none.
const IDLE_MAX: f64 = 0.5;
/// See [`IDLE_MAX`]; once a medium counts as shared.
const IDLE_MAX_SHARED: f64 = 0.1;
/// Intervals of ours that are remembered, about.
const MEMORY: f64 = 200.0;
/// Fewer tell nothing.
const INTERVALS_MIN: f64 = 48.0;
/// A frame of the peer takes this share of the time of one of ours at least, or matters little.
const SLOPE_SHARED: f64 = -0.08;
/// Share of the variance of our rate that the peer's has to explain.
const EXPLAINED_MIN: f64 = 0.05;
/// Standard errors by which the slope must be negative to be believed. Where it is, the peer's
/// acknowledgements wait for each other from then on: that is an experiment, whose outcome soon
/// confirms the verdict or refutes it.
const ERRORS_SHARED: f64 = 3.0;
/// And by how many it must be above [`SLOPE_SHARED`] to be no longer believed.
const ERRORS_SEPARATE: f64 = 4.0;
/// What a small frame of ours counts beside one with a symbol. Too much makes a shared medium look
/// less so, too little the opposite: where each frame has its overhead it is about this, and less
/// elsewhere.
const SMALL: f64 = 0.3;
/// More frames of the peer in an interval than it could have sent: its counter began anew.
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

/// What one feedback tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossed {
    /// When the newest of our frames came, by the receiver's clock, microseconds modulo 2^32.
    pub(crate) received_at_us: u32,
    /// Counter of the peer's frame with this feedback.
    pub(crate) peer_counter: u32,
    /// Frames with symbols that were sent up to the newest one, since the feedback before.
    pub(crate) symbols: u32,
    /// Other frames, small ones.
    pub(crate) others: u32,
    /// How long there was nothing to send since then.
    pub(crate) idle: Duration,
}

impl Sharing {
    /// Whether both directions share the channel, as far as this station can tell.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// What was begun to be counted is forgotten: counters start anew, or say nothing.
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
                && line.slope < -ERRORS_SHARED * line.error
                && line.explained > EXPLAINED_MIN;
        }
    }
}

/// Sums of a regression whose past fades.
#[derive(Debug, Default)]
struct Sums {
    weight: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

/// The line through the points.
#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    /// Standard error of the slope.
    error: f64,
    /// Share of the variance explained, 0 to 1.
    explained: f64,
}

impl Sums {
    /// Means and sums of squares updated as Welford's, with weights that fade.
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

    /// `None`: there are too few points, or all of them are one.
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

/// Least time between two acknowledgements where nothing is urgent or lost.
pub(crate) fn ack_interval(configured: Duration, shares_air: bool) -> Duration {
    if shares_air { configured.max(ACK_INTERVAL_SHARED) } else { configured }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::StreamKey;
    use corridor_base::rand::Rng;

    const ROUND_TRIP: Duration = Duration::from_millis(4);
    /// Airtimes: of a frame with a symbol, and of a small frame of the peer.
    const OURS_US: f64 = 1_400.0;
    const THEIRS_US: f64 = 440.0;

    /// A second of feedback, every 10 ms, about a link that is always busy this way. The peer sends
    /// `theirs_per_ours` frames for each of ours on average, but unevenly; `jitter`: by what part a
    /// frame of ours takes longer or shorter.
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

    #[test]
    fn what_is_idle_tells_nothing() {
        let mut link = Link::new();
        assert!(!link.run(20, true, 0.0, 2.0));
        assert!(link.run(20, true, 0.0, 0.0));
        // What was found out holds until there is something that tells.
        assert!(link.run(20, false, 0.0, 2.0));
    }

    #[test]
    fn acknowledgements_that_follow_data_are_no_shared_medium() {
        // The way takes more and less by turns, and so many more frames come back.
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
