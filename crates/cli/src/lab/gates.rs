//! `corridor lab gates`: what window mode and TCP/NC guarantee, measured and judged.

mod against;
mod frontier;
mod judge;
mod list;
mod measure;
mod picture;
mod report;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use corridor_lab::Options;
use corridor_scenario::{Engine, Row, Run};

use self::against::Old;
use self::judge::{Rule, judge, write_table};
use self::list::{Case, Company, Gate, Side, cases, gates};
use self::measure::{Plan, measure};
use self::report::Settings;
use super::{Failure, tell_missing_rights};
use crate::crew::Jobs;
use crate::engine::{EngineError, Maker};
use corridor_results::checks;

/// Repeats of each case.
const REPEATS: u64 = 10;
/// The same with `--quick`.
const REPEATS_QUICK: u64 = 2;

/// Arguments of `corridor lab gates`.
#[derive(Debug, Args)]
pub(super) struct GatesArgs {
    /// Rough check in a tenth of the time: 2 repeats of 5 s, judged by their means
    #[arg(long)]
    quick: bool,
    /// Only check gates whose name contains PATTERN; may be repeated
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// List the gates, the cases they need and the expected duration, without measuring
    #[arg(long)]
    list: bool,
    /// Write tunnel.json and tunnel.svg to this directory, created if missing
    #[arg(long, value_name = "DIR", default_value = "out/bench")]
    out: PathBuf,
    /// Repeat every case N times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    repeats: Option<u64>,
    /// Make all repeats, even of gates already decided by fewer
    #[arg(long)]
    all_repeats: bool,
    /// Measure at most N cases in parallel [default: two per processor at first, then as many as
    /// their measured CPU time allows]. CPU-bound cases are always measured alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Resume an interrupted measurement from its tunnel.json, which must come from the same build
    /// and arguments
    #[arg(long)]
    resume: bool,
    /// Compare with another `corridor` binary: measure both in turn, and fail if this one is worse
    /// than OLD by more than 2 % at any gate, corrected for the number of gates
    #[arg(long, value_name = "OLD")]
    against: Option<PathBuf>,
}

impl GatesArgs {
    fn repeats(&self) -> u64 {
        self.repeats.unwrap_or(if self.quick { REPEATS_QUICK } else { REPEATS })
    }

    fn rule(&self, gates: usize) -> Rule {
        let repeats = usize::try_from(self.repeats()).unwrap_or(usize::MAX);
        match self {
            _ if self.against.is_some() => Rule::Paired { repeats, family: gates },
            _ if self.quick => Rule::Mean,
            _ if self.all_repeats => Rule::Interval,
            _ => Rule::Early { repeats },
        }
    }

    fn settings(&self, options: &Options) -> Result<Settings, Failure> {
        let this = std::env::current_exe()
            .map_err(|source| Failure::Read { path: "/proc/self/exe".into(), source })?;
        let mut programs: Vec<&Path> = vec![&this];
        if options.binary != this {
            programs.push(&options.binary);
        }
        let build = report::fingerprint(&programs)
            .map_err(|source| Failure::Read { path: options.binary.clone(), source })?;
        let of_old = |path: &PathBuf| {
            report::fingerprint(&[path.as_path()])
                .map_err(|source| Failure::Old { path: path.clone(), source })
        };
        Ok(Settings {
            build,
            quick: self.quick,
            repeats: self.repeats(),
            all_repeats: self.all_repeats,
            only: self.only.clone(),
            jobs: self.jobs,
            against: self.against.as_ref().map(of_old).transpose()?,
        })
    }
}

/// Rows of one repeat, by case name.
type Rows = BTreeMap<String, Row>;

/// Runs the command.
pub(super) fn run(args: &GatesArgs) -> Result<(), Failure> {
    let chosen = |gate: &Gate| {
        args.only.is_empty() || args.only.iter().any(|pattern| gate.name.contains(pattern.as_str()))
    };
    let mut gates: Vec<Gate> = gates().into_iter().filter(chosen).collect();
    if let Some(old) = &args.against {
        gates = against::known_to(old, gates)?;
    }
    if gates.is_empty() {
        return Err(Failure::Nobody { given: args.only.join(", ") });
    }
    let mut cases: Vec<Case> = cases(args.quick)
        .into_iter()
        .filter(|case| gates.iter().any(|gate| gate.needs.contains(&case.name)))
        .collect();
    if args.against.is_some() {
        (gates, cases) = against::paired(gates, cases);
    }
    let (repeats, rule, jobs) = (args.repeats(), args.rule(gates.len()), Jobs::of(args.jobs));
    let plan = Plan { gates: &gates, cases: &cases, repeats, rule, jobs };
    if args.list {
        return write_list(&mut io::stdout().lock(), &plan).map_err(Failure::Output);
    }
    if cases.iter().any(|case| !matches!(case.company, Company::Simulated(_))) {
        // Before the first thread: see `corridor_lab::prepare`.
        corridor_lab::prepare().map_err(EngineError::from)?;
        tell_missing_rights();
    }
    carry_out(args, &plan)
}

