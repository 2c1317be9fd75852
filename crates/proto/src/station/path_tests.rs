//! Two stations over a path that swallows long frames, in virtual time.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

use super::*;
use crate::config::{CodingParams, LinkErrors};

const LENS: FrameLens = FrameLens { min: 528, base: 1_232, max: 1_452 };
const DELAY: Duration = Duration::from_millis(10);

struct Net {
    ends: [Station; 2],
    /// Frames on their way to either end.
    flying: [VecDeque<(Time, Vec<u8>)>; 2],
    /// Longest frame that passes from either end.
    mtus: [usize; 2],
    loss_ratio: f64,
    dice: Stream,
    now: Time,
    events: [Vec<Event>; 2],
    delivered: [Vec<Vec<u8>>; 2],
}

impl Net {
    fn new(role: fn(StationId) -> Role, coding: CodingParams, mtus: [usize; 2]) -> Self {
        let end = |id: u8| {
            let config = StationConfig {
                id: StationId(u16::from(id)),
                role: role(StationId(u16::from(3 - id))),
                security: [7; 32].into(),
                coding,
                link_errors: LinkErrors::Measured,
                ingress_packets: 100,
                frame_len_max: LENS.max,
                frame_len_min: 0,
                memory_bytes: crate::bounds::MEMORY_DEFAULT,
                rate_bps: None,
            };
            let mut station = Station::new(config, [id; 32], Time::ZERO).unwrap();
            station.find_path_mtu(Time::ZERO, LENS);
            station
        };
        Net {
            ends: [end(1), end(2)],
            flying: Default::default(),
            mtus,
            loss_ratio: 0.0,
            dice: StreamKey { seed: 1, replication: 0, entity: 0, purpose: "path" }.stream(),
            now: Time::ZERO,
            events: Default::default(),
            delivered: Default::default(),
        }
    }

    /// Lets so much time pass, a millisecond at once.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(1);
            for at in 0..2 {
                while self.flying[at].front().is_some_and(|(due, _)| *due <= self.now) {
                    let (_, frame) = self.flying[at].pop_front().unwrap();
                    self.ends[at].handle_frame(self.now, &frame);
                }
                let station = &mut self.ends[at];
                station.handle_timeout(self.now);
                while let Some(transmit) = station.poll_transmit(self.now) {
                    let drawn = f64::from(self.dice.next_u32()) / f64::from(u32::MAX);
                    if transmit.frame.len() <= self.mtus[at] && drawn >= self.loss_ratio {
                        let arrives = self.now + DELAY;
                        self.flying[1 - at].push_back((arrives, transmit.frame.to_vec()));
                    }
                }
                self.events[at].extend(std::iter::from_fn(|| station.poll_event()));
                while let Some(packet) = station.poll_packet() {
                    self.delivered[at].push(packet.to_vec());
                }
            }
        }
    }

    /// A datagram over IPv4 that must not be fragmented, of this length.
    fn packet(len: usize) -> Vec<u8> {
        let mut packet = vec![0x45; len];
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&[0x40, 0]);
        packet[9] = 17;
        packet[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        packet
    }

    /// Packets of this length cross from either end.
    fn crosses(&mut self, from: usize, len: usize) -> bool {
        let before = self.delivered[1 - from].len();
        for _ in 0..10 {
            let outcome = self.ends[from].handle_packet(self.now, &Net::packet(len));
            if outcome != PacketOutcome::Accepted {
                return false;
            }
        }
        self.pass(Duration::from_secs(3));
        let came = &self.delivered[1 - from][before..];
        came.len() == 10 && came.iter().all(|packet| *packet == Net::packet(len))
    }
}

fn endpoint(peer: StationId) -> Role {
    Role::Endpoint { peer, helper: None }
}

fn plain(peer: StationId) -> Role {
    Role::Plain { peer }
}

