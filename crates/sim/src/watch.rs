//! Seeing what happens in a [`World`](crate::World).

use corridor_air::Transmission;
use corridor_proto::{FrameOutcome, Stats};

/// Somebody who sees everything, and changes nothing.
pub trait Watcher {
    /// A transmission has ended. Those who heard it take it one propagation delay later.
    fn take_transmission(&mut self, sent: Transmission);

    /// A station has taken a frame that it heard.
    fn take_reception(&mut self, reception: &Reception);

    /// There is nothing more to see: the run may end here.
    fn has_enough(&self) -> bool;
}

/// What a station made of a frame that it heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Reception {
    /// The sending place on the medium.
    pub from: usize,
    /// The hearing place.
    pub to: usize,
    /// What the station says.
    pub outcome: FrameOutcome,
    /// How its counters of symbols rose.
    pub symbols: SymbolCounts,
}

/// The counters of [`Stats`] that say what became of a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolCounts {
    /// See [`Stats::symbols_innovative`].
    pub innovative: u64,
    /// See [`Stats::symbols_dependent`].
    pub dependent: u64,
    /// See [`Stats::symbols_late`].
    pub late: u64,
    /// See [`Stats::symbols_refused`].
    pub refused: u64,
}

impl SymbolCounts {
    pub(crate) fn of(stats: &Stats) -> Self {
        SymbolCounts {
            innovative: stats.symbols_innovative,
            dependent: stats.symbols_dependent,
            late: stats.symbols_late,
            refused: stats.symbols_refused,
        }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        SymbolCounts {
            innovative: self.innovative - before.innovative,
            dependent: self.dependent - before.dependent,
            late: self.late - before.late,
            refused: self.refused - before.refused,
        }
    }
}
