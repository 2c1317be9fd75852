//! The variants of congestion control, one file each, built from the steps that [`Core`] provides.

mod cubic;
mod hystart;
mod newreno;
mod reno;
mod sack;
mod slow_start;
mod tahoe;
mod vegas;

use corridor_base::Time;

use self::cubic::Cubic;
use self::newreno::NewReno;
use self::sack::Sack;
use self::vegas::Vegas;
use super::config::Variant;
use super::core::{Core, Progress};
use super::segment::SackRange;

/// The variant's own part of a sender: its state beyond [`Core`].
#[derive(Clone, Debug)]
pub(super) enum Control {
    Tahoe,
    Reno,
    NewReno(NewReno),
    Sack(Sack),
    Cubic(Sack, Cubic),
    Vegas(Vegas),
    SlowStart,
}

impl Control {
    pub(super) fn new(variant: Variant) -> Self {
        match variant {
            Variant::Tahoe => Control::Tahoe,
            Variant::Reno => Control::Reno,
            Variant::NewReno => Control::NewReno(NewReno::default()),
            Variant::Sack => Control::Sack(Sack::default()),
            Variant::Cubic => Control::Cubic(Sack::default(), Cubic::default()),
            Variant::Vegas(config) => Control::Vegas(Vegas::new(config)),
            Variant::SlowStart => Control::SlowStart,
        }
    }

    /// Factor that a loss applies to the window.
    fn reduction(&self) -> f64 {
        match self {
            Control::Cubic(..) => cubic::REDUCTION,
            _ => reno::REDUCTION,
        }
    }

    /// New data has been acknowledged.
    pub(super) fn on_progress(
        &mut self,
        core: &mut Core,
        now: Time,
        progress: &Progress,
        ranges: &[SackRange],
    ) {
        self.on_ranges(core, ranges);
        match self {
            Control::Tahoe => tahoe::on_progress(core, now, progress),
            Control::Reno => reno::on_progress(core, now, progress),
            Control::NewReno(newreno) => newreno.on_progress(core, now, progress),
            Control::Sack(sack) => {
                if !sack.on_progress(core, now, progress) {
                    reno::grow(core, progress);
                }
            }
            Control::Cubic(sack, cubic) => {
                if !sack.on_progress(core, now, progress) {
                    cubic.grow(core, now, progress);
                }
            }
            Control::Vegas(vegas) => vegas.on_progress(core, now, progress),
            Control::SlowStart => slow_start::on_progress(core, now, progress),
        }
    }

    /// Marks what has arrived beyond a gap; returns whether anything was new. Reordered, older
    /// acknowledgments count too (RFC 6675, Section 4, `Update`).
    pub(super) fn on_ranges(&self, core: &mut Core, ranges: &[SackRange]) -> bool {
        matches!(self, Control::Sack(_) | Control::Cubic(..)) && core.flight.mark_sacked(ranges)
    }

    /// A duplicate acknowledgment has arrived.
    pub(super) fn on_duplicate(&mut self, core: &mut Core, now: Time, ranges: &[SackRange]) {
        if let Control::Sack(_) | Control::Cubic(..) = self {
            return self.on_duplicate_with_ranges(core, now, ranges);
        }
        core.count_duplicate();
        match self {
            Control::Tahoe => tahoe::on_duplicate(core, now),
            Control::Reno => reno::on_duplicate(core, now),
            Control::NewReno(newreno) => newreno.on_duplicate(core, now),
            Control::Vegas(vegas) => vegas.on_duplicate(core, now),
            // Only the timer detects losses, or SACK ranges do.
            Control::SlowStart | Control::Sack(_) | Control::Cubic(..) => {}
        }
    }

    /// The same number has been acknowledged again with a different window. Variants that detect
    /// losses by SACK ranges use news in them all the same, as Linux does.
    pub(super) fn on_update(&mut self, core: &mut Core, now: Time, ranges: &[SackRange]) {
        if let Control::Sack(_) | Control::Cubic(..) = self {
            self.on_duplicate_with_ranges(core, now, ranges);
        }
    }

    /// With SACK, a duplicate without new ranges does not count (RFC 6675, Section 2).
    fn on_duplicate_with_ranges(&mut self, core: &mut Core, now: Time, ranges: &[SackRange]) {
        let factor = self.reduction();
        if !self.on_ranges(core, ranges) {
            return;
        }
        core.count_duplicate();
        if !Sack::begins(core) {
            return;
        }
        if let Control::Cubic(_, cubic) = self {
            cubic.before_reduction(core);
        }
        if let Control::Sack(sack) | Control::Cubic(sack, _) = self {
            sack.begin(core, now, factor);
        }
    }

    /// An acknowledgment of all before `next`, not processed yet, echoes congestion.
    pub(super) fn on_congestion_echo(&mut self, core: &mut Core, next: u64) {
        if core.is_first_echo(next) {
            if let Control::Cubic(_, cubic) = self {
                cubic.before_reduction(core);
            }
            core.respond_to_echo(self.reduction());
        }
    }

    /// The retransmission timer has expired.
    pub(super) fn on_timeout(&mut self, core: &mut Core, now: Time) {
        if let Control::Cubic(_, cubic) = self {
            cubic.on_timeout(core);
        }
        core.collapse_on_timeout(now, self.reduction());
        if let Control::Vegas(vegas) = self {
            vegas.on_timeout(core, now);
        }
    }

    /// The next number to send, unless one is urgent.
    pub(super) fn take_next(&mut self, core: &mut Core) -> Option<u64> {
        match self {
            Control::Sack(sack) | Control::Cubic(sack, _) => sack.take_next(core),
            _ => core.take_next_in_window(),
        }
    }
}
