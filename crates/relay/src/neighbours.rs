//! Who hears whom, how well, and who can decode: measured here, or announced.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::Time;

use crate::config::SwitchOff;
use crate::wire::{ENTRIES_MAX, NeighbourReport, NodeId};

/// Most neighbours that are remembered; frames of others are taken all the same.
pub const NEIGHBOURS_MAX: usize = ENTRIES_MAX;
/// Announcements of a neighbour count for so many intervals.
const INTERVALS_VALID: u32 = 5;
/// Share by which one frame moves a measure.
const STEP: f64 = 1.0 / 32.0;
/// Frames before a measure is announced.
const FRAMES_MIN: u32 = 8;
/// Frames that may be missing, or come late, before the neighbour counts as begun anew.
const MISSED_MAX: u32 = 1000;
/// Coded frames before failures count.
const CODED_MIN: f64 = 8.0;
/// Share of the past that an announcement's counts leave.
const PAST: f64 = 0.8;
/// How long a receiver is sent no coded frames: the first time, and at most.
const OFF_MIN: Duration = Duration::from_secs(5);
const OFF_MAX: Duration = Duration::from_secs(60);

/// Share of the frames to a neighbour that the MAC may give up before they are sent again here, and
/// the share by which one frame moves it: a single one is not yet too much.
pub const GIVEN_UP_MAX: f64 = 0.01;
const GIVEN_UP_STEP: f64 = 1.0 / 256.0;

/// Which of the first `counted` of `all` are among `some` of them, if these are spread evenly.
fn spread(some: u64, all: u64, counted: u64) -> impl Iterator<Item = bool> {
    let among = move |first: u64| u128::from(some) * u128::from(first) / u128::from(all.max(1));
    (0..counted).map(move |place| among(place) != among(place + 1))
}

/// A share of frames, as an exponentially weighted mean.
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
        // The first ones weigh as in a plain mean.
        let step = step.max(1.0 / f64::from(self.frames));
        self.mean += step * (f64::from(u8::from(came)) - self.mean);
    }

    pub fn known(&self) -> Option<f64> {
        (self.frames >= FRAMES_MIN).then_some(self.mean)
    }
}

/// What is known of a neighbour.
#[derive(Debug, Default)]
struct Neighbour {
    /// Counter of its newest frame.
    newest: Option<u32>,
    /// When its last frame came.
    heard_at: Option<Time>,
    /// Share of its frames to others that come here.
    heard: Share,
    /// Coded frames for this node that came from it, and those of them that could not be decoded,
    /// since the last announcement.
    coded: u16,
    failed: u16,
    /// Whom it hears, as it has announced: shares.
    hears: BTreeMap<NodeId, f64>,
    announced_at: Option<Time>,
    /// Attempts by which the MAC has brought frames to it.
    delivered: Share,
    /// Frames to it that the MAC has given up.
    given_up: Share,
    /// Coded frames that it had of this node, by its own announcements, and failures, fading.
    coded_there: f64,
    failed_there: f64,
    off_until: Option<Time>,
    off_for: Duration,
}

impl Neighbour {
    /// Whether it was heard of late: each announces once an interval.
    fn is_present(&self, now: Time, valid_for: Duration) -> bool {
        self.heard_at.is_some_and(|at| now.since(at) <= valid_for)
    }
}

/// A neighbour, as those who watch see it. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighbourView {
    /// Which.
    pub node: NodeId,
    /// Share of its frames to others that come here; `None`: too few of them are known of.
    pub overheard: Option<f64>,
    /// Whom it hears, and what share of their frames to others, by its last announcement; nothing
    /// where that is too old.
    pub hears: Vec<(NodeId, f64)>,
    /// It may be the receiver of a coded frame that has no retries: it hears enough of this node's
    /// frames to others, and decodes what it gets.
    pub takes_coded: bool,
}

/// What is known of all neighbours.
#[derive(Debug)]
pub struct Neighbours {
    valid_for: Duration,
    /// No MAC acknowledges what goes to them.
    is_unacknowledged: bool,
    list: BTreeMap<NodeId, Neighbour>,
}

impl Neighbours {
    pub fn new(announce_every: Duration) -> Self {
        let valid_for = announce_every * INTERVALS_VALID;
        Neighbours { valid_for, is_unacknowledged: false, list: BTreeMap::new() }
    }

    /// No MAC acknowledges what goes to them, or sends it again.
    pub fn set_unacknowledged(&mut self) {
        self.is_unacknowledged = true;
    }

    /// The neighbour, remembered from now on if there is room; whether there was. Where there is
    /// none, it takes the place of the one that has been silent longest, if that is gone.
    fn of(&mut self, now: Time, node: NodeId) -> Option<&mut Neighbour> {
        if self.list.len() >= NEIGHBOURS_MAX && !self.list.contains_key(&node) {
            let longest = self.list.iter().min_by_key(|(_, neighbour)| neighbour.heard_at);
            let gone = longest.filter(|(_, neighbour)| !neighbour.is_present(now, self.valid_for));
            let gone = *gone?.0;
            self.list.remove(&gone);
        }
        Some(self.list.entry(node).or_default())
    }

    /// A neighbour has begun anew, and is to be measured anew.
    pub fn forget(&mut self, node: NodeId) {
        self.list.remove(&node);
    }

    /// Whether one that its sender has sent later has come before a frame.
    pub fn is_overtaken(&self, node: NodeId, counter: u32) -> bool {
        let newest = self.list.get(&node).and_then(|neighbour| neighbour.newest);
        let behind = newest.map_or(0, |newest| newest.wrapping_sub(counter));
        (1..=MISSED_MAX).contains(&behind)
    }

