//! Two stations on a path that silently drops long frames, in virtual time.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::Time;
use corridor_proto::{
    CodingParams, Event, FrameLens, PacketOutcome, Role, Station, StationConfig, StationId, Stats,
};
use corridor_testbed::config as testbed;
use corridor_testbed::{Air, Bed};

const LENS: FrameLens = FrameLens { min: 528, base: 1_232, max: 1_452 };
const DELAY: Duration = Duration::from_millis(10);

fn joined(role: fn(StationId) -> Role, coding: CodingParams, mtus: [usize; 2]) -> Bed<Air> {
    let end = |id: u16| {
        let (ingress_packets, frame_len_max) = (100, LENS.max);
        let config = testbed::config(StationId(id), role(StationId(3 - id)));
        let config = StationConfig { coding, ingress_packets, frame_len_max, ..config };
        let mut station = Station::new(config, [id as u8; 32], Time::ZERO).unwrap();
        station.find_path_mtu(Time::ZERO, LENS);
        station
    };
    let mut net = Bed::new([1, 2].map(end), Air::new(DELAY));
    limit(&mut net, mtus);
    net
}

/// Sets the longest frame that passes in each direction.
fn limit(net: &mut Bed<Air>, mtus: [usize; 2]) {
    net.world.passes = Box::new(move |it| it.frame.len() <= mtus[it.from]);
}

fn stats(net: &Bed<Air>) -> [Stats; 2] {
    [0, 1].map(|at| net[at].stats().into_owned())
}

