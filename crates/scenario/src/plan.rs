//! Plans: what to simulate at which points, how often, and what to keep.
//!
//! A plan is a scenario file, or a network with flows, together with what a study needs: sweeps,
//! replications or a stop rule, and a choice of outputs.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path as FilePath;
use std::sync::Arc;

use corridor_document::{Diagnostic, Document, Schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::{Table, Value as Toml};

use crate::against::{self, Compared};
use crate::error::ScenarioError;
use crate::expand::{RUNS_MAX, Run, expand};
use crate::file::{Direction, LinkErrorsKind, MediumTable, RunTable, Scenario, Wire};
use crate::metrics::{self, Measures};
use crate::network::{FlowTable, LinkTable, NetworkTable};
use crate::points::{points, resolve};
use crate::record::{Column, Record, Role, Value};
use crate::row::Engine;
use crate::sweep;
use crate::tables::{DELAY_FLOWS_MAX, Keep, SERIES_ROWS_MAX, SERIES_S_MIN, TableKind};
use crate::topology::{Network, Times, network};

/// Most replications of a point.
pub const REPLICATIONS_MAX: u64 = 10_000;
/// Longest plan file, bytes.
pub const PLAN_BYTES_MAX: u64 = 1 << 20;
/// Default number of replications before a stop rule is first applied.
const REPLICATIONS_MIN_DEFAULT: u64 = 5;
/// Default number of replications at which a stop rule gives up.
const REPLICATIONS_MAX_DEFAULT: u64 = 1_000;
/// Default time under load before the measured interval on a radio, seconds.
const RADIO_WARM_UP_S: f64 = 1.0;
/// Longest time under load before the measured interval on a radio, seconds.
const RADIO_WARM_UP_S_MAX: f64 = 3_600.0;

/// A plan with all its values checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name, for tables and file names.
    pub name: String,
    /// Short description.
    pub description: String,
    /// Seed of all random streams, unless it is swept.
    pub seed: u64,
    /// The text of the file.
    pub text: String,
    /// How often each point is run.
    pub replications: Replications,
    /// The points to run.
    pub points: Vec<Point>,
    /// Keys in the file that have no effect.
    pub warnings: Vec<Diagnostic>,
    /// By point: the one that a stop rule compares it with.
    bases: Vec<Option<usize>>,
    /// The columns of a record.
    columns: Vec<Column>,
}

/// How often each point is run.
#[derive(Clone, Debug, PartialEq)]
pub enum Replications {
    /// A fixed number of times.
    Fixed(u64),
    /// Until the mean of a metric is known well enough.
    Until(StopRule),
}

impl Replications {
    /// Most replications of a point.
    pub fn max(&self) -> u64 {
        match self {
            Replications::Fixed(count) => *count,
            Replications::Until(rule) => rule.replications_max,
        }
    }
}

/// The `[stop]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// Metric whose mean is estimated.
    pub metric: String,
    /// Target precision: full width of the 95 % confidence interval, divided by the mean.
    #[serde(default)]
    pub ci95_ratio: Option<f64>,
    /// Target precision: half the width of the 95 % confidence interval, in the unit of the metric,
    /// instead of the ratio.
    #[serde(default)]
    pub ci95_half_width: Option<f64>,
    /// Estimate the difference per replication from the point with these parameter values that is
    /// otherwise equal; none = the mean itself.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub against: BTreeMap<String, Toml>,
    /// Minimum number of values of the metric, at least 2; the rule is checked after every
    /// replication from there on. Identical values count as precise enough.
    #[serde(default = "replications_min")]
    pub replications_min: u64,
    /// Maximum number of replications per point.
    #[serde(default = "replications_max")]
    pub replications_max: u64,
}

