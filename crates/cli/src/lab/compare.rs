//! `corridor lab compare`: every way to cross through the same conditions, in turns.

mod picture;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use corridor_lab::Tunnel;
use corridor_proto::{CodingTable, Preset};
use corridor_scenario::{
    Congestion, Engine, OneOrMany, Path as Crossing, Row, Run, RunTable, Scenario, Transport,
    expand,
};
use serde::Serialize;

use super::{FAILED_IN_A_ROW_MAX, Failure, is_one_run_only};
use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

/// What an external tunnel's command may name.
const PLACEHOLDERS: &str = "\
External tunnels:
  --tunnel NAME='COMMAND' starts COMMAND with `sh -c` in the network namespaces of both ends, S
  (where the load comes from) and D, waits until something crosses, and kills it afterwards with
  all that it has started. COMMAND may go to the background or stay; if it fails, so do its runs.
  In it, these names are replaced; other braces of the shell stay, {{ and }} are single ones:

  {side}       S or D, as in: case {side} in S) ... ;; D) ... ;; esac
  {local}      IPv4 address of this side's radio; {remote}: of the other side's
  {address}    IPv4 address that the tunnel is to have on this side (/24); {peer}: on the other.
               A command that does not name {address} leaves setting it on {tun} to the lab
  {tun}        name of the interface to make
  {interface}  name of the radio's own interface
  {netns}      path to this side's network namespace; the command is in it already
  {dir}        a directory that both sides see, for keys and the like, removed afterwards
  {proxy}      for proxies of TCP: ADDRESS:PORT at which side S is to accept a connection,
  {target}     and ADDRESS:PORT to which side D is to hand it on. They carry TCP from S to D only

  Example, a tunnel that ends at two UDP ports:
  --tunnel x='case {side} in S) x-client -r {remote}:4000 --tun {tun} ;;
              D) x-server -l {local}:4000 --tun {tun} ;; esac'";

/// Arguments of `corridor lab compare`.
#[derive(Debug, Args)]
#[command(after_help = PLACEHOLDERS)]
pub(super) struct CompareArgs {
    /// The scenario file: its radio, and from each run the load, the losses and the duration.
    /// Coding parameters given there replace the two presets that are compared otherwise
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Compare this external tunnel too; may be given several times
    #[arg(long = "tunnel", value_name = "NAME='COMMAND'", value_parser = Tunnel::parse)]
    tunnels: Vec<Tunnel>,
    /// Only ways whose names have this in them; may be given several times. What shares are counted
    /// from is measured all the same
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Write a row for each run to standard output, as JSON lines, instead of a table at the end
    #[arg(long)]
    json: bool,
    /// Write compare.json and compare.svg into this directory; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Repeat every run this often, whatever the scenario says
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
}

/// A way to cross.
#[derive(Clone, Debug)]
struct Contender {
    name: String,
    path: Crossing,
    congestion: Option<Congestion>,
    coding: Option<CodingTable>,
    tunnel: Option<Tunnel>,
}

/// One run of one contender.
#[derive(Clone, Debug)]
struct Entry {
    contender: usize,
    run: Run,
}

/// A row, and whose it is.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    /// Name of the way to cross.
    way: String,
    #[serde(flatten)]
    row: Row,
}

/// What is compared, and the runs that it takes.
#[derive(Debug)]
struct Contest {
    scenario: Scenario,
    contenders: Vec<Contender>,
    entries: Vec<Entry>,
}

/// Runs the verb.
pub(super) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let contest = contest(args)?;
    // Before the first thread: see `corridor_lab::prepare`.
    corridor_lab::prepare().map_err(EngineError::from)?;
    if let Some(out) = &args.out {
        fs::create_dir_all(out)
            .and_then(|()| tempfile::tempfile_in(out).map(drop))
            .map_err(|source| Failure::Write { path: out.clone(), source })?;
    }
    let mut rows = Vec::new();
    let made = make_runs(&contest, args.json, &mut rows);
    let lines = table::summarise(&rows);
    if !args.json && !rows.is_empty() {
        let mut stdout = io::stdout().lock();
        table::write(&mut stdout, &contest.scenario, &lines).map_err(Failure::Output)?;
    }
    if let Some(out) = &args.out
        && !rows.is_empty()
    {
        write_files(out, &contest.scenario, &rows, &lines)?;
    }
    made
}