/// The paper's, with symbols as long as frames here.
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
        let mut net = Net::new(role, coding, [1_372, 1_298]);
        let base = net.ends[0].tunnel_mtu();
        assert_eq!(net.ends[0].frame_len(), LENS.base);
        net.pass(Duration::from_secs(3));
        for at in 0..2 {
            let found = net.ends[at].frame_len();
            assert!(found <= net.mtus[at] && found + 4 > net.mtus[at], "{found}");
            let most = net.ends[at].tunnel_mtu();
            assert_eq!(most - base, found - LENS.base);
            let said = net.events[at].iter().rev().find_map(|event| match event {
                Event::PathMtu { frame_len, tunnel_mtu, .. } => Some((*frame_len, *tunnel_mtu)),
                _ => None,
            });
            assert_eq!(said, Some((found, most)));
            for len in [100, base, most] {
                assert!(net.crosses(at, len), "{len} bytes, {coding:?}");
            }
            let stats = net.ends[at].stats();
            assert!(stats.erasure_ratio_e3 < 0.02, "probes count as lost: {stats:?}");
            // What is longer comes back as a message.
            let before = net.delivered[at].len();
            let longer = Net::packet(most + 1);
            let outcome = net.ends[at].handle_packet(net.now, &longer);
            assert_eq!(outcome, PacketOutcome::TooLong { len: most + 1, max: most });
            net.pass(Duration::from_millis(1));
            let message = &net.delivered[at][before];
            assert_eq!((message[9], message[20], message[21]), (1, 3, 4), "ICMP, too long");
            assert_eq!(message[26..28], (most as u16).to_be_bytes());
        }
    }
}

#[test]
fn probes_are_sent_only_to_a_peer_that_has_answered() {
    let mut net = Net::new(endpoint, CodingParams::default(), [0, 1_452]);
    net.pass(Duration::from_secs(60));
    assert_eq!(net.ends.each_ref().map(|end| end.stats().path_probes_sent), [0, 0]);
}

#[test]
fn a_path_that_loses_a_third_of_its_frames_is_used_in_full() {
    let mut net = Net::new(endpoint, CodingParams::window(), [9_000, 9_000]);
    net.loss_ratio = 0.33;
    net.pass(Duration::from_secs(60));
    assert_eq!(net.ends.each_ref().map(Station::frame_len), [LENS.max; 2]);
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
        let mut net = Net::new(role, coding, [9_000, 9_000]);
        net.pass(Duration::from_secs(1));
        let most = net.ends[0].tunnel_mtu();
        for _ in 0..20 {
            net.ends[0].handle_packet(net.now, &Net::packet(most));
        }
        net.mtus[0] = 1_300;
        net.ends[0].limit_frames(net.now, 1_300);
        assert_eq!(net.ends[0].frame_len(), 1_300);
        net.pass(Duration::from_secs(5));
        assert_eq!(net.delivered[1], vec![Net::packet(most); 20], "{coding:?}");
        let shorter = net.ends[0].tunnel_mtu();
        assert_eq!(most - shorter, LENS.max - 1_300);
        assert!(net.crosses(0, shorter) && net.crosses(1, most), "{coding:?}");
        let [stats, heard] = net.ends.each_ref().map(Station::stats);
        assert_eq!(stats.packets_refused, 0);
        assert!(heard.symbols_joined >= 20 && heard.symbols_joined <= stats.symbols_cut);
        assert!(stats.part_frames_sent >= 2 * stats.symbols_cut);
        assert!(stats.erasure_ratio_e3 < 0.02, "{stats:?}");
    }
}

