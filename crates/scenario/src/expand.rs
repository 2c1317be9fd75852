//! From lists in a scenario file to one value per run.

use core::time::Duration;

use corridor_air::{Duplex as AirDuplex, Link, MediumConfig};
use corridor_proto::{
    CodingTable, ErasureRatios, LinkErrors, Role, StationConfig, StationId, bounds,
};

use crate::error::ScenarioError;
use crate::file::*;

/// Most runs of a scenario, repeats included.
pub const RUNS_MAX: usize = 100_000;
/// Longest load of one run, seconds.
pub const DURATION_S_MAX: f64 = 3_600.0;
/// Least UDP payload: sequence number and time of sending.
pub const DATAGRAM_BYTES_MIN: usize = 16;
/// Largest UDP payload: what fits into the longest frame.
pub const DATAGRAM_BYTES_MAX: usize = bounds::FRAME_LEN_MAX;
/// Longest Ethernet payload of the emulated radio, bytes.
pub const ETHERNET_MTU: usize = 1_500;

/// Index of the source in the medium.
pub const SOURCE: usize = 0;
/// Index of the destination in the medium.
pub const DESTINATION: usize = 1;
/// Index of the helper in the medium, where there is one.
pub const HELPER: usize = 2;

/// One run, every field a single value.
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
    /// TCP only.
    pub congestion: Option<Congestion>,
    /// Offered load; see [`RunTable::offered_bps`].
    pub offered_bps: Option<f64>,
    /// UDP payload bytes.
    pub datagram_bytes: Option<usize>,
    /// Which way the load goes.
    pub direction: Direction,
    /// Erasure ratios.
    pub erasures: ErasureRatios,
    /// Seconds measured.
    pub duration_s: f64,
    /// Coding parameters as the file spells them.
    pub coding: CodingTable,
    /// What the nodes send over.
    pub underlay: UnderlayKind,
}

impl Run {
    /// Stations on the medium: 2, or 3 with a helper.
    pub fn stations(&self) -> usize {
        if self.path == Path::CodedHelper { 3 } else { 2 }
    }

    /// A few words for progress lines: path, load, losses.
    pub fn title(&self) -> String {
        let load = match (self.transport, self.congestion, self.offered_bps) {
            (Transport::Tcp, Some(congestion), None) => format!("tcp {congestion}"),
            (Transport::Tcp, Some(congestion), Some(bps)) => {
                format!("tcp {congestion} {:.3} Mbit/s", bps / 1e6)
            }
            (_, _, bps) => format!("udp {:.3} Mbit/s", bps.unwrap_or(0.0) / 1e6),
        };
        let both = if self.direction == Direction::Both { ", both ways" } else { "" };
        format!("{}, {load}{both}, e3 {:.1} %", self.path, 100.0 * self.erasures.e3)
    }
}

