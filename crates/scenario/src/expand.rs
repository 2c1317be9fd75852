//! Expands the lists in a scenario file to runs with one value each.

use core::time::Duration;

use corridor_air::{
    Duplex as AirDuplex, ErasureConfig, GilbertElliott, Jitter, Link, MediumConfig,
};
use corridor_proto::{
    CodingParams, CodingTable, ErasureRatios, LinkErrors, RelayTable, Role, StationConfig,
    StationId, bounds,
};

use crate::error::ScenarioError;
use crate::file::*;
use crate::line::check_line;
use crate::network::TcpPreset;
use crate::one_or_many::OneOrMany;
use crate::row::policy;
use crate::values::span;

/// Most runs of a scenario, repeats included.
pub const RUNS_MAX: usize = 1_000_000;
/// Longest load of one run, seconds.
pub const DURATION_S_MAX: f64 = 3_600.0;
/// Longest load before the measured interval, seconds.
pub const WARM_UP_S_MAX: f64 = 600.0;
/// Default time under load before the measured interval, by which slow start is over, seconds.
const WARM_UP_S: f64 = 1.0;
/// Longest time between two echoes, and longest deadline, milliseconds.
const SPAN_MS_MAX: f64 = 60_000.0;
/// Shortest time between two echoes, milliseconds: more frequent ones would be a load themselves.
const PING_INTERVAL_MS_MIN: f64 = 1.0;
/// Smallest UDP payload: sequence number and time of sending.
pub const DATAGRAM_BYTES_MIN: usize = 16;
/// Largest UDP payload: what fits into the longest frame.
pub const DATAGRAM_BYTES_MAX: usize = bounds::FRAME_LEN_MAX;
/// Longest Ethernet payload of the emulated radio, bytes.
pub const ETHERNET_MTU: usize = 1_500;

/// Most links in a row between S and D.
pub const HOPS_MAX: usize = 8;

/// Most relays in a row between S and D.
pub const RELAYS_MAX: usize = 6;

/// Index of the source in the medium.
pub const SOURCE: usize = 0;
/// Index of the destination in the medium.
pub const DESTINATION: usize = 1;
/// Index of the helper in the medium, where there is one.
pub const HELPER: usize = 2;
/// Index of the relay next to S in the medium, where there are any; the others follow.
pub const RELAY: usize = 2;

/// One run, with a single value in every field.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Position in the scenario, the same for all repeats.
    pub point: usize,
    /// Which repeat.
    pub replication: u64,
    /// How packets cross.
    pub path: Path,
    /// What loads it.
    pub transport: Transport,
    /// TCP only: congestion control.
    pub congestion: Option<Congestion>,
    /// Simulator, TCP only: the hosts' TCP.
    pub tcp: TcpPreset,
    /// Offered load; see [`RunTable::offered_bps`].
    pub offered_bps: Option<f64>,
    /// UDP payload bytes.
    pub datagram_bytes: Option<usize>,
    /// The direction of the load.
    pub direction: Direction,
    /// Erasure ratios.
    pub erasures: ErasureRatios,
    /// Erasure ratio D to S, if it differs from S to D.
    pub e3_back: Option<f64>,
    /// Length of the measured interval, seconds.
    pub duration_s: f64,
    /// Coding parameters as the file spells them.
    pub coding: CodingTable,
    /// What relays combine; `None` without relays.
    pub relay: Option<RelayTable>,
    /// What the nodes send over.
    pub underlay: UnderlayKind,
    /// Mean length of bursts of losses, frames; `None`: independent losses.
    pub burst_frames: Option<f64>,
    /// Settings that only the lab supports.
    pub lab: LabRun,
}

/// The settings of a run that only the lab supports.
#[derive(Clone, Debug, PartialEq)]
pub struct LabRun {
    /// Whether the kernels at both ends use ECN.
    pub ecn: bool,
    /// Time between the datagrams of an echo beside the load; `None`: no echo.
    pub ping_interval: Option<Duration>,
    /// UDP: a later datagram is worthless.
    pub deadline: Option<Duration>,
    /// Congestion control of a second TCP flow outside the tunnel.
    pub beside: Option<Congestion>,
    /// Time under load before the measured interval.
    pub warm_up: Duration,
    /// What lies between S and D.
    pub wire: Wire,
    /// Number of relays between S and D.
    pub relays: usize,
}

