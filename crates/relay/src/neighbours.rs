//! Who hears whom, how well, and who can decode: measured here, or announced by neighbours.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::Time;

use crate::config::SwitchOff;
use crate::wire::{ENTRIES_MAX, NeighbourReport, NodeId};

/// Maximum number of neighbours tracked; frames of others are accepted all the same.
pub const NEIGHBOURS_MAX: usize = ENTRIES_MAX;
/// A neighbour's announcements stay valid for this many intervals.
const INTERVALS_VALID: u32 = 5;
/// Weight of one frame in a measurement.
const STEP: f64 = 1.0 / 32.0;
/// Minimum number of frames before a measurement is announced.
const FRAMES_MIN: u32 = 8;
/// Frames that may be missing or late before the neighbour is considered restarted.
const MISSED_MAX: u32 = 1000;
/// Minimum number of coded frames before failures count.
const CODED_MIN: f64 = 8.0;
/// Weight of the past when an announcement's counts are added.
const PAST: f64 = 0.8;
/// How long coded frames to a receiver are suspended: the first time, and at most.
const OFF_MIN: Duration = Duration::from_secs(5);
const OFF_MAX: Duration = Duration::from_secs(60);

/// Maximum fraction of frames to a neighbour that the MAC may give up before they are retransmitted
/// here, and the weight of one frame in it: a single one is not yet too much.
pub const GIVEN_UP_MAX: f64 = 0.01;
const GIVEN_UP_STEP: f64 = 1.0 / 256.0;

/// Which of the first `counted` of `all` are among `some` of them, if these are spread evenly.
fn spread(some: u64, all: u64, counted: u64) -> impl Iterator<Item = bool> {
    let among = move |first: u64| u128::from(some) * u128::from(first) / u128::from(all.max(1));
    (0..counted).map(move |place| among(place) != among(place + 1))
}

/// A fraction of frames, as an exponentially weighted mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    mean: f64,
    frames: u32,
}

impl Share {
    pub fn count(&mut self, came: bool) {
        self.count_by(came, STEP);
    }

    fn count_by(&mut self, came: bool, step: f64) {
        self.frames = self.frames.saturating_add(1);
        // The first ones are weighted as in a plain mean.
        let step = step.max(1.0 / f64::from(self.frames));
        self.mean += step * (f64::from(u8::from(came)) - self.mean);
    }

    pub fn known(&self) -> Option<f64> {
        (self.frames >= FRAMES_MIN).then_some(self.mean)
    }
}

/// State of a neighbour.
#[derive(Debug, Default)]
struct Neighbour {
    /// Counter of its latest frame.
    newest: Option<u32>,
    /// Arrival time of its last frame.
    heard_at: Option<Time>,
    /// Fraction of its frames to others that are received here.
    heard: Share,
    /// Coded frames for this node received from it, and how many could not be decoded, since the
    /// last announcement.
    coded: u16,
    failed: u16,
    /// Whom it hears, as announced: fractions.
    hears: BTreeMap<NodeId, f64>,
    announced_at: Option<Time>,
    /// Fraction of the MAC's attempts to it that succeeded.
    delivered: Share,
    /// Fraction of frames to it that the MAC gave up.
    given_up: Share,
    /// Coded frames it received from this node, by its own announcements, and failures, with fading
    /// weights.
    coded_there: f64,
    failed_there: f64,
    off_until: Option<Time>,
    off_for: Duration,
}

impl Neighbour {
    /// Whether it was heard recently: each announces once per interval.
    fn is_present(&self, now: Time, valid_for: Duration) -> bool {
        self.heard_at.is_some_and(|at| now.since(at) <= valid_for)
    }
}

/// A neighbour, for monitoring. Fractions are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighbourView {
    /// Which.
    pub node: NodeId,
    /// Fraction of its frames to others that are received here; `None`: too few are known.
    pub overheard: Option<f64>,
    /// Whom it hears, and which fraction of their frames to others, by its last announcement; empty
    /// if that is too old.
    pub hears: Vec<(NodeId, f64)>,
    /// Whether it may be the receiver of a coded frame without MAC retries: it overhears enough of
    /// this node's frames to others, and can decode what it gets.
    pub takes_coded: bool,
}

