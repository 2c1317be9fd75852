//! The result of one run, the same from the lab and from the simulator.
//!
//! Machine-readable: snake_case, SI units, raw numbers; null where something does not apply.

use std::collections::BTreeMap;

use corridor_proto::{CodingTable, RelayCounters, Stats};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::expand::Run;
use crate::file::{Congestion, Direction, Path, Scenario, Transport, UnderlayKind};
use crate::network::TcpPreset;
use crate::record::Value;

/// The engine that produced a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Real time, kernel sockets.
    Lab,
    /// Virtual time.
    Sim,
}

/// In-order one-way delay of packets received in the measured interval, seconds; `None` if there
/// were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Median.
    pub delay_p50_s: Option<f64>,
    /// 95th percentile.
    pub delay_p95_s: Option<f64>,
    /// 99th percentile.
    pub delay_p99_s: Option<f64>,
    /// Largest.
    pub delay_max_s: Option<f64>,
}

impl Delays {
    /// Quantiles of a histogram that has a given number of units per second.
    pub fn of(histogram: &Histogram<u64>, parts_per_s: f64) -> Self {
        let told = |parts: u64| (!histogram.is_empty()).then(|| parts as f64 / parts_per_s);
        let quantile = |quantile| told(histogram.value_at_quantile(quantile));
        Delays {
            delay_p50_s: quantile(0.5),
            delay_p95_s: quantile(0.95),
            delay_p99_s: quantile(0.99),
            delay_max_s: told(histogram.max()),
        }
    }
}

/// Round-trip times of an echo beside the load, seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pings {
    /// Median before there was any load; `None` if no answer came.
    pub base_p50_s: Option<f64>,
    /// Median beside the load.
    pub p50_s: Option<f64>,
    /// 95th percentile beside the load.
    pub p95_s: Option<f64>,
    /// 99th percentile beside the load.
    pub p99_s: Option<f64>,
    /// Requests sent beside the load.
    pub sent: u64,
    /// Of these, requests answered.
    pub received: u64,
}

/// One direction of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Sending station, as in the medium: 0 is S, 1 is D.
    pub from: usize,
    /// Payload bits received per second of the measured interval.
    pub goodput_bps: f64,
    /// Delays of this direction.
    #[serde(flatten)]
    pub delays: Delays,
    /// UDP: datagrams sent in the measured interval.
    pub packets_sent: Option<u64>,
    /// UDP: of these, datagrams received, at any time, without duplicates.
    pub packets_received: Option<u64>,
    /// UDP: datagrams that arrived after one that was sent later.
    pub packets_out_of_order: Option<u64>,
    /// UDP: duplicates.
    pub packets_duplicated: Option<u64>,
    /// UDP with a deadline: of the datagrams received, those that arrived before it.
    #[serde(default)]
    pub packets_in_time: Option<u64>,
    /// TCP: retransmissions by the sender's kernel since the connection began.
    pub packets_retransmitted: Option<u64>,
    /// TCP: smoothed round-trip time of the sender's kernel at the end, seconds.
    pub srtt_s: Option<f64>,
    /// TCP in the simulator: expiries of the sender's retransmission timer since the start.
    #[serde(default)]
    pub timeouts: Option<u64>,
    /// Mean congestion window in the measured interval, packets.
    #[serde(default)]
    pub cwnd_mean_packets: Option<f64>,
    /// TCP in the lab: share of the time with data in flight since the connection began in which
    /// the receiver's window, as known to the sender's kernel, limited sending, 0 to 1.
    #[serde(default)]
    pub tcp_window_limited_ratio: Option<f64>,
    /// The same for the sender's own buffer.
    #[serde(default)]
    pub tcp_buffer_limited_ratio: Option<f64>,
    /// TCP in the lab: longest time in the measured interval without any delivery, seconds.
    #[serde(default)]
    pub silence_max_s: Option<f64>,
}

