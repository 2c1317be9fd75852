//! Relays in a row, each of which hears only the next ones: what they carry, what coding saves,
//! what ICMP errors they send, and how they treat frames that were sealed by nobody or by a
//! stranger.

mod ends;
mod in_order;
mod keys;
mod lies;

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::{PacketRef, checksum};
use corridor_proto::bounds::{HELLO_INTERVAL_SLOW, PEER_SILENT_HELLOS};
use corridor_proto::relay::{Adaptive, Hold, RelayConfig};
use corridor_proto::{
    ConfigError, Destination, Event, FrameOutcome, PacketOutcome, Rejection, RelayCounters,
    RelayStation, RelayStationConfig, RelayView, Role, StationConfig, StationId,
};
use corridor_testbed::config::{self as testbed, clocks_of_run};
use corridor_testbed::{Air, Bed, Logged};
use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, SlicedPacket, TransportSlice, icmpv4};
use ipnet::IpNet;

fn v4(at: usize) -> [u8; 4] {
    [10, 9, 0, at as u8 + 1]
}

fn v6(at: usize) -> [u8; 16] {
    [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, at as u8 + 1]
}

fn station(at: usize) -> StationConfig {
    let id = StationId(at as u16 + 1);
    StationConfig { ingress_packets: 100, frame_len_min: 46, ..testbed::config(id, Role::Relay) }
}

/// The relay at a place in a row of `count`: its neighbours lead to everything behind them.
fn config(at: usize, count: usize, relay: RelayConfig) -> RelayStationConfig {
    let network = |at: usize| -> [IpNet; 2] {
        let (v4, v6) = (std::net::IpAddr::from(v4(at)), std::net::IpAddr::from(v6(at)));
        [v4.into(), v6.into()]
    };
    let mut neighbours = Vec::new();
    if at > 0 {
        let networks = (0..at).flat_map(network).collect();
        neighbours.push((StationId(at as u16), networks));
    }
    if at + 1 < count {
        let networks = (at + 1..count).flat_map(network).collect();
        neighbours.push((StationId(at as u16 + 2), networks));
    }
    let own = vec![v4(at).into(), v6(at).into()];
    let ends = Vec::new();
    RelayStationConfig { station: station(at), relay, neighbours, own, broadcast: false, ends }
}

/// Relays that hear only the next ones, and send a frame per millisecond.
fn row_of(count: usize, relay: RelayConfig) -> Bed<Air> {
    let make = |at| RelayStation::new(config(at, count, relay), [at as u8 + 1; 32], Time::ZERO);
    let mut air = Air::with(Duration::ZERO, |it| it.from.abs_diff(it.to) == 1);
    air.gap = ms(1);
    air.log = Some(Vec::new());
    Bed::new((0..count).map(|at| make(at).expect("a sound configuration")), air)
}

