//! Load of datagrams at a rate.

use core::time::Duration;

use corridor_base::Time;
use corridor_scenario::{Keep, Row, Run, Side};

use super::{Measured, Seen, Tunnel, delays};
use crate::agents::metered::delay_histogram;
use crate::agents::source::FlowEnd;
pub(super) use crate::agents::stamped::flow_of;
use crate::agents::stamped::{StampedSink, StampedSource, UDP_HEADERS_LEN};
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, Network, NetworkError};
use crate::plan::seen::FlowSeen;

/// Time after the measured interval in which packets in flight may still arrive.
const DRAIN: Duration = Duration::from_secs(2);
/// Offered payload if the run does not say.
const OFFERED_BPS: f64 = 10e6;

/// One direction of the load.
pub(super) struct Flow {
    from: NodeIndex,
    source: AgentIndex,
    sink: AgentIndex,
}

/// Adds a source and a sink to the hosts for each direction.
pub(super) fn flows(
    run: &Run,
    ways: &[(NodeIndex, NodeIndex)],
    (mtu, keep): (usize, Keep),
    network: &mut Network,
) -> Result<Vec<Flow>, NetworkError> {
    let len = run.datagram_bytes.map_or(mtu, |bytes| bytes + UDP_HEADERS_LEN).min(mtu);
    let payload_bits = 8.0 * (len - UDP_HEADERS_LEN) as f64;
    let interval_ns = payload_bits / run.offered_bps.unwrap_or(OFFERED_BPS) * 1e9;
    let is_recorded = keep.series.is_some();
    let mut flows = Vec::new();
    for &(from, to) in ways {
        let end = FlowEnd { flow: from, node: from, peer: to };
        let source = StampedSource::new(end, len, interval_ns);
        let source = network.add_agent(from, from, source)?;
        let sink = network.add_agent(to, from, StampedSink::new().with_recent(is_recorded))?;
        flows.push(Flow { from, source, sink });
    }
    Ok(flows)
}

/// Has the sources send from `begin` to the end of the measured interval.
pub(super) fn begin(flows: &[Flow], network: &mut Network, begin: Time, measured: Measured) {
    let span = (measured.start, measured.end);
    for flow in flows {
        network.tell(flow.source, |source: &mut StampedSource| source.begin(begin, span));
        network.tell(flow.sink, |sink: &mut StampedSink| sink.measure(span));
    }
}

/// Waits for packets in flight.
pub(super) fn drain(network: &mut Network, measured: Measured) {
    if !network.is_watched_enough() {
        network.run_until(measured.end + DRAIN);
    }
}

impl Flow {
    /// What it has done since the start, for its course.
    pub(super) fn so_far(&self, network: &Network) -> FlowSeen {
        let Some(sink) = network.agent::<StampedSink>(self.sink) else {
            return FlowSeen::default();
        };
        let payload_bytes = sink.all_bytes();
        FlowSeen { payload_bytes, ..FlowSeen::default() }.with_delays(sink.recent())
    }

    pub(super) fn seen(&self, network: &Network, measured: Measured) -> Seen {
        let source = network.agent::<StampedSource>(self.source);
        let sink = network.agent::<StampedSink>(self.sink);
        let histogram = sink.map_or_else(delay_histogram, |sink| sink.delays().clone());
        let bytes = sink.map_or(0, StampedSink::bytes);
        let side = Side {
            from: self.from as usize,
            goodput_bps: 8.0 * bytes as f64 / measured.duration_s,
            delays: delays(&histogram),
            packets_sent: source.map(StampedSource::sent),
            packets_received: sink.map(StampedSink::received),
            packets_out_of_order: sink.map(StampedSink::out_of_order),
            packets_duplicated: sink.map(StampedSink::duplicated),
            ..Side::default()
        };
        let delivered_bytes = sink.map_or(0, StampedSink::all_bytes);
        Seen { side, delays: histogram, delivered_bytes }
    }
}

/// Sets the number of frames for each packet; returns the payload that stations have delivered.
pub(super) fn report_packets(row: &mut Row, tunnel: &Tunnel, seen: &[Seen]) -> f64 {
    let stations = tunnel.stations.iter().map(|&index| tunnel.network.station(index).stats());
    let (packets, bytes) = stations.fold((0, 0), |(packets, bytes), stats| {
        (packets + stats.packets_delivered, bytes + stats.bytes_delivered)
    });
    if packets == 0 || seen.iter().all(|seen| seen.side.packets_received == Some(0)) {
        return 0.0;
    }
    let packets = packets as f64;
    row.air_frames_per_packet = Some(tunnel.frames_sent() / packets);
    bytes as f64 - packets * UDP_HEADERS_LEN as f64
}
