//! Chains of nodes without a medium: the addressee gets the frame, neighbours overhear it.

use core::time::Duration;
use std::sync::Arc;

use corridor_base::Time;
use corridor_relay::wire::{Frame, NeighbourReport, split};
use corridor_relay::{
    Adaptive, Hold, LinkDestination, NodeId, Relay, RelayConfig, RelayError, SwitchOff, Transmit,
};

pub fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

pub fn relay(id: u16, config: RelayConfig) -> Relay {
    Relay::new(NodeId(id), config, Time::ZERO).expect("its settings are sound")
}

pub fn packet(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

/// A frame as tests name it: `p to 2`, `2 for 2 + 3 for 0 to 2` (bytes for each receiver, and the
/// MAC's addressee), `announcement to all`.
pub fn said(transmit: &Transmit) -> String {
    let to = match transmit.to {
        LinkDestination::Unicast(node) => node.to_string(),
        LinkDestination::Broadcast => "all".to_owned(),
    };
    let (reports, frame) = split(&transmit.frame).expect("it reads its own");
    if frame.is_empty() {
        return format!("{} reports to {to}", reports.len());
    }
    match Frame::parse(frame).expect("it reads its own") {
        Frame::Plain { packet, .. } => format!("{} to {to}", String::from_utf8_lossy(packet)),
        Frame::Coded { parts: [one, two], .. } => {
            format!("{} for {} + {} for {} to {to}", one.len_bytes, one.to, two.len_bytes, two.to)
        }
        Frame::Announcement { .. } => format!("announcement to {to}"),
        Frame::Repair { covered, .. } => format!("{} repaired to {to}", covered.bits.count_ones()),
    }
}

/// A chain of nodes, numbered from 0, which hear their neighbours.
struct Chain {
    nodes: Vec<Relay>,
    /// Packets that reached their destination, and where.
    arrived: Vec<(u16, String)>,
    /// Frames sent.
    log: Vec<String>,
}

impl Chain {
    fn new(count: u16, config: RelayConfig) -> Self {
        let nodes = (0..count).map(|id| relay(id, config)).collect();
        Chain { nodes, arrived: Vec::new(), log: Vec::new() }
    }

    /// The next node towards the destination that a packet names by its first letter: A is node 0.
    fn next(&self, at: u16, packet: &[u8]) -> Option<u16> {
        let end = if packet[0] == b'A' { self.nodes.len() as u16 - 1 } else { 0 };
        (at != end).then(|| if end > at { at + 1 } else { at - 1 })
    }

    fn begin(&mut self, now: Time, at: u16, text: &str) {
        let next = NodeId(self.next(at, text.as_bytes()).expect("not for itself"));
        self.nodes[usize::from(at)].send(now, next, 64, packet(text)).expect("there is room");
    }

    /// Each node in turn sends one frame, if it has one.
    fn turn(&mut self, now: Time) {
        self.turn_of(now, |_| true);
    }

    /// The same of some nodes.
    fn turn_of(&mut self, now: Time, sends: impl Fn(u16) -> bool) {
        for at in (0..self.nodes.len() as u16).filter(|&at| sends(at)) {
            let Some(transmit) = self.nodes[usize::from(at)].poll_transmit(now) else { continue };
            self.log.push(format!("{at}: {}", said(&transmit)));
            let near = [at.checked_sub(1), Some(at + 1)];
            for to in near.into_iter().flatten() {
                let Some(node) = self.nodes.get_mut(usize::from(to)) else { continue };
                let addressed = transmit.to == LinkDestination::Broadcast
                    || transmit.to == LinkDestination::Unicast(NodeId(to));
                node.handle_frame(now, NodeId(at), addressed, &transmit.frame);
                while let Some(received) = self.nodes[usize::from(to)].poll_received() {
                    let next = self.next(to, &received.packet);
                    let Some(next) = next else {
                        let text = String::from_utf8_lossy(&received.packet).into_owned();
                        self.arrived.push((to, text));
                        continue;
                    };
                    let hops = (received.from, NodeId(next));
                    let bytes = (received.packet, received.was_coded);
                    let node = &mut self.nodes[usize::from(to)];
                    node.forward_received(now, hops, received.ttl, bytes).expect("there is room");
                }
            }
        }
    }

    fn sent(&self) -> (u64, u64) {
        let stats = self.nodes.iter().map(|node| node.stats());
        stats.fold((0, 0), |sum, stats| (sum.0 + stats.plain_sent, sum.1 + stats.coded_sent))
    }
}

/// Section II, Fig. 2 for one relay: three transmissions in place of four.
#[test]
fn alice_and_bob() {
    for (config, expected) in [(RelayConfig::paper(), (2, 1)), (RelayConfig::plain(), (4, 0))] {
        let mut chain = Chain::new(3, config);
        chain.begin(ms(0), 0, "A1");
        chain.begin(ms(0), 2, "B1 is longer");
        (0..3).for_each(|turn| chain.turn(ms(turn)));
        let both = [(0, "B1 is longer".to_owned()), (2, "A1".to_owned())];
        chain.arrived.sort();
        assert_eq!(chain.arrived, both, "{:?}", chain.log);
        assert_eq!(chain.sent(), expected, "{:?}", chain.log);
    }
}

/// Fig. 5: a decoded packet is combined again, and its previous neighbour decodes that with what it
/// has combined itself.
#[test]
fn what_is_decoded_is_recoded_along_a_chain() {
    let mut chain = Chain::new(5, RelayConfig::paper());
    for number in 0..20 {
        chain.begin(ms(10 * number), 0, &format!("A{number}"));
        chain.begin(ms(10 * number), 4, &format!("B{number} with more bytes"));
        chain.turn(ms(10 * number));
    }
    (0..60).for_each(|turn| chain.turn(ms(200 + 10 * turn)));
    assert_eq!(chain.arrived.len(), 40, "{:?}", chain.log);
    let recoded: u64 = chain.nodes.iter().map(|node| node.stats().recoded).sum();
    assert!(recoded >= 40, "{recoded} of {:?}", chain.log);
    let stats = chain.nodes.iter().map(|node| node.stats());
    assert!(
        stats
            .clone()
            .all(|stats| stats.undecodable + stats.decode_mismatches + stats.malformed == 0)
    );
    // Of 40 packets over four hops.
    let (plain, coded) = chain.sent();
    assert_eq!(plain + 2 * coded, 160);
    assert!(coded >= 50, "{coded}");
}

#[test]
fn a_packet_without_partner_goes_when_its_hold_is_over() {
    let mut node = relay(1, RelayConfig::paper());
    node.forward(ms(5), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
    assert_eq!(node.poll_transmit(ms(54)), None);
    assert_eq!(node.poll_timeout(), Some(ms(55)));
    assert_eq!(said(&node.poll_transmit(ms(55)).expect("due")), "p to 2");
    // As in the kernel, it then belongs to the driver: a partner comes too late.
    node.forward(ms(100), (NodeId(0), NodeId(2)), 9, packet("q")).expect("room");
    node.forward(ms(151), (NodeId(2), NodeId(0)), 9, packet("r")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(151)).expect("due")), "q to 2");
    assert_eq!(said(&node.poll_transmit(ms(201)).expect("due")), "r to 0");
}

