//! What window mode's header compression costs: time per segment of a bulk transfer, at either end,
//! including the copy of its data.
//!
//! ```text
//! cargo run --release -p corridor-proto --example header_cost
//! ```

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use corridor_proto::HeaderContexts;
use corridor_proto::packet::PacketRef;
use etherparse::{PacketBuilder, TcpOptionElement};

const SEGMENTS: usize = 4_096;
const ROUNDS: usize = 200;
const DATA_LEN: usize = 1_348;

fn segments() -> Vec<Vec<u8>> {
    let make = |at: usize| {
        let options = [
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::Timestamp(at as u32 / 20, at as u32 / 30),
        ];
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(40_000, 80, (at * DATA_LEN) as u32, 500)
            .ack(1)
            .options(&options)
            .expect("they fit")
            .write(&mut packet, &[0x5a; DATA_LEN])
            .expect("it is a vector");
        packet
    };
    (0..SEGMENTS).map(make).collect()
}

fn main() {
    let packets = segments();
    let (mut copy, mut compress, mut expand) = (f64::MAX, f64::MAX, f64::MAX);
    let mut sent: Vec<(bool, Vec<u8>)> = vec![(false, Vec::with_capacity(1_500)); SEGMENTS];
    let mut out = Vec::with_capacity(1_500);
    let mut saved = 0;
    for _ in 0..ROUNDS {
        let ns = |since: Instant| since.elapsed().as_secs_f64() * 1e9 / SEGMENTS as f64;
        let begin = Instant::now();
        for (packet, (_, bytes)) in packets.iter().zip(&mut sent) {
            bytes.clear();
            bytes.extend_from_slice(black_box(packet));
        }
        copy = copy.min(ns(begin));
        let mut sender = HeaderContexts::new();
        let begin = Instant::now();
        for (packet, (is_difference, bytes)) in packets.iter().zip(&mut sent) {
            bytes.clear();
            *is_difference = sender.compress(PacketRef::read(black_box(packet)), bytes);
            if !*is_difference {
                bytes.extend_from_slice(packet);
                sender.note_verbatim(PacketRef::read(packet));
            }
        }
        compress = compress.min(ns(begin));
        let mut receiver = HeaderContexts::new();
        let begin = Instant::now();
        for (is_difference, bytes) in &sent {
            if *is_difference {
                receiver.expand(black_box(bytes), 1_400, &mut out).expect("it was heard in order");
            } else {
                receiver.note_verbatim(PacketRef::read(black_box(bytes)));
            }
        }
        expand = expand.min(ns(begin));
        saved = packets.iter().zip(&sent).map(|(p, (_, s))| p.len() - s.len()).sum();
    }
    println!(
        "of {} bytes {:.1} are saved; copied {copy:.0} ns, compressed {compress:.0} ns, \
         expanded {expand:.0} ns",
        packets[0].len(),
        saved as f64 / SEGMENTS as f64
    );
}
