//! Settings of senders and receivers, and the errors in them.

use core::time::Duration;

use super::rto::{RtoConfig, RtoEstimator};
use super::segment::Segment;

/// Duplicate acknowledgments that indicate a loss (RFC 5681, Section 3.2).
pub const DUPLICATES_THRESHOLD: u32 = 3;

/// Largest maximum window, in packets: the most that a receiver may have to buffer.
pub const WINDOW_PACKETS_LIMIT: u32 = 1 << 16;

/// Congestion window after a timeout, in packets (RFC 5681, Section 3.1: the loss window).
pub const LOSS_WINDOW_PACKETS: u32 = 1;

/// Smallest slow-start threshold, in packets (RFC 5681, equation 4).
pub(super) const SSTHRESH_PACKETS_MIN: f64 = 2.0;

/// Largest window of Linux in 2014, packets: the most that a receive buffer of 6 MB offers.
const LINUX_2014_WINDOW_PACKETS: u32 = 2_048;

/// Longest delay of an acknowledgment in Linux while packets come in quick succession
/// (`TCP_DELACK_MIN`).
pub(super) const DELAYED_ACK_MIN: Duration = Duration::from_millis(40);

/// How the congestion window grows, and how losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Slow start after every loss (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgment (RFC 5681).
    Reno,
    /// Fast recovery until all that was in flight is acknowledged (RFC 6582).
    NewReno,
    /// Recovery by selective acknowledgments (RFC 6675), growth as Reno's.
    Sack,
    /// Growth along a cubic (RFC 9438), recovery by selective acknowledgments.
    Cubic,
    /// Growth by the delay of the bottleneck's queue (Brakmo and Peterson 1995).
    Vegas(VegasConfig),
    /// RFC 793 with slow start and nothing else: the window grows by a packet for each
    /// acknowledgment, up to the maximum window, and only the timer detects losses
    /// (constrained-defaults-2012, Section II-B).
    SlowStart,
}

/// Thresholds of Vegas, in packets queued at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasConfig {
    /// Fewer queued than this: the window grows.
    pub alpha_packets: u32,
    /// More queued than this: the window shrinks.
    pub beta_packets: u32,
    /// More queued than this: slow start ends.
    pub gamma_packets: u32,
    /// Whether a fast retransmit backs the retransmission timer off, as in ns-2, so that the
    /// fine-grained timeout detects a second loss of the same packet; in BSD it does not.
    pub backs_off: bool,
}

impl Default for VegasConfig {
    /// 1, 3 and 1, as in ns-2 and in the paper's Vegas-1,3.
    fn default() -> Self {
        VegasConfig { alpha_packets: 1, beta_packets: 3, gamma_packets: 1, backs_off: true }
    }
}

/// What is halved when packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The window, as in ns-2 (`slowdown`, with `precisionReduce_`): the threshold is rounded down
    /// to a whole packet, and a second timeout halves it again.
    Window,
    /// What is in flight (RFC 5681, equation 4): a second timeout keeps the threshold.
    Flight,
}

/// Which round-trip times are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSampling {
    /// One packet at a time, never a retransmitted one (Karn).
    OnePacket,
    /// Every acknowledgment of new data, by its echoed timestamp (RFC 7323).
    Timestamps,
}

