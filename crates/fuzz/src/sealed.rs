//! Relays in a row, and events of the encrypted frames between them: in whatever order frames
//! arrive, a relay accepts only what a neighbour has encrypted, and only once; and no packet is
//! delivered that nobody sent. Neighbours may encrypt false bodies.

use core::time::Duration;
use std::collections::BTreeSet;

use corridor_base::Time;
use corridor_proto::relay::RelayConfig;
use corridor_proto::relay::wire::Frame;
use corridor_proto::wire::{Chunks, HEADER_LEN, Header, Kind, Relayed, TAG_LEN};
use corridor_proto::{
    CodingParams, FrameOutcome, LinkErrors, RelayStation, RelayStationConfig, Role, StationConfig,
    StationId, Unsealer,
};

use crate::input::Input;

/// Frames that are remembered, for replay.
const RECORDED_MAX: usize = 64;
/// Maximum number of steps.
const STEPS_MAX: usize = 64;
/// Relays in a row; each hears its neighbours.
const COUNT: usize = 3;
/// Time in which they establish sessions, milliseconds.
const MEETING_MS: u64 = 1_500;

fn address(at: usize) -> [u8; 4] {
    [10, 9, 0, at as u8 + 1]
}

fn station(at: usize, run: u8, relay: RelayConfig, now: Time) -> RelayStation {
    let network = |at: usize| format!("10.9.0.{}/32", at + 1).parse().expect("a network");
    let id = |at: usize| StationId(at as u16 + 1);
    let before = (at > 0).then(|| (id(at - 1), (0..at).map(network).collect()));
    let behind = (at + 1 < COUNT).then(|| (id(at + 1), (at + 1..COUNT).map(network).collect()));
    let config = RelayStationConfig {
        station: StationConfig {
            id: id(at),
            role: Role::Relay,
            security: [7; 32].into(),
            coding: CodingParams::default(),
            link_errors: LinkErrors::Measured,
            ingress_packets: 100,
            frame_len_max: 1_400,
            frame_len_min: 46,
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        },
        relay,
        ends: Vec::new(),
        neighbours: before.into_iter().chain(behind).collect(),
        own: vec![address(at).into()],
        broadcast: false,
    };
    let entropy = core::array::from_fn(|place| [at as u8, run][place % 2]);
    RelayStation::new(config, entropy, now).expect("a sound configuration")
}

/// An IPv4 packet from one station to another, without what only hosts would check.
fn packet(from: usize, to: usize, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 60, 17, 0, 0];
    packet.extend_from_slice(&address(from));
    packet.extend_from_slice(&address(to));
    packet.extend_from_slice(payload);
    packet
}

/// The row, and what is known about it.
struct Row {
    now: Time,
    stations: Vec<RelayStation>,
    recorded: Vec<Vec<u8>>,
    /// Addresses and payloads of packets that were sent: headers change in transit.
    sent: BTreeSet<Vec<u8>>,
    /// What a lying station has claimed.
    unsealer: Unsealer,
}

impl Row {
    /// A millisecond passes, and everything sent arrives, except for what `loses` selects.
    fn step(&mut self, mut loses: impl FnMut() -> bool) {
        self.now += Duration::from_millis(1);
        for at in 0..COUNT {
            self.stations[at].handle_timeout(self.now);
            let Some(transmit) = self.stations[at].poll_transmit(self.now) else { continue };
            let frame = transmit.frame.to_vec();
            self.unsealer.unseal(&frame, &mut Vec::new());
            for near in [at.checked_sub(1), Some(at + 1)].into_iter().flatten() {
                if near < COUNT && !loses() {
                    self.stations[near].handle_frame(self.now, &frame);
                    self.take(near);
                }
            }
            if self.recorded.len() < RECORDED_MAX {
                self.recorded.push(frame);
            }
        }
    }

    fn take(&mut self, at: usize) {
        while let Some(packet) = self.stations[at].poll_packet() {
            let known = packet.get(12..).expect("a packet of IP");
            let is_message = packet[9] == 1;
            assert!(is_message || self.sent.contains(known), "nobody has sent it");
        }
    }

    /// The next frame of a station is sent with a body that was altered, truncated or invented;
    /// what it contains may then be delivered somewhere.
    fn lie(&mut self, at: usize, input: &mut Input) {
        let Some(transmit) = self.stations[at].poll_transmit(self.now) else { return };
        let (frame, mut clear) = (transmit.frame.to_vec(), Vec::new());
        self.unsealer.unseal(&frame, &mut clear);
        if Header::parse(&frame).is_none_or(|header| header.is_hello) {
            return;
        }
        let mut body = clear[HEADER_LEN..clear.len() - TAG_LEN].to_vec();
        if Chunks::find(&body, Kind::Part).is_some() {
            return; // What comes of it is not known here.
        }
        match input.below(3) {
            0 => body.truncate(input.below(body.len())),
            1 => {
                let place = (input.below(256) * 7) % body.len();
                body[place] ^= 1 + input.byte() % 255;
            }
            _ => {
                let to = Some(StationId(u16::from(input.byte()))).filter(|to| to.0 > 0);
                let len = usize::from(input.byte());
                let mut frame = vec![1 + input.byte() % 3, 0, 0, 0, 9, 0];
                frame.extend(input.vec(len));
                body.clear();
                Kind::Relayed.begin_last(&mut body);
                Relayed { to, frame: &frame }.write(&mut body);
            }
        }
        if let Some(relayed) =
            Chunks::find(&body, Kind::Relayed).and_then(|it| Relayed::parse(it.body))
            && let Some(Frame::Plain { packet, .. }) = Frame::parse(relayed.frame)
        {
            self.sent.extend(packet.get(12..).map(<[u8]>::to_vec));
        }
        // A restarted station's HELLO may not have been received.
        let Some(lie) = self.unsealer.reseal(&frame, &body) else { return };
        for near in [at.checked_sub(1), Some(at + 1)].into_iter().flatten() {
            if near < COUNT {
                self.stations[near].handle_frame(self.now, &lie);
                self.take(near);
            }
        }
    }

