//! Translates a plan's flows to orders for the kernels.

use corridor_scenario::{
    FlowTable, Network, SourceKind, TcpPreset, TcpTable, TcpVariant, start_after,
};

use super::refused;
use crate::error::LabError;
use crate::load::{self, FlowOrder};

/// Longest packet unless TCP flows set another length, bytes: Ethernet's.
const PACKET_BYTES_MAX: usize = 1_500;
/// Smallest MTU that IPv4 allows (RFC 791).
const PACKET_BYTES_MIN: usize = 68;
/// Bytes of TCP/IP headers with timestamps.
const SEGMENT_HEADER_BYTES: u32 = 52;
/// Most flows.
const FLOWS_MAX: usize = 16;
/// Highest rate of a flow, bit/s: many times that of the fastest radio.
const RATE_BPS_MAX: f64 = 1e9;
/// Most datagrams of a flow: its receiver keeps a flag for each.
const DATAGRAMS_MAX: f64 = 100e6;

/// What the kernels of a network have to send.
pub(super) struct Orders {
    /// The flows, as in the plan.
    pub(super) flows: Vec<FlowOrder>,
    /// Longest packet of all, bytes.
    pub(super) packet_bytes: usize,
}

impl Orders {
    /// Orders for a network that carries packets of up to `packet_bytes_max`.
    pub(super) fn of(
        network: &Network,
        packet_bytes_max: usize,
        (seed, replication): (u64, u64),
    ) -> Result<Self, LabError> {
        if network.flows.len() > FLOWS_MAX {
            let given = format!("{} tables", network.flows.len());
            return Err(refused("flow", given, format!("at most {FLOWS_MAX}")));
        }
        let packet_bytes = packet_bytes(&network.flows, packet_bytes_max)?;
        let flow = |(index, table): (usize, &FlowTable)| {
            check(index, table, network)?;
            let is_tcp = table.source.kind != SourceKind::Cbr;
            let payload = table.payload_bytes.unwrap_or(FlowTable::DATAGRAM_PAYLOAD_BYTES);
            check_load(index, table, (!is_tcp).then_some((payload, packet_bytes)), network)?;
            Ok(FlowOrder {
                from: table.from,
                to: table.to,
                congestion: is_tcp.then(|| congestion(index, table)).transpose()?,
                offered_bps: table.source.rate_bps,
                datagram_bytes: (!is_tcp).then_some(payload as usize),
                start: start_after(network.start_jitter, index, seed, replication),
            })
        };
        let flows = network.flows.iter().enumerate().map(flow).collect::<Result<_, LabError>>()?;
        Ok(Orders { flows, packet_bytes })
    }

    /// Pairs of nodes that are the ends of flows, each once.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        let ends = |flow: &FlowOrder| (flow.from.min(flow.to), flow.from.max(flow.to));
        let mut pairs: Vec<_> = self.flows.iter().map(ends).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// The interfaces' MTU, which limits the kernels' TCP segments.
fn packet_bytes(flows: &[FlowTable], most: usize) -> Result<usize, LabError> {
    let mut said = None;
    for (index, flow) in flows.iter().enumerate() {
        let Some(payload) = flow.payload_bytes.filter(|_| flow.source.kind != SourceKind::Cbr)
        else {
            continue;
        };
        let bytes = (payload + SEGMENT_HEADER_BYTES) as usize;
        if *said.get_or_insert(bytes) != bytes {
            let field = format!("flow[{index}].payload_bytes");
            return Err(refused(&field, payload, "as in the other flows of TCP"));
        }
    }
    let packet_bytes = said.unwrap_or(PACKET_BYTES_MAX.min(most));
    if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX.min(most)).contains(&packet_bytes) {
        let expected = format!(
            "packets of {PACKET_BYTES_MIN} to {} bytes, {SEGMENT_HEADER_BYTES} of them headers",
            PACKET_BYTES_MAX.min(most)
        );
        return Err(refused("flow.payload_bytes", format!("packets of {packet_bytes}"), expected));
    }
    Ok(packet_bytes)
}