/// The same, once all know their neighbours.
fn met(count: usize, relay: RelayConfig) -> Bed<Air> {
    let mut row = row_of(count, relay);
    row.run(ms(2_000));
    for at in 1..count {
        assert!(row[at].is_up(StationId(at as u16)), "{at} does not know {}", at - 1);
    }
    row
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn counters_of<W>(row: &Bed<W>, at: usize) -> RelayCounters {
    row[at].relay().expect("a relay").relay_counters()
}

fn view<W>(row: &Bed<W>, at: usize) -> RelayView {
    row[at].relay().expect("a relay").view(row.now)
}

/// The last frame from one station to another.
fn last_frame(row: &Bed<Air>, from: usize, to: usize) -> Vec<u8> {
    let destination = Destination::Station(StationId(to as u16 + 1));
    let mut sent = row.world.logged().iter().rev();
    let found = sent.find(|it| (it.from, it.to) == (from, destination));
    found.expect("there was one").frame.clone()
}

fn datagram(from: usize, to: usize, hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(v4(from), v4(to), hops).udp(7, 9);
    builder.write(&mut packet, payload).unwrap();
    // Don't fragment; and a traffic class that may be marked, which has to arrive unchanged.
    packet[6] = 0x40;
    packet[1] = 0xb9;
    packet[10..12].fill(0);
    let sum = checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn datagram6(from: usize, to: usize, hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6(v6(from), v6(to), hops).udp(7, 9);
    builder.write(&mut packet, payload).unwrap();
    packet
}

/// A packet as it arrives after this many relays: nothing else has changed.
fn after(packet: &[u8], relays: u8) -> Vec<u8> {
    let mut packet = PacketRef::read(packet).to_buf();
    (0..relays).for_each(|_| assert!(packet.take_hop()));
    packet.to_vec()
}

#[test]
fn opposite_packets_cross_two_to_a_frame_and_arrive_with_a_hop_less() {
    let mut row = met(3, RelayConfig::paper());
    let there: Vec<_> = (0..20_u8).map(|n| datagram(0, 2, 64, &[n; 900])).collect();
    let back: Vec<_> =
        (0..20_u8).map(|n| datagram6(2, 0, 9, &vec![n; 300 + 40 * usize::from(n)])).collect();
    for (there, back) in there.iter().zip(&back) {
        assert_eq!(row.put(0, there), PacketOutcome::Accepted);
        assert_eq!(row.put(2, back), PacketOutcome::Accepted);
        row.run(ms(10));
    }
    row.run(ms(100));
    let expected =
        |sent: &[Vec<u8>]| sent.iter().map(|packet| after(packet, 1)).collect::<Vec<_>>();
    assert_eq!(row.delivered[2], expected(&there));
    assert_eq!(row.delivered[0], expected(&back));
    let relay = counters_of(&row, 1);
    assert_eq!((relay.relay_frames_coded, relay.relay_frames_plain), (20, 0), "{relay:?}");
    for end in [0, 2] {
        let counters = counters_of(&row, end);
        assert_eq!(counters.relay_packets_decoded, 20, "{counters:?}");
        assert_eq!(counters.relay_decode_failures, 0, "{counters:?}");
    }
    assert_eq!(row[0].stats().packets_delivered, 20);
}

#[test]
fn without_coding_each_packet_has_a_frame_of_its_own() {
    let mut row = met(3, RelayConfig::plain());
    let sent = datagram(0, 2, 64, &[1; 100]);
    let back = datagram(2, 0, 64, &[2; 100]);
    row.put(0, &sent);
    row.put(2, &back);
    row.run(ms(20));
    assert_eq!(row.delivered[2], [after(&sent, 1)]);
    assert_eq!(row.delivered[0], [after(&back, 1)]);
    assert_eq!(counters_of(&row, 1).relay_frames_plain, 2);
    assert_eq!(counters_of(&row, 0).relay_announcements_sent, 0);
}

/// Nobody reports the MAC's retries to a station: what depends on them does nothing, and the view
/// shows this.
#[test]
fn what_follows_retries_is_off() {
    let holding = RelayConfig { adaptive: Adaptive::Holding, ..RelayConfig::paper_adaptive() };
    for (relay, coding) in [(RelayConfig::paper_adaptive(), false), (holding, true)] {
        let mut row = met(3, relay);
        row.put(0, &datagram(0, 2, 64, &[1; 100]));
        row.put(2, &datagram(2, 0, 64, &[2; 100]));
        row.run(ms(4));
        assert_eq!((row.delivered[2].len(), row.delivered[0].len()), (1, 1), "nothing is held");
        assert_eq!(counters_of(&row, 1).relay_frames_coded, 0);
        let view = view(&row, 1);
        assert_eq!((view.coding, view.hold), (coding, Hold::None));
    }
}

#[test]
fn what_is_decoded_is_combined_again_along_a_row() {
    let mut row = met(5, RelayConfig::paper());
    for number in 0..30_u8 {
        let (there, back) =
            (datagram(0, 4, 64, &[number; 700]), datagram(4, 0, 64, &[number; 500]));
        row.put(0, &there);
        row.put(4, &back);
        row.run(ms(10));
    }
    row.run(ms(1_000));
    for (at, from) in [(0, 4), (4, 0)] {
        assert_eq!(row.delivered[at].len(), 30);
        let first = datagram(from, at, 64, &[0; 700][..if at == 4 { 700 } else { 500 }]);
        assert_eq!(row.delivered[at][0], after(&first, 3));
    }
    let all: Vec<_> = (0..5).map(|at| counters_of(&row, at)).collect();
    assert!(all.iter().map(|it| it.relay_packets_recoded).sum::<u64>() > 40, "{all:?}");
    assert!(all.iter().all(|it| it.relay_decode_failures == 0), "{all:?}");
}

/// By default nothing is combined before neighbours announce that they overhear this node.
#[test]
fn by_default_coding_begins_once_neighbours_announce_to_overhear() {
    let mut row = met(3, RelayConfig::default());
    let mut exchange = |span: u64| {
        for number in 0..span / 4 {
            row.put(0, &datagram(0, 2, 64, &number.to_be_bytes()));
            row.put(0, &datagram(0, 2, 63, &number.to_be_bytes()));
            row.put(2, &datagram(2, 0, 64, &number.to_be_bytes()));
            row.put(2, &datagram(2, 0, 63, &number.to_be_bytes()));
            row.run(ms(4));
        }
        counters_of(&row, 1).relay_frames_coded
    };
    assert_eq!(exchange(20), 0);
    exchange(3_000);
    let before = exchange(4);
    assert!(exchange(1_000) > before + 100);
    let view = view(&row, 1);
    for neighbour in &view.neighbours {
        assert!(neighbour.takes_coded, "{view:?}");
        let of_relay = neighbour.hears.iter().find(|(id, _)| *id == StationId(2));
        assert!(of_relay.is_some_and(|(_, share)| *share > 0.9), "{view:?}");
    }
}

#[test]
fn a_relay_says_that_hops_are_used_up_and_what_is_too_long() {
    let mut row = met(3, RelayConfig::plain());
    for packet in [datagram(0, 2, 1, b"one hop"), datagram6(0, 2, 1, b"one hop")] {
        row.put(0, &packet);
        row.run(ms(20));
        let answer = row.delivered[0].pop().expect("an answer");
        let sliced = SlicedPacket::from_ip(&answer).unwrap();
        match sliced.transport {
            Some(TransportSlice::Icmpv4(icmp)) => {
                let expected = icmpv4::TimeExceededCode::TtlExceededInTransit;
                assert_eq!(icmp.icmp_type(), Icmpv4Type::TimeExceeded(expected));
                assert_eq!(&answer[12..20], [v4(1), v4(0)].concat());
            }
            Some(TransportSlice::Icmpv6(icmp)) => {
                assert!(matches!(icmp.icmp_type(), Icmpv6Type::TimeExceeded(_)));
                assert_eq!(&answer[8..40], [v6(1), v6(0)].concat());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counters_of(&row, 1).relay_packets_expired, 2);
    assert_eq!(row.put(0, &datagram(0, 1, 1, b"the next one")), PacketOutcome::Accepted);

    // The limit of the relay's own interface is smaller: senders of longer packets are told.
    row.limit_frames(1, 1_000);
    let mtu = row[1].tunnel_mtu();
    assert!(mtu < 1_000 && row[0].tunnel_mtu() > 1_400);
    row.put(0, &datagram(0, 2, 64, &[1; 1_200]));
    row.run(ms(20));
    let answer = row.delivered[0].pop().expect("an answer");
    let sliced = SlicedPacket::from_ip(&answer).unwrap();
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("no ICMP") };
    let needed = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu as u16 };
    assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(needed));
    assert_eq!(counters_of(&row, 1).relay_packets_too_long, 1);
    assert!(row.delivered[2].is_empty());
    // So is its own host.
    let long = datagram(0, 2, 64, &[1; 1_480]);
    assert!(matches!(row.put(0, &long), PacketOutcome::TooLong { len: 1_508, .. }));
    assert_eq!(row.delivered[0].len(), 1);
}

/// Frames may become shorter at any time: what was accepted before is then sent in parts, and so is
/// a message that is itself too long.
#[test]
fn what_waits_as_frames_become_shorter_goes_in_parts() {
    let mut row = met(3, RelayConfig::plain());
    let (short, long) = (datagram(0, 1, 64, &[1; 100]), datagram(0, 1, 64, &[2; 1_000]));
    for packet in [&long, &short, &long] {
        assert_eq!(row.put(0, packet), PacketOutcome::Accepted);
    }
    row.limit_frames(0, 600);
    assert_eq!(view(&row, 0).queue.packets, 3);
    row.run(ms(20));
    assert_eq!(row.delivered[1], [long.clone(), short, long]);
    assert!(row.world.logged().iter().all(|it| it.from != 0 || it.frame.len() <= 600));
    let (cut, joined) = (row[0].stats(), row[1].stats().symbols_joined);
    assert_eq!((cut.symbols_cut, cut.part_frames_sent, joined), (2, 4, 2));
    assert_eq!(counters_of(&row, 0).relay_packets_too_long, 0);
    // A message quotes as much of a packet as allowed, which is more than frames carry here.
    row.limit_frames(1, 500);
    row.limit_frames(0, 1_500);
    row.put(0, &datagram(0, 2, 64, &[3; 1_200]));
    row.run(ms(20));
    assert_eq!(counters_of(&row, 1).relay_packets_too_long, 1);
    assert_eq!((row.delivered[0].len(), row[1].stats().symbols_cut), (1, 1));
    assert!(row.delivered[2].is_empty());
    assert!(row.world.logged().iter().all(|it| it.from != 1 || it.frame.len() <= 500));
}

#[test]
fn packets_go_where_networks_lead_and_come_from_where_they_lead() {
    let mut row = met(3, RelayConfig::plain());
    let mut nowhere = datagram(0, 2, 64, b"nowhere");
    nowhere[16..20].copy_from_slice(&[192, 0, 2, 1]);
    assert_eq!(row.put(0, &nowhere), PacketOutcome::NoRoute);
    assert_eq!(counters_of(&row, 0).relay_packets_unrouted, 1);
    // A source that is not behind the neighbour.
    row.put(0, &datagram(2, 2, 64, b"forged source"));
    row.run(ms(20));
    assert_eq!(counters_of(&row, 1).relay_packets_wrong_source, 1);
    assert!(row.delivered[2].is_empty());
    // A missing neighbour.
    let mut alone = row_of(2, RelayConfig::plain());
    assert_eq!(alone.put(0, &datagram(0, 1, 64, b"too early")), PacketOutcome::NoRoute);
    assert_eq!(counters_of(&alone, 0).relay_packets_unreachable, 1);
}

/// A session outlasts its neighbour: packets for one that is no longer heard are refused, and their
/// senders are told.
#[test]
fn what_is_for_a_neighbour_that_has_gone_is_refused() {
    let mut row = met(3, RelayConfig::plain());
    let gone = row.stop(2).expect("the last one");
    let silent = PEER_SILENT_HELLOS * HELLO_INTERVAL_SLOW;
    row.run(silent + ms(6_000));
    assert!(
        row.events.contains(&(1, Event::PeerSilent { peer: StationId(3) })),
        "{:?}",
        row.events
    );
    row.put(0, &datagram(0, 2, 64, b"is anybody there?"));
    row.run(ms(20));
    let answer = row.delivered[0].pop().expect("an answer");
    let sliced = SlicedPacket::from_ip(&answer).unwrap();
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("no ICMP") };
    let expected = icmpv4::DestUnreachableHeader::Host;
    assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(expected));
    let to = datagram(1, 2, 64, b"of the relay's own host");
    assert_eq!(row.put(1, &to), PacketOutcome::NoRoute);
    let counters = counters_of(&row, 1);
    assert_eq!((counters.relay_packets_unreachable, counters.relay_frames_plain), (2, 1));
    // It comes back into reach, with its old state.
    row.start(2, gone);
    row.run(ms(6_000));
    row.put(0, &datagram(0, 2, 64, b"and now?"));
    row.run(ms(20));
    assert_eq!(row.delivered[2].len(), 1);
}

