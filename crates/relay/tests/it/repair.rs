//! Repairs: combinations of unreported packets, sent when some of them are probably missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use corridor_base::Time;
use corridor_relay::wire::{Frame, Frames, PacketId, SYMBOL_HEAD_BYTES, Symbol, split};
use corridor_relay::{NodeId, Relay, RelayConfig, Transmit};

use crate::chain::{ms, over_a_lossy_hop, packet, relay, said};

/// Two nodes, and a hop between them on which some frames are lost.
struct Hop {
    from: Relay,
    to: Relay,
    now: Time,
    sent: u32,
    received: Vec<Arc<[u8]>>,
}

impl Hop {
    fn new(config: RelayConfig) -> Self {
        let [from, to] = over_a_lossy_hop(config);
        Hop { from, to, now: ms(1), sent: 0, received: Vec::new() }
    }

    fn send(&mut self, text: &str) {
        self.from.send(self.now, NodeId(2), 9, packet(text)).expect("room");
    }

    /// The frames the sender has ready now.
    fn transmits(&mut self) -> Vec<Transmit> {
        core::iter::from_fn(|| self.from.poll_transmit(self.now)).collect()
    }

    fn deliver(&mut self, transmit: &Transmit) {
        assert!(self.to.handle_frame(self.now, NodeId(1), true, &transmit.frame).is_yes());
        let received = core::iter::from_fn(|| self.to.poll_received());
        self.received.extend(received.map(|received| received.packet));
    }

    /// A millisecond passes; one in `lost_every` frames is lost; reports are not.
    fn pass(&mut self, lost_every: u32) {
        self.now += core::time::Duration::from_millis(1);
        for transmit in self.transmits() {
            self.sent += 1;
            if !self.sent.is_multiple_of(lost_every) {
                self.deliver(&transmit);
            }
        }
        while let Some(report) = self.to.poll_transmit(self.now) {
            self.from.handle_frame(self.now, NodeId(2), false, &report.frame);
        }
    }

    /// The same after a number of packets, one every 30 ms, and once nothing is in flight any more.
    fn after(mut self, packets: u32, lost_every: u32) -> Self {
        for number in 0..packets {
            self.send(&format!("before {number}"));
            (0..30).for_each(|_| self.pass(lost_every));
        }
        (0..2_000).for_each(|_| self.pass(u32::MAX));
        self
    }

    /// The first frame sent within this time, while nothing is reported.
    fn next_within(&mut self, ms: u32) -> Option<Transmit> {
        (0..ms).find_map(|_| {
            self.now += core::time::Duration::from_millis(1);
            self.transmits().into_iter().next()
        })
    }
}

#[test]
fn whichever_was_lost_comes_out_of_a_repair_before_anything_is_reported() {
    for lost in 0..3 {
        let mut hop = Hop::new(RelayConfig::default()).after(60, 4);
        assert_eq!(hop.received.iter().collect::<BTreeSet<_>>().len(), 60);
        let texts = ["p", "q, which is longer", "r"];
        texts.iter().for_each(|text| hop.send(text));
        let frames = hop.transmits();
        assert_eq!(frames.len(), 3);
        hop.received.clear();
        for (_, frame) in frames.iter().enumerate().filter(|&(place, _)| place != lost) {
            hop.deliver(frame);
        }
        let repair = hop.next_within(49).expect("before it would be sent again");
        assert_eq!(said(&repair), "3 repaired to 2");
        assert_eq!(hop.received.len(), 2);
        hop.deliver(&repair);
        assert_eq!(hop.received.last(), Some(&packet(texts[lost])));
        // It is reported as received, and not retransmitted.
        let resent = hop.from.stats().resent;
        (0..2_000).for_each(|_| hop.pass(u32::MAX));
        assert_eq!((hop.from.stats().resent, hop.received.len()), (resent, 3));
    }
}

#[test]
fn nothing_is_repaired_where_nothing_is_lost_or_nobody_asks() {
    let never = RelayConfig { repair: false, ..RelayConfig::default() };
    for (config, lost_every, repairs) in [
        (RelayConfig::default(), u32::MAX, false),
        (never, 4, false),
        (RelayConfig::default(), 4, true),
    ] {
        let hop = Hop::new(config).after(100, lost_every);
        assert_eq!(hop.from.stats().repairs_sent > 0, repairs, "one in {lost_every} lost");
        assert_eq!(hop.received.len(), 100);
    }
}

#[test]
fn repairs_end_where_nobody_reports() {
    let mut hop = Hop::new(RelayConfig::default()).after(60, 4);
    let before = hop.from.stats().repairs_sent;
    hop.send("p");
    let mut sent = 0;
    while hop.next_within(10_000).is_some() {
        sent += 1;
        assert!(sent < 60, "{:?}", hop.from.stats());
    }
    assert!(hop.from.stats().repairs_sent > before);
}

