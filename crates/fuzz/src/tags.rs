//! Two ends and a helper with key pairs of their own, and an attacker who has all keys of the
//! helper and alters symbols in transit; or two ends across relays, and an attacker who has the
//! keys of the hops between them.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::relay::RelayConfig;
use corridor_proto::relay::wire::Frame;
use corridor_proto::wire::{HEADER_LEN, Header, Kind, Relayed, TAG_LEN};
use corridor_proto::{
    CodingParams, Order, PrivateKey, RelayEnd, RelayStation, RelayStationConfig, Role, Station,
    StationId, Unsealer,
};
use corridor_testbed::{Bed, Sent, Ways, World};

use crate::input::{Input, keyed};

const IDS: [StationId; 3] = [StationId(1), StationId(2), StationId(3)];
const HELPER: usize = 2;
/// Maximum number of steps.
const STEPS_MAX: usize = 120;
/// Time between two polls of the stations.
const STEP: Duration = Duration::from_millis(10);
/// Bytes of the longest packet.
const PACKET_LEN_MAX: usize = 60;

/// The topology between the ends, and what happens to symbols there.
struct Middle<'a> {
    opened: [Unsealer; 3],
    input: Input<'a>,
}

/// Interprets `data` as packets that the first end's host sends, and as what happens to the frames
/// with symbols or packets: they arrive, get lost, or the attacker alters and encrypts them again.
///
/// # Panics
/// If the second end's host receives what the first one's has not sent, or in another order.
pub fn tags(data: &[u8]) {
    let mut input = Input::new(data);
    if input.below(4) == 1 {
        return across_relays(&mut input);
    }
    let coding = CodingParams {
        field: input.field(),
        block_size: 1 + input.below(20) as u16,
        symbol_size: 64 + input.below(200) as u16,
        order: [Order::Systematic, Order::OnTheFly, Order::Dense][input.below(3)],
        ..CodingParams::default()
    };
    let station = |index: usize| {
        let others: Vec<StationId> = IDS.into_iter().filter(|&id| id != IDS[index]).collect();
        let mut config = keyed(IDS[index], &others);
        config.coding = coding;
        config.role = match index {
            HELPER => Role::Helper { between: (IDS[0], IDS[1]) },
            _ => Role::Endpoint { peer: IDS[1 - index], helper: Some(IDS[HELPER]) },
        };
        Station::new(config, [index as u8; 32], Time::ZERO).expect("a sound configuration")
    };
    let opened = [0; 3].map(|_| Unsealer::new([0; 32]));
    let middle = Middle { opened, input: Input::new(&[]) };
    let mut cell = Bed::new((0..3).map(station), middle);
    (0..60).for_each(|_| cell.tick(STEP));
    cell.world.input = input;
    let (mut sent, mut passed) = (Vec::new(), 0);
    for _ in 0..STEPS_MAX {
        if cell.world.input.is_empty() {
            break;
        }
        if cell.world.input.below(2) == 0 {
            // Each one is unique.
            let mut packet = vec![0x5a; 2 + cell.world.input.below(PACKET_LEN_MAX)];
            packet[..2].copy_from_slice(&(sent.len() as u16 + 1).to_be_bytes());
            cell.put(0, &packet);
            sent.push(packet);
        }
        cell.tick(STEP);
        check(&mut cell, &sent, &mut passed);
    }
    // What waited for repair is delivered.
    cell.world.input = Input::new(&[]);
    for _ in 0..60 {
        cell.tick(STEP);
        check(&mut cell, &sent, &mut passed);
    }
}

/// What was delivered was sent, and follows what was delivered before, or what was skipped.
fn check(cell: &mut Bed<Middle<'_>>, sent: &[Vec<u8>], passed: &mut usize) {
    assert!(cell.delivered[0].is_empty() && cell.delivered[2].is_empty(), "one way alone");
    for packet in cell.delivered[1].drain(..) {
        let place = sent[*passed..].iter().position(|sent| *sent == packet);
        *passed += 1 + place.expect("delivered what was not sent, or out of order");
    }
}

impl World for Middle<'_> {
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways) {
        let secret = sent.station.station_at(0).and_then(Station::secret);
        secret.into_iter().for_each(|secret| self.opened[sent.from].follow(secret));
        for to in sent.others() {
            if let Some(frame) = self.passage(sent.from, sent.frame) {
                ways.put(sent.at, sent.from, to, frame);
            }
        }
    }
}

