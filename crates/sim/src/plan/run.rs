//! One replication of one point of a plan.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corridor_scenario::{
    Load, Measures, Network as NetworkPlan, Plan, Point, Replication, Run, Scenario,
};

use crate::plan::SimError;
use crate::plan::flows::{self, Prepared};
use crate::plan::routing::Beforehand;
use crate::plan::tunnel::{check_run, run_kept};

/// Commit that this was built from; "unknown" without a repository.
pub const COMMIT: &str = env!("CORRIDOR_COMMIT");

/// Hash of the sources that results depend on: equal hashes give equal results.
pub const CODE_VERSION: &str = env!("CORRIDOR_CODE_VERSION");

/// Runs a replication of a point. The result depends only on the point's
/// [identity](corridor_scenario::Point::identity) and on the replication.
///
/// # Errors
/// As [`Runner::check`].
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
/// once what the check and all replications of a point share: whether links connect its flows'
/// ends, and the routes of a network with route discovery beforehand.
#[derive(Debug, Default)]
pub struct Runner {
    /// By the number of their point.
    prepared: Mutex<BTreeMap<usize, Arc<Prepared>>>,
    routes: Beforehand,
}

impl Runner {
    /// Checks that the simulator supports all points of a plan, before the first of many runs.
    ///
    /// # Errors
    /// The first unsupported point, and why.
    pub fn check(&self, plan: &Plan) -> Result<(), (usize, SimError)> {
        plan.points.iter().try_for_each(|point| {
            let checked = match &point.load {
                Load::Radio(radio) => check_run(&radio.scenario, &radio.run),
                Load::Network(network) => self.prepare(point, network).map(|prepared| {
                    let mut remembered = self.remembered();
                    // Beyond the limit, runs prepare their points, in their order.
                    if remembered.len() < PREPARED_MAX {
                        remembered.insert(point.index, prepared);
                    }
                }),
            };
            checked.map_err(|error| (point.index, error))
        })
    }

    /// Runs a replication of a point.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn run(&self, point: &Point, replication: u64) -> Result<Replication, SimError> {
        let Load::Network(network) = &point.load else { return run(point, replication) };
        let known = self.remembered().get(&point.index).map(Arc::clone);
        let prepared = match known {
            Some(prepared) => prepared,
            None => {
                let made = self.prepare(point, network)?;
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

    fn prepare(&self, point: &Point, network: &NetworkPlan) -> Result<Arc<Prepared>, SimError> {
        let made = Prepared::knowing(network, point.seed, &self.routes)?;
        Ok(Arc::new(made.keeping(point.keep)))
    }

    /// The map, even after a thread panicked: it is always consistent.
    fn remembered(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Prepared>>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As [`Runner::check`], where nothing is run afterwards.
///
/// # Errors
/// Those of [`Runner::check`].
pub fn check_plan(plan: &Plan) -> Result<(), (usize, SimError)> {
    Runner::default().check(plan)
}