#[test]
fn by_default_nothing_is_held_without_congestion_and_what_waits_is_combined() {
    let trusting = RelayConfig { switch_off: None, ..RelayConfig::default() };
    let mut node = relay(1, trusting);
    let (there, back) = ((NodeId(0), NodeId(2)), (NodeId(2), NodeId(0)));
    for (way, text) in [(there, "p1"), (there, "p2"), (back, "q1"), (there, "p3"), (back, "q2")] {
        node.forward(ms(0), way, 9, packet(text)).expect("room");
    }
    let said: Vec<_> =
        core::iter::from_fn(|| node.poll_transmit(ms(0))).map(|transmit| said(&transmit)).collect();
    assert_eq!(said, ["2 for 2 + 2 for 0 to 2", "2 for 2 + 2 for 0 to 2", "p3 to 2"]);
}

#[test]
fn opposite_flows_come_before_others_that_can_be_decoded() {
    let config = RelayConfig { switch_off: None, ..RelayConfig::default() };
    let hears = |node: &mut Relay, who: u16, whom: u16| {
        let entries = vec![NeighbourReport { node: NodeId(whom), heard: 250, coded: 0, failed: 0 }];
        let frame = Frame::Announcement { counter: 1, entries }.to_bytes();
        node.handle_frame(ms(0), NodeId(who), true, &frame);
    };
    // A cross: 1 to 2 and 3 to 4; 2 hears 3, and 4 hears 1.
    let mut node = relay(0, config);
    node.forward(ms(0), (NodeId(1), NodeId(2)), 9, packet("p")).expect("room");
    node.forward(ms(0), (NodeId(3), NodeId(4)), 9, packet("q")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(0)).expect("ready")), "p to 2", "nobody is heard");
    assert_eq!(said(&node.poll_transmit(ms(0)).expect("ready")), "q to 4");
    hears(&mut node, 2, 3);
    hears(&mut node, 4, 1);
    node.forward(ms(0), (NodeId(1), NodeId(2)), 9, packet("p2")).expect("room");
    node.forward(ms(0), (NodeId(4), NodeId(3)), 9, packet("q0")).expect("room");
    node.forward(ms(0), (NodeId(3), NodeId(4)), 9, packet("q2")).expect("room");
    // The packet that came from 4, though it came later.
    assert_eq!(said(&node.poll_transmit(ms(0)).expect("ready")), "p2 to 2");
    assert_eq!(said(&node.poll_transmit(ms(0)).expect("ready")), "2 for 3 + 2 for 4 to 3");
    node.forward(ms(1), (NodeId(1), NodeId(2)), 9, packet("p3")).expect("room");
    node.forward(ms(1), (NodeId(3), NodeId(4)), 9, packet("q3")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(1)).expect("ready")), "2 for 2 + 2 for 4 to 2");
}