#[test]
fn a_queue_is_bounded_and_what_it_drops_is_counted() {
    let mut row = met(2, RelayConfig { queue_packets: 5, ..RelayConfig::plain() });
    for number in 0..8_u8 {
        let outcome = row.put(0, &datagram(0, 1, 64, &[number]));
        let expected = if number < 5 { PacketOutcome::Accepted } else { PacketOutcome::QueueFull };
        assert_eq!(outcome, expected, "{number}");
    }
    row.run(ms(20));
    assert_eq!(row.delivered[1].len(), 5);
    assert_eq!(counters_of(&row, 0).relay_queue_drops, 3);
    assert_eq!(row[0].stats().packets_dropped_ingress, 3);
}

/// A relay's new session counts from 0 again: its frames counted as delayed if the session's tag
/// was the same by chance.
#[test]
fn frames_of_another_session_are_not_held_up() {
    let mut row = row_of(2, RelayConfig::default());
    for at in 0..2 {
        let config =
            RelayStationConfig { broadcast: true, ..config(at, 2, RelayConfig::default()) };
        row.start(at, RelayStation::new(config, [at as u8 + 1; 32], Time::ZERO).unwrap());
    }
    row.run(ms(2_000));
    let before = row[1].stats().sessions_accepted;
    row[0].set_session_frames(300);
    let mut accepted = 0;
    for number in 0..600_u32 {
        let outcome = row.put(0, &datagram(0, 1, 64, &number.to_be_bytes()));
        accepted += usize::from(outcome == PacketOutcome::Accepted);
        row.run(ms(5));
    }
    row.run(ms(100));
    assert!(row[1].stats().sessions_accepted > before && accepted > 500);
    assert_eq!(counters_of(&row, 1).relay_frames_held_up, 0);
    assert_eq!(row.delivered[1].len(), accepted);
}

