//! Derives verdicts from rows.

use std::io::{self, Write};

use corridor_results::{Estimate, confidence_within};
use corridor_scenario::Row;
use serde::Serialize;

use super::Rows;
use super::list::Gate;
use corridor_results::checks::{Check, Sense};

/// Confidence level of an interval.
const CONFIDENCE: f64 = 0.95;
/// O'Brien-Fleming bounds: by how many standard errors a mean may differ from its limit after all
/// of this many repeats, if it is tested after each, so that all tests together are wrong in 5 % of
/// all measurements (Jennison and Turnbull, Group Sequential Methods, 2000, Table 2.3).
const BOUNDS: [f64; 10] = [1.960, 1.977, 2.004, 2.024, 2.040, 2.053, 2.063, 2.072, 2.080, 2.087];
/// The same for more repeats: for any number of tests, by the reflection principle.
const BOUND_MOST: f64 = 2.2414;
/// Repeats before an early decision: fewer do not show how much they vary.
const REPEATS_EARLY_MIN: usize = 4;

/// Relative spread that is not due to rounding.
const SPREAD_MIN: f64 = 1e-9;

/// How gates are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// By the mean, whatever its uncertainty.
    Mean,
    /// By the end of the interval that is nearer to the limit.
    Interval,
    /// The same after each repeat if the whole interval is on one side of the limit; the interval
    /// is the wider the fewer repeats there are (`confidence_after`).
    Early {
        /// Number of all repeats.
        repeats: usize,
    },
    /// Values are differences between two programs. A gate fails if its whole interval is beyond
    /// the limit, with a confidence of 95 % for all gates together (Bonferroni correction). That it
    /// holds is decided early as in `Early`.
    Paired {
        /// Number of all repeats.
        repeats: usize,
        /// Number of gates that are judged.
        family: usize,
    },
}

impl Rule {
    /// Number of all repeats, if fewer may suffice.
    fn repeats_at_most(self) -> Option<usize> {
        match self {
            Rule::Early { repeats } | Rule::Paired { repeats, .. } => Some(repeats),
            Rule::Mean | Rule::Interval => None,
        }
    }
}

/// A judged gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Judged {
    pub(super) gate: String,
    pub(super) conditions: String,
    pub(super) unit: &'static str,
    /// Mean over the repeats; `None`: not measured.
    pub(super) value: Option<f64>,
    /// Its confidence interval; `None`: fewer than two repeats.
    pub(super) interval: Option<[f64; 2]>,
    /// Confidence level of the interval.
    pub(super) confidence: f64,
    /// `at least` or `at most`.
    pub(super) sense: Sense,
    pub(super) limit: f64,
    /// Repeats by which it was judged.
    pub(super) repeats: usize,
    /// These sufficed, and later ones do not count.
    pub(super) decided_early: bool,
    /// The end of the interval that is nearer to the limit satisfies it; with `--quick`, the mean
    /// does.
    pub(super) pass: Option<bool>,
}

pub(super) fn judge(gates: &[Gate], rows: &[Rows], rule: Rule) -> Vec<Judged> {
    gates.iter().map(|gate| judge_one(gate, rows, rule)).collect()
}

fn judge_one(gate: &Gate, rows: &[Rows], rule: Rule) -> Judged {
    judge_values(gate, &values_of(gate, rows), rule)
}