/// State of all neighbours.
#[derive(Debug)]
pub struct Neighbours {
    valid_for: Duration,
    /// Whether no MAC acknowledges frames to them.
    is_unacknowledged: bool,
    list: BTreeMap<NodeId, Neighbour>,
}

impl Neighbours {
    pub fn new(announce_every: Duration) -> Self {
        let valid_for = announce_every * INTERVALS_VALID;
        Neighbours { valid_for, is_unacknowledged: false, list: BTreeMap::new() }
    }

    /// Declares that no MAC acknowledges or retransmits frames to them.
    pub fn set_unacknowledged(&mut self) {
        self.is_unacknowledged = true;
    }

    /// The neighbour, tracked from now on if there is room; `None` if there is none. In a full
    /// table it replaces the neighbour silent longest, if that one is gone.
    fn of(&mut self, now: Time, node: NodeId) -> Option<&mut Neighbour> {
        if self.list.len() >= NEIGHBOURS_MAX && !self.list.contains_key(&node) {
            let longest = self.list.iter().min_by_key(|(_, neighbour)| neighbour.heard_at);
            let gone = longest.filter(|(_, neighbour)| !neighbour.is_present(now, self.valid_for));
            let gone = *gone?.0;
            self.list.remove(&gone);
        }
        Some(self.list.entry(node).or_default())
    }

    /// A neighbour has restarted, and must be measured again.
    pub fn forget(&mut self, node: NodeId) {
        self.list.remove(&node);
    }

    /// Whether a frame has been overtaken by a later one of its sender.
    pub fn is_overtaken(&self, node: NodeId, counter: u32) -> bool {
        let newest = self.list.get(&node).and_then(|neighbour| neighbour.newest);
        let behind = newest.map_or(0, |newest| newest.wrapping_sub(counter));
        (1..=MISSED_MAX).contains(&behind)
    }

    /// Counts a frame received from a neighbour; `addressed`: to this node alone, so that the MAC
    /// would have repeated it. Returns whether the neighbour is tracked.
    pub fn hear(&mut self, now: Time, node: NodeId, counter: u32, addressed: bool) -> bool {
        let Some(neighbour) = self.of(now, node) else { return false };
        neighbour.heard_at = Some(now);
        if let Some(newest) = neighbour.newest {
            if newest.wrapping_sub(counter) <= MISSED_MAX {
                // Old, or a duplicate: nothing is learned.
                return true;
            }
            let missed = counter.wrapping_sub(newest) - 1;
            if missed <= MISSED_MAX {
                (0..missed).for_each(|_| neighbour.heard.count(false));
            } else {
                neighbour.heard = Share::default();
            }
        }
        neighbour.newest = Some(counter);
        if !addressed {
            neighbour.heard.count(true);
        }
        true
    }

    /// Counts a coded frame for this node from a neighbour, decoded or not.
    pub fn count_coded(&mut self, from: NodeId, decoded: bool) {
        let Some(neighbour) = self.list.get_mut(&from) else { return };
        if neighbour.coded < u16::MAX {
            neighbour.coded += 1;
            neighbour.failed += u16::from(!decoded);
        }
    }

    /// Counts the MAC's attempts for a finished frame to a neighbour.
    pub fn count_attempts(&mut self, now: Time, to: NodeId, attempts: u32, delivered: bool) {
        let Some(neighbour) = self.of(now, to) else { return };
        let failed = attempts.saturating_sub(u32::from(delivered)).min(MISSED_MAX);
        (0..failed).for_each(|_| neighbour.delivered.count(false));
        if delivered {
            neighbour.delivered.count(true);
        }
        neighbour.given_up.count_by(!delivered, GIVEN_UP_STEP);
    }

    /// Counts frames to a neighbour of which the MAC gave up some. Their order is unknown: they are
    /// spread evenly.
    pub fn count_given_up(&mut self, now: Time, to: NodeId, given_up: u64, frames: u64) {
        let Some(neighbour) = self.of(now, to) else { return };
        let (given_up, counted) = (given_up.min(frames), frames.min(u64::from(MISSED_MAX)));
        spread(given_up, frames, counted)
            .for_each(|is_one| neighbour.given_up.count_by(is_one, GIVEN_UP_STEP));
    }

