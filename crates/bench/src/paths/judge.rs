//! Checks of the random paths.

use corridor_bench::quantile::{SIGMAS, known, least, most};
use corridor_results::checks::Check;

use crate::draw::Drawn;
use crate::measure::{Got, Measured};

/// Queueing delays are compared with BBR's if it reaches at least this fraction.
const BBR_SHARE_MIN: f64 = 0.1;
/// A buffer counts as deep beyond this, and beyond half a bandwidth-delay product.
const DEEP_MS: f64 = 20.0;
const DEEP_BDP: f64 = 0.5;

/// All checks.
pub fn checks(paths: &[Measured]) -> Vec<Check> {
    let of = |is: &dyn Fn(&Measured) -> bool, value: &dyn Fn(&Measured) -> f64| {
        let mut values: Vec<f64> = paths.iter().filter(|path| is(path)).map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let steady = |path: &Measured| !path.path.is_varying();
    let varying = |path: &Measured| path.path.is_varying();
    let share = |path: &Measured| path.of_reference;
    let dropped = |path: &Measured| path.window.dropped_ratio;
    let mut checks = vec![
        least("steady goodput, median", &of(&steady, &share), 0.5, 0.95),
        least("steady goodput, 10th percentile", &of(&steady, &share), 0.1, 0.88),
        least("varying goodput, median", &of(&varying, &share), 0.5, 0.85),
        least("varying goodput, 10th percentile", &of(&varying, &share), 0.1, 0.70),
        few("share of paths below half", paths, &|path| path.of_reference < 0.5, 0.01),
        most("steady self-inflicted loss, median", &of(&steady, &dropped), 0.5, 0.02),
        most("steady self-inflicted loss, 95th percentile", &of(&steady, &dropped), 0.95, 0.06),
    ];
    let above = |path: &Measured| path.window.dropped_ratio - path.bbr.dropped_ratio;
    checks.push(most(
        "varying self-inflicted loss less BBR's, median",
        &of(&varying, &above),
        0.5,
        0.0,
    ));
    // A frame or two dropped at the start do not count.
    let start = |path: &Measured| {
        let all = path.window.dropped_before as f64;
        let rest = path.window.dropped_ratio * path.warm_up_s * path.path.mean_bps / 12_000.0;
        (all - rest).max(0.0) / path.path.bdp_frames().max(4.0)
    };
    checks.push(most("dropped at the start, BDP, median", &of(&steady, &start), 0.5, 1.0));
    // A transport that sends nothing queues nothing: it cannot be a reference.
    let carries = |path: &Measured| path.bbr.share >= BBR_SHARE_MIN;
    let is_deep = |path: &Measured| carries(path) && is_deep(&path.path);
    let ratio = |path: &Measured| path.window.wait_p95_ms / path.bbr.wait_p95_ms.max(1e-3);
    checks.push(most("deep buffers: p95 wait over BBR's, median", &of(&is_deep, &ratio), 0.5, 0.5));
    let is_shallow = |path: &Measured| carries(path) && !is_deep(path);
    let more = |path: &Measured| path.window.wait_p95_ms - path.bbr.wait_p95_ms;
    checks.push(most("others: p95 wait less BBR's, ms, median", &of(&is_shallow, &more), 0.5, 3.0));
    checks
}

fn is_deep(path: &Drawn) -> bool {
    path.buffer_ms() > DEEP_MS && path.queue_frames as f64 > DEEP_BDP * path.bdp_frames()
}

/// Checks on recorded rates, without losses, and with 10 %; none where BBR was not measured.
pub fn trace_checks(paths: &[Measured]) -> Vec<Check> {
    let mut checks = Vec::new();
    for path in paths.iter().filter(|path| path.bbr.goodput_bps > 0.0) {
        let Got { goodput_bps, share, wait_p95_ms, .. } = path.window;
        let over_bbr = goodput_bps / path.bbr.goodput_bps.max(1.0);
        let name = |what: &str| format!("{}: {what}", path.title);
        if path.path.losses[0].ratio == 0.0 {
            checks.push(least(&name("goodput over BBR's"), &[over_bbr], 0.5, 0.97));
        } else {
            // The weaker of the two is required.
            let best = (over_bbr / 1.15).max(share / 0.90);
            checks.push(least(&name("goodput, of what is asked for"), &[best], 0.5, 1.0));
        }
        let waits = wait_p95_ms / path.bbr.wait_p95_ms.max(1e-3);
        checks.push(most(&name("p95 wait over BBR's"), &[waits], 0.5, 0.6));
    }
    checks
}

/// A ratio that must be one within a tolerance, by its interval. `None` if too little is known of
/// it.
pub fn within(name: &str, ratio: Option<(f64, [f64; 2])>, limit: f64, samples: usize) -> Check {
    let value = ratio.map(|(ratio, _)| ratio - 1.0);
    let check = Check::at_most(name, value.map(f64::abs), limit, "1");
    let Some((_, ends)) = ratio else { return check };
    let [low, high] = ends.map(|end| end - 1.0);
    let holds = low <= limit && high >= -limit;
    Check { holds, ..check.known_to([low, high], samples) }
}

/// A fraction of all paths, with Wilson's interval; it holds if the fraction itself does, since
/// with any number of paths drawn here the interval cannot stay below one in a hundred.
fn few(name: &str, paths: &[Measured], is: &dyn Fn(&Measured) -> bool, limit: f64) -> Check {
    let count = paths.len().max(1) as f64;
    let share = paths.iter().filter(|path| is(path)).count() as f64 / count;
    let squared = SIGMAS * SIGMAS;
    let middle = (share + squared / (2.0 * count)) / (1.0 + squared / count);
    let spread = (share * (1.0 - share) / count + squared / (4.0 * count * count)).sqrt();
    let half = SIGMAS * spread / (1.0 + squared / count);
    let interval = [middle - half, middle + half];
    Check::at_most(name, known(share), limit, "1").known_to(interval, paths.len())
}

#[cfg(test)]
mod tests {
    use corridor_bench::quantile::quantile;

    use super::*;

    #[test]
    fn quantiles_and_their_intervals() {
        let sorted: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(quantile(&sorted, 0.5), (50.0, [40.0, 60.0]));
        assert_eq!(quantile(&sorted, 0.1), (10.0, [4.0, 16.0]));
        assert_eq!(quantile(&[3.0], 0.5), (3.0, [3.0, 3.0]));
        assert!(quantile(&[], 0.5).0.is_nan());
    }

    #[test]
    fn a_ratio_is_one_as_far_as_it_is_known() {
        let of = |ratio, interval| within("", Some((ratio, interval)), 0.05, 9).holds;
        assert!(of(1.0, [0.98, 1.02]) && of(1.07, [1.04, 1.1]) && of(0.93, [0.9, 0.96]));
        assert!(!of(1.08, [1.06, 1.1]) && !of(0.92, [0.9, 0.94]));
        assert!(!within("", None, 0.05, 0).holds, "of nothing nothing holds");
    }

    #[test]
    fn a_limit_holds_by_the_nearer_end() {
        let sorted: Vec<f64> = (0..=100).map(f64::from).collect();
        assert!(least("", &sorted, 0.5, 40.0).holds);
        assert!(!least("", &sorted, 0.5, 41.0).holds);
        assert!(most("", &sorted, 0.5, 60.0).holds);
        assert!(!most("", &sorted, 0.5, 59.0).holds);
        assert!(!least("", &[], 0.5, 0.0).holds, "of nothing nothing holds");
    }
}
