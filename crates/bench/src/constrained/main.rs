//! `bench-constrained`: networks of constrained devices compared with ns-3, and the cost of
//! simulating a transfer.
//!
//! Lines of 802.15.4 with static routes, and AODV discoveries over 802.11, are compared with
//! recorded results of ns-3, and with a fresh run of it if it is installed. Writes every figure,
//! and `checks`: name, value, limit, and whether it holds. Exits with 1 if one does not hold.

mod aodv;
mod line;
mod ns3;
mod speed;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_bench::machine;
use corridor_results::checks::Check;
use serde::Serialize;

/// Maximum difference of goodput, attempts, routing messages and delays from ns-3's.
const NS3_ERROR_MAX: f64 = 0.10;

/// Maximum median processor time of a transfer of 44 kB among 60 nodes, seconds.
const TRANSFER_CPU_S_MAX: f64 = 0.1;

/// Compares networks of constrained devices with ns-3, and with their cost limit, on one core.
#[derive(Debug, Parser)]
#[command(name = "bench-constrained")]
struct Arguments {
    /// Record ns-3's results into the file, and compare nothing.
    #[arg(long)]
    record: bool,
    /// The recording.
    #[arg(long, default_value = "crates/bench/data/constrained-ns3.json")]
    data: PathBuf,
    /// The file to write.
    #[arg(long, default_value = "out/bench/constrained.json")]
    out: PathBuf,
    /// A fifth of the simulated time: shows whether it works, not how accurately.
    #[arg(long)]
    quick: bool,
    /// Core to measure on; by default the last one allowed.
    #[arg(long)]
    core: Option<usize>,
    /// Only one part.
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Ns3,
    Speed,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    cpu: String,
    quick: bool,
    checks: Vec<Check>,
    ns3: Option<Beside>,
    speed: Vec<speed::Transfers>,
}

/// Our results and ns-3's, recorded and fresh.
#[derive(Debug, Serialize)]
struct Beside {
    version: String,
    script: String,
    lines: Vec<Row<line::Line>>,
    aodv: Vec<Row<aodv::Discoveries>>,
    /// Ours with better copies of requests forwarded, which RFC 3561 does not do.
    better_copies: Vec<(String, aodv::Discoveries)>,
}

/// Our results and theirs, under one rule.
#[derive(Debug, Serialize)]
struct Row<T> {
    name: String,
    ours: T,
    recorded: T,
    /// If ns-3 is installed.
    fresh: Option<T>,
}

fn main() -> ExitCode {
    frame::exit("bench-constrained", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    if arguments.record {
        frame::write_report(&arguments.data, &ns3::ask(false)?)?;
        return Ok(true);
    }
    machine::pin(arguments.core)?;
    let measures = |part| arguments.only.is_none_or(|only| only == part);
    let mut checks = Vec::new();
    let mut ns3 = None;
    if measures(Part::Ns3) {
        ns3 = Some(beside(&arguments.data, arguments.quick, &mut checks)?);
    }
    let mut speed = Vec::new();
    if measures(Part::Speed) {
        speed = speed::transfers(arguments.quick)?;
        checks.extend(speed.iter().map(|transfers| {
            let name = format!("a transfer of 44 kB among 60 nodes, {}", transfers.metric);
            Check::at_most(name, Some(transfers.cpu_s), TRANSFER_CPU_S_MAX, "CPU-s")
        }));
    }
    let passed = frame::say(&checks);
    let (cpu, quick) = (machine::cpu_model(), arguments.quick);
    let report = Report { schema: 1, cpu, quick, checks, ns3, speed };
    frame::write_report(&arguments.out, &report)?;
    Ok(passed)
}

/// Compares ours with the recording, and with a fresh run.
fn beside(data: &Path, quick: bool, checks: &mut Vec<Check>) -> Outcome<Beside> {
    let recorded = ns3::Answer::read(data)?;
    let fresh = ns3::ask(quick).map_err(|reason| println!("absent: ns-3: {reason}")).ok();
    let scale = if quick { 0.2 } else { 1.0 };
    let (mut lines, mut discoveries, mut better_copies) = (Vec::new(), Vec::new(), Vec::new());
    for case in line::cases() {
        let (name, ours) = (case.name(), line::run(case, scale)?);
        let row = row(name, ours, &recorded.lines, fresh.as_ref().map(|answer| &answer.lines))?;
        compare(&row, &line::Line::compared, checks);
        lines.push(row);
    }
    for case in aodv::cases() {
        let ours = aodv::run(case, scale, false)?;
        let name = case.name();
        better_copies.push((name.clone(), aodv::run(case, scale, true)?));
        let row = row(name, ours, &recorded.aodv, fresh.as_ref().map(|answer| &answer.aodv))?;
        compare(&row, &aodv::Discoveries::compared, checks);
        discoveries.push(row);
    }
    let ns3::Answer { version, script, .. } = recorded;
    Ok(Beside { version, script, lines, aodv: discoveries, better_copies })
}

fn row<T: Clone>(
    name: String,
    ours: T,
    recorded: &std::collections::BTreeMap<String, T>,
    fresh: Option<&std::collections::BTreeMap<String, T>>,
) -> Outcome<Row<T>> {
    let recorded = recorded.get(&name).cloned();
    let recorded = recorded.ok_or_else(|| format!("the recording has no {name}: record anew"))?;
    let fresh = fresh.and_then(|fresh| fresh.get(&name).cloned());
    Ok(Row { name, ours, recorded, fresh })
}

/// Checks each figure of a row against both of ns-3's.
fn compare<T>(
    row: &Row<T>,
    figures: &impl Fn(&T) -> Vec<(&'static str, f64)>,
    checks: &mut Vec<Check>,
) {
    for (theirs, whose) in [(Some(&row.recorded), "recorded"), (row.fresh.as_ref(), "fresh")] {
        let Some(theirs) = theirs else { continue };
        for ((what, ours), (_, theirs)) in figures(&row.ours).into_iter().zip(figures(theirs)) {
            let error = (ours / theirs - 1.0).abs();
            let name = format!("{whose} ns-3, {}, {what}", row.name);
            checks.push(Check::at_most(name, Some(error), NS3_ERROR_MAX, "of ns-3's"));
        }
    }
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-constrained", "bench-constrained", &[]);
    }
}