/// A sender's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderConfig {
    /// Congestion control and recovery.
    pub variant: Variant,
    /// Maximum window in packets (the receiver's window): 1 to [`WINDOW_PACKETS_LIMIT`].
    pub window_packets_max: u32,
    /// Congestion window at the start, in packets: from 1.
    pub initial_window_packets: u32,
    /// Slow-start threshold at the start, in packets; without it, the maximum window.
    pub initial_ssthresh_packets: Option<u32>,
    /// Send a new packet for each of the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// No second fast retransmit for losses within one window: `bugFix_` of ns-2, "careful" in RFC
    /// 6582.
    pub careful: bool,
    /// What is halved on loss.
    pub reduction: Reduction,
    /// After an idle time of a retransmission timeout, return to slow start (RFC 5681, Section
    /// 4.1).
    pub slow_start_restart: bool,
    /// Whether Cubic leaves slow start at the first signs of queueing, as in Linux; in ns-2 it does
    /// not.
    pub hystart: bool,
    /// Which round-trip times are sampled.
    pub rtt_sampling: RttSampling,
    /// Halve the window, at most once in a round trip, in response to ECN echoes (RFC 3168).
    pub ecn: bool,
    /// Retransmission timeout.
    pub rto: RtoConfig,
    /// Bytes of data in each packet: from 1.
    pub payload_bytes: u32,
    /// Bytes of headers (IP and TCP) on each packet.
    pub header_bytes: u32,
}

impl SenderConfig {
    /// The defaults of ns-2.35's agents: first timeout 3 s, at least 200 ms, ticks of 10 ms, window
    /// 20, 1000 bytes with 40 of headers, limited transmit, `bugFix_`.
    ///
    /// The handshake is not modelled, so the initial window applies from the start.
    pub fn ns2(variant: Variant) -> Self {
        SenderConfig {
            variant,
            window_packets_max: 20,
            initial_window_packets: 2,
            initial_ssthresh_packets: None,
            limited_transmit: true,
            careful: true,
            reduction: Reduction::Window,
            slow_start_restart: true,
            hystart: false,
            rtt_sampling: RttSampling::OnePacket,
            ecn: false,
            rto: RtoConfig::ns2(),
            payload_bytes: 1000,
            header_bytes: 40,
        }
    }

    /// As in the RFCs (5681, 6298, 6928, 3042, 7323): initial window 10, first timeout 1 s, at
    /// least 1 s, timestamps, reduction by what is in flight.
    pub fn rfc(variant: Variant) -> Self {
        SenderConfig {
            variant,
            window_packets_max: WINDOW_PACKETS_LIMIT,
            initial_window_packets: 10,
            initial_ssthresh_packets: None,
            limited_transmit: true,
            careful: true,
            reduction: Reduction::Flight,
            slow_start_restart: true,
            hystart: false,
            rtt_sampling: RttSampling::Timestamps,
            ecn: true,
            rto: RtoConfig::rfc6298(),
            payload_bytes: 1448,
            header_bytes: 52,
        }
    }

    /// Linux as of 2014, for figures of that time: initial window 10, Linux's timeouts, timestamps,
    /// HyStart, and a window of the largest receive buffer, 6 MB; neither RACK nor tail loss
    /// probes. Selective acknowledgments for the variants that use them; no ECN.
    pub fn linux_2014(variant: Variant) -> Self {
        SenderConfig {
            window_packets_max: LINUX_2014_WINDOW_PACKETS,
            ecn: false,
            hystart: true,
            // While a packet is missing, more than the window is in flight: half of that would
            // refill a queue after each timeout.
            reduction: Reduction::Window,
            rto: RtoConfig::linux(),
            ..SenderConfig::rfc(variant)
        }
    }

    /// For nodes with little memory and a slow radio, as in constrained-defaults-2012, II-B: window
    /// 8, initial window 1, initial timeout 1 s, at least 500 ms, clock of 1 ms, Karn's rule.
    pub fn constrained(variant: Variant) -> Self {
        SenderConfig {
            window_packets_max: 8,
            initial_window_packets: 1,
            limited_transmit: false,
            reduction: Reduction::Flight,
            slow_start_restart: false,
            rtt_sampling: RttSampling::OnePacket,
            ecn: false,
            rto: RtoConfig::constrained(),
            payload_bytes: 94,
            header_bytes: 0,
            ..SenderConfig::rfc(variant)
        }
    }

