//! What to send next: a source symbol, a copy, a coded symbol, or nothing.

use corridor_base::Time;

use super::repair::belief::Stakes;
use super::repair::ceiling::Ceiling;
use super::repair::{Outlook, Reserve, SpareAir};
use super::send_window::SendWindow;
use crate::bounds::WINDOW_ACK_INTERVAL_MIN;
use crate::config::{CodingParams, Goal};
use crate::link::usage::LinkUsage;

/// The state when the next frame is to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Symbols are held, and may be repaired.
    pub(super) has_held: bool,
    /// Packets wait that may become a source symbol.
    pub(super) has_new: bool,
    /// A repair symbol is worth the risk of being spurious.
    pub(super) wants_repair: bool,
    /// The air will be idle after the waiting packets, so repair that will be needed then may as
    /// well be sent now.
    pub(super) may_go_ahead: bool,
    /// A repair symbol is worth its airtime when there is nothing else to send.
    pub(super) welcomes_repair: bool,
}

/// What to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing until something changes.
    Wait,
    /// A source symbol, uncoded.
    Source,
    /// Needed repair.
    Needed,
    /// Repair ahead of the waiting packets, instead of the spare repair that would follow them.
    Ahead,
    /// Repair for lack of anything better.
    Spare,
}

/// Decides what to send next.
pub(super) fn decide(facts: Facts) -> Next {
    match facts {
        Facts { has_held: true, wants_repair: true, .. } => Next::Needed,
        Facts { has_held: true, has_new: true, may_go_ahead: true, .. } => Next::Ahead,
        Facts { has_held: true, has_new: false, welcomes_repair: true, .. } => Next::Spare,
        Facts { has_new: true, .. } => Next::Source,
        _ => Next::Wait,
    }
}

/// Weighs repair: its value, and the airtime available for it.
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

    /// The stakes of a repair symbol sent for a lane now.
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

    /// Whether repair is sent ahead of `waiting` packets because the air will be idle after them.
    /// Never on a channel known to be shared.
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

    /// Whether a repair symbol is worth its airtime when there is nothing else to send.
    pub(super) fn welcomes_repair(
        &mut self,
        now: Time,
        window: &SendWindow,
        lane: usize,
        link: &LinkUsage,
    ) -> bool {
        let is_paid =
            self.goal == Goal::Bulk && !self.spare.is_some(now, link.smoothed_round_trip());
        outlook(now, window, lane, link).welcomes_repair(is_paid)
    }
}

/// What is known, and what is expected, about the receiver and a lane.
fn outlook(now: Time, window: &SendWindow, lane: usize, link: &LinkUsage) -> Outlook {
    let log = window.log(lane, link);
    Outlook {
        deficit: window.deficit(lane),
        sources: log.sources(),
        repairs: log.repairs(),
        late: window.expected_late(now, lane, link),
        loss_ratio: link.loss_ratio(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of facts, and the resulting decision.
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