/// The result of one run. With load in both directions, goodput and counts are sums, delays are
/// those of both directions together, and `sides` has each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the scenario.
    pub scenario: String,
    /// Position in the scenario, the same for all repeats.
    pub point: usize,
    /// Which repeat.
    pub replication: u64,
    /// Seed of the scenario's random streams.
    pub seed: u64,
    /// Swept values, by their path in the file; empty without sweeps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub swept: BTreeMap<String, Value>,
    /// The engine that produced the row.
    pub engine: Engine,
    /// How packets crossed.
    pub path: Path,
    /// Preset of coding or of relays, and what differs from it, in a few words; "-" without either.
    pub policy: String,
    /// The coding parameters in full; `None` for paths without coding.
    pub coding: Option<CodingTable>,
    /// What the nodes sent over; `None` without nodes.
    pub underlay: Option<UnderlayKind>,
    /// What loaded the path.
    pub transport: Transport,
    /// TCP: congestion control of the sender.
    pub congestion: Option<Congestion>,
    /// TCP in the simulator: the hosts' TCP.
    #[serde(default)]
    pub tcp: Option<TcpPreset>,
    /// The direction of the load.
    pub direction: Direction,
    /// Name of the external tunnel that packets crossed instead of the kernel's own interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<String>,
    /// TCP: whether the kernels at both ends used ECN.
    #[serde(default)]
    pub ecn: bool,
    /// Mean length of bursts of losses, frames; `None`: independent losses.
    #[serde(default)]
    pub burst_frames: Option<f64>,
    /// Offered payload bits per second and direction; `None`: as much as TCP can send.
    pub offered_bps: Option<f64>,
    /// Erasure ratio S-H; `None` without helper.
    pub e1: Option<f64>,
    /// Erasure ratio H-D; `None` without helper.
    pub e2: Option<f64>,
    /// Erasure ratio S-D.
    pub e3: f64,
    /// Erasure ratio D-S; `None`: as `e3`.
    #[serde(default)]
    pub e3_back: Option<f64>,
    /// The same as `e3`, for tables with a single link.
    pub loss_ratio: f64,
    /// Length of the measured interval, seconds.
    pub duration_s: f64,
    /// Payload bits received per second of the measured interval.
    pub goodput_bps: f64,
    /// Delays.
    #[serde(flatten)]
    pub delays: Delays,
    /// See [`Side::packets_sent`].
    pub packets_sent: Option<u64>,
    /// See [`Side::packets_received`].
    pub packets_received: Option<u64>,
    /// See [`Side::packets_out_of_order`].
    pub packets_out_of_order: Option<u64>,
    /// See [`Side::packets_duplicated`].
    pub packets_duplicated: Option<u64>,
    /// UDP: a later datagram was worthless, seconds; `None`: no deadline.
    #[serde(default)]
    pub deadline_s: Option<f64>,
    /// See [`Side::packets_in_time`].
    #[serde(default)]
    pub packets_in_time: Option<u64>,
    /// The echo beside the load; `None` without one.
    #[serde(default)]
    pub pings: Option<Pings>,
    /// The second TCP flow, outside the tunnel; `None` without one.
    #[serde(default)]
    pub beside: Option<Side>,
    /// Symbols sent by encoders and helper per block of source symbols; partly filled blocks count
    /// in part.
    pub transmissions_per_block: Option<f64>,
    /// Of these, the encoders' (the paper's Fig. 10 counts these only).
    pub encoder_transmissions_per_block: Option<f64>,
    /// Of these, the helper's.
    pub helper_transmissions_per_block: Option<f64>,
    /// Expiries of an encoder's acknowledgment timer per block.
    pub timeouts_per_block: Option<f64>,
    /// UDP: frames of all stations on the air per datagram received.
    pub air_frames_per_packet: Option<f64>,
    /// Bytes that all stations sent on the air per byte of payload received.
    pub air_bytes_per_byte: Option<f64>,
    /// Share of the measured interval in which the channel was busy; with a channel for each
    /// station, that of the busiest.
    pub air_utilisation: Option<f64>,
    /// Share of the frames that the medium's full queue dropped: the highest among the stations.
    pub air_drop_ratio: Option<f64>,
    /// Packets dropped at the sender because its queue was full: the nodes' ingress queue, or the
    /// interface's without nodes.
    pub ingress_drops: Option<u64>,
    /// Packets dropped there to signal congestion.
    #[serde(default)]
    pub codel_drops: Option<u64>,
    /// Packets marked there to signal congestion.
    #[serde(default)]
    pub codel_marks: Option<u64>,
    /// TCP acknowledgments delivered with a shorter window, in window mode.
    #[serde(default)]
    pub windows_clamped: Option<u64>,
    /// How often a node took the queue on the path for another flow's, in window mode.
    #[serde(default)]
    pub rate_competitions: Option<u64>,
    /// How often a node probed whether a short delay is a queue, in window mode.
    #[serde(default)]
    pub rate_probes: Option<u64>,
    /// How often a node probed whether a long queue is its own, in window mode.
    #[serde(default)]
    pub rate_drains: Option<u64>,
    /// Rate limit of the sending nodes at the end, low while a queue is probed, bits per second of
    /// frame bytes, in window mode; the lower one of two directions.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Whether a node takes the channel for shared by both directions at the end, in window mode.
    #[serde(default)]
    pub half_duplex: Option<bool>,
    /// See [`Side::packets_retransmitted`].
    pub packets_retransmitted: Option<u64>,
    /// See [`Side::srtt_s`]; the larger one of two directions.
    pub srtt_s: Option<f64>,
    /// See [`Side::timeouts`].
    #[serde(default)]
    pub timeouts: Option<u64>,
    /// See [`Side::cwnd_mean_packets`]; the sum of two directions.
    #[serde(default)]
    pub cwnd_mean_packets: Option<f64>,
    /// See [`Side::silence_max_s`]; the longer one of two directions.
    #[serde(default)]
    pub silence_max_s: Option<f64>,
    /// Counters of the relays, including S and D, since they started; `None` without relays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayCounts>,
    /// Processor time of each node, seconds, by station name (S, D, H, R1 and so on).
    pub cpu_s: BTreeMap<String, f64>,
    /// Mean number of processors that the run used in the measured interval: nodes, load and
    /// emulator; `None` in the simulator.
    #[serde(default)]
    pub processors: Option<f64>,
    /// Time in the measured interval for which each node was runnable but waited for a processor,
    /// by station name, and the same for the load's threads (`load`), seconds.
    #[serde(default)]
    pub wait_s: BTreeMap<String, f64>,
    /// Share of the processors' time that a hypervisor gave to others in the measured interval;
    /// `None` in the simulator.
    #[serde(default)]
    pub stolen_ratio: Option<f64>,
    /// Lateness of the emulator's writing of frames to radios, median, seconds.
    #[serde(default)]
    pub lateness_p50_s: Option<f64>,
    /// The same, 99th percentile.
    pub lateness_p99_s: Option<f64>,
    /// The same, largest.
    #[serde(default)]
    pub lateness_max_s: Option<f64>,
    /// Whether the emulator had real-time scheduling; `None` in the simulator.
    pub realtime: Option<bool>,
    /// Whether the numbers can be trusted; otherwise `notes` says why.
    pub valid: bool,
    /// Further remarks, for display.
    pub notes: Vec<String>,
    /// Each direction of the load.
    pub sides: Vec<Side>,
}