/// What a relay does with a frame: the outcome, and whether anything has changed except the counter
/// for it.
fn told(row: &mut Bed<Air>, at: usize, frame: &[u8]) -> (FrameOutcome, bool) {
    let before = (counters_of(row, at), view(row, at), row.delivered[at].len());
    let outcome = row.hear(at, frame);
    let after = (counters_of(row, at), view(row, at), row.delivered[at].len());
    (outcome, before == after)
}

#[test]
fn a_frame_counts_once_and_changed_frames_never() {
    let mut row = met(3, RelayConfig::paper());
    row.put(0, &datagram(0, 2, 64, b"once"));
    row.run(ms(200));
    let frame = last_frame(&row, 0, 1);
    let replayed = (FrameOutcome::Rejected(Rejection::Replayed), true);
    assert_eq!(told(&mut row, 1, &frame), replayed);
    // Its sender rejects it as its own, and a station that does not hear the sender has no session.
    assert!(matches!(told(&mut row, 0, &frame), (FrameOutcome::Rejected(_), true)));
    let unknown = (FrameOutcome::Rejected(Rejection::UnknownSession), true);
    assert_eq!(told(&mut row, 2, &frame), unknown);
    for bit in 0..8 * frame.len() {
        let mut bent = frame.clone();
        bent[bit / 8] ^= 1 << (bit % 8);
        let (outcome, is_same) = told(&mut row, 1, &bent);
        assert!(matches!(outcome, FrameOutcome::Rejected(_)) && is_same, "bit {bit}: {outcome:?}");
    }
    for len in 0..frame.len() {
        let (outcome, is_same) = told(&mut row, 1, &frame[..len]);
        assert!(
            matches!(outcome, FrameOutcome::Rejected(_)) && is_same,
            "{len} bytes: {outcome:?}"
        );
    }
    assert_eq!(row.delivered[2].len(), 1);
}

