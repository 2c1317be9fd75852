//! Cubic (RFC 9438): the window is a cubic function of the time since the last loss.
//!
//! With fast convergence and the Reno-friendly region. Without HyStart, slow start ends with a loss
//! or at the threshold. A window that is not fully used does not grow (Section 5.8).

use corridor_base::Time;

use super::hystart::HyStart;
use crate::tcp::core::{Core, Progress};

/// Factor that a loss applies to the window, beta (Section 4.6).
pub(super) const REDUCTION: f64 = 0.7;
/// Steepness of the cubic, C, in packets for each cubic second (Section 5.1).
const STEEPNESS: f64 = 0.4;
/// Growth of the Reno-friendly window, alpha (Section 4.3), in packets a round trip.
const FRIENDLY_GROWTH: f64 = 3.0 * (1.0 - REDUCTION) / (1.0 + REDUCTION);
/// The target window for the next round trip is at most this many times the current one (Section
/// 4.2).
const TARGET_FACTOR_MAX: f64 = 1.5;

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began.
    since: Time,
    /// Seconds until the window is back at `full`, K.
    plateau_s: f64,
    /// The window at which the network was full.
    full: f64,
    /// The window that a Reno sender would have.
    friendly: f64,
}

impl Epoch {
    /// Begins with a window of `cwnd` below `full`; above it, or if it is unknown, on a plateau.
    fn begin(now: Time, cwnd: f64, full: Option<f64>) -> Self {
        let full = full.map_or(cwnd, |full| full.max(cwnd));
        let plateau_s = cube_root((full - cwnd) / STEEPNESS);
        Epoch { since: now, plateau_s, full, friendly: cwnd }
    }

    /// The window `at_s` seconds after the beginning (equation 1).
    fn cubic(&self, at_s: f64) -> f64 {
        let from_plateau = at_s - self.plateau_s;
        STEEPNESS * from_plateau * from_plateau * from_plateau + self.full
    }
}

/// Cubic's state. Windows in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Cubic {
    /// The window at which the network was full, `W_max`; unknown at first and after a timeout.
    full: Option<f64>,
    /// The window when it was last reduced, `cwnd_prior`.
    prior: f64,
    epoch: Option<Epoch>,
    hystart: HyStart,
}

impl Cubic {
    /// Called before the window is reduced: fast convergence (Section 4.7).
    pub(super) fn before_reduction(&mut self, core: &Core) {
        let window = core.cwnd;
        let released = self.full.is_some_and(|full| window < full);
        self.full = Some(if released { window * (1.0 + REDUCTION) / 2.0 } else { window });
        self.prior = window;
        self.epoch = None;
    }

    /// Section 4.8: congestion avoidance after the next slow start begins at its own plateau.
    pub(super) fn on_timeout(&mut self, core: &Core) {
        self.prior = core.cwnd;
        self.full = None;
        self.epoch = None;
        self.hystart.restart();
    }

    /// Grows the window (Sections 4.2 to 4.5).
    pub(super) fn grow(&mut self, core: &mut Core, now: Time, progress: &Progress) {
        if core.config.hystart && core.in_slow_start() && self.hystart.ends(core, now, progress) {
            core.ssthresh = core.cwnd;
        }
        // The packets in flight before this acknowledgment.
        let used = (core.flight.size() + progress.count) as f64;
        if progress.congestion || used + 1.0 <= core.cwnd {
            self.epoch = None;
            return;
        }
        if core.in_slow_start() {
            core.cwnd = (core.cwnd + progress.count as f64).min(core.ssthresh.max(core.cwnd + 1.0));
            return;
        }
        let (full, cwnd) = (self.full, core.cwnd);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(now, cwnd, full));
        let since_s = now.since(epoch.since).as_secs_f64();
        let rtt_s = core.rto.srtt().unwrap_or(progress.rtt).as_secs_f64();
        let growth = if epoch.friendly >= self.prior { 1.0 } else { FRIENDLY_GROWTH };
        epoch.friendly += growth * progress.count as f64 / core.cwnd;
        if epoch.cubic(since_s) < epoch.friendly {
            core.cwnd = core.cwnd.max(epoch.friendly);
        } else {
            let target =
                epoch.cubic(since_s + rtt_s).clamp(core.cwnd, core.cwnd * TARGET_FACTOR_MAX);
            core.cwnd += (target - core.cwnd) * progress.count as f64 / core.cwnd;
        }
    }
}

/// The cube root of a number that is not negative, computed with operations that round alike on
/// every machine, which the system's library does not guarantee.
fn cube_root(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    // A third of the exponent gives a first value within a quarter of the root; each Newton step
    // doubles the digits.
    let mut root = f64::from_bits(value.to_bits() / 3 + (0x3ff0_0000_0000_0000 / 3) * 2);
    for _ in 0..5 {
        root = (2.0 * root + value / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for root in [1e-6, 0.1, 1.0, 1.5, 2.0, 3.0, 10.0, 12_345.678] {
            let error = (cube_root(root * root * root) / root - 1.0).abs();
            assert!(error < 1e-14, "{root}: {error:e}");
        }
        assert_eq!(cube_root(0.0), 0.0);
        assert_eq!(cube_root(-1.0), 0.0);
    }

    /// Figure 1 of RFC 9438: after K seconds the window is back where it was; before that it is
    /// smaller.
    #[test]
    fn the_plateau_is_reached_after_k() {
        let epoch = Epoch::begin(Time::ZERO, 70.0, Some(100.0));
        assert!((epoch.cubic(0.0) - 70.0).abs() < 1e-9);
        assert!((epoch.plateau_s - libm::cbrt(75.0)).abs() < 1e-12);
        assert!((epoch.cubic(epoch.plateau_s) - 100.0).abs() < 1e-9);
        assert!(epoch.cubic(epoch.plateau_s + 1.0) > 100.0);
    }
}
