//! Random numbers for benches that draw what they measure.

use std::time::{SystemTime, UNIX_EPOCH};

use corridor_base::Stream;
use corridor_base::rand::Rng;

/// A fresh seed.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // Six digits are easy to communicate.
    now.map_or(1, |since| since.as_nanos() as u64 / 1_000 % 1_000_000)
}

/// Uniform from 0 to 1.
pub fn uniform(stream: &mut Stream) -> f64 {
    (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Between two positive limits, with a uniform logarithm.
pub fn log_uniform(stream: &mut Stream, (least, most): (f64, f64)) -> f64 {
    log_between(uniform(stream), least, most)
}

/// A share of the way from one positive limit to another, by their logarithms.
pub fn log_between(share: f64, least: f64, most: f64) -> f64 {
    least * (most / least).powf(share)
}

/// Rounded to a number of decimals.
pub fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}