/// The receiver of a frame is sealed: resending it to another station does not make that accept it.
#[test]
fn a_frame_for_another_is_overheard_wherever_it_is_sent_to() {
    let mut row = met(3, RelayConfig::paper());
    row.put(1, &datagram(1, 2, 64, b"for station 3"));
    row.run(ms(20));
    let overheard = counters_of(&row, 0).relay_frames_overheard;
    assert!(overheard > 0 && row.delivered[0].is_empty(), "{overheard}");
    assert_eq!(row.delivered[2].len(), 1);
}

#[test]
fn other_secrets_and_strangers_do_not_reach_the_relay() {
    let mut row = met(2, RelayConfig::paper());
    let mut other = config(0, 2, RelayConfig::paper());
    other.station.security = [8; 32].into();
    let mut stranger = config(0, 2, RelayConfig::paper());
    stranger.station.id = StationId(9);
    for config in [other, stranger] {
        let mut station = RelayStation::new(config, [99; 32], Time::ZERO).unwrap();
        let hello = station.poll_transmit(row.now).expect("a HELLO").frame.to_vec();
        let expected = (FrameOutcome::Rejected(Rejection::NotAuthentic), true);
        assert_eq!(told(&mut row, 1, &hello), expected);
    }
}

#[test]
fn a_restarted_relay_is_known_again_and_its_recordings_are_not() {
    let mut row = met(3, RelayConfig::paper());
    row.put(0, &datagram(0, 2, 64, b"before"));
    row.run(ms(200));
    let recorded = row.world.logged().to_vec();
    let again = config(0, 3, RelayConfig::paper());
    row.start(0, RelayStation::new(again, [77; 32], row.now).unwrap());
    row.events.clear();
    row.run(ms(500));
    let restarted = Event::SessionUp { peer: StationId(1), restarted: true };
    assert!(row.events.iter().any(|it| it.1 == restarted), "{:?}", row.events);
    row.put(0, &datagram(0, 2, 64, b"after"));
    row.run(ms(200));
    assert_eq!(row.delivered[2].len(), 2);
    // Every frame ever sent, to all of them.
    let before: Vec<_> = (0..3).map(|at| counters_of(&row, at).relay_packets_forwarded).collect();
    for Logged { from, frame, .. } in recorded {
        for near in (0..3_usize).filter(|near| near.abs_diff(from) == 1) {
            let outcome = row.hear(near, &frame);
            let is_refused =
                matches!(outcome, FrameOutcome::Rejected(_) | FrameOutcome::Handshake { .. });
            assert!(is_refused, "{from} to {near}: {outcome:?}");
        }
    }
    row.run(ms(200));
    assert_eq!(row.delivered[2].len(), 2);
    let after: Vec<_> = (0..3).map(|at| counters_of(&row, at).relay_packets_forwarded).collect();
    assert_eq!(before, after);
    row.put(0, &datagram(0, 2, 64, b"and after that"));
    row.run(ms(200));
    assert_eq!(row.delivered[2].len(), 3);
}