impl Row {
    /// A row that describes a run, without results yet.
    pub fn new(scenario: &Scenario, run: &Run, engine: Engine) -> Self {
        let helper = run.path == Path::CodedHelper;
        Row {
            scenario: scenario.name.clone(),
            point: run.point,
            replication: run.replication,
            seed: scenario.seed,
            swept: BTreeMap::new(),
            engine,
            path: run.path,
            policy: run.policy(),
            coding: run.path.is_coded().then(|| run.coding.clone()),
            underlay: (run.path != Path::Kernel).then_some(run.underlay),
            transport: run.transport,
            congestion: run.congestion,
            tcp: (engine == Engine::Sim && run.transport == Transport::Tcp).then_some(run.tcp),
            direction: run.direction,
            tunnel: None,
            ecn: run.lab.ecn,
            burst_frames: run.burst_frames,
            offered_bps: run.offered_bps,
            e1: helper.then_some(run.erasures.e1),
            e2: helper.then_some(run.erasures.e2),
            e3: run.erasures.e3,
            e3_back: run.e3_back,
            loss_ratio: run.erasures.e3,
            duration_s: run.duration_s,
            goodput_bps: 0.0,
            delays: Delays::default(),
            packets_sent: None,
            packets_received: None,
            packets_out_of_order: None,
            packets_duplicated: None,
            deadline_s: run.lab.deadline.map(|deadline| deadline.as_secs_f64()),
            packets_in_time: None,
            pings: None,
            beside: None,
            transmissions_per_block: None,
            encoder_transmissions_per_block: None,
            helper_transmissions_per_block: None,
            timeouts_per_block: None,
            air_frames_per_packet: None,
            air_bytes_per_byte: None,
            air_utilisation: None,
            air_drop_ratio: None,
            ingress_drops: None,
            codel_drops: None,
            codel_marks: None,
            windows_clamped: None,
            rate_competitions: None,
            rate_probes: None,
            rate_drains: None,
            rate_bps: None,
            half_duplex: None,
            packets_retransmitted: None,
            srtt_s: None,
            timeouts: None,
            cwnd_mean_packets: None,
            silence_max_s: None,
            relay: None,
            cpu_s: BTreeMap::new(),
            processors: None,
            wait_s: BTreeMap::new(),
            stolen_ratio: None,
            lateness_p50_s: None,
            lateness_p99_s: None,
            lateness_max_s: None,
            realtime: None,
            valid: true,
            notes: Vec::new(),
            sides: Vec::new(),
        }
    }

