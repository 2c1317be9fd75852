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
    /// Whether these data were on the air before; 802.11 says so in its header (Retry), 802.15.4
    /// does not.
    pub retry: bool,
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

/// A frame in a station's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queued<P> {
    /// Whom it is addressed to.
    pub to: Address,
    /// Bytes of the payload.
    pub len_bytes: u32,
    /// The payload.
    pub payload: P,
}

/// Counters of one station's MAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacStats {
    /// Frames offered by the station, taken or not.
    pub offered: u64,
    /// Of these, frames refused because there was no room.
    pub refused: u64,
    /// Attempts at frames of data: transmissions, and RTS that brought no CTS.
    pub attempts: u64,
    /// Everything the station sent, ACKs and the like included.
    pub transmissions: u64,
    /// How long these were on the air.
    pub airtime: Duration,
    /// How long its receiver was locked on to frames, whomever they were for, decoded or not.
    pub receiving: Duration,
    /// Frames that were acknowledged.
    pub acknowledged: u64,
    /// Frames that were sent to those who asked for no acknowledgement.
    pub unacknowledged: u64,
    /// Frames given up after the last attempt allowed.
    pub retry_limit: u64,
    /// Frames given up because the channel was not free.
    pub channel_access: u64,
    /// Frames of data received that were addressed to the station or to all, each once.
    pub received: u64,
    /// Such frames received again, because their ACK was lost.
    pub duplicates: u64,
    /// Frames of data received that were addressed to others, if these are told.
    pub overheard: u64,
    /// Receptions that were begun and not decoded.
    pub undecoded: u64,
}

impl MacStats {
    pub(crate) fn count(&mut self, outcome: SendOutcome) {
        let counter = match outcome {
            SendOutcome::Acknowledged => &mut self.acknowledged,
            SendOutcome::Sent => &mut self.unacknowledged,
            SendOutcome::RetryLimit => &mut self.retry_limit,
            SendOutcome::ChannelAccess => &mut self.channel_access,
        };
        *counter += 1;
    }
}

/// The last frame of each sender, so that one that comes again is known. Bounded by the senders
/// that there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// In order of senders.
    last: Vec<(u32, u16)>,
}

impl Seen {
    /// Whether a frame is another one than the last of its sender, which it becomes.
    pub fn is_new(&mut self, from: Station, sequence: u16) -> bool {
        match self.last.binary_search_by_key(&(from as u32), |entry| entry.0) {
            Ok(place) => core::mem::replace(&mut self.last[place].1, sequence) != sequence,
            Err(place) => {
                self.last.insert(place, (from as u32, sequence));
                true
            }
        }
    }
}
