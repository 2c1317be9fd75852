//! TCP/NC below the host's own TCP: the layers of all connections, over the unreliable forwarder.

use corridor_base::{Stream, Time};
use corridor_packet::PacketRef;

use super::plain::{self, Plain};
use super::role::Role;
use super::{Destination, Shared};
use crate::config::{CodingParams, StationConfig, StationId};
use crate::error::ConfigError;
use crate::flow::symbol;
use crate::flow::tcp_nc::{self, NcLayer, NcParams};
use crate::inspect::Inspection;
use crate::link::handshake::Opened;
use crate::memory;
use crate::wire::{Chunk, Kind};

/// An endpoint that codes between TCP and IP.
pub(crate) struct TcpNcEndpoint {
    plain: Plain,
    peer: StationId,
    layer: NcLayer,
}

impl TcpNcEndpoint {
    pub(crate) fn new(
        config: &StationConfig,
        peer: StationId,
        seed: Stream,
    ) -> Result<Self, ConfigError> {
        let buffer_segments = memory::segments(config);
        let params = NcParams { buffer_segments, ..params(&config.coding) };
        let len_max = packet_len_max(config.frame_len_max);
        let layer = NcLayer::new(params, len_max, seed).map_err(|error| ConfigError {
            field: "coding.redundancy",
            given: error.given,
            expected: error.expected,
        })?;
        Ok(TcpNcEndpoint { plain: Plain::new(peer), peer, layer })
    }

    /// Tells the layer how many packets the ingress queue has room for. An eighth of the queue is
    /// reserved for what is not coded, such as acknowledgments.
    fn look_for_room(&mut self, shared: &Shared) {
        let capacity = shared.config.ingress_packets;
        let for_coded = capacity - capacity / 8;
        self.layer.set_room(for_coded.saturating_sub(shared.ingress.len()));
    }

    /// Moves the layer's output to the queues.
    fn drain(&mut self, shared: &mut Shared, now: Time) {
        while let Some(packet) = self.layer.poll_path() {
            if !shared.ingress.push(now, packet.packet(), &mut shared.stats) {
                shared.stats.packets_dropped_ingress += 1;
            }
        }
        while let Some(packet) = self.layer.poll_host() {
            shared.egress.push(packet.packet());
            shared.stats.packets_delivered += 1;
            shared.stats.bytes_delivered += packet.len() as u64;
        }
    }
}

impl Role for TcpNcEndpoint {
    fn packet_len_max(&self, _: &Shared, frame_len: usize) -> usize {
        packet_len_max(frame_len)
    }

    fn handle_packet(
        &mut self,
        shared: &mut Shared,
        now: Time,
        packet: PacketRef<'_>,
        _kept: bool,
    ) -> bool {
        self.look_for_room(shared);
        self.layer.handle_host_packet(now, packet);
        self.drain(shared, now);
        true
    }

    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()> {
        if chunk.kind != Kind::Plain || opened.from != self.peer {
            return None;
        }
        for packet in symbol::verbatim_packets(chunk.body) {
            self.look_for_room(shared);
            self.layer.handle_path_packet(now, PacketRef::read(packet.bytes));
            self.drain(shared, now);
        }
        Some(())
    }

    fn handle_timeout(&mut self, shared: &mut Shared, now: Time) {
        self.look_for_room(shared);
        self.layer.handle_timeout(now);
        self.drain(shared, now);
    }

    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination> {
        self.look_for_room(shared);
        self.layer.fill_room(now);
        self.drain(shared, now);
        self.plain.poll_transmit(shared, now)
    }

    fn poll_timeout(&self, _: &Shared) -> Option<Time> {
        self.layer.poll_timeout()
    }

    fn inspect(&self, shared: &Shared, view: &mut Inspection) {
        let (sent, received) = memory::connections_bytes(&shared.config, self.layer.buffers());
        (view.held.sent, view.held.received) = (sent, received);
    }
}

/// Longest packet that frames of this length carry, with what the layer adds.
fn packet_len_max(frame_len: usize) -> usize {
    tcp_nc::packet_len_max(plain::packet_len_max(frame_len))
}

fn params(coding: &CodingParams) -> NcParams {
    let default = NcParams::default();
    let redundancy = coding.tcp_nc.unwrap_or(default.redundancy);
    NcParams { field: coding.field, redundancy, ..default }
}
