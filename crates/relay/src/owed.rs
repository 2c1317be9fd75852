//! Packets that the MAC does not bring to their receivers for certain, until these have reported
//! them: what they lack is sent again. Of coded frames it is the packet for the receiver without
//! retries; where the MAC gives up many frames, it is all that goes there.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use crate::queue::Waiting;
use crate::wire::{NodeId, Report};

/// Most packets that are remembered: of more, the oldest count as come.
pub const OWED_MAX: usize = 256;
/// Frames that a report tells of.
const TOLD: i16 = u32::BITS as i16;
/// Bounds of the time after which a packet that nobody has reported is sent again.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

#[derive(Debug)]
struct Packet {
    /// Of the frame that it was in.
    counter: u32,
    waiting: Waiting,
    sent_at: Time,
}

/// How long something takes: mean and mean deviation, seconds (RFC 6298).
#[derive(Debug, Default)]
pub struct Takes(Option<(f64, f64)>);

impl Takes {
    /// It took so long.
    pub fn note(&mut self, took: Duration) {
        let took_s = took.as_secs_f64();
        let (mean, deviation) = self.0.unwrap_or((took_s, took_s / 2.0));
        let deviation = deviation + ((took_s - mean).abs() - deviation) / 4.0;
        self.0 = Some((mean + (took_s - mean) / 8.0, deviation));
    }

    /// How long to wait for it: the most while nothing is known.
    pub fn patience(&self, least: Duration, most: Duration) -> Duration {
        let (mean, deviation) = self.0.unwrap_or((most.as_secs_f64(), 0.0));
        Duration::from_secs_f64(mean + 4.0 * deviation).clamp(least, most)
    }
}

/// Packets that have not been reported.
#[derive(Debug, Default)]
pub struct Owed {
    packets: VecDeque<Packet>,
    /// How long reports take.
    takes: Takes,
}

impl Owed {
    /// A packet has gone to a receiver that is to report it, in a frame with this counter.
    pub fn push(&mut self, now: Time, counter: u32, waiting: Waiting) {
        if self.packets.len() == OWED_MAX {
            self.packets.pop_front();
        }
        self.packets.push_back(Packet { counter, waiting, sent_at: now });
    }

    /// A neighbour reports what came of this node's frames: returns what it lacks.
    pub fn heed(&mut self, now: Time, from: NodeId, report: &Report) -> Vec<Waiting> {
        let mut lacking = Vec::new();
        let takes = &mut self.takes;
        let mut kept = VecDeque::with_capacity(self.packets.len());
        for packet in self.packets.drain(..) {
            let behind = report.newest.wrapping_sub(packet.counter as u16) as i16;
            if packet.waiting.next != from || behind < 0 {
                kept.push_back(packet);
                continue;
            }
            takes.note(now.since(packet.sent_at));
            if behind >= TOLD || report.came >> behind & 1 == 0 {
                lacking.push(packet.waiting);
            }
        }
        self.packets = kept;
        lacking
    }

    /// Takes what has waited too long for a report.
    pub fn overdue(&mut self, now: Time) -> Option<Waiting> {
        let due = self.due()? <= now;
        if due { self.packets.pop_front().map(|packet| packet.waiting) } else { None }
    }

    /// When the next one has.
    pub fn due(&self) -> Option<Time> {
        self.packets.front().map(|packet| packet.sent_at + self.patience())
    }

    /// Nothing is known any more of what a neighbour has.
    pub fn forget_node(&mut self, node: NodeId) {
        self.packets.retain(|packet| packet.waiting.next != node);
    }

    fn patience(&self) -> Duration {
        let (least, most) = PATIENCE;
        self.takes.patience(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PacketId;

    fn waiting(to: u16, number: u8) -> Waiting {
        Waiting {
            previous: Some(NodeId(1)),
            next: NodeId(to),
            ttl: 9,
            id: PacketId(number.into()),
            packet: [number].as_slice().into(),
            was_coded: false,
            since: Time::ZERO,
            goes_again: false,
        }
    }

    fn numbers(waiting: Vec<Waiting>) -> Vec<u64> {
        waiting.into_iter().map(|waiting| waiting.id.0).collect()
    }

    #[test]
    fn what_a_report_does_not_have_is_lacking_once() {
        let (mut owed, now) = (Owed::default(), Time::from_millis(5));
        for (counter, to) in [(65_534, 3), (65_535, 4), (65_536, 3), (65_537, 3)] {
            owed.push(Time::ZERO, counter, waiting(to, counter as u8));
        }
        // Of a frame that has not come yet nothing is said: counters wrap.
        let report = Report { node: NodeId(2), newest: 0, came: 0b011 };
        assert_eq!(numbers(owed.heed(now, NodeId(3), &report)), [254]);
        assert_eq!(numbers(owed.heed(now, NodeId(3), &report)), [0; 0]);
        let report = Report { node: NodeId(2), newest: 1, came: 0b01 };
        assert_eq!(numbers(owed.heed(now, NodeId(3), &report)), [0; 0]);
        assert_eq!(numbers(owed.heed(now, NodeId(4), &report)), [255]);
    }

    #[test]
    fn what_nobody_reports_is_sent_again_after_a_while() {
        let (mut owed, ms) = (Owed::default(), Time::from_millis);
        owed.push(ms(0), 1, waiting(3, 1));
        assert_eq!(owed.due(), Some(ms(500)));
        assert_eq!(owed.overdue(ms(499)), None);
        assert_eq!(owed.overdue(ms(500)).map(|waiting| waiting.id.0), Some(1));
        // Reports take 10 ms: what is not reported does not come after the least time.
        for counter in 2..40 {
            owed.push(ms(1000), counter, waiting(3, counter as u8));
            let report = Report { node: NodeId(2), newest: counter as u16, came: 1 };
            assert_eq!(owed.heed(ms(1010), NodeId(3), &report), []);
        }
        owed.push(ms(2000), 40, waiting(3, 40));
        assert_eq!(owed.due(), Some(ms(2050)));
    }

    #[test]
    fn no_more_is_remembered_than_the_bound() {
        let mut owed = Owed::default();
        (0..1000).for_each(|counter| owed.push(Time::ZERO, counter, waiting(3, 0)));
        assert_eq!(owed.packets.len(), OWED_MAX);
    }
}
