//! Frames with symbols received from a peer, as reported to its sender.

use core::time::Duration;
use std::collections::VecDeque;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::bounds::NEWEST_FRAMES_MAX;
use crate::wire::{LinkFeedback, PairGap, PathId};

/// Frames over which the time between frames is averaged, and how many of these means are kept.
const GAP_FRAMES: u32 = 8;
const GAPS: usize = 8;

/// The greatest lateness is remembered over as many frames, and until as many more were received:
/// at most one frame in so many is later than reported.
pub(crate) const LATE_FRAMES: u32 = 64;
/// Or over so long, if that is shorter, and until as long again has passed: where few frames come,
/// a path that no longer reorders would be taken for one that does for minutes.
const LATE_TIME: Duration = Duration::from_secs(5);

/// Most gaps of pairs that feedback sums up; of fewer than `GAPS_MEDIAN` the newest says too little
/// about how they differ.
const PAIRS_MAX: usize = 8;
const GAPS_MEDIAN: usize = 3;

/// One direction of a link, as seen by its receiver.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    newest: Option<Newest>,
    /// Counter of the frame with the last symbol.
    last: Option<u32>,
    /// Number of frames received, modulo 2^32.
    frames: u32,
    late: Late,
    pairs: Pairs,
}

/// Gaps between the two frames of pairs, which left together: what the bottleneck takes for the
/// second.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// Those since earlier feedback with any, in order.
    gaps: ArrayVec<Duration, PAIRS_MAX>,
    /// What feedback reports.
    reported: Option<PairGap>,
}

impl Pairs {
    pub(crate) fn note(&mut self, gap: Duration) {
        if self.gaps.is_full() {
            self.gaps.remove(0);
        }
        self.gaps.push(gap);
    }

    /// Sums up the gaps since the last time: their median, or zero if they differ by more than half
    /// of it. Of eight, the shortest and the longest may be off by any amount.
    pub(crate) fn report(&mut self) -> Option<PairGap> {
        if !self.gaps.is_empty() {
            self.gaps.sort_unstable();
            let gaps = self.gaps.as_slice();
            let (count, median) = (gaps.len(), gaps[gaps.len() / 2]);
            let differ = gaps[count - 1 - count / PAIRS_MAX] - gaps[count / PAIRS_MAX];
            let agree = count < GAPS_MEDIAN || differ <= median / 2;
            let gap_ns = if agree { u32::try_from(median.as_nanos()).unwrap_or(0) } else { 0 };
            let number = self.reported.map_or(0, |before| before.number.wrapping_add(1));
            self.reported = Some(PairGap { gap_ns, number });
            self.gaps.clear();
        }
        self.reported
    }
}

/// How late overtaken frames arrive: the time since the first newer frame arrived.
#[derive(Debug, Default)]
struct Late {
    /// Frames that were the newest when they arrived.
    newest: VecDeque<(u32, Time)>,
    /// Greatest lateness of the last frames, and of those before them.
    latest: [Duration; 2],
    /// Number of the last frames, and since when they are counted.
    frames: u32,
    since: Time,
}

impl Late {
    fn note(&mut self, now: Time, counter: u32) {
        self.forget(now);
        self.frames += 1;
        if self.newest.back().is_some_and(|&(newest, _)| newest > counter) {
            let at = self.newest.partition_point(|&(newest, _)| newest <= counter);
            let since = self.newest.get(at).map_or(now, |&(_, since)| since);
            self.latest[0] = self.latest[0].max(now - since);
            return;
        }
        if self.newest.len() >= NEWEST_FRAMES_MAX {
            self.newest.pop_front();
        }
        self.newest.push_back((counter, now));
    }

    /// Forgets the lateness of frames long before this one.
    fn forget(&mut self, now: Time) {
        let age = now - self.since;
        if self.frames >= LATE_FRAMES || age >= LATE_TIME {
            let latest = if age < 2 * LATE_TIME { self.latest[0] } else { Duration::ZERO };
            (self.latest, self.frames, self.since) = ([Duration::ZERO, latest], 0, now);
        }
    }

    fn latest(&self) -> Duration {
        self.latest[0].max(self.latest[1])
    }
}