    /// A frame that nobody has made now: it changes nothing but a counter of refused frames.
    fn refuses(&mut self, at: usize, frame: &[u8]) {
        let (counters, view) =
            (self.stations[at].relay_counters(), self.stations[at].view(self.now));
        let outcome = self.stations[at].handle_frame(self.now, frame);
        // The HELLO of a station that has restarted since can still be opened, and is answered.
        let is_hello = matches!(outcome, FrameOutcome::Handshake { .. });
        assert!(is_hello || matches!(outcome, FrameOutcome::Rejected(_)), "{outcome:?}");
        assert_eq!(self.stations[at].relay_counters(), counters);
        assert_eq!(self.stations[at].view(self.now), view);
        self.stations[at].examine(frame);
    }
}

/// Interprets `data` as events at relays and of the frames between them: these arrive, get lost,
/// are replayed, altered, truncated or invented; hosts send; relays restart; interfaces change the
/// length of frames that they accept.
///
/// # Panics
/// If a relay accepts a frame that no neighbour has encrypted for it unaltered, or accepts one
/// twice; delivers a packet that nobody sent; or if packets do not cross in the end.
pub fn sealed(data: &[u8]) {
    let mut input = Input::new(data);
    let presets = [RelayConfig::default(), RelayConfig::paper(), RelayConfig::plain()];
    let relay = presets[input.below(presets.len())];
    let stations = (0..COUNT).map(|at| station(at, 0, relay, Time::ZERO)).collect();
    let mut row = Row {
        now: Time::ZERO,
        stations,
        recorded: Vec::new(),
        sent: BTreeSet::new(),
        unsealer: Unsealer::new([7; 32]),
    };
    (0..MEETING_MS).for_each(|_| row.step(|| false));
    row.recorded.clear();
    for run in 1..STEPS_MAX as u8 {
        if input.is_empty() {
            break;
        }
        let at = input.below(COUNT);
        match input.below(11) {
            0 | 1 => {
                let (byte, len) = (input.byte(), input.byte());
                let packet = packet(at, (at + 1 + input.below(2)) % COUNT, &vec![byte; len.into()]);
                row.sent.insert(packet[12..].to_vec());
                row.stations[at].handle_packet(row.now, &packet);
                row.take(at);
            }
            2 => (0..input.byte()).for_each(|_| row.step(|| false)),
            3 => (0..8).for_each(|_| row.step(|| input.below(3) == 0)),
            4 if run % 8 == 0 => row.stations[at] = station(at, run, relay, row.now),
            5 if !row.recorded.is_empty() => {
                let frame = row.recorded[input.below(row.recorded.len())].clone();
                // All stations in range have received or lost it: to the latter it may be new.
                row.stations[at].handle_frame(row.now, &frame);
                row.take(at);
                row.refuses(at, &frame);
            }
            6 if !row.recorded.is_empty() => {
                let mut frame = row.recorded[input.below(row.recorded.len())].clone();
                match input.below(2) {
                    0 => frame.truncate(input.below(frame.len())),
                    _ => {
                        let place = (input.below(256) * 7) % frame.len();
                        frame[place] ^= 1 + input.byte() % 255;
                    }
                }
                row.refuses(at, &frame);
            }
            10 => {
                let len = 8 * usize::from(input.byte());
                row.stations[at].limit_frames(row.now, len);
            }
            7 | 8 => {
                let packet = packet(at, (at + 1) % COUNT, &[input.byte(); 30]);
                row.sent.insert(packet[12..].to_vec());
                row.stations[at].handle_packet(row.now, &packet);
                row.take(at);
                row.lie(at, &mut input);
            }
            _ => {
                let len = input.byte();
                let mut frame = input.vec(usize::from(len));
                frame.insert(0, 0x29);
                row.refuses(at, &frame);
            }
        }
    }
    (0..MEETING_MS).for_each(|_| row.step(|| false));
    let last = packet(0, COUNT - 1, b"the last one");
    row.sent.insert(last[12..].to_vec());
    row.stations[0].handle_packet(row.now, &last);
    let before = row.stations[COUNT - 1].stats().packets_delivered;
    (0..MEETING_MS).for_each(|_| row.step(|| false));
    assert!(row.stations[COUNT - 1].stats().packets_delivered > before, "nothing crosses any more");
}
