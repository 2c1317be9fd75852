//! Results of many runs, independent of the order in which they are added.

use serde::Serialize;

use super::{Coverage, Outcome, Violation};

/// Most failures that are kept, those of the smallest seeds; the others are only counted.
pub const FAILURES_KEPT_MAX: usize = 100;

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
}

/// Results of many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds that failed.
    pub failed: u64,
    /// The first of them, at most [`FAILURES_KEPT_MAX`], by seed.
    pub failures: Vec<Failure>,
    /// Inputs to stations.
    pub events: u64,
    /// Virtual time that passed, nanoseconds.
    pub simulated_ns: u64,
    /// What the seeds without failures exercised.
    pub coverage: Coverage,
}

impl Tally {
    /// Adds a run.
    pub fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.events += outcome.events;
        self.simulated_ns += outcome.simulated_ns;
        match outcome.violation {
            Some(violation) => {
                self.failed += 1;
                self.failures.push(Failure { seed, violation });
                self.keep_first();
            }
            None => self.coverage.merge(&outcome.coverage),
        }
    }

    /// Adds other runs.
    pub fn merge(&mut self, other: Tally) {
        self.seeds += other.seeds;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.keep_first();
        self.events += other.events;
        self.simulated_ns += other.simulated_ns;
        self.coverage.merge(&other.coverage);
    }

    fn keep_first(&mut self) {
        self.failures.sort_by_key(|failure| failure.seed);
        self.failures.truncate(FAILURES_KEPT_MAX);
    }
}