impl StopRule {
    fn check(&self) -> Result<(), ScenarioError> {
        let (min, max) = (self.replications_min, self.replications_max);
        if !(2..=REPLICATIONS_MAX).contains(&min) {
            let expected = format!("2 to {REPLICATIONS_MAX}");
            return Err(ScenarioError::value("stop.replications_min", min, expected));
        }
        if !(min..=REPLICATIONS_MAX).contains(&max) {
            let expected = format!("{min} to {REPLICATIONS_MAX}");
            return Err(ScenarioError::value("stop.replications_max", max, expected));
        }
        let is_width = |width: f64| width > 0.0 && width.is_finite();
        match (self.ci95_ratio, self.ci95_half_width) {
            (Some(ratio), None) if !is_width(ratio) => {
                let expected = "more than 0: width of the interval over the mean";
                Err(ScenarioError::value("stop.ci95_ratio", ratio, expected))
            }
            (None, Some(width)) if !is_width(width) => {
                let expected = "more than 0: half of the width of the interval";
                Err(ScenarioError::value("stop.ci95_half_width", width, expected))
            }
            (Some(_), Some(width)) => {
                let expected = "nothing beside `ci95_ratio`";
                Err(ScenarioError::value("stop.ci95_half_width", width, expected))
            }
            (None, None) => {
                let expected = "a target precision, or `ci95_half_width`";
                Err(ScenarioError::missing("stop.ci95_ratio", expected))
            }
            (Some(_), None) | (None, Some(_)) => Ok(()),
        }
    }
}

fn replications_min() -> u64 {
    REPLICATIONS_MIN_DEFAULT
}

fn replications_max() -> u64 {
    REPLICATIONS_MAX_DEFAULT
}

/// A combination of all swept values.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its index in the plan, from 0.
    pub index: usize,
    /// Seed of its random streams.
    pub seed: u64,
    /// What to simulate.
    pub load: Load,
    /// What to keep of its replications besides their records.
    pub keep: Keep,
    /// Values of the plan's parameters, in the order of its parameter columns.
    pub(crate) parameters: Vec<Value>,
    /// What distinguishes it from other points, in a few words.
    pub(crate) title: String,
}

impl Point {
    /// What distinguishes it from other points, in a few words.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// A text of everything that its results depend on, except for the replication: equal texts
    /// mean equal results.
    pub fn identity(&self) -> String {
        let load = format!("seed {} {:?}", self.seed, self.load);
        if self.keep == Keep::default() { load } else { format!("{load} {:?}", self.keep) }
    }
}

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Stations on a radio.
    Radio(Box<Radio>),
    /// Flows across point-to-point links, or radios.
    Network(Arc<Network>),
}

impl Load {
    /// Most rows of a replication's long tables, except for delays, whose number of bins is
    /// unpredictable.
    fn rows_max(&self, keep: Keep) -> usize {
        let (span_s, flows, others) = self.course();
        let intervals = keep.series.map_or(0.0, |series| (span_s / series.as_secs_f64()).ceil());
        // A radio's interface counts as a link and as a node.
        let totals = if keep.totals { flows + 2 * others } else { 0 };
        (flows + others).saturating_mul(intervals as usize).saturating_add(totals)
    }

    fn is_on_air(&self) -> bool {
        match self {
            Load::Radio(_) => true,
            Load::Network(network) => !network.radios.is_empty(),
        }
    }

    fn has_stations(&self) -> bool {
        match self {
            Load::Radio(_) => true,
            Load::Network(network) => !network.tunnels.is_empty(),
        }
    }

    /// Length of its course in seconds, number of flows, and number of links and stations.
    fn course(&self) -> (f64, usize, usize) {
        match self {
            Load::Radio(radio) => {
                let (run, hops) = (&radio.run, radio.scenario.medium.hops);
                let flows = if run.direction == Direction::Both { 2 } else { 1 };
                let places = run.stations() + 2 * hops.saturating_sub(1);
                (radio.warm_up_s + run.duration_s, flows, run.stations() + places)
            }
            Load::Network(network) => {
                let others = network.links.len() + network.places() + network.stations();
                (network.duration.as_secs_f64(), network.flows.len(), others)
            }
        }
    }
}

/// A run on a radio.
#[derive(Clone, Debug, PartialEq)]
pub struct Radio {
    /// The radio and the queues; its list of runs is empty.
    pub scenario: Scenario,
    /// The run.
    pub run: Run,
    /// Seconds of load before the measured interval.
    pub warm_up_s: f64,
}

/// The engine that makes a plan's runs, and the directory of its traces.
pub(crate) type Place<'a> = (Engine, &'a FilePath);

