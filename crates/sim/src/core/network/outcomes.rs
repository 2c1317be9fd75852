//! Outcomes of frames, counted by link, way of ending and number of attempts. Off by default.

use std::collections::BTreeMap;

use corridor_scenario::FrameEnd;

use super::Network;
use crate::core::agent::{BROADCAST, NodeIndex};

/// Frames with the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameFate {
    /// Node that was to send it.
    pub from: NodeIndex,
    /// Node that it was for; `None` for a broadcast.
    pub to: Option<NodeIndex>,
    /// How it ended.
    pub end: FrameEnd,
    /// How often it was transmitted.
    pub attempts: u32,
}

/// Number of frames with each outcome.
pub(super) type Fates = BTreeMap<FrameFate, u64>;

impl Network {
    /// Counts the outcomes of frames from now on. This does not change what happens.
    pub fn keep_outcomes(&mut self) {
        self.fates = Some(Box::default());
    }

    /// The outcomes of frames since counting began, and how often each occurred. Only media with a
    /// standard's MAC report outcomes of single frames.
    pub fn outcomes(&self) -> impl Iterator<Item = (FrameFate, u64)> {
        self.fates.iter().flat_map(|fates| fates.iter().map(|(&fate, &frames)| (fate, frames)))
    }

    /// A frame has ended.
    pub(super) fn note_fate(
        &mut self,
        (from, to): (NodeIndex, NodeIndex),
        end: FrameEnd,
        attempts: u32,
    ) {
        if let Some(fates) = &mut self.fates {
            let to = Some(to).filter(|&to| to != BROADCAST);
            *fates.entry(FrameFate { from, to, end, attempts }).or_default() += 1;
        }
    }
}
