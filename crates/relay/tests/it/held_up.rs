//! Frames held up on their way: retransmitted contents are refused, and nothing else.

use core::time::Duration;

use corridor_base::Time;
use corridor_relay::wire::{Frame, Frames, NeighbourReport, Part, Report, with_reports, xor};
use corridor_relay::{NodeId, PacketId, Relay, RelayConfig, Taken};

use crate::chain::{ms, over_a_lossy_hop, packet, relay};

fn plain(counter: u32, asks: bool, text: &str) -> Vec<u8> {
    Frame::Plain { counter, ttl: 9, asks, packet: text.as_bytes() }.to_bytes()
}

/// For node 1 the packet `wanted`, for node 3 `known`.
fn coded(counter: u32, asks: bool) -> Vec<u8> {
    let part = |to, text: &str| Part {
        to: NodeId(to),
        ttl: 9,
        len_bytes: text.len() as u16,
        id: PacketId::of(text.as_bytes()),
    };
    let parts = [part(1, "wanted"), part(3, "known")];
    let xored = xor(b"wanted", b"known");
    Frame::Coded { counter, parts, asks, xored: &xored }.to_bytes()
}

/// Result of a held-up frame of node 2, and the packet it delivers.
fn late(node: &mut Relay, addressed: bool, frame: &[u8]) -> (Taken, Option<Vec<u8>>) {
    let taken = node.handle_held_up(ms(500), NodeId(2), addressed, frame);
    (taken, node.poll_received().map(|received| received.packet.to_vec()))
}

#[test]
fn what_is_sent_again_is_refused_when_it_was_held_up_and_nothing_else() {
    let refused = (Taken::HeldUp, None);
    let brings = |text: &str| (Taken::Yes, Some(text.as_bytes().to_vec()));
    let knowing = |config: RelayConfig| {
        let mut node = relay(1, config);
        node.send(ms(490), NodeId(2), 9, packet("known")).expect("room");
        node.poll_transmit(ms(490)).expect("it has sent it");
        node
    };
    let mut node = knowing(RelayConfig::default());
    assert_eq!(late(&mut node, true, &plain(1, true, "p")), refused);
    assert_eq!(late(&mut node, true, &plain(1, false, "p")), brings("p"), "the MAC has brought it");
    assert_eq!(late(&mut node, false, &coded(2, false)), refused, "it was only overheard");
    assert_eq!(late(&mut node, true, &coded(2, true)), refused);
    assert_eq!(late(&mut node, true, &coded(2, false)), brings("wanted"));
    assert_eq!(late(&mut node, false, &plain(3, true, "q")), (Taken::Yes, None), "it is another's");
    let entries = vec![NeighbourReport { node: NodeId(1), heard: 9, coded: 0, failed: 0 }];
    let announcement = Frame::Announcement { counter: 4, entries }.to_bytes();
    assert_eq!(late(&mut node, false, &announcement), refused, "another one is said in a second");
    let reports = [Report { node: NodeId(1), newest: 1, came: 0 }];
    assert_eq!(late(&mut node, false, &with_reports(&reports, &[])), refused);
    assert_eq!(late(&mut node, true, &plain(1, true, "p")[..4]), (Taken::Malformed, None));
    assert_eq!(node.stats().held_up, 5);

    let mut node = knowing(RelayConfig::paper());
    assert_eq!(late(&mut node, false, &coded(2, false)), brings("wanted"), "nothing is reported");
}

/// A retransmission may have arrived before: a node that held that frame up would deliver a copy.
#[test]
fn what_goes_again_asks_to_be_reported_also_where_the_mac_gives_up_nothing() {
    let [mut from, mut to] = over_a_lossy_hop(RelayConfig::default());
    from.send(ms(1), NodeId(2), 9, packet("p")).expect("room");
    let first = from.poll_transmit(ms(1)).expect("a frame").frame;
    to.handle_frame(ms(2), NodeId(1), true, &first);
    // The hop is good from here on, and the report is lost.
    for _ in 0..2_000 {
        let to = corridor_relay::LinkDestination::Unicast(NodeId(2));
        from.handle_outcome(ms(3), to, 1, true);
    }
    let due = from.poll_timeout().expect("it is not reported");
    let again = from.poll_transmit(due).expect("it goes again").frame;
    let frame = Frame::parse(&again).expect("a frame");
    assert!(matches!(frame, Frame::Plain { asks: true, packet: b"p", .. }), "{frame:?}");
    // It would now be taken for new.
    let late = Time::from_millis(9_000);
    assert_eq!(to.handle_held_up(late, NodeId(1), true, &again), Taken::HeldUp);
    // First transmissions no longer ask for reports there.
    from.send(due, NodeId(2), 9, packet("q")).expect("room");
    let next = from.poll_transmit(due).expect("a frame").frame;
    assert!(matches!(Frame::parse(&next), Some(Frame::Plain { asks: false, .. })));
}

/// Reports are sent once: they were dropped with the combination that they preceded.
#[test]
fn reports_before_a_combination_that_was_overtaken_are_heeded() {
    let [mut from, _] = over_a_lossy_hop(RelayConfig::default());
    from.send(ms(1), NodeId(2), 9, packet("p")).expect("room");
    let frame = from.poll_transmit(ms(1)).expect("it is lost").frame;
    let newest = Frame::parse(&frame).expect("a frame").counter() as u16;
    from.handle_frame(ms(2), NodeId(2), true, &plain(10, true, "newer"));
    let covered = Frames { newest: 8, bits: 1 };
    let repair = Frame::Repair { counter: 9, covered, combined: &[1; 20] }.to_bytes();
    let report = Report { node: NodeId(1), newest, came: 0 };
    let taken = from.handle_frame(ms(3), NodeId(2), true, &with_reports(&[report], &repair));
    assert_eq!((taken, from.stats().resent), (Taken::HeldUp, 1));
    assert_eq!((from.stats().held_up, from.stats().repaired), (1, 0));
}

/// Linux delivers out-of-order frames after 100 ms, however long packets are kept for decoding.
#[test]
fn copies_are_known_for_longer_than_frames_are_on_their_way() {
    for decode_ms in [1, 100, 1_440, 1_500, 60_000] {
        let decode_for = Duration::from_millis(decode_ms);
        let config = RelayConfig { decode_for, ..RelayConfig::default() };
        assert!(config.held_up_after() >= Duration::from_millis(120), "{decode_ms} ms");
        assert!(config.known_for() >= decode_for);
        let mut node = relay(1, config);
        node.handle_frame(ms(0), NodeId(2), true, &plain(1, true, "p"));
        let last = Time::ZERO + config.goes_again_for() + config.held_up_for();
        node.handle_frame(last, NodeId(2), true, &plain(2, true, "p"));
        assert_eq!(node.stats().duplicates, 1, "{decode_ms} ms");
    }
    assert_eq!(RelayConfig::default().known_for(), RelayConfig::default().decode_for);
}
