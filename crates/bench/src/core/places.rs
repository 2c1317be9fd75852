//! Frames from addresses other than their sender's, and attacks by an insider.

use std::time::Duration;

use corridor_base::Time;
use corridor_results::checks::Check;
use serde::Serialize;

use crate::net::{Address, Losses, Net, is_data, is_hello};
use crate::scene::{self, AT_HUB, AT_LIVING, AT_NEW, HUB, LIVING, NEW};

const ONE_WAY: Duration = Duration::from_millis(10);
const THIEF: Address = 9_999;
const ELSEWHERE: Address = 77;
/// Maximum time until data follows a peer that has moved, seconds.
const MOVE_MAX: f64 = 1.0;

#[derive(Debug, Serialize)]
pub struct Copied {
    frames_copied: u64,
    bytes_copied: usize,
    bytes_to_the_thief: usize,
    data_frames_to_the_thief: u64,
    /// For a peer that does move: time until data goes there.
    moved_after_s: Option<f64>,
}

/// Sends packets each way for a time; the peer's frames are passed to `copy` when they leave.
fn converse(net: &mut Net, ms: u64, losses: &mut Losses, copies: &mut Vec<Vec<u8>>) {
    let start = net.now;
    for number in 0..ms {
        let mut survives = |host: usize, frame: &[u8]| {
            if host == AT_LIVING && is_data(frame) {
                copies.push(frame.to_vec());
            }
            losses.survives(host, frame)
        };
        net.run_until(start + Duration::from_millis(number), &mut survives);
        net.offer(AT_LIVING, &scene::packet(LIVING, HUB, number as u32), &mut survives);
        net.offer(AT_HUB, &scene::packet(HUB, LIVING, number as u32), &mut survives);
        let now = net.now;
        for copy in copies.drain(..) {
            // Before the original arrives.
            net.hosts[AT_HUB].hear(now, THIEF, &copy);
        }
    }
}

/// An attacker copies each frame of an established session, and delivers it first, from its own
/// address.
pub fn copied(checks: &mut Vec<Check>) -> Copied {
    let mut net = scene::net(true, 3, ONE_WAY);
    let mut losses = Losses::new(0.1, 3);
    net.run_until(Time::from_millis(3_000), &mut |host, frame| losses.survives(host, frame));
    let (mut frames_copied, mut bytes_copied) = (0, 0);
    let mut copies = Vec::new();
    for _ in 0..2_000 {
        converse(&mut net, 1, &mut losses, &mut copies);
        let now = net.now + Duration::from_millis(1);
        let mut taken = Vec::new();
        net.run_until(now, &mut |host, frame| {
            if host == AT_LIVING && is_data(frame) {
                taken.push(frame.to_vec());
            }
            losses.survives(host, frame)
        });
        for copy in taken {
            (frames_copied, bytes_copied) = (frames_copied + 1, bytes_copied + copy.len());
            net.hosts[AT_HUB].hear(net.now, THIEF, &copy);
        }
    }
    let bytes_to_the_thief = net.strays.get(&THIEF).copied().unwrap_or(0);
    let data_frames_to_the_thief = net.data_strays;
    let moved_after_s = moves(&mut net, &mut losses);
    checks.extend([
        Check::at_least(
            "frames copied and delivered first",
            Some(frames_copied as f64),
            500.0,
            "frames",
        ),
        Check::at_most(
            "a fresh frame delivered first from elsewhere: data frames that go there",
            Some(data_frames_to_the_thief as f64),
            0.0,
            "frames",
        ),
        Check::at_most(
            "the same: bytes that go there per byte that came",
            Some(bytes_to_the_thief as f64 / f64::max(bytes_copied as f64, 1.0)),
            1.0,
            "",
        ),
        Check::at_most("a peer that moves is followed after", moved_after_s, MOVE_MAX, "s"),
    ]);
    Copied {
        frames_copied,
        bytes_copied,
        bytes_to_the_thief,
        data_frames_to_the_thief,
        moved_after_s,
    }
}

/// Moves the peer to another address.
fn moves(net: &mut Net, losses: &mut Losses) -> Option<f64> {
    let start = net.now;
    net.hosts[AT_LIVING].at = ELSEWHERE;
    for ms in 0..10_000 {
        let mut survives = |host: usize, frame: &[u8]| losses.survives(host, frame);
        net.run_until(start + Duration::from_millis(ms), &mut survives);
        net.offer(AT_LIVING, &scene::packet(LIVING, HUB, ms as u32), &mut survives);
        net.offer(AT_HUB, &scene::packet(HUB, LIVING, ms as u32), &mut survives);
        if net.hosts[AT_HUB].book.address(LIVING) == Some(ELSEWHERE) {
            return Some((net.now - start).as_secs_f64());
        }
    }
    None
}

