//! Cubic (RFC 9438) in whole packets and ticks, as Linux computes it, with HyStart.
//!
//! The RFC evaluates the curve for each acknowledgment. Linux instead keeps the number of
//! acknowledged packets for which the window grows by one, and recomputes it every 31 ms, or once a
//! tick if the window has changed.

use super::clock::{HZ, ticks};
use super::control::{increase, slow_start};
use super::flow::Flow;

/// A loss multiplies the window by 717/1024, about 0.7.
const BETA: u64 = 717;
const BETA_UNIT: u64 = 1_024;
/// Times are in units of 1/1024 s.
const TIME_SHIFT: u32 = 10;
/// C of the RFC, 0.4 packets per second cubed, in units of 2^-10: 410.
const STEEPNESS: u64 = 410;
/// Eight times the number of acknowledged packets for which Reno's window would grow by one,
/// divided by the window (RFC 9438, Section 4.3).
const FRIENDLY_SCALE: u64 = 8 * (BETA_UNIT + BETA) / 3 / (BETA_UNIT - BETA);
/// Before the window was first full, it grows by one for at least every 20 packets acknowledged.
const UNKNOWN_MAX: u64 = 20;

/// Smallest window to which HyStart applies.
const HYSTART_WINDOW: u64 = 16;
/// Acknowledgments with at most this much time between them form a train.
const TRAIN_GAP_US: u64 = 2_000;
/// Allowance for a train beyond the minimum round-trip time: super-packets take their time.
const TRAIN_EXTRA_US: u64 = 1_000;
/// RTT samples that a round needs.
const SAMPLES: u32 = 8;
/// Slow start ends when the delay has grown by an eighth, within these bounds.
const DELAY_US: (u64, u64) = (4_000, 16_000);

/// Cubic's state. Windows in packets.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    /// Acknowledged packets for which the window grows by one.
    per_packet: u64,
    /// The window at which the network was full; 0 if unknown.
    full: u64,
    /// The window and the tick at which `per_packet` was computed.
    computed: (u64, u64),
    /// The tick at which the epoch began.
    epoch: Option<u64>,
    /// The plateau's window, and when it is reached, in 1/1024 s.
    plateau: u64,
    plateau_at: u64,
    /// Minimum round-trip time, microseconds.
    delay_min_us: Option<u64>,
    /// Packets acknowledged in the epoch, and the window that Reno would have.
    acked: u64,
    friendly: u64,
    hystart: HyStart,
}

/// HyStart: ends slow start before packets are lost.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    found: bool,
    round_start_us: u64,
    last_ack_us: u64,
    /// The round ends when this number is acknowledged.
    round_end: u64,
    rtt_us: Option<u64>,
    samples: u32,
}

impl Cubic {
    pub(super) fn new() -> Self {
        Cubic {
            per_packet: 0,
            full: 0,
            computed: (0, 0),
            epoch: None,
            plateau: 0,
            plateau_at: 0,
            delay_min_us: None,
            acked: 0,
            friendly: 0,
            hystart: HyStart::default(),
        }
    }

    /// Forgets everything after a timeout.
    pub(super) fn reset(&mut self, flow: &Flow) {
        *self = Cubic::new();
        self.hystart.begin_round(flow);
    }

    /// The slow-start threshold after a loss (Sections 4.6 and 4.7).
    pub(super) fn reduce(&mut self, cwnd: u64) -> u64 {
        self.epoch = None;
        self.full =
            if cwnd < self.full { cwnd * (BETA_UNIT + BETA) / (2 * BETA_UNIT) } else { cwnd };
        cwnd * BETA / BETA_UNIT
    }

    /// Shifts the epoch by the idle time, so that the curve does not rise meanwhile.
    pub(super) fn on_restart(&mut self, idle_us: u64) {
        if let Some(epoch) = &mut self.epoch {
            *epoch += idle_us / super::clock::TICK_US;
        }
    }

    pub(super) fn on_rtt(&mut self, flow: &mut Flow, rtt_us: u64) {
        // Right after a recovery, delays are those of a draining queue.
        let is_fresh = |epoch: u64| ticks(flow.now).saturating_sub(epoch) < HZ;
        if self.epoch.is_some_and(is_fresh) {
            return;
        }
        let rtt_us = rtt_us.max(1);
        let least_us = self.delay_min_us.map_or(rtt_us, |least_us| least_us.min(rtt_us));
        self.delay_min_us = Some(least_us);
        let looks = flow.config.hystart && !self.hystart.found && flow.in_slow_start();
        if looks && self.hystart.ends(flow, rtt_us, least_us) {
            self.hystart.found = true;
            flow.ssthresh = flow.cwnd;
        }
    }

    pub(super) fn grow(&mut self, flow: &mut Flow, acked: u64) {
        let rest = slow_start(flow, acked);
        if rest == 0 {
            return;
        }
        self.compute(flow, rest);
        increase(flow, self.per_packet, rest);
    }

