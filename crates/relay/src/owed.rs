//! Packets whose delivery the MAC does not guarantee, until their receivers have reported them:
//! what they lack is retransmitted. Of coded frames, this is the packet for the receiver without
//! MAC retries; where the MAC gives up many frames, it is every packet.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::Time;

use crate::neighbours::{GIVEN_UP_MAX, NEIGHBOURS_MAX, Share};
use crate::queue::Waiting;
use crate::wire::{self, NodeId, REPAIRED_BYTES_MAX, Report};

/// Maximum number of packets tracked: beyond it, the oldest count as received.
pub const OWED_MAX: usize = 256;
/// Number of frames a report covers.
const TOLD: i16 = wire::TOLD as i16;
/// Maximum number of unreported repairs to a neighbour.
const REPAIRS_MAX: usize = wire::TOLD;
/// Maximum probability that a receiver lacks packets after repairs: as much as the MAC may give up
/// before packets are retransmitted here.
const LACKS_MAX: f64 = GIVEN_UP_MAX;
/// Multiple of the packets' wait for the channel by which a repair waits beyond the reporting
/// delay, since it delays all others in reach. From 1 to 4, results depend little on it (record
/// 0020).
const WAITS: u32 = 4;
/// Above this loss ratio no repairs are sent: reports reveal the losses.
const LOST_MAX: f64 = 0.5;
/// Bounds of the time after which an unreported packet is retransmitted.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

#[derive(Debug)]
struct Packet {
    /// Counter of the frame it was sent in.
    counter: u32,
    waiting: Waiting,
    sent_at: Time,
    /// Whether repairs may cover it.
    is_repairable: bool,
    /// Whether it was reported missing while a repair that covers it is in flight.
    is_lacking: bool,
}

/// A duration estimate: mean and mean deviation, seconds (RFC 6298).
#[derive(Debug, Default)]
pub struct Takes(Option<(f64, f64)>);

impl Takes {
    /// Adds a sample.
    pub fn note(&mut self, took: Duration) {
        let took_s = took.as_secs_f64();
        let (mean, deviation) = self.0.unwrap_or((took_s, took_s / 2.0));
        let deviation = deviation + ((took_s - mean).abs() - deviation) / 4.0;
        self.0 = Some((mean + (took_s - mean) / 8.0, deviation));
    }

    /// How long to wait for it: the maximum while nothing is known.
    pub fn patience(&self, least: Duration, most: Duration) -> Duration {
        let (mean, deviation) = self.0.unwrap_or((most.as_secs_f64(), 0.0));
        Duration::from_secs_f64(mean + 4.0 * deviation).clamp(least, most)
    }
}

/// Unreported packets.
#[derive(Debug, Default)]
pub struct Owed {
    packets: VecDeque<Packet>,
    /// Delay of reports.
    takes: Takes,
    /// State of reporting neighbours.
    reporters: BTreeMap<NodeId, Reporter>,
}

/// State of a reporting neighbour.
#[derive(Debug, Default)]
struct Reporter {
    /// Loss ratio of frames to it, among those with a known fate.
    lost: Share,
    /// Delay of its reports.
    takes: Takes,
    /// Repairs it has not reported yet, oldest first.
    repairs: VecDeque<Repair>,
    /// When it was last sent something useful.
    sent_at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Repair {
    counter: u32,
    /// Counters of the oldest and the newest frame it covers.
    covers: (u32, u32),
}

/// A repair that is due: its receiver, and how far each packet's frame is behind the newest one.
pub struct Due<'a> {
    pub to: NodeId,
    pub newest: u32,
    pub packets: Vec<(usize, &'a Waiting)>,
}

impl Owed {
    /// Records a packet sent to a receiver that is to report it, in a frame with this counter;
    /// repairs only cover `young` packets.
    pub fn push(&mut self, now: Time, counter: u32, waiting: Waiting, young: bool) {
        if self.packets.len() == OWED_MAX {
            self.packets.pop_front();
        }
        if let Some(reporter) = self.reporter(waiting.next) {
            reporter.sent_at = now;
        }
        let is_repairable = young && waiting.packet.len() <= REPAIRED_BYTES_MAX;
        let packet = Packet { counter, waiting, sent_at: now, is_repairable, is_lacking: false };
        self.packets.push_back(packet);
    }

