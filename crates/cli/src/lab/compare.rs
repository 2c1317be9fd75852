//! `corridor lab compare`: every contender under the same conditions, in turn.

mod contest;
mod picture;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use corridor_lab::Tunnel;
use corridor_scenario::{Engine, Row, Run, Scenario};
use serde::Serialize;

use self::contest::{Contest, Entry, contest};
use super::{FAILED_IN_A_ROW_MAX, Failure, is_one_run_only, tell_missing_rights};
use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

/// Placeholders in an external tunnel's command.
const PLACEHOLDERS: &str = "\
External tunnels:
  --tunnel NAME='COMMAND' runs COMMAND with `sh -c` in the network namespaces of both ends, S
  (the sender) and D (the receiver), waits until packets get through, and afterwards kills it and
  all its child processes. COMMAND may stay in the foreground or daemonize. If it fails, its runs
  fail; after three failures in a row it is not started again. Each side has its own empty /run.
  These placeholders are replaced in COMMAND; other braces are kept, {{ and }} become { and }:

  {side}       S or D, as in: case {side} in S) ... ;; D) ... ;; esac; {other}: the other one
  {local}      IPv4 address of this side's radio; {remote}: that of the other side
  {address}    IPv4 address (/24) of the tunnel on this side; {peer}: on the other side.
               If COMMAND does not use {address}, the lab assigns it to {tun}
  {subnet}     network address of that /24; S has the next address, D the one after
  {tun}        name of the interface to create
  {interface}  name of the radio's interface
  {netns}      path of this side's network namespace, in which COMMAND already runs
  {dir}        directory shared by the two sides only, removed afterwards
  {key}        secret shared by the two sides, 64 hexadecimal digits, new for each run
  {proxy}      for TCP proxies: ADDRESS:PORT at which side S must accept connections,
  {target}     and ADDRESS:PORT to which side D must forward them. They carry TCP from S to D only

  Examples: a tunnel between two UDP ports; one whose sides need each other's public keys, and a
  smaller MTU; a proxy:
  --tunnel x='case {side} in S) x-client -r {remote}:4000 --tun {tun} --key {key} ;;
              D) x-server -l {local}:4000 --tun {tun} --key {key} ;; esac'
  --tunnel y='y-daemon {tun} & y-keygen {dir}/{side}
              until [ -s {dir}/{other}.pub ] && ip link set {tun} mtu 1400; do sleep .1; done
              y-join {tun} --own {dir}/{side}.key --peer {dir}/{other}.pub --at {remote}:4000; wait'
  --tunnel z='case {side} in S) z-client --listen {proxy} --server {remote}:4000 ;;
              D) z-server --listen {local}:4000 --forward {target} ;; esac'";

/// Arguments of `corridor lab compare`.
#[derive(Debug, Args)]
#[command(after_help = PLACEHOLDERS)]
pub(super) struct CompareArgs {
    /// Scenario files: each gives a radio, and each of its runs a load, a loss ratio and a
    /// duration. With several files, runs alternate and table and plot include all of them. Coding
    /// parameters in a file replace the two presets compared by default
    #[arg(value_name = "SCENARIO.toml", required = true)]
    scenarios: Vec<PathBuf>,
    /// Also compare this external tunnel; may be repeated
    #[arg(long = "tunnel", value_name = "NAME='COMMAND'", value_parser = Tunnel::parse)]
    tunnels: Vec<Tunnel>,
    /// Only compare contenders whose name contains PATTERN; may be repeated. The baseline is always
    /// measured
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Write one row per run to standard output as JSON lines, instead of a table at the end
    #[arg(long)]
    json: bool,
    /// Write compare.json and compare.svg to this directory, created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Repeat every run N times, overriding the scenario
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
}

/// A row, and its contender.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    /// Name of the contender.
    way: String,
    /// The radio, in one line.
    medium: String,
    /// Why there is no result; the row has none then.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(flatten)]
    row: Row,
}

impl Compared {
    /// The result of a run.
    fn new(contest: &Contest, entry: &Entry, row: Row) -> Self {
        Compared {
            way: contest.contenders[entry.contender].name.clone(),
            medium: table::setting(&contest.scenarios[entry.scenario]),
            failure: None,
            row,
        }
    }

