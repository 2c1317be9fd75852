//! The variants of congestion control: one file each, made of the steps that [`Core`] offers.

mod reno;

use corridor_base::Time;

use super::config::Variant;
use super::core::{Core, Progress};

/// The variant's own part of a sender. Every method is called after [`Core`] has noted what
/// happened.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Reno,
}

impl Control {
    pub(super) fn new(variant: Variant) -> Self {
        match variant {
            _ => Control::Reno,
        }
    }

    /// Share of the window that a loss leaves.
    pub(super) fn reduction(&self) -> f64 {
        reno::REDUCTION
    }

    /// New data has been acknowledged.
    pub(super) fn on_progress(&mut self, core: &mut Core, _now: Time, progress: &Progress) {
        match self {
            Control::Reno => reno::on_progress(core, progress),
        }
    }

    /// An acknowledgement of all before `next`, not noted yet, echoes congestion.
    pub(super) fn on_congestion_echo(&mut self, core: &mut Core, next: u64) {
        core.respond_to_echo(next, self.reduction());
    }

    /// A duplicate acknowledgement has been counted.
    pub(super) fn on_duplicate(&mut self, core: &mut Core, now: Time) {
        match self {
            Control::Reno => reno::on_duplicate(core, now),
        }
    }
}
