//! One interface to both kinds of TCP: the agents of the papers and of ns-2, and Linux's.

use core::time::Duration;

use corridor_base::Time;

use super::config::{ConfigError, ReceiverConfig, SenderConfig};
use super::core::SenderStats;
use super::linux::{
    self, LinuxReceiver, LinuxReceiverConfig, LinuxSender, LinuxSenderConfig, SACK_HEAD_LEN,
};
use super::receiver::{Receiver, ReceiverStats};
use super::segment::{SACK_RANGES_MAX, Segment};
use super::sender::Sender;

/// Largest receive buffer of hosts with the papers' agents, bytes: that of Linux at the time
/// (`tcp_rmem`).
const CLASSIC_RMEM_MAX: u32 = 6 << 20;

/// A sender's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SenderSettings {
    /// For the agents of ns-2 and of the papers.
    Classic(SenderConfig),
    /// For Linux.
    Linux(LinuxSenderConfig),
}

impl From<SenderConfig> for SenderSettings {
    fn from(config: SenderConfig) -> Self {
        SenderSettings::Classic(config)
    }
}

impl From<LinuxSenderConfig> for SenderSettings {
    fn from(config: LinuxSenderConfig) -> Self {
        SenderSettings::Linux(config)
    }
}

impl SenderSettings {
    /// Bytes of payload in each packet.
    pub fn payload_bytes(&self) -> u32 {
        match self {
            SenderSettings::Classic(config) => config.payload_bytes,
            SenderSettings::Linux(config) => config.payload_bytes,
        }
    }

    /// Bytes of headers on each packet.
    pub fn header_bytes(&self) -> u32 {
        match self {
            SenderSettings::Classic(config) => config.header_bytes,
            SenderSettings::Linux(config) => config.header_bytes,
        }
    }

    /// Bytes of a data packet, headers included.
    pub fn data_len_bytes(&self) -> u32 {
        self.payload_bytes() + self.header_bytes()
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            SenderSettings::Classic(config) => config.check(),
            SenderSettings::Linux(config) => config.check(),
        }
    }
}

/// A receiver's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverSettings {
    /// For the agents of ns-2 and of the papers.
    Classic(ReceiverConfig),
    /// For Linux.
    Linux(LinuxReceiverConfig),
}

impl From<ReceiverConfig> for ReceiverSettings {
    fn from(config: ReceiverConfig) -> Self {
        ReceiverSettings::Classic(config)
    }
}

impl From<LinuxReceiverConfig> for ReceiverSettings {
    fn from(config: LinuxReceiverConfig) -> Self {
        ReceiverSettings::Linux(config)
    }
}

impl ReceiverSettings {
    /// The host's window scale, in bits: chosen so that the largest receive buffer fits into 15 of
    /// the 16 bits of the window field, as Linux does (`tcp_select_initial_window`).
    pub fn window_scale(&self) -> u8 {
        let buffer_bytes = match self {
            ReceiverSettings::Classic(_) => CLASSIC_RMEM_MAX,
            ReceiverSettings::Linux(_) => linux::RMEM_MAX,
        };
        buffer_bytes.ilog2().saturating_sub(15) as u8
    }

    /// Bytes of an acknowledgment without SACK ranges.
    pub fn ack_bytes(&self) -> u32 {
        match self {
            ReceiverSettings::Classic(config) => config.ack_bytes,
            ReceiverSettings::Linux(config) => config.ack_bytes,
        }
    }

    /// Bytes of an acknowledgment with the most SACK ranges.
    pub fn ack_bytes_max(&self) -> u32 {
        let ranges = SACK_RANGES_MAX as u32;
        match self {
            ReceiverSettings::Classic(config) if !config.sack => config.ack_bytes,
            ReceiverSettings::Classic(config) => {
                config.ack_bytes + ranges * config.sack_range_bytes
            }
            ReceiverSettings::Linux(config) => {
                config.ack_bytes + SACK_HEAD_LEN + ranges * config.sack_range_bytes
            }
        }
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            ReceiverSettings::Classic(config) => config.check(),
            ReceiverSettings::Linux(config) => config.check(),
        }
    }
}

/// Calls a method of whichever kind it is.
macro_rules! each {
    ($self:expr, $kind:ident, $inner:ident => $call:expr) => {
        match $self {
            $kind::Classic($inner) => $call,
            $kind::Linux($inner) => $call,
        }
    };
}

/// A sender of either kind.
#[derive(Clone, Debug)]
pub enum AnySender {
    /// As in ns-2 and the papers.
    Classic(Box<Sender>),
    /// As in Linux.
    Linux(Box<LinuxSender>),
}

impl AnySender {
    /// A sender with nothing to send yet.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is out of its range.
    pub fn new(settings: SenderSettings) -> Result<Self, ConfigError> {
        Ok(match settings {
            SenderSettings::Classic(config) => AnySender::Classic(Box::new(Sender::new(config)?)),
            SenderSettings::Linux(config) => AnySender::Linux(Box::new(LinuxSender::new(config)?)),
        })
    }

