//! What TCP packets cost in two stations in window mode, without losses: a bulk transfer in one
//! direction and its acknowledgments in the other, with clamped windows and compressed headers.
//!
//! ```text
//! cargo build --release -p corridor-proto --example packet_cost
//! valgrind --tool=none target/release/examples/packet_cost 20000
//! perf stat -e instructions:u target/release/examples/packet_cost 200000
//! ```

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::{Duration, Instant};

use corridor_base::Time;
use corridor_packet::tcp_header::flags::{ACK, SYN};
use corridor_proto::{
    CodingParams, LinkErrors, Role, Station, StationConfig, StationId, bounds::INGRESS_QUANTUM,
};
use etherparse::{PacketBuilder, TcpOptionElement};

fn station(id: u8) -> Station {
    let config = StationConfig {
        id: StationId(u16::from(id)),
        role: Role::Endpoint { peer: StationId(u16::from(3 - id)), helper: None },
        security: [7; 32].into(),
        coding: CodingParams::window(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 1_000,
        frame_len_max: 1_500,
        frame_len_min: 46,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: Some(1_000_000_000),
    };
    Station::new(config, [id; 32], Time::ZERO).expect("it is sound")
}

/// A segment of host 0 or 1.
fn segment(host: usize, flags: u8, sequence: u32, ack: u32, len: usize) -> Vec<u8> {
    let ends = [([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 80)];
    let ((from, from_port), (to, to_port)) = (ends[host], ends[1 - host]);
    let tcp = PacketBuilder::ipv4(from, to, 64).tcp(from_port, to_port, sequence, 500);
    let tcp = if flags & SYN != 0 { tcp.syn() } else { tcp };
    let tcp = if flags & ACK != 0 { tcp.ack(ack) } else { tcp };
    let stamps = TcpOptionElement::Timestamp(sequence >> 16, ack >> 16);
    let mut options = vec![TcpOptionElement::Noop, TcpOptionElement::Noop, stamps];
    if flags & SYN != 0 {
        options.extend([TcpOptionElement::WindowScale(7), TcpOptionElement::Noop]);
    }
    let mut packet = Vec::new();
    let tcp = tcp.options(&options).expect("they fit");
    tcp.write(&mut packet, &vec![0x5a; len]).expect("it is a vector");
    packet
}

fn main() {
    let packets: u32 = std::env::args().nth(1).map_or(200_000, |text| text.parse().expect("count"));
    let mut stations = [station(1), station(2)];
    let mut now = Time::ZERO;
    let mut delivered = [0u64; 2];
    let mut step = |stations: &mut [Station; 2]| {
        now += Duration::from_micros(100);
        for from in [0, 1] {
            let [a, b] = stations;
            let (from_station, to_station) = if from == 0 { (a, b) } else { (b, a) };
            from_station.handle_timeout(now);
            while let Some(transmit) = from_station.poll_transmit(now) {
                to_station.handle_frame(now, transmit.frame);
                while to_station.poll_packet().is_some() {
                    delivered[1 - from] += 1;
                }
            }
            while from_station.poll_packet().is_some() {}
        }
        now
    };
    let mut at = Time::ZERO;
    (0..2_000).for_each(|_| at = step(&mut stations));
    for (host, flags) in [(0, SYN), (1, SYN | ACK)] {
        stations[host].handle_packet(at, &segment(host, flags, 0, host as u32, 0));
        at = step(&mut stations);
    }
    let len = INGRESS_QUANTUM as usize - 300;
    // Created in advance, so that only the stations' work is counted: numbers wrap around.
    let rounds = 4_096;
    let data: Vec<_> = (0..rounds).map(|n| segment(0, ACK, 1 + n * len as u32, 1, len)).collect();
    let acks: Vec<_> = (0..rounds).map(|n| segment(1, ACK, 1, 1 + n * len as u32, 0)).collect();
    let begin = Instant::now();
    for n in 0..packets {
        let n = (n % rounds) as usize;
        stations[0].handle_packet(at, &data[n]);
        if n % 2 == 1 {
            stations[1].handle_packet(at, &acks[n]);
        }
        at = step(&mut stations);
    }
    let ns = begin.elapsed().as_secs_f64() * 1e9 / f64::from(packets);
    let compressed = stations[0].stats().packets_compressed;
    println!("{ns:.0} ns a packet; {delivered:?} delivered, {compressed} compressed");
}