    fn reporter(&mut self, node: NodeId) -> Option<&mut Reporter> {
        if self.reporters.len() >= NEIGHBOURS_MAX && !self.reporters.contains_key(&node) {
            return None;
        }
        Some(self.reporters.entry(node).or_default())
    }

    /// Processes a neighbour's report on this node's frames: returns the packets it lacks that no
    /// repair in flight may supply.
    pub fn heed(&mut self, now: Time, from: NodeId, report: &Report) -> Vec<Waiting> {
        let behind = |counter: u32| report.newest.wrapping_sub(counter as u16) as i16;
        let has_come = |counter: u32| {
            let behind = behind(counter);
            behind < TOLD && report.came >> behind & 1 == 1
        };
        let mut spare = Reporter::default();
        let reporter = self.reporters.get_mut(&from).unwrap_or(&mut spare);
        let mut told = Vec::new();
        reporter.repairs.retain(|repair| {
            if behind(repair.counter) < 0 {
                return true;
            }
            if behind(repair.counter) < TOLD {
                reporter.lost.count(!has_come(repair.counter));
            }
            told.push(*repair);
            false
        });
        let (mut lacking, mut kept) = (Vec::new(), VecDeque::with_capacity(self.packets.len()));
        for mut packet in self.packets.drain(..) {
            if packet.waiting.next != from || behind(packet.counter) < 0 {
                kept.push_back(packet);
                continue;
            }
            let has_come = has_come(packet.counter);
            let covers = |repair: &Repair| repair.covers(packet.counter);
            if !packet.is_lacking {
                let took = now.since(packet.sent_at);
                self.takes.note(took);
                reporter.takes.note(took);
                // The fate of a packet that a repair may have delivered says nothing about its own
                // frame.
                if behind(packet.counter) < TOLD && !told.iter().any(covers) {
                    reporter.lost.count(!has_come);
                }
            }
            if has_come {
                continue;
            }
            if reporter.repairs.iter().any(covers) {
                packet.is_lacking = true;
                kept.push_back(packet);
            } else {
                lacking.push(packet.waiting);
            }
        }
        self.packets = kept;
        lacking
    }

    /// Takes a packet that has waited too long for a report.
    pub fn overdue(&mut self, now: Time) -> Option<Waiting> {
        let due = self.due()? <= now;
        if due { self.packets.pop_front().map(|packet| packet.waiting) } else { None }
    }

    /// When the next packet will have waited too long.
    pub fn due(&self) -> Option<Time> {
        self.packets.front().map(|packet| packet.sent_at + self.patience())
    }

    /// When a repair is due next, if there is nothing else to send; `wait` is the packets' recent
    /// wait for the channel.
    pub fn repair_due(&self, wait: Duration) -> Option<Time> {
        let due =
            |(&node, reporter): (&NodeId, &Reporter)| self.repair_due_to(node, reporter, wait);
        self.reporters.iter().filter_map(due).min()
    }

    /// When one is due for this neighbour.
    fn repair_due_to(&self, node: NodeId, reporter: &Reporter, wait: Duration) -> Option<Time> {
        let lost = reporter.lost.known()?.min(LOST_MAX);
        let (newest, of_these) = self.repairable(node)?;
        let (mut count, mut lacking) = (0, 0);
        let mut oldest = newest;
        for packet in of_these {
            count += 1;
            lacking += usize::from(packet.is_lacking);
            oldest = packet.counter;
        }
        let covers = |repair: &&Repair| repair.covers_any(oldest, newest);
        let repairs = reporter.repairs.iter().filter(covers).count();
        if repairs >= REPAIRS_MAX || !lacks(count, lacking, repairs, lost) {
            return None;
        }
        Some(reporter.sent_at + reporter.pause(wait))
    }

    /// Counter of the newest packet for a neighbour that a repair may cover, and all such packets,
    /// newest first.
    fn repairable(&self, node: NodeId) -> Option<(u32, impl Iterator<Item = &Packet>)> {
        let fits = move |packet: &&Packet| packet.waiting.next == node && packet.is_repairable;
        let newest = self.packets.iter().rev().find(fits)?.counter;
        let told = move |packet: &&Packet| newest.wrapping_sub(packet.counter) < TOLD as u32;
        Some((newest, self.packets.iter().rev().filter(fits).take_while(told)))
    }

