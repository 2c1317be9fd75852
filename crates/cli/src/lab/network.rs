//! `corridor lab run` of a plan's network: each replication in real time, and with `--beside-sim`
//! in virtual time too, for comparison.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use corridor_lab::{NetworkRun, Options};
use corridor_results::{CampaignError, Engine, Estimate, Task};
use corridor_scenario::{Engine as Is, Load, Measures, Network, Plan, Point, Replication};
use corridor_sim::{COMMIT, SimError};
use serde::Serialize;

use super::out::OutFile;
use super::{Failure, RunArgs, campaign, json, prepare, tell_results, version};
use crate::engine::{EngineError, stop_on_signals};

/// Maximum number of attempts of a replication that the machine disturbs.
const ATTEMPTS_MAX: u32 = 3;

/// What one engine measured in a replication of a point.
#[derive(Serialize)]
struct Line {
    plan: String,
    point: usize,
    title: String,
    replication: u64,
    engine: Is,
    /// Whether it is valid; the simulator's always are.
    valid: bool,
    lateness_p99_s: Option<f64>,
    notes: Vec<String>,
    /// Length of the measured interval, seconds.
    measured_s: f64,
    measures: Measures,
}

/// Runs a plan's network at these points.
pub(super) fn run(args: &RunArgs, plan: Plan, points: &[usize]) -> Result<(), Failure> {
    check_arguments(args)?;
    for network in points.iter().filter_map(|&point| network_of(&plan.points[point])) {
        corridor_lab::check_network(network).map_err(EngineError::from)?;
    }
    prepare()?;
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let options = Options::from_environment().map_err(EngineError::from)?;
    let (version, plan) = (version(), Arc::new(plan));
    let mut campaign = campaign(args, &plan, points, &version)?;
    let (stop, lines) = (stop_on_signals(), Mutex::default());
    let lab = Lab { args, options: &options, out: out.as_ref(), stop: &stop, lines: &lines };
    let made = campaign.run_here(&lab);
    campaign.write(COMMIT, &version)?;
    let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Finished replications are shown even if the rest failed.
    if !args.json && !lines.is_empty() {
        write_table(&mut io::stdout().lock(), &lines).map_err(Failure::Output)?;
    }
    tell_results(args);
    match made {
        Ok(()) => {}
        Err(CampaignError::Engine { source, .. }) => return Err(source),
        Err(CampaignError::Results(error)) => return Err(error.into()),
        // On this thread panics are not caught.
        Err(CampaignError::Panic { .. }) => {}
    }
    match lines.iter().filter(|line| !line.valid).count() {
        0 => Ok(()),
        failed => Err(Failure::Runs { failed, count: lines.len() }),
    }
}

/// Rejects options that only apply to runs on a radio or a line.
fn check_arguments(args: &RunArgs) -> Result<(), Failure> {
    let checks = args.checks.as_ref().map(|path| format!("--checks {}", path.display()));
    let jobs = args.jobs.map(|jobs| format!("--jobs {jobs}"));
    let checks = checks.map(|given| (given, "runs on a radio or a line: no checks for networks"));
    let jobs = jobs.map(|given| (given, "runs on a radio or a line: networks run one at a time"));
    match checks.or(jobs) {
        Some((given, expected)) => Err(Failure::Argument { given, expected }),
        None => Ok(()),
    }
}

/// Makes a plan's replications in real time, and reports each of them.
struct Lab<'a> {
    args: &'a RunArgs,
    options: &'a Options,
    out: Option<&'a OutFile>,
    stop: &'a AtomicBool,
    lines: &'a Mutex<Vec<Line>>,
}

