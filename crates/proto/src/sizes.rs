//! The length of symbols, and the number of lanes of a window, as limited by frames.

use crate::config::{CodingParams, StationConfig};
use crate::wire::{Lanes, symbol_size_max};

impl CodingParams {
    /// Most lanes of a window, in either direction.
    pub(crate) fn lanes_max(&self) -> Lanes {
        Lanes::holding(self.window_size.into(), self.lane_size().into())
    }
}

impl StationConfig {
    /// Bytes of the longest source symbol: as configured, or as a frame has room for.
    pub(crate) fn symbol_size(&self) -> u16 {
        if self.coding.symbol_size > 0 {
            return self.coding.symbol_size;
        }
        let recoded = self.role.is_recoded();
        let most = symbol_size_max(self.frame_len_max, &self.coding, recoded);
        u16::try_from(most).unwrap_or(u16::MAX)
    }
}
