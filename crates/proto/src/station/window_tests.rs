//! Window mode across changes of keys.

use core::time::Duration;
use std::collections::VecDeque;

use super::*;
use crate::bounds::SESSION_FRAMES_MAX;
use crate::config::{CodingParams, LinkErrors};

pub(super) fn station(id: u8, peer: u8) -> Station {
    station_at(id, peer, None)
}

/// A station with this configured rate.
fn station_at(id: u8, peer: u8, rate_bps: Option<u64>) -> Station {
    let config = StationConfig {
        id: StationId(u16::from(id)),
        role: Role::Endpoint { peer: StationId(u16::from(peer)), helper: None },
        security: [7; 32].into(),
        coding: CodingParams::window(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 1_000,
        frame_len_max: 1_500,
        frame_len_min: 0,
        memory_bytes: crate::bounds::MEMORY_DEFAULT,
        rate_bps,
    };
    Station::new(config, [id; 32], Time::ZERO).unwrap()
}

/// Two stations that hear each other after a millisecond, except for every seventh frame.
struct Pair {
    stations: [Station; 2],
    now: Time,
    frames: u32,
    /// Packets delivered, by station.
    delivered: [Vec<u32>; 2],
}

impl Pair {
    /// Transfers what this station sends now; returns whether there was anything.
    fn exchange(&mut self, from: usize) -> bool {
        self.stations[from].handle_timeout(self.now);
        let before = self.frames;
        while let Some(transmit) = self.stations[from].poll_transmit(self.now) {
            let frame = transmit.frame.to_vec();
            self.frames += 1;
            if !self.frames.is_multiple_of(7) {
                self.stations[1 - from].handle_frame(self.now, &frame);
            }
        }
        self.frames > before
    }

    fn run(&mut self, ms: u64, mut each: impl FnMut(&mut [Station; 2], Time)) {
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            each(&mut self.stations, self.now);
            while (0..2).any(|from| self.exchange(from)) {}
            for (station, delivered) in self.stations.iter_mut().zip(&mut self.delivered) {
                while let Some(packet) = station.poll_packet() {
                    delivered.push(u32::from_be_bytes(*packet.first_chunk().unwrap()));
                }
                let due = station.poll_timeout();
                assert!(due.is_none_or(|due| due > self.now), "due at {due:?}, {:?}", self.now);
            }
        }
    }
}

/// Each end seals the last frame of a session in the middle of a flow: nothing is lost or
/// duplicated, and feedback continues. (Feedback about the last frame of the previous session was
/// repeated forever, and was of no use to anybody.)
#[test]
fn a_change_of_keys_in_the_middle_of_a_flow_does_no_harm() {
    for rekeyed in 0..2 {
        let stations = [station(1, 2), station(2, 1)];
        let delivered = [Vec::new(), Vec::new()];
        let mut pair = Pair { stations, now: Time::ZERO, frames: 0, delivered };
        pair.run(500, |_, _| {});
        let mut number = 0u32;
        let mut offer = |stations: &mut [Station; 2], now: Time| {
            number += 1;
            let mut packet = [0; 300];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            stations.iter_mut().for_each(|station| {
                assert_eq!(station.handle_packet(now, &packet), PacketOutcome::Accepted);
            });
        };
        pair.run(200, &mut offer);
        let group = &mut pair.stations[rekeyed].shared.group;
        group.set_next_counter(SESSION_FRAMES_MAX - 20);
        pair.run(400, &mut offer);
        assert!(pair.stations[rekeyed].shared.group.next_counter() < SESSION_FRAMES_MAX / 2);
        let timeouts = |pair: &Pair| pair.stations.each_ref().map(|s| s.stats().encoder_timeouts);
        let before = timeouts(&pair);
        pair.run(1_000, &mut offer);
        assert_eq!(timeouts(&pair), before, "feedback is of use");
        pair.run(1_000, |_, _| {});
        for (station, delivered) in pair.stations.iter().zip(&pair.delivered) {
            assert!(delivered.iter().copied().eq(1..=1_600), "{}", delivered.len());
            assert_eq!(station.stats().symbols_given_up + station.stats().packets_given_up, 0);
        }
    }
}

