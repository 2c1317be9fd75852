//! A station in window mode allocates nothing for the packets and frames of a steady flow, whether
//! frames get lost or not.

// Counting allocations takes an allocator, and that is unsafe to write.
#![allow(unsafe_code)]

use core::time::Duration;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{CodingParams, LinkErrors, Role, Station, StationConfig, StationId};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Packets a millisecond from the first to the second station; half as many go back.
const PACKETS_PER_MS: usize = 20;
/// Time in which all buffers grow to their size, and time in which none may, milliseconds. Neither
/// station greets the other in the second: that is rare, and allocates.
const WARM_UP_MS: u64 = 10_000;
const MEASURED_MS: u64 = 2_000;

fn station(id: u8, peer: u8) -> Station {
    let config = StationConfig {
        id: StationId(id),
        role: Role::Endpoint { peer: StationId(peer), helper: None },
        psk: [7; 32],
        coding: CodingParams::window(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 1_000,
        frame_len_max: 1_500,
        frame_len_min: 0,
        rate_bps: Some(1_000_000_000),
    };
    Station::new(config, [id; 32], Time::ZERO).unwrap()
}

/// A TCP segment, or a datagram, which may overtake.
fn packet(protocol: u8) -> Vec<u8> {
    let mut packet = vec![0; 1_400];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol]);
    packet
}

/// Allocations in the measured time, and packets delivered in it.
fn run(loss_percent: u32) -> (usize, u64) {
    let mut stations = [station(1, 2), station(2, 1)];
    let mut losses =
        StreamKey { seed: 1, replication: 0, entity: 0, purpose: "allocation" }.stream();
    let packets = [packet(6), packet(17)];
    let mut frame = Vec::with_capacity(2_000);
    let delivered = |stations: &[Station; 2]| {
        stations.iter().map(|station| station.stats().packets_delivered).sum::<u64>()
    };
    let mut before = (0, 0);
    for ms in 0..WARM_UP_MS + MEASURED_MS {
        let now = Time::from_millis(ms);
        if ms == WARM_UP_MS {
            before = (ALLOCATIONS.with(Cell::get), delivered(&stations));
        }
        for count in 0..PACKETS_PER_MS {
            stations[0].handle_packet(now, &packets[count % 2]);
            if count % 2 == 0 {
                stations[1].handle_packet(now, &packets[0]);
            }
        }
        for from in [0, 1] {
            stations[from].handle_timeout(now);
            while let Some(transmit) = stations[from].poll_transmit(now) {
                frame.clear();
                frame.extend_from_slice(transmit.frame);
                if losses.next_u32() % 100 >= loss_percent {
                    stations[1 - from].handle_frame(now + Duration::from_micros(100), &frame);
                }
            }
        }
        for station in &mut stations {
            while station.poll_packet().is_some() {}
            while station.poll_event().is_some() {}
        }
    }
    (ALLOCATIONS.with(Cell::get) - before.0, delivered(&stations) - before.1)
}

#[test]
fn a_steady_flow_allocates_nothing() {
    for loss_percent in [0, 10] {
        let (allocations, packets) = run(loss_percent);
        assert!(packets > 50_000, "{packets} packets at {loss_percent} %");
        // What there is comes from a greeting within the time, if there is one.
        assert!(allocations < 10, "{allocations} allocations at {loss_percent} %");
    }
}