    /// A failed run.
    fn failed(contest: &Contest, entry: &Entry, why: String) -> Self {
        let scenario = &contest.scenarios[entry.scenario];
        let mut row = Row::new(scenario, &entry.run, Engine::Lab);
        let tunnel = contest.contenders[entry.contender].tunnel.as_ref();
        row.tunnel = tunnel.map(|tunnel| tunnel.name().to_owned());
        row.distrust("it failed");
        Compared { failure: Some(why), ..Self::new(contest, entry, row) }
    }
}

/// Runs the command.
pub(super) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let contest = contest(args)?;
    // Before the first thread: see `corridor_lab::prepare`.
    corridor_lab::prepare().map_err(EngineError::from)?;
    tell_missing_rights();
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
        table::write(&mut stdout, &lines).map_err(Failure::Output)?;
    }
    if let Some(out) = &args.out
        && !rows.is_empty()
    {
        write_files(out, &contest.scenarios, &rows, &lines)?;
    }
    made
}

fn make_runs(contest: &Contest, json: bool, rows: &mut Vec<Compared>) -> Result<(), Failure> {
    let runs: Vec<Run> = contest.entries.iter().map(|entry| entry.run.clone()).collect();
    let maker = Maker::new(Engine::Lab)?;
    let progress = Progress::new(&runs, |run| maker.time_needed(run));
    let mut patience = Patience::new(contest.contenders.len());
    for (index, entry) in contest.entries.iter().enumerate() {
        let contender = &contest.contenders[entry.contender];
        let title = format!("{}: {}", contender.name, entry.run.title());
        progress.begin_as(index, &title);
        let scenario = &contest.scenarios[entry.scenario];
        let made = match &contender.tunnel {
            Some(_) if patience.is_over(entry.contender) => None,
            Some(tunnel) => Some(maker.make_through(scenario, &entry.run, tunnel)),
            None => Some(maker.make(scenario, &entry.run)),
        };
        let compared = match made {
            Some(Ok(row)) => {
                patience.succeeded(entry.contender);
                progress.finish_as(index, &title, &row);
                Compared::new(contest, entry, row)
            }
            // A user's command may fail any number of times; if our own contender fails again and
            // again, something is wrong with the lab.
            Some(Err(error))
                if is_one_run_only(&error)
                    && (contender.tunnel.is_some() || !patience.is_over(entry.contender)) =>
            {
                patience.failed(entry.contender);
                progress.fail(index, &title, &error);
                Compared::failed(contest, entry, error.to_string())
            }
            Some(Err(error)) => return Err(error.into()),
            None => {
                patience.failed(entry.contender);
                progress.fail(index, &title, &"not tried again");
                Compared::failed(contest, entry, "not tried again".to_owned())
            }
        };
        if json {
            let mut stdout = io::stdout().lock();
            // A structure of numbers, strings and lists can always be written as JSON.
            let line = serde_json::to_string(&compared).unwrap_or_default() + "\n";
            stdout.write_all(line.as_bytes()).map_err(Failure::Output)?;
            stdout.flush().map_err(Failure::Output)?;
        }
        rows.push(compared);
    }
    match patience.failed {
        0 => Ok(()),
        failed => Err(Failure::Runs { failed, count: runs.len() }),
    }
}

/// How often runs failed.
struct Patience {
    /// In total.
    failed: usize,
    /// Per contender, since its last success.
    in_a_row: Vec<usize>,
}

impl Patience {
    fn new(contenders: usize) -> Self {
        Patience { failed: 0, in_a_row: vec![0; contenders] }
    }

    fn is_over(&self, contender: usize) -> bool {
        self.in_a_row[contender] > FAILED_IN_A_ROW_MAX
    }

    fn failed(&mut self, contender: usize) {
        self.failed += 1;
        self.in_a_row[contender] += 1;
    }

    fn succeeded(&mut self, contender: usize) {
        self.in_a_row[contender] = 0;
    }
}

/// The contents of compare.json.
#[derive(Serialize)]
struct Report<'a> {
    scenarios: Vec<&'a str>,
    summary: &'a [table::Line],
    rows: &'a [Compared],
}

fn write_files(
    out: &Path,
    scenarios: &[Scenario],
    rows: &[Compared],
    lines: &[table::Line],
) -> Result<(), Failure> {
    let names = scenarios.iter().map(|scenario| scenario.name.as_str());
    let report = Report { scenarios: names.collect(), summary: lines, rows };
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    for (name, text) in [("compare.json", json), ("compare.svg", picture::draw(lines))] {
        let path = out.join(name);
        crate::demo::replace(&path, &text)
            .map_err(|source| Failure::Write { path: path.clone(), source })?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
