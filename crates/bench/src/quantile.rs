//! Quantiles of measurements, and checks of them. A quantile has a 95 % confidence interval (from
//! order statistics: binomial, so independent of the distribution), and a limit holds if the nearer
//! end of the interval keeps to it, as with the gates of the lab.

use corridor_results::checks::Check;

/// Standard deviations for 95 %.
pub const SIGMAS: f64 = 1.96;

/// A quantile with its interval. `sorted` is ascending.
pub fn quantile(sorted: &[f64], q: f64) -> (f64, [f64; 2]) {
    let count = sorted.len() as f64;
    let at = |place: f64| {
        let place = place.floor().clamp(0.0, (sorted.len().max(1) - 1) as f64);
        sorted.get(place as usize).copied().unwrap_or(f64::NAN)
    };
    let half = SIGMAS * (count * q * (1.0 - q)).sqrt();
    let middle = q * (count - 1.0).max(0.0);
    let value = match sorted.len() {
        0 => f64::NAN,
        _ => {
            let part = middle - middle.floor();
            at(middle) * (1.0 - part) + at(middle.ceil()) * part
        }
    };
    (value, [at(q * count - half), at(q * count + half)])
}

/// Checks that a quantile is at least the limit. `sorted` is ascending.
pub fn least(name: &str, sorted: &[f64], q: f64, limit: f64) -> Check {
    let (value, interval) = quantile(sorted, q);
    Check::at_least(name, known(value), limit, "1").known_to(interval, sorted.len()).surely()
}

/// Checks that a quantile is at most the limit. `sorted` is ascending.
pub fn most(name: &str, sorted: &[f64], q: f64, limit: f64) -> Check {
    let (value, interval) = quantile(sorted, q);
    let unit = if name.contains(", ms") { "ms" } else { "1" };
    Check::at_most(name, known(value), limit, unit).known_to(interval, sorted.len()).surely()
}

/// The value of a check: without data there is none.
pub fn known(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}
