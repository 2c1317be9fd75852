//! One replication of one point of a plan.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corridor_scenario::{Load, Measures, Plan, Point, Replication, Run, Scenario};

use crate::plan::SimError;
use crate::plan::flows::{self, Prepared};
use crate::plan::tunnel::{check_run, run_kept};

/// Commit that this was built from; "unknown" without a repository.
pub const COMMIT: &str = env!("CORRIDOR_COMMIT");

/// Hash of the sources that results depend on: equal hashes give equal results.
pub const CODE_VERSION: &str = env!("CORRIDOR_CODE_VERSION");

/// Runs a replication of a point. The result depends only on the point's
/// [identity](corridor_scenario::Point::identity) and on the replication.
///
/// # Errors
/// As [`check_plan`].
pub fn run(point: &Point, replication: u64) -> Result<Replication, SimError> {
    match &point.load {
        Load::Radio(radio) => {
            let scenario = Scenario { seed: point.seed, ..radio.scenario.clone() };
            let run = Run { replication, point: point.index, ..radio.run.clone() };
            let warm_up = Duration::from_nanos((radio.warm_up_s * 1e9).round() as u64);
            let (row, mut tables) = run_kept(&scenario, &run, warm_up, point.keep)?;
            let measures = Measures::of_row(&row);
            if point.keep.totals {
                row.sides.iter().for_each(|side| tables.add_flow(side.from, &measures));
            }
            Ok(Replication { measures, tables })
        }
        Load::Network(network) => {
            let prepared = Prepared::new(network, point.seed)?.keeping(point.keep);
            flows::run(&prepared, network, point.seed, replication)
        }
    }
}

/// Most networks that a [`Runner`] remembers: more than any of the papers' plans has points.
const PREPARED_MAX: usize = 1024;

/// Runs replications of the points of one plan, as [`run`] does, on any number of threads. Computes
/// once what all replications of a point share: whether links connect its flows' ends, and the
/// routes of a network with route discovery beforehand.
#[derive(Debug, Default)]
pub struct Runner {
    /// By the number of their point.
    prepared: Mutex<BTreeMap<usize, Arc<Prepared>>>,
}

impl Runner {
    /// Runs a replication of a point.
    ///
    /// # Errors
    /// As [`check_plan`].
    pub fn run(&self, point: &Point, replication: u64) -> Result<Replication, SimError> {
        let Load::Network(network) = &point.load else { return run(point, replication) };
        let known = self.remembered().get(&point.index).map(Arc::clone);
        let prepared = match known {
            Some(prepared) => prepared,
            None => {
                let made = Prepared::new(network, point.seed)?.keeping(point.keep);
                let made = Arc::new(made);
                let mut remembered = self.remembered();
                if remembered.len() >= PREPARED_MAX {
                    remembered.pop_first();
                }
                remembered.insert(point.index, Arc::clone(&made));
                made
            }
        };
        flows::run(&prepared, network, point.seed, replication)
    }

    /// The map, even after a thread panicked: it is always consistent.
    fn remembered(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Prepared>>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that the simulator supports all points of a plan, before the first of many runs.
///
/// # Errors
/// The first unsupported point, and why.
pub fn check_plan(plan: &Plan) -> Result<(), (usize, SimError)> {
    plan.points.iter().try_for_each(|point| {
        let checked = match &point.load {
            Load::Radio(radio) => check_run(&radio.scenario, &radio.run),
            Load::Network(network) => Prepared::new(network, point.seed).map(|_| ()),
        };
        checked.map_err(|error| (point.index, error))
    })
}