#[test]
fn the_receiver_with_the_worse_link_is_addressed() {
    let mut node = relay(1, RelayConfig::paper());
    for (to, attempts) in [(2, 1), (0, 3)] {
        (0..9).for_each(|_| {
            node.handle_outcome(ms(0), LinkDestination::Unicast(NodeId(to)), attempts, true)
        });
    }
    node.forward(ms(0), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
    node.forward(ms(0), (NodeId(2), NodeId(0)), 9, packet("q")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(0)).expect("ready")), "1 for 2 + 1 for 0 to 0");
}

/// Section II-A holds while congested, Section IV-B codes while congested.
#[test]
fn retries_toggle_holding_or_coding() {
    let retry = |node: &mut Relay, at: Time| {
        (0..9).for_each(|_| node.handle_outcome(at, LinkDestination::Unicast(NodeId(2)), 7, true));
    };
    for adaptive in [Adaptive::Holding, Adaptive::Coding] {
        let mut node = relay(1, RelayConfig { adaptive, ..RelayConfig::paper_adaptive() });
        node.forward(ms(10), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
        assert_eq!(said(&node.poll_transmit(ms(10)).expect("not held")), "p to 2", "{adaptive:?}");
        retry(&mut node, ms(500));
        node.forward(ms(900), (NodeId(0), NodeId(2)), 9, packet("q")).expect("room");
        assert_eq!(said(&node.poll_transmit(ms(900)).expect("not held")), "q to 2");
        node.forward(ms(1001), (NodeId(0), NodeId(2)), 9, packet("r")).expect("room");
        node.forward(ms(1040), (NodeId(2), NodeId(0)), 9, packet("s")).expect("room");
        let coded = said(&node.poll_transmit(ms(1040)).expect("coded"));
        assert_eq!(coded, "1 for 2 + 1 for 0 to 2", "{adaptive:?}");
        // Announcements aside, the next second has no retries.
        node.forward(ms(2500), (NodeId(0), NodeId(2)), 9, packet("t")).expect("room");
        let rest = core::iter::from_fn(|| node.poll_transmit(ms(2500))).map(|t| said(&t));
        assert!(rest.collect::<Vec<_>>().contains(&"t to 2".to_owned()), "{adaptive:?}");
        assert_eq!(node.stats().congested_s, 1);
    }
}

/// The readings differ if packets wait for the channel: without congestion II-A combines them, IV-B
/// does not.
#[test]
fn without_congestion_holding_still_combines_what_waits_and_coding_does_not() {
    let candidates = corridor_relay::Candidates::Waiting;
    let expected = [(Adaptive::Holding, "1 for 2 + 1 for 0 to 2"), (Adaptive::Coding, "p to 2")];
    for (adaptive, expected) in expected {
        let config = RelayConfig { adaptive, candidates, ..RelayConfig::paper_adaptive() };
        let mut node = relay(1, config);
        node.forward(ms(10), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
        node.forward(ms(10), (NodeId(2), NodeId(0)), 9, packet("q")).expect("room");
        assert_eq!(said(&node.poll_transmit(ms(10)).expect("ready")), expected, "{adaptive:?}");
    }
}

#[test]
fn a_learned_hold_lasts_until_the_next_packet_is_expected() {
    let hold = Hold::Learned { most: Duration::from_millis(20) };
    let config = RelayConfig { hold, switch_off: None, ..RelayConfig::default() };
    let mut node = relay(1, config);
    let pass = |node: &mut Relay, numbers: core::ops::Range<u64>| {
        for number in numbers {
            let (at, back) = (ms(10 * number), (NodeId(2), NodeId(0)));
            node.forward(at, back, 9, packet(&format!("q{number}"))).expect("room");
            while node.poll_transmit(at).is_some() {}
        }
    };
    pass(&mut node, 0..10);
    node.forward(ms(94), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(94)).expect("not congested")), "p to 2");
    pass(&mut node, 10..60);
    (0..9).for_each(|_| node.handle_outcome(ms(600), LinkDestination::Unicast(NodeId(2)), 7, true));
    pass(&mut node, 60..110);
    node.forward(ms(1094), (NodeId(0), NodeId(2)), 9, packet("p2")).expect("room");
    assert_eq!(node.poll_transmit(ms(1094)), None);
    node.forward(ms(1100), (NodeId(2), NodeId(0)), 9, packet("q110")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(1100)).expect("both")), "2 for 2 + 4 for 0 to 2");
}