    /// Sets the results of the directions; `delays` are those of all of them together.
    pub fn set_sides(&mut self, sides: Vec<Side>, delays: Delays) {
        let sum = |field: fn(&Side) -> Option<u64>| {
            sides.iter().filter_map(field).reduce(u64::saturating_add)
        };
        self.goodput_bps = sides.iter().map(|side| side.goodput_bps).sum();
        self.packets_sent = sum(|side| side.packets_sent);
        self.packets_received = sum(|side| side.packets_received);
        self.packets_out_of_order = sum(|side| side.packets_out_of_order);
        self.packets_duplicated = sum(|side| side.packets_duplicated);
        self.packets_in_time = sum(|side| side.packets_in_time);
        self.packets_retransmitted = sum(|side| side.packets_retransmitted);
        self.srtt_s = sides.iter().filter_map(|side| side.srtt_s).reduce(f64::max);
        self.timeouts = sum(|side| side.timeouts);
        self.cwnd_mean_packets =
            sides.iter().filter_map(|side| side.cwnd_mean_packets).reduce(|a, b| a + b);
        self.silence_max_s = sides.iter().filter_map(|side| side.silence_max_s).reduce(f64::max);
        self.delays = delays;
        self.sides = sides;
    }

    /// Sets results from the nodes' counters: `encoders` are the stations whose load is measured
    /// (S; S and D with load in both directions), `block_size` is in source symbols.
    ///
    /// A helper serves both directions and counts them together: with load in one direction, its
    /// count still includes what it sent for the other (acknowledgments of TCP).
    pub fn set_coding(
        &mut self,
        encoders: &[CodingCounts],
        helper: Option<&CodingCounts>,
        block_size: u16,
    ) {
        let sum = |field: fn(&CodingCounts) -> u64| encoders.iter().map(field).sum::<u64>() as f64;
        self.ingress_drops = Some(sum(|counts| counts.packets_dropped_ingress) as u64);
        self.codel_drops = Some(sum(|counts| counts.packets_dropped_codel) as u64);
        self.codel_marks = Some(sum(|counts| counts.packets_marked) as u64);
        self.windows_clamped = Some(sum(|counts| counts.windows_clamped) as u64);
        self.rate_competitions = Some(sum(|counts| counts.rate_competitions) as u64);
        self.rate_probes = Some(sum(|counts| counts.rate_probes) as u64);
        self.rate_drains = Some(sum(|counts| counts.rate_drains) as u64);
        self.rate_bps = encoders.iter().filter_map(|counts| counts.rate_bps).min();
        self.half_duplex = Some(encoders.iter().any(|counts| counts.half_duplex));
        let blocks = sum(|counts| counts.symbols_added) / f64::from(block_size);
        if !self.path.is_coded() || blocks <= 0.0 {
            return;
        }
        let encoded = sum(|c| c.source_frames_sent.saturating_add(c.coded_frames_sent)) / blocks;
        let recoded = helper.map(|helper| helper.recoded_frames_sent as f64 / blocks);
        self.encoder_transmissions_per_block = Some(encoded);
        self.helper_transmissions_per_block = recoded;
        self.transmissions_per_block = Some(encoded + recoded.unwrap_or(0.0));
        self.timeouts_per_block = Some(sum(|counts| counts.encoder_timeouts) / blocks);
    }

