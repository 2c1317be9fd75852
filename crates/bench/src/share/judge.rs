//! Checks of how bottlenecks are shared, and distributions over the bottlenecks.

use corridor_bench::quantile::{known, least, most, quantile};
use corridor_results::Estimate;
use corridor_results::checks::Check;
use serde::Serialize;

use crate::draw::Kind;
use crate::measure::Measured;

/// Minimum of Jain's index of four tunnels.
const JAIN_MIN: f64 = 0.9;
/// Maximum share of frames dropped while four tunnels compete: as much as `bench-paths` allows one
/// alone on nineteen of twenty steady paths.
const DROPPED_MAX: f64 = 0.06;
/// Minimum and maximum of a tunnel's share beside a plain flow.
const SHARE: (f64, f64) = (0.35, 0.65);

/// Distribution of a quantity over all bottlenecks.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// The kind, and the quantity.
    pub name: String,
    /// Its mean; `None`: no bottlenecks.
    pub mean: Option<f64>,
    /// Its 10th, 50th and 90th percentiles.
    pub percentiles: [Option<f64>; 3],
}

/// All checks.
pub fn checks(all: &[Measured]) -> Vec<Check> {
    let of = |kind: Kind| sorted(all, |measured| measured.got(kind).value);
    let (four, cubic, bbr) = (of(Kind::Four), of(Kind::Cubic), of(Kind::Bbr));
    let above = sorted(all, Measured::above_cubic);
    let dropped = sorted(all, |measured| measured.four.dropped_ratio);
    vec![
        least("four: Jain's index, 10th percentile", &four, 0.1, JAIN_MIN),
        most("four: share dropped, 90th percentile", &dropped, 0.9, DROPPED_MAX),
        least("beside cubic: share, 10th percentile", &cubic, 0.1, SHARE.0),
        most("beside cubic: share, 90th percentile", &cubic, 0.9, SHARE.1),
        mean_least("beside BBR: share less cubic's in its place, mean", &above, 0.0),
        most("beside BBR: share, 90th percentile", &bbr, 0.9, SHARE.1),
    ]
}

/// Checks that a mean is at least the limit, as is the lower end of its interval (Student's t). It
/// does not hold for fewer than two values, of which there is no interval.
fn mean_least(name: &str, values: &[f64], limit: f64) -> Check {
    let estimate = Estimate::of(values).and_then(|of| Some((of.mean, of.half_width?)));
    let check = Check::at_least(name, estimate.and_then(|(mean, _)| known(mean)), limit, "1");
    let Some((mean, half)) = estimate else { return check };
    check.known_to([mean - half, mean + half], values.len()).surely()
}

/// Distributions of all that is measured.
pub fn distributions(all: &[Measured]) -> Vec<Distribution> {
    let mut distributions = Vec::new();
    let mut add = |name: String, value: &dyn Fn(&Measured) -> f64| {
        let sorted = sorted(all, value);
        let mean = Estimate::of(&sorted).map(|estimate| estimate.mean);
        let percentiles = [0.1, 0.5, 0.9].map(|q| known(quantile(&sorted, q).0));
        distributions.push(Distribution { name, mean, percentiles });
    };
    for kind in Kind::ALL {
        let name = kind.name();
        let what = if kind == Kind::Four { "Jain's index" } else { "share" };
        add(format!("{name}: {what}"), &|measured| measured.got(kind).value);
        add(format!("{name}: utilisation"), &|measured| measured.got(kind).utilisation);
        add(format!("{name}: share dropped"), &|measured| measured.got(kind).dropped_ratio);
        let delay = format!("{name}: p95 delay above half the RTT, ms");
        add(delay, &|measured| measured.got(kind).delay_p95_ms);
    }
    add("bbr: share less cubic's in its place".to_owned(), &Measured::above_cubic);
    distributions
}

impl Distribution {
    /// The heading of a table of them.
    pub fn heading() -> String {
        format!("{:<44} {:>8} {:>8} {:>8} {:>8}", "", "mean", "10 %", "50 %", "90 %")
    }

