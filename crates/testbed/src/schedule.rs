//! A schedule of stations' timers and of other events.

use std::collections::BTreeMap;

use corridor_base::Time;

/// Future events by time, and in the order of scheduling at the same time; and when each station
/// has to be woken.
#[derive(Debug, Default)]
pub struct Schedule<T> {
    agenda: BTreeMap<(Time, u64), T>,
    sequence: u64,
    dues: Vec<Option<Time>>,
}

/// What happens next.
#[derive(Debug)]
pub enum Next<T> {
    /// A scheduled event.
    Happens(T),
    /// A station's timer expires.
    Wakes(usize),
}

impl<T> Schedule<T> {
    /// An empty schedule.
    pub fn new() -> Self {
        Schedule { agenda: BTreeMap::new(), sequence: 0, dues: Vec::new() }
    }

    /// Schedules an event.
    pub fn happen(&mut self, at: Time, what: T) {
        self.agenda.insert((at, self.sequence), what);
        self.sequence += 1;
    }

    /// Sets the only time at which to wake a station.
    pub fn wake(&mut self, station: usize, at: Option<Time>) {
        self.dues.resize(self.dues.len().max(station + 1), None);
        self.dues[station] = at;
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Time> {
        let happens = self.agenda.keys().next().map(|&(at, _)| at);
        happens.into_iter().chain(self.wakes().map(|(at, _)| at)).min()
    }

    /// What happens next, and when; at the same time, events come before timers. A timer keeps
    /// returning until it is set anew.
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

    /// The next event due by now, ignoring timers.
    pub fn pop_happened(&mut self, now: Time) -> Option<T> {
        let first = self.agenda.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn wakes(&self) -> Option<(Time, usize)> {
        let dues = self.dues.iter().enumerate();
        dues.filter_map(|(station, due)| Some(((*due)?, station))).min()
    }
}
