//! The scenario file, as written.

use core::fmt;
use std::path::Path as FilePath;

use corridor_air::PipeConfig;
use corridor_document::rate::{self, Rate};
use corridor_document::{Diagnostic, Document, Problem};
use corridor_proto::{CodingParams, CodingTable, RelayTable};
use schemars::JsonSchema;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use crate::error::ScenarioError;
use crate::network::{LinkTable, TcpPreset};
use crate::one_or_many::OneOrMany;

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name, for tables and file names.
    pub name: String,
    /// One sentence for people.
    #[serde(default)]
    pub description: String,
    /// Seed of all random streams; repeat k of a run draws from replication k.
    pub seed: u64,
    /// Times every run is repeated.
    #[serde(default = "one")]
    pub repeats: u32,
    /// The radio; with `line` nothing.
    #[serde(default = "MediumTable::unsaid")]
    pub medium: MediumTable,
    /// A path of their own between S and D in place of the radio, as links of networks are spelt:
    /// its rate and its delay may vary, and nothing pushes stations back. What a run's `e3` says is
    /// lost both ways, unless the line has erasures itself.
    #[serde(default)]
    pub line: Option<LinkTable>,
    /// What `line` says, from S to D and back, as the air has it.
    #[serde(skip)]
    pub pipes: Option<Box<[PipeConfig; 2]>>,
    /// Where stations have the erasure ratios of links from. Only a plan says it, for the
    /// simulator.
    #[serde(skip)]
    pub link_errors: LinkErrorsKind,
    /// Packets the ingress queue of a station holds; by default what suits its coding.
    #[serde(default)]
    pub ingress_packets: Option<usize>,
    /// The runs.
    pub run: Vec<RunTable>,
}

impl Scenario {
    /// Reads a file, and parses the scenario in it; traces are looked up next to it.
    ///
    /// # Errors
    /// Those of [`read_file`](crate::read_file), and those of [`read`](Self::read).
    pub fn load(path: &FilePath) -> Result<(Document, Self), ScenarioError> {
        let document = crate::read_file(path)?;
        let scenario = Scenario::read_beside(&document, path)?;
        Ok((document, scenario))
    }

    /// Parses a scenario from a file that [was read](crate::read_file) from `path`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_beside(document: &Document, path: &FilePath) -> Result<Self, ScenarioError> {
        Scenario::read_in(document, path.parent().unwrap_or(FilePath::new("")))
    }

    /// Parses a scenario from its file; traces are looked up in the current directory.
    /// [`crate::expand`] checks the values; those of a line are checked at once.
    ///
    /// # Errors
    /// [`ScenarioError::File`]: invalid TOML, an unknown or missing field, a value of a wrong type;
    /// also errors in the values of a line.
    pub fn read(document: &Document) -> Result<Self, ScenarioError> {
        Scenario::read_in(document, FilePath::new(""))
    }

    fn read_in(document: &Document, directory: &FilePath) -> Result<Self, ScenarioError> {
        let mut scenario: Scenario = document.read()?;
        scenario.settle(directory)?;
        Ok(scenario)
    }

    /// Parses a scenario from the text of its file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Scenario::read(&Document::new("scenario", text))
    }

    /// Keys that are given but have no effect.
    pub fn warnings(&self, document: &Document) -> Vec<Diagnostic> {
        warnings(&self.run, document)
    }

    /// Capacity of the ingress queue, packets, of a station with these coding parameters.
    pub fn ingress_packets_for(&self, coding: &CodingParams) -> usize {
        self.ingress_packets.unwrap_or_else(|| coding.ingress_packets_default())
    }
}

fn one() -> u32 {
    1
}

/// Coding keys of these runs that are given but have no effect, and old names of keys.
pub(crate) fn warnings(runs: &[RunTable], document: &Document) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let Some(codings) = &run.coding else { continue };
        let coded: Vec<Path> = run.path.iter().copied().filter(|path| path.is_coded()).collect();
        if coded.is_empty() {
            let message = format!("run[{index}].coding has no effect: its path has no coded one");
            problems.push(Problem::new(format!("run.{index}.coding"), message));
            continue;
        }
        for (place, coding) in codings.iter().enumerate() {
            let table = match codings {
                OneOrMany::One(_) => format!("run.{index}.coding"),
                OneOrMany::Many(_) => format!("run.{index}.coding.{place}"),
            };
            problems.extend(idle_keys(coding, &coded, index, &table));
            let name = document.given(&format!("{table}.preset"));
            if name.is_some_and(|name| name.contains("default")) {
                let message = format!(
                    "run[{index}].coding.preset = \"default\" is an old name: expected \"block\""
                );
                problems.push(Problem::new(format!("{table}.preset"), message));
            }
        }
    }
    problems.into_iter().map(|problem| *document.warn(problem)).collect()
}

