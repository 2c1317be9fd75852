//! Two ends and a helper with keys of their own, and somebody who has all that the helper seals and
//! opens with, and changes symbols on their way.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::wire::{HEADER_LEN, Header, Kind, TAG_LEN};
use corridor_proto::{CodingParams, Order, Role, Station, StationId, Unsealer};

use crate::input::{Input, keyed};

const IDS: [StationId; 3] = [StationId(1), StationId(2), StationId(3)];
const HELPER: usize = 2;
/// Things that happen at most.
const STEPS_MAX: usize = 300;
/// Bytes of the longest packet.
const PACKET_LEN_MAX: usize = 60;

struct Cell {
    now: Time,
    stations: Vec<Station>,
    opened: [Unsealer; 3],
    sent: Vec<Vec<u8>>,
    /// Packets that were delivered, or passed over.
    passed: usize,
}

/// Reads `data` as packets that the first end's host sends, and as what becomes of the frames with
/// symbols: they arrive, get lost, or somebody changes them who can seal them again.
///
/// # Panics
/// When the second end's host gets what the first one's has not sent, or not in that order.
pub fn tags(data: &[u8]) {
    let mut input = Input::new(data);
    let coding = CodingParams {
        field: input.field(),
        block_size: 1 + input.below(20) as u16,
        symbol_size: 64 + input.below(200) as u16,
        order: [Order::Systematic, Order::OnTheFly, Order::Dense][input.below(3)],
        ..CodingParams::default()
    };
    let station = |index: usize| {
        let others: Vec<StationId> = IDS.into_iter().filter(|&id| id != IDS[index]).collect();
        let mut config = keyed(IDS[index], &others, 1_000);
        config.coding = coding;
        config.role = match index {
            HELPER => Role::Helper { between: (IDS[0], IDS[1]) },
            _ => Role::Endpoint { peer: IDS[1 - index], helper: Some(IDS[HELPER]) },
        };
        Station::new(config, [index as u8; 32], Time::ZERO).expect("a sound configuration")
    };
    let stations = (0..3).map(station).collect();
    let opened = [0; 3].map(|_| Unsealer::new([0; 32]));
    let mut cell = Cell { now: Time::ZERO, stations, opened, sent: Vec::new(), passed: 0 };
    for _ in 0..100 {
        cell.step(&mut Input::new(&[]));
    }
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        if input.below(2) == 0 {
            cell.send(input.below(PACKET_LEN_MAX));
        }
        cell.step(&mut input);
    }
    // Long enough for all to be given up that will not come.
    for _ in 0..400 {
        cell.step(&mut Input::new(&[]));
    }
}

impl Cell {
    /// A packet of the first end's host, no other like it.
    fn send(&mut self, len: usize) {
        let number = self.sent.len() as u16 + 1;
        let mut packet = vec![0x5a; 2 + len];
        packet[..2].copy_from_slice(&number.to_be_bytes());
        self.stations[0].handle_packet(self.now, &packet);
        self.sent.push(packet);
    }

    /// Ten milliseconds.
    fn step(&mut self, input: &mut Input) {
        self.now += Duration::from_millis(10);
        for from in 0..3 {
            self.stations[from].handle_timeout(self.now);
            while let Some(transmit) = self.stations[from].poll_transmit(self.now) {
                let frame = transmit.frame.to_vec();
                for to in (0..3).filter(|&to| to != from) {
                    if let Some(frame) = self.passage(from, &frame, input) {
                        self.stations[to].handle_frame(self.now, &frame);
                    }
                }
            }
            while let Some(packet) = self.stations[from].poll_packet() {
                assert_eq!(from, 1, "only the second end has anything to deliver");
                let packet = packet.bytes();
                let place = self.sent[self.passed..].iter().position(|sent| sent == packet);
                let place = place.expect("delivered what was not sent, or out of order");
                self.passed += place + 1;
            }
        }
    }

    /// What becomes of a frame on its way to one station. Frames without symbols arrive.
    fn passage(&mut self, from: usize, frame: &[u8], input: &mut Input) -> Option<Vec<u8>> {
        if let Some(secret) = self.stations[from].secret().cloned() {
            self.opened[from].follow(&secret);
        }
        let mut clear = Vec::new();
        let is_data = Header::parse(frame).is_some_and(|header| !header.is_hello);
        if self.opened[from].unseal(frame, &mut clear).is_none() || !is_data {
            return Some(frame.to_vec());
        }
        let mut body = clear[HEADER_LEN..clear.len() - TAG_LEN].to_vec();
        if body.first() != Some(&Kind::Enc.code()) {
            return Some(frame.to_vec());
        }
        match input.below(8) {
            0..=3 => return Some(frame.to_vec()),
            4 => return None,
            5 => {
                let at = 1 + usize::from(input.byte()) % (body.len() - 1);
                body[at] ^= 1 + input.byte() % 255;
            }
            6 => body.truncate(1 + usize::from(input.byte()) % body.len()),
            _ => {
                body.truncate(7);
                body.extend(input.vec(20));
            }
        }
        self.opened[from].reseal(frame, &body)
    }
}
