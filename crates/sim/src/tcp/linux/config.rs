//! Settings of Linux's sender and receiver.

use core::time::Duration;

use crate::tcp::config::{ConfigError, DELAYED_ACK_MIN, WINDOW_PACKETS_LIMIT, within};

/// Receive buffers (`tcp_rmem`): initial and maximum size, bytes.
const RMEM_INITIAL: u32 = 131_072;
pub(in crate::tcp) const RMEM_MAX: u32 = 33_554_432;
/// Buffer space taken by a full packet from a TAP device, bytes: headroom, payload, and the
/// kernel's metadata.
const PACKET_TRUESIZE: u32 = 2_176;

/// Congestion control, named as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438 as in `tcp_cubic.c`, with HyStart (Ha and Rhee 2011).
    Cubic,
    /// RFC 5681.
    Reno,
    /// BBR's first version (Cardwell et al. 2016), as in `tcp_bbr.c`.
    Bbr,
}

/// A sender's settings. The defaults are those of the kernel's sysctls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxSenderConfig {
    /// Congestion control.
    pub congestion: Congestion,
    /// Congestion window at the start, packets: from 1.
    pub initial_window_packets: u32,
    /// Largest window, packets: 1 to 65536. At first the receiver's window is smaller.
    pub window_packets_max: u32,
    /// Respond to echoes of congestion (RFC 3168).
    pub ecn: bool,
    /// Pace packets, as the `fq` qdisc does for Reno and Cubic; BBR always paces.
    pub pacing: bool,
    /// Leave Cubic's slow start at the first signs of queueing.
    pub hystart: bool,
    /// Bytes of data in each packet: from 1.
    pub payload_bytes: u32,
    /// Bytes of headers (IP and TCP) on each packet.
    pub header_bytes: u32,
    /// Seed of BBR's random draw, which decides where its cycle of gains begins.
    pub seed: u64,
}

impl LinuxSenderConfig {
    /// A kernel's defaults, over Ethernet. ECN is off, as for outgoing connections.
    pub fn new(congestion: Congestion) -> Self {
        LinuxSenderConfig {
            congestion,
            initial_window_packets: 10,
            window_packets_max: WINDOW_PACKETS_LIMIT,
            ecn: false,
            pacing: false,
            hystart: true,
            payload_bytes: 1_448,
            header_bytes: 52,
            seed: 0,
        }
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("initial_window_packets", self.initial_window_packets, 1, WINDOW_PACKETS_LIMIT)?;
        within("window_packets_max", self.window_packets_max, 1, WINDOW_PACKETS_LIMIT)?;
        within("payload_bytes", self.payload_bytes, 1, u32::from(u16::MAX))?;
        within("header_bytes", self.header_bytes, 0, u32::from(u16::MAX))
    }
}

/// A receiver's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxReceiverConfig {
    /// Bytes of data in each packet: from 1.
    pub payload_bytes: u32,
    /// Largest window that autotuning reaches, packets: 1 to 65536. By default for a `tcp_rmem` of
    /// 32 MB, where an Ethernet packet from a TAP device takes 2,176 bytes.
    pub window_packets_max: u32,
    /// Initial window, packets.
    pub window_packets_initial: u32,
    /// Initial capacity of the buffer, packets, at least the window: by default for a `tcp_rmem` of
    /// 128 KB.
    pub buffer_packets_initial: u32,
    /// Longest delay of an acknowledgment while packets come in quick succession
    /// (`TCP_DELACK_MIN`).
    pub delayed_ack_timeout: Duration,
    /// Bytes of an acknowledgment without SACK ranges: headers only.
    pub ack_bytes: u32,
    /// Bytes for each range of a selective acknowledgment.
    pub sack_range_bytes: u32,
}

impl LinuxReceiverConfig {
    /// A kernel's defaults, for packets with this many bytes of payload.
    pub fn new(payload_bytes: u32) -> Self {
        LinuxReceiverConfig {
            payload_bytes,
            window_packets_max: RMEM_MAX / PACKET_TRUESIZE,
            window_packets_initial: (64_240 / payload_bytes.max(1)).max(2),
            buffer_packets_initial: RMEM_INITIAL / PACKET_TRUESIZE,
            delayed_ack_timeout: DELAYED_ACK_MIN,
            ack_bytes: 52,
            sack_range_bytes: 8,
        }
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("payload_bytes", self.payload_bytes, 1, u32::from(u16::MAX))?;
        within("window_packets_max", self.window_packets_max, 1, WINDOW_PACKETS_LIMIT)?;
        within("window_packets_initial", self.window_packets_initial, 1, WINDOW_PACKETS_LIMIT)?;
        within("buffer_packets_initial", self.buffer_packets_initial, 1, WINDOW_PACKETS_LIMIT)?;
        within("sack_range_bytes", self.sack_range_bytes, 0, u32::from(u16::MAX))?;
        within("ack_bytes", self.ack_bytes, 1, u32::from(u16::MAX))
    }
}
