//! Forged or invalid frames: counted and dropped, without other effects.

use corridor_relay::wire::{
    Frame, NeighbourReport, PacketId, Part, REPORTS_MAX, Report, with_reports, xor,
};
use corridor_relay::{NodeId, Relay, RelayConfig, RelayStats, SwitchOff};

use crate::chain::{ms, packet, relay, said};

const OWN: &[u8] = b"what this node has sent";
const OTHER: &[u8] = b"and what it is to get";

/// A node that has sent `OWN`.
fn node() -> Relay {
    let mut node = relay(1, RelayConfig::paper());
    node.send(ms(0), NodeId(2), 9, OWN.into()).expect("room");
    node.poll_transmit(ms(0)).expect("its packet");
    node
}

fn part(to: u16, bytes: &[u8]) -> Part {
    Part { to: NodeId(to), ttl: 9, len_bytes: bytes.len() as u16, id: PacketId::of(bytes) }
}

fn coded(parts: [Part; 2], xored: &[u8]) -> Vec<u8> {
    Frame::Coded { counter: 7, parts, asks: false, xored }.to_bytes()
}

fn right() -> Vec<u8> {
    coded([part(1, OTHER), part(3, OWN)], &xor(OTHER, OWN))
}

/// A node's counters after a frame.
fn counted(frame: &[u8]) -> (RelayStats, usize) {
    let mut node = node();
    let before = node.stats();
    let parsed = node.handle_frame(ms(1), NodeId(2), false, frame).is_yes();
    assert_eq!(parsed, node.stats().malformed == before.malformed);
    let received = core::iter::from_fn(|| node.poll_received()).count();
    assert_eq!(node.poll_transmit(ms(1)), None, "nothing comes of it");
    (node.stats().with(before, |after, before| after - before), received)
}

#[test]
fn a_sound_frame_is_decoded_once() {
    let (stats, received) = counted(&right());
    assert_eq!((stats.decoded, received), (1, 1));
    let mut node = node();
    for _ in 0..3 {
        assert!(node.handle_frame(ms(1), NodeId(2), false, &right()).is_yes(), "it is a frame");
    }
    assert_eq!(core::iter::from_fn(|| node.poll_received()).count(), 1);
    assert_eq!(node.stats().duplicates, 2);
}

#[test]
fn truncated_frames_are_none() {
    let right = right();
    for len in 0..right.len() {
        let (stats, received) = counted(&right[..len]);
        assert_eq!((stats.malformed, received), (1, 0), "{len}");
    }
    let longer = [&right[..], b"?"].concat();
    assert_eq!(counted(&longer).0.malformed, 1);
}

#[test]
fn lengths_that_lie_are_noticed() {
    let xored = xor(OTHER, OWN);
    let lie = |change: fn(&mut [Part; 2])| {
        let mut parts = [part(1, OTHER), part(3, OWN)];
        change(&mut parts);
        counted(&coded(parts, &xored))
    };
    // Longer than the frame, which is then invalid; empty; shorter than it is.
    assert_eq!(lie(|parts| parts[0].len_bytes = u16::MAX).0.malformed, 1);
    assert_eq!(lie(|parts| parts[1].len_bytes = u16::MAX).0.malformed, 1);
    assert_eq!(lie(|parts| parts[0].len_bytes = 0).0.malformed, 1);
    assert_eq!(lie(|parts| parts[0].len_bytes -= 1).0.decode_mismatches, 1);
    assert_eq!(lie(|parts| parts[0].len_bytes += 1).0.decode_mismatches, 1);
    // The known packet has another length: nothing is decoded with it.
    assert_eq!(
        lie(|parts| parts.iter_mut().for_each(|part| part.len_bytes = 23)).0.decode_mismatches,
        1
    );
    assert_eq!(lie(|parts| parts[1].ttl = 0).0.malformed, 1);
    assert_eq!(lie(|parts| parts[1].to = NodeId(1)).0.malformed, 1, "both for one node");
    assert_eq!(lie(|parts| parts[1].id = parts[0].id).0.malformed, 1, "one packet twice");
}

#[test]
fn other_bytes_and_other_ids_are_wrong() {
    let mut bytes = right();
    for at in corridor_relay::wire::CODED_BYTES..bytes.len() {
        bytes[at] ^= 1;
        let (stats, received) = counted(&bytes);
        assert_eq!((stats.decode_mismatches, stats.decoded, received), (1, 0, 0), "{at}");
        bytes[at] ^= 1;
    }
    let another = Part { id: PacketId(5), ..part(1, OTHER) };
    assert_eq!(counted(&coded([another, part(3, OWN)], &xor(OTHER, OWN))).0.decode_mismatches, 1);
    let unknown = Part { id: PacketId(5), ..part(3, OWN) };
    assert_eq!(counted(&coded([part(1, OTHER), unknown], &xor(OTHER, OWN))).0.undecodable, 1);
}

