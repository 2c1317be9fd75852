//! TCP segments for a relay's host that arrive out of order.

use etherparse::{TcpHeader, TcpOptionElement};

use super::*;

const LEN: u32 = 500;

/// A segment of the connection from one end of the row to the other, sent in the place of its
/// number.
fn segment(number: u32) -> Vec<u8> {
    let mut tcp = TcpHeader::new(7, 9, number * LEN, 1_000);
    tcp.ack = true;
    let stamp = TcpOptionElement::Timestamp(number, 0);
    tcp.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, stamp]).unwrap();
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(v4(0), v4(2), 64).tcp_header(tcp);
    builder.write(&mut packet, &[number as u8; LEN as usize]).unwrap();
    packet
}

/// Numbers of segments, and lengths of other packets, as delivered to the other end.
fn came(row: &mut Bed<Air>) -> Vec<u32> {
    let number = |packet: Vec<u8>| match PacketRef::read(&packet).tcp() {
        Some(tcp) => tcp.sequence / LEN,
        None => packet.len() as u32,
    };
    row.delivered[2].drain(..).map(number).collect()
}

/// Sends them, each this long after the one before.
fn put(row: &mut Bed<Air>, numbers: &[u32]) {
    for &number in numbers {
        assert_eq!(row.put(0, &segment(number)), PacketOutcome::Accepted);
        row.run(ms(10));
    }
}

#[test]
fn what_overtook_others_waits_once_some_came_late() {
    let mut row = met(3, RelayConfig::default());
    put(&mut row, &[1, 3, 2]);
    assert_eq!(came(&mut row), [1, 3, 2], "nothing was late before");
    assert_eq!(counters_of(&row, 2).relay_segments_late, 1);
    put(&mut row, &[5]);
    row.put(0, &datagram(0, 2, 64, &[1; 72]));
    row.run(ms(5));
    assert_eq!(came(&mut row), [100], "datagrams wait for nothing");
    assert_eq!(view(&row, 2).segments_held, 1);
    put(&mut row, &[4]);
    assert_eq!(came(&mut row), [4, 5]);
    // A missing segment is waited for no longer than earlier ones were late.
    put(&mut row, &[7]);
    assert_eq!(came(&mut row), [0; 0]);
    row.run(ms(60));
    assert_eq!(came(&mut row), [7]);
    let counters = counters_of(&row, 2);
    assert_eq!((counters.relay_segments_held, counters.relay_segments_overdue), (2, 1));
    assert_eq!(view(&row, 2).segments_held, 0);
    assert_eq!(row[2].stats().packets_delivered, 7);
}

#[test]
fn pure_relaying_leaves_all_as_it_comes() {
    let mut row = met(3, RelayConfig::plain());
    put(&mut row, &[1, 3, 2, 5, 4]);
    assert_eq!(came(&mut row), [1, 3, 2, 5, 4]);
    let counters = counters_of(&row, 2);
    assert_eq!((counters.relay_segments_late, counters.relay_segments_held), (2, 0));
}
