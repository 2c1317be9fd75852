//! Relays that receive frames that anybody may have made: they must count whatever arrives, and
//! must not deliver a packet that nobody sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use corridor_base::Time;
use corridor_relay::OWED_MAX;
use corridor_relay::in_order::{HELD_MAX, InOrder, Segment, SegmentKind};
use corridor_relay::wire::{Frame, Frames, PacketId, Part, Report, split, with_reports, xor};
use corridor_relay::{NodeId, Relay, RelayConfig};

use crate::input::Input;

/// Maximum number of steps.
const STEPS_MAX: usize = 200;

/// Interprets `data` as events at a relay: packets of its own and of others, coded frames for it
/// that are correct or altered in one place, arbitrary frames, MAC results, time.
///
/// # Panics
/// If the relay panics, delivers a packet that nobody sent, sends a frame that nobody can decode,
/// or counts fewer frames than arrived; or if a packet that waits to be in order is lost.
pub fn relay(data: &[u8]) {
    let mut input = Input::new(data);
    let presets = [RelayConfig::default(), RelayConfig::paper(), RelayConfig::paper_adaptive()];
    let preset = presets[usize::from(input.byte() % 3)];
    let window_packets = Some(usize::from(input.byte() % 8)).filter(|&packets| packets > 0);
    let config = RelayConfig { window_packets, ..preset };
    let Ok(mut relay) = Relay::new(NodeId(1), config, Time::ZERO) else { return };
    let (mut now, mut sent) = (Time::ZERO, BTreeSet::new());
    let (mut heard, mut received) = (0_u64, 0_u64);
    let (mut in_order, mut handed_over) = (InOrder::new(true), Order::default());
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            return;
        }
        let (what, node) = (input.byte() % 8, NodeId(u16::from(input.byte() % 5)));
        let packet: Arc<[u8]> = vec![input.byte(); usize::from(input.byte())].into();
        match what {
            0 => {
                let _ = relay.send(now, node, 9, packet);
            }
            1 => {
                let next = NodeId(u16::from(input.byte() % 5));
                let _ = relay.forward(now, (node, next), 9, packet);
            }
            2 => {
                sent.insert(packet.to_vec());
                let (counter, asks) = (input.byte().into(), input.byte().is_multiple_of(2));
                let frame = Frame::Plain { counter, ttl: 3, asks, packet: &packet };
                heard += 1;
                let bytes = reported(&mut input, frame.to_bytes());
                relay.handle_frame(now, node, input.byte().is_multiple_of(2), &bytes);
            }
            3 => {
                let other = vec![input.byte(); usize::from(input.byte())];
                sent.extend([packet.to_vec(), other.clone()]);
                let part = |to, bytes: &[u8]| Part {
                    to: NodeId(to),
                    ttl: 2,
                    len_bytes: bytes.len() as u16,
                    id: PacketId::of(bytes),
                };
                let parts = [part(1, &packet), part(2, &other)];
                let asks = packet.len().is_multiple_of(2);
                let xored = xor(&packet, &other);
                let mut bytes = Frame::Coded { counter: 1, parts, asks, xored: &xored }.to_bytes();
                let (at, by) = (usize::from(input.byte()), input.byte());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= by;
                }
                // In other kinds, a packet follows the head.
                if let Some(Frame::Plain { packet, .. }) = Frame::parse(&bytes) {
                    sent.insert(packet.to_vec());
                }
                heard += 1;
                let bytes = reported(&mut input, bytes);
                relay.handle_frame(now, node, by.is_multiple_of(2), &bytes);
            }
            4 => {
                let bytes = &input.vec(usize::from(node.0) * 9)[..];
                if let Some((reports, frame)) = split(bytes)
                    && let Some(frame) = Frame::parse(frame)
                {
                    let own = frame.to_bytes();
                    let whole = if reports.is_empty() { own } else { with_reports(&reports, &own) };
                    assert_eq!(whole, bytes);
                    if let Frame::Plain { packet, .. } = frame {
                        sent.insert(packet.to_vec());
                    }
                }
                heard += 1;
                let is_late = bytes.len().is_multiple_of(2);
                let take = if is_late { Relay::handle_held_up } else { Relay::handle_frame };
                take(&mut relay, now, node, true, bytes);
            }
            5 => relay.handle_outcome(
                now,
                corridor_relay::LinkDestination::Unicast(node),
                7,
                packet.is_empty(),
            ),
            6 => {
                // Arbitrary bytes: what is solved for must still be a packet that was sent.
                let bits = u32::from_be_bytes([input.byte(), input.byte(), 0, input.byte() | 1]);
                let covered = Frames { newest: input.byte().into(), bits };
                let combined = [&packet[..], &[0; 13]].concat();
                let counter = input.byte().into();
                let frame = Frame::Repair { counter, covered, combined: &combined };
                heard += 1;
                let bytes = reported(&mut input, frame.to_bytes());
                relay.handle_frame(now, node, input.byte().is_multiple_of(2), &bytes);
            }
            _ => {
                now += core::time::Duration::from_millis(packet.len() as u64);
                relay.handle_timeout(now);
                in_order.handle_timeout(now);
                let due = in_order.poll_timeout();
                assert!(due.is_none_or(|at| at > now), "what is due has gone on");
            }
        }
        while let Some(packet) = relay.poll_received() {
            received += 1;
            assert!(sent.contains(&packet.packet.to_vec()), "nobody has sent it");
            let segment = segment(now, &packet.packet);
            handed_over.came.push(segment.filter(|of| of.kind == SegmentKind::Brings));
            in_order.take(now, segment, handed_over.came.len() - 1);
        }
        core::iter::from_fn(|| in_order.poll()).for_each(|place| handed_over.leaves(place));
        let left = handed_over.left.len() as u64;
        assert_eq!(left + in_order.held() as u64, received, "each goes on once");
        assert!(in_order.held() <= HELD_MAX);
        if node.0 > 1 {
            while let Some(transmit) = relay.poll_transmit(now) {
                let (reports, frame) = split(&transmit.frame).expect("it reads its own");
                if frame.is_empty() {
                    assert!(!reports.is_empty(), "a frame has something in it");
                    continue;
                }
                match Frame::parse(frame).expect("it reads its own") {
                    Frame::Coded { parts: [one, two], .. } => {
                        assert_ne!(one.to, two.to, "a coded frame has two receivers");
                        assert_ne!(one.id, two.id, "and two packets");
                    }
                    Frame::Plain { .. } | Frame::Announcement { .. } | Frame::Repair { .. } => {}
                }
            }
        }
        assert!(relay.poll_timeout().is_none_or(|at| at > now), "it is asked for what is to come");
        assert!(relay.backlog() <= config.queue_packets + OWED_MAX);
        let stats = relay.stats();
        let undecoded = stats.undecodable + stats.decode_mismatches;
        let counted = received + stats.duplicates + stats.overheard + stats.malformed + undecoded;
        // The rest are announcements, and repairs, of which there may be any number.
        assert!(counted <= heard + stats.repaired, "{stats:?}");
        assert!(stats.decoded + stats.repaired <= received + stats.duplicates, "{stats:?}");
    }
}