    /// Whether the MAC gives up so many frames to a neighbour that they are retransmitted here.
    pub fn is_lossy(&self, node: NodeId) -> bool {
        if self.is_unacknowledged {
            return true;
        }
        let given_up = self.list.get(&node).and_then(|neighbour| neighbour.given_up.known());
        given_up.is_some_and(|share| share > GIVEN_UP_MAX)
    }

    /// Counts the MAC's failed and successful transmissions to a neighbour. Their order is unknown:
    /// both are spread evenly.
    pub fn count_transmissions(&mut self, now: Time, to: NodeId, vain: u64, delivered: u64) {
        let Some(neighbour) = self.of(now, to) else { return };
        let all = vain.saturating_add(delivered);
        // More of them than the mean remembers add no information.
        let counted = all.min(u64::from(MISSED_MAX));
        spread(vain, all, counted).for_each(|is_vain| neighbour.delivered.count(!is_vain));
    }

    /// The entries of this node's next announcement; resets the counts. Neighbours that have gone
    /// are not listed.
    pub fn entries(&mut self, now: Time) -> Vec<NeighbourReport> {
        let valid_for = self.valid_for;
        let entry = |(&node, neighbour): (&NodeId, &mut Neighbour)| {
            let heard = neighbour.heard.known().filter(|_| neighbour.is_present(now, valid_for));
            let heard = (255.0 * heard.unwrap_or(0.0)) as u8;
            let (coded, failed) = (neighbour.coded, neighbour.failed);
            (neighbour.coded, neighbour.failed) = (0, 0);
            NeighbourReport { node, heard, coded, failed }
        };
        self.list.iter_mut().map(entry).collect()
    }

    /// Processes a neighbour's announcement, as read by `own`. Returns whether it suspends coded
    /// frames to that neighbour.
    pub fn take(
        &mut self,
        now: Time,
        own: NodeId,
        from: NodeId,
        entries: &[NeighbourReport],
        switch_off: Option<SwitchOff>,
    ) -> bool {
        let Some(neighbour) = self.of(now, from) else { return false };
        neighbour.announced_at = Some(now);
        let share = |entry: &NeighbourReport| (entry.node, f64::from(entry.heard) / 255.0);
        neighbour.hears = entries.iter().map(share).collect();
        let Some(entry) = entries.iter().find(|entry| entry.node == own) else { return false };
        let Some(switch_off) = switch_off else { return false };
        if neighbour.off_until.is_some_and(|until| until > now) {
            // Frames already on their way do not count against it when it is tried again.
            return false;
        }
        neighbour.coded_there = PAST * neighbour.coded_there + f64::from(entry.coded);
        neighbour.failed_there = PAST * neighbour.failed_there + f64::from(entry.failed);
        let fails = neighbour.coded_there >= CODED_MIN
            && neighbour.failed_there > switch_off.failed_ratio_max * neighbour.coded_there;
        if fails {
            // It is tried again after a while, and judged by the results then.
            neighbour.off_for = (2 * neighbour.off_for).clamp(OFF_MIN, OFF_MAX);
            neighbour.off_until = Some(now + neighbour.off_for);
            (neighbour.coded_there, neighbour.failed_there) = (0.0, 0.0);
        } else if neighbour.coded_there >= CODED_MIN {
            neighbour.off_for = Duration::ZERO;
        }
        fails
    }

    /// Fraction of the frames of `whom` that `node` hears, by its own announcement; `None` without
    /// a recent one, or if it does not know.
    pub fn hears(&self, now: Time, node: NodeId, whom: NodeId) -> Option<f64> {
        let neighbour = self.list.get(&node)?;
        let announced = neighbour.announced_at?;
        let share = *neighbour.hears.get(&whom)?;
        (now.since(announced) <= self.valid_for).then_some(share)
    }

    /// How well `own` reaches a neighbour: the fraction of frames that it overhears, or of the
    /// MAC's attempts that it acknowledges; 1 while unknown.
    pub fn reached(&self, now: Time, own: NodeId, node: NodeId) -> f64 {
        let attempts = || self.list.get(&node)?.delivered.known();
        self.hears(now, node, own).filter(|&share| share > 0.0).or_else(attempts).unwrap_or(1.0)
    }