fn carry_out(args: &GatesArgs, plan: &Plan<'_>) -> Result<(), Failure> {
    let out = &args.out;
    fs::create_dir_all(out)
        .and_then(|()| tempfile::tempfile_in(out).map(drop))
        .map_err(|source| Failure::Write { path: out.clone(), source })?;
    let settings = args.settings(&Options::from_environment().map_err(EngineError::from)?)?;
    let mut rows = Vec::new();
    if args.resume {
        let path = out.join(report::NAME);
        match report::read(&path, &settings)? {
            Some(found) => rows = found,
            None => eprintln!("{} not found: measuring everything", path.display()),
        }
    }
    let maker = Maker::new(Engine::Lab)?;
    let old = args.against.as_ref();
    let old = old.map(|old| Old::new(old, plan.cases, args.quick, plan.repeats)).transpose()?;
    let make = |case: &Case, replication: u64| {
        let old = old.as_ref().filter(|_| case.side == Side::Old);
        match (&case.company, old) {
            (Company::Simulated(_), Some(old)) => old.frontier_row(case, replication),
            (Company::Simulated(best), None) => {
                maker.check()?;
                Ok(frontier::make(case, best, replication)?)
            }
            (Company::Shared | Company::Alone, old) => {
                let run = Run { replication, ..case.run.clone() };
                maker.make_with(&case.scenario, &run, old.map(|old| old.binary.as_path()))
            }
        }
    };
    let mut judged = judge(plan.gates, &rows, plan.rule);
    let made = measure(plan, &make, &mut rows, |rows| {
        judged = judge(plan.gates, rows, plan.rule);
        report::write(out, &settings, &judged, rows)
    });
    write_table(&mut io::stdout().lock(), &judged).map_err(Failure::Output)?;
    made?;
    match checks::broken(&judge::checks(&judged)) {
        0 => Ok(()),
        broken => Err(Failure::Checks { broken, count: judged.len() }),
    }
}

fn write_list(out: &mut impl Write, plan: &Plan<'_>) -> io::Result<()> {
    for gate in plan.gates {
        let Gate { name, conditions, limit, unit, sense, .. } = gate;
        writeln!(out, "{name}: {} {limit} {unit}; {conditions}", sense.words())?;
    }
    for case in plan.cases {
        let company = match case.company {
            Company::Shared => "",
            Company::Alone => ", alone",
            Company::Simulated(_) => ", in virtual time",
        };
        writeln!(out, "case {}: {:.1} s{company}", case.name, case.time_needed().as_secs_f64())?;
    }
    let early = match plan.rule {
        Rule::Early { .. } | Rule::Paired { .. } => "at most ",
        Rule::Mean | Rule::Interval => "",
    };
    writeln!(
        out,
        "{} gates, {} cases, {} repeats, {} cases at once, {early}{:.0} min",
        plan.gates.len(),
        plan.cases.len(),
        plan.repeats,
        plan.jobs.at_first(),
        plan.time_needed().as_secs_f64() / 60.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_list_marks_cases_that_bear_no_company() {
        let (gates, cases) = (gates(), cases(false));
        let list = |jobs: usize| {
            let (rule, jobs) = (Rule::Interval, Jobs::Fixed(jobs));
            let plan = Plan { gates: &gates, cases: &cases, repeats: 1, rule, jobs };
            let mut out = Vec::new();
            write_list(&mut out, &plan).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = list(1);
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        for name in ["window-cpu", "window-cpu-p10"] {
            assert!(line(&format!("case {name}:")).ends_with(" s, alone"), "{text}");
        }
        assert!(line("case window-rtt4-p10:").ends_with(" s"), "{text}");
        assert!(line("case frontier-rtt4-p10:").ends_with(", in virtual time"), "{text}");
        let minutes = |text: &str| -> f64 {
            text.trim_end().trim_end_matches(" min").rsplit(' ').next().unwrap().parse().unwrap()
        };
        // Cases that are measured alone take as long as before.
        let (one, four) = (minutes(&text), minutes(&list(4)));
        assert!(four < 0.5 * one && four > 0.25 * one, "{one} and {four} min");
    }
}