/// Rejects settings that kernels do not have.
fn check(index: usize, table: &FlowTable, network: &Network) -> Result<(), LabError> {
    let no = |name: &str, given: &dyn ToString, expected: &str| {
        Err(refused(&format!("flow[{index}].{name}"), given.to_string(), expected))
    };
    if table.start_s != 0.0 {
        return no("start_s", &table.start_s, "0");
    }
    if table.stop_s.is_some_and(|stop_s| stop_s < network.duration.as_secs_f64()) {
        return no("stop_s", &table.stop_s.unwrap_or_default(), "nothing");
    }
    let kinds = [SourceKind::Ftp, SourceKind::Rate, SourceKind::Cbr];
    if !kinds.contains(&table.source.kind) {
        let given = format!("{:?}", table.source.kind).to_lowercase();
        return no("source.kind", &given, "ftp, rate or cbr");
    }
    if table.broadcast {
        return no("broadcast", &true, "false");
    }
    if let Some(links_max) = table.links_max {
        return no("links_max", &links_max, "nothing");
    }
    if table.tcp_nc.is_some() {
        return no("tcp_nc", &"a table", "nothing");
    }
    if table.processing_ms.is_some() {
        return no("processing_ms", &"a value", "nothing: kernels take the time that they take");
    }
    let headers = match table.source.kind {
        SourceKind::Cbr => FlowTable::DATAGRAM_HEADER_BYTES,
        _ => SEGMENT_HEADER_BYTES,
    };
    match table.header_bytes.filter(|&given| given != headers) {
        Some(given) => no("header_bytes", &given, &format!("{headers}, as the kernels' packets")),
        None => Ok(()),
    }
}

/// Rejects loads that would not end or fit: the rate of a flow, and with it the length of its
/// datagrams, if it sends any, given the longest packet.
fn check_load(
    index: usize,
    table: &FlowTable,
    datagram: Option<(u32, usize)>,
    network: &Network,
) -> Result<(), LabError> {
    let mut rate_bps_max = RATE_BPS_MAX;
    if let Some((payload, packet_bytes)) = datagram {
        let longest = packet_bytes.saturating_sub(FlowTable::DATAGRAM_HEADER_BYTES as usize);
        if !(load::HEADER_BYTES..=longest).contains(&(payload as usize)) {
            let field = format!("flow[{index}].payload_bytes");
            let expected = format!(
                "{} to {longest} bytes, of packets of {packet_bytes} at most",
                load::HEADER_BYTES
            );
            return Err(refused(&field, payload, expected));
        }
        let bits = DATAGRAMS_MAX * 8.0 * f64::from(payload);
        rate_bps_max = rate_bps_max.min((bits / network.duration.as_secs_f64()).floor());
    }
    match table.source.rate_bps.filter(|&rate_bps| rate_bps > rate_bps_max) {
        Some(rate_bps) => {
            let field = format!("flow[{index}].source.rate_bps");
            Err(refused(&field, rate_bps, format!("at most {rate_bps_max} bit/s")))
        }
        None => Ok(()),
    }
}

/// The kernel's name for a flow's congestion control.
fn congestion(index: usize, table: &FlowTable) -> Result<String, LabError> {
    let tcp = table.tcp.clone().unwrap_or_default();
    let variant = tcp.variant;
    if tcp.preset != TcpPreset::Linux || (TcpTable { variant: None, ..tcp }) != TcpTable::default()
    {
        let expected = "nothing but preset = \"linux\" and a variant";
        return Err(refused(&format!("flow[{index}].tcp"), "another table", expected));
    }
    match variant.unwrap_or(TcpVariant::Cubic) {
        TcpVariant::Cubic => Ok("cubic".to_owned()),
        TcpVariant::Reno | TcpVariant::NewReno => Ok("reno".to_owned()),
        TcpVariant::Bbr => Ok("bbr".to_owned()),
        other => {
            let given = format!("{other:?}").to_lowercase();
            Err(refused(&format!("flow[{index}].tcp.variant"), given, "cubic, reno or bbr"))
        }
    }
}
