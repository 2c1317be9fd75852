//! What became of each frame, counted by link, end and attempts. Kept only where somebody asks.

use std::collections::BTreeMap;

use corridor_scenario::FrameEnd;

use super::Network;
use crate::core::agent::{BROADCAST, NodeIndex};

/// Frames that ended alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameFate {
    /// Node that had it to send.
    pub from: NodeIndex,
    /// Node that it was for; none where it was for all.
    pub to: Option<NodeIndex>,
    /// How it ended.
    pub end: FrameEnd,
    /// Transmissions of it.
    pub attempts: u32,
}

/// How often each fate was met.
pub(super) type Fates = BTreeMap<FrameFate, u64>;

impl Network {
    /// Counts what becomes of frames from here on. What happens does not change.
    pub fn keep_outcomes(&mut self) {
        self.fates = Some(Box::default());
    }

    /// What has become of frames since it is counted, and how often. Media without a standard's MAC
    /// tell nothing of single frames.
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
