//! How long symbols may be, where the path's MTU changes.

use corridor_base::Time;

use super::WindowSender;
use crate::stats::Stats;

impl WindowSender {
    /// Symbols are no longer than this from here on, bytes. Longer ones that are held would not
    /// get through, nor would what is coded over them: they are given up, with all before them.
    pub(crate) fn limit_symbols(&mut self, now: Time, len: usize, stats: &mut Stats) {
        self.symbol_len_max = len.min(self.coder.symbol_size_max());
        let base = self.coder.base();
        let is_longer = |at: &usize| {
            self.coder.symbol(base + *at as u64).is_some_and(|symbol| symbol.len() > len)
        };
        let Some(last) = (0..self.sources.len()).rev().find(is_longer) else { return };
        (0..=last).for_each(|_| self.give_up_oldest(stats));
        // What is silent was too long: that is no sign of a path that is gone.
        self.timeouts_in_row = 0;
        self.last_ack_at = now;
    }
}
