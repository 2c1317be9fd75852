//! A hub with a neighbour that has an established session, and another that joins later.

use std::net::IpAddr;
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{Hub, HubConfig, Security, Station, StationId};

use crate::net::{Host, Net, config, keyed};

pub const HUB: StationId = StationId(1);
pub const LIVING: StationId = StationId(2);
pub const NEW: StationId = StationId(3);
/// Indices of the hosts in [`Net::hosts`].
pub const AT_HUB: usize = 0;
pub const AT_LIVING: usize = 1;
pub const AT_NEW: usize = 2;
const PAYLOAD_LEN: usize = 900;

/// Individual keys, or one secret for all.
pub fn security(keys_of_their_own: bool, me: StationId) -> Security {
    let peers: &[StationId] = if me == HUB { &[LIVING, NEW] } else { &[HUB] };
    if keys_of_their_own { keyed(me, peers) } else { [7; 32].into() }
}

fn address(id: StationId) -> IpAddr {
    [10, 0, 0, id.0 as u8].into()
}

/// A datagram from one station's host to another's.
pub fn packet(from: StationId, to: StationId, number: u32) -> Vec<u8> {
    let len = (28 + PAYLOAD_LEN) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&[10, 0, 0, from.0 as u8, 10, 0, 0, to.0 as u8]);
    packet.extend_from_slice(&[0x12, 0x34, 0x56, 0x78]);
    packet.extend_from_slice(&(len - 20).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet.resize(usize::from(len), 0x5a);
    packet
}

/// A station whose only peer is the hub, with a known address.
pub fn leaf(keys_of_their_own: bool, id: StationId, seed: u64, now: Time) -> Host {
    let mut entropy = [id.0 as u8; 32];
    entropy[..8].copy_from_slice(&seed.to_be_bytes());
    let station = Station::new(config(id, HUB, security(keys_of_their_own, id)), entropy, now);
    let station = station.expect("a sound configuration").into();
    Host::new(station, [(HUB, Some(u32::from(HUB.0)))], id.0.into(), now)
}

/// The hub and the connected neighbour, a few seconds after they met.
pub fn net(keys_of_their_own: bool, seed: u64, one_way: Duration) -> Net {
    let neighbours = [LIVING, NEW].map(|id| (id, vec![address(id).into()])).into();
    let station = config(HUB, LIVING, security(keys_of_their_own, HUB));
    let told = HubConfig { station, neighbours, own: vec![address(HUB)], one_channel: false };
    let mut entropy = [0x77; 32];
    entropy[..8].copy_from_slice(&seed.to_be_bytes());
    let hub = Hub::new(told, entropy, Time::ZERO).expect("a sound configuration").into();
    let hub = Host::new(hub, [(LIVING, None), (NEW, None)], HUB.0.into(), Time::ZERO);
    let living = leaf(keys_of_their_own, LIVING, seed, Time::ZERO);
    Net::new(vec![hub, living], one_way)
}