/// An IPv4 datagram of this length that must not be fragmented.
fn datagram(len: usize) -> Vec<u8> {
    let mut packet = vec![0x45; len];
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet[6..8].copy_from_slice(&[0x40, 0]);
    packet[9] = 17;
    packet[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    packet
}

/// Whether packets of this length arrive, from this end.
fn crosses(net: &mut Bed<Air>, from: usize, len: usize) -> bool {
    let before = net.delivered[1 - from].len();
    for _ in 0..10 {
        let outcome = net.put(from, &datagram(len));
        if outcome != PacketOutcome::Accepted {
            return false;
        }
    }
    net.run(Duration::from_secs(3));
    let came = &net.delivered[1 - from][before..];
    came.len() == 10 && came.iter().all(|it| *it == datagram(len))
}

fn endpoint(peer: StationId) -> Role {
    Role::Endpoint { peer, helper: None }
}

fn plain(peer: StationId) -> Role {
    Role::Plain { peer }
}

/// The paper's parameters, with symbols as long as frames here.
fn paper() -> CodingParams {
    CodingParams { symbol_size: 0, ..CodingParams::paper() }
}

#[test]
fn each_direction_is_found_by_itself_and_packets_up_to_the_mtu_cross() {
    let settings = [
        (endpoint as fn(StationId) -> Role, CodingParams::default()),
        (endpoint, CodingParams::window()),
        (plain, CodingParams::default()),
    ];
    for (role, coding) in settings {
        let mtus = [1_372, 1_298];
        let mut net = joined(role, coding, mtus);
        let base = net[0].tunnel_mtu();
        assert_eq!(net[0].frame_len(), LENS.base);
        net.run(Duration::from_secs(3));
        for at in 0..2 {
            let found = net[at].frame_len();
            assert!(found <= mtus[at] && found + 4 > mtus[at], "{found}");
            let most = net[at].tunnel_mtu();
            assert_eq!(most - base, found - LENS.base);
            let said = net.events.iter().rev().find_map(|said| match said {
                (by, Event::PathMtu { frame_len, tunnel_mtu, .. }) if *by == at => {
                    Some((*frame_len, *tunnel_mtu))
                }
                _ => None,
            });
            assert_eq!(said, Some((found, most)));
            for len in [100, base, most] {
                assert!(crosses(&mut net, at, len), "{len} bytes, {coding:?}");
            }
            let stats = net[at].stats();
            assert!(stats.erasure_ratio_e3 < 0.02, "probes count as lost: {stats:?}");
            // A longer packet is answered by a message.
            let before = net.delivered[at].len();
            let longer = datagram(most + 1);
            let outcome = net.put(at, &longer);
            assert_eq!(outcome, PacketOutcome::TooLong { len: most + 1, max: most });
            net.run(Duration::from_millis(1));
            let message = &net.delivered[at][before];
            assert_eq!((message[9], message[20], message[21]), (1, 3, 4), "ICMP, too long");
            assert_eq!(message[26..28], (most as u16).to_be_bytes());
        }
    }
}

#[test]
fn probes_are_sent_only_to_a_peer_that_has_answered() {
    let mut net = joined(endpoint, CodingParams::default(), [0, 1_452]);
    net.run(Duration::from_secs(60));
    assert_eq!(stats(&net).map(|stats| stats.path_probes_sent), [0, 0]);
}

#[test]
fn a_path_that_loses_a_third_of_its_frames_is_used_in_full() {
    let mut net = joined(endpoint, CodingParams::window(), [9_000, 9_000]);
    net.world.loss_ratio = 0.33;
    net.run(Duration::from_secs(60));
    assert_eq!([0, 1].map(|at| net[at].frame_len()), [LENS.max; 2]);
}

#[test]
fn packets_that_wait_as_the_path_becomes_shorter_cross_in_parts() {
    let settings = [
        (endpoint as fn(StationId) -> Role, CodingParams::default()),
        (endpoint, paper()),
        (endpoint, CodingParams::window()),
        (endpoint, CodingParams::tcp_nc()),
        (plain, CodingParams::default()),
    ];
    for (role, coding) in settings {
        let mut net = joined(role, coding, [9_000, 9_000]);
        net.run(Duration::from_secs(1));
        let most = net[0].tunnel_mtu();
        for _ in 0..20 {
            net.put(0, &datagram(most));
        }
        limit(&mut net, [1_300, 9_000]);
        net.limit_frames(0, 1_300);
        assert_eq!(net[0].frame_len(), 1_300);
        net.run(Duration::from_secs(5));
        assert_eq!(net.delivered[1], vec![datagram(most); 20], "{coding:?}");
        let shorter = net[0].tunnel_mtu();
        assert_eq!(most - shorter, LENS.max - 1_300);
        assert!(crosses(&mut net, 0, shorter) && crosses(&mut net, 1, most), "{coding:?}");
        let [stats, heard] = stats(&net);
        assert_eq!(stats.packets_refused, 0);
        assert!(heard.symbols_joined >= 20 && heard.symbols_joined <= stats.symbols_cut);
        assert!(stats.part_frames_sent >= 2 * stats.symbols_cut);
        assert!(stats.erasure_ratio_e3 < 0.02, "{stats:?}");
    }
}

/// Everything accepted arrives, whatever had been made of it when the path's MTU shrank: waiting
/// packets, symbols in flight, and repair still owed. The interface may report the change, or
/// nobody.
#[test]
fn a_path_that_becomes_shorter_under_load_strands_nothing() {
    for coding in [CodingParams::default(), paper(), CodingParams::window()] {
        for loss_ratio in [0.0, 0.2] {
            for (told, mtu) in [(true, 1_350), (false, 1_350), (false, 700)] {
                strands_nothing(coding, loss_ratio, (told, mtu));
            }
        }
    }
}

fn strands_nothing(coding: CodingParams, loss_ratio: f64, (told, mtu): (bool, usize)) {
    let case = format!("{:?} of {}, {loss_ratio}, {told}, {mtu}", coding.mode, coding.block_size);
    let mut net = joined(endpoint, coding, [LENS.max; 2]);
    net.run(Duration::from_secs(1));
    assert_eq!(net[0].frame_len(), LENS.max, "{case}");
    net.world.loss_ratio = loss_ratio;
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for ms in 0..4_000 {
        // A burst waits when the MTU shrinks.
        for _ in 0..if ms == 1_000 { 40 } else { 1 } {
            // Full-sized and short ones, each with another number.
            let number = sent.len() as u32;
            let len = if number % 3 == 2 { 100 } else { net[0].tunnel_mtu() };
            let mut packet = datagram(len);
            // Its flow does not support ECN, so no packet is marked.
            packet[1] = 0;
            packet[32..36].copy_from_slice(&number.to_be_bytes());
            if net.put(0, &packet) == PacketOutcome::Accepted {
                sent.push(packet);
            }
        }
        if ms == 1_000 {
            limit(&mut net, [mtu, LENS.max]);
            if told {
                net.limit_frames(0, mtu);
            }
        }
        net.run(Duration::from_millis(1));
    }
    net.run(Duration::from_secs(4));
    let [stats, heard] = stats(&net);
    let number = |packet: &[u8]| <[u8; 4]>::try_from(&packet[32..36]).unwrap();
    let came: BTreeMap<_, _> = net.delivered[1].iter().map(|it| (number(it), it)).collect();
    let lacking = sent.iter().filter(|packet| !came.contains_key(&number(packet))).count();
    // Some were dropped as congestion signals before they became part of a symbol.
    let dropped = stats.packets_dropped_codel as usize;
    assert_eq!(lacking, dropped, "{case}: of {}: {stats:?} {heard:?}", sent.len());
    assert_eq!(net.delivered[1].len(), came.len(), "{case}: some came twice");
    let is_same = |packet: &Vec<u8>| came.get(&number(packet)).is_none_or(|it| *it == packet);
    assert!(sent.iter().all(is_same), "{case}: some were changed");
    assert!(net[0].frame_len() <= mtu && stats.symbols_cut > 0, "{case}: {stats:?}");
    assert!(sent.len() > 1_000 && heard.symbols_joined > 0, "{case}: {} were taken", sent.len());
    println!("{case}: {} of {} symbols cut", stats.symbols_cut, stats.symbols_added);
}

/// The path's MTU shrinks while full-sized packets cross it, with or without short ones: missing
/// long frames show this, long before their length is next confirmed.
#[test]
fn a_path_that_becomes_shorter_under_load_is_noticed_within_a_second_or_five_behind_losses() {
    for (loss_ratio, has_short) in [(0.0, false), (0.0, true), (0.2, false), (0.2, true)] {
        let role = |peer| Role::Endpoint { peer, helper: None };
        let mut net = joined(role, CodingParams::window(), [LENS.max; 2]);
        net.world.loss_ratio = loss_ratio;
        net.run(Duration::from_secs(5));
        assert_eq!(net[0].frame_len(), LENS.max);
        let load = |net: &mut Bed<Air>, ms: u32| {
            for _ in 0..ms {
                let len = net[0].tunnel_mtu();
                net.put(0, &datagram(len));
                if has_short {
                    net.put(0, &datagram(100));
                }
                net.run(Duration::from_millis(1));
            }
        };
        load(&mut net, 3_000);
        assert_eq!(net[0].frame_len(), LENS.max, "losses {loss_ratio}, short {has_short}");
        limit(&mut net, [1_350, LENS.max]);
        let before = net.now;
        while net[0].frame_len() > 1_350 {
            load(&mut net, 1);
            let took = net.now - before;
            // With random losses, more missing frames are needed.
            let most = Duration::from_secs(if loss_ratio > 0.0 { 5 } else { 1 });
            assert!(took < most, "losses {loss_ratio}, short {has_short}: {took:?}");
        }
        println!("losses {loss_ratio}, short {has_short}: {:?}", net.now - before);
    }
}

/// Packets that had waited for minutes used to be sent first once there was a session: queries
/// whose answers nobody waited for any more, and connections that their hosts had given up.
#[test]
fn packets_that_have_waited_for_long_do_not_go_when_there_is_a_session_at_last() {
    let mut net = joined(endpoint, CodingParams::window(), [0, 0]);
    let numbered = |number: u8| {
        // Each in another flow: of a single flow only the newest would be left in any case.
        let mut packet = datagram(200);
        packet[21] = number;
        packet
    };
    for number in 0..10 {
        net.put(0, &numbered(number));
        net.run(Duration::from_secs(15));
    }
    let late = net.now;
    for number in 10..13 {
        net.put(0, &numbered(number));
        net.run(Duration::from_secs(1));
    }
    limit(&mut net, [9_000, 9_000]);
    net.run(Duration::from_secs(3));
    assert!(net.now - late < Duration::from_secs(7) && net.all_up());
    let came: Vec<u8> = net.delivered[1].iter().map(|packet| packet[21]).collect();
    assert!(came.contains(&12) && came.iter().all(|&number| number >= 10), "{came:?}");
    let stale = stats(&net).map(|stats| stats.packets_stale);
    assert_eq!(stale, [10, 0]);
}

/// A helper overhears the ends' probes, and is not probed itself. (It echoed the probes of the end
/// that it took for its peer, which does not accept its echoes.)
#[test]
fn a_helper_echoes_no_probes() {
    let ends = [StationId(1), StationId(2)];
    let role = |id: StationId| match ends.iter().find(|&&end| end != id) {
        Some(&peer) if ends.contains(&id) => Role::Endpoint { peer, helper: Some(StationId(3)) },
        _ => Role::Helper { between: (ends[0], ends[1]) },
    };
    let station = |id: u16| {
        let config = testbed::config(StationId(id), role(StationId(id)));
        let config = StationConfig { frame_len_max: LENS.max, ..config };
        let mut station = Station::new(config, [id as u8; 32], Time::ZERO).unwrap();
        station.find_path_mtu(Time::ZERO, LENS);
        station
    };
    let mut net = Bed::new([1, 2, 3].map(station), Air::new(DELAY));
    net.run(Duration::from_secs(20));
    let [end, helper] = [0, 2].map(|at| net[at].stats().into_owned());
    assert!(end.path_probes_sent > 0 && net[0].frame_len() == LENS.max);
    assert_eq!(helper.recoded_frames_sent, 0);
    assert_eq!(helper.frames_sent, helper.control_frames_sent, "HELLOs and reports");
}