    /// The repair that is due, in the frame with this counter.
    pub fn repair(&mut self, now: Time, wait: Duration, counter: u32) -> Option<Due<'_>> {
        let due = |(&node, reporter): (&NodeId, &Reporter)| {
            Some((self.repair_due_to(node, reporter, wait)?, node))
        };
        let (at, to) = self.reporters.iter().filter_map(due).min()?;
        if at > now {
            return None;
        }
        let (newest, packets) = self.repairable(to)?;
        let oldest = packets.last()?.counter;
        let reporter = self.reporters.get_mut(&to)?;
        reporter.sent_at = now;
        if reporter.repairs.len() == REPAIRS_MAX {
            reporter.repairs.pop_front();
        }
        reporter.repairs.push_back(Repair { counter, covers: (oldest, newest) });
        let behind = |packet: &Packet| newest.wrapping_sub(packet.counter) as usize;
        let (_, packets) = self.repairable(to)?;
        let packets = packets.map(|packet| (behind(packet), &packet.waiting)).collect();
        Some(Due { to, newest, packets })
    }

    /// Forgets a neighbour's state.
    pub fn forget_node(&mut self, node: NodeId) {
        self.packets.retain(|packet| packet.waiting.next != node);
        self.reporters.remove(&node);
    }

    fn patience(&self) -> Duration {
        let (least, most) = PATIENCE;
        self.takes.patience(least, most)
    }
}

impl Reporter {
    /// How long after the last useful frame to it a repair is due: until its report is expected,
    /// and longer if packets wait for the channel.
    fn pause(&self, wait: Duration) -> Duration {
        let (least, most) = PATIENCE;
        let (mean_s, _) = self.takes.0.unwrap_or((least.as_secs_f64(), 0.0));
        (Duration::from_secs_f64(mean_s) + WAITS * wait).min(most)
    }
}

impl Repair {
    fn covers(&self, counter: u32) -> bool {
        self.covers_any(counter, counter)
    }

    fn covers_any(&self, oldest: u32, newest: u32) -> bool {
        let is_before = |one: u32, other: u32| (one.wrapping_sub(other) as i32) < 0;
        !is_before(self.covers.1, oldest) && !is_before(newest, self.covers.0)
    }
}

