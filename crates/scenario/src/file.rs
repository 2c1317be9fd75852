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
    /// Short description.
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
            let message = format!("run[{index}].coding has no effect: its path is not coded");
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
                    "run[{index}].coding.preset = \"default\" is deprecated: use \"block\""
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
    /// Stations measure them from missing frames.
    #[default]
    Measured,
    /// Stations are given the run's e1, e2 and e3 in advance.
    Fixed,
}

/// The `[medium]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediumTable {
    /// Whether the channel is half-duplex or full-duplex.
    pub duplex: Duplex,
    /// PHY rate, bits per second.
    #[serde(deserialize_with = "rate::whole")]
    #[schemars(with = "Rate")]
    pub rate_bps: u64,
    /// Per-frame overhead on the channel, microseconds.
    #[serde(default)]
    pub overhead_us: f64,
    /// Round-trip propagation delay, milliseconds; half in each direction.
    pub rtt_ms: f64,
    /// Interface queue of a station, frames.
    pub queue_frames: usize,
    /// Drop frames when the queue is full, unseen by the station, as behind a switch or a modem;
    /// otherwise the station sees backpressure.
    #[serde(default)]
    pub drops_when_full: bool,
    /// Random delay added to a frame's propagation, milliseconds: its mean, or its maximum if
    /// uniform. Frames stay in order.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Distribution of the jitter.
    #[serde(default)]
    pub jitter_shape: JitterShape,
    /// Maximum number of MAC retransmissions of a frame that its receiver missed.
    #[serde(default)]
    pub retry_limit: u32,
    /// Number of links in a row between S and D, 1 to 8, with forwarding hosts between them. Each
    /// link has the rate, round-trip time and queue given here and an equal share of the losses: e3
    /// is the total.
    #[serde(default = "one_hop")]
    pub hops: usize,
    /// Lab, path `relay`: number of relays in a row between S and D on this channel, 1 to 6. Each
    /// station hears only its neighbours, and all share the channel. Each link has an equal share
    /// of the losses: e3 is the total.
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
    /// Exponential.
    #[default]
    Exponential,
    /// Uniform, from zero.
    Uniform,
}

/// Who may speak at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// One channel shared by all stations.
    Half,
    /// A separate channel for each station.
    Full,
}

/// A `[[run]]` table: source S, destination D, and where the path says so a helper H.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTable {
    /// How packets are carried.
    pub path: OneOrMany<Path>,
    /// Transport protocol of the load.
    pub transport: Transport,
    /// TCP only: the sender's congestion control.
    #[serde(default)]
    pub congestion: Option<OneOrMany<Congestion>>,
    /// Simulator, TCP only: TCP implementation of the hosts; the lab uses the kernel's.
    #[serde(default)]
    pub tcp: TcpPreset,
    /// UDP: offered load, bits of payload per second. TCP: the application's rate; none =
    /// unlimited.
    #[serde(default, deserialize_with = "rates")]
    #[schemars(with = "Option<OneOrMany<Rate>>")]
    pub offered_bps: Option<OneOrMany<f64>>,
    /// UDP payload per datagram, bytes; none = as much as fits the tunnel's MTU.
    #[serde(default)]
    pub datagram_bytes: Option<usize>,
    /// Direction of the load.
    #[serde(default)]
    pub direction: Direction,
    /// Erasure ratio S to D, and D to S unless `e3_back` is set.
    pub e3: OneOrMany<f64>,
    /// Erasure ratio D to S; none = e3.
    #[serde(default)]
    pub e3_back: Option<f64>,
    /// Erasure ratio S to H (D to H, for the other direction, is `e2`); none = e3 / 2.
    #[serde(default)]
    pub e1: Option<f64>,
    /// Erasure ratio H to D; none = e3 / 2. Links are symmetric.
    #[serde(default)]
    pub e2: Option<f64>,
    /// Length of the measured interval, seconds; a plan may set it for all runs.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Coding parameters, for coded paths.
    #[serde(default)]
    pub coding: Option<OneOrMany<CodingTable>>,
    /// Relay parameters, for path `relay`.
    #[serde(default)]
    pub relay: Option<OneOrMany<RelayTable>>,
    /// Underlay of the nodes.
    #[serde(default)]
    pub underlay: UnderlayKind,
    /// Mean length of loss bursts, frames (Gilbert model, on every lossy link); none = independent
    /// losses.
    #[serde(default)]
    pub burst_frames: Option<OneOrMany<f64>>,
    /// Lab, TCP only: whether the kernels at both ends use ECN (RFC 3168).
    #[serde(default)]
    pub ecn: Option<OneOrMany<bool>>,
    /// Lab only: interval between UDP echo requests beside the load, milliseconds; none = no echo.
    #[serde(default)]
    pub ping_interval_ms: Option<f64>,
    /// Lab, UDP only: delay after which a datagram counts as useless, milliseconds.
    #[serde(default)]
    pub deadline_ms: Option<f64>,
    /// Lab only: congestion control of a second TCP flow from S to D that bypasses the nodes on the
    /// same interface. Nodes can share the interface only with the UDP underlay.
    #[serde(default)]
    pub beside: Option<Congestion>,
    /// Lab only: load before the measured interval, seconds.
    #[serde(default)]
    pub warm_up_s: Option<f64>,
    /// Lab only: medium between S and D.
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
    /// A veth pair without delay, so that the CPU is the limit; `[medium]` does not apply. The
    /// nodes drop a share e3 of received frames themselves.
    Veth,
}

/// How packets cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Path {
    /// The kernel's interface, without Corridor.
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
    /// Lab only: through relays that combine packets of opposite flows.
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
