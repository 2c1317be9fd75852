//! Configuration of a medium, as plain data; [`MediumConfig::check`] finds invalid values.

use core::time::Duration;

use crate::erasure::ErasureConfig;
use crate::error::AirError;
use crate::jitter::Jitter;
use crate::limits::{MAX_QUEUE_FRAMES, MAX_SPAN, MAX_STATIONS};

/// A station of one medium: its index, 0 to [`MediumConfig::stations`] - 1.
pub type Station = usize;

/// Who shares a channel with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// One channel for all stations: at most one of them is sending at any time.
    Half,
    /// A channel for every station: all of them can send at the same time, and hear while sending.
    Full,
}

/// A directed link: station `to` hears what station `from` sends, whomever it is addressed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The sending station.
    pub from: Station,
    /// The hearing station, not `from`.
    pub to: Station,
    /// Which transmissions are not heard; `ratio.into()` for independent losses.
    pub erasure: ErasureConfig,
    /// Most retransmissions of one frame addressed to `to`; 0 for none. Frames addressed to all or
    /// to another station are not retransmitted because of this link.
    pub retry_limit: u32,
}

/// A medium: its stations, links, timing and random seed.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// Who shares a channel with whom.
    pub mode: Duplex,
    /// PHY rate in bit/s, 1 or more.
    pub rate_bps: u64,
    /// Airtime of every frame besides its own bits (preamble, spacing, acknowledgment), at most
    /// [`MAX_SPAN`].
    pub overhead: Duration,
    /// Delay between the end of the airtime and the delivery, at most [`MAX_SPAN`].
    pub propagation: Duration,
    /// Additional random delay, on each link independently. Frames stay in order: a delayed frame
    /// delays those behind it.
    pub jitter: Jitter,
    /// Most frames of one station in the medium, waiting or on the air, 1 to [`MAX_QUEUE_FRAMES`].
    ///
    /// With 1, a station can offer its next frame only after the previous one has left, so a driver
    /// in real time, which is always a little late, leaves the channel idle in between; 2 or more
    /// avoid this.
    pub queue_frames: usize,
    /// Whether a full queue drops frames instead of pushing back, as behind a switch or a modem:
    /// the station always has room, and frames that find the queue full are dropped.
    pub drops_when_full: bool,
    /// Number of stations, 1 to [`MAX_STATIONS`].
    pub stations: usize,
    /// Who hears whom. Without a link a station hears nothing of another. Each pair at most once.
    pub links: Vec<Link>,
    /// Seed of the whole experiment.
    pub seed: u64,
    /// Which replication of the experiment.
    pub replication: u64,
}

impl MediumConfig {
    /// Checks every bound named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range, as the variant of [`AirError`] that names it.
    pub fn check(&self) -> Result<(), AirError> {
        if !(1..=MAX_STATIONS).contains(&self.stations) {
            return Err(AirError::Stations { given: self.stations });
        }
        if self.rate_bps == 0 {
            return Err(AirError::Rate { given: self.rate_bps });
        }
        if !(1..=MAX_QUEUE_FRAMES).contains(&self.queue_frames) {
            return Err(AirError::QueueFrames { given: self.queue_frames });
        }
        if self.overhead > MAX_SPAN {
            return Err(AirError::Overhead { given: self.overhead });
        }
        if self.propagation > MAX_SPAN {
            return Err(AirError::Propagation { given: self.propagation });
        }
        if !self.jitter.is_in_range() {
            return Err(AirError::Jitter { given: self.jitter.span() });
        }
        for (index, link) in self.links.iter().enumerate() {
            self.check_link(index, link)?;
        }
        self.check_pairs()
    }

    fn check_link(&self, index: usize, link: &Link) -> Result<(), AirError> {
        let Link { from, to, .. } = *link;
        if from >= self.stations {
            return Err(AirError::LinkFrom { index, given: from, stations: self.stations });
        }
        if to >= self.stations {
            return Err(AirError::LinkTo { index, given: to, stations: self.stations });
        }
        if from == to {
            return Err(AirError::LinkToItself { index, given: to });
        }
        link.erasure.check().map_err(|source| AirError::Erasure { index, from, to, source })
    }

    fn check_pairs(&self) -> Result<(), AirError> {
        let mut pairs: Vec<_> = self.links.iter().map(|link| (link.from, link.to)).collect();
        pairs.sort_unstable();
        match pairs.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(AirError::DuplicateLink { from: pair[0].0, to: pair[0].1 }),
            None => Ok(()),
        }
    }
}