    /// Bytes of a data packet, headers included.
    pub fn data_len_bytes(&self) -> u32 {
        self.payload_bytes + self.header_bytes
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("window_packets_max", self.window_packets_max, 1, WINDOW_PACKETS_LIMIT)?;
        within("initial_window_packets", self.initial_window_packets, 1, WINDOW_PACKETS_LIMIT)?;
        within("payload_bytes", self.payload_bytes, 1, u32::from(u16::MAX))?;
        within("header_bytes", self.header_bytes, 0, u32::from(u16::MAX))?;
        if let Some(packets) = self.initial_ssthresh_packets {
            within("initial_ssthresh_packets", packets, 1, WINDOW_PACKETS_LIMIT)?;
        }
        if let Variant::Vegas(vegas) = self.variant {
            within("beta_packets", vegas.beta_packets, vegas.alpha_packets, WINDOW_PACKETS_LIMIT)?;
        }
        self.rto.check()
    }
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// An acknowledgment confirms everything that has arrived, and is updated while it waits to be
    /// sent (constrained-defaults-2012, Section III-C1, i).
    Cumulative,
    /// Each packet gets an acknowledgment of its own, which keeps its place in the queue
    /// (constrained-defaults-2012, Section III-C1, ii).
    Positive,
}

/// A receiver's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Keep packets that arrive beyond a gap; otherwise they are discarded and the sender must go
    /// back (go-back-N, the model of network-coded-tcp-2012, Section II).
    pub keeps_out_of_order: bool,
    /// In-order packets for each acknowledgment: from 1, which acknowledges every packet.
    pub delayed_ack_packets: u32,
    /// Longest delay of an acknowledgment (RFC 1122: at most 500 ms).
    pub delayed_ack_timeout: Duration,
    /// Cumulative or positive acknowledgments; positive ones are never delayed.
    pub acks: Acks,
    /// Report what has arrived beyond a gap (RFC 2018).
    pub sack: bool,
    /// Most packets that are buffered beyond a gap: 1 to [`WINDOW_PACKETS_LIMIT`].
    pub window_packets_max: u32,
    /// Advertise a receive window in acknowledgments; without it, as in ns-2, nothing limits the
    /// sender.
    pub tells_window: bool,
    /// Bytes of an acknowledgment without SACK ranges: headers only.
    pub ack_bytes: u32,
    /// Bytes for each range of a selective acknowledgment: 8 (RFC 2018, Section 3).
    pub sack_range_bytes: u32,
}

impl ReceiverConfig {
    /// As ns-2's `Agent/TCPSink`, or `Agent/TCPSink/Sack1` with `sack`: acknowledges every packet
    /// at once, in 40 bytes.
    pub fn ns2(sack: bool) -> Self {
        ReceiverConfig {
            keeps_out_of_order: true,
            delayed_ack_packets: 1,
            delayed_ack_timeout: Duration::from_millis(100),
            acks: Acks::Cumulative,
            sack,
            window_packets_max: WINDOW_PACKETS_LIMIT,
            tells_window: false,
            ack_bytes: 40,
            sack_range_bytes: 8,
        }
    }

    /// The receiver for [`SenderConfig::linux_2014`]: acknowledges every second packet, or a single
    /// one after 40 ms, and advertises the window that is left, in 52 bytes without SACK ranges.
    pub fn linux_2014() -> Self {
        ReceiverConfig {
            delayed_ack_packets: 2,
            delayed_ack_timeout: DELAYED_ACK_MIN,
            window_packets_max: LINUX_2014_WINDOW_PACKETS,
            tells_window: true,
            ack_bytes: 52,
            ..ReceiverConfig::ns2(true)
        }
    }

    /// As [`ReceiverConfig::ns2`] without selective acknowledgments, but discards what is out of
    /// order.
    pub fn go_back_n() -> Self {
        ReceiverConfig { keeps_out_of_order: false, ..ReceiverConfig::ns2(false) }
    }