/// The newest frame, and when it came.
#[derive(Debug)]
struct Newest {
    counter: u32,
    at: Time,
    spacing: Spacing,
}

/// The spacing of frames at the path's rate: the recent minimum of means over a few frames. A
/// sender with little to send spaces frames further apart, now and then or always, but that makes
/// no burst of losses longer.
#[derive(Debug)]
struct Spacing {
    /// The frame that the next mean starts from.
    from: (u32, Time),
    means: [Option<Duration>; GAPS],
    next: usize,
    /// The minimum of the means, since each frame asks for it; zero: unknown.
    least: Duration,
}

impl Newest {
    fn first(counter: u32, at: Time) -> Self {
        let (from, least) = ((counter, at), Duration::ZERO);
        Newest { counter, at, spacing: Spacing { from, means: [None; GAPS], next: 0, least } }
    }

    /// A newer frame came.
    fn follow(&mut self, counter: u32, now: Time) {
        self.spacing.note(counter, now);
        (self.counter, self.at) = (counter, now);
    }
}

impl Spacing {
    fn note(&mut self, counter: u32, now: Time) {
        let (from, since) = self.from;
        if counter - from >= GAP_FRAMES {
            self.means[self.next % GAPS] = Some((now - since) / (counter - from));
            self.next = (self.next + 1) % GAPS;
            self.from = (counter, now);
            self.least = self.means.iter().flatten().min().copied().unwrap_or_default();
        }
    }
}

impl Arrivals {
    /// Most bytes of the arrival times that it remembers.
    pub(crate) const BYTES_MAX: usize =
        size_of::<(u32, Time)>() * NEWEST_FRAMES_MAX.next_power_of_two();

    /// A symbol came in this frame. Called for each symbol; counts the frame once.
    pub(crate) fn note(&mut self, now: Time, counter: u32) {
        if self.last.replace(counter) == Some(counter) {
            return;
        }
        self.late.note(now, counter);
        match &mut self.newest {
            None => self.newest = Some(Newest::first(counter, now)),
            Some(newest) if counter > newest.counter => newest.follow(counter, now),
            Some(_) => {}
        }
        self.frames = self.frames.wrapping_add(1);
    }

    /// This frame, which is still to be noted, left together with the one before it.
    pub(crate) fn note_paired(&mut self, now: Time, counter: u32) {
        let before =
            self.newest.as_ref().filter(|newest| counter.checked_sub(1) == Some(newest.counter));
        if let Some(before) = before {
            self.pairs.note(now - before.at);
        }
    }

    /// The sender's frame counters restart, so feedback about earlier frames is of no use to it.
    pub(crate) fn restart_session(&mut self) {
        (self.newest, self.last) = (None, None);
        self.late.newest.clear();
    }

    /// Whether there is a frame of the session to report.
    pub(crate) fn has_any(&self) -> bool {
        self.newest.is_some()
    }

    /// Longest time of a frame; zero: unknown.
    pub(crate) fn frame_time(&self) -> Duration {
        self.newest.as_ref().map_or(Duration::ZERO, |newest| newest.spacing.least)
    }

    /// Whether feedback reports the gap of a pair.
    pub(crate) fn has_pair(&self) -> bool {
        self.pairs.reported.is_some() || !self.pairs.gaps.is_empty()
    }

    /// How late overtaken frames arrive.
    pub(crate) fn lateness(&self) -> Duration {
        self.late.latest()
    }