    /// Computes how fast the window should grow (Sections 4.2 to 4.5).
    fn compute(&mut self, flow: &Flow, acked: u64) {
        let (cwnd, now) = (flow.cwnd, ticks(flow.now));
        self.acked += acked;
        if self.computed.0 == cwnd && now - self.computed.1 <= HZ / 32 {
            return;
        }
        if self.epoch.is_none() || now != self.computed.1 {
            self.computed = (cwnd, now);
            let epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(cwnd, now, acked));
            self.follow_curve(cwnd, now - epoch.min(now));
        }
        self.be_friendly(cwnd);
        self.per_packet = self.per_packet.max(2);
    }

    fn begin_epoch(&mut self, cwnd: u64, now: u64, acked: u64) -> u64 {
        self.epoch = Some(now);
        self.acked = acked;
        self.friendly = cwnd;
        (self.plateau, self.plateau_at) = if self.full <= cwnd {
            (cwnd, 0)
        } else {
            let cubed = (1u64 << (TIME_SHIFT + 3 * TIME_SHIFT)) / STEEPNESS * (self.full - cwnd);
            (self.full, cube_root(cubed))
        };
        now
    }

    fn follow_curve(&mut self, cwnd: u64, since_ticks: u64) {
        let round_trip = self.delay_min_us.unwrap_or(0).div_ceil(super::clock::TICK_US);
        let at = ((since_ticks + round_trip) << TIME_SHIFT) / HZ;
        let offset = u128::from(at.abs_diff(self.plateau_at));
        let change = (u128::from(STEEPNESS) * offset * offset * offset) >> (4 * TIME_SHIFT);
        let change = u64::try_from(change).unwrap_or(u64::MAX >> 1);
        let target = if at < self.plateau_at {
            self.plateau.saturating_sub(change)
        } else {
            self.plateau.saturating_add(change)
        };
        self.per_packet = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.full == 0 {
            self.per_packet = self.per_packet.min(UNKNOWN_MAX);
        }
    }

    /// Grows at least as fast as Reno would.
    fn be_friendly(&mut self, cwnd: u64) {
        let each = ((cwnd * FRIENDLY_SCALE) >> 3).max(1);
        // Like the kernel, leaves one whole share until more is acknowledged.
        let packets = self.acked.saturating_sub(1) / each;
        self.acked -= packets * each;
        self.friendly += packets;
        if self.friendly > cwnd {
            self.per_packet = self.per_packet.min(cwnd / (self.friendly - cwnd));
        }
    }
}

impl HyStart {
    fn begin_round(&mut self, flow: &Flow) {
        let now_us = flow.now_us();
        *self = HyStart {
            found: self.found,
            round_start_us: now_us,
            last_ack_us: now_us,
            round_end: flow.board.next(),
            rtt_us: None,
            samples: 0,
        };
    }

    /// Whether the pipe is full: acknowledgments have come as one train for half of the minimum
    /// round-trip time, or the delay has grown.
    fn ends(&mut self, flow: &Flow, rtt_us: u64, least_us: u64) -> bool {
        if flow.board.una() > self.round_end {
            self.begin_round(flow);
        }
        if flow.cwnd < HYSTART_WINDOW {
            return false;
        }
        let now_us = flow.now_us();
        let mut ends = false;
        if now_us - self.last_ack_us <= TRAIN_GAP_US {
            self.last_ack_us = now_us;
            let whole_us = least_us + TRAIN_EXTRA_US;
            // Pacing alone may spread a window over half of a round trip.
            let limit_us = if flow.is_paced() { whole_us } else { whole_us >> 1 };
            ends = now_us - self.round_start_us > limit_us;
        }
        self.rtt_us = Some(self.rtt_us.map_or(rtt_us, |least| least.min(rtt_us)));
        if self.samples < SAMPLES {
            self.samples += 1;
            return ends;
        }
        let allowed_us = (least_us >> 3).clamp(DELAY_US.0, DELAY_US.1);
        ends || self.rtt_us.is_some_and(|rtt_us| rtt_us > least_us + allowed_us)
    }
}

/// The cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    // As `u64::isqrt` would: bit by bit, from the highest that a root can have.
    let mut root = 0u64;
    for bit in (0..22).rev() {
        let larger = root | (1 << bit);
        if u128::from(larger).pow(3) <= u128::from(value) {
            root = larger;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for root in [0, 1, 2, 7, 1_000, 123_456, 2_000_000] {
            let cubed = u64::try_from(u128::from(root).pow(3)).unwrap_or(u64::MAX);
            assert_eq!(cube_root(cubed), root);
            assert_eq!(cube_root(cubed.saturating_sub(1)), root.saturating_sub(1));
        }
    }

    /// RFC 9438, equation 2: K is the cube root of the missing window over C.
    #[test]
    fn the_plateau_is_reached_after_k() {
        let mut cubic = Cubic::new();
        assert_eq!(cubic.reduce(100), 70);
        cubic.begin_epoch(70, 0, 1);
        let expected_s = libm::cbrt(30.0 / 0.4);
        let found_s = cubic.plateau_at as f64 / 1_024.0;
        assert!((found_s - expected_s).abs() < 0.01, "{found_s} {expected_s}");
        assert_eq!(FRIENDLY_SCALE, 15);
    }

    /// Section 4.7: a second loss below the plateau releases bandwidth.
    #[test]
    fn convergence_is_fast() {
        let mut cubic = Cubic::new();
        cubic.reduce(100);
        cubic.reduce(80);
        assert_eq!(cubic.full, 80 * 1_741 / 2_048);
    }
}
