//! Types that MACs, the radio and their driver exchange.

use core::time::Duration;

use corridor_base::Time;

use super::rate::Rate;
use crate::config::Station;
use crate::medium::Address;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Carries a payload.
    Data,
    /// Link-layer acknowledgment.
    Ack,
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
}

/// A frame on the air. Receivers access it in place; only the payload is cloned, for receivers that
/// take it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacFrame<P> {
    /// What it is for.
    pub kind: FrameKind,
    /// The sending station.
    pub from: Station,
    /// The addressee.
    pub to: Address,
    /// Distinguishes a repetition from another frame of `from`.
    pub sequence: u16,
    /// Whether these data were on the air before; 802.11's header says so (Retry), 802.15.4's does
    /// not.
    pub retry: bool,
    /// How long the exchange continues after it: others stay silent for that time (802.11's NAV).
    pub duration: Duration,
    /// PHY rate.
    pub rate: Rate,
    /// Bytes on the air after the preamble, MAC header and FCS included.
    pub mac_bytes: u32,
    /// Bytes of the payload.
    pub len_bytes: u32,
    /// The payload, in data frames.
    pub payload: Option<P>,
}

/// A transmission that a MAC wants to begin now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmit<P> {
    /// The frame.
    pub frame: MacFrame<P>,
    /// Its airtime.
    pub airtime: Duration,
}

/// Signal quality of a received frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Power at its beginning, milliwatts.
    pub power_mw: f64,
    /// Smallest SINR while it lasted, linear.
    pub sinr: f64,
}

impl Quality {
    /// Power, dBm.
    pub fn power_dbm(&self) -> f64 {
        10.0 * libm::log10(self.power_mw)
    }

    /// Smallest SINR, dB.
    pub fn sinr_db(&self) -> f64 {
        10.0 * libm::log10(self.sinr)
    }

    /// Link quality indication, 0 to 255: 0 up to an SINR of -5 dB, 255 from 15 dB on, linear in
    /// decibels between. IEEE 802.15.4-2006, 6.9.8, leaves the scale to the manufacturer, and asks
    /// for at least eight values, evenly spread.
    pub fn lqi(&self) -> u8 {
        (255.0 * (self.sinr_db() + 5.0) / 20.0).clamp(0.0, 255.0) as u8
    }
}

/// Outcome of a frame that a station offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// Its receiver acknowledged it.
    Acknowledged,
    /// It was sent, and needed no acknowledgment.
    Sent,
    /// Given up: the last attempt was not acknowledged. The receiver may have it all the same.
    RetryLimit,
    /// Given up: the channel was never found free (802.15.4).
    ChannelAccess,
}

/// An event that a MAC reports to the layer above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MacEvent<P> {
    /// A data frame was received for the first time.
    Received {
        /// When its last bit arrived.
        at: Time,
        /// The station that received it.
        station: Station,
        /// The station that sent it.
        from: Station,
        /// Whether it was addressed to `station` or to all; otherwise it was overheard.
        addressed: bool,
        /// Bytes of the payload.
        len_bytes: u32,
        /// Signal quality: power, LQI.
        quality: Quality,
        /// The payload, as it was offered.
        payload: P,
    },
    /// A frame that `station` offered is finished. There is one such event for every frame
    /// accepted, in order.
    Sent {
        /// When this was known.
        at: Time,
        /// The station that offered it.
        station: Station,
        /// The addressee.
        to: Address,
        /// Its outcome.
        outcome: SendOutcome,
        /// Number of attempts: transmissions of data, and RTS without a CTS. 0 only if the channel
        /// was never free.
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
    /// The addressee.
    pub to: Address,
    /// Bytes of the payload.
    pub len_bytes: u32,
    /// The payload.
    pub payload: P,
}

/// Counters of one station's MAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacStats {
    /// Frames offered by the station, accepted or not.
    pub offered: u64,
    /// Of these, frames refused because there was no room.
    pub refused: u64,
    /// Attempts at data frames: transmissions, and RTS without a CTS.
    pub attempts: u64,
    /// All transmissions of the station, including ACKs and the like.
    pub transmissions: u64,
    /// Their airtime.
    pub airtime: Duration,
    /// How long its receiver was locked on to frames for any destination, decoded or not.
    pub receiving: Duration,
    /// Frames that were acknowledged.
    pub acknowledged: u64,
    /// Frames sent that needed no acknowledgment.
    pub unacknowledged: u64,
    /// Frames given up after the last attempt.
    pub retry_limit: u64,
    /// Frames given up because the channel was never free.
    pub channel_access: u64,
    /// Data frames received that were addressed to the station or to all, without duplicates.
    pub received: u64,
    /// Duplicates of these, because an ACK was lost.
    pub duplicates: u64,
    /// Data frames received that were addressed to others, if these are reported.
    pub overheard: u64,
    /// Receptions that began and were not decoded.
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

/// The last frame of each sender, to detect duplicates. Bounded by the number of senders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Ordered by sender.
    last: Vec<(u32, u16)>,
}

impl Seen {
    /// Records a frame as its sender's last; returns whether it differs from the one before.
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
