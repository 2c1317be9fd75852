//! Seeing what happens in a [`Network`](crate::Network).

use corridor_air::Transmission;
use corridor_air::radio::Begun;
use corridor_base::Time;
use corridor_proto::{FrameOutcome, Stats};

use crate::core::agent::{NodeIndex, Packet};
use crate::core::network::Frame;

/// Somebody who sees everything, and changes nothing.
pub trait Watcher {
    /// A packet is at a node.
    fn take_packet(&mut self, _now: Time, _node: NodeIndex, _packet: &Packet, _what: Crossing) {}

    /// A transmission on a radio without a standard's MAC has ended. Those who heard it take it one
    /// propagation delay later.
    fn take_transmission(&mut self, _radio: usize, _sent: Transmission<Frame>) {}

    /// A transmission has begun on a radio with a standard's MAC.
    fn take_begun(&mut self, _radio: usize, _begun: &Begun<Frame>) {}

    /// A station has taken a frame that it heard.
    fn take_reception(&mut self, _reception: &Reception) {}

    /// There is nothing more to see: the run may end here.
    fn has_enough(&self) -> bool;
}

/// What a station made of a frame that it heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Reception {
    /// Which radio.
    pub radio: usize,
    /// The sending place on it.
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
    pub(super) fn of(stats: &Stats) -> Self {
        SymbolCounts {
            innovative: stats.symbols_innovative,
            dependent: stats.symbols_dependent,
            late: stats.symbols_late,
            refused: stats.symbols_refused,
        }
    }

    pub(super) fn since(self, before: Self) -> Self {
        SymbolCounts {
            innovative: self.innovative - before.innovative,
            dependent: self.dependent - before.dependent,
            late: self.late - before.late,
            refused: self.refused - before.refused,
        }
    }
}

/// What a packet does at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It has arrived where it is for.
    Arrived,
    /// It goes on to this node, and will arrive there.
    Sent(NodeIndex),
    /// It goes on to this node; the link loses it.
    Lost(NodeIndex),
    /// The queue of the link to this node is full.
    Dropped(NodeIndex),
    /// There is no route on from here.
    Unroutable,
    /// It has crossed as many links as it may.
    Expired,
}