/// What was accepted arrives, whatever was made of it when the path became shorter: packets that
/// wait, symbols on their way, and repair that is owed. The interface may say so, or nobody.
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
    let mut net = Net::new(endpoint, coding, [LENS.max; 2]);
    net.pass(Duration::from_secs(1));
    assert_eq!(net.ends[0].frame_len(), LENS.max, "{case}");
    net.loss_ratio = loss_ratio;
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for ms in 0..4_000 {
        // As the path becomes shorter, a burst waits.
        for _ in 0..if ms == 1_000 { 40 } else { 1 } {
            // Full ones and short ones, each another one.
            let number = sent.len() as u32;
            let len = if number % 3 == 2 { 100 } else { net.ends[0].tunnel_mtu() };
            let mut packet = Net::packet(len);
            // Its flow knows nothing of ECN: nothing marks it.
            packet[1] = 0;
            packet[32..36].copy_from_slice(&number.to_be_bytes());
            if net.ends[0].handle_packet(net.now, &packet) == PacketOutcome::Accepted {
                sent.push(packet);
            }
        }
        if ms == 1_000 {
            net.mtus[0] = mtu;
            if told {
                net.ends[0].limit_frames(net.now, mtu);
            }
        }
        net.pass(Duration::from_millis(1));
    }
    net.pass(Duration::from_secs(4));
    let [stats, heard] = net.ends.each_ref().map(Station::stats);
    let number = |packet: &[u8]| <[u8; 4]>::try_from(&packet[32..36]).unwrap();
    let came: BTreeMap<_, _> = net.delivered[1].iter().map(|it| (number(it), it)).collect();
    let lacking = sent.iter().filter(|packet| !came.contains_key(&number(packet))).count();
    // Some were dropped to tell their flow that a queue stands, before they were made symbols of.
    let dropped = stats.packets_dropped_codel as usize;
    assert_eq!(lacking, dropped, "{case}: of {}: {stats:?} {heard:?}", sent.len());
    assert_eq!(net.delivered[1].len(), came.len(), "{case}: some came twice");
    let is_same = |packet: &Vec<u8>| came.get(&number(packet)).is_none_or(|it| *it == packet);
    assert!(sent.iter().all(is_same), "{case}: some were changed");
    assert!(net.ends[0].frame_len() <= mtu && stats.symbols_cut > 0, "{case}: {stats:?}");
    assert!(sent.len() > 1_000 && heard.symbols_joined > 0, "{case}: {} were taken", sent.len());
    println!("{case}: {} of {} symbols cut", stats.symbols_cut, stats.symbols_added);
}

/// The path becomes shorter while a stream of full-size packets crosses it, and short ones beside
/// it or not: what long frames come to tells of it, long before their length is confirmed next.
#[test]
fn a_path_that_becomes_shorter_under_load_is_noticed_within_a_second_or_five_behind_losses() {
    for (loss_ratio, has_short) in [(0.0, false), (0.0, true), (0.2, false), (0.2, true)] {
        let role = |peer| Role::Endpoint { peer, helper: None };
        let mut net = Net::new(role, CodingParams::window(), [LENS.max; 2]);
        net.loss_ratio = loss_ratio;
        net.pass(Duration::from_secs(5));
        assert_eq!(net.ends[0].frame_len(), LENS.max);
        let load = |net: &mut Net, ms: u32| {
            for _ in 0..ms {
                let len = net.ends[0].tunnel_mtu();
                net.ends[0].handle_packet(net.now, &Net::packet(len));
                if has_short {
                    net.ends[0].handle_packet(net.now, &Net::packet(100));
                }
                net.pass(Duration::from_millis(1));
            }
        };
        load(&mut net, 3_000);
        assert_eq!(net.ends[0].frame_len(), LENS.max, "losses {loss_ratio}, short {has_short}");
        net.mtus[0] = 1_350;
        let before = net.now;
        while net.ends[0].frame_len() > 1_350 {
            load(&mut net, 1);
            let took = net.now - before;
            // Where frames get lost anyway, it takes more of them to tell.
            let most = Duration::from_secs(if loss_ratio > 0.0 { 5 } else { 1 });
            assert!(took < most, "losses {loss_ratio}, short {has_short}: {took:?}");
        }
        println!("losses {loss_ratio}, short {has_short}: {:?}", net.now - before);
    }
}