/// The runs of a scenario, in the order in which they are to be run: all points once, then all
/// again for the next repeat. Lists multiply in the order path, congestion, offered_bps, e3,
/// coding; a path without coding is not multiplied by the list of codings.
///
/// # Errors
/// The first value out of its range.
pub fn expand(scenario: &Scenario) -> Result<Vec<Run>, ScenarioError> {
    check_scenario(scenario)?;
    let mut points: Vec<Run> = Vec::new();
    for (index, table) in scenario.run.iter().enumerate() {
        expand_table(index, table, &mut points)?;
        let given = points.len().saturating_mul(scenario.repeats as usize);
        if given > RUNS_MAX {
            return Err(ScenarioError::TooManyRuns { given, max: RUNS_MAX });
        }
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

/// The medium of a run: S is station 0, D is 1, and H is 2 where there is one. Links are alike in
/// both directions: S-D loses e3, S-H e1, H-D e2. Each direction takes half of the round trip.
pub fn medium_config(scenario: &Scenario, run: &Run, seed: u64) -> MediumConfig {
    let table = &scenario.medium;
    let mut pairs = vec![(SOURCE, DESTINATION, run.erasures.e3)];
    if run.path == Path::CodedHelper {
        pairs.push((SOURCE, HELPER, run.erasures.e1));
        pairs.push((HELPER, DESTINATION, run.erasures.e2));
    }
    let both_ways = |(a, b, erasure_ratio): (usize, usize, f64)| {
        let retry_limit = table.retry_limit;
        [
            Link { from: a, to: b, erasure: erasure_ratio.into(), retry_limit },
            Link { from: b, to: a, erasure: erasure_ratio.into(), retry_limit },
        ]
    };
    MediumConfig {
        mode: match table.duplex {
            Duplex::Half => AirDuplex::Half,
            Duplex::Full => AirDuplex::Full,
        },
        rate_bps: table.rate_bps,
        overhead: span(table.overhead_us / 1e6),
        propagation: span(table.rtt_ms / 2e3),
        queue_frames: table.queue_frames,
        stations: run.stations(),
        links: pairs.into_iter().flat_map(both_ways).collect(),
        seed,
        replication: run.replication,
    }
}

/// Seconds as a span, to the nanosecond; the check has refused what is none.
fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
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
    let duration_s = table.duration_s.unwrap_or_default();
    for &path in table.path.iter() {
        let codings = if path.is_coded() { &codings[..] } else { &[CodingTable::default()][..] };
        for &congestion in &congestions {
            for &offered_bps in &offers {
                for &e3 in table.e3.iter() {
                    for coding in codings {
                        runs.push(Run {
                            // The table for now: `expand` numbers the points when it has them all.
                            point: index,
                            replication: 0,
                            path,
                            transport: table.transport,
                            congestion,
                            offered_bps,
                            datagram_bytes: table.datagram_bytes,
                            direction: table.direction,
                            erasures: ErasureRatios {
                                e1: table.e1.unwrap_or(e3 / 2.0),
                                e2: table.e2.unwrap_or(e3 / 2.0),
                                e3,
                            },
                            duration_s,
                            coding: coding.clone(),
                            underlay: table.underlay,
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

fn check_scenario(scenario: &Scenario) -> Result<(), ScenarioError> {
    if scenario.name.trim().is_empty() {
        return Err(ScenarioError::value("name", "\"\"", "a name"));
    }
    if !(1..=RUNS_MAX as u32).contains(&scenario.repeats) {
        let expected = format!("1 to {RUNS_MAX}");
        return Err(ScenarioError::value("repeats", scenario.repeats, expected));
    }
    if !(1..=bounds::INGRESS_PACKETS_MAX).contains(&scenario.ingress_packets) {
        let expected = format!("1 to {} packets", bounds::INGRESS_PACKETS_MAX);
        return Err(ScenarioError::value("ingress_packets", scenario.ingress_packets, expected));
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
    if !(1..=corridor_air::MAX_QUEUE_FRAMES).contains(&medium.queue_frames) {
        let expected = format!("1 to {} frames", corridor_air::MAX_QUEUE_FRAMES);
        return Err(ScenarioError::value("medium.queue_frames", medium.queue_frames, expected));
    }
    Ok(())
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
    for (name, ratio) in e3.chain(table.e1.map(|e| ("e1", e))).chain(table.e2.map(|e| ("e2", e))) {
        if !(0.0..=1.0).contains(&ratio) {
            return Err(ScenarioError::value(field(name), ratio, "an erasure ratio from 0 to 1"));
        }
    }
    let expected = format!("more than 0, at most {DURATION_S_MAX} s");
    match table.duration_s {
        None => return Err(ScenarioError::value(field("duration_s"), "nothing", expected)),
        Some(duration_s) if !(duration_s > 0.0 && duration_s <= DURATION_S_MAX) => {
            return Err(ScenarioError::value(field("duration_s"), duration_s, expected));
        }
        Some(_) => {}
    }
    if table.coding.as_ref().is_some_and(OneOrMany::is_empty) {
        return Err(empty("coding"));
    }
    check_load(index, table)
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
            return Err(ScenarioError::value(field("offered_bps"), "nothing", expected));
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

/// Lets the protocol judge the coding parameters, before an hour of runs ends at the last one.
fn check_coding(scenario: &Scenario, index: usize, run: &Run) -> Result<(), ScenarioError> {
    if !run.path.is_coded() {
        return Ok(());
    }
    let helper = (run.path == Path::CodedHelper).then_some(StationId(HELPER as u8 + 1));
    let (frame_len_max, frame_len_min) = match run.underlay {
        UnderlayKind::Ethernet => (ETHERNET_MTU, 46),
        UnderlayKind::Udp => (ETHERNET_MTU - 28, 0),
    };
    let config = StationConfig {
        id: StationId(SOURCE as u8 + 1),
        role: Role::Endpoint { peer: StationId(DESTINATION as u8 + 1), helper },
        psk: [0; 32],
        coding: run.coding.resolve(),
        link_errors: LinkErrors::Measured,
        ingress_packets: scenario.ingress_packets,
        frame_len_max,
        frame_len_min,
        rate_bps: None,
    };
    config.check().map_err(|source| ScenarioError::Coding { run: index, source })
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
