//! What the links, and the helper, will supply of what the decoder lacks.

use super::block::Block;
use crate::config::{ErasureRatios, Policy};
use crate::flow::block::budget;

/// The latest link estimates, and whether there is a helper.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    pub(crate) ratios: ErasureRatios,
    pub(crate) helper: bool,
}

impl Links {
    /// Dimensions of a block that the decoder lacks, less what our frames in flight will supply on
    /// average and, if counted on, what the helper can supply.
    pub(crate) fn missing(self, policy: Policy, block: &Block, count_on_helper: bool) -> f64 {
        let deficit = block.deficit() as f64;
        let arriving = block.in_flight_count() as f64 * (1.0 - self.ratios.e3);
        let helper_rank = if count_on_helper && self.helper_is_used(policy) {
            (block.sent_count as f64 * (1.0 - self.ratios.e1)).min(block.coder.count() as f64)
        } else {
            0.0
        };
        let helper_share = (helper_rank - block.rank as f64).clamp(0.0, deficit);
        deficit - helper_share - arriving
    }

    /// Share of the repair that nobody receives: what the helper hears, it passes on.
    pub(crate) fn repair_erasure(self, policy: Policy, count_on_helper: bool) -> f64 {
        if count_on_helper && self.helper_is_used(policy) {
            self.ratios.e1 * self.ratios.e3
        } else {
            self.ratios.e3
        }
    }

    fn helper_is_used(self, policy: Policy) -> bool {
        policy == Policy::PlayNCool || budget::helper_is_worth_it(self.ratios)
    }
}