impl Middle<'_> {
    /// What happens to a frame on its way to one station. Frames without symbols always arrive.
    fn passage(&mut self, from: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let mut clear = Vec::new();
        let is_data = Header::parse(frame).is_some_and(|header| !header.is_hello);
        if self.opened[from].unseal(frame, &mut clear).is_none() || !is_data {
            return Some(frame.to_vec());
        }
        let mut body = clear[HEADER_LEN..clear.len() - TAG_LEN].to_vec();
        if body.first() != Some(&Kind::Enc.code()) {
            return Some(frame.to_vec());
        }
        let input = &mut self.input;
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

fn address(index: usize) -> [u8; 4] {
    [10, 9, 0, 1 + index as u8]
}

/// A relay that has the other one as neighbour and end.
fn relay(index: usize) -> RelayStation {
    let other = 1 - index;
    let mut station = keyed(IDS[index], &[IDS[other]]);
    station.role = Role::Relay;
    let network = std::net::IpAddr::from(address(other)).into();
    let private = PrivateKey::from_random([IDS[other].0 as u8; 32]);
    let config = RelayStationConfig {
        station,
        relay: RelayConfig::plain(),
        neighbours: vec![(IDS[other], vec![network])],
        own: vec![address(index).into()],
        broadcast: false,
        ends: vec![RelayEnd { networks: vec![network], public: private.public(), psk: None }],
    };
    RelayStation::new(config, [index as u8; 32], Time::ZERO).expect("a sound configuration")
}

/// A unique IPv4 packet from the first end to the second.
fn packet(number: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0x5a; 22 + len];
    let total = packet.len() as u16;
    packet[..20].fill(0);
    (packet[0], packet[8], packet[9]) = (0x45, 64, 253);
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[12..16].copy_from_slice(&address(0));
    packet[16..20].copy_from_slice(&address(1));
    packet[20..22].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The same across relays: the attacker between the two has the keys of the hop.
fn across_relays(input: &mut Input<'_>) {
    let (mut stations, mut now) = ([relay(0), relay(1)], Time::ZERO);
    let mut opened = Unsealer::new([0; 32]);
    let (mut sent, mut came, mut kept): (Vec<Vec<u8>>, Vec<bool>, Vec<Vec<u8>>) =
        Default::default();
    for step in 0..STEPS_MAX + 60 {
        now += Duration::from_millis(10);
        if step >= 60 && !input.is_empty() && input.below(2) == 0 {
            let packet = packet(sent.len() as u16, input.below(PACKET_LEN_MAX));
            stations[0].handle_packet(now, &packet);
            sent.push(packet);
            came.push(false);
        }
        for from in 0..2 {
            stations[from].handle_timeout(now);
            while let Some(transmit) = stations[from].poll_transmit(now) {
                let mut frame = transmit.frame.to_vec();
                if from == 0 {
                    let secret = stations[0].secret().cloned();
                    secret.iter().for_each(|secret| opened.follow(secret));
                    frame = bent(&mut opened, &frame, input, &mut kept).unwrap_or(frame);
                }
                stations[1 - from].handle_frame(now, &frame);
            }
        }
        while let Some(packet) = stations[1].poll_packet() {
            let packet = packet.bytes();
            // Apart from the TTL, and the checksum over it.
            let is_it = |sent: &Vec<u8>| sent[12..] == packet[12..] && sent[..8] == packet[..8];
            let at = sent.iter().position(is_it).expect("delivered what was not sent");
            assert!(!core::mem::replace(&mut came[at], true), "delivered twice");
        }
    }
}

/// What the attacker makes of a frame with one packet, if it is altered.
fn bent(
    opened: &mut Unsealer,
    frame: &[u8],
    input: &mut Input<'_>,
    kept: &mut Vec<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut clear = Vec::new();
    opened.unseal(frame, &mut clear)?;
    let (kind, body) = clear[HEADER_LEN..clear.len() - TAG_LEN].split_first()?;
    let relayed = Relayed::parse(body).filter(|_| *kind == Kind::Relayed.code())?;
    let Frame::Plain { counter, ttl, asks, packet } = Frame::parse(relayed.frame)? else {
        return None;
    };
    let mut packet = packet.to_vec();
    kept.push(packet.clone());
    match input.below(6) {
        0 | 1 => return None,
        2 => {
            let at = usize::from(input.byte()) % packet.len();
            packet[at] ^= 1 + input.byte() % 255;
        }
        3 => packet.truncate(1 + usize::from(input.byte()) % packet.len()),
        4 => packet.extend(input.vec(20)),
        _ => packet.clone_from(&kept[usize::from(input.byte()) % kept.len()]),
    }
    let changed = Frame::Plain { counter, ttl, asks, packet: &packet }.to_bytes();
    let mut body = Vec::new();
    Kind::Relayed.begin_last(&mut body);
    Relayed { to: relayed.to, frame: &changed }.write(&mut body);
    opened.reseal(frame, &body)
}
