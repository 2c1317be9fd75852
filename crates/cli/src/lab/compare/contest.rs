//! The contenders of a comparison, and the runs that it needs.

use corridor_lab::Tunnel;
use corridor_proto::{CodingTable, Preset};
use corridor_scenario::{
    Congestion, OneOrMany, Path as Crossing, Run, RunTable, Scenario, ScenarioError, Transport,
    expand,
};

use super::super::Failure;
use super::CompareArgs;

/// Kernel TCP, a coding, or a tunnel.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    path: Crossing,
    congestion: Option<Congestion>,
    coding: Option<CodingTable>,
    pub(super) tunnel: Option<Tunnel>,
}

/// One run of one contender.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) scenario: usize,
    pub(super) contender: usize,
    pub(super) run: Run,
}

/// What is compared, and the runs that this needs.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) scenarios: Vec<Scenario>,
    pub(super) contenders: Vec<Contender>,
    pub(super) entries: Vec<Entry>,
}

/// Reads the scenarios; contenders take turns, repeat by repeat.
pub(super) fn contest(args: &CompareArgs) -> Result<Contest, Failure> {
    let (mut scenarios, mut contenders, mut points) = (Vec::new(), Vec::new(), Vec::new());
    for path in &args.scenarios {
        let (document, mut scenario) = Scenario::load(path)?;
        crate::exit::warn(&scenario.warnings(&document));
        let refused = |error: ScenarioError| Failure::Scenario(error.at(&document));
        if let Some(repeats) = args.repeats {
            scenario.repeats = repeats;
        }
        // Rejects an invalid scenario as it is written, before anything is replaced in it.
        expand(&scenario).map_err(refused)?;
        let first = points.len();
        for table in &scenario.run {
            add_points(&scenario, table, args, &mut contenders, &mut points).map_err(refused)?;
        }
        for entry in &mut points[first..] {
            entry.scenario = scenarios.len();
        }
        scenarios.push(scenario);
    }
    let repeats = scenarios.iter().map(|scenario| scenario.repeats).max().unwrap_or(0);
    let mut entries = Vec::new();
    for replication in 0..repeats {
        let repeated = |entry: &&Entry| scenarios[entry.scenario].repeats > replication;
        for (point, entry) in points.iter().enumerate().filter(|(_, entry)| repeated(entry)) {
            let run = Run { point, replication: replication.into(), ..entry.run.clone() };
            entries.push(Entry { run, ..entry.clone() });
        }
    }
    if entries.is_empty() {
        return Err(Failure::Nobody { given: args.only.join(", ") });
    }
    Ok(Contest { scenarios, contenders, entries })
}

/// The points of one table, condition by condition; new contenders are added to the list. The
/// caller fills in the index of the scenario.
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
    // Runs of each contender, with the same conditions at the same indices.
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
    // Shares are relative to the kernel's cubic without losses.
    if table.transport == Transport::Tcp && count > 0 {
        let lossless = RunTable { e3: OneOrMany::One(0.0), burst_frames: None, ..table.clone() };
        let reference = &all[0];
        let measured = table.e3.iter().any(|&ratio| ratio == 0.0) && is_chosen(&reference.name);
        if !measured {
            for run in runs_of(scenario, &lossless, reference)? {
                points.push(Entry { scenario: 0, contender: place(reference, contenders), run });
            }
        }
    }
    for index in 0..count {
        for (contender, runs) in &runs {
            let run = runs[index].clone();
            points.push(Entry { scenario: 0, contender: place(contender, contenders), run });
        }
    }
    Ok(())
}

/// The kernel's cubic first: shares are relative to it.
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
            for (name, preset) in [("block", Preset::Block), ("window", Preset::Window)] {
                let coding = CodingTable { preset: Some(preset), ..CodingTable::default() };
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
