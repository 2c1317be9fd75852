//! Frames with symbols received from a peer, as reported to its sender.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use crate::wire::{LinkFeedback, PathId};

/// Frames over which the time between frames is averaged, and how many of these means are kept.
const GAP_FRAMES: u32 = 8;
const GAPS: usize = 8;

/// The greatest lateness is remembered over as many frames, and until as many more were received:
/// about one frame in so many is later than reported.
pub(crate) const LATE_FRAMES: u32 = 64;
/// Newest frames whose arrival times are remembered: one overtaken by more of them counts as late
/// by the oldest.
const NEWEST_MAX: usize = 512;

/// One direction of a link, as seen by its receiver.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    newest: Option<Newest>,
    /// Counter of the frame with the last symbol.
    last: Option<u32>,
    /// Number of frames received, modulo 2^32.
    frames: u32,
    late: Late,
}

/// How late overtaken frames arrive: the time since the first newer frame arrived.
#[derive(Debug, Default)]
struct Late {
    /// Frames that were the newest when they arrived.
    newest: VecDeque<(u32, Time)>,
    /// Greatest lateness of the last frames, and of the `LATE_FRAMES` before them.
    latest: [Duration; 2],
    /// Number of the last frames.
    frames: u32,
}

impl Late {
    fn note(&mut self, now: Time, counter: u32) {
        let at = self.newest.partition_point(|&(newest, _)| newest <= counter);
        match self.newest.get(at) {
            Some(&(_, since)) => self.latest[0] = self.latest[0].max(now - since),
            None => {
                if self.newest.len() >= NEWEST_MAX {
                    self.newest.pop_front();
                }
                self.newest.push_back((counter, now));
            }
        }
        self.frames += 1;
        if self.frames >= LATE_FRAMES {
            (self.latest, self.frames) = ([Duration::ZERO, self.latest[0]], 0);
        }
    }

    fn latest(&self) -> Duration {
        self.latest[0].max(self.latest[1])
    }
}

/// The newest frame, and when it came.
#[derive(Clone, Copy, Debug)]
struct Newest {
    counter: u32,
    at: Time,
    spacing: Spacing,
}

/// The spacing of frames at the path's rate: the recent minimum of means over a few frames. A
/// sender with little to send spaces frames further apart, now and then or always, but that makes
/// no burst of losses longer.
#[derive(Clone, Copy, Debug)]
struct Spacing {
    /// The frame that the next mean starts from.
    from: (u32, Time),
    means: [Option<Duration>; GAPS],
    next: usize,
}

impl Newest {
    fn first(counter: u32, at: Time) -> Self {
        let spacing = Spacing { from: (counter, at), means: [None; GAPS], next: 0 };
        Newest { counter, at, spacing }
    }

    /// A newer frame came.
    fn followed_by(mut self, counter: u32, now: Time) -> Self {
        self.spacing.note(counter, now);
        Newest { counter, at: now, ..self }
    }
}

impl Spacing {
    fn note(&mut self, counter: u32, now: Time) {
        let (from, since) = self.from;
        if counter - from >= GAP_FRAMES {
            self.means[self.next % GAPS] = Some((now - since) / (counter - from));
            self.next = (self.next + 1) % GAPS;
            self.from = (counter, now);
        }
    }
}

impl Arrivals {
    /// A symbol came in this frame. Called for each symbol; counts the frame once.
    pub(crate) fn note(&mut self, now: Time, counter: u32) {
        if self.last.replace(counter) == Some(counter) {
            return;
        }
        self.late.note(now, counter);
        self.newest = Some(match self.newest {
            None => Newest::first(counter, now),
            Some(newest) if counter > newest.counter => newest.followed_by(counter, now),
            Some(newest) => newest,
        });
        self.frames = self.frames.wrapping_add(1);
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
        let means = self.newest.iter().flat_map(|newest| newest.spacing.means);
        means.flatten().min().unwrap_or(Duration::ZERO)
    }

    /// How late overtaken frames arrive.
    pub(crate) fn lateness(&self) -> Duration {
        self.late.latest()
    }

    /// What is reported to the sender; `None`: nothing was received in its session.
    pub(crate) fn feedback(
        &self,
        now: Time,
        loss_ratio: f64,
        half_duplex: bool,
    ) -> Option<LinkFeedback> {
        let Newest { counter, at, .. } = self.newest?;
        Some(LinkFeedback {
            path: PathId::default(),
            half_duplex,
            counter,
            delay: now - at,
            received_at_us: (at.as_nanos() / 1_000) as u32,
            frames: self.frames,
            loss_ratio,
            lateness: self.lateness(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest lateness counts, for 64 to 128 frames.
    #[test]
    fn a_frame_is_late_since_the_first_newer_one_came() {
        let mut arrivals = Arrivals::default();
        for (at, counter) in [(10, 1), (20, 3), (25, 7), (27, 2), (40, 5), (41, 8)] {
            arrivals.note(Time::from_millis(at), counter);
        }
        assert_eq!(arrivals.lateness(), Duration::from_millis(15));
        for more in 0..2 * LATE_FRAMES {
            arrivals.note(Time::from_millis(1_000 * u64::from(more)), 9 + more);
            let is_remembered = more < 2 * LATE_FRAMES - 7;
            assert_eq!(arrivals.lateness().is_zero(), !is_remembered, "{more}");
        }
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
