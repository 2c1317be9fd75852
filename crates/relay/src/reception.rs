//! Reports to neighbours on which of their frames arrived, from which they know what to retransmit.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::Time;

use crate::neighbours::NEIGHBOURS_MAX;
use crate::wire::{NodeId, REPORTS_MAX, Report};

/// How long a report waits for a frame to accompany before it is sent alone.
const REPORT_AFTER: Duration = Duration::from_millis(20);

/// Reception state of neighbours that send coded frames.
#[derive(Debug)]
pub struct Receptions {
    /// How long after its last coded frame a neighbour gets reports.
    lasts: Duration,
    of: BTreeMap<NodeId, Reception>,
}

#[derive(Debug)]
struct Reception {
    newest: u32,
    /// Bitmap of the newest frame and the 31 before it, the newest lowest: it arrived, and could be
    /// used if it was for this node.
    came: u32,
    coded_at: Time,
    /// Since when a coded frame, or a gap that may hide one, is unreported.
    unsaid_since: Option<Time>,
    /// Whether anything is unreported.
    is_fresh: bool,
}

impl Receptions {
    pub fn new(lasts: Duration) -> Self {
        Receptions { lasts, of: BTreeMap::new() }
    }

    /// Records a frame from a neighbour. `decoded`: for a coded one for this node, whether it could
    /// be decoded.
    pub fn note(&mut self, now: Time, from: NodeId, counter: u32, decoded: Option<bool>) {
        let begins = decoded.is_some() && !self.of.contains_key(&from);
        if begins {
            self.forget(now);
            if self.of.len() >= NEIGHBOURS_MAX {
                return;
            }
            let newest = counter.wrapping_sub(1);
            let (unsaid_since, is_fresh) = (None, false);
            self.of
                .insert(from, Reception { newest, came: 0, coded_at: now, unsaid_since, is_fresh });
        }
        let Some(reception) = self.of.get_mut(&from) else { return };
        let ahead = counter.wrapping_sub(reception.newest);
        let is_newer = (1..=u32::MAX / 2).contains(&ahead);
        let place = if is_newer {
            reception.came = reception.came.checked_shl(ahead).unwrap_or(0);
            reception.newest = counter;
            0
        } else {
            ahead.wrapping_neg()
        };
        if decoded != Some(false) {
            reception.came |= 1_u32.checked_shl(place).unwrap_or(0);
        }
        reception.is_fresh = true;
        if decoded.is_some() || (is_newer && ahead > 1) {
            reception.unsaid_since.get_or_insert(now);
        }
        if decoded.is_some() {
            reception.coded_at = now;
        }
    }

    /// The reports to send with a frame: those that have waited longest first.
    pub fn take(&mut self, now: Time) -> Vec<Report> {
        self.forget(now);
        let mut fresh: Vec<_> = self.of.iter_mut().filter(|(_, one)| one.is_fresh).collect();
        fresh.sort_by_key(|(_, one)| one.unsaid_since.unwrap_or(Time::MAX));
        fresh.truncate(REPORTS_MAX);
        let report = |(&node, one): (&NodeId, &mut Reception)| {
            (one.unsaid_since, one.is_fresh) = (None, false);
            Report { node, newest: one.newest as u16, came: one.came }
        };
        fresh.into_iter().map(report).collect()
    }

    /// When a report is due to be sent alone.
    pub fn due(&self) -> Option<Time> {
        let unsaid = self.of.values().filter_map(|one| one.unsaid_since);
        unsaid.min().map(|since| since + REPORT_AFTER)
    }

    /// A neighbour has restarted.
    pub fn forget_node(&mut self, node: NodeId) {
        self.of.remove(&node);
    }

    fn forget(&mut self, now: Time) {
        let lasts = self.lasts;
        self.of.retain(|_, one| now.since(one.coded_at) <= lasts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: NodeId = NodeId(7);

    fn receptions() -> Receptions {
        Receptions::new(Duration::from_secs(1))
    }

    #[test]
    fn frames_count_from_the_first_coded_one_on() {
        let (mut receptions, now) = (receptions(), Time::from_millis(1));
        receptions.note(now, OTHER, 5, None);
        assert_eq!(receptions.take(now), []);
        receptions.note(now, OTHER, 6, Some(true));
        receptions.note(now, OTHER, 8, None);
        receptions.note(now, OTHER, 9, Some(false));
        receptions.note(now, OTHER, 10, Some(true));
        let report = Report { node: OTHER, newest: 10, came: 0b10101 };
        assert_eq!(receptions.take(now), [report]);
        assert_eq!(receptions.take(now), [], "it is told");
        receptions.note(now, OTHER, 7, None);
        let report = Report { node: OTHER, newest: 10, came: 0b11101 };
        assert_eq!(receptions.take(now), [report]);
        receptions.note(now, OTHER, 10 + 40, None);
        assert_eq!(receptions.take(now)[0].came, 1, "what was before is too old to tell");
    }

    #[test]
    fn a_report_goes_alone_where_a_coded_frame_or_a_gap_waits_for_it() {
        let (mut receptions, ms) = (receptions(), Time::from_millis);
        receptions.note(ms(0), OTHER, 1, Some(true));
        assert_eq!(receptions.due(), Some(ms(20)));
        assert_eq!(receptions.take(ms(20)).len(), 1);
        receptions.note(ms(30), OTHER, 2, None);
        assert_eq!(receptions.due(), None);
        receptions.note(ms(40), OTHER, 4, None);
        assert_eq!(receptions.due(), Some(ms(60)));
        assert_eq!(receptions.take(ms(2000)), [], "no coded frame for long");
        assert_eq!(receptions.due(), None);
    }

    #[test]
    fn those_that_have_waited_longest_are_told_first() {
        let mut receptions = receptions();
        for (ms, node) in [(3, 1), (2, 2), (1, 3)] {
            receptions.note(Time::from_millis(ms), NodeId(node), 1, Some(true));
        }
        let mut told = || {
            let told: Vec<_> = receptions.take(Time::from_millis(9));
            told.into_iter().map(|report| report.node.0).collect::<Vec<_>>()
        };
        assert_eq!((told(), told()), (vec![3, 2], vec![1]));
    }

    #[test]
    fn there_are_no_more_of_them_than_neighbours() {
        let mut receptions = receptions();
        (0..1000).for_each(|node| receptions.note(Time::ZERO, NodeId(node), 1, Some(true)));
        assert_eq!(receptions.of.len(), NEIGHBOURS_MAX);
    }
}