impl Default for LabRun {
    fn default() -> Self {
        LabRun {
            ecn: false,
            ping_interval: None,
            deadline: None,
            beside: None,
            warm_up: span(WARM_UP_S),
            wire: Wire::Radio,
            relays: 0,
        }
    }
}

impl Run {
    /// Number of stations on the medium: 2, 3 with a helper, or S, D and the relays.
    pub fn stations(&self) -> usize {
        match self.path {
            Path::CodedHelper => 3,
            Path::Relay => 2 + self.lab.relays,
            Path::Kernel | Path::Plain | Path::Coded => 2,
        }
    }

    /// Indices in the medium of the stations from S to D, including those between them, in order.
    pub fn chain(&self) -> Vec<usize> {
        let between = RELAY..RELAY + self.lab.relays;
        [SOURCE].into_iter().chain(between).chain([DESTINATION]).collect()
    }

    /// What is coded or combined, in a few words; "-" for nothing.
    pub fn policy(&self) -> String {
        match &self.relay {
            Some(relay) => policy(relay),
            None if self.path.is_coded() => policy(&self.coding),
            None => "-".to_owned(),
        }
    }

    /// The coding parameters, for paths with coding.
    pub fn coding_params(&self) -> CodingParams {
        // The unreliable forwarder has the queue of blocks, a FIFO.
        self.coding.resolve(self.path != Path::Coded)
    }

    /// A few words for progress lines: path with its coding preset, load, losses.
    pub fn title(&self) -> String {
        let load = match (self.transport, self.congestion, self.offered_bps) {
            (Transport::Tcp, Some(congestion), None) => format!("tcp {congestion}"),
            (Transport::Tcp, Some(congestion), Some(bps)) => {
                format!("tcp {congestion} {:.3} Mbit/s", bps / 1e6)
            }
            (_, _, bps) => format!("udp {:.3} Mbit/s", bps.unwrap_or(0.0) / 1e6),
        };
        let both = if self.direction == Direction::Both { ", both ways" } else { "" };
        let ecn = if self.lab.ecn { ", ecn" } else { "" };
        let bursts =
            self.burst_frames.map_or(String::new(), |frames| format!(" in bursts of {frames}"));
        let lost = 100.0 * self.erasures.e3;
        let back = self.e3_back.map(|ratio| format!(" and {:.1} %", 100.0 * ratio));
        let back = back.unwrap_or_default();
        let coding = match self.policy().as_str() {
            "-" => String::new(),
            policy => format!(" {policy}"),
        };
        format!("{}{coding}, {load}{both}{ecn}, e3 {lost:.1} %{back}{bursts}", self.path)
    }
}

/// The runs of a scenario, in the order in which to run them: all points once, then all again for
/// the next repeat. Lists multiply in the order path, congestion, offered_bps, e3, burst_frames,
/// ecn, coding or relay; lists that do not apply to a path do not multiply it.
///
/// # Errors
/// The first value that is out of its range.
pub fn expand(scenario: &Scenario) -> Result<Vec<Run>, ScenarioError> {
    check_scenario(scenario)?;
    let mut points: Vec<Run> = Vec::new();
    for (index, table) in scenario.run.iter().enumerate() {
        expand_table(index, table, &mut points)?;
        let given = points.len().saturating_mul(scenario.repeats as usize);
        if given > RUNS_MAX {
            return Err(ScenarioError::TooManyRuns { given, max: RUNS_MAX });
        }
        check_hops(&scenario.medium, index, table)?;
        check_relays(&scenario.medium, index, table)?;
        let of_table = points.iter_mut().filter(|run| run.point == index && run.relay.is_some());
        of_table.for_each(|run| run.lab.relays = scenario.medium.relays);
        check_line(scenario, index, table)?;
        for run in points.iter().filter(|run| run.point >= index) {
            check_coding(scenario, index, run)?;
        }
    }
    for (point, run) in points.iter_mut().enumerate() {
        run.point = point;
    }
    let repeat = |replication: u32| {
        points.iter().map(move |run| Run { replication: u64::from(replication), ..run.clone() })
    };
    Ok((0..scenario.repeats).flat_map(repeat).collect())
}

