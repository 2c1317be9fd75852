//! A station in window mode allocates nothing for the packets and frames of a steady flow, with or
//! without losses.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{CodingParams, LinkErrors, Role, Station, StationConfig, StationId};
use etherparse::PacketBuilder;

use crate::allocator::allocations;

/// Packets per millisecond from the first to the second station; half as many go back.
const PACKETS_PER_MS: usize = 20;
/// Time in which all buffers grow to their sizes, and time in which none may, in milliseconds.
/// Neither station sends a HELLO during the second: that is rare, and allocates.
const WARM_UP_MS: u64 = 10_000;
const MEASURED_MS: u64 = 2_000;

fn station(id: u8, peer: u8) -> Station {
    let config = StationConfig {
        id: StationId(u16::from(id)),
        role: Role::Endpoint { peer: StationId(u16::from(peer)), helper: None },
        security: [7; 32].into(),
        coding: CodingParams::window(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 1_000,
        frame_len_max: 1_500,
        frame_len_min: 0,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: Some(1_000_000_000),
    };
    Station::new(config, [id; 32], Time::ZERO).unwrap()
}

const PACKET_LEN: usize = 1_400;
const HEADERS_LEN: usize = 40;

/// A datagram, which may overtake others.
fn datagram() -> Vec<u8> {
    let mut packet = vec![0; PACKET_LEN];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
    packet
}

/// Segments of a TCP connection, whose headers are sent as differences.
struct Connection {
    segment: Vec<u8>,
    sequence: u32,
}

impl Connection {
    fn new() -> Self {
        let mut segment = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(40_000, 80, 0, 500)
            .ack(1)
            .write(&mut segment, &[0; PACKET_LEN - HEADERS_LEN])
            .unwrap();
        Connection { segment, sequence: 0 }
    }

    fn next(&mut self) -> &[u8] {
        self.segment[24..28].copy_from_slice(&self.sequence.to_be_bytes());
        self.sequence = self.sequence.wrapping_add((PACKET_LEN - HEADERS_LEN) as u32);
        &self.segment
    }
}

/// Allocations in the measured time, packets delivered in it, and how many of these had compressed
/// headers.
fn run(loss_percent: u32) -> (usize, u64, u64) {
    let mut stations = [station(1, 2), station(2, 1)];
    let mut losses =
        StreamKey { seed: 1, replication: 0, entity: 0, purpose: "allocation" }.stream();
    let datagram = datagram();
    let mut connections = [Connection::new(), Connection::new()];
    let mut frame = Vec::with_capacity(2_000);
    let counted = |stations: &[Station; 2]| {
        let stats = stations.each_ref().map(|station| station.stats());
        let delivered: u64 = stats.iter().map(|stats| stats.packets_delivered).sum();
        (delivered, stats.iter().map(|stats| stats.packets_compressed).sum::<u64>())
    };
    let mut before = (0, (0, 0));
    for ms in 0..WARM_UP_MS + MEASURED_MS {
        let now = Time::from_millis(ms);
        if ms == WARM_UP_MS {
            before = (allocations(), counted(&stations));
        }
        for count in 0..PACKETS_PER_MS {
            if count % 2 == 0 {
                stations[0].handle_packet(now, connections[0].next());
                stations[1].handle_packet(now, connections[1].next());
            } else {
                stations[0].handle_packet(now, &datagram);
            }
        }
        for from in [0, 1] {
            stations[from].handle_timeout(now);
            while let Some(transmit) = stations[from].poll_transmit(now) {
                frame.clear();
                frame.extend_from_slice(transmit.frame);
                if losses.next_u32() % 100 >= loss_percent {
                    stations[1 - from].handle_frame(now + Duration::from_micros(100), &frame);
                }
            }
        }
        for station in &mut stations {
            while station.poll_packet().is_some() {}
            while station.poll_event().is_some() {}
        }
    }
    let allocations = allocations() - before.0;
    let (delivered, compressed) = counted(&stations);
    (allocations, delivered - before.1.0, compressed - before.1.1)
}

#[test]
fn a_steady_flow_allocates_nothing() {
    for loss_percent in [0, 10] {
        let (allocations, packets, compressed) = run(loss_percent);
        assert!(packets > 50_000, "{packets} packets at {loss_percent} %");
        assert!(compressed > packets / 2, "{compressed} of {packets} compressed");
        // The few that there are come from a HELLO within the time, if there is one.
        assert!(allocations < 10, "{allocations} allocations at {loss_percent} %");
    }
}