/// The same from a gate's values.
fn judge_values(gate: &Gate, values: &[f64], rule: Rule) -> Judged {
    let early = decided_after(gate, values, rule);
    let confidence = match (rule, early) {
        (Rule::Early { repeats }, None) => confidence_after(repeats, repeats),
        (Rule::Early { repeats } | Rule::Paired { repeats, .. }, Some(count)) => {
            confidence_after(count, repeats)
        }
        // Both tails have the same probability, and one of them fails a gate.
        (Rule::Paired { family, .. }, None) => {
            1.0 - 2.0 * (1.0 - CONFIDENCE) / family.max(1) as f64
        }
        (Rule::Mean | Rule::Interval, _) => CONFIDENCE,
    };
    let values = &values[..early.unwrap_or(values.len())];
    let estimate = Estimate::of(values);
    let interval = estimate.and_then(|estimate| interval(&estimate, confidence));
    let mean = estimate.map(|estimate| estimate.mean);
    let judged = match (gate.sense, interval) {
        // How much worse a program is: the end that is farther from the limit. A single repeat
        // shows nothing.
        (Sense::AtMost, ends) if matches!(rule, Rule::Paired { .. }) => ends.map(|[low, _]| low),
        (Sense::AtLeast, Some([low, _])) if rule != Rule::Mean => Some(low),
        (Sense::AtMost, Some([_, high])) if rule != Rule::Mean => Some(high),
        _ => mean,
    };
    Judged {
        gate: gate.name.clone(),
        conditions: gate.conditions.clone(),
        unit: gate.unit,
        value: mean,
        interval,
        confidence,
        sense: gate.sense,
        limit: gate.limit,
        repeats: values.len(),
        decided_early: early.is_some(),
        pass: judged.map(|value| gate.sense.holds(value, gate.limit)),
    }
}

/// A gate's value in each repeat. A repeat counts if all runs that the gate needs are valid, since
/// gates are paired.
fn values_of(gate: &Gate, rows: &[Rows]) -> Vec<f64> {
    let value = |rows: &Rows| {
        let needed: Option<Vec<&Row>> = gate.needs.iter().map(|name| rows.get(name)).collect();
        needed
            .filter(|rows| rows.iter().all(|row| row.valid))
            .and_then(|rows| (gate.measure)(&rows))
    };
    rows.iter().filter_map(value).filter(|value| value.is_finite()).collect()
}

/// Confidence level of the interval that judges after `count` repeats: frequent tests find more
/// that is due to chance, so each has a smaller error probability, and the first ones the smallest.
/// The bounds are for a known spread; for an unknown one, Student's t has a bound of the same
/// probability.
fn confidence_after(count: usize, repeats: usize) -> f64 {
    let place = repeats.saturating_sub(1);
    let last = BOUNDS.get(place).copied().unwrap_or(BOUND_MOST);
    confidence_within(last * (repeats as f64 / count.max(1) as f64).sqrt())
}

fn interval(estimate: &Estimate, confidence: f64) -> Option<[f64; 2]> {
    let half_width = estimate.half_width_at(confidence)?;
    Some([estimate.mean - half_width, estimate.mean + half_width])
}

/// The number of values after which the rest cannot be expected to change the verdict, if that is
/// fewer than all. Values that are all equal, apart from rounding, do not show how much others will
/// vary.
fn decided_after(gate: &Gate, values: &[f64], rule: Rule) -> Option<usize> {
    // To be worse than another program takes the confidence of all gates together.
    let may_fail = !matches!(rule, Rule::Paired { .. });
    let repeats = rule.repeats_at_most()?;
    (REPEATS_EARLY_MIN..repeats.min(values.len() + 1)).find(|&count| {
        let estimate = Estimate::of(&values[..count]);
        let confidence = confidence_after(count, repeats);
        let ends = estimate.and_then(|estimate| interval(&estimate, confidence));
        ends.is_some_and(|[low, high]| {
            let [low_holds, high_holds] = [low, high].map(|end| gate.sense.holds(end, gate.limit));
            let varies = high - low > SPREAD_MIN * high.abs();
            varies && low_holds == high_holds && (low_holds || may_fail)
        })
    })
}

/// Whether further repeats cannot change a gate's verdict.
pub(super) fn is_decided(gate: &Gate, rows: &[Rows], rule: Rule) -> bool {
    decided_after(gate, &values_of(gate, rows), rule).is_some()
}

/// The same for programs.
pub(super) fn checks(judged: &[Judged]) -> Vec<Check> {
    let check = |judged: &Judged| Check {
        holds: judged.pass == Some(true),
        ..Check::new(judged.gate.clone(), judged.value, judged.sense, judged.limit, judged.unit)
    };
    judged.iter().map(check).collect()
}

