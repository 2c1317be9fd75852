//! Runs side by side: as many at once as the processors bear.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Runs at once for each processor, before it is known what they need. Measured:
/// docs/decisions/0013-lab-gates.md.
const FIRST_PER_PROCESSOR: usize = 2;
/// Most for each processor, however little they need: each has namespaces and threads of its own.
const MOST_PER_PROCESSOR: usize = 4;
/// Share of all processors that runs may need together, on average: the rest is for bursts, and for
/// what else the machine does. Measured: docs/decisions/0013-lab-gates.md.
const BUSY_RATIO_MAX: f64 = 0.4;

/// How many runs are under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// So many.
    Fixed(usize),
    /// As many as fit, by what those that are over needed.
    Measured,
}

impl Jobs {
    /// As an argument has it.
    pub fn of(given: Option<u16>) -> Self {
        given.map_or(Jobs::Measured, |jobs| Jobs::Fixed(usize::from(jobs)))
    }

    /// How many there are at first.
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

/// Processors of this machine.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Workers that make runs, and what they have learnt of these.
#[derive(Debug)]
pub struct Crew {
    jobs: Jobs,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// Runs that told what they needed, and processors that they needed in sum.
    told: usize,
    needed: f64,
}

impl Crew {
    pub fn new(jobs: Jobs) -> Self {
        Crew { jobs, state: Mutex::default(), left: Condvar::new() }
    }

    /// Makes the runs at these places. `make` is told whether the run has no company, and says how
    /// many processors it needed, if that is known. Returns when all are over.
    ///
    /// Nodes die with the thread that started them: each worker stays until it has no more.
    pub fn work(&self, places: &[usize], make: impl Fn(usize, bool) -> Option<f64> + Sync) {
        let queue = Mutex::new(places.iter().copied().collect::<VecDeque<usize>>());
        let workers = self.jobs.at_most().min(places.len());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let worker = || {
            loop {
                self.enter();
                let made = next().map(|place| make(place, workers == 1));
                self.leave(made.flatten());
                if made.is_none() {
                    return;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(worker);
            }
        });
    }

    /// Waits until there is room for another run.
    fn enter(&self) {
        let is_full = |state: &mut State| state.under_way >= self.limit(state);
        let state = self.left.wait_while(self.state(), is_full);
        state.unwrap_or_else(PoisonError::into_inner).under_way += 1;
    }

    fn leave(&self, needed: Option<f64>) {
        let mut state = self.state();
        state.under_way -= 1;
        if let Some(needed) = needed {
            state.told += 1;
            state.needed += needed;
        }
        self.left.notify_all();
    }

    /// Runs that may be under way at once, from 1.
    fn limit(&self, state: &State) -> usize {
        if state.told < self.jobs.at_first() || self.jobs != Jobs::Measured {
            return self.jobs.at_first();
        }
        let mean = (state.needed / state.told as f64).max(1e-3);
        let fitting = BUSY_RATIO_MAX * processors() as f64 / mean;
        (fitting as usize).clamp(1, self.jobs.at_most())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A worker that panics ends the measurement: its scope panics too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_made_at_once_as_there_is_room_for_what_they_need() {
        let limit_after = |needed: f64| {
            let crew = Crew::new(Jobs::Measured);
            let places: Vec<usize> = (0..Jobs::Measured.at_first()).collect();
            crew.work(&places, |_, _| Some(needed));
            crew.limit(&crew.state())
        };
        let all = processors() as f64;
        assert_eq!(limit_after(all), 1);
        assert_eq!(limit_after(0.19 * all), 2);
        assert_eq!(limit_after(0.0), MOST_PER_PROCESSOR * processors());
        let crew = Crew::new(Jobs::Fixed(3));
        crew.work(&[1, 2, 3, 4], |_, _| Some(9.0));
        assert_eq!(crew.limit(&crew.state()), 3);
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