/// Its frames are numbered from 0 again: what was measured with the old numbers does not apply to
/// them.
#[test]
fn a_relay_that_restarts_early_is_measured_anew() {
    let mut row = met(3, RelayConfig::default());
    for number in 0..100_u8 {
        row.put(1, &datagram(1, 2, 64, &[number]));
        row.run(ms(5));
    }
    let overheard = |row: &Bed<Air>| {
        let neighbours = view(row, 0).neighbours;
        neighbours.iter().find(|it| it.id == StationId(2)).and_then(|it| it.overheard)
    };
    assert!(overheard(&row).is_some_and(|share| share > 0.9));
    row.start(
        1,
        RelayStation::new(config(1, 3, RelayConfig::default()), [77; 32], row.now).unwrap(),
    );
    row.run(ms(500));
    assert_eq!(overheard(&row), None, "of the new one nothing is known yet");
    for number in 0..50_u8 {
        row.put(1, &datagram(1, 2, 64, &[number]));
        row.run(ms(5));
    }
    assert!(overheard(&row).is_some_and(|share| share > 0.9), "it is measured again");
}

#[test]
fn on_a_link_that_passes_on_nothing_for_others_frames_go_to_all() {
    let mut row = row_of(3, RelayConfig::paper());
    for at in 0..3 {
        let config = RelayStationConfig { broadcast: true, ..config(at, 3, RelayConfig::paper()) };
        row.start(at, RelayStation::new(config, [at as u8 + 1; 32], Time::ZERO).unwrap());
    }
    row.run(ms(2_000));
    let (there, back) = (datagram(0, 2, 64, b"there"), datagram(2, 0, 64, b"and back"));
    row.put(0, &there);
    row.put(2, &back);
    row.run(ms(200));
    assert_eq!(row.delivered[2], [after(&there, 1)]);
    assert_eq!(row.delivered[0], [after(&back, 1)]);
    assert!(row.world.logged().iter().all(|it| it.to == Destination::All));
    assert_eq!(counters_of(&row, 1).relay_frames_coded, 1);
}

#[test]
fn what_a_relay_cannot_be_is_said() {
    let sound = || config(1, 3, RelayConfig::default());
    let said = |change: fn(&mut RelayStationConfig)| -> ConfigError {
        let mut config = sound();
        change(&mut config);
        RelayStation::new(config, [0; 32], Time::ZERO).err().expect("it cannot be")
    };
    assert_eq!(said(|it| it.neighbours.clear()).field, "peer");
    assert_eq!(said(|it| it.neighbours[1].0 = it.neighbours[0].0).field, "peer.id");
    assert_eq!(said(|it| it.neighbours[0].0 = it.station.id).field, "peer.id");
    assert_eq!(said(|it| it.neighbours[0].1 = it.neighbours[1].1.clone()).field, "peer.allowed");
    assert_eq!(said(|it| it.relay.queue_packets = 1).field, "relay.queue_packets");
    assert_eq!(said(|it| it.relay.decode_for = Duration::ZERO).field, "relay.decode_ms");
    assert_eq!(
        said(|it| it.station.role = Role::Plain { peer: StationId(9) }).field,
        "station.role"
    );
    let many = |it: &mut RelayStationConfig| {
        it.neighbours = (10..19).map(|id| (StationId(id), Vec::new())).collect();
    };
    assert!(said(many).expected.contains("1 to 4 neighbours"));
}