/// The medium of a run: S is station 0, D is 1, and H, if there is one, is 2. S-D loses e3, S-H e1,
/// H-D e2, each in bursts of its own if the run says so; both directions are alike, unless the run
/// has another ratio from D to S. Each direction has half of the round trip.
///
/// On several hops the medium's stations are the ends of the links, from S to D: hop k is between
/// 2k and 2k + 1, and loses 1 - (1 - e3)^(1 / hops). With relays they are S, D, and the relays from
/// S to D, each of which hears its neighbours; links have the same losses as hops.
pub fn medium_config(scenario: &Scenario, run: &Run, seed: u64) -> MediumConfig {
    let table = &scenario.medium;
    let hops = if run.path == Path::Relay { run.lab.relays + 1 } else { table.hops };
    let share = |all: f64| match hops {
        1 => all,
        hops => 1.0 - libm::pow(1.0 - all, 1.0 / hops as f64),
    };
    let e3 = run.erasures.e3;
    let (there, back) = (share(e3), share(run.e3_back.unwrap_or(e3)));
    let mut pairs: Vec<_> = match run.path {
        Path::Relay => run.chain().windows(2).map(|w| (w[0], w[1], there, back)).collect(),
        _ => (0..hops).map(|hop| (2 * hop, 2 * hop + 1, there, back)).collect(),
    };
    if run.path == Path::CodedHelper {
        let (e1, e2) = (run.erasures.e1, run.erasures.e2);
        pairs.extend([(SOURCE, HELPER, e1, e1), (HELPER, DESTINATION, e2, e2)]);
    }
    let both_ways = |(a, b, there, back): (usize, usize, f64, f64)| {
        let retry_limit = table.retry_limit;
        let link = |from, to, ratio| Link {
            from,
            to,
            erasure: erasure(ratio, run.burst_frames),
            retry_limit,
        };
        [link(a, b, there), link(b, a, back)]
    };
    MediumConfig {
        mode: match table.duplex {
            Duplex::Half => AirDuplex::Half,
            Duplex::Full => AirDuplex::Full,
        },
        rate_bps: table.rate_bps,
        overhead: span(table.overhead_us / 1e6),
        propagation: span(table.rtt_ms / 2e3),
        jitter: match (table.jitter_shape, span(table.jitter_ms / 1e3)) {
            (_, Duration::ZERO) => Jitter::None,
            (JitterShape::Exponential, mean) => Jitter::Exponential(mean),
            (JitterShape::Uniform, most) => Jitter::Uniform(most),
        },
        queue_frames: table.queue_frames,
        drops_when_full: table.drops_when_full,
        stations: run.stations().max(2 * table.hops),
        links: pairs.into_iter().flat_map(both_ways).collect(),
        seed,
        replication: run.replication,
    }
}

/// The erasure process of a link.
pub(crate) fn erasure(ratio: f64, burst_frames: Option<f64>) -> ErasureConfig {
    match burst_frames {
        Some(frames) if ratio > 0.0 => {
            ErasureConfig::GilbertElliott(GilbertElliott::simple(ratio, frames))
        }
        _ => ratio.into(),
    }
}