impl Engine for Lab<'_> {
    type Error = Failure;

    fn make(&self, plan: &Plan, task: Task) -> Result<Replication, Failure> {
        let (point, replication) = (&plan.points[task.point], task.replication);
        // The caller has checked `Plan::has_network`.
        let Some(network) = network_of(point) else { return Ok(Replication::default()) };
        if self.args.beside_sim {
            let found = simulate(point, replication).map_err(EngineError::from)?;
            self.tell(line(plan, point, network, found))?;
        }
        let run = made(network, (point.seed, replication), self.options, self.stop)?;
        let made = Replication { measures: run.measures.clone(), ..Replication::default() };
        let found = Found { engine: Is::Lab, replication, run };
        let line = line(plan, point, network, found);
        if !line.valid && self.args.results.is_some() {
            let (title, notes) = (line.title, line.notes.join("; "));
            return Err(Failure::Spoilt { title, replication, notes });
        }
        self.tell(line)?;
        Ok(made)
    }
}

impl Lab<'_> {
    fn tell(&self, line: Line) -> Result<(), Failure> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        tell(self.args, self.out, &mut lines, line)
    }
}

fn network_of(point: &Point) -> Option<&Network> {
    match &point.load {
        Load::Network(network) => Some(network),
        Load::Radio(_) => None,
    }
}

/// A replication that an engine has made.
struct Found {
    engine: Is,
    replication: u64,
    run: NetworkRun,
}

fn simulate(point: &Point, replication: u64) -> Result<Found, SimError> {
    let measures = corridor_sim::run(point, replication)?.measures;
    let run = NetworkRun { measures, lateness_p99_s: None, valid: true, notes: Vec::new() };
    Ok(Found { engine: Is::Sim, replication, run })
}

/// A replication in real time, repeated if the machine disturbs it.
fn made(
    network: &Network,
    seed: (u64, u64),
    options: &Options,
    stop: &AtomicBool,
) -> Result<NetworkRun, Failure> {
    let mut attempt = 1;
    loop {
        let made = corridor_lab::run_network(network, seed, options, stop);
        let run = made.map_err(EngineError::from)?;
        if run.valid || attempt == ATTEMPTS_MAX {
            return Ok(run);
        }
        eprintln!("made again: {}", run.notes.join("; "));
        attempt += 1;
    }
}

fn line(plan: &Plan, point: &Point, network: &Network, found: Found) -> Line {
    let NetworkRun { measures, lateness_p99_s, valid, notes } = found.run;
    Line {
        plan: plan.name.clone(),
        point: point.index,
        title: point.title().to_owned(),
        replication: found.replication,
        engine: found.engine,
        valid,
        lateness_p99_s,
        notes,
        measured_s: network.duration.saturating_sub(network.warm_up).as_secs_f64(),
        measures,
    }
}

fn tell(
    args: &RunArgs,
    out: Option<&OutFile>,
    lines: &mut Vec<Line>,
    line: Line,
) -> Result<(), Failure> {
    let newest = json(&line);
    if args.json {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{newest}").and_then(|()| stdout.flush()).map_err(Failure::Output)?;
    } else {
        let goodput = number(&line, "goodput_bps").unwrap_or(0.0) / 1e6;
        let (title, engine) = (&line.title, engine_name(line.engine));
        eprintln!("{title} [{}] {engine}: {goodput:.3} Mbit/s", line.replication);
    }
    lines.push(line);
    out.map_or(Ok(()), |out| out.write(lines.iter(), &newest))
}

fn engine_name(engine: Is) -> &'static str {
    match engine {
        Is::Lab => "lab",
        Is::Sim => "simulator",
    }
}

fn number(line: &Line, name: &str) -> Option<f64> {
    line.measures.value(name).number()
}