/// The schema of plans and scenarios, from the types that parse them.
pub fn schema() -> Schema {
    Schema::of::<PlanFile>()
}

/// A plan, or a scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(title = "Corridor plan")]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanFile {
    /// Name, for tables and file names.
    name: String,
    /// Short description.
    #[serde(default)]
    description: String,
    /// Seed of all random streams.
    pub(crate) seed: u64,
    /// Scenarios: number of repeats of each run. Default: 1.
    #[serde(default)]
    repeats: Option<u64>,
    /// Plans: number of replications of each point. Default: 1.
    #[serde(default)]
    replications: Option<u64>,
    /// Plans: run each point until a mean is known to a target precision.
    #[serde(default)]
    stop: Option<StopRule>,
    /// Plans: lists of values for key paths, such as `medium.rtt_ms = [4, 8]`. Lists in one table
    /// advance together; tables are crossed.
    // Applied before this is read.
    #[serde(default, rename = "sweep")]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    _sweep: IgnoredAny,
    /// Plans: which results are kept.
    #[serde(default)]
    pub(crate) output: Output,
    /// Length of the measured interval, seconds; required for networks, runs may set their own.
    #[serde(default)]
    duration_s: Option<f64>,
    /// Load before the measured interval, seconds, unless a run sets its own. Default: 1 on a radio
    /// or a line, 0 in networks.
    #[serde(default)]
    warm_up_s: Option<f64>,
    /// Networks: each flow's start is delayed by a random time, uniform from zero to this, seconds.
    /// Default: 0.1, or 0 if any flow has the preset ns2.
    #[serde(default)]
    start_jitter_s: Option<f64>,
    /// Networks: end a replication when all flows have completed or given up, but not before the
    /// measured interval has started.
    #[serde(default)]
    until_done: bool,
    /// Radio for the `[[run]]` tables.
    #[serde(default)]
    medium: Option<MediumTable>,
    /// Path between S and D instead of the radio, given like a link of a network: its rate and
    /// delay may vary, and it applies no backpressure to stations. A run's `e3` is lost in both
    /// directions, unless the line has erasures of its own.
    #[serde(default)]
    line: Option<LinkTable>,
    /// Ingress queue of a station, packets. Default: depends on its coding.
    #[serde(default)]
    ingress_packets: Option<usize>,
    /// Plans: source of the erasure ratios of stations on a radio. Default: measured.
    #[serde(default)]
    link_errors: Option<LinkErrorsKind>,
    /// Runs on the radio or line. A key with a list makes one run per value.
    #[serde(default)]
    run: Vec<RunTable>,
    /// Point-to-point links or radios that carry the `[[flow]]` tables. The lab supports up to
    /// eight nodes on links, and two to eight radios with a standard MAC; everything else is for
    /// the simulator only.
    #[serde(default)]
    network: Option<NetworkTable>,
    /// Flows in the network.
    #[serde(default)]
    flow: Vec<FlowTable>,
}

/// The `[output]` table.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Output {
    /// Metrics to keep; none = all. `flow.*.name` stands for that metric of every flow.
    #[serde(default)]
    metrics: Option<Vec<String>>,
    /// Interval of time series of every flow, link and station, seconds, at least 0.001, kept in
    /// long tables beside the results; none = no time series.
    #[serde(default)]
    series_s: Option<f64>,
    /// Whether to keep a delay histogram of every flow in a long table beside the results, so that
    /// quantiles can be computed over all replications.
    #[serde(default)]
    delays: bool,
    /// Whether to keep long tables of flows, links and nodes beside the results.
    #[serde(default)]
    tables: bool,
}

