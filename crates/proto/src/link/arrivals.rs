//! Frames with symbols that have come from a peer, as they are reported to its sender.

use core::time::Duration;

use corridor_base::Time;

use crate::wire::{LinkFeedback, PathId};

/// Frames over which the time from one to the next is averaged, and how many such means are
/// remembered.
const GAP_FRAMES: u32 = 8;
const GAPS: usize = 8;

/// One way of a link, as its receiver knows it.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    newest: Option<Newest>,
    /// Counter of the frame of the last symbol.
    last: Option<u32>,
    /// How many came, modulo 2^32.
    frames: u32,
}

/// The newest frame, and when it came.
#[derive(Clone, Copy, Debug)]
struct Newest {
    counter: u32,
    at: Time,
    spacing: Spacing,
}

/// How far apart frames come where they come as the path takes them: the least of late of means
/// over a few. Who has little to send lets them come further apart than that, now and then or
/// always, but makes no burst of losses longer.
#[derive(Clone, Copy, Debug)]
struct Spacing {
    /// The frame that the next mean is counted from.
    from: (u32, Time),
    means: [Option<Duration>; GAPS],
    next: usize,
}

impl Newest {
    fn first(counter: u32, at: Time) -> Self {
        let spacing = Spacing { from: (counter, at), means: [None; GAPS], next: 0 };
        Newest { counter, at, spacing }
    }

    /// A newer one came.
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
    /// A symbol came in this frame: called for each symbol, and counts the frame once.
    pub(crate) fn note(&mut self, now: Time, counter: u32) {
        if self.last.replace(counter) == Some(counter) {
            return;
        }
        self.newest = Some(match self.newest {
            None => Newest::first(counter, now),
            Some(newest) if counter > newest.counter => newest.followed_by(counter, now),
            Some(newest) => newest,
        });
        self.frames = self.frames.wrapping_add(1);
    }

    /// The sender's frames are counted anew: feedback about those before is of no use to it.
    pub(crate) fn restart_session(&mut self) {
        (self.newest, self.last) = (None, None);
    }

    /// Whether there is a frame of the session to tell of.
    pub(crate) fn has_any(&self) -> bool {
        self.newest.is_some()
    }

    /// What a frame takes at most; zero: it is not known.
    pub(crate) fn frame_time(&self) -> Duration {
        let means = self.newest.iter().flat_map(|newest| newest.spacing.means);
        means.flatten().min().unwrap_or(Duration::ZERO)
    }

    /// What the sender is told; `None`: nothing came of its session.
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