    /// Share of the datagrams sent that did not arrive in time, if there is a deadline.
    pub fn missed_ratio(&self) -> Option<f64> {
        let (sent, in_time) = (self.packets_sent?, self.packets_in_time?);
        (sent > 0).then(|| 1.0 - in_time as f64 / sent as f64)
    }

    /// Marks the row as invalid, and says why.
    pub fn distrust(&mut self, why: impl Into<String>) {
        self.valid = false;
        self.notes.push(why.into());
    }
}

/// Counters of a path's relays together; see [`RelayCounters`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayCounts {
    /// The sums of their counters.
    #[serde(flatten)]
    pub counters: RelayCounters,
    /// Share of the coded frames that their addressee could not decode; `None` without coded
    /// frames.
    pub decode_failure_ratio: Option<f64>,
    /// Share of the packets forwarded that went in coded frames; `None` if none was forwarded.
    pub paired_ratio: Option<f64>,
}

impl RelayCounts {
    /// Results of all relays together.
    pub fn of(relays: impl IntoIterator<Item = RelayCounters>) -> Self {
        let mut counters = RelayCounters::default();
        relays.into_iter().for_each(|relay| counters.join(&relay));
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let (decoded, failed) = (counters.relay_packets_decoded, counters.relay_decode_failures);
        RelayCounts {
            decode_failure_ratio: ratio(failed, decoded + failed),
            paired_ratio: ratio(2 * counters.relay_frames_coded, counters.relay_packets_forwarded),
            counters,
        }
    }
}

/// The node's counters that a row is computed from, named as in [`corridor_proto::Stats`]; other
/// counters are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub struct CodingCounts {
    pub packets_dropped_ingress: u64,
    pub packets_dropped_codel: u64,
    pub packets_marked: u64,
    pub windows_clamped: u64,
    pub rate_competitions: u64,
    pub rate_probes: u64,
    pub rate_drains: u64,
    pub rate_bps: Option<u64>,
    /// Older nodes, with which newer ones are compared, use the second name.
    #[serde(alias = "shares_air")]
    pub half_duplex: bool,
    pub symbols_added: u64,
    pub source_frames_sent: u64,
    pub coded_frames_sent: u64,
    pub recoded_frames_sent: u64,
    pub encoder_timeouts: u64,
}

impl From<&Stats> for CodingCounts {
    fn from(stats: &Stats) -> Self {
        CodingCounts {
            packets_dropped_ingress: stats.packets_dropped_ingress,
            packets_dropped_codel: stats.packets_dropped_codel,
            packets_marked: stats.packets_marked,
            windows_clamped: stats.windows_clamped,
            rate_competitions: stats.rate_competitions,
            rate_probes: stats.rate_probes,
            rate_drains: stats.rate_drains,
            rate_bps: stats.rate_bps,
            half_duplex: stats.half_duplex,
            symbols_added: stats.symbols_added,
            source_frames_sent: stats.source_frames_sent,
            coded_frames_sent: stats.coded_frames_sent,
            recoded_frames_sent: stats.recoded_frames_sent,
            encoder_timeouts: stats.encoder_timeouts,
        }
    }
}

