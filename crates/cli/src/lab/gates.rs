//! `corridor lab gates`: what window mode and TCP/NC promise, measured in the lab and judged.

mod list;
mod picture;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use corridor_lab::{LATENESS_MAX, time_needed};
use corridor_results::Estimate;
use corridor_scenario::{Engine, Row, Run};
use serde::Serialize;

use self::list::{Case, Gate, Sense, cases, gates};
use super::{FAILED_IN_A_ROW_MAX, Failure, is_one_run_only};
use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

/// Repeats of everything.
const REPEATS: u64 = 10;
/// The same with `--quick`.
const REPEATS_QUICK: u64 = 2;
/// Times a run is made until its emulator was in time.
const ATTEMPTS: u32 = 3;

/// Arguments of `corridor lab gates`.
#[derive(Debug, Args)]
pub(super) struct GatesArgs {
    /// Rough numbers in a tenth of the time: 2 repeats of 5 s, judged by their means
    #[arg(long)]
    quick: bool,
    /// Only gates whose names have this in them; may be given several times
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Name the gates and the time they need, and measure nothing
    #[arg(long)]
    list: bool,
    /// Write tunnel.json and tunnel.svg into this directory; it is made if it is not there
    #[arg(long, value_name = "DIR", default_value = "out/bench")]
    out: PathBuf,
    /// Repeat everything this often
    #[arg(long, value_name = "N")]
    repeats: Option<u64>,
}

/// Rows of one repeat, by the names of their cases.
type Rows = BTreeMap<String, Row>;

/// A gate, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Judged {
    gate: String,
    conditions: String,
    unit: &'static str,
    /// Mean over the repeats; `None`: not measured.
    value: Option<f64>,
    /// Its 95 % confidence interval; `None`: fewer than two repeats.
    interval: Option<[f64; 2]>,
    /// `at least` or `at most`.
    sense: Sense,
    limit: f64,
    /// Repeats that it was measured in.
    repeats: usize,
    /// The end of the interval that is nearer to the limit keeps to it; with `--quick`, the mean.
    pass: Option<bool>,
}

/// What tunnel.json holds.
#[derive(Serialize)]
struct Report<'a> {
    quick: bool,
    repeats: u64,
    gates: &'a [Judged],
    rows: &'a [Rows],
}

/// Runs the verb.
pub(super) fn run(args: &GatesArgs) -> Result<(), Failure> {
    let chosen = |gate: &Gate| {
        args.only.is_empty() || args.only.iter().any(|pattern| gate.name.contains(pattern.as_str()))
    };
    let gates: Vec<Gate> = gates().into_iter().filter(chosen).collect();
    if gates.is_empty() {
        return Err(Failure::Nobody { given: args.only.join(", ") });
    }
    let repeats = args.repeats.unwrap_or(if args.quick { REPEATS_QUICK } else { REPEATS }).max(1);
    let cases: Vec<Case> = cases(args.quick)
        .into_iter()
        .filter(|case| gates.iter().any(|gate| gate.needs.contains(&case.name)))
        .collect();
    if args.list {
        return write_list(&gates, &cases, repeats).map_err(Failure::Output);
    }
    // Before the first thread: see `corridor_lab::prepare`.
    corridor_lab::prepare().map_err(EngineError::from)?;
    fs::create_dir_all(&args.out)
        .and_then(|()| tempfile::tempfile_in(&args.out).map(drop))
        .map_err(|source| Failure::Write { path: args.out.clone(), source })?;
    let mut rows: Vec<Rows> = Vec::new();
    let made = measure(args, &gates, &cases, repeats, &mut rows);
    write_table(&mut io::stdout().lock(), &judge(&gates, &rows, args.quick))
        .map_err(Failure::Output)?;
    made
}

fn write_list(gates: &[Gate], cases: &[Case], repeats: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for gate in gates {
        let Gate { name, conditions, limit, unit, sense, .. } = gate;
        writeln!(out, "{name}: {} {limit} {unit}; {conditions}", sense.words())?;
    }
    let seconds: f64 = cases.iter().map(|case| time_needed(&case.run).as_secs_f64()).sum();
    let count = cases.len();
    let minutes = seconds * repeats as f64 / 60.0;
    writeln!(out, "{} gates, {count} cases, {repeats} repeats, {minutes:.0} min", gates.len())
}

