//! The retransmission timeout: estimators, backoff, granularity.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

/// Backoff stops at this factor, whatever the maximum timeout.
const BACKOFF_MAX: u32 = 1 << 16;

/// How the timeout follows from the round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoEstimator {
    /// Smoothed round-trip time plus `k` times its smoothed variation (RFC 6298, Section 2), in
    /// whole ticks, with the scaled integers of 4.3BSD and ns-2.
    Smoothed {
        /// Gain of the round-trip time, alpha, is 2 to the power of minus this: 3 for 1/8.
        alpha_shift: u32,
        /// Gain of the variation, beta, is 2 to the power of minus this: 2 for 1/4.
        beta_shift: u32,
        /// Weight of the variation: 4.
        k: u32,
    },
    /// A fixed timeout.
    Fixed(Duration),
    /// `k` times the first round-trip time, and constant from then on: "semi-dynamic" in
    /// constrained-defaults-2012, Section III-C2, which measures it during session setup.
    FirstSample {
        /// Factor: 4 in the paper.
        k: u32,
    },
    /// 2 s times a random factor between 1 and 1.5, drawn for each packet that becomes the oldest
    /// unacknowledged one (CoAP, RFC 7252, Section 4.8: `ACK_TIMEOUT` and `ACK_RANDOM_FACTOR`).
    Coap {
        /// The random stream for the factor.
        key: StreamKey,
    },
}

/// `ACK_TIMEOUT` of CoAP: its shortest timeout.
pub const COAP_TIMEOUT: Duration = Duration::from_secs(2);

/// Difference between CoAP's longest and shortest timeout: `ACK_RANDOM_FACTOR` is 1.5.
pub const COAP_SPREAD: Duration = Duration::from_secs(1);

impl RtoEstimator {
    /// Gains of RFC 6298: 1/8, 1/4, and 4 times the variation.
    pub const RFC6298: RtoEstimator =
        RtoEstimator::Smoothed { alpha_shift: 3, beta_shift: 2, k: 4 };
}

/// Settings of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Timeout before the first round-trip time is known.
    pub initial: Duration,
    /// Smallest timeout, before backoff.
    pub min: Duration,
    /// Smallest value of the variation term that is added to the smoothed round-trip time. Linux
    /// applies its minimum here, which keeps the timeout well above the round-trip time itself.
    pub margin_min: Duration,
    /// Largest timeout, after backoff.
    pub max: Duration,
    /// Tick of the clock that measures (G of RFC 6298; `tcpTick_` of ns-2).
    pub granularity: Duration,
    /// How the timeout follows from the round-trip times.
    pub estimator: RtoEstimator,
    /// Double the timeout at each expiry in a row (RFC 6298, rule 5.5).
    pub backoff: bool,
    /// Beyond this backoff factor, forget the measured round-trip time (RFC 6298, end of Section 5;
    /// 8 in ns-2).
    pub forgets_beyond_backoff: Option<u32>,
}

impl RtoConfig {
    /// As in ns-2.35: 3 s at first, 200 ms to 60 s, ticks of 10 ms.
    pub fn ns2() -> Self {
        RtoConfig {
            initial: Duration::from_secs(3),
            min: Duration::from_millis(200),
            margin_min: Duration::ZERO,
            max: Duration::from_secs(60),
            granularity: Duration::from_millis(10),
            estimator: RtoEstimator::RFC6298,
            backoff: true,
            forgets_beyond_backoff: Some(8),
        }
    }

    /// As in RFC 6298: 1 s at first, 1 s to 60 s, clock of 1 ms.
    pub fn rfc6298() -> Self {
        RtoConfig {
            initial: Duration::from_secs(1),
            min: Duration::from_secs(1),
            granularity: Duration::from_millis(1),
            forgets_beyond_backoff: None,
            ..RtoConfig::ns2()
        }
    }

    /// As in Linux: 1 s at first, then at least 200 ms (`TCP_RTO_MIN`) more than the smoothed
    /// round-trip time.
    pub fn linux() -> Self {
        let least = Duration::from_millis(200);
        RtoConfig { min: least, margin_min: least, ..RtoConfig::rfc6298() }
    }

