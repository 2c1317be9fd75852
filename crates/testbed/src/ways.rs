//! Frames under way.

use std::collections::BTreeMap;

use corridor_base::Time;

/// A frame on its way from one station to another.
#[derive(Clone, Debug)]
pub struct Flying {
    /// Whose it is.
    pub from: usize,
    /// Who is to hear it.
    pub to: usize,
    /// Its bytes.
    pub frame: Vec<u8>,
}

/// All frames under way, by when they arrive, and of those of one moment by when they were sent.
#[derive(Debug, Default)]
pub struct Ways {
    under_way: BTreeMap<(Time, u64), Flying>,
    sequence: u64,
}

impl Ways {
    /// A frame will arrive at that time.
    pub fn put(&mut self, at: Time, from: usize, to: usize, frame: Vec<u8>) {
        self.under_way.insert((at, self.sequence), Flying { from, to, frame });
        self.sequence += 1;
    }

    /// The frames under way, with when they arrive.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &Flying)> {
        self.under_way.iter().map(|(&(at, _), flying)| (at, flying))
    }

    /// When the next one arrives.
    pub fn next(&self) -> Option<Time> {
        self.under_way.keys().next().map(|&(at, _)| at)
    }

    /// The next one, if it has arrived by now.
    pub fn pop(&mut self, now: Time) -> Option<Flying> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