/// All cases once, then all again: what changes on the machine meets all alike. Files are complete
/// after every repeat.
fn measure(
    args: &GatesArgs,
    gates: &[Gate],
    cases: &[Case],
    repeats: u64,
    rows: &mut Vec<Rows>,
) -> Result<(), Failure> {
    let runs: Vec<Run> =
        (0..repeats).flat_map(|_| cases.iter().map(|case| case.run.clone())).collect();
    let maker = Maker::new(Engine::Lab)?;
    let progress = Progress::new(&runs, time_needed);
    let (mut failed, mut failed_in_a_row) = (0, 0);
    for replication in 0..repeats {
        rows.push(Rows::new());
        for (place, case) in cases.iter().enumerate() {
            let index = replication as usize * cases.len() + place;
            progress.begin_as(index, &case.name);
            match make(&maker, case, replication) {
                Ok(row) => {
                    failed_in_a_row = 0;
                    progress.finish_as(index, &case.name, &row);
                    if let Some(newest) = rows.last_mut() {
                        newest.insert(case.name.clone(), row);
                    }
                }
                Err(error) if is_one_run_only(&error) && failed_in_a_row < FAILED_IN_A_ROW_MAX => {
                    progress.say(&format!("{}: {error}", case.name));
                    (failed, failed_in_a_row) = (failed + 1, failed_in_a_row + 1);
                }
                Err(error) => {
                    write_files(args, gates, repeats, rows)?;
                    return Err(error.into());
                }
            }
        }
        write_files(args, gates, repeats, rows)?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Runs { failed, count: runs.len() }),
    }
}

/// A run, made again when the emulator was late: that is the machine's fault, and not the run's.
fn make(maker: &Maker, case: &Case, replication: u64) -> Result<Row, EngineError> {
    let run = Run { replication, ..case.run.clone() };
    let late = LATENESS_MAX.as_secs_f64();
    let mut row = maker.make(&case.scenario, &run)?;
    for _ in 1..ATTEMPTS {
        if row.lateness_p99_s.is_none_or(|lateness| lateness <= late) {
            break;
        }
        row = maker.make(&case.scenario, &run)?;
    }
    Ok(row)
}

fn judge(gates: &[Gate], rows: &[Rows], quick: bool) -> Vec<Judged> {
    gates.iter().map(|gate| judge_one(gate, rows, quick)).collect()
}

/// A repeat counts when all runs that the gate needs are valid: gates are paired.
fn judge_one(gate: &Gate, rows: &[Rows], quick: bool) -> Judged {
    let value = |rows: &Rows| {
        let needed: Option<Vec<&Row>> = gate.needs.iter().map(|name| rows.get(name)).collect();
        needed
            .filter(|rows| rows.iter().all(|row| row.valid))
            .and_then(|rows| (gate.measure)(&rows))
    };
    let values: Vec<f64> =
        rows.iter().filter_map(value).filter(|value| value.is_finite()).collect();
    let estimate = Estimate::of(&values);
    let interval = estimate.and_then(|estimate| {
        let half_width = estimate.half_width?;
        Some([estimate.mean - half_width, estimate.mean + half_width])
    });
    let mean = estimate.map(|estimate| estimate.mean);
    let judged = match (gate.sense, interval) {
        (Sense::AtLeast, Some([low, _])) if !quick => Some(low),
        (Sense::AtMost, Some([_, high])) if !quick => Some(high),
        _ => mean,
    };
    Judged {
        gate: gate.name.clone(),
        conditions: gate.conditions.clone(),
        unit: gate.unit,
        value: mean,
        interval,
        sense: gate.sense,
        limit: gate.limit,
        repeats: values.len(),
        pass: judged.map(|value| gate.sense.holds(value, gate.limit)),
    }
}

