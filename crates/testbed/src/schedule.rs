//! What happens next: to whom timers ring, and what comes by itself.

use std::collections::BTreeMap;

use corridor_base::Time;

/// What is to come, by when it does, and of one moment in the order in which it was put down; and
/// when each station is to be woken.
#[derive(Debug, Default)]
pub struct Schedule<T> {
    agenda: BTreeMap<(Time, u64), T>,
    sequence: u64,
    dues: Vec<Option<Time>>,
}

/// What is the case now.
#[derive(Debug)]
pub enum Next<T> {
    /// Something that was put down.
    Happens(T),
    /// A station wants to be woken.
    Wakes(usize),
}

impl<T> Schedule<T> {
    /// Nothing is to come yet.
    pub fn new() -> Self {
        Schedule { agenda: BTreeMap::new(), sequence: 0, dues: Vec::new() }
    }

    /// Something will happen at that time.
    pub fn happen(&mut self, at: Time, what: T) {
        self.agenda.insert((at, self.sequence), what);
        self.sequence += 1;
    }

    /// A station is to be woken then, and at no other time.
    pub fn wake(&mut self, station: usize, at: Option<Time>) {
        self.dues.resize(self.dues.len().max(station + 1), None);
        self.dues[station] = at;
    }

    /// When something is the case next.
    pub fn next(&self) -> Option<Time> {
        let happens = self.agenda.keys().next().map(|&(at, _)| at);
        happens.into_iter().chain(self.wakes().map(|(at, _)| at)).min()
    }

    /// What is the case next, and when: what happens before who wakes. Who wakes is put down anew,
    /// or wakes again.
    pub fn pop(&mut self) -> Option<(Time, Next<T>)> {
        let wakes = self.wakes();
        let happens = self.agenda.first_entry().map(|first| (first.key().0, first));
        match (happens, wakes) {
            (Some((at, first)), wakes) if wakes.is_none_or(|(wakes_at, _)| at <= wakes_at) => {
                Some((at, Next::Happens(first.remove())))
            }
            (_, wakes) => wakes.map(|(at, station)| (at, Next::Wakes(station))),
        }
    }

    /// What has happened by now, one after the other; nobody is woken.
    pub fn pop_happened(&mut self, now: Time) -> Option<T> {
        let first = self.agenda.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn wakes(&self) -> Option<(Time, usize)> {
        let dues = self.dues.iter().enumerate();
        dues.filter_map(|(station, due)| Some(((*due)?, station))).min()
    }
}