fn expand_table(index: usize, table: &RunTable, runs: &mut Vec<Run>) -> Result<(), ScenarioError> {
    check_table(index, table)?;
    let congestions = match (&table.congestion, table.transport) {
        (Some(congestions), _) => congestions.iter().copied().map(Some).collect(),
        (None, Transport::Tcp) => vec![Some(Congestion::Cubic)],
        (None, Transport::Udp) => vec![None],
    };
    let offers = match &table.offered_bps {
        Some(offers) => offers.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let codings = match &table.coding {
        Some(codings) => codings.iter().cloned().collect(),
        None => vec![CodingTable::default()],
    };
    let relays = match &table.relay {
        Some(relays) => relays.iter().cloned().collect(),
        None => vec![RelayTable::default()],
    };
    let bursts = match &table.burst_frames {
        Some(bursts) => bursts.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let ecns = table.ecn.as_ref().map_or(vec![false], |ecn| ecn.iter().copied().collect());
    // Conditions are multiplied before the paths.
    let conditions: Vec<(f64, Option<f64>, bool)> = table
        .e3
        .iter()
        .flat_map(|&e3| bursts.iter().map(move |&burst| (e3, burst)))
        .flat_map(|(e3, burst)| ecns.iter().map(move |&ecn| (e3, burst, ecn)))
        .collect();
    let duration_s = table.duration_s.unwrap_or_default();
    for &path in table.path.iter() {
        // Rows and daemons have to name the preset, even if it is the default.
        let with_preset = |coding: &CodingTable| CodingTable {
            preset: Some(coding.preset_for(path == Path::CodedHelper)),
            ..coding.clone()
        };
        let ways: Vec<(CodingTable, Option<RelayTable>)> = match path {
            Path::Relay => {
                relays.iter().map(|it| (CodingTable::default(), Some(it.clone()))).collect()
            }
            path if path.is_coded() => codings.iter().map(|it| (with_preset(it), None)).collect(),
            _ => vec![(CodingTable::default(), None)],
        };
        for &congestion in &congestions {
            for &offered_bps in &offers {
                for &(e3, burst_frames, ecn) in &conditions {
                    for (coding, relay) in &ways {
                        runs.push(Run {
                            // The table for now: `expand` numbers the points once it has them all.
                            point: index,
                            replication: 0,
                            path,
                            transport: table.transport,
                            congestion,
                            tcp: table.tcp,
                            offered_bps,
                            datagram_bytes: table.datagram_bytes,
                            direction: table.direction,
                            erasures: ErasureRatios {
                                e1: table.e1.unwrap_or(e3 / 2.0),
                                e2: table.e2.unwrap_or(e3 / 2.0),
                                e3,
                            },
                            e3_back: table.e3_back,
                            duration_s,
                            coding: coding.clone(),
                            relay: relay.clone(),
                            underlay: table.underlay,
                            burst_frames,
                            lab: LabRun { ecn, ..lab_run(table) },
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

fn lab_run(table: &RunTable) -> LabRun {
    let ms = |ms: Option<f64>| ms.map(|ms| span(ms / 1e3));
    LabRun {
        ecn: false,
        ping_interval: ms(table.ping_interval_ms),
        deadline: ms(table.deadline_ms),
        beside: table.beside,
        warm_up: span(table.warm_up_s.unwrap_or(WARM_UP_S)),
        wire: table.wire,
        relays: 0,
    }
}

fn check_scenario(scenario: &Scenario) -> Result<(), ScenarioError> {
    if scenario.name.trim().is_empty() {
        return Err(ScenarioError::value("name", "\"\"", "a name"));
    }
    if !(1..=RUNS_MAX as u32).contains(&scenario.repeats) {
        let expected = format!("1 to {RUNS_MAX}");
        return Err(ScenarioError::value("repeats", scenario.repeats, expected));
    }
    if let Some(packets) = scenario.ingress_packets
        && !(1..=bounds::INGRESS_PACKETS_MAX).contains(&packets)
    {
        let expected = format!("1 to {} packets", bounds::INGRESS_PACKETS_MAX);
        return Err(ScenarioError::value("ingress_packets", packets, expected));
    }
    if scenario.run.is_empty() {
        return Err(ScenarioError::value("run", "[]", "one [[run]] table or more"));
    }
    check_medium(&scenario.medium)
}

fn check_medium(medium: &MediumTable) -> Result<(), ScenarioError> {
    let span_us_max = corridor_air::MAX_SPAN.as_secs_f64() * 1e6;
    if !(1_000..=100_000_000_000).contains(&medium.rate_bps) {
        let expected = "1000 to 100000000000 bit/s";
        return Err(ScenarioError::value("medium.rate_bps", medium.rate_bps, expected));
    }
    if !(0.0..=span_us_max).contains(&medium.overhead_us) {
        let expected = format!("0 to {span_us_max} us");
        return Err(ScenarioError::value("medium.overhead_us", medium.overhead_us, expected));
    }
    if !(0.0..=2.0 * span_us_max / 1e3).contains(&medium.rtt_ms) {
        let expected = format!("0 to {} ms", 2.0 * span_us_max / 1e3);
        return Err(ScenarioError::value("medium.rtt_ms", medium.rtt_ms, expected));
    }
    if !(0.0..=span_us_max / 1e3).contains(&medium.jitter_ms) {
        let expected = format!("0 to {} ms", span_us_max / 1e3);
        return Err(ScenarioError::value("medium.jitter_ms", medium.jitter_ms, expected));
    }
    if !(1..=corridor_air::MAX_QUEUE_FRAMES).contains(&medium.queue_frames) {
        let expected = format!("1 to {} frames", corridor_air::MAX_QUEUE_FRAMES);
        return Err(ScenarioError::value("medium.queue_frames", medium.queue_frames, expected));
    }
    if !(1..=HOPS_MAX).contains(&medium.hops) {
        return Err(ScenarioError::value("medium.hops", medium.hops, format!("1 to {HOPS_MAX}")));
    }
    if !(1..=RELAYS_MAX).contains(&medium.relays) {
        let expected = format!("1 to {RELAYS_MAX}");
        return Err(ScenarioError::value("medium.relays", medium.relays, expected));
    }
    Ok(())
}

/// Several hops forward IP, from S to D and back.
fn check_hops(medium: &MediumTable, index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    if medium.hops == 1 {
        return Ok(());
    }
    let refuse = |name: &str, given: &dyn ToString, expected: &str| {
        let expected = format!("{expected} where medium.hops is {}", medium.hops);
        Err(ScenarioError::value(format!("run[{index}].{name}"), given.to_string(), expected))
    };
    if table.path.iter().any(|&path| path == Path::CodedHelper) {
        return refuse("path", &Path::CodedHelper, "a path without a helper");
    }
    let has_nodes = table.path.iter().any(|&path| path != Path::Kernel);
    if has_nodes && table.underlay == UnderlayKind::Ethernet {
        return refuse("underlay", &"ethernet", "udp");
    }
    if table.wire == Wire::Veth {
        return refuse("wire", &"veth", "radio");
    }
    Ok(())
}

/// Relays overhear each other on one channel.
fn check_relays(medium: &MediumTable, index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("run[{index}].{name}");
    let refuse = |name: &str, given: &dyn ToString, expected: &str| {
        Err(ScenarioError::value(field(name), given.to_string(), expected))
    };
    if !table.path.iter().any(|&path| path == Path::Relay) {
        return match table.relay {
            Some(_) => refuse("relay", &"a table", "nothing without path = \"relay\""),
            None => Ok(()),
        };
    }
    if medium.hops != 1 {
        return refuse("path", &Path::Relay, "another path where medium.hops is given");
    }
    if table.underlay == UnderlayKind::Udp {
        return refuse("underlay", &"udp", "ethernet: over UDP a relay overhears nothing");
    }
    if table.wire == Wire::Veth {
        return refuse("wire", &"veth", "radio: a relay has two neighbours");
    }
    for relay in table.relay.iter().flat_map(OneOrMany::iter) {
        relay.resolve().map_err(|source| ScenarioError::Coding { run: index, source })?;
    }
    match &table.relay {
        Some(relays) if relays.is_empty() => refuse("relay", &"[]", "one value or more"),
        _ => Ok(()),
    }
}

fn check_table(index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("run[{index}].{name}");
    let empty = |name: &str| ScenarioError::value(field(name), "[]", "one value or more");
    if table.path.is_empty() {
        return Err(empty("path"));
    }
    if table.e3.is_empty() {
        return Err(empty("e3"));
    }
    let has_helper = table.path.iter().any(|&path| path == Path::CodedHelper);
    if has_helper && table.underlay == UnderlayKind::Udp {
        let expected = "ethernet: over UDP a helper overhears nothing";
        return Err(ScenarioError::value(field("underlay"), "udp", expected));
    }
    let e3 = table.e3.iter().map(|&e| ("e3", e));
    let others = [("e3_back", table.e3_back), ("e1", table.e1), ("e2", table.e2)];
    let others = others.into_iter().filter_map(|(name, ratio)| Some((name, ratio?)));
    for (name, ratio) in e3.chain(others) {
        if !(0.0..=1.0).contains(&ratio) {
            return Err(ScenarioError::value(field(name), ratio, "an erasure ratio from 0 to 1"));
        }
    }
    let expected = format!("more than 0, at most {DURATION_S_MAX} s");
    match table.duration_s {
        None => return Err(ScenarioError::missing(field("duration_s"), expected)),
        Some(duration_s) if !(duration_s > 0.0 && duration_s <= DURATION_S_MAX) => {
            return Err(ScenarioError::value(field("duration_s"), duration_s, expected));
        }
        Some(_) => {}
    }
    if table.coding.as_ref().is_some_and(OneOrMany::is_empty) {
        return Err(empty("coding"));
    }
    check_load(index, table)?;
    check_bursts(index, table)?;
    check_lab(index, table)
}

/// Checks bursts with each loss ratio: short bursts cannot lose much.
fn check_bursts(index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    let Some(bursts) = &table.burst_frames else { return Ok(()) };
    let field = format!("run[{index}].burst_frames");
    if bursts.is_empty() {
        return Err(ScenarioError::value(field, "[]", "one value or more"));
    }
    let e3 = table.e3.iter().copied();
    let ratios: Vec<f64> = e3.chain(table.e3_back).chain(table.e1).chain(table.e2).collect();
    for &frames in bursts.iter() {
        // With or without losses, a burst has at least one frame.
        if !(frames >= 1.0 && frames.is_finite()) {
            return Err(ScenarioError::value(field, frames, "1 frame or more"));
        }
        for &ratio in &ratios {
            if let Err(error) = erasure(ratio, Some(frames)).check() {
                let expected = format!("a mean length that fits a loss ratio of {ratio}: {error}");
                return Err(ScenarioError::value(field, frames, expected));
            }
        }
    }
    Ok(())
}

/// Checks settings that only the lab supports.
fn check_lab(index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("run[{index}].{name}");
    let refuse = |name: &str, given: &dyn ToString, expected: &str| {
        Err(ScenarioError::value(field(name), given.to_string(), expected))
    };
    if let Some(ecn) = &table.ecn {
        if ecn.is_empty() {
            return refuse("ecn", &"[]", "one value or more");
        }
        if table.transport == Transport::Udp {
            return refuse("ecn", &"given", "nothing: UDP has none");
        }
    }
    if let Some(ms) = table.ping_interval_ms
        && !(PING_INTERVAL_MS_MIN..=SPAN_MS_MAX).contains(&ms)
    {
        let expected = format!("{PING_INTERVAL_MS_MIN} to {SPAN_MS_MAX} ms");
        return refuse("ping_interval_ms", &ms, &expected);
    }
    match table.deadline_ms {
        Some(ms) if table.transport == Transport::Tcp => {
            return refuse("deadline_ms", &ms, "nothing: TCP delivers late rather than never");
        }
        Some(ms) if !(ms > 0.0 && ms <= SPAN_MS_MAX) => {
            return refuse("deadline_ms", &ms, &format!("more than 0, at most {SPAN_MS_MAX} ms"));
        }
        _ => {}
    }
    if let Some(seconds) = table.warm_up_s
        && !(0.0..=WARM_UP_S_MAX).contains(&seconds)
    {
        return refuse("warm_up_s", &seconds, &format!("0 to {WARM_UP_S_MAX} s"));
    }
    if let Some(congestion) = table.beside {
        let has_nodes = table.path.iter().any(|&path| path != Path::Kernel);
        if table.underlay == UnderlayKind::Ethernet && has_nodes {
            return refuse("beside", &congestion, "nothing, or underlay = \"udp\"");
        }
    }
    check_wire(index, table)
}

/// A pair of virtual interfaces has two ends, and loses nothing itself.
fn check_wire(index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    if table.wire == Wire::Radio {
        return Ok(());
    }
    let refuse =
        |expected: &str| Err(ScenarioError::value(format!("run[{index}].wire"), "veth", expected));
    if table.path.iter().any(|&path| path == Path::CodedHelper) {
        return refuse("radio: a helper overhears nothing on a pair of interfaces");
    }
    let loses = table.e3.iter().any(|&ratio| ratio > 0.0);
    if loses && table.path.iter().any(|&path| path == Path::Kernel) {
        return refuse("radio, or e3 = 0: with veth, only nodes drop frames");
    }
    if table.burst_frames.is_some() {
        return refuse("radio: with veth, losses are independent");
    }
    if table.e3_back.is_some() {
        return refuse("radio: with veth, losses are equal in both directions");
    }
    Ok(())
}

fn check_load(index: usize, table: &RunTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("run[{index}].{name}");
    let empty = |name: &str| ScenarioError::value(field(name), "[]", "one value or more");
    if let Some(congestion) = &table.congestion {
        if congestion.is_empty() {
            return Err(empty("congestion"));
        }
        if table.transport == Transport::Udp {
            let given = congestion.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(ScenarioError::value(field("congestion"), given, "nothing: UDP has none"));
        }
    }
    match &table.offered_bps {
        None if table.transport == Transport::Udp => {
            let expected = "the bits of payload per second that UDP sends";
            return Err(ScenarioError::missing(field("offered_bps"), expected));
        }
        Some(offers) if offers.is_empty() => return Err(empty("offered_bps")),
        Some(offers) => {
            for &bps in offers.iter() {
                if !(1.0..=1e11).contains(&bps) {
                    let expected = "1 to 100000000000 bit/s";
                    return Err(ScenarioError::value(field("offered_bps"), bps, expected));
                }
            }
        }
        None => {}
    }
    match table.datagram_bytes {
        Some(bytes) if table.transport == Transport::Tcp => {
            let expected = "nothing: TCP has no datagrams";
            Err(ScenarioError::value(field("datagram_bytes"), bytes, expected))
        }
        Some(bytes) if !(DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&bytes) => {
            let expected = format!("{DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX} bytes");
            Err(ScenarioError::value(field("datagram_bytes"), bytes, expected))
        }
        _ => Ok(()),
    }
}

/// Has the protocol check the coding parameters, so that the last of many runs does not fail after
/// an hour.
fn check_coding(scenario: &Scenario, index: usize, run: &Run) -> Result<(), ScenarioError> {
    if !run.path.is_coded() {
        return Ok(());
    }
    let helper = (run.path == Path::CodedHelper).then_some(StationId(HELPER as u16 + 1));
    let (frame_len_max, frame_len_min) = match run.underlay {
        UnderlayKind::Ethernet => (ETHERNET_MTU, 46),
        UnderlayKind::Udp => (ETHERNET_MTU - 28, 0),
    };
    let config = StationConfig {
        id: StationId(SOURCE as u16 + 1),
        role: Role::Endpoint { peer: StationId(DESTINATION as u16 + 1), helper },
        security: [0; 32].into(),
        coding: run.coding_params(),
        link_errors: LinkErrors::Measured,
        ingress_packets: scenario.ingress_packets_for(&run.coding_params()),
        frame_len_max,
        frame_len_min,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    config.check().map_err(|source| ScenarioError::Coding { run: index, source })
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