/// Packets for the host, and their positions in the order of departure.
#[derive(Default)]
struct Order {
    came: Vec<Option<Segment<u8>>>,
    left: Vec<usize>,
}

impl Order {
    /// A packet is delivered: not after one with a higher number that was delivered since it
    /// arrived. Numbers that are far off wait for nothing, and do not affect others.
    fn leaves(&mut self, place: usize) {
        if let Some(segment) = self.came[place] {
            let since = self.left.iter().filter(|&&other| other > place);
            let others = since.filter_map(|&other| self.came[other]);
            for other in others.filter(|other| other.flow == segment.flow) {
                let ahead = other.begin.wrapping_sub(segment.begin) as i32;
                assert!(ahead <= 0 || ahead >= 1 << 20, "{segment:?} left behind {other:?}");
            }
        }
        self.left.push(place);
    }
}

/// The TCP segment that a packet's first byte and the time stand for.
fn segment(now: Time, packet: &[u8]) -> Option<Segment<u8>> {
    let &first = packet.first()?;
    let kind = match first % 16 {
        0 => SegmentKind::Begins,
        1 => SegmentKind::Breaks,
        _ => SegmentKind::Brings,
    };
    // Segments of a connection follow each other, overlap, or are far apart.
    let begin = if first > 250 { u32::from(first) << 24 } else { u32::from(first) * 32 };
    let end = begin.wrapping_add(packet.len() as u32);
    let stamp = (first % 5 > 0).then(|| (now.as_nanos() / 1_000_000) as u32 ^ u32::from(first % 7));
    (first % 11 > 0).then_some(Segment { flow: first % 3, kind, begin, end, stamp })
}

/// The frame, sometimes preceded by a report about the relay's frames.
fn reported(input: &mut Input<'_>, frame: Vec<u8>) -> Vec<u8> {
    if !input.byte().is_multiple_of(3) {
        return frame;
    }
    let newest = u16::from(input.byte());
    let came = u32::from_be_bytes([input.byte(), input.byte(), input.byte(), input.byte()]);
    with_reports(&[Report { node: NodeId(u16::from(input.byte() % 5)), newest, came }], &frame)
}