/// The preset, and what differs from it: `paper`, or `block policy=playncool block_size=64`.
pub fn policy(table: &impl Serialize) -> String {
    let mut words: Vec<String> = Vec::new();
    if let Ok(toml::Value::Table(table)) = toml::Value::try_from(table) {
        let preset = table.get("preset").and_then(toml::Value::as_str);
        words.extend(preset.map(str::to_owned));
        let differing = table.iter().filter(|(key, _)| *key != "preset");
        words.extend(differing.map(|(key, value)| match value {
            toml::Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        }));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        name = "t"
        seed = 7
        medium = { duplex = "half", rate_bps = 12000000, rtt_ms = 4, queue_frames = 50 }
        [[run]]
        path = "coded+helper"
        transport = "udp"
        offered_bps = 1e6
        e3 = 0.2
        e3_back = 0.3
        duration_s = 1
        coding = { preset = "paper", block_size = 64 }
    "#;

    fn row() -> Row {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let runs = crate::expand(&scenario).unwrap();
        Row::new(&scenario, &runs[0], Engine::Sim)
    }

    #[test]
    fn json_is_flat_and_survives_a_round_trip() {
        let mut row = row();
        let delays = Delays { delay_p50_s: Some(0.25), ..Delays::default() };
        row.set_sides(vec![Side { goodput_bps: 1e6, delays, ..Side::default() }], delays);
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["path"], "coded+helper");
        assert_eq!(json["policy"], "paper block_size=64");
        assert_eq!(json["engine"], "sim");
        assert_eq!(json["delay_p50_s"], 0.25);
        assert_eq!(json["e1"], 0.1);
        assert_eq!((&json["loss_ratio"], &json["e3_back"]), (&0.2.into(), &0.3.into()));
        assert!(json["srtt_s"].is_null());
        assert_eq!(serde_json::from_value::<Row>(json).unwrap(), row);
    }

    #[test]
    fn both_directions_add_up() {
        let side = |from| Side {
            from,
            goodput_bps: 2e6,
            packets_sent: Some(10),
            packets_received: Some(9),
            ..Side::default()
        };
        let mut row = row();
        row.set_sides(vec![side(0), side(1)], Delays::default());
        assert_eq!(row.goodput_bps, 4e6);
        assert_eq!((row.packets_sent, row.packets_received), (Some(20), Some(18)));
        assert_eq!(row.packets_retransmitted, None);
    }

    #[test]
    fn partly_filled_blocks_count_as_the_part_that_they_are() {
        let encoder = CodingCounts {
            symbols_added: 96,
            source_frames_sent: 96,
            coded_frames_sent: 24,
            encoder_timeouts: 3,
            ..CodingCounts::default()
        };
        let helper = CodingCounts { recoded_frames_sent: 30, ..CodingCounts::default() };
        let mut row = row();
        row.set_coding(&[encoder], Some(&helper), 64);
        assert_eq!(row.encoder_transmissions_per_block, Some(80.0));
        assert_eq!(row.helper_transmissions_per_block, Some(20.0));
        assert_eq!(row.transmissions_per_block, Some(100.0));
        assert_eq!(row.timeouts_per_block, Some(2.0));
    }

    #[test]
    fn counters_are_read_from_the_statistics_of_a_node() {
        let stats = Stats { symbols_added: 5, coded_frames_sent: 2, ..Stats::default() };
        let json = serde_json::to_string(&stats).unwrap();
        let counts: CodingCounts = serde_json::from_str(&json).unwrap();
        assert_eq!(counts, CodingCounts::from(&stats));
    }
}