/// A packet is held as long as others have just waited for the channel, and no longer: 30 ms here,
/// then not at all, once two seconds have passed in which none waited.
#[test]
fn a_hold_lasts_as_long_as_others_wait() {
    let announce_every = Duration::from_secs(60);
    let (switch_off, resend) = (None, false);
    let config = RelayConfig { switch_off, resend, announce_every, ..RelayConfig::default() };
    let mut node = relay(1, config);
    let (there, back) = ((NodeId(0), NodeId(2)), (NodeId(2), NodeId(0)));
    node.forward(ms(1000), there, 9, packet("a")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(1000)).expect("none waits")), "a to 2");
    node.forward(ms(1000), there, 9, packet("b")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(1030)).expect("ready")), "b to 2");
    node.forward(ms(1100), there, 9, packet("p")).expect("room");
    assert_eq!(node.poll_transmit(ms(1129)), None);
    assert_eq!(node.poll_timeout(), Some(ms(1130)));
    node.forward(ms(1129), back, 9, packet("q")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(1129)).expect("both")), "1 for 2 + 1 for 0 to 2");
    node.forward(ms(1130), there, 9, packet("c")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(1160)).expect("its time is over")), "c to 2");
    node.forward(ms(3000), there, 9, packet("d")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(3000)).expect("none waited")), "d to 2");
    // If MAC retries are reported, only while there are many.
    node.forward(ms(3000), there, 9, packet("e")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(3030)).expect("ready")), "e to 2");
    node.handle_outcome(ms(3030), LinkDestination::Unicast(NodeId(2)), 1, true);
    node.forward(ms(3031), there, 9, packet("f")).expect("room");
    assert_eq!(said(&node.poll_transmit(ms(3031)).expect("not congested")), "f to 2");
}

/// Eighty packets per second arrive, forty leave: with a target, some of those that have waited
/// longer are dropped, and the wait of the others is bounded; without one, the queue fills up. If
/// neighbours hold back packets they have no room for, only a node's own are dropped.
#[test]
fn what_stands_is_dropped() {
    let run = |queue_target, window_packets, is_own| {
        let (hold, candidates) = (Hold::None, corridor_relay::Candidates::Held);
        let announce_every = Duration::from_secs(60);
        let config = RelayConfig { hold, candidates, queue_target, ..RelayConfig::default() };
        let mut node = relay(1, RelayConfig { announce_every, window_packets, ..config });
        let (mut full, mut longest) = (0, Duration::ZERO);
        for step in 0..1600_u64 {
            let at = Time::from_nanos(12_500_000 * step);
            let name = packet(&format!("{step}"));
            let taken = match is_own {
                true => node.send(at, NodeId(2), 9, name),
                false => node.forward(at, (NodeId(0), NodeId(2)), 9, name),
            };
            full += u32::from(taken.is_err());
            if step % 2 == 1 {
                node.poll_transmit(at).expect("there is always one");
            }
            if step > 800 {
                longest = longest.max(node.oldest(at));
            }
        }
        (node.stats().codel_drops, full, longest)
    };
    let target = Some(Duration::from_millis(15));
    for (window, is_own) in [(None, false), (None, true), (Some(4), true)] {
        let (dropped, full, longest) = run(target, window, is_own);
        assert!((700..=800).contains(&dropped) && full == 0, "{dropped}, {full}");
        assert!(longest < Duration::from_millis(200), "{longest:?}");
    }
    for (target, window) in [(None, None), (target, Some(4))] {
        let (dropped, full, longest) = run(target, window, false);
        assert!(dropped == 0 && full > 600, "{dropped}, {full}");
        assert!(longest > Duration::from_secs(2), "{longest:?}");
    }
}

