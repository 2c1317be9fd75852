//! Window mode: a systematic sliding window between two endpoints on one hop.
//!
//! Packets are sent uncoded at once. Losses are repaired by copies where feedback shows which
//! symbols are needed, and by coded symbols where it cannot show it yet. [`send`] is step 2 of a
//! packet's way, [`receive`] step 5.

mod ack_timer;
mod ahead;
mod air_use;
mod credit;
mod feedback;
mod hold;
#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod lanes_tests;
mod needs;
pub(crate) mod receive;
mod receive_lanes;
pub(crate) mod repair;
mod schedule;
pub(crate) mod send;
mod send_lane;
#[cfg(test)]
mod send_tests;
mod send_window;

use crate::wire::FlowId;

/// The only flow from a station to its peer.
pub(crate) const FLOW: FlowId = FlowId(0);
