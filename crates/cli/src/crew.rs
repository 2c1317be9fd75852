//! Runs in parallel: as many at once as the processors can take.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Parallel runs per processor at first, before it is known how much processor time they need.
/// Measured: docs/decisions/0013-lab-gates.md.
const FIRST_PER_PROCESSOR: usize = 2;
/// Maximum per processor, however little they need: each run has namespaces and threads of its own.
const MOST_PER_PROCESSOR: usize = 4;
/// Share of all processors that runs may need together, on average; the rest is for bursts, and for
/// other programs on the machine. Measured: docs/decisions/0013-lab-gates.md.
const BUSY_RATIO_MAX: f64 = 0.5;

/// How many runs are made at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// A fixed number.
    Fixed(usize),
    /// As many as fit, judged by what finished runs needed.
    Measured,
}

impl Jobs {
    /// From the command line argument.
    pub fn of(given: Option<u16>) -> Self {
        given.map_or(Jobs::Measured, |jobs| Jobs::Fixed(usize::from(jobs)))
    }

    /// The number at first.
    pub fn at_first(self) -> usize {
        match self {
            Jobs::Fixed(jobs) => jobs,
            Jobs::Measured => FIRST_PER_PROCESSOR * processors(),
        }
    }

    fn at_most(self) -> usize {
        match self {
            Jobs::Fixed(jobs) => jobs,
            Jobs::Measured => MOST_PER_PROCESSOR * processors(),
        }
    }
}

/// Number of processors of this machine.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Workers that make runs, and what they have learnt about them.
#[derive(Debug)]
pub struct Crew {
    jobs: Jobs,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// Processors that current runs need in total.
    in_use: f64,
    /// Number of runs that reported what they needed, and processors that they needed in total.
    told: usize,
    needed: f64,
    /// What the run with an index needed when it was last made.
    needs: BTreeMap<usize, f64>,
}

impl Crew {
    pub fn new(jobs: Jobs) -> Self {
        Crew { jobs, state: Mutex::default(), left: Condvar::new() }
    }

    /// Makes the runs with these indices. `make` is told whether the run is alone, and returns how
    /// many processors it needed, if known. Returns when all runs have ended.
    ///
    /// Nodes die with the thread that started them, so each worker stays until it has no more of
    /// them.
    pub fn work(&self, places: &[usize], make: impl Fn(usize, bool) -> Option<f64> + Sync) {
        let queue = Mutex::new(places.iter().copied().collect::<VecDeque<usize>>());
        let workers = self.jobs.at_most().min(places.len());
        let worker = || {
            while let Some((place, need)) = self.enter(&queue) {
                let needed = make(place, workers == 1);
                self.leave(place, need, needed);
            }
        };
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(worker);
            }
        });
    }

    /// Waits until one of the remaining runs fits, and takes the first such run: its index, and the
    /// processors that it is expected to need. `None`: there are no more.
    fn enter(&self, queue: &Mutex<VecDeque<usize>>) -> Option<(usize, f64)> {
        let queue = || queue.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |state: &mut State| {
            let left = queue();
            !left.is_empty() && !left.iter().any(|&place| self.has_room(state, place))
        };
        let state = self.left.wait_while(self.state(), is_full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let mut left = queue();
        let first = left.iter().position(|&place| self.has_room(&state, place))?;
        let place = left.remove(first)?;
        let need = self.need(&state, place);
        state.under_way += 1;
        state.in_use += need;
        Some((place, need))
    }

    fn leave(&self, place: usize, need: f64, needed: Option<f64>) {
        let mut state = self.state();
        state.under_way -= 1;
        state.in_use = if state.under_way == 0 { 0.0 } else { state.in_use - need };
        if let Some(needed) = needed {
            state.told += 1;
            state.needed += needed;
            state.needs.insert(place, needed);
        }
        self.left.notify_all();
    }

    /// Whether another run fits.
    fn has_room(&self, state: &State, place: usize) -> bool {
        if self.jobs != Jobs::Measured {
            return state.under_way < self.jobs.at_first();
        }
        let fits = state.in_use + self.need(state, place) <= BUSY_RATIO_MAX * processors() as f64;
        state.under_way == 0 || fits && state.under_way < self.jobs.at_most()
    }

    /// Processors that the run with an index will need: as when it was last made, or the average of
    /// others. While the first runs have not ended: an equal part of the capacity.
    fn need(&self, state: &State, place: usize) -> f64 {
        if state.told < self.jobs.at_first() {
            return BUSY_RATIO_MAX * processors() as f64 / self.jobs.at_first() as f64;
        }
        let mean = state.needed / state.told as f64;
        state.needs.get(&place).copied().unwrap_or(mean)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A worker that panics ends the measurement: its scope panics too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these runs begin before one has ended, if all need as many processors as they
    /// did when they were made before.
    fn at_once(jobs: Jobs, needs: &[f64]) -> usize {
        let crew = Crew::new(jobs);
        let places: Vec<usize> = (0..needs.len()).collect();
        crew.work(&places, |place, _| Some(needs[place]));
        let queue = Mutex::new(places.into_iter().collect::<VecDeque<usize>>());
        let has_room = || {
            let (state, queue) = (crew.state(), queue.lock().unwrap());
            queue.iter().any(|&place| crew.has_room(&state, place))
        };
        let mut begun = 0;
        while has_room() && crew.enter(&queue).is_some() {
            begun += 1;
        }
        begun
    }

    #[test]
    fn as_many_are_made_at_once_as_there_is_room_for_what_they_need() {
        let all = processors() as f64;
        let many = vec![0.0; 4 * MOST_PER_PROCESSOR * processors()];
        assert_eq!(at_once(Jobs::Measured, &[all; 8]), 1);
        assert_eq!(at_once(Jobs::Measured, &[0.19 * all; 8]), 2);
        assert_eq!(at_once(Jobs::Measured, &many), MOST_PER_PROCESSOR * processors());
        assert_eq!(at_once(Jobs::Fixed(3), &[9.0; 8]), 3);
        // A run that needs much leaves capacity for those that need little.
        assert_eq!(at_once(Jobs::Measured, &[0.3 * all, 0.3 * all, 0.05 * all, 0.04 * all]), 3);
        assert_eq!(at_once(Jobs::Measured, &[0.3 * all, 0.3 * all, 0.09 * all, 0.3 * all]), 2);
    }

    #[test]
    fn every_run_is_made_once_and_no_more_are_under_way_than_allowed() {
        let (made, most) = (Mutex::new(Vec::new()), Mutex::new((0, 0)));
        let crew = Crew::new(Jobs::Fixed(3));
        crew.work(&(0..20).collect::<Vec<_>>(), |place, is_alone| {
            assert!(!is_alone);
            {
                let mut most = most.lock().unwrap();
                most.0 += 1;
                most.1 = most.1.max(most.0);
            }
            thread::yield_now();
            made.lock().unwrap().push(place);
            most.lock().unwrap().0 -= 1;
            None
        });
        let mut made = made.into_inner().unwrap();
        made.sort_unstable();
        assert_eq!(made, (0..20).collect::<Vec<_>>());
        assert!(most.into_inner().unwrap().1 <= 3);
        let alone = Mutex::new(false);
        Crew::new(Jobs::Fixed(1)).work(&[7], |_, is_alone| {
            *alone.lock().unwrap() = is_alone;
            None
        });
        assert!(alone.into_inner().unwrap());
    }
}
