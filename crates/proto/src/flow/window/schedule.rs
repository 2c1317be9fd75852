//! What goes next: a source symbol, a copy, a coded symbol, or nothing.

use corridor_base::Time;

use super::repair::belief::Stakes;
use super::repair::ceiling::Ceiling;
use super::repair::{Outlook, Reserve, SpareAir};
use super::send_window::SendWindow;
use crate::bounds::WINDOW_ACK_INTERVAL_MIN;
use crate::config::{CodingParams, Goal};
use crate::link::usage::LinkUsage;

/// What is known when the next frame is to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Symbols are held, and may be repaired.
    pub(super) has_held: bool,
    /// Packets wait that may go as a source symbol.
    pub(super) has_new: bool,
    /// A repair symbol is worth the risk of being spurious.
    pub(super) wants_repair: bool,
    /// The air will be spare after what waits: what will be needed then may as well go now.
    pub(super) may_go_ahead: bool,
    /// A repair symbol is worth its airtime where nothing else is to be sent.
    pub(super) welcomes_repair: bool,
}

/// What goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, before something changes.
    Wait,
    /// A source symbol, uncoded.
    Source,
    /// Repair that is needed.
    Needed,
    /// Repair ahead of what waits, in place of what would be spare after it.
    Ahead,
    /// Repair for want of anything better.
    Spare,
}

/// What goes next, as these facts have it.
pub(super) fn decide(facts: Facts) -> Next {
    match facts {
        Facts { has_held: true, wants_repair: true, .. } => Next::Needed,
        Facts { has_held: true, has_new: true, may_go_ahead: true, .. } => Next::Ahead,
        Facts { has_held: true, has_new: false, welcomes_repair: true, .. } => Next::Spare,
        Facts { has_new: true, .. } => Next::Source,
        _ => Next::Wait,
    }
}

/// Weighs repair: what it is worth, and what air there is for it.
pub(super) struct RepairScheduler {
    pub(super) reserve: Reserve,
    pub(super) spare: SpareAir,
    pub(super) ceiling: Ceiling,
    goal: Goal,
}

impl RepairScheduler {
    pub(super) fn new(params: &CodingParams, symbol_size_max: usize, now: Time) -> Self {
        let goal = params.goal;
        RepairScheduler {
            reserve: Reserve::new(goal),
            spare: SpareAir::new(now),
            ceiling: Ceiling::new(params.max_overhead, params.lane_size(), symbol_size_max),
            goal,
        }
    }

    /// What is at stake with a repair symbol for a lane that is sent now.
    pub(super) fn stakes(
        &self,
        now: Time,
        lane: usize,
        window: &mut SendWindow,
        link: &LinkUsage,
    ) -> Stakes {
        let rtt = link.rtt().timeout().max(WINDOW_ACK_INTERVAL_MIN);
        window.stakes(now, lane, link, (rtt, self.reserve.weigh()))
    }

    /// Whether repair goes ahead of so many packets that wait, since the air will be spare after
    /// them. Where both directions are known to share it, it never is.
    pub(super) fn may_go_ahead(
        &mut self,
        now: Time,
        waiting: usize,
        stakes: Stakes,
        link: &LinkUsage,
    ) -> bool {
        let round_trip = link.smoothed_round_trip();
        !link.shares_air() && self.spare.welcomes_repair(now, round_trip, waiting, stakes)
    }

    /// Whether a repair symbol is worth its airtime where nothing else is to be sent.
    pub(super) fn welcomes_repair(
        &mut self,
        now: Time,
        window: &SendWindow,
        lane: usize,
        link: &LinkUsage,
    ) -> bool {
        let is_paid =
            self.goal == Goal::Bulk && !self.spare.is_some(now, link.smoothed_round_trip());
        outlook(window, lane, link).welcomes_repair(is_paid)
    }
}

/// What is known and what is expected of the receiver, of a lane.
fn outlook(window: &SendWindow, lane: usize, link: &LinkUsage) -> Outlook {
    let log = window.log(lane, link);
    Outlook {
        deficit: window.deficit(lane),
        sources: log.sources(),
        repairs: log.repairs(),
        loss_ratio: link.loss_ratio(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that can be known, and what goes next.
    #[test]
    fn each_state_of_things_has_its_next_frame() {
        let mut table = String::new();
        for bits in 0..32u8 {
            let has = |bit: u8| bits >> bit & 1 != 0;
            let facts = Facts {
                has_held: has(4),
                has_new: has(3),
                wants_repair: has(2),
                may_go_ahead: has(1),
                welcomes_repair: has(0),
            };
            table.push(match decide(facts) {
                Next::Wait => '.',
                Next::Source => 's',
                Next::Needed => 'n',
                Next::Ahead => 'a',
                Next::Spare => 'r',
            });
        }
        // Nothing held; then held, nothing new; then held, and something new.
        let rows: Vec<&str> = [0..8, 8..16, 16..24, 24..32].map(|row| &table[row]).to_vec();
        assert_eq!(rows, ["........", "ssssssss", ".r.rnnnn", "ssaannnn"]);
    }
}