/// Keys of a coding table without effect on any of these paths.
fn idle_keys(coding: &CodingTable, paths: &[Path], run: usize, table: &str) -> Vec<Problem> {
    let has_helper = |path: &Path| *path == Path::CodedHelper;
    let without = |path: &Path| coding.without_effect(has_helper(path));
    let first = paths.first().map(&without).unwrap_or_default();
    let idle = first.into_iter().filter(|key| paths.iter().all(|path| without(path).contains(key)));
    idle.map(|key| {
        let mut presets = paths.iter().map(|path| coding.preset_for(has_helper(path)).to_string());
        let preset = presets.next_back().unwrap_or_default();
        let message = format!("run[{run}].coding.{key} has no effect: the preset is \"{preset}\"");
        Problem::new(format!("{table}.{key}"), message)
    })
    .collect()
}

/// Parses a rate or a list of rates.
fn rates<'de, D: Deserializer<'de>>(d: D) -> Result<Option<OneOrMany<f64>>, D::Error> {
    Ok(Some(match OneOrMany::<Rate>::deserialize(d)? {
        OneOrMany::One(rate) => OneOrMany::One(rate.0),
        OneOrMany::Many(rates) => OneOrMany::Many(rates.iter().map(|rate| rate.0).collect()),
    }))
}

/// Where stations have the erasure ratios of links from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkErrorsKind {
    /// They count what is missing.
    #[default]
    Measured,
    /// They are told the run's e1, e2 and e3 before it begins.
    Fixed,
}

/// The `[medium]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediumTable {
    /// One channel for all, or one for each station.
    pub duplex: Duplex,
    /// PHY rate, bits per second.
    #[serde(deserialize_with = "rate::whole")]
    #[schemars(with = "Rate")]
    pub rate_bps: u64,
    /// Time a frame takes beyond its bits, microseconds.
    #[serde(default)]
    pub overhead_us: f64,
    /// Round trip of the propagation alone, milliseconds; each direction takes half.
    pub rtt_ms: f64,
    /// Frames a station's interface holds.
    pub queue_frames: usize,
    /// What finds the queue full is dropped, as behind a switch or a modem, and the station does
    /// not see it; else it is pushed back.
    #[serde(default)]
    pub drops_when_full: bool,
    /// Time that comes on top of a frame's propagation, milliseconds: its mean, or its most where
    /// it is uniform. Frames stay in order.
    #[serde(default)]
    pub jitter_ms: f64,
    /// How that time is distributed.
    #[serde(default)]
    pub jitter_shape: JitterShape,
    /// Retransmissions by the MAC when the addressed station did not hear.
    #[serde(default)]
    pub retry_limit: u32,
    /// Links in a row between S and D, 1 to [`crate::HOPS_MAX`], with hosts between them
    /// that forward. Each link has the rate, the round trip and the queue given here, and an equal
    /// share of the losses: e3 is that of all together.
    #[serde(default = "one_hop")]
    pub hops: usize,
    /// Lab, path `relay`: relays in a row between S and D on this one channel, 1 to
    /// [`crate::RELAYS_MAX`]. Each station hears the next ones alone, and all wait for each other;
    /// each link loses an equal share: e3 is that of all together.
    #[serde(default = "one_relay")]
    pub relays: usize,
}

fn one_relay() -> usize {
    1
}

fn one_hop() -> usize {
    1
}

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JitterShape {
    /// Exponentially.
    #[default]
    Exponential,
    /// Uniformly, from zero.
    Uniform,
}

/// Who may speak at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// One channel shared by all.
    Half,
    /// A channel for each station.
    Full,
}