/// The third relay sends half as often as the others: what it has no room for waits at the source,
/// without a queue in between. Without a window, the queue is there.
#[test]
fn what_a_chain_does_not_carry_waits_at_its_source() {
    for window_packets in [Some(4), None] {
        let announce_every = Duration::from_secs(60);
        let config = RelayConfig { window_packets, announce_every, ..RelayConfig::default() };
        let (mut chain, mut most) = (Chain::new(6, config), 0);
        for turn in 0..200 {
            if turn < 60 {
                chain.begin(ms(5 * turn), 0, &format!("A{turn}"));
            }
            chain.turn_of(ms(5 * turn), |at| at != 3 || turn % 2 == 0);
            most = most.max((1..5).map(|at| chain.nodes[at].backlog()).max().unwrap_or(0));
        }
        let own = chain.nodes[0].stats();
        let between: u64 = (1..5).map(|at| chain.nodes[at].stats().codel_drops).sum();
        assert_eq!(chain.arrived.len() as u64 + own.codel_drops + between, 60);
        match window_packets {
            Some(window) => assert!(most <= window && between == 0 && own.codel_drops > 0),
            None => assert!(most > 4 && between > 0 && own.codel_drops == 0, "{most}"),
        }
    }
}

#[test]
fn receivers_that_hear_too_little_are_sent_no_coded_frames() {
    let off = SwitchOff { heard_ratio_min: 0.8, failed_ratio_max: 0.1 };
    let config = RelayConfig { switch_off: Some(off), ..RelayConfig::default() };
    let mut node = relay(1, config);
    let frames = |node: &mut Relay, heard: [u8; 2]| {
        for (who, heard) in [(0, heard[0]), (2, heard[1])] {
            let entries = vec![NeighbourReport { node: NodeId(1), heard, coded: 0, failed: 0 }];
            let frame = Frame::Announcement { counter: 1, entries }.to_bytes();
            node.handle_frame(ms(0), NodeId(who), true, &frame);
        }
        node.forward(ms(0), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
        node.forward(ms(0), (NodeId(2), NodeId(0)), 9, packet("q")).expect("room");
        core::iter::from_fn(|| node.poll_transmit(ms(0))).count()
    };
    assert_eq!(frames(&mut node, [150, 190]), 2);
    // One overhears enough: the other one is addressed, and has retries.
    assert_eq!(frames(&mut node, [150, 220]), 1);
    let mut silent = relay(1, config);
    silent.forward(ms(0), (NodeId(0), NodeId(2)), 9, packet("p")).expect("room");
    silent.forward(ms(0), (NodeId(2), NodeId(0)), 9, packet("q")).expect("room");
    assert_eq!(core::iter::from_fn(|| silent.poll_transmit(ms(0))).count(), 2, "nobody announced");
}

#[test]
fn a_queue_is_bounded_and_packets_end() {
    let mut node = relay(1, RelayConfig { queue_packets: 3, ..RelayConfig::paper() });
    for number in 0..3 {
        node.send(ms(0), NodeId(2), 9, packet(&format!("p{number}"))).expect("room");
    }
    let full = node.forward(ms(0), (NodeId(0), NodeId(2)), 9, packet("q"));
    assert_eq!(full, Err(RelayError::Full { given: 3 }));
    assert_eq!(node.send(ms(0), NodeId(2), 0, packet("r")), Err(RelayError::Expired));
    let empty = node.send(ms(0), NodeId(2), 9, packet(""));
    assert!(matches!(empty, Err(RelayError::PacketLen { given: 0, .. })));
    assert_eq!((node.stats().queue_drops, node.stats().expired, node.backlog()), (1, 1, 3));
    let unsound = RelayConfig { queue_packets: 1, ..RelayConfig::paper() };
    assert!(Relay::new(NodeId(1), unsound, Time::ZERO).is_err());
}

/// Nodes that have sent or overheard a packet keep it for a limited time, counted from before it
/// arrived here: an older backlog cannot be decoded.
#[test]
fn what_waits_longer_than_others_keep_it_goes_alone() {
    let candidates = corridor_relay::Candidates::Waiting;
    let config = RelayConfig { candidates, hold: Hold::None, ..RelayConfig::paper() };
    let (there, back) = ((NodeId(0), NodeId(2)), (NodeId(2), NodeId(0)));
    let frames = |node: &mut Relay, at: Time| -> Vec<String> {
        let sent = core::iter::from_fn(|| node.poll_transmit(at)).map(|transmit| said(&transmit));
        sent.filter(|said| !said.starts_with("announcement")).collect()
    };
    // A late partner is not used.
    for (late_ms, expected) in
        [(750, vec!["1 for 2 + 1 for 0 to 2"]), (751, vec!["p to 2", "q to 0"])]
    {
        let mut node = relay(1, config);
        node.forward(ms(0), there, 9, packet("p")).expect("room");
        node.forward(ms(late_ms), back, 9, packet("q")).expect("room");
        assert_eq!(frames(&mut node, ms(late_ms)), expected, "{late_ms} ms");
    }
    // A pair that waits for the channel too long is split, and later packets stay behind it.
    for (late_ms, expected) in [
        (1_125, vec!["1 for 2 + 1 for 0 to 2", "r to 2"]),
        (1_126, vec!["p to 2", "q to 0", "r to 2"]),
    ] {
        let mut node = relay(1, config);
        node.forward(ms(0), there, 9, packet("p")).expect("room");
        node.forward(ms(0), back, 9, packet("q")).expect("room");
        node.forward(ms(0), there, 9, packet("r")).expect("room");
        assert_eq!(frames(&mut node, ms(late_ms)), expected, "{late_ms} ms");
        assert_eq!((node.backlog(), node.backlog_bytes()), (0, 0));
    }
}

/// A relay between two ends that has sent a coded frame: its bytes, the ends, and the relay.
fn coded(config: RelayConfig) -> (Vec<u8>, [Relay; 2], Relay) {
    let (mut ends, mut between) = ([relay(0, config), relay(2, config)], relay(1, config));
    let texts = ["to the right", "to the left"];
    for (end, text) in ends.iter_mut().zip(texts) {
        end.send(ms(1), NodeId(1), 9, packet(text)).unwrap();
        end.poll_transmit(ms(1)).unwrap();
    }
    between.forward(ms(2), (NodeId(0), NodeId(2)), 9, packet(texts[0])).unwrap();
    between.forward(ms(2), (NodeId(2), NodeId(0)), 9, packet(texts[1])).unwrap();
    let transmit = between.poll_transmit(ms(2)).unwrap();
    assert_eq!(said(&transmit), "12 for 2 + 11 for 0 to 2");
    assert!(between.poll_transmit(ms(2)).is_none());
    (transmit.frame, ends, between)
}

/// Packets are combined at once, whoever hears whom.
fn trusting() -> RelayConfig {
    RelayConfig { switch_off: None, ..RelayConfig::default() }
}

#[test]
fn what_the_overhearing_receiver_has_is_reported_and_not_sent_again() {
    let (frame, [mut left, _], mut between) = coded(trusting());
    left.handle_frame(ms(3), NodeId(1), false, &frame);
    assert_eq!(left.poll_received().unwrap().packet, packet("to the left"));
    assert!(left.poll_transmit(ms(22)).is_none(), "the report waits for a frame to go with");
    assert_eq!(left.poll_timeout(), Some(ms(23)));
    let report = left.poll_transmit(ms(23)).unwrap();
    assert_eq!(said(&report), "1 reports to all");
    between.handle_frame(ms(24), NodeId(0), false, &report.frame);
    between.handle_timeout(ms(900));
    assert_eq!(between.stats().resent, 0);
}

#[test]
fn what_the_overhearing_receiver_lacks_is_sent_again_alone() {
    let (_, [mut left, _], mut between) = coded(trusting());
    // The coded frame is lost there; the next one, which is for the other end, reveals it.
    between.forward(ms(3), (NodeId(0), NodeId(2)), 9, packet("more")).unwrap();
    between.forward(ms(3), (NodeId(2), NodeId(0)), 9, packet("less")).unwrap();
    let next = between.poll_transmit(ms(3)).unwrap();
    left.send(ms(4), NodeId(1), 9, packet("more")).unwrap();
    left.poll_transmit(ms(4)).unwrap();
    left.handle_frame(ms(5), NodeId(1), false, &next.frame);
    left.send(ms(6), NodeId(1), 9, packet("own")).unwrap();
    let with_report = left.poll_transmit(ms(6)).unwrap();
    assert_eq!(with_report.to, LinkDestination::Unicast(NodeId(1)));
    between.handle_frame(ms(7), NodeId(0), true, &with_report.frame);
    assert_eq!(between.poll_received().unwrap().packet, packet("own"));
    assert_eq!(said(&between.poll_transmit(ms(7)).unwrap()), "to the left to 0");
    assert_eq!(between.stats().resent, 1);
}

#[test]
fn what_could_not_be_decoded_is_sent_again() {
    let (frame, _, mut between) = coded(trusting());
    let mut stranger = relay(0, trusting());
    stranger.handle_frame(ms(3), NodeId(1), false, &frame);
    assert_eq!(stranger.stats().undecodable, 1);
    let report = stranger.poll_transmit(ms(23)).unwrap();
    between.handle_frame(ms(24), NodeId(0), false, &report.frame);
    assert_eq!(said(&between.poll_transmit(ms(24)).unwrap()), "to the left to 0");
}

#[test]
fn where_nothing_is_reported_it_is_sent_again_after_a_while_and_a_second_copy_is_dropped() {
    let (frame, [mut left, _], mut between) = coded(trusting());
    left.handle_frame(ms(3), NodeId(1), false, &frame);
    assert!(left.poll_received().is_some());
    let due = between.poll_timeout().unwrap();
    assert_eq!(due, ms(502));
    between.handle_timeout(due);
    let again = between.poll_transmit(due).unwrap();
    assert_eq!(said(&again), "to the left to 0");
    left.handle_frame(due, NodeId(1), true, &again.frame);
    assert!(left.poll_received().is_none());
    assert_eq!(left.stats().duplicates, 1);
}

/// A relay whose MAC gives up one in five frames to its neighbour, the other one.
pub fn over_a_lossy_hop(config: RelayConfig) -> [Relay; 2] {
    let announce_every = Duration::from_secs(60);
    let mut nodes = [1, 2].map(|id| relay(id, RelayConfig { announce_every, ..config }));
    for number in 0..40 {
        let to = LinkDestination::Unicast(NodeId(2));
        nodes[0].handle_outcome(ms(0), to, 7, number % 5 > 0);
    }
    nodes
}

/// Passes the next frame from a node, if any, to the other, and returns the packets received.
fn pass(now: Time, from: &mut Relay, to: &mut Relay, number: u16) -> Vec<Arc<[u8]>> {
    let frame = from.poll_transmit(now).expect("there is one").frame;
    assert!(to.handle_frame(now, NodeId(number), true, &frame).is_yes());
    core::iter::from_fn(|| to.poll_received()).map(|received| received.packet).collect()
}

#[test]
fn what_the_mac_gives_up_is_sent_again_by_report() {
    let [mut from, mut to] = over_a_lossy_hop(RelayConfig::default());
    for text in ["p", "q", "r"] {
        from.send(ms(1), NodeId(2), 9, packet(text)).expect("room");
    }
    from.poll_transmit(ms(1)).expect("it is lost");
    assert_eq!(pass(ms(2), &mut from, &mut to, 1), [packet("q")]);
    from.poll_transmit(ms(3)).expect("lost, too");
    assert_eq!(to.poll_timeout(), Some(ms(22)));
    pass(ms(22), &mut to, &mut from, 2);
    assert_eq!(pass(ms(23), &mut from, &mut to, 1), [packet("p")]);
    assert_eq!(from.stats().resent, 1);
    // The last one was not reported: that the one after it arrived shows that it is lost.
    pass(ms(43), &mut to, &mut from, 2);
    assert_eq!(pass(ms(44), &mut from, &mut to, 1), [packet("r")]);
    pass(ms(64), &mut to, &mut from, 2);
    from.handle_timeout(ms(2000));
    assert_eq!((from.stats().resent, from.is_ready()), (2, false));
}

#[test]
fn what_has_come_and_is_sent_again_is_dropped_and_nothing_is_for_ever() {
    let [mut from, mut to] = over_a_lossy_hop(RelayConfig::default());
    from.send(ms(1), NodeId(2), 9, packet("p")).expect("room");
    assert_eq!(pass(ms(1), &mut from, &mut to, 1), [packet("p")]);
    let mut frames = 0;
    while let Some(due) = from.poll_timeout().filter(|&due| due < ms(10_000)) {
        from.handle_timeout(due);
        while from.is_ready() {
            assert!(pass(due, &mut from, &mut to, 1).is_empty());
            frames += 1;
        }
    }
    assert_eq!((frames, to.stats().duplicates), (2, 2), "at 501 and 1001 ms");
}

/// The receiver may have forgotten that it arrived, and would take it for a new one.
#[test]
fn what_goes_again_and_waits_too_long_for_the_air_does_not_go() {
    for (at, goes) in [(1_126, true), (1_127, false)] {
        let [mut from, mut to] = over_a_lossy_hop(RelayConfig::default());
        from.send(ms(1), NodeId(2), 9, packet("p")).expect("room");
        assert_eq!(pass(ms(1), &mut from, &mut to, 1), [packet("p")]);
        from.handle_timeout(ms(501));
        assert!(from.is_ready());
        assert_eq!(from.poll_transmit(ms(at)).is_some(), goes, "{at} ms");
        assert_eq!(from.backlog(), 0);
    }
}

#[test]
fn where_the_mac_sees_to_it_or_nothing_is_resent_nobody_asks() {
    for (resend, share, asks) in [(true, 200, false), (true, 50, true), (false, 5, false)] {
        let mut node = relay(1, RelayConfig { resend, ..RelayConfig::default() });
        for number in 1..=800 {
            let to = LinkDestination::Unicast(NodeId(2));
            node.handle_outcome(ms(0), to, 7, number % share != share / 2);
        }
        node.send(ms(1), NodeId(2), 9, packet("p")).expect("room");
        let frame = node.poll_transmit(ms(1)).expect("ready").frame;
        let asked = matches!(Frame::parse(&frame), Some(Frame::Plain { asks: true, .. }));
        assert_eq!(asked, asks, "one in {share}, {resend}");
    }
}

#[test]
fn where_no_mac_acknowledges_all_is_reported_and_sent_again() {
    let announce_every = Duration::from_secs(60);
    let config = RelayConfig { announce_every, ..RelayConfig::default() };
    let [mut from, mut to] = [1, 2].map(|id| relay(id, config).unacknowledged());
    ["p", "q"].iter().for_each(|text| from.send(ms(1), NodeId(2), 9, packet(text)).expect("room"));
    from.poll_transmit(ms(1)).expect("it is lost");
    assert_eq!(pass(ms(2), &mut from, &mut to, 1), [packet("q")]);
    pass(ms(22), &mut to, &mut from, 2);
    assert_eq!(pass(ms(23), &mut from, &mut to, 1), [packet("p")]);
}

#[test]
fn the_papers_relays_report_nothing_and_send_nothing_again() {
    let (frame, [mut left, _], mut between) = coded(RelayConfig::paper());
    left.handle_frame(ms(3), NodeId(1), false, &frame);
    assert!(left.poll_transmit(ms(900)).is_none());
    between.handle_timeout(ms(900));
    let announcement = Time::from_nanos(1_062_500_000);
    assert_eq!((between.stats().resent, between.poll_timeout()), (0, Some(announcement)));
}

/// A node that has slept has missed the time for which duplicates are recognised: it would accept
/// neighbours' retransmissions as new when it wakes.
#[test]
fn a_copy_is_known_after_a_sleep_and_an_equal_packet_is_taken_after_a_while() {
    let bytes = Frame::Plain { counter: 1, ttl: 9, asks: true, packet: b"again" }.to_bytes();
    for is_awake in [false, true] {
        let mut relay = relay(1, RelayConfig::default());
        relay.handle_frame(ms(10), NodeId(0), true, &bytes);
        assert!(relay.poll_received().is_some());
        let end = ms(10_000);
        while let Some(due) = relay.poll_timeout().filter(|&due| is_awake && due < end) {
            relay.handle_timeout(due);
            while relay.poll_transmit(due).is_some() {}
        }
        relay.handle_frame(end, NodeId(0), true, &bytes);
        assert_eq!(relay.poll_received().is_some(), is_awake);
        assert_eq!(relay.stats().duplicates, u64::from(!is_awake));
    }
}