/// Mean of a metric over those of a line's flows that have it.
fn of_flows(line: &Line, name: &str) -> Option<f64> {
    let is_it = |column: &&str| corridor_scenario::matches(&format!("flow.*.{name}"), column);
    let flows = line.measures.names().filter(is_it);
    let values: Vec<f64> = flows.filter_map(|column| number(line, column)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A column of the table: its head, decimals, and a line's value.
type Cell = (&'static str, usize, fn(&Line) -> Option<f64>);

const GOODPUT: Cell = ("Mbit/s", 3, |line| Some(number(line, "goodput_bps")? / 1e6));

const CELLS: [Cell; 8] = [
    GOODPUT,
    ("p50 ms", 1, |line| Some(1e3 * of_flows(line, "delay_p50_s")?)),
    ("p95 ms", 1, |line| Some(1e3 * of_flows(line, "delay_p95_s")?)),
    ("lost %", 2, |line| Some(100.0 * of_flows(line, "packet_loss_ratio")?)),
    ("frames/s", 1, |line| Some(number(line, "frames_sent")? / line.measured_s)),
    ("retries/s", 1, |line| {
        let retries = number(line, "frame_attempts")? - number(line, "frames_sent")?;
        Some(retries / line.measured_s)
    }),
    ("coded %", 1, |line| {
        let coded = number(line, "relay_frames_coded")?;
        let all = coded + number(line, "relay_frames_plain")?;
        (all > 0.0).then(|| 100.0 * coded / all)
    }),
    ("late ms", 2, |line| Some(1e3 * line.lateness_p99_s?)),
];

/// A line for each point and engine, means over the valid replications; if both engines ran, with
/// the deviation of the lab's goodput.
fn write_table(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    let mut groups: BTreeMap<(usize, &str), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        groups.entry((line.point, engine_name(line.engine))).or_default().push(line);
    }
    let mut head: Vec<String> = ["point", "engine", "runs"].map(str::to_owned).to_vec();
    head.extend(CELLS.iter().map(|(head, ..)| (*head).to_owned()));
    head.push("to simulator".to_owned());
    let mut table = vec![head];
    for ((point, engine), group) in &groups {
        let valid: Vec<&Line> = group.iter().filter(|line| line.valid).copied().collect();
        let used = if valid.is_empty() { group } else { &valid };
        let runs = format!("{}/{}", valid.len(), group.len());
        let title = group[0].title.clone();
        let mut cells = vec![title, (*engine).to_owned(), runs];
        for (_, decimals, of) in &CELLS {
            let text = |mean: f64| format!("{mean:.decimals$}");
            cells.push(mean(used, *of).map_or("-".to_owned(), text));
        }
        let simulated = groups.get(&(*point, "simulator")).filter(|_| *engine == "lab");
        let of = GOODPUT.2;
        let off =
            simulated.and_then(|simulated| Some(mean(used, of)? / mean(simulated, of)? - 1.0));
        cells.push(off.map_or(String::new(), |off| format!("{:+.1} %", 100.0 * off)));
        table.push(cells);
    }
    let width = |column: usize| table.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..table[0].len()).map(|column| width(column).unwrap_or(0)).collect();
    for line in &table {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn mean(lines: &[&Line], of: fn(&Line) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = lines.iter().filter_map(|line| of(line)).collect();
    Estimate::of(&values).map(|estimate| estimate.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(engine: Is, goodput_bps: f64) -> Line {
        let mut measures = Measures::default();
        measures.set("goodput_bps", goodput_bps);
        measures.set("frames_sent", 100u64);
        measures.set("frame_attempts", 130u64);
        measures.set_flow(0, "delay_p50_s", 0.010);
        measures.set_flow(1, "delay_p50_s", 0.030);
        Line {
            plan: "p".to_owned(),
            point: 0,
            title: "a point".to_owned(),
            replication: 0,
            engine,
            valid: true,
            lateness_p99_s: None,
            notes: Vec::new(),
            measured_s: 10.0,
            measures,
        }
    }

    #[test]
    fn the_table_has_both_engines_and_what_is_between_them() {
        let lines = [line(Is::Sim, 2e6), line(Is::Lab, 1.9e6), line(Is::Lab, 1.8e6)];
        let mut text = Vec::new();
        write_table(&mut text, &lines).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows[1].contains(" lab ") && rows[1].ends_with("-7.5 %"), "{text}");
        assert!(rows[1].contains("2/2") && rows[1].contains("1.850"), "{text}");
        // The mean of two flows; 30 retries in 10 s.
        assert!(rows[2].contains(" 20.0 ") && rows[2].contains(" 3.0 "), "{text}");
    }
}