    /// A line of the table.
    pub fn line(&self) -> String {
        let said = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let [low, middle, high] = self.percentiles.map(said);
        let Distribution { name, mean, .. } = self;
        format!("{name:<44} {:>8} {low:>8} {middle:>8} {high:>8}", said(*mean))
    }
}

fn sorted(all: &[Measured], value: impl Fn(&Measured) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = all.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Bottleneck;
    use crate::measure::Got;

    /// A bottleneck with these values of each kind.
    fn measured(values: [f64; 4]) -> Measured {
        let bottleneck = Bottleneck::new(1, 0);
        // The least fair ones also drop much.
        let got = |value| Got {
            value,
            utilisation: 0.9,
            dropped_ratio: if value <= 0.3 { 0.1 } else { 0.01 },
            delay_p95_ms: 5.0,
            runs: Vec::new(),
        };
        let [four, cubic, bbr, cubic_bbr] = values.map(got);
        let (title, interval_s) = (bottleneck.title(), bottleneck.interval_s());
        Measured { bottleneck, title, interval_s, four, cubic, bbr, cubic_bbr }
    }

    /// Which checks hold for sixty bottlenecks, of which the first `odd` have other values.
    fn holds(odd: usize, values: [f64; 4], others: [f64; 4]) -> Vec<bool> {
        let all: Vec<_> =
            (0..60).map(|at| measured(if at < odd { others } else { values })).collect();
        checks(&all).iter().map(|check| check.holds).collect()
    }

    const FAIR: [f64; 4] = [0.99, 0.5, 0.45, 0.4];

    #[test]
    fn fair_shares_hold() {
        assert_eq!(holds(0, FAIR, FAIR), [true; 6]);
    }

    #[test]
    fn a_tenth_of_unfair_ones_is_too_many_for_the_intervals_end() {
        // The interval of a 10th percentile of sixty is from the second to the eleventh.
        assert_eq!(holds(1, FAIR, [0.3, 0.2, 0.2, 0.4]), [true; 6]);
        assert_eq!(holds(2, FAIR, [0.3, 0.2, 0.45, 0.4]), [false, false, false, true, true, true]);
        assert_eq!(holds(2, FAIR, [0.5, 0.2, 0.45, 0.4]), [false, true, false, true, true, true]);
        // That of the 90th from the second highest.
        assert_eq!(holds(1, FAIR, [0.99, 0.8, 0.8, 0.4]), [true; 6]);
        assert_eq!(holds(2, FAIR, [0.99, 0.8, 0.8, 0.4]), [true, true, true, false, true, false]);
    }

    #[test]
    fn a_mean_holds_by_the_lower_end_of_the_interval_of_the_differences() {
        let check = |values: &[f64]| mean_least("", values, 0.0);
        assert!(check(&[0.2, 0.25, 0.3]).holds);
        let wide = check(&[0.0, 0.1, 0.3]);
        assert!(!wide.holds && wide.value.is_some_and(|mean| mean > 0.0), "{wide:?}");
        assert!(!check(&[0.1]).holds && !check(&[]).holds, "too little is known");
        // What both shares have in common does not widen it: less than plain cubic does not hold.
        assert!(holds(30, FAIR, [0.99, 0.5, 0.25, 0.2])[4]);
        assert!(!holds(0, [0.99, 0.5, 0.39, 0.4], FAIR)[4]);
    }

    #[test]
    fn of_nothing_nothing_holds() {
        assert!(checks(&[]).iter().all(|check| !check.holds));
        assert!(distributions(&[]).iter().all(|of| of.mean.is_none()));
    }

    #[test]
    fn distributions_are_of_every_kind() {
        let all: Vec<_> = (0..=10).map(|at| measured([f64::from(at) / 10.0; 4])).collect();
        let of = distributions(&all);
        assert_eq!(of.len(), 4 * 4 + 1);
        assert_eq!(
            of[0].line().split_whitespace().skip(3).collect::<Vec<_>>(),
            ["0.500", "0.100", "0.500", "0.900"]
        );
    }
}