    /// What is reported to the sender; `None`: nothing was received in its session.
    pub(crate) fn feedback(
        &mut self,
        now: Time,
        loss_ratio: f64,
        half_duplex: bool,
    ) -> Option<LinkFeedback> {
        let &Newest { counter, at, .. } = self.newest.as_ref()?;
        Some(LinkFeedback {
            path: PathId::default(),
            half_duplex,
            counter,
            delay: now - at,
            received_at_us: (at.as_nanos() / 1_000) as u32,
            frames: self.frames,
            loss_ratio,
            lateness: self.lateness(),
            pair: self.pairs.report(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest lateness counts, for 64 to 128 frames.
    #[test]
    fn a_frame_is_late_since_the_first_newer_one_came() {
        let mut arrivals = with_late_frames();
        for more in 0..2 * LATE_FRAMES {
            arrivals.note(Time::from_millis(42 + u64::from(more)), 9 + more);
            let is_remembered = more < 2 * LATE_FRAMES - 6;
            assert_eq!(arrivals.lateness().is_zero(), !is_remembered, "{more}");
        }
    }

    /// Where few frames come, it counts for 5 to 15 s.
    #[test]
    fn lateness_is_forgotten_in_time() {
        for (gap_s, last) in [(1, 9), (4, 3), (6, 1), (11, 0)] {
            let mut arrivals = with_late_frames();
            let mut remembered = (1..).map(|more| {
                arrivals.note(Time::from_millis(41 + 1_000 * gap_s * more), 8 + more as u32);
                !arrivals.lateness().is_zero()
            });
            assert_eq!(remembered.by_ref().take_while(|&is| is).count(), last, "{gap_s}");
        }
    }

    fn with_late_frames() -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (at, counter) in [(10, 1), (20, 3), (25, 7), (27, 2), (40, 5), (41, 8)] {
            arrivals.note(Time::from_millis(at), counter);
        }
        assert_eq!(arrivals.lateness(), Duration::from_millis(15));
        arrivals
    }

    /// Gaps of pairs in milliseconds, and what feedback then reports, in nanoseconds.
    fn reported(gaps_ms: &[u64]) -> Option<PairGap> {
        let mut arrivals = Arrivals::default();
        let mut now = Time::from_millis(1_000);
        for (pair, &gap) in (0_u32..).zip(gaps_ms) {
            now += Duration::from_millis(100);
            arrivals.note(now, 2 * pair);
            now += Duration::from_millis(gap);
            arrivals.note_paired(now, 2 * pair + 1);
            arrivals.note(now, 2 * pair + 1);
        }
        assert_eq!(arrivals.has_pair(), !gaps_ms.is_empty());
        arrivals.feedback(now, 0.0, false)?.pair
    }

    #[test]
    fn the_median_of_the_gaps_of_pairs_is_reported_where_they_agree() {
        let gap = |ms: u32| Some(PairGap { gap_ns: 1_000_000 * ms, number: 0 });
        for (gaps, expected) in [
            (&[][..], None),
            (&[7], gap(7)),
            (&[7, 20], gap(20)),
            (&[7, 8, 6], gap(7)),
            (&[7, 20, 6], gap(0)),
            (&[7, 7, 7, 8, 8, 7, 500, 7], gap(7)),
            (&[500, 900, 7, 7, 7, 8, 8, 7, 7, 7], gap(7)),
        ] {
            assert_eq!(reported(gaps), expected, "{gaps:?}");
        }
    }

    /// A gap is repeated, under its number, until there is a newer one.
    #[test]
    fn a_gap_is_one_of_two_successive_frames() {
        let mut arrivals = Arrivals::default();
        let mut feedback = |counters: &[u32], at_ms| {
            let now = Time::from_millis(at_ms);
            for &counter in counters {
                arrivals.note_paired(now, counter);
                arrivals.note(now, counter);
            }
            arrivals.feedback(now, 0.0, false).unwrap().pair
        };
        assert_eq!(feedback(&[1], 10), None, "the first frame of a pair is missing");
        assert_eq!(feedback(&[3], 20), None);
        let pair = feedback(&[4], 25);
        assert_eq!(pair, Some(PairGap { gap_ns: 5_000_000, number: 0 }));
        assert_eq!(feedback(&[6], 30), pair);
        assert_eq!(feedback(&[7], 33), Some(PairGap { gap_ns: 3_000_000, number: 1 }));
    }

    #[test]
    fn a_frame_of_two_symbols_counts_once() {
        let mut arrivals = Arrivals::default();
        for counter in [4, 4, 6, 5, 5] {
            arrivals.note(Time::from_millis(1), counter);
        }
        let told = arrivals.feedback(Time::from_millis(1), 0.0, false).unwrap();
        assert_eq!((told.counter, told.frames), (6, 3));
        arrivals.restart_session();
        arrivals.note(Time::from_millis(2), 5);
        let told = arrivals.feedback(Time::from_millis(2), 0.0, false).unwrap();
        assert_eq!((told.counter, told.frames), (5, 4));
    }
}
