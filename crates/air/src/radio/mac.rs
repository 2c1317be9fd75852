//! What MACs, the radio and their driver say to each other.

use core::time::Duration;

use corridor_base::Time;

use super::rate::Rate;
use crate::config::Station;
use crate::medium::Address;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Carries a payload.
    Data,
    /// Link-layer acknowledgement.
    Ack,
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
}

/// A frame on the air. Receivers see it where it is; nothing of it is copied but, for those whom
/// it is handed to, the payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacFrame<P> {
    /// What it is for.
    pub kind: FrameKind,
    /// The sending station.
    pub from: Station,
    /// Whom it is addressed to.
    pub to: Address,
    /// Tells a repetition from another frame of `from`.
    pub sequence: u16,
    /// How long the exchange goes on behind it: others stay silent so long (802.11's NAV).
    pub duration: Duration,
    /// Rate it is sent at.
    pub rate: Rate,
    /// Bytes on the air behind the preamble, MAC header and check sequence included.
    pub mac_bytes: u32,
    /// Bytes of the payload.
    pub len_bytes: u32,
    /// Frames of data have one.
    pub payload: Option<P>,
}

/// A transmission that a MAC wants to begin now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmit<P> {
    /// What is sent.
    pub frame: MacFrame<P>,
    /// How long it takes.
    pub airtime: Duration,
}

/// How well a frame was received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Power at its beginning, milliwatts.
    pub power_mw: f64,
    /// Least ratio of power to noise and interference while it lasted, linear.
    pub sinr: f64,
}

impl Quality {
    /// Power, dBm.
    pub fn power_dbm(&self) -> f64 {
        10.0 * libm::log10(self.power_mw)
    }

    /// Ratio of power to noise and interference, dB.
    pub fn sinr_db(&self) -> f64 {
        10.0 * libm::log10(self.sinr)
    }

    /// Link quality indication, 0 to 255: nothing at a ratio of -5 dB, everything from 15 dB on,
    /// linear in decibels between. IEEE 802.15.4-2006, 6.9.8, leaves the scale to the maker, and
    /// asks for at least eight values, spread evenly.
    pub fn lqi(&self) -> u8 {
        (255.0 * (self.sinr_db() + 5.0) / 20.0).clamp(0.0, 255.0) as u8
    }
}

/// What became of a frame that a station offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// Its receiver acknowledged it.
    Acknowledged,
    /// It was on the air; nobody was asked for an acknowledgement.
    Sent,
    /// Given up: the last attempt allowed was not acknowledged. The receiver may have it all the
    /// same.
    RetryLimit,
    /// Given up: the channel was never found free (802.15.4).
    ChannelAccess,
}

/// What a MAC tells those above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MacEvent<P> {
    /// A frame of data was received, for the first time.
    Received {
        /// When its last bit had come.
        at: Time,
        /// The station that received it.
        station: Station,
        /// The station that sent it.
        from: Station,
        /// Whether it was addressed to `station` or to all; otherwise it was overheard.
        addressed: bool,
        /// Bytes of the payload.
        len_bytes: u32,
        /// How well it was received: power, LQI.
        quality: Quality,
        /// The payload, as it was offered.
        payload: P,
    },
    /// A frame that `station` offered is through with, or given up. There is one for every frame
    /// that was taken, in order.
    Sent {
        /// When that was known.
        at: Time,
        /// The station that offered it.
        station: Station,
        /// Whom it was addressed to.
        to: Address,
        /// What became of it.
        outcome: SendOutcome,
        /// How often it was tried: transmissions of data, and of RTS that brought no CTS. 0 only
        /// if the channel was never free.
        attempts: u32,
        /// Bytes of the payload.
        len_bytes: u32,
        /// The payload, as it was offered.
        payload: P,
    },
}