/// A `[[run]]` table: source S, destination D, and where the path says so a helper H.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTable {
    /// How packets cross.
    pub path: OneOrMany<Path>,
    /// What loads it.
    pub transport: Transport,
    /// TCP only: the sender's congestion control.
    #[serde(default)]
    pub congestion: Option<OneOrMany<Congestion>>,
    /// Simulator, TCP only: which TCP the hosts have; the lab's have their kernel's.
    #[serde(default)]
    pub tcp: TcpPreset,
    /// UDP: offered bits of payload per second. TCP: the application's rate; none = all it can.
    #[serde(default, deserialize_with = "rates")]
    #[schemars(with = "Option<OneOrMany<Rate>>")]
    pub offered_bps: Option<OneOrMany<f64>>,
    /// UDP payload bytes per datagram; none = what fills the tunnel's MTU.
    #[serde(default)]
    pub datagram_bytes: Option<usize>,
    /// The direction of the load.
    #[serde(default)]
    pub direction: Direction,
    /// Erasure ratio S to D, and D to S where `e3_back` does not say another.
    pub e3: OneOrMany<f64>,
    /// Erasure ratio D to S; none = e3.
    #[serde(default)]
    pub e3_back: Option<f64>,
    /// Erasure ratio S to H (and D to H for the other direction is `e2`); none = e3 / 2.
    #[serde(default)]
    pub e1: Option<f64>,
    /// Erasure ratio H to D; none = e3 / 2. Links are alike in both directions.
    #[serde(default)]
    pub e2: Option<f64>,
    /// Seconds of load that are measured; a plan may say it once for all runs.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Coding parameters, for coded paths.
    #[serde(default)]
    pub coding: Option<OneOrMany<CodingTable>>,
    /// What relays combine, for path `relay`.
    #[serde(default)]
    pub relay: Option<OneOrMany<RelayTable>>,
    /// What the nodes send over.
    #[serde(default)]
    pub underlay: UnderlayKind,
    /// Mean length of the bursts in which frames are lost (Gilbert's channel on every link that
    /// loses any), in frames; none = every frame by itself.
    #[serde(default)]
    pub burst_frames: Option<OneOrMany<f64>>,
    /// Lab, TCP only: whether the kernels at both ends use ECN (RFC 3168).
    #[serde(default)]
    pub ecn: Option<OneOrMany<bool>>,
    /// Lab only: time between the datagrams of an echo beside the load, milliseconds; none = no
    /// echo.
    #[serde(default)]
    pub ping_interval_ms: Option<f64>,
    /// Lab, UDP only: later than this, a datagram is worth nothing, milliseconds.
    #[serde(default)]
    pub deadline_ms: Option<f64>,
    /// Lab only: congestion control of a second TCP flow from S to D, past the nodes, through the
    /// same interface. Nodes share it over the UDP underlay only.
    #[serde(default)]
    pub beside: Option<Congestion>,
    /// Lab only: seconds of load before the measured interval.
    #[serde(default)]
    pub warm_up_s: Option<f64>,
    /// Lab only: what lies between S and D.
    #[serde(default)]
    pub wire: Wire,
}

/// What lies between S and D.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// The emulated radio.
    #[default]
    Radio,
    /// A pair of virtual interfaces that takes no time, so that processors are the limit; it has
    /// nothing of `[medium]`. The nodes lose e3 of the frames that they receive by themselves.
    Veth,
}

/// How packets cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Path {
    /// The kernel's own interface, no Corridor at all.
    #[serde(rename = "kernel")]
    Kernel,
    /// Corridor's unreliable forwarder.
    #[serde(rename = "plain")]
    Plain,
    /// Network coded.
    #[serde(rename = "coded")]
    Coded,
    /// Network coded, with a helper that overhears.
    #[serde(rename = "coded+helper")]
    CodedHelper,
    /// Lab only: from relay to relay, each of which combines packets of opposite flows.
    #[serde(rename = "relay")]
    Relay,
}

impl Path {
    /// Whether packets are coded.
    pub fn is_coded(self) -> bool {
        matches!(self, Path::Coded | Path::CodedHelper)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Path::Kernel => "kernel",
            Path::Plain => "plain",
            Path::Coded => "coded",
            Path::CodedHelper => "coded+helper",
            Path::Relay => "relay",
        })
    }
}

/// What loads the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One TCP connection.
    Tcp,
    /// Datagrams at a constant rate.
    Udp,
}

/// Congestion control of a TCP sender. The lab has what the kernel has; the simulator has cubic,
/// reno and bbr of Linux on a line, and elsewhere all but bbr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Congestion {
    Cubic,
    Reno,
    NewReno,
    Sack,
    Vegas,
    Tahoe,
    Bbr,
}

impl fmt::Display for Congestion {
    /// The name that the kernel's `TCP_CONGESTION` socket option takes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Congestion::Cubic => "cubic",
            Congestion::Reno => "reno",
            Congestion::NewReno => "newreno",
            Congestion::Sack => "sack",
            Congestion::Vegas => "vegas",
            Congestion::Tahoe => "tahoe",
            Congestion::Bbr => "bbr",
        })
    }
}

/// The direction of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// S to D.
    #[default]
    Forward,
    /// S to D and D to S at once.
    Both,
}

/// What the nodes send over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnderlayKind {
    /// Raw Ethernet frames.
    #[default]
    Ethernet,
    /// UDP datagrams.
    Udp,
}