impl Output {
    /// What to keep, if a replication with this load has room for it.
    pub(crate) fn keep(&self, load: &Load) -> Result<Keep, ScenarioError> {
        let (span_s, flows, others) = load.course();
        if self.delays && flows > DELAY_FLOWS_MAX {
            let expected =
                format!("false with more than {DELAY_FLOWS_MAX} flows: there are {flows}");
            return Err(ScenarioError::value("output.delays", true, expected));
        }
        let keep = Keep { series: None, delays: self.delays, totals: self.tables };
        let Some(series_s) = self.series_s else { return Ok(keep) };
        if !(series_s.is_finite() && series_s >= SERIES_S_MIN) {
            let expected = format!("at least {SERIES_S_MIN} s");
            return Err(ScenarioError::value("output.series_s", series_s, expected));
        }
        let subjects = flows + others;
        let intervals_max = SERIES_ROWS_MAX / subjects.max(1);
        if (span_s / series_s).ceil() > intervals_max as f64 {
            let least = span_s / intervals_max as f64;
            let expected = format!(
                "at least {least} s: {SERIES_ROWS_MAX} rows of {subjects} flows, links and stations"
            );
            return Err(ScenarioError::value("output.series_s", series_s, expected));
        }
        let interval = Duration::from_nanos((series_s * 1e9).round() as u64);
        Ok(Keep { series: Some(interval), ..keep })
    }
}