fn contest(args: &CompareArgs) -> Result<Contest, Failure> {
    let path = &args.scenario;
    let text =
        fs::read_to_string(path).map_err(|source| Failure::Read { path: path.clone(), source })?;
    let refused = |source| Failure::Scenario { path: path.clone(), source };
    let mut scenario = Scenario::parse(&text).map_err(refused)?;
    if let Some(repeats) = args.repeats {
        scenario.repeats = repeats;
    }
    // Refuses what cannot be as it is written, before anything is replaced in it.
    expand(&scenario).map_err(refused)?;
    let mut contenders = Vec::new();
    let mut points = Vec::new();
    for table in &scenario.run {
        add_points(&scenario, table, args, &mut contenders, &mut points).map_err(refused)?;
    }
    let repeats = u64::from(scenario.repeats);
    let entries = (0..repeats).flat_map(|replication| {
        points.iter().enumerate().map(move |(point, entry)| {
            let run = Run { point, replication, ..entry.run.clone() };
            Entry { run, ..entry.clone() }
        })
    });
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() {
        return Err(Failure::Nobody { given: args.only.join(", ") });
    }
    Ok(Contest { scenario, contenders, entries })
}

/// The points of one table, condition by condition; new contenders are added to the list.
fn add_points(
    scenario: &Scenario,
    table: &RunTable,
    args: &CompareArgs,
    contenders: &mut Vec<Contender>,
    points: &mut Vec<Entry>,
) -> Result<(), corridor_scenario::ScenarioError> {
    let all = contenders_of(table, &args.tunnels);
    let is_chosen = |name: &str| {
        args.only.is_empty() || args.only.iter().any(|pattern| name.contains(pattern.as_str()))
    };
    // Runs of each contender, the same conditions at the same places.
    let mut runs = Vec::new();
    for contender in all.iter().filter(|contender| is_chosen(&contender.name)) {
        runs.push((contender, runs_of(scenario, table, contender)?));
    }
    let place = |contender: &Contender, contenders: &mut Vec<Contender>| {
        let known = contenders.iter().position(|other| other.name == contender.name);
        known.unwrap_or_else(|| {
            contenders.push(contender.clone());
            contenders.len() - 1
        })
    };
    let count = runs.first().map_or(0, |(_, runs)| runs.len());
    // Shares are counted from the kernel's cubic without losses.
    if table.transport == Transport::Tcp && count > 0 {
        let lossless = RunTable { e3: OneOrMany::One(0.0), burst_frames: None, ..table.clone() };
        let reference = &all[0];
        let measured = table.e3.iter().any(|&ratio| ratio == 0.0) && is_chosen(&reference.name);
        if !measured {
            for run in runs_of(scenario, &lossless, reference)? {
                points.push(Entry { contender: place(reference, contenders), run });
            }
        }
    }
    for index in 0..count {
        for (contender, runs) in &runs {
            let run = runs[index].clone();
            points.push(Entry { contender: place(contender, contenders), run });
        }
    }
    Ok(())
}

