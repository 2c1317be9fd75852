//! Method of measurement: contestants that do the same work take turns, and the median of their
//! turns counts.

use std::time::{Duration, Instant};

use crate::machine::time_undisturbed;

/// A piece of work to measure.
pub trait Work {
    /// Untimed preparation before every run: what a user would have at hand. Returns whether there
    /// is any; without it, runs are timed together.
    fn prepare(&mut self) -> bool {
        false
    }

    /// The timed part.
    fn run(&mut self);

    /// Checks the result of the last run.
    ///
    /// # Errors
    /// What is wrong with it.
    fn verify(&mut self) -> Result<(), String>;
}

/// A contestant.
pub struct Contestant {
    pub library: &'static str,
    pub backend: String,
    pub field: &'static str,
    /// Payload bytes produced per run.
    pub payload_bytes: usize,
    pub work: Box<dyn Work>,
}

impl Contestant {
    /// Name that distinguishes contestants of a group.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.library, self.backend, self.field)
    }
}

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Passes through the whole plan: a disturbance in one pass is gone by the next.
    pub passes: usize,
    /// Turns of each contestant per pass.
    pub repeats: usize,
    /// Duration of a turn; a turn has at least one run.
    pub turn: Duration,
    /// A contestant with runs longer than this has a single one-run turn per pass.
    pub slow: Duration,
}

/// Result of one contestant.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Median.
    pub payload_bytes_per_s: f64,
    /// Interquartile range over median.
    pub spread: f64,
}

impl Rate {
    /// From the seconds per run, turn by turn.
    pub fn of(payload_bytes: usize, seconds: &mut [f64]) -> Self {
        let middle = median(seconds).unwrap_or(f64::INFINITY);
        let at = |share: f64| {
            let place = (seconds.len().saturating_sub(1) as f64 * share).round();
            seconds.get(place as usize).copied().unwrap_or(middle)
        };
        Rate {
            payload_bytes_per_s: payload_bytes as f64 / middle,
            spread: (at(0.75) - at(0.25)) / middle,
        }
    }
}

/// Lets the contestants take turns; `between` is called once per round. Returns each one's seconds
/// per run, turn by turn.
///
/// # Errors
/// With `verify`, a contestant with a wrong result: its rate would be meaningless.
pub fn compete(
    contestants: &mut [Contestant],
    effort: Effort,
    verify: bool,
    mut between: impl FnMut(),
) -> Result<Vec<Vec<f64>>, String> {
    let mut seconds = vec![Vec::new(); contestants.len()];
    let mut runs_per_turn = Vec::new();
    for (contestant, seconds) in contestants.iter_mut().zip(&mut seconds) {
        if verify {
            contestant.work.prepare();
            contestant.work.run();
            let verified = contestant.work.verify();
            verified.map_err(|fault| format!("{}: {fault}", contestant.name()))?;
        }
        let mut needed = time_of_runs(contestant.work.as_mut(), 1);
        if needed > effort.slow {
            seconds.push(needed.as_secs_f64());
            runs_per_turn.push(0);
            continue;
        }
        needed = needed.min(time_of_runs(contestant.work.as_mut(), 1));
        let fits = effort.turn.as_secs_f64() / needed.as_secs_f64().max(1e-9);
        runs_per_turn.push(fits.clamp(1.0, 1e6) as usize);
    }
    for _ in 0..effort.repeats {
        between();
        for (index, contestant) in contestants.iter_mut().enumerate() {
            let (work, runs) = (contestant.work.as_mut(), runs_per_turn[index]);
            if runs == 0 {
                continue;
            }
            // The previous one has filled the caches with its own data.
            if runs > 1 {
                time_of_runs(work, runs.div_ceil(8));
            }
            let needed = time_undisturbed(|| time_of_runs(work, runs));
            seconds[index].push(needed.as_secs_f64() / runs as f64);
        }
    }
    Ok(seconds)
}

fn time_of_runs(work: &mut dyn Work, runs: usize) -> Duration {
    if work.prepare() {
        let mut total = Duration::ZERO;
        for run in 0..runs {
            if run > 0 {
                work.prepare();
            }
            let start = Instant::now();
            work.run();
            total += start.elapsed();
        }
        return total;
    }
    let start = Instant::now();
    for _ in 0..runs {
        work.run();
    }
    start.elapsed()
}

/// Sorts the values and returns the middle one.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting {
        prepared: usize,
        run: usize,
        right: bool,
    }

    impl Work for Counting {
        fn prepare(&mut self) -> bool {
            self.prepared += 1;
            true
        }
        fn run(&mut self) {
            self.run += 1;
            assert!(self.prepared >= self.run, "a run without preparation");
        }
        fn verify(&mut self) -> Result<(), String> {
            if self.right { Ok(()) } else { Err("wrong".to_owned()) }
        }
    }

    fn contestant(right: bool) -> Contestant {
        let work = Box::new(Counting { prepared: 0, run: 0, right });
        let backend = "only".to_owned();
        Contestant { library: "test", backend, field: "GF(2)", payload_bytes: 1, work }
    }

    const EFFORT: Effort = Effort {
        passes: 1,
        repeats: 3,
        turn: Duration::from_micros(10),
        slow: Duration::from_secs(1),
    };

    #[test]
    fn contestants_are_measured_in_their_order() {
        let mut rounds = 0;
        let turns =
            compete(&mut [contestant(true), contestant(true)], EFFORT, true, || rounds += 1);
        let lens: Vec<usize> = turns.unwrap().iter().map(Vec::len).collect();
        assert_eq!((lens, rounds), (vec![3, 3], 3));
    }

    #[test]
    fn a_wrong_result_is_no_result() {
        let fault = compete(&mut [contestant(false)], EFFORT, true, || {}).unwrap_err();
        assert_eq!(fault, "test only GF(2): wrong");
    }

    #[test]
    fn a_rate_is_that_of_the_middle_turn() {
        let rate = Rate::of(10, &mut [5.0, 2.0, 1.0, 2.5, 2.0]);
        assert_eq!((rate.payload_bytes_per_s, rate.spread), (5.0, 0.25));
    }

    #[test]
    fn medians_are_of_sorted_values() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut []), None);
    }
}