/// Reads the text of a plan or a scenario, only once, since a pipe cannot be read again.
///
/// # Errors
/// [`ScenarioError::Read`]; [`ScenarioError::Value`] beyond [`PLAN_BYTES_MAX`].
pub fn read_file(path: &FilePath) -> Result<Document, ScenarioError> {
    let unreadable = |source| ScenarioError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    // The length that a pipe or a device reports cannot be relied on.
    let read = file.take(PLAN_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if read as u64 > PLAN_BYTES_MAX {
        let expected = format!("a file of at most {PLAN_BYTES_MAX} bytes");
        let given = format!("more than {PLAN_BYTES_MAX} bytes");
        return Err(ScenarioError::value(path.display().to_string(), given, expected));
    }
    Ok(Document::new(path.display().to_string(), text))
}

impl Plan {
    /// Reads a plan or a scenario from a file; traces are looked up next to it.
    ///
    /// # Errors
    /// Those of [`read_file`], and those of [`parse`](Self::parse).
    pub fn read(path: &FilePath) -> Result<Self, ScenarioError> {
        Plan::read_beside(&read_file(path)?, path)
    }

    /// Like [`read`](Self::read), for a file that [was read](read_file) already from `path`.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub fn read_beside(document: &Document, path: &FilePath) -> Result<Self, ScenarioError> {
        Plan::read_for(Engine::Sim, document, path)
    }

    /// Like [`read_beside`](Self::read_beside), for either engine: with the lab, runs may have
    /// settings that only the lab supports.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub fn read_for(
        engine: Engine,
        document: &Document,
        path: &FilePath,
    ) -> Result<Self, ScenarioError> {
        Plan::from_document(document, (engine, path.parent().unwrap_or(FilePath::new("."))))
    }

    /// Adds the place in the plan's file to an error of one of its values.
    pub fn locate(&self, path: &FilePath, error: ScenarioError) -> ScenarioError {
        error.at(&Document::new(path.display().to_string(), self.text.as_str()))
    }

    /// Whether a text is a plan with a network; false if it is not TOML.
    pub fn has_network(text: &str) -> bool {
        toml::from_str::<Table>(text).is_ok_and(|tree| tree.contains_key("network"))
    }

    /// Parses a plan or a scenario from the text of its file; traces are looked up in `directory`.
    ///
    /// # Errors
    /// The first syntax error or invalid value.
    pub fn parse(text: &str, directory: &FilePath) -> Result<Self, ScenarioError> {
        Plan::from_document(&Document::new("plan", text), (Engine::Sim, directory))
    }

    fn from_document(document: &Document, place: Place<'_>) -> Result<Self, ScenarioError> {
        Plan::read_document(document, place).map_err(|error| error.at(document))
    }

    fn read_document(document: &Document, place: Place<'_>) -> Result<Self, ScenarioError> {
        // Invalid TOML is reported when the whole is parsed.
        let mut tree: Table = toml::from_str(document.text()).unwrap_or_default();
        // Removed because the tree is copied for each point, and there may be as many list entries
        // as points.
        let sweep = tree.remove("sweep");
        let sweeps = match sweep.clone().map(Toml::try_into::<Vec<Table>>) {
            None => Vec::new(),
            Some(Ok(sweeps)) => sweeps,
            Some(Err(_)) => {
                let expected = "[[sweep]] tables, each with lists of values for paths";
                let given = sweep.map(|given| given.to_string()).unwrap_or_default();
                return Err(ScenarioError::value("sweep", given, expected));
            }
        };
        let settings = sweep::settings(&sweeps)?;
        // The unmodified file has lines to point to. Values that a sweep gives may be missing.
        let file = match document.read::<PlanFile>() {
            Ok(file) => file,
            Err(error) => {
                resolve(&tree, &settings[0]).ok().filter(|_| !sweeps.is_empty()).ok_or(error)?
            }
        };
        let warnings = crate::file::warnings(&file.run, document);
        let replications = file.replications()?;
        let (points, columns) = points(&tree, &settings, place)?;
        let mut plan = Plan {
            name: file.name,
            description: file.description,
            seed: file.seed,
            text: document.text().to_owned(),
            replications,
            points,
            warnings,
            bases: Vec::new(),
            columns,
        };
        plan.check_replications()?;
        plan.bases = plan.find_bases()?;
        plan.select(file.output.metrics.as_deref())?;
        Ok(plan)
    }

    /// The same plan with this number of replications for every point.
    ///
    /// # Errors
    /// [`ScenarioError::Value`], [`ScenarioError::TooManyRuns`].
    pub fn with_replications(mut self, count: u64) -> Result<Self, ScenarioError> {
        self.replications = Replications::Fixed(count);
        self.check_replications()?;
        Ok(self)
    }

    /// The columns of a record: keys, parameters, metrics.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Long tables to keep beside the records.
    pub fn tables(&self) -> Vec<TableKind> {
        let is_kept = |kind: &TableKind| {
            self.points.iter().any(|point| match kind {
                TableKind::FlowSeries | TableKind::LinkSeries => point.keep.series.is_some(),
                TableKind::StationSeries => {
                    point.keep.series.is_some() && point.load.has_stations()
                }
                TableKind::Delays => point.keep.delays,
                TableKind::Flows | TableKind::Links | TableKind::Outcomes => point.keep.totals,
                TableKind::Nodes => point.keep.totals && point.load.is_on_air(),
            })
        };
        TableKind::ALL.into_iter().filter(is_kept).collect()
    }

    /// Most rows of the long tables of all replications together, except for those of delays, whose
    /// number of bins is unpredictable.
    pub fn rows_max(&self) -> usize {
        let rows = self.points.iter().map(|point| point.load.rows_max(point.keep));
        rows.fold(0, usize::saturating_add).saturating_mul(self.replications.max() as usize)
    }

    /// The swept paths, and a point's values for them.
    pub fn swept(&self, point: usize) -> impl Iterator<Item = (&str, &Value)> {
        let own = metrics::parameter_names(&self.points[point].load);
        let parameters = self.columns.iter().filter(|column| column.role == Role::Parameter);
        let columns = parameters.filter(|column| column.name != "seed");
        let pairs = columns.zip(&self.points[point].parameters);
        let swept = pairs.filter(move |(column, _)| !own.contains(&column.name));
        swept.map(|(column, value)| (column.name.as_str(), value))
    }

    /// The point that a stop rule compares this one with, if it does.
    pub fn base(&self, point: usize) -> Option<usize> {
        self.bases.get(point).copied().flatten()
    }

    /// Puts measurements into the plan's columns.
    pub fn record(&self, point: usize, replication: u64, measures: &Measures) -> Record {
        let parameters = &self.points[point].parameters;
        let keys = [Value::from(point as u64), replication.into(), self.points[point].seed.into()];
        let fixed = keys.iter().chain(parameters).cloned();
        let metrics = self.columns.iter().filter(|column| column.is_metric());
        let measured = metrics.map(|column| measures.value(&column.name).into_kind(column.kind));
        Record { point, replication, values: fixed.chain(measured).collect() }
    }

    fn check_replications(&self) -> Result<(), ScenarioError> {
        let expected = |min: u64| format!("{min} to {REPLICATIONS_MAX}");
        match &self.replications {
            Replications::Fixed(count) if !(1..=REPLICATIONS_MAX).contains(count) => {
                return Err(ScenarioError::value("replications", count, expected(1)));
            }
            Replications::Fixed(_) => {}
            Replications::Until(rule) => rule.check()?,
        }
        let given = self.points.len().saturating_mul(self.replications.max() as usize);
        if given > RUNS_MAX {
            return Err(ScenarioError::TooManyRuns { given, max: RUNS_MAX });
        }
        Ok(())
    }

    /// Finds the points that a stop rule compares others with.
    fn find_bases(&self) -> Result<Vec<Option<usize>>, ScenarioError> {
        let Replications::Until(rule) = &self.replications else { return Ok(Vec::new()) };
        if rule.against.is_empty() {
            return Ok(Vec::new());
        }
        let is_own = |column: &&Column| column.role == Role::Parameter && column.name != "seed";
        let columns: Vec<&Column> = self.columns.iter().filter(is_own).collect();
        let compared = self.points.iter().map(|point| Compared {
            seed: point.seed,
            parameters: &point.parameters,
            columnless: metrics::columnless(&point.load),
            title: &point.title,
        });
        against::bases(&rule.against, &columns, &compared.collect::<Vec<_>>())
    }

    /// Keeps the chosen metrics, and the one that the stop rule needs.
    fn select(&mut self, chosen: Option<&[String]>) -> Result<(), ScenarioError> {
        let metrics = self.columns.iter().filter(|column| column.is_metric());
        let names: Vec<&str> = metrics.map(|column| column.name.as_str()).collect();
        let known = |field: &str, name: &str| {
            if names.iter().any(|have| metrics::matches(name, have)) {
                return Ok(());
            }
            let expected = format!("one of {}", metrics::listed(&names));
            Err(ScenarioError::value(field, name, expected))
        };
        let mut stop = None;
        if let Replications::Until(rule) = &self.replications {
            known("stop.metric", &rule.metric)?;
            if rule.metric.contains('*') {
                let expected = "one metric, such as \"flow.0.goodput_bps\"";
                return Err(ScenarioError::value("stop.metric", &rule.metric, expected));
            }
            stop = Some(rule.metric.clone());
        }
        let Some(chosen) = chosen else { return Ok(()) };
        for name in chosen {
            known("output.metrics", name)?;
        }
        self.columns.retain(|column| {
            !column.is_metric()
                || chosen.iter().chain(&stop).any(|name| metrics::matches(name, &column.name))
        });
        Ok(())
    }
}