/// What has waited for the session is not sent at once, because nothing is known about the path.
#[test]
fn the_first_frames_go_at_the_first_rate() {
    let stations = [station(1, 2), station(2, 1)];
    let delivered = [Vec::new(), Vec::new()];
    let mut pair = Pair { stations, now: Time::ZERO, frames: 0, delivered };
    for _ in 0..900 {
        assert_eq!(pair.stations[0].handle_packet(pair.now, &[0; 1_400]), PacketOutcome::Accepted);
    }
    let sent = |pair: &Pair| pair.stations[0].stats().symbols_added;
    while sent(&pair) == 0 {
        pair.run(1, |_, _| {});
    }
    pair.run(1, |_, _| {});
    assert!(sent(&pair) < 10, "{} symbols in two milliseconds", sent(&pair));
}

/// A line on which a frame takes 200 ms, later 20 ms, behind a buffer of two frames. The rate
/// control needs seconds to follow, so an idle line is not left to it. A configured rate holds.
#[test]
fn a_slow_path_that_becomes_faster_is_used_at_once() {
    let came = came_once_faster(None);
    assert!(came >= 40, "{came} of 50");
    let came = came_once_faster(Some(60_000));
    assert!((4..10).contains(&came), "{came}, about 5 at the configured rate");
}

/// Frames of that line in the first second in which they take 20 ms.
fn came_once_faster(rate_bps: Option<u64>) -> u32 {
    let stations = [station_at(1, 2, rate_bps), station(2, 1)];
    let delivered = [Vec::new(), Vec::new()];
    let mut pair = Pair { stations, now: Time::ZERO, frames: 0, delivered };
    pair.run(500, |_, _| {});
    let (slow, change_at) = (Duration::from_millis(200), pair.now + Duration::from_secs(20));
    let mut line: VecDeque<Vec<u8>> = VecDeque::new();
    let (mut served_at, mut came) = (pair.now, 0);
    while pair.now < change_at + Duration::from_secs(1) {
        pair.now += Duration::from_millis(1);
        let (now, [from, to]) = (pair.now, &mut pair.stations);
        let takes = if now < change_at { slow } else { slow / 10 };
        while from.handle_packet(now, &[0; 1_400]) == PacketOutcome::Accepted {}
        if now >= served_at
            && let Some(frame) = line.pop_front()
        {
            to.handle_frame(now, &frame);
            served_at = now + takes;
        }
        to.handle_timeout(now);
        while let Some(feedback) = to.poll_transmit(now) {
            from.handle_frame(now, feedback.frame);
        }
        while to.poll_packet().is_some() {
            came += u32::from(now >= change_at);
        }
        from.handle_timeout(now);
        while let Some(transmit) = from.poll_transmit(now) {
            if line.is_empty() {
                served_at = served_at.max(now + takes);
            }
            if line.len() < 2 {
                line.push_back(transmit.frame.to_vec());
            }
        }
    }
    came
}

/// Voice alone, in one direction: only their own timer wakes the station for copies ahead of need.
/// (They were sent with the next frame, which was too late.)
#[test]
fn copies_ahead_of_need_go_in_time_where_nothing_else_does() {
    let stations = [station(1, 2), station(2, 1)];
    let delivered = [Vec::new(), Vec::new()];
    let mut pair = Pair { stations, now: Time::ZERO, frames: 0, delivered };
    pair.run(500, |_, _| {});
    let mut voice = [0; 200];
    voice[..10].copy_from_slice(&[0x45, 46 << 2, 0, 200, 0, 0, 0, 0, 64, 17]);
    let (mut sent, mut woken) = (0, 0);
    for ms in 0..4_000_u64 {
        pair.now += Duration::from_millis(1);
        let now = pair.now;
        if ms % 20 == 0 {
            assert_eq!(pair.stations[0].handle_packet(now, &voice), PacketOutcome::Accepted);
            while (0..2).any(|from| pair.exchange(from)) {}
            sent += 1;
        }
        // Only a station that wants to be woken, or receives something, is.
        let before = pair.stations[0].stats().copies_ahead_sent;
        let is_due = |station: &Station| station.poll_timeout().is_some_and(|due| due <= now);
        while (0..2).any(|from| is_due(&pair.stations[from]) && pair.exchange(from)) {}
        let due = pair.stations[0].poll_timeout();
        assert!(due.is_none_or(|due| due > now), "due at {due:?}, {now:?}");
        woken += u64::from(pair.stations[0].stats().copies_ahead_sent > before && ms % 20 == 3);
    }
    let copies = pair.stations[0].stats().copies_ahead_sent;
    assert!(copies > sent / 10, "{copies} copies of {sent} packets");
    assert_eq!(woken, copies, "all go 3 ms later");
}
