//! What a sender and a receiver of Linux's can be told.

use core::time::Duration;

use crate::tcp::config::{ConfigError, DELAYED_ACK_MIN, WINDOW_PACKETS_LIMIT, within};

/// Receive buffers (`tcp_rmem`): at first, and at most.
const RMEM_INITIAL: u32 = 131_072;
pub(in crate::tcp) const RMEM_MAX: u32 = 33_554_432;
/// What a full packet of a TAP device's takes of them: room for headers before it, and the kernel's
/// records of it.
const PACKET_TRUESIZE: u32 = 2_176;

/// Congestion control, by the kernel's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438 as in `tcp_cubic.c`, with HyStart (Ha and Rhee 2011).
    Cubic,
    /// RFC 5681.
    Reno,
    /// BBR's first version (Cardwell et al. 2016), as in `tcp_bbr.c`.
    Bbr,
}

/// A sender's settings. The defaults are those of the kernel's `sysctl`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxSenderConfig {
    /// Congestion control.
    pub congestion: Congestion,
    /// Congestion window at the start, packets: from 1.
    pub initial_window_packets: u32,
    /// Largest window, packets: 1 to 65536. The receiver's is less at first.
    pub window_packets_max: u32,
    /// Answer to congestion that the network echoes (RFC 3168).
    pub ecn: bool,
    /// Send at a pace, as the queueing discipline `fq` makes Reno and Cubic do; BBR always does.
    pub pacing: bool,
    /// Cubic's slow start ends with the first signs of a queue.
    pub hystart: bool,
    /// Bytes of data in each packet: from 1.
    pub payload_bytes: u32,
    /// Bytes of headers (IP and TCP) on each packet.
    pub header_bytes: u32,
    /// For what BBR draws: where it begins its cycle of gains.
    pub seed: u64,
}

impl LinuxSenderConfig {
    /// As a kernel's without anything set, over Ethernet; no ECN for what it connects to by itself.
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

    /// Checks what types cannot.
    ///
    /// # Errors
    /// Names the first field out of its range.
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
    /// Largest window that autotuning reaches, packets: 1 to 65536. `tcp_rmem` of 32 MB, of which a
    /// packet of an Ethernet's takes 2,176 bytes, as TAP devices hand it over.
    pub window_packets_max: u32,
    /// Window at the start, packets.
    pub window_packets_initial: u32,
    /// What the buffer holds at the start, packets: `tcp_rmem` of 128 KB. It is no less than the
    /// window.
    pub buffer_packets_initial: u32,
    /// Longest that an acknowledgement is delayed while packets come quickly (`TCP_DELACK_MIN`).
    pub delayed_ack_timeout: Duration,
    /// Bytes of an acknowledgement without ranges: headers only.
    pub ack_bytes: u32,
    /// Bytes for each range of a selective acknowledgement.
    pub sack_range_bytes: u32,
}

impl LinuxReceiverConfig {
    /// As a kernel's without anything set, for packets with so many bytes of data.
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

    /// Checks what types cannot.
    ///
    /// # Errors
    /// Names the first field out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("payload_bytes", self.payload_bytes, 1, u32::from(u16::MAX))?;
        within("window_packets_max", self.window_packets_max, 1, WINDOW_PACKETS_LIMIT)?;
        within("window_packets_initial", self.window_packets_initial, 1, WINDOW_PACKETS_LIMIT)?;
        within("buffer_packets_initial", self.buffer_packets_initial, 1, WINDOW_PACKETS_LIMIT)?;
        within("sack_range_bytes", self.sack_range_bytes, 0, u32::from(u16::MAX))?;
        within("ack_bytes", self.ack_bytes, 1, u32::from(u16::MAX))
    }
}