impl PlanFile {
    fn replications(&self) -> Result<Replications, ScenarioError> {
        let given = [
            ("repeats", self.repeats.map(|count| count.to_string())),
            ("replications", self.replications.map(|count| count.to_string())),
            ("stop", self.stop.as_ref().map(|_| "a table".to_owned())),
        ];
        let mut given = given.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        if let (Some((first, _)), Some((field, value))) = (given.next(), given.next()) {
            let expected = format!("nothing beside `{first}`");
            return Err(ScenarioError::value(*field, value, expected));
        }
        Ok(match &self.stop {
            Some(rule) => Replications::Until(rule.clone()),
            None => Replications::Fixed(self.replications.or(self.repeats).unwrap_or(1)),
        })
    }

    /// What to simulate: one load, or several for a radio, whose runs may have lists of their own.
    pub(crate) fn loads(self, (engine, directory): Place<'_>) -> Result<Vec<Load>, ScenarioError> {
        match (&self.network, &self.medium, &self.line) {
            (Some(table), None, None) => self.network_load(table, directory),
            (None, None, None) => {
                let expected = "[medium] or [line] with [[run]], or [network] with [[flow]]";
                Err(ScenarioError::missing("medium", expected))
            }
            (Some(_), Some(_), _) => {
                Err(ScenarioError::value("medium", "a table", "nothing beside [network]"))
            }
            (Some(_), _, Some(_)) => {
                Err(ScenarioError::value("line", "a table", "nothing beside [network]"))
            }
            (None, _, _) => self.radio_loads((engine, directory)),
        }
    }