    /// As in constrained-defaults-2012, Section II-B: 1 s at first, at least 500 ms, clock of 1 ms.
    pub fn constrained() -> Self {
        RtoConfig { min: Duration::from_millis(500), ..RtoConfig::rfc6298() }
    }
}

/// The state of one timeout.
#[derive(Clone, Debug)]
pub(super) struct Rto {
    config: RtoConfig,
    /// Smoothed round-trip time in ticks, times 2 to the power of `alpha_shift`; zero before the
    /// first sample.
    srtt_scaled: u64,
    /// Variation in ticks, times 2 to the power of `beta_shift`.
    rttvar_scaled: u64,
    /// The timeout without bounds and backoff.
    current: Duration,
    backoff: u32,
    sampled: bool,
    stream: Option<Box<Stream>>,
}

impl Rto {
    pub(super) fn new(config: RtoConfig) -> Self {
        let (current, stream) = match config.estimator {
            RtoEstimator::Fixed(timeout) => (timeout, None),
            RtoEstimator::Coap { key } => (COAP_TIMEOUT, Some(Box::new(key.stream()))),
            _ => (config.initial, None),
        };
        Rto {
            config,
            srtt_scaled: 0,
            rttvar_scaled: 0,
            current,
            backoff: 1,
            sampled: false,
            stream,
        }
    }

    /// The timeout of a timer that is started now.
    pub(super) fn arm(&mut self) -> Duration {
        if self.backoff == 1
            && let Some(stream) = &mut self.stream
        {
            // 32 bits between 2 s and 3 s: steps of a quarter of a nanosecond.
            let spread_ns = (u64::from(stream.next_u32()) * COAP_SPREAD.as_nanos() as u64) >> 32;
            self.current = COAP_TIMEOUT + Duration::from_nanos(spread_ns);
        }
        self.timeout()
    }

    /// The timeout with bounds and backoff.
    pub(super) fn timeout(&self) -> Duration {
        let config = &self.config;
        let backed_off = self.current.max(config.min).saturating_mul(self.backoff);
        // The clock's resolution: a timer shorter than two ticks might expire at once.
        backed_off.min(config.max).max(config.granularity * 2)
    }

    /// Doubles the timeout after an expiry (Karn; RFC 6298, rule 5.5).
    pub(super) fn back_off(&mut self) {
        if self.config.backoff && self.timeout() < self.config.max && self.backoff < BACKOFF_MAX {
            self.backoff *= 2;
        }
        if self.config.forgets_beyond_backoff.is_some_and(|factor| self.backoff > factor) {
            self.srtt_scaled = 0;
        }
    }

    /// Ends the backoff: a packet sent only once has been acknowledged.
    pub(super) fn end_backoff(&mut self) {
        self.backoff = 1;
    }

    /// The smoothed round-trip time, once it is known.
    pub(super) fn srtt(&self) -> Option<Duration> {
        let RtoEstimator::Smoothed { alpha_shift, .. } = self.config.estimator else { return None };
        let ticks = self.srtt_scaled;
        (ticks > 0).then(|| Duration::from_nanos((ticks * duration_ns(self.tick())) >> alpha_shift))
    }

    /// Takes a sample: a packet sent at `sent_at` was acknowledged now. The clock has whole ticks
    /// only.
    pub(super) fn sample_by_clock(&mut self, now: Time, sent_at: Time) {
        let tick = duration_ns(self.tick());
        self.sample(now.as_nanos() / tick - sent_at.as_nanos().min(now.as_nanos()) / tick);
        self.first(now.since(sent_at));
    }

    /// Takes a sample from the timestamp that an acknowledgment echoed.
    pub(super) fn sample_by_echo(&mut self, now: Time, sent_at: Time) {
        let tick = duration_ns(self.tick());
        self.sample((duration_ns(now.since(sent_at)) + tick / 2) / tick);
        self.first(now.since(sent_at));
    }

    fn tick(&self) -> Duration {
        self.config.granularity
    }

