//! Watching what happens in a [`Network`](crate::Network).

use corridor_air::Transmission;
use corridor_air::radio::Begun;
use corridor_base::Time;
use corridor_proto::{FrameOutcome, Stats};

use crate::core::agent::{NodeIndex, Packet};
use crate::core::network::Frame;

/// An observer that sees everything and changes nothing.
pub trait Watcher {
    /// A packet is at a node.
    fn take_packet(&mut self, _now: Time, _node: NodeIndex, _packet: &Packet, _what: Crossing) {}

    /// A transmission on a radio without a standard's MAC has ended. Receivers get it one
    /// propagation delay later.
    fn take_transmission(&mut self, _radio: usize, _sent: Transmission<Frame>) {}

    /// A transmission has begun on a radio with a standard's MAC.
    fn take_begun(&mut self, _radio: usize, _begun: &Begun<Frame>) {}

    /// A station has processed a frame that it heard.
    fn take_reception(&mut self, _reception: &Reception) {}

    /// Whether it needs to see nothing more, so that the run may end.
    fn has_enough(&self) -> bool;
}

/// What a station did with a frame that it heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Reception {
    /// Which radio.
    pub radio: usize,
    /// The sending place on it.
    pub from: usize,
    /// The hearing place.
    pub to: usize,
    /// The station's verdict.
    pub outcome: FrameOutcome,
    /// By how much its counters of symbols rose.
    pub symbols: SymbolCounts,
}

/// The counters of [`Stats`] that tell what became of a symbol.
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

/// What happens to a packet at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It has arrived at its destination.
    Arrived,
    /// It is sent to this node and will arrive.
    Sent(NodeIndex),
    /// It is sent to this node, and the link loses it.
    Lost(NodeIndex),
    /// The queue of the link to this node is full.
    Dropped(NodeIndex),
    /// There is no route on from here.
    Unroutable,
    /// It has crossed as many links as it may.
    Expired,
}