    fn network_load(
        &self,
        table: &NetworkTable,
        directory: &FilePath,
    ) -> Result<Vec<Load>, ScenarioError> {
        if !self.run.is_empty() {
            return Err(ScenarioError::value("run", "a table", "[[flow]]: networks have flows"));
        }
        if let Some(packets) = self.ingress_packets {
            let expected = "nothing: links of networks have `queue_packets`";
            return Err(ScenarioError::value("ingress_packets", packets, expected));
        }
        if self.link_errors.is_some() {
            let expected = "nothing: only used with [medium]";
            return Err(ScenarioError::value("link_errors", "a word", expected));
        }
        let Some(duration_s) = self.duration_s else {
            return Err(ScenarioError::missing("duration_s", "simulated seconds"));
        };
        let warm_up_s = self.warm_up_s.unwrap_or(0.0);
        let (start_jitter_s, until_done) = (self.start_jitter_s, self.until_done);
        let times = Times { duration_s, warm_up_s, start_jitter_s, until_done };
        let network = network(table, &self.flow, times, self.seed, directory)?;
        Ok(vec![Load::Network(Arc::new(network))])
    }

    fn radio_loads(&self, (engine, directory): Place<'_>) -> Result<Vec<Load>, ScenarioError> {
        if !self.flow.is_empty() {
            return Err(ScenarioError::value("flow", "a table", "[[run]]: radios have runs"));
        }
        if self.until_done {
            let expected = "nothing: a run's load does not end by itself";
            return Err(ScenarioError::value("until_done", true, expected));
        }
        if let Some(jitter_s) = self.start_jitter_s {
            let expected = "nothing: a run's load starts when its stations have a session";
            return Err(ScenarioError::value("start_jitter_s", jitter_s, expected));
        }
        let warm_up_s = self.warm_up_s.unwrap_or(RADIO_WARM_UP_S);
        if !(0.0..=RADIO_WARM_UP_S_MAX).contains(&warm_up_s) {
            let expected = format!("0 to {RADIO_WARM_UP_S_MAX} s");
            return Err(ScenarioError::value("warm_up_s", warm_up_s, expected));
        }
        let duration_s = self.duration_s;
        let runs = self.run.iter().map(|run| {
            let duration_s = run.duration_s.or(duration_s);
            let mut run = RunTable { duration_s, ..run.clone() };
            if engine == Engine::Lab {
                run.warm_up_s = run.warm_up_s.or(self.warm_up_s);
            }
            run
        });
        let mut scenario = Scenario {
            name: self.name.clone(),
            description: String::new(),
            seed: self.seed,
            repeats: 1,
            medium: self.medium.clone().unwrap_or_else(MediumTable::unsaid),
            line: self.line.clone(),
            pipes: None,
            link_errors: self.link_errors.unwrap_or_default(),
            ingress_packets: self.ingress_packets,
            run: runs.collect(),
        };
        scenario.settle(directory)?;
        let runs = expand(&scenario)?;
        if engine == Engine::Sim {
            check_is_simulated(&scenario)?;
        }
        // The identity must not include anything that the results do not depend on.
        scenario.run.clear();
        scenario.name.clear();
        let radio = |run: Run| {
            let warm_up_s = match engine {
                Engine::Sim => warm_up_s,
                Engine::Lab => run.lab.warm_up.as_secs_f64(),
            };
            let run = Run { point: 0, ..run };
            Load::Radio(Box::new(Radio { scenario: scenario.clone(), run, warm_up_s }))
        };
        Ok(runs.into_iter().map(radio).collect())
    }
}

/// Rejects settings that only the lab supports, instead of ignoring them.
fn check_is_simulated(scenario: &Scenario) -> Result<(), ScenarioError> {
    for (index, table) in scenario.run.iter().enumerate() {
        let given = [
            ("ecn", table.ecn.is_some()),
            ("ping_interval_ms", table.ping_interval_ms.is_some()),
            ("deadline_ms", table.deadline_ms.is_some()),
            ("beside", table.beside.is_some()),
            ("warm_up_s", table.warm_up_s.is_some()),
            ("wire", table.wire != Wire::Radio),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            let field = format!("run[{index}].{name}");
            return Err(ScenarioError::value(
                field,
                "a value",
                "nothing: only supported by the lab",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
