//! The memory of a hub with many peers when all of its queues and windows are full, counted by the
//! allocator: it never exceeds the configured limit.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::wire::{Chunks, Header, Kind, TAG_LEN};
use corridor_proto::{
    CodingParams, Hub, HubConfig, LinkErrors, PacketOutcome, Role, Station, StationConfig,
    StationId, Unsealer,
};
use etherparse::PacketBuilder;

use crate::allocator::{counted, held};

const HUB: StationId = StationId(1);
const PACKET_LEN: usize = 1_400;

fn config(id: StationId, peer: StationId, memory_bytes: usize) -> StationConfig {
    let coding = CodingParams::window();
    StationConfig {
        id,
        role: Role::Endpoint { peer, helper: None },
        security: [7; 32].into(),
        coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: coding.ingress_packets_default(),
        frame_len_max: 1_500,
        frame_len_min: 0,
        memory_bytes,
        rate_bps: Some(1_000_000_000),
    }
}

fn leaf_id(at: usize) -> StationId {
    StationId(at as u16 + 2)
}

fn address(at: usize) -> [u8; 4] {
    [10, 9, (at / 250) as u8, (at % 250) as u8 + 2]
}

/// A TCP segment, which has to be delivered in order, in a flow of its own.
fn segment(from: [u8; 4], to: [u8; 4], number: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv4(from, to, 64)
        .tcp(1_024 + (number % 200) as u16, 80, number as u32, 500)
        .ack(1)
        .write(&mut packet, &[number as u8; PACKET_LEN - 40])
        .unwrap();
    packet
}

struct Star {
    hub: Hub,
    leaves: Vec<Station>,
    now: Time,
    /// Has the secret, and opens what neighbours send.
    unsealer: Unsealer,
    /// Symbols that the hub received from each neighbour; the first few are lost.
    symbols: Vec<usize>,
}

impl Star {
    fn new(peers: usize, memory_bytes: usize) -> Self {
        let allowed = |at| vec![std::net::IpAddr::from(address(at)).into()];
        let neighbours = (0..peers).map(|at| (leaf_id(at), allowed(at))).collect();
        let station = config(HUB, leaf_id(0), memory_bytes);
        let own = vec![[10, 9, 255, 1].into()];
        let told = HubConfig { station, neighbours, own, one_channel: false };
        let hub = counted(|| Hub::new(told, [1; 32], Time::ZERO)).unwrap();
        let default = corridor_proto::bounds::MEMORY_DEFAULT;
        let leaf = |at: usize| {
            Station::new(config(leaf_id(at), HUB, default), [at as u8; 32], Time::ZERO).unwrap()
        };
        let leaves = (0..peers).map(leaf).collect();
        let unsealer = Unsealer::new([7; 32]);
        Star { hub, leaves, now: Time::ZERO, unsealer, symbols: vec![0; peers] }
    }

    /// Lets time pass; `hears`: whether the hub's frames with symbols and feedback arrive.
    fn step(&mut self, hears: bool) {
        self.now += Duration::from_millis(1);
        let (now, hub) = (self.now, &mut self.hub);
        counted(|| hub.handle_timeout(now));
        let mut frame = Vec::with_capacity(2_000);
        let make = |hub: &mut Hub, frame: &mut Vec<u8>| {
            let made = hub.poll_transmit(now)?;
            frame.clear();
            frame.extend_from_slice(made.frame);
            Some(())
        };
        while counted(|| make(hub, &mut frame)).is_some() {
            let is_hello = Header::parse(&frame).is_some_and(|head| head.is_hello);
            if hears || is_hello {
                for leaf in &mut self.leaves {
                    leaf.handle_frame(now, &frame);
                }
            }
        }
        let mut clear = Vec::new();
        for (leaf, symbols) in self.leaves.iter_mut().zip(&mut self.symbols) {
            leaf.handle_timeout(now);
            while let Some(made) = leaf.poll_transmit(now) {
                self.unsealer.unseal(made.frame, &mut clear);
                let header = Header::parse(&clear).expect("a frame of ours");
                let body = &clear[header.clear_len()..clear.len() - TAG_LEN];
                if Chunks::find(body, Kind::Window).is_some() {
                    *symbols += 1;
                    // Without the first few nothing can be delivered, so everything after them is
                    // kept.
                    if *symbols <= 3 {
                        continue;
                    }
                }
                counted(|| hub.handle_frame(now, made.frame));
            }
            while leaf.poll_event().is_some() {}
        }
        counted(|| {
            while hub.poll_packet().is_some() {}
            while hub.poll_event().is_some() {}
        });
    }
}

#[test]
fn a_hub_whose_queues_and_windows_are_full_holds_no_more_than_its_ceiling() {
    let (peers, memory_bytes) = (32, 48_000_000);
    let mut star = Star::new(peers, memory_bytes);
    (0..1_000).for_each(|_| star.step(true));
    assert!(star.leaves.iter().all(|leaf| leaf.peers().iter().all(|peer| peer.is_up)), "up");
    let mut refused = 0;
    for number in 0..400 {
        for at in 0..peers {
            let packet = segment([10, 9, 255, 1], address(at), number);
            let (now, hub) = (star.now, &mut star.hub);
            let outcome = counted(|| hub.handle_packet(now, &packet));
            refused += usize::from(outcome != PacketOutcome::Accepted);
            let packet = segment(address(at), [10, 9, 255, 1], number);
            star.leaves[at].handle_packet(now, &packet);
        }
        star.step(false);
    }
    // Symbols are sent again, and logs fill up.
    (0..3_000).for_each(|_| star.step(false));
    let held = held();
    let views: Vec<_> = star.hub.stations().map(|station| station.memory()).collect();
    assert!(refused > 0, "queues are full");
    let told: usize = views.iter().map(|view| view.queue + view.sent + view.received).sum();
    assert!(told <= memory_bytes, "{told} bytes are promised");
    assert!(held <= memory_bytes as isize, "{held} bytes of {memory_bytes}");
    assert!(held > memory_bytes as isize / 2, "{held} bytes: nothing was filled");
}