#[test]
fn two_relays_that_code_the_same_packet_bring_it_once() {
    let mut node = node();
    node.handle_frame(ms(1), NodeId(2), false, &right());
    // The other one has combined it with another packet that this node has sent.
    node.send(ms(2), NodeId(2), 9, packet("more")).expect("room");
    node.poll_transmit(ms(2)).expect("its packet");
    let again = coded([part(4, b"more"), part(1, OTHER)], &xor(b"more", OTHER));
    node.handle_frame(ms(3), NodeId(3), true, &again);
    assert_eq!(core::iter::from_fn(|| node.poll_received()).count(), 1);
    assert_eq!((node.stats().decoded, node.stats().duplicates), (2, 1));
}

/// A node that claims to hear what it does not gets coded frames that it cannot decode, reports
/// that, and gets plain ones.
#[test]
fn a_neighbour_that_announces_what_it_does_not_hear_is_left_alone() {
    let off = SwitchOff { heard_ratio_min: 0.8, failed_ratio_max: 0.1 };
    let mut node = relay(0, RelayConfig { switch_off: Some(off), ..RelayConfig::default() });
    let announce = |node: &mut Relay, counter, who: u16, (coded, failed): (u16, u16)| {
        let about =
            |id, coded, failed| NeighbourReport { node: NodeId(id), heard: 255, coded, failed };
        let entries = match who {
            2 => vec![about(0, coded, failed), about(3, 0, 0)],
            _ => vec![about(0, coded, 0), about(1, 0, 0)],
        };
        let frame = Frame::Announcement { counter, entries }.to_bytes();
        node.handle_frame(ms(0), NodeId(who), true, &frame);
    };
    let frames = |node: &mut Relay, name: &str| {
        node.forward(ms(0), (NodeId(1), NodeId(2)), 9, packet(&format!("p{name}"))).expect("room");
        node.forward(ms(0), (NodeId(3), NodeId(4)), 9, packet(&format!("q{name}"))).expect("room");
        let sent: Vec<_> = core::iter::from_fn(|| node.poll_transmit(ms(0))).collect();
        sent.iter().map(said).collect::<Vec<_>>().len()
    };
    announce(&mut node, 1, 2, (0, 0));
    announce(&mut node, 1, 4, (0, 0));
    assert_eq!(frames(&mut node, "1"), 1, "it is believed");
    announce(&mut node, 2, 2, (20, 20));
    assert_eq!(frames(&mut node, "2"), 2, "no more");
    assert_eq!(node.stats().switched_off, 1);
}

#[test]
fn announcements_that_contradict_themselves_are_none() {
    let entry = |id, coded, failed| NeighbourReport { node: NodeId(id), heard: 9, coded, failed };
    let count = |entries: Vec<NeighbourReport>| {
        counted(&Frame::Announcement { counter: 1, entries }.to_bytes()).0.malformed
    };
    assert_eq!(count(vec![entry(1, 3, 3), entry(2, 0, 0)]), 0);
    assert_eq!(count(vec![entry(1, 3, 4)]), 1, "more failed than came");
    assert_eq!(count(vec![entry(2, 0, 0), entry(1, 0, 0)]), 1, "in no order");
    assert_eq!(count(vec![entry(2, 0, 0), entry(2, 0, 0)]), 1, "one twice");
    let mut short = Frame::Announcement { counter: 1, entries: vec![entry(1, 3, 3)] }.to_bytes();
    short[5] = 2;
    assert_eq!(counted(&short).0.malformed, 1);
}

#[test]
fn reports_that_are_cut_short_or_too_many_or_of_others_change_nothing() {
    let mut node = relay(1, RelayConfig { switch_off: None, ..RelayConfig::default() });
    node.forward(ms(1), (NodeId(0), NodeId(2)), 9, packet("right")).unwrap();
    node.forward(ms(1), (NodeId(2), NodeId(0)), 9, packet("left")).unwrap();
    node.poll_transmit(ms(1)).unwrap();
    let report = |node| Report { node: NodeId(node), newest: 1, came: 0 };
    let whole = with_reports(&[report(1), report(3)], &[]);
    for len in 1..whole.len() {
        assert!(!node.handle_frame(ms(2), NodeId(0), false, &whole[..len]).is_yes(), "{len} bytes");
    }
    let many = [report(1); REPORTS_MAX + 1];
    assert!(!node.handle_frame(ms(2), NodeId(0), false, &with_reports(&many, &[])).is_yes());
    assert!(!node.handle_frame(ms(2), NodeId(0), false, &with_reports(&[], &[])).is_yes());
    assert_eq!(node.stats().malformed, whole.len() as u64 + 1);
    // One about another node's frames, and one by a node that is owed nothing.
    assert!(node.handle_frame(ms(2), NodeId(0), false, &with_reports(&[report(3)], &[])).is_yes());
    assert!(node.handle_frame(ms(2), NodeId(2), false, &with_reports(&[report(1)], &[])).is_yes());
    assert_eq!(node.stats().resent, 0);
    // A node that repeatedly claims to lack a packet gets it once.
    for _ in 0..100 {
        assert!(
            node.handle_frame(ms(2), NodeId(0), false, &with_reports(&[report(1)], &[])).is_yes()
        );
    }
    assert_eq!(node.stats().resent, 1);
}
