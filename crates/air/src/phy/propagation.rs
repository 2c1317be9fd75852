//! Which stations receive how much power from each other: from a matrix, or from positions.
//!
//! Only links at or above the receivers' floor are kept, ordered by sender: the cost of a
//! transmission depends only on the stations that can sense it.

use corridor_base::{Stream, StreamKey};

use core::ops::ControlFlow;

use super::config::{Links, PathLoss, RadioConfig, RadioStation};
use super::error::RadioError;
use super::fading::uniform;
use super::limits::MAX_LINKS;
use crate::erasure::ErasureConfig;

/// Pairs beyond this many standard deviations of shadowing are not considered: six of 100,000
/// deviates are greater.
const SHADOWING_DEVIATIONS_MAX: f64 = 4.0;

/// A link that is kept.
pub(super) struct Built {
    pub from: u32,
    pub to: u32,
    /// Mean power that arrives, mW.
    pub power_mw: f64,
    pub erasure: Option<ErasureConfig>,
}

/// All links of a valid configuration, by (from, to).
///
/// # Errors
/// [`RadioError::Links`], before any link is allocated.
pub(super) fn build(config: &RadioConfig) -> Result<Vec<Built>, RadioError> {
    let mut built = match &config.links {
        Links::Matrix(links) => {
            let kept = links.iter().filter_map(|link| {
                let power_mw = received_mw(config, link.from, link.to, link.loss_db)?;
                let erasure = (link.erasure.loss_ratio() > 0.0).then(|| link.erasure.clone());
                Some(Built { from: link.from as u32, to: link.to as u32, power_mw, erasure })
            });
            kept.collect()
        }
        Links::Positions { metres, path_loss } => by_distance(config, metres, path_loss)?,
    };
    built.sort_unstable_by_key(|link| (link.from, link.to));
    Ok(built)
}

/// Converts dBm to milliwatts.
pub(super) fn milliwatts(dbm: f64) -> f64 {
    libm::pow(10.0, dbm / 10.0)
}

fn received_mw(config: &RadioConfig, from: usize, to: usize, loss_db: f64) -> Option<f64> {
    let RadioStation { channel, power_dbm, .. } = config.stations[from];
    let dbm = power_dbm - loss_db;
    let noticed = channel == config.stations[to].channel && dbm >= config.receiver.floor_dbm;
    noticed.then(|| milliwatts(dbm))
}

/// The links between positions: counts them first, then makes them.
fn by_distance(
    config: &RadioConfig,
    metres: &[[f64; 3]],
    path_loss: &PathLoss,
) -> Result<Vec<Built>, RadioError> {
    let mut count = 0;
    let counted = each_by_distance(config, metres, path_loss, |_| {
        count += 1;
        if count > MAX_LINKS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if counted.is_break() {
        return Err(RadioError::Links);
    }
    let mut built = Vec::with_capacity(count);
    let _ = each_by_distance(config, metres, path_loss, |link| {
        built.push(link);
        ControlFlow::Continue(())
    });
    Ok(built)
}

/// Visits pairs by a sweep along the first coordinate, so that only pairs within reach of each
/// other in it are examined.
fn each_by_distance(
    config: &RadioConfig,
    metres: &[[f64; 3]],
    path_loss: &PathLoss,
    mut take: impl FnMut(Built) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let reach_m = reach_m(config, path_loss);
    let mut order: Vec<usize> = (0..metres.len()).collect();
    order.sort_by(|&a, &b| metres[a][0].total_cmp(&metres[b][0]).then(a.cmp(&b)));
    for (index, &a) in order.iter().enumerate() {
        for &b in &order[index + 1..] {
            if metres[b][0] - metres[a][0] > reach_m {
                break;
            }
            let distance_m = distance_m(&metres[a], &metres[b]);
            if distance_m > reach_m {
                continue;
            }
            let loss_db = loss_db(path_loss, distance_m) + shadowing_db(config, path_loss, a, b);
            for (from, to) in [(a, b), (b, a)] {
                if let Some(power_mw) = received_mw(config, from, to, loss_db) {
                    take(Built { from: from as u32, to: to as u32, power_mw, erasure: None })?;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

/// The distance at which a station can just be sensed.
fn reach_m(config: &RadioConfig, path_loss: &PathLoss) -> f64 {
    let power_dbm = config.stations.iter().map(|station| station.power_dbm);
    let most_dbm = power_dbm.fold(f64::NEG_INFINITY, f64::max);
    let spare_db =
        most_dbm - config.receiver.floor_dbm - path_loss.reference_db - path_loss.extra_db
            + SHADOWING_DEVIATIONS_MAX * path_loss.shadowing_db;
    path_loss.reference_m * libm::pow(10.0, spare_db.max(0.0) / (10.0 * path_loss.exponent))
}

/// Loss at a distance, without shadowing; see [`PathLoss`].
pub(super) fn loss_db(path_loss: &PathLoss, distance_m: f64) -> f64 {
    let ratio = (distance_m / path_loss.reference_m).max(1.0);
    path_loss.reference_db + 10.0 * path_loss.exponent * libm::log10(ratio) + path_loss.extra_db
}

fn distance_m(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let square = |axis: usize| (a[axis] - b[axis]) * (a[axis] - b[axis]);
    libm::sqrt(square(0) + square(1) + square(2))
}

fn shadowing_db(config: &RadioConfig, path_loss: &PathLoss, a: usize, b: usize) -> f64 {
    if path_loss.shadowing_db == 0.0 {
        return 0.0;
    }
    let mut key = pair_key(config, a, b, "shadowing");
    if path_loss.is_fixed {
        key.replication = 0;
    }
    path_loss.shadowing_db * normal(&mut key.stream())
}

/// The stream key of a pair of stations, the same in both directions.
pub(super) fn pair_key(
    config: &RadioConfig,
    a: usize,
    b: usize,
    purpose: &'static str,
) -> StreamKey {
    let entity = (a.min(b) as u64) << 32 | a.max(b) as u64;
    StreamKey { seed: config.seed, replication: config.replication, entity, purpose }
}

/// A normally distributed number (Box and Muller).
fn normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(stream)));
    radius * libm::cos(core::f64::consts::TAU * uniform(stream))
}