    /// Bytes of an acknowledgment, headers and SACK ranges included.
    pub fn ack_len_bytes(&self, ack: &Segment) -> u32 {
        let ranges = match ack {
            Segment::Ack { sack, .. } => {
                sack.iter().filter(|range| range.end > range.start).count()
            }
            Segment::Data { .. } => 0,
        };
        self.ack_bytes + ranges as u32 * self.sack_range_bytes
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("delayed_ack_packets", self.delayed_ack_packets, 1, WINDOW_PACKETS_LIMIT)?;
        within("window_packets_max", self.window_packets_max, 1, WINDOW_PACKETS_LIMIT)?;
        within("sack_range_bytes", self.sack_range_bytes, 0, u32::from(u16::MAX))?;
        within("ack_bytes", self.ack_bytes, 1, u32::from(u16::MAX))
    }
}

/// A setting that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {given}: expected {expected}")]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// Its value.
    pub given: String,
    /// The values allowed.
    pub expected: String,
}

/// Checks that `given` lies from `min` to `max`.
pub(super) fn within(
    field: &'static str,
    given: u32,
    min: u32,
    max: u32,
) -> Result<(), ConfigError> {
    if (min..=max).contains(&given) {
        return Ok(());
    }
    Err(ConfigError { field, given: given.to_string(), expected: format!("{min} to {max}") })
}

impl RtoConfig {
    /// Checks the ranges of the settings.
    fn check(&self) -> Result<(), ConfigError> {
        let error = |field, given: Duration, expected: &str| {
            Err(ConfigError { field, given: format!("{given:?}"), expected: expected.to_string() })
        };
        if self.granularity.is_zero() {
            return error("rto.granularity", self.granularity, "more than 0");
        }
        if self.initial.is_zero() {
            return error("rto.initial", self.initial, "more than 0");
        }
        if self.max < self.min {
            return error("rto.max", self.max, "at least rto.min");
        }
        if let RtoEstimator::Smoothed { alpha_shift, beta_shift, k } = self.estimator {
            within("rto.alpha_shift", alpha_shift, 1, 16)?;
            within("rto.beta_shift", beta_shift, 1, 16)?;
            within("rto.k", k, 1, 16)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_field() {
        let good = SenderConfig::ns2(Variant::Reno);
        assert_eq!(good.check(), Ok(()));
        let told = |config: SenderConfig| config.check().unwrap_err().to_string();
        let window = SenderConfig { window_packets_max: 0, ..good };
        assert_eq!(told(window), "window_packets_max is 0: expected 1 to 65536");
        let rto = RtoConfig { granularity: Duration::ZERO, ..good.rto };
        assert_eq!(
            told(SenderConfig { rto, ..good }),
            "rto.granularity is 0ns: expected more than 0"
        );
        let rto = RtoConfig { max: Duration::from_millis(1), ..good.rto };
        assert_eq!(told(SenderConfig { rto, ..good }), "rto.max is 1ms: expected at least rto.min");
        let vegas = VegasConfig { alpha_packets: 4, ..VegasConfig::default() };
        let vegas = SenderConfig { variant: Variant::Vegas(vegas), ..good };
        assert_eq!(told(vegas), "beta_packets is 3: expected 4 to 65536");
        let receiver = ReceiverConfig { delayed_ack_packets: 0, ..ReceiverConfig::ns2(false) };
        let told = receiver.check().unwrap_err().to_string();
        assert_eq!(told, "delayed_ack_packets is 0: expected 1 to 65536");
    }

    #[test]
    fn ranges_cost_bytes() {
        let config = ReceiverConfig::ns2(true);
        let mut sack = [super::super::SackRange::default(); super::super::SACK_RANGES_MAX];
        sack[0].end = 1;
        let ack = Segment::Ack {
            next: 0,
            echo: corridor_base::Time::ZERO,
            echo_retransmission: false,
            sack,
            congestion_echo: false,
            window_end: None,
        };
        assert_eq!(config.ack_len_bytes(&ack), 48);
    }
}