    /// A frame has come from a neighbour; `addressed`: to this node alone, so that the MAC would
    /// have repeated it. Whether the neighbour is remembered.
    pub fn hear(&mut self, now: Time, node: NodeId, counter: u32, addressed: bool) -> bool {
        let Some(neighbour) = self.of(now, node) else { return false };
        neighbour.heard_at = Some(now);
        if let Some(newest) = neighbour.newest {
            if newest.wrapping_sub(counter) <= MISSED_MAX {
                // Old, or the same again: nothing is learned.
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

    /// A coded frame for this node has come from a neighbour, and could be decoded or not.
    pub fn count_coded(&mut self, from: NodeId, decoded: bool) {
        let Some(neighbour) = self.list.get_mut(&from) else { return };
        if neighbour.coded < u16::MAX {
            neighbour.coded += 1;
            neighbour.failed += u16::from(!decoded);
        }
    }

    /// The MAC is through with a frame for a neighbour.
    pub fn count_attempts(&mut self, now: Time, to: NodeId, attempts: u32, delivered: bool) {
        let Some(neighbour) = self.of(now, to) else { return };
        let failed = attempts.saturating_sub(u32::from(delivered)).min(MISSED_MAX);
        (0..failed).for_each(|_| neighbour.delivered.count(false));
        if delivered {
            neighbour.delivered.count(true);
        }
        neighbour.given_up.count_by(!delivered, GIVEN_UP_STEP);
    }

    /// Of so many frames for a neighbour, the MAC has given up so many. In which order is not
    /// known: they are spread evenly.
    pub fn count_given_up(&mut self, now: Time, to: NodeId, given_up: u64, frames: u64) {
        let Some(neighbour) = self.of(now, to) else { return };
        let (given_up, counted) = (given_up.min(frames), frames.min(u64::from(MISSED_MAX)));
        spread(given_up, frames, counted)
            .for_each(|is_one| neighbour.given_up.count_by(is_one, GIVEN_UP_STEP));
    }

    /// Whether the MAC gives up so much of what goes to a neighbour that it is sent again here.
    pub fn is_lossy(&self, node: NodeId) -> bool {
        if self.is_unacknowledged {
            return true;
        }
        let given_up = self.list.get(&node).and_then(|neighbour| neighbour.given_up.known());
        given_up.is_some_and(|share| share > GIVEN_UP_MAX)
    }

    /// The MAC has transmitted to a neighbour so often in vain, and so often not. In which order is
    /// not known: both are spread evenly.
    pub fn count_transmissions(&mut self, now: Time, to: NodeId, vain: u64, delivered: u64) {
        let Some(neighbour) = self.of(now, to) else { return };
        let all = vain.saturating_add(delivered);
        // More of them than the mean remembers say no more.
        let counted = all.min(u64::from(MISSED_MAX));
        spread(vain, all, counted).for_each(|is_vain| neighbour.delivered.count(!is_vain));
    }

    /// What this node announces; counts begin anew. Those that have gone are not heard.
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

    /// A neighbour's announcement, as `own` reads it. Whether the neighbour is sent no coded frames
    /// any more because of it.
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
            // What was on its way before is not held against it when it is tried again.
            return false;
        }
        neighbour.coded_there = PAST * neighbour.coded_there + f64::from(entry.coded);
        neighbour.failed_there = PAST * neighbour.failed_there + f64::from(entry.failed);
        let fails = neighbour.coded_there >= CODED_MIN
            && neighbour.failed_there > switch_off.failed_ratio_max * neighbour.coded_there;
        if fails {
            // It is tried again after a while, and judged by what happens then.
            neighbour.off_for = (2 * neighbour.off_for).clamp(OFF_MIN, OFF_MAX);
            neighbour.off_until = Some(now + neighbour.off_for);
            (neighbour.coded_there, neighbour.failed_there) = (0.0, 0.0);
        } else if neighbour.coded_there >= CODED_MIN {
            neighbour.off_for = Duration::ZERO;
        }
        fails
    }

    /// Share of the frames of `whom` that `node` hears, by its own announcement; nothing where it
    /// has made none of late, or does not know.
    pub fn hears(&self, now: Time, node: NodeId, whom: NodeId) -> Option<f64> {
        let neighbour = self.list.get(&node)?;
        let announced = neighbour.announced_at?;
        let share = *neighbour.hears.get(&whom)?;
        (now.since(announced) <= self.valid_for).then_some(share)
    }

    /// How well a neighbour is reached by `own`: the share of frames that it overhears, or of the
    /// MAC's attempts that it acknowledges; 1 while nothing is known.
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

    /// Whether a neighbour may be sent coded frames, as far as it could decode those it had.
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
        // More than are counted: their share stays.
        assert!((reached(900_000, 100_000) - 0.1).abs() < 0.1);
        assert_eq!((reached(0, 50), reached(50, 0)), (1.0, 0.0));
        assert_eq!(reached(0, 0), 1.0, "nothing is known");
        assert_eq!(reached(u64::MAX, 0), 0.0);
    }

    #[test]
    fn what_is_heard_is_what_was_for_others() {
        let mut neighbours = Neighbours::new(SECOND);
        // Every fourth frame is for this node, and always comes; of the others every third is lost.
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
        // Its counter begins at 1 again, and half of its frames are lost.
        for counter in (1..400).step_by(2) {
            neighbours.hear(Time::ZERO, NodeId(7), counter, false);
        }
        let heard = f64::from(announced(&mut neighbours)) / 255.0;
        assert!((0.4..0.6).contains(&heard), "{heard}");
    }

    /// Its counter alone does not tell while it is below the frames that may be missing.
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
        // Frames that were in the queue still go, and fail.
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