/// The frame with two packets is lost to the receiver that overhears it, and so is its packet; the
/// repair delivers it.
#[test]
fn a_packet_of_a_coded_frame_comes_out_of_a_repair() {
    let announce_every = core::time::Duration::from_secs(60);
    let config = RelayConfig { switch_off: None, announce_every, ..RelayConfig::default() };
    let [mut left, mut between] = [0, 1].map(|id| relay(id, config));
    let mut now = ms(1);
    let mut brought = Vec::new();
    for number in 0..80_u32 {
        let [right, to_left] = ["to the right", "to the left"].map(|way| format!("{way} {number}"));
        left.send(now, NodeId(1), 9, packet(&right)).expect("room");
        left.poll_transmit(now).expect("its packet");
        between.forward(now, (NodeId(0), NodeId(2)), 9, packet(&right)).expect("room");
        between.forward(now, (NodeId(2), NodeId(0)), 9, packet(&to_left)).expect("room");
        // Every fourth frame is lost; nothing else reveals the fate of the last one.
        let is_last = number == 79;
        for step in 0..40 {
            now += core::time::Duration::from_millis(1);
            while let Some(transmit) = between.poll_transmit(now) {
                let is_first = step == 0;
                if !(is_first && (number % 4 == 0 || is_last)) {
                    let addressed =
                        transmit.to == corridor_relay::LinkDestination::Unicast(NodeId(0));
                    left.handle_frame(now, NodeId(1), addressed, &transmit.frame);
                    if is_last {
                        brought.push(said(&transmit));
                    }
                }
            }
            while let Some(report) = left.poll_transmit(now).filter(|_| !is_last) {
                between.handle_frame(now, NodeId(0), false, &report.frame);
            }
        }
    }
    assert!(brought.contains(&"1 repaired to 0".to_owned()), "{brought:?}");
    let last = core::iter::from_fn(|| left.poll_received()).last().expect("they came");
    assert_eq!(last.packet, packet("to the left 79"));
}

/// A repair of one packet, as any node of the group could make it.
fn repair(counter: u32, bits: u32, combined: &[u8]) -> Vec<u8> {
    let covered = Frames { newest: counter as u16 - 1, bits };
    Frame::Repair { counter, covered, combined }.to_bytes()
}

#[test]
fn forged_repairs_bring_nothing_and_keep_nothing_from_coming() {
    let mut hop = Hop::new(RelayConfig::default()).after(60, 4);
    let (received, before) = (hop.received.len(), hop.to.stats());
    hop.send("p");
    let frame = hop.transmits().remove(0).frame;
    let newest = Frame::parse(&frame).expect("it is one").counter();
    for counter in newest + 1..newest + 21 {
        let mut combined = vec![counter as u8; SYMBOL_HEAD_BYTES + 1 + counter as usize % 50];
        combined[3] ^= 7;
        let bits = counter.wrapping_mul(0x9e37_79b9) | 1;
        assert!(
            hop.to
                .handle_frame(hop.now, NodeId(1), true, &repair(counter, bits, &combined))
                .is_yes()
        );
        assert!(
            hop.to.handle_frame(hop.now, NodeId(1), true, &repair(counter, 1, &combined)).is_yes()
        );
    }
    assert!(hop.to.poll_received().is_none());
    assert!(hop.to.stats().repair_mismatches > before.repair_mismatches);
    (0..40).for_each(|number| hop.send(&format!("after {number}")));
    (0..2_000).for_each(|_| hop.pass(u32::MAX));
    assert_eq!(hop.received.len(), received + 41);
}

#[test]
fn repairs_that_are_cut_short_are_none() {
    let id = PacketId::of(b"packet");
    let symbol = Symbol { ttl: 3, id, packet: b"packet" }.to_bytes();
    let whole = repair(7, 1, &symbol);
    let mut node = relay(1, RelayConfig::default());
    // Shorter than a header, or empty after it.
    for len in 1..=whole.len() - b"packet".len() {
        assert!(!node.handle_frame(ms(1), NodeId(2), true, &whole[..len]).is_yes(), "{len} bytes");
    }
    assert!(node.handle_frame(ms(1), NodeId(2), true, &whole).is_yes());
    assert!(
        !node.handle_frame(ms(1), NodeId(2), true, &repair(7, 2, &symbol)).is_yes(),
        "not its newest"
    );
    assert!(node.handle_frame(ms(1), NodeId(2), false, &whole).is_yes(), "it is another one's");
    assert_eq!(node.stats().overheard, 1);
    let (reports, _) = split(&whole).expect("there are none");
    assert!(reports.is_empty());
}

#[test]
fn repairs_of_many_neighbours_are_bounded() {
    let mut node = relay(1, RelayConfig::default());
    let combined = [0; SYMBOL_HEAD_BYTES + 1];
    for from in 2..1_000 {
        assert!(node.handle_frame(ms(1), NodeId(from), true, &repair(40, 3, &combined)).is_yes());
    }
    assert_eq!(node.repairers(), corridor_relay::REPAIRERS_MAX);
}