pub(super) fn write_table(out: &mut impl Write, judged: &[Judged]) -> io::Result<()> {
    let width = judged.iter().map(|row| row.gate.len()).max().unwrap_or(0);
    for row in judged {
        let value = row.value.map_or("-".to_owned(), number);
        let interval = row
            .interval
            .map_or(String::new(), |[low, high]| format!(" [{}, {}]", number(low), number(high)));
        let pass = match row.pass {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "not measured",
        };
        let (unit, limit) = (row.unit, number(row.limit));
        let sense = row.sense.words();
        let early = match row.decided_early {
            true => format!(
                " (decided after {} repeats, by the {:.1} % interval)",
                row.repeats,
                100.0 * row.confidence
            ),
            false => String::new(),
        };
        writeln!(
            out,
            "{pass:<5} {:<width$}  {value}{interval} {unit}, {sense} {limit}{early}",
            row.gate
        )?;
    }
    let passed = judged.iter().filter(|row| row.pass == Some(true)).count();
    writeln!(out, "{passed} of {} gates pass", judged.len())
}

/// Four significant digits.
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        magnitude => (3 - magnitude.log10().floor() as i64).clamp(0, 6) as usize,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use corridor_scenario::Engine;
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::super::list::{Case, cases, gates};
    use super::super::picture;
    use super::*;

    const NAME: &str = "goodput-rtt4-p10";

    fn gate() -> Gate {
        gates().into_iter().find(|gate| gate.name == NAME).unwrap()
    }

    /// A repeat in which the gate has this value.
    fn rows(gate: &Gate, cases: &[Case], share: f64) -> Rows {
        let row_of = |name: &String, goodput_bps: f64| {
            let case = cases.iter().find(|case| case.name == *name).unwrap();
            let mut row = Row::new(&case.scenario, &case.run, Engine::Lab);
            row.goodput_bps = goodput_bps;
            (name.clone(), row)
        };
        let pairs = gate.needs.iter().zip([10e6, share * 9e6]);
        pairs.map(|(name, bps)| row_of(name, bps)).collect::<BTreeMap<_, _>>()
    }

    fn repeats(shares: &[f64]) -> Vec<Rows> {
        let (gate, cases) = (gate(), cases(true));
        shares.iter().map(|&share| rows(&gate, &cases, share)).collect()
    }

    #[test]
    fn the_end_of_the_interval_judges_and_invalid_runs_do_not() {
        let gate = gate();
        // The mean is above the limit, the interval is not.
        let mut all = repeats(&[0.92, 0.98]);
        let judged = judge_one(&gate, &all, Rule::Interval);
        assert!((judged.value.unwrap() - 0.95).abs() < 1e-9, "{judged:?}");
        assert_eq!((judged.pass, judged.repeats), (Some(false), 2));
        assert_eq!(judge_one(&gate, &all, Rule::Mean).pass, Some(true));
        all[0].values_mut().for_each(|row| row.distrust("late"));
        assert_eq!(judge_one(&gate, &all, Rule::Interval).repeats, 1);
        all.remove(1);
        assert_eq!(judge_one(&gate, &all, Rule::Interval).pass, None);
    }

    #[test]
    fn what_is_far_from_its_limit_is_decided_early_and_for_good() {
        let (gate, rule) = (gate(), Rule::Early { repeats: 10 });
        let mut all = repeats(&[0.88, 0.881, 0.879]);
        assert!(!is_decided(&gate, &all, rule));
        all.extend(repeats(&[0.88]));
        assert!(is_decided(&gate, &all, rule) && !is_decided(&gate, &all, Rule::Interval));
        let judged = judge_one(&gate, &all, rule);
        assert_eq!((judged.decided_early, judged.repeats, judged.pass), (true, 4, Some(false)));
        // Its own cases may be measured further because other gates need them.
        all.extend(repeats(&[0.99, 0.99, 0.99]));
        assert_eq!(judge_one(&gate, &all, rule), judged);
        assert_eq!(judge_one(&gate, &all, Rule::Interval).repeats, 7);
        let passed = judge_one(&gate, &repeats(&[0.97, 0.972, 0.971, 0.97]), rule);
        assert_eq!((passed.decided_early, passed.pass), (true, Some(true)));
    }

    #[test]
    fn early_decisions_are_harder_than_late_ones() {
        let (gate, rule) = (gate(), Rule::Early { repeats: 10 });
        // At 95 % the interval ends at .9335, at 99.9 % at .917.
        let all = repeats(&[0.94, 0.945, 0.945, 0.945]);
        assert_eq!(judge_one(&gate, &all, Rule::Interval).pass, Some(true));
        assert!(!is_decided(&gate, &all, rule));
        // Values without variation do not show how much others vary.
        assert!(!is_decided(&gate, &repeats(&[1.0; 9]), rule));
        assert!(!is_decided(&gate, &repeats(&[1.0, 1.0 + 1e-15, 1.0, 1.0]), rule));
        // After all repeats the judging interval is a little wider than the ordinary one.
        let all = repeats(&[0.94, 0.945, 0.945, 0.945]);
        let judged = judge_one(&gate, &all, Rule::Early { repeats: 4 });
        assert_eq!((judged.decided_early, judged.pass), (false, Some(true)));
        assert!(judged.confidence > CONFIDENCE && judged.confidence < 0.96, "{judged:?}");
    }

    /// Gates exactly at their limits, with normally distributed values: how many pass, and how many
    /// are decided early; and how soon gates with a margin of two deviations are decided.
    #[test]
    fn looking_after_each_repeat_passes_no_more_by_chance() {
        const MEASUREMENTS: u32 = 4000;
        let (gate, rule) = (gate(), Rule::Early { repeats: 10 });
        let mut random = ChaCha8Rng::seed_from_u64(2014);
        let mut measure = |margin: f64| {
            let (mut passed, mut early, mut repeats_sum) = (0, 0, 0);
            for _ in 0..MEASUREMENTS {
                // The sum of twelve uniform ones is normal enough up to the third deviation.
                let mut uniform = || f64::from(random.next_u32()) / 2f64.powi(32);
                let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                let values: [f64; 10] =
                    core::array::from_fn(|_| gate.limit + 1e-3 * (margin + normal()));
                let decided = decided_after(&gate, &values, rule);
                let judged = judge_values(&gate, &values, rule);
                passed += u32::from(judged.pass == Some(true));
                early += u32::from(decided.is_some());
                repeats_sum += decided.unwrap_or(values.len());
            }
            let share = |count: u32| f64::from(count) / f64::from(MEASUREMENTS);
            (share(passed), share(early), repeats_sum as f64 / f64::from(MEASUREMENTS))
        };
        let (passed, early, _) = measure(0.0);
        assert!(passed < 0.036 && early < 0.052, "{passed} {early}");
        let (passed, _, repeats) = measure(2.0);
        assert!(passed > 0.99 && repeats < 6.5, "{passed} {repeats}");
    }

    #[test]
    fn the_table_and_the_picture_say_what_failed() {
        let judged = judge(&gates(), &[], Rule::Interval);
        let mut out = Vec::new();
        write_table(&mut out, &judged).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with(&format!("0 of {} gates pass\n", judged.len())), "{text}");
        let mut judged = judged;
        judged.truncate(2);
        (judged[0].value, judged[0].pass) = (Some(0.5), Some(false));
        (judged[0].decided_early, judged[0].repeats) = (true, 4);
        judged[0].confidence = confidence_after(4, 10);
        (judged[1].value, judged[1].pass) = (Some(1.0), Some(true));
        judged[1].interval = Some([0.9, 1.1]);
        let svg = picture::draw(&judged);
        assert!(svg.contains(">FAIL<") && svg.contains(">pass<"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let mut out = Vec::new();
        write_table(&mut out, &judged).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.ends_with("(decided after 4 repeats, by the 99.9 % interval)"), "{text}");
        assert_eq!(
            [number(0.9312), number(2.1e9), number(14.26)],
            ["0.9312", "2100000000", "14.26"]
        );
    }
}