    /// Bytes of payload in each packet.
    pub fn payload_bytes(&self) -> u32 {
        each!(self, AnySender, sender => sender.config().payload_bytes)
    }

    /// Bytes of headers on each packet.
    pub fn header_bytes(&self) -> u32 {
        each!(self, AnySender, sender => sender.config().header_bytes)
    }

    /// Largest window, packets.
    pub fn window_packets_max(&self) -> u32 {
        each!(self, AnySender, sender => sender.config().window_packets_max)
    }

    /// The application offers `packets` more; `u64::MAX` stands for unlimited data.
    pub fn offer(&mut self, packets: u64) {
        each!(self, AnySender, sender => sender.offer(packets));
    }

    /// Packets offered so far.
    pub fn offered(&self) -> u64 {
        each!(self, AnySender, sender => sender.offered())
    }

    /// Packets acknowledged so far: all before this number have arrived.
    pub fn acknowledged(&self) -> u64 {
        each!(self, AnySender, sender => sender.acknowledged())
    }

    /// Packets sent and not yet acknowledged.
    pub fn in_flight(&self) -> u64 {
        each!(self, AnySender, sender => sender.in_flight())
    }

    /// Whether everything offered has been acknowledged.
    pub fn is_done(&self) -> bool {
        each!(self, AnySender, sender => sender.is_done())
    }

    /// Counters since the start, and current gauges.
    pub fn stats(&self) -> SenderStats {
        each!(self, AnySender, sender => sender.stats())
    }

    /// Expiries of the retransmission timer, without copying all counters.
    pub fn timeouts(&self) -> u64 {
        each!(self, AnySender, sender => sender.timeouts())
    }

    /// Congestion window in packets, without copying all counters.
    pub fn cwnd_packets(&self) -> f64 {
        each!(self, AnySender, sender => sender.cwnd_packets())
    }

    /// Retransmission timeout in force, backoff included.
    pub fn rto(&self) -> Duration {
        each!(self, AnySender, sender => sender.rto())
    }

    /// Processes an acknowledgment.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        each!(self, AnySender, sender => sender.handle_segment(now, segment));
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        each!(self, AnySender, sender => sender.handle_timeout(now));
    }

    /// When to call [`AnySender::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        each!(self, AnySender, sender => sender.poll_timeout())
    }

    /// The next packet that may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        each!(self, AnySender, sender => sender.poll_transmit(now))
    }
}

/// A receiver of either kind.
#[derive(Clone, Debug)]
pub enum AnyReceiver {
    /// As in ns-2 and the papers.
    Classic(Box<Receiver>),
    /// As in Linux.
    Linux(Box<LinuxReceiver>),
}

impl AnyReceiver {
    /// A receiver that expects number 0.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is out of its range.
    pub fn new(settings: ReceiverSettings) -> Result<Self, ConfigError> {
        Ok(match settings {
            ReceiverSettings::Classic(config) => {
                AnyReceiver::Classic(Box::new(Receiver::new(config)?))
            }
            ReceiverSettings::Linux(config) => {
                AnyReceiver::Linux(Box::new(LinuxReceiver::new(config)?))
            }
        })
    }

    /// The number expected next, which is also the number of packets delivered.
    pub fn next_expected(&self) -> u64 {
        each!(self, AnyReceiver, receiver => receiver.next_expected())
    }

    /// Packets delivered to the application, each once and in order.
    pub fn delivered(&self) -> u64 {
        each!(self, AnyReceiver, receiver => receiver.delivered())
    }

    /// Packets buffered beyond a gap.
    pub fn out_of_order(&self) -> u64 {
        each!(self, AnyReceiver, receiver => receiver.out_of_order())
    }

    /// Counters since the start.
    pub fn stats(&self) -> ReceiverStats {
        each!(self, AnyReceiver, receiver => receiver.stats())
    }

    /// Bytes of an acknowledgment on a link. With the papers' agents the length does not depend on
    /// SACK ranges.
    pub fn ack_len_bytes(&self, ack: &Segment) -> u32 {
        match self {
            AnyReceiver::Classic(receiver) => receiver.config().ack_bytes,
            AnyReceiver::Linux(receiver) => receiver.ack_len_bytes(ack),
        }
    }

    /// Processes a data packet.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        each!(self, AnyReceiver, receiver => receiver.handle_segment(now, segment));
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        each!(self, AnyReceiver, receiver => receiver.handle_timeout(now));
    }

    /// When to call [`AnyReceiver::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        each!(self, AnyReceiver, receiver => receiver.poll_timeout())
    }

    /// The next acknowledgment to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        each!(self, AnyReceiver, receiver => receiver.poll_transmit(now))
    }
}