    /// Takes the only sample of the estimator that uses the first one.
    fn first(&mut self, rtt: Duration) {
        if let RtoEstimator::FirstSample { k } = self.config.estimator
            && !self.sampled
        {
            self.current = rtt * k;
            self.sampled = true;
        }
    }

    /// RFC 6298, rules 2.2 and 2.3, on scaled integers.
    fn sample(&mut self, rtt_ticks: u64) {
        let RtoEstimator::Smoothed { alpha_shift, beta_shift, k } = self.config.estimator else {
            return;
        };
        let rtt = rtt_ticks.max(1);
        if self.srtt_scaled == 0 {
            self.srtt_scaled = rtt << alpha_shift;
            self.rttvar_scaled = rtt << (beta_shift - 1);
        } else {
            let srtt = self.srtt_scaled >> alpha_shift;
            self.srtt_scaled = (self.srtt_scaled + rtt).saturating_sub(srtt).max(1);
            let variation = self.rttvar_scaled >> beta_shift;
            let deviation = rtt.abs_diff(srtt);
            self.rttvar_scaled = (self.rttvar_scaled + deviation).saturating_sub(variation).max(1);
        }
        // The scaled variation is at least 1, which gives RFC 6298's max(G, K * RTTVAR).
        let variation_scaled = ((u64::from(k) * self.rttvar_scaled) << alpha_shift) >> beta_shift;
        let ticks = (variation_scaled + self.srtt_scaled) >> alpha_shift;
        let tick = duration_ns(self.tick());
        let current = Duration::from_nanos(ticks.saturating_mul(tick));
        let srtt = Duration::from_nanos((self.srtt_scaled.saturating_mul(tick)) >> alpha_shift);
        self.current = current.max(srtt + self.config.margin_min);
    }
}

/// Whole nanoseconds, saturating.
pub(super) fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StreamKey = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "rto" };

    fn coap() -> Rto {
        Rto::new(RtoConfig { estimator: RtoEstimator::Coap { key: KEY }, ..RtoConfig::rfc6298() })
    }

    #[test]
    fn coap_draws_between_2_s_and_3_s() {
        let mut rto = coap();
        let drawn: Vec<Duration> = (0..1000).map(|_| rto.arm()).collect();
        let bounds = Duration::from_secs(2)..Duration::from_secs(3);
        assert!(drawn.iter().all(|timeout| bounds.contains(timeout)));
        let mean_s = drawn.iter().map(Duration::as_secs_f64).sum::<f64>() / 1000.0;
        assert!((mean_s - 2.5).abs() < 0.03, "{mean_s} s");
        let mut again = coap();
        assert!(drawn.iter().all(|timeout| *timeout == again.arm()), "the same key, other draws");
    }

    #[test]
    fn coap_backs_off_from_what_was_drawn() {
        let mut rto = coap();
        let drawn = rto.arm();
        rto.back_off();
        assert_eq!(rto.arm(), drawn * 2);
        rto.back_off();
        assert_eq!(rto.arm(), drawn * 4);
    }

    /// ns-2 forgets the smoothed round-trip time after backing off by more than 8.
    #[test]
    fn a_long_backoff_forgets() {
        let mut rto = Rto::new(RtoConfig::ns2());
        rto.sample_by_clock(Time::from_millis(1000), Time::ZERO);
        (0..3).for_each(|_| rto.back_off());
        assert_eq!(rto.srtt(), Some(Duration::from_secs(1)));
        rto.back_off();
        assert_eq!(rto.srtt(), None);
        rto.end_backoff();
        rto.sample_by_clock(Time::from_millis(100), Time::ZERO);
        assert_eq!(rto.timeout(), Duration::from_millis(300), "as if it were the first");
    }

    #[test]
    fn a_timer_is_never_shorter_than_two_ticks() {
        let fixed = RtoEstimator::Fixed(Duration::from_micros(1));
        let config =
            RtoConfig { estimator: fixed, min: Duration::ZERO, ..RtoConfig::constrained() };
        assert_eq!(Rto::new(config).timeout(), Duration::from_millis(2));
    }
}