#[derive(Debug, Serialize)]
pub struct Insider {
    packets_of_others_dropped: u64,
    named_by_the_hub: u64,
    frames_forged: u64,
    frames_rejected: u64,
    named_by_address: usize,
    session_goes_on: bool,
}

/// The tags of one peer's session, and frames of the other's: packets, acknowledgments, goodbyes.
/// The hub receives none of the goodbyes.
fn spoken(net: &mut Net) -> (Vec<[u8; 2]>, Vec<Vec<u8>>) {
    let (mut tags, mut own) = (Vec::new(), Vec::new());
    for number in 0..150 {
        if number == 100 {
            let now = net.now;
            net.hosts[AT_NEW].station.close(now);
        }
        let mut look = |host: usize, frame: &[u8]| {
            match host {
                AT_LIVING if !is_hello(frame) => tags.push([frame[1], frame[2]]),
                AT_NEW if !is_hello(frame) => own.push(frame.to_vec()),
                _ => {}
            }
            host != AT_NEW || number < 100
        };
        net.offer(AT_LIVING, &scene::packet(LIVING, HUB, number), &mut look);
        if number < 100 {
            net.offer(AT_NEW, &scene::packet(NEW, HUB, number), &mut look);
        }
        net.run_until(net.now + Duration::from_millis(5), &mut look);
    }
    (tags, own)
}

/// A malicious peer of the hub, with a session of its own.
pub fn insider(checks: &mut Vec<Check>) -> Insider {
    let mut net = scene::net(true, 4, ONE_WAY);
    net.hosts.push(scene::leaf(true, NEW, 4, Time::ZERO));
    let all: crate::net::Fate<'_> = &mut |_, _| true;
    net.run_until(Time::from_millis(3_000), all);
    // Packets it claims are the other peer's.
    for number in 0..50 {
        net.offer(AT_NEW, &scene::packet(LIVING, HUB, number), all);
        net.run_until(net.now + Duration::from_millis(5), all);
    }
    net.run_until(net.now + Duration::from_millis(500), all);
    let hub = net.hosts[AT_HUB].station.hub().expect("a hub");
    let named_by_the_hub = hub.wrong_sources(NEW);
    let innocent = hub.wrong_sources(LIVING);
    let packets_of_others_dropped = hub.stats().packets_wrong_source;
    let came_through = net.hosts[AT_HUB].delivered.len();
    let (tags, own) = spoken(&mut net);
    let before = net.hosts[AT_HUB].station.stats().frames_rejected;
    let mut frames_forged = 0;
    for (frame, tag) in own.iter().zip(tags.iter().cycle()) {
        let mut forged = frame.clone();
        forged[1..3].copy_from_slice(tag);
        forged[3..7].copy_from_slice(&(1_000_000 + frames_forged as u32).to_be_bytes());
        let now = net.now;
        net.hosts[AT_HUB].hear(now, NEW.0.into(), &forged);
        frames_forged += 1;
    }
    let frames_rejected = net.hosts[AT_HUB].station.stats().frames_rejected - before;
    let named = net.hosts[AT_HUB].named.iter().filter(|&&it| it == (NEW, LIVING)).count();
    let session_goes_on = {
        let count = net.hosts[AT_HUB].delivered.len();
        net.offer(AT_LIVING, &scene::packet(LIVING, HUB, 7), all);
        net.run_until(net.now + Duration::from_millis(200), all);
        net.hosts[AT_HUB].delivered.len() > count && net.hosts[AT_HUB].station.is_up(LIVING)
    };
    let of = |what| format!("an insider that forges another's {what}");
    checks.extend([
        Check::at_least(
            of("source: packets dropped, and it is named"),
            Some(named_by_the_hub as f64),
            50.0,
            "packets",
        ),
        Check::at_most(
            of("source: packets let through, or laid to another"),
            Some((came_through as u64 + innocent) as f64),
            0.0,
            "packets",
        ),
        Check::at_least(
            of("acknowledgement or goodbye: share dropped"),
            Some(frames_rejected as f64 / f64::max(frames_forged as f64, 1.0)),
            1.0,
            "",
        ),
        Check::at_least(
            of("acknowledgement or goodbye: share named"),
            Some(named as f64 / f64::max(frames_forged as f64, 1.0)),
            1.0,
            "",
        ),
        Check::at_least(
            of("frames: the session goes on"),
            Some(f64::from(u8::from(session_goes_on))),
            1.0,
            "",
        ),
    ]);
    Insider {
        packets_of_others_dropped,
        named_by_the_hub,
        frames_forged,
        frames_rejected,
        named_by_address: named,
        session_goes_on,
    }
}