    /// All of them, as `own` sees them.
    pub fn views(
        &self,
        now: Time,
        own: NodeId,
        switch_off: Option<SwitchOff>,
    ) -> Vec<NeighbourView> {
        let view = |(&node, neighbour): (&NodeId, &Neighbour)| {
            let is_valid = neighbour.announced_at.is_some_and(|at| now.since(at) <= self.valid_for);
            let hears = neighbour.hears.iter().filter(|_| is_valid);
            let hears_enough = switch_off.is_none_or(|switch_off| {
                let heard = self.hears(now, node, own);
                heard.is_some_and(|share| share >= switch_off.heard_ratio_min)
            });
            NeighbourView {
                node,
                overheard: neighbour
                    .heard
                    .known()
                    .filter(|_| neighbour.is_present(now, self.valid_for)),
                hears: hears.map(|(&node, &share)| (node, share)).collect(),
                takes_coded: hears_enough && self.decodes(now, node),
            }
        };
        self.list.iter().map(view).collect()
    }

    /// Whether a neighbour may get coded frames, judging by its decoding of previous ones.
    pub fn decodes(&self, now: Time, node: NodeId) -> bool {
        let off_until = self.list.get(&node).and_then(|neighbour| neighbour.off_until);
        off_until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: SwitchOff = SwitchOff { heard_ratio_min: 0.8, failed_ratio_max: 0.1 };
    const SECOND: Duration = Duration::from_secs(1);

    fn announced(neighbours: &mut Neighbours) -> u8 {
        neighbours.entries(Time::ZERO)[0].heard
    }

    #[test]
    fn transmissions_told_together_count_as_one_by_one() {
        let (own, node) = (NodeId(1), NodeId(2));
        let reached = |vain, delivered| {
            let mut neighbours = Neighbours::new(SECOND);
            neighbours.count_transmissions(Time::ZERO, node, vain, delivered);
            neighbours.reached(Time::ZERO, own, node)
        };
        assert!((reached(30, 70) - 0.7).abs() < 0.1, "{}", reached(30, 70));
        // More than are counted: their fraction stays.
        assert!((reached(900_000, 100_000) - 0.1).abs() < 0.1);
        assert_eq!((reached(0, 50), reached(50, 0)), (1.0, 0.0));
        assert_eq!(reached(0, 0), 1.0, "nothing is known");
        assert_eq!(reached(u64::MAX, 0), 0.0);
    }

    #[test]
    fn what_is_heard_is_what_was_for_others() {
        let mut neighbours = Neighbours::new(SECOND);
        // Every fourth frame is for this node, and always arrives; of the others every third is
        // lost.
        for counter in 0..3000 {
            let addressed = counter % 4 == 0;
            if addressed || counter % 3 != 0 {
                neighbours.hear(Time::ZERO, NodeId(7), counter, addressed);
            }
        }
        let heard = f64::from(announced(&mut neighbours)) / 255.0;
        assert!((0.6..0.75).contains(&heard), "{heard}");
    }

    #[test]
    fn a_neighbour_that_begins_anew_or_repeats_itself_has_lost_nothing() {
        let mut neighbours = Neighbours::new(SECOND);
        for counter in (10..30).chain(5_000_000..5_000_020) {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
            neighbours.hear(Time::ZERO, NodeId(7), counter - 5, false);
        }
        assert_eq!(announced(&mut neighbours), 255);
    }

    #[test]
    fn a_neighbour_that_restarts_is_measured_anew() {
        let mut neighbours = Neighbours::new(SECOND);
        for counter in 90_000..90_100 {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
        }
        // Its counter restarts at 1, and half of its frames are lost.
        for counter in (1..400).step_by(2) {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
        }
        let heard = f64::from(announced(&mut neighbours)) / 255.0;
        assert!((0.4..0.6).contains(&heard), "{heard}");
    }

    /// Its counter alone does not reveal a restart while it is below the number of frames that may
    /// be missing.
    #[test]
    fn a_neighbour_that_is_known_to_have_restarted_early_is_measured_anew() {
        let mut neighbours = Neighbours::new(SECOND);
        (1..400).for_each(|counter| {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
        });
        neighbours.forget(NodeId(7));
        for counter in (1..400).step_by(2) {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
        }
        let heard = f64::from(announced(&mut neighbours)) / 255.0;
        assert!((0.4..0.6).contains(&heard), "{heard}");
    }

    #[test]
    fn a_neighbour_that_has_gone_is_not_heard_and_leaves_its_place() {
        let mut neighbours = Neighbours::new(SECOND);
        for counter in 0..100 {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
        }
        assert_eq!(neighbours.entries(Time::from_millis(5000))[0].heard, 255);
        assert_eq!(neighbours.entries(Time::from_millis(5001))[0].heard, 0);
        let others = 100..100 + NEIGHBOURS_MAX as u16;
        let known =
            others.filter(|&id| neighbours.hear(Time::from_millis(6000), NodeId(id), 1, false));
        assert_eq!(known.count(), NEIGHBOURS_MAX);
        assert!(
            neighbours.entries(Time::from_millis(6000)).iter().all(|entry| entry.node.0 >= 100)
        );
    }

    #[test]
    fn failures_while_switched_off_do_not_count_afterwards() {
        let (mut neighbours, own, other) = (Neighbours::new(SECOND), NodeId(1), NodeId(2));
        let report = |coded, failed| [NeighbourReport { node: own, heard: 255, coded, failed }];
        assert!(neighbours.take(Time::ZERO, own, other, &report(10, 5), Some(OFF)));
        // Frames already queued are still sent, and fail.
        assert!(!neighbours.take(Time::from_millis(1000), own, other, &report(50, 50), Some(OFF)));
        for ms in [6000, 7000, 8000] {
            assert!(!neighbours.take(Time::from_millis(ms), own, other, &report(20, 0), Some(OFF)));
            assert!(neighbours.decodes(Time::from_millis(ms), other), "{ms}");
        }
    }

    #[test]
    fn there_are_no_more_neighbours_than_the_bound() {
        let mut neighbours = Neighbours::new(SECOND);
        let known = (0..1000).filter(|&id| neighbours.hear(Time::ZERO, NodeId(id), 1, false));
        assert_eq!(known.count(), NEIGHBOURS_MAX);
        assert!(neighbours.hear(Time::ZERO, NodeId(3), 2, false), "it is known");
        assert_eq!(neighbours.entries(Time::ZERO).len(), NEIGHBOURS_MAX);
    }

    #[test]
    fn who_fails_to_decode_is_left_alone_for_longer_and_longer() {
        let (mut neighbours, own, other) = (Neighbours::new(SECOND), NodeId(1), NodeId(2));
        let failing = [NeighbourReport { node: own, heard: 255, coded: 10, failed: 2 }];
        let mut now = Time::ZERO;
        for seconds in [5, 10, 20, 40, 60, 60] {
            assert!(neighbours.decodes(now, other));
            assert!(neighbours.take(now, own, other, &failing, Some(OFF)));
            let end = now + Duration::from_secs(seconds);
            assert!(!neighbours.take(now, own, other, &failing, Some(OFF)), "it is off already");
            assert!(!neighbours.decodes(now, other), "{seconds}");
            assert!(neighbours.decodes(end, other), "{seconds}");
            now = end;
        }
        let fine = [NeighbourReport { failed: 0, coded: 100, ..failing[0] }];
        assert!(!neighbours.take(now, own, other, &fine, Some(OFF)));
        assert!(neighbours.take(
            now,
            own,
            other,
            &[NeighbourReport { failed: 60, coded: 60, ..failing[0] }],
            Some(OFF)
        ));
        assert!(neighbours.decodes(now + OFF_MIN, other), "from the beginning");
        let mut trusting = Neighbours::new(SECOND);
        assert!(!trusting.take(now, own, other, &failing, None));
        assert!(trusting.decodes(now, other));
    }

    #[test]
    fn announcements_age() {
        let (mut neighbours, own, other) = (Neighbours::new(SECOND), NodeId(1), NodeId(2));
        let entries = [NeighbourReport { node: NodeId(3), heard: 51, coded: 0, failed: 0 }];
        neighbours.take(Time::ZERO, own, other, &entries, None);
        assert_eq!(neighbours.hears(Time::from_millis(5000), other, NodeId(3)), Some(0.2));
        assert_eq!(neighbours.hears(Time::from_millis(5001), other, NodeId(3)), None);
        assert_eq!(neighbours.hears(Time::ZERO, other, NodeId(4)), None);
    }
}