fn write_table(out: &mut impl Write, judged: &[Judged]) -> io::Result<()> {
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
        writeln!(out, "{pass:<5} {:<width$}  {value}{interval} {unit}, {sense} {limit}", row.gate)?;
    }
    let passed = judged.iter().filter(|row| row.pass == Some(true)).count();
    writeln!(out, "{passed} of {} gates pass", judged.len())
}

/// Four digits that count.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        magnitude => (3 - magnitude.log10().floor() as i64).clamp(0, 6) as usize,
    };
    format!("{value:.decimals$}")
}

fn write_files(
    args: &GatesArgs,
    gates: &[Gate],
    repeats: u64,
    rows: &[Rows],
) -> Result<(), Failure> {
    let judged = judge(gates, rows, args.quick);
    let report = Report { quick: args.quick, repeats, gates: &judged, rows };
    // It is a structure of numbers, strings and lists: it always has a JSON text.
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    for (name, text) in [("tunnel.json", json), ("tunnel.svg", picture::draw(&judged))] {
        let path: &Path = &args.out.join(name);
        crate::demo::replace(path, &text)
            .map_err(|source| Failure::Write { path: path.to_owned(), source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(case: &Case, goodput_bps: f64) -> Row {
        let mut row = Row::new(&case.scenario, &case.run, Engine::Lab);
        row.goodput_bps = goodput_bps;
        row
    }

    #[test]
    fn every_gate_finds_its_cases_and_every_case_its_gate() {
        for quick in [false, true] {
            let (gates, cases) = (gates(), cases(quick));
            for gate in &gates {
                for name in &gate.needs {
                    let found = cases.iter().filter(|case| case.name == *name).count();
                    assert_eq!(found, 1, "{name} of {}", gate.name);
                }
            }
            for case in &cases {
                assert!(gates.iter().any(|gate| gate.needs.contains(&case.name)), "{}", case.name);
            }
        }
        let mut names: Vec<String> = gates().into_iter().map(|gate| gate.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "names are unique");
    }

    #[test]
    fn the_end_of_the_interval_judges_and_invalid_runs_do_not() {
        let gate = gates().into_iter().find(|gate| gate.name == "goodput-rtt4-p10").unwrap();
        let cases = cases(true);
        let rows = |window_bps: f64| -> Rows {
            let find = |name: &String| cases.iter().find(|case| case.name == *name).unwrap();
            let bps = [10e6, window_bps];
            let pairs = gate.needs.iter().zip(bps);
            pairs.map(|(name, bps)| (name.clone(), row_of(find(name), bps))).collect()
        };
        // Shares of 0.92 and 0.98 of C (1 - p): the mean is above the limit, the interval is not.
        let mut all = vec![rows(0.92 * 9e6), rows(0.98 * 9e6)];
        let judged = judge_one(&gate, &all, false);
        assert!((judged.value.unwrap() - 0.95).abs() < 1e-9, "{judged:?}");
        assert_eq!((judged.pass, judged.repeats), (Some(false), 2));
        assert_eq!(judge_one(&gate, &all, true).pass, Some(true));
        all[0].values_mut().for_each(|row| row.distrust("late"));
        assert_eq!(judge_one(&gate, &all, false).repeats, 1);
        all.remove(1);
        assert_eq!(judge_one(&gate, &all, false).pass, None);
    }

    #[test]
    fn the_table_and_the_picture_say_what_failed() {
        let judged = judge(&gates(), &[], false);
        let mut out = Vec::new();
        write_table(&mut out, &judged).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with(&format!("0 of {} gates pass\n", judged.len())), "{text}");
        let mut judged = judged;
        judged.truncate(2);
        (judged[0].value, judged[0].pass) = (Some(0.5), Some(false));
        (judged[1].value, judged[1].pass) = (Some(1.0), Some(true));
        judged[1].interval = Some([0.9, 1.1]);
        let svg = picture::draw(&judged);
        assert!(svg.contains(">FAIL<") && svg.contains(">pass<"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(
            [number(0.9312), number(2.1e9), number(14.26)],
            ["0.9312", "2100000000", "14.26"]
        );
    }
}