/// The kernel's cubic first: it is what shares are counted from.
fn contenders_of(table: &RunTable, tunnels: &[Tunnel]) -> Vec<Contender> {
    let is_tcp = table.transport == Transport::Tcp;
    let cubic = is_tcp.then_some(Congestion::Cubic);
    let kernel = |name: &str, congestion| Contender {
        name: name.to_owned(),
        path: Crossing::Kernel,
        congestion,
        coding: None,
        tunnel: None,
    };
    let mut contenders = vec![kernel(if is_tcp { "kernel cubic" } else { "kernel" }, cubic)];
    if is_tcp {
        contenders.push(kernel("kernel bbr", Some(Congestion::Bbr)));
    }
    let coded = |name: String, coding: CodingTable| Contender {
        name,
        path: Crossing::Coded,
        congestion: cubic,
        coding: Some(coding),
        tunnel: None,
    };
    match &table.coding {
        Some(codings) => contenders.extend(
            codings.iter().map(|coding| coded(corridor_scenario::policy(coding), coding.clone())),
        ),
        None => {
            for (name, preset) in [("block", Preset::Default), ("window", Preset::Window)] {
                let coding = CodingTable { preset, ..CodingTable::default() };
                contenders.push(coded(name.to_owned(), coding));
            }
        }
    }
    contenders.extend(
        tunnels.iter().map(|tunnel| Contender {
            tunnel: Some(tunnel.clone()),
            ..kernel(tunnel.name(), cubic)
        }),
    );
    contenders
}

/// The runs of one contender under the conditions of a table, each once.
fn runs_of(
    scenario: &Scenario,
    table: &RunTable,
    contender: &Contender,
) -> Result<Vec<Run>, corridor_scenario::ScenarioError> {
    let table = RunTable {
        path: OneOrMany::One(contender.path),
        congestion: contender.congestion.map(OneOrMany::One),
        coding: contender.coding.clone().map(OneOrMany::One),
        ..table.clone()
    };
    expand(&Scenario { run: vec![table], repeats: 1, ..scenario.clone() })
}

fn make_runs(contest: &Contest, json: bool, rows: &mut Vec<Compared>) -> Result<(), Failure> {
    let runs: Vec<Run> = contest.entries.iter().map(|entry| entry.run.clone()).collect();
    let maker = Maker::new(Engine::Lab)?;
    let progress = Progress::new(&runs, |run| maker.time_needed(run));
    let (mut failed, mut failed_in_a_row) = (0, 0);
    for (index, entry) in contest.entries.iter().enumerate() {
        let contender = &contest.contenders[entry.contender];
        let title = format!("{}: {}", contender.name, entry.run.title());
        progress.begin_as(index, &title);
        let made = match &contender.tunnel {
            Some(tunnel) => maker.make_through(&contest.scenario, &entry.run, tunnel),
            None => maker.make(&contest.scenario, &entry.run),
        };
        let row = match made {
            Ok(row) => row,
            Err(error) if is_one_run_only(&error) && failed_in_a_row < FAILED_IN_A_ROW_MAX => {
                progress.fail(index, &title, &error);
                (failed, failed_in_a_row) = (failed + 1, failed_in_a_row + 1);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        failed_in_a_row = 0;
        progress.finish_as(index, &title, &row);
        let compared = Compared { way: contender.name.clone(), row };
        if json {
            let mut stdout = io::stdout().lock();
            // It is a structure of numbers, strings and lists: it always has a JSON text.
            let line = serde_json::to_string(&compared).unwrap_or_default() + "\n";
            stdout.write_all(line.as_bytes()).map_err(Failure::Output)?;
            stdout.flush().map_err(Failure::Output)?;
        }
        rows.push(compared);
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Runs { failed, count: runs.len() }),
    }
}

/// What compare.json holds.
#[derive(Serialize)]
struct Report<'a> {
    scenario: &'a str,
    summary: &'a [table::Line],
    rows: &'a [Compared],
}

fn write_files(
    out: &Path,
    scenario: &Scenario,
    rows: &[Compared],
    lines: &[table::Line],
) -> Result<(), Failure> {
    let report = Report { scenario: &scenario.name, summary: lines, rows };
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    for (name, text) in [("compare.json", json), ("compare.svg", picture::draw(scenario, lines))] {
        let path = out.join(name);
        crate::demo::replace(&path, &text)
            .map_err(|source| Failure::Write { path: path.clone(), source })?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