/// Whether a receiver probably still lacks something, given the number of packets, of those it
/// certainly lacks, of the repairs in flight that cover them, and the loss ratio: it has everything
/// if no more are lost than there are repairs.
fn lacks(packets: usize, lacking: usize, repairs: usize, lost: f64) -> bool {
    let drawn = packets - lacking + repairs;
    let (mut chance, mut has_all) = ((1.0 - lost).powi(drawn as i32), 0.0);
    for losses in 0..=repairs.saturating_sub(lacking) {
        if losses > 0 {
            let left = (drawn + 1).saturating_sub(losses) as f64;
            chance *= left / losses as f64 * lost / (1.0 - lost);
        }
        has_all += chance;
    }
    (repairs < lacking) || 1.0 - has_all > LACKS_MAX
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
            owed.push(Time::ZERO, counter, waiting(to, counter as u8), true);
        }
        // A frame after the reported ones is not covered: counters wrap.
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
        owed.push(ms(0), 1, waiting(3, 1), true);
        assert_eq!(owed.due(), Some(ms(500)));
        assert_eq!(owed.overdue(ms(499)), None);
        assert_eq!(owed.overdue(ms(500)).map(|waiting| waiting.id.0), Some(1));
        // Reports take 10 ms: an unreported packet has not arrived after the minimum time.
        for counter in 2..40 {
            owed.push(ms(1000), counter, waiting(3, counter as u8), true);
            let report = Report { node: NodeId(2), newest: counter as u16, came: 1 };
            assert_eq!(owed.heed(ms(1010), NodeId(3), &report), []);
        }
        owed.push(ms(2000), 40, waiting(3, 40), true);
        assert_eq!(owed.due(), Some(ms(2050)));
    }

    #[test]
    fn no_more_is_remembered_than_the_bound() {
        let mut owed = Owed::default();
        (0..1000).for_each(|counter| owed.push(Time::ZERO, counter, waiting(3, 0), true));
        assert_eq!(owed.packets.len(), OWED_MAX);
    }

    /// A neighbour known to lose a third of the frames, which reports within 10 ms.
    fn with_losses() -> Owed {
        let (mut owed, ms) = (Owed::default(), Time::from_millis);
        for counter in 0..300_u32 {
            owed.push(ms(0), counter, waiting(3, 0), true);
            let came = u32::from(counter % 3 > 0);
            let report = Report { node: NodeId(2), newest: counter as u16, came };
            owed.heed(ms(10), NodeId(3), &report);
        }
        owed
    }

    fn covered(owed: &mut Owed, now: Time, counter: u32) -> Option<Vec<usize>> {
        let due = owed.repair(now, Duration::ZERO, counter)?;
        Some(due.packets.iter().map(|&(behind, _)| behind).collect())
    }

    #[test]
    fn what_a_repair_may_bring_is_not_sent_again_before_it_is_reported() {
        let (mut owed, ms) = (with_losses(), Time::from_millis);
        for counter in [400, 402] {
            owed.push(ms(100), counter, waiting(3, counter as u8), true);
        }
        let due = owed.repair_due(Duration::ZERO).expect("a third is lost");
        assert!((ms(105)..ms(120)).contains(&due), "{due}");
        assert_eq!(covered(&mut owed, ms(101), 403), None);
        assert_eq!(covered(&mut owed, due, 403), Some(vec![0, 2]));
        // A report already on its way: 402 is lost, and the report does not cover the repair.
        let report = |newest, came| Report { node: NodeId(2), newest, came };
        assert_eq!(numbers(owed.heed(due, NodeId(3), &report(402, 0b100))), [0; 0]);
        // The repair is lost as well.
        assert_eq!(numbers(owed.heed(due, NodeId(3), &report(403, 0b1000))), [402 & 255]);
        assert_eq!(owed.repair_due(Duration::ZERO), None, "nothing is left");
    }

    #[test]
    fn what_a_repair_has_brought_is_owed_no_more() {
        let (mut owed, ms) = (with_losses(), Time::from_millis);
        owed.push(ms(100), 400, waiting(3, 7), true);
        owed.push(ms(100), 402, waiting(4, 8), true);
        let due = owed.repair_due(Duration::ZERO).expect("a third is lost");
        assert_eq!(covered(&mut owed, due, 403), Some(vec![0]), "and nothing of another one");
        let report = Report { node: NodeId(2), newest: 403, came: 0b1001 };
        assert_eq!(owed.heed(due, NodeId(3), &report), []);
        assert_eq!(owed.packets.len(), 1);
    }

    #[test]
    fn nothing_is_repaired_that_is_old_or_of_which_losses_are_not_known() {
        let (mut owed, ms) = (with_losses(), Time::from_millis);
        owed.push(ms(100), 400, waiting(3, 7), false);
        owed.push(ms(100), 401, waiting(4, 8), true);
        assert_eq!(owed.repair_due(Duration::ZERO), None);
    }

    #[test]
    fn a_repair_waits_as_long_as_packets_do() {
        let (mut owed, ms) = (with_losses(), Time::from_millis);
        owed.push(ms(100), 400, waiting(3, 7), true);
        let [soon, later] = [0, 30].map(|wait| owed.repair_due(Duration::from_millis(wait)));
        assert_eq!(later, soon.map(|soon| soon + WAITS * Duration::from_millis(30)));
    }

    #[test]
    fn repairs_are_due_until_what_is_lacking_is_likely_to_be_there() {
        assert!(!lacks(1, 0, 0, 0.009) && lacks(1, 0, 0, 0.011));
        let needed = |packets, lacking, lost| {
            (0..REPAIRS_MAX).find(|&repairs| !lacks(packets, lacking, repairs, lost))
        };
        // One packet: until lost^(1 + repairs) is no more than a hundredth.
        assert_eq!(
            [0.009, 0.09, 0.2, 0.3, 0.5].map(|lost| needed(1, 0, lost)),
            [0, 1, 2, 3, 6].map(Some)
        );
        // Of seven frames more than four are lost 1 time in 214, of six more than three 1 in 59.
        assert_eq!(needed(3, 0, 0.2), Some(4));
        assert_eq!(needed(1, 1, 0.0), Some(1), "it is known");
        assert_eq!(needed(2, 1, 0.1), Some(3));
        assert!(needed(32, 0, 0.5).is_none(), "as many as there may be");
    }
}
