//! Recovery by selective acknowledgments (RFC 6675), with the names of its Section 4.
//!
//! Recomputes `pipe` for each packet sent in recovery, in time proportional to the window.

use corridor_base::Time;

use crate::tcp::config::DUPLICATES_THRESHOLD;
use crate::tcp::core::{Core, Progress};
use crate::tcp::state::{Event, State};

/// State of the recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Sack {
    /// All before this number have been retransmitted in this recovery, or need not be (HighRxt).
    resent: u64,
    /// Recovery point of the last rescue retransmission (RescueRxt).
    rescued: Option<u64>,
}

impl Sack {
    /// Takes new data; returns whether the recovery goes on, so that the window must not grow.
    pub(super) fn on_progress(&mut self, core: &mut Core, now: Time, progress: &Progress) -> bool {
        if core.state != State::Recovery {
            core.settle(now, progress);
            core.duplicates = 0;
            return false;
        }
        if core.is_repaired() {
            core.enter(Event::Repaired);
            core.settle(now, progress);
            core.duplicates = 0;
        } else {
            core.settle_partial(now, progress);
            core.rearm(now);
        }
        true
    }

    /// Whether a duplicate acknowledgment with news begins a recovery.
    pub(super) fn begins(core: &Core) -> bool {
        if core.state == State::Recovery {
            return false;
        }
        let lost = core.duplicates >= DUPLICATES_THRESHOLD || lost_edge(core) > core.flight.una();
        // Section 5.1: no new recovery before everything sent up to the last loss is acknowledged.
        lost && core.is_repaired()
    }

    /// Begins a recovery: Section 5, steps 4.1 to 4.3.
    pub(super) fn begin(&mut self, core: &mut Core, now: Time, factor: f64) {
        core.fast_retransmit(now, factor);
        core.limited = 0;
        core.flight.go_forth();
        self.resent = core.flight.una() + 1;
        self.rescued = self.rescued.filter(|&point| point > core.flight.una());
    }

    /// The next number to send.
    pub(super) fn take_next(&mut self, core: &mut Core) -> Option<u64> {
        if core.state != State::Recovery {
            return core.take_next_in_window();
        }
        self.resent = self.resent.max(core.flight.una());
        let edge = lost_edge(core);
        if self.pipe(core, edge) >= core.cwnd.floor().min(core.window_max()) as u64 {
            return None;
        }
        self.next_seg(core, edge)
    }

    /// SetPipe: packets believed to be in the network. `edge` is [`lost_edge`].
    fn pipe(&self, core: &Core, edge: u64) -> u64 {
        let in_network = |(sequence, _): (u64, _)| {
            u64::from(sequence >= edge) + u64::from(sequence < self.resent)
        };
        core.flight.packets().filter(|(_, sent)| !sent.sacked).map(in_network).sum()
    }

    /// NextSeg, rules 1 to 4.
    fn next_seg(&mut self, core: &Core, edge: u64) -> Option<u64> {
        let mut holes = core.flight.packets().filter(|(_, sent)| !sent.sacked);
        let last_sacked = core.flight.packets().rfind(|(_, sent)| sent.sacked);
        let hole =
            holes.find(|&(sequence, _)| sequence >= self.resent).map(|(sequence, _)| sequence);
        let hole = hole.filter(|&sequence| last_sacked.is_some_and(|(last, _)| sequence < last));
        let hole = hole.filter(|&sequence| core.may_go(sequence));
        if let Some(sequence) = hole.filter(|&sequence| sequence < edge) {
            self.resent = sequence + 1;
            return hole;
        }
        let next = core.flight.next();
        let room = next - core.flight.una() < core.window_max() as u64;
        if next < core.offered && room && core.may_go(next) {
            return Some(next);
        }
        if let Some(sequence) = hole {
            self.resent = sequence + 1;
            return hole;
        }
        if self.rescued.is_some_and(|point| core.flight.una() <= point) {
            return None;
        }
        let (last, _) = core.flight.packets().rfind(|(_, sent)| !sent.sacked)?;
        if !core.may_go(last) {
            return None;
        }
        self.rescued = core.recover;
        Some(last)
    }
}

/// IsLost holds for every packet before this number that is not SACKed: at least three after it
/// have arrived.
fn lost_edge(core: &Core) -> u64 {
    let mut sacked = core.flight.packets().rev().filter(|(_, sent)| sent.sacked);
    sacked.nth(DUPLICATES_THRESHOLD as usize - 1).map_or(0, |(sequence, _)| sequence)
}
