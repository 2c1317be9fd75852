//! Configuration of the radios of one medium, as plain data; [`RadioConfig::check`] finds invalid
//! values.

use core::time::Duration;

use super::error::RadioError;
use super::limits::{MAX_DB, MAX_LINKS, MAX_RADIOS};
use crate::config::Station;
use crate::erasure::ErasureConfig;
use crate::limits::MAX_SPAN;

/// The radio of one station: its transmission power, and its channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioStation {
    /// Stations on different channels do not sense each other. A node with two channels has two
    /// stations.
    pub channel: u16,
    /// Transmission power, dBm.
    pub power_dbm: f64,
    /// Whether it reports overheard frames that are addressed to others
    /// ([`crate::radio::MacEvent::Received`] with `addressed` false).
    pub promiscuous: bool,
}

impl Default for RadioStation {
    /// Channel 0, 0 dBm, not promiscuous.
    fn default() -> Self {
        RadioStation { channel: 0, power_dbm: 0.0, promiscuous: false }
    }
}

/// A directed link of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioLink {
    /// The sending station.
    pub from: Station,
    /// The station that receives power, not `from`.
    pub to: Station,
    /// Attenuation of the sender's power, dB.
    pub loss_db: f64,
    /// Frames lost regardless of their power. The `k`-th draw belongs to the `k`-th transmission of
    /// `from`, whether `to` can decode it or not.
    pub erasure: ErasureConfig,
}

impl RadioLink {
    /// A link without losses other than attenuation.
    pub fn new(from: Station, to: Station, loss_db: f64) -> Self {
        RadioLink { from, to, loss_db, erasure: ErasureConfig::NONE }
    }
}

/// Path loss over distance: `reference_db` + 10 `exponent` log10(d / `reference_m`) + `extra_db`,
/// and for each pair of stations a normal deviate of its own, the same in both directions (T. S.
/// Rappaport, Wireless Communications, 2nd ed., Eq. 4.69a: log-distance with log-normal shadowing).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLoss {
    /// Loss at the reference distance, dB. Free space at 1 m: 40.05 at 2.4 GHz, 46.68 at 5.15 GHz.
    pub reference_db: f64,
    /// Reference distance, metres, more than 0. Smaller distances count as this one.
    pub reference_m: f64,
    /// Path loss exponent: 2 in free space, 3 to 4 indoors; more than 0.
    pub exponent: f64,
    /// Constant loss of attenuators, walls and antennas on every link, dB.
    pub extra_db: f64,
    /// Standard deviation of the shadowing, dB, 0 for none.
    pub shadowing_db: f64,
    /// Whether the shadowing is the same in all replications, as walls stay where they are.
    pub is_fixed: bool,
}

/// How much power stations receive from each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Links {
    /// As listed, at most [`MAX_LINKS`]; each pair at most once. Without a link a station receives
    /// nothing from another.
    Matrix(Vec<RadioLink>),
    /// By distance; at most [`MAX_LINKS`] at or above the receivers' floor.
    Positions {
        /// Positions of the stations, metres: one for each.
        metres: Vec<[f64; 3]>,
        /// Path loss over distance.
        path_loss: PathLoss,
    },
}

/// How a link's power varies over time about its mean; the same in both directions. It is a
/// function of link and time only, not of the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fading {
    /// Constant.
    #[default]
    None,
    /// Rician or Rayleigh: a sum of scattered waves with exponentially distributed power (Y. R.
    /// Zheng and C. Xiao, Simulation models with correct statistical properties for Rayleigh fading
    /// channels, IEEE Trans. Commun. 51(6), 2003, Eq. 6), plus a direct wave of `k` times their
    /// power.
    Rician {
        /// Power of the direct wave over that of the scattered ones; 0 is Rayleigh fading.
        k: f64,
        /// Largest Doppler shift, Hz, more than 0: speed over wavelength.
        doppler_hz: f64,
    },
    /// Slow fading in decibels: a sum of tones, nearly normal.
    LogNormal {
        /// Standard deviation, dB.
        sigma_db: f64,
        /// Period of the highest tone, more than zero.
        period: Duration,
    },
}

/// Capture: a receiver gives up a frame for a stronger one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capture {
    /// Smallest power of the new frame over everything else at its beginning, dB.
    pub margin_db: f64,
    /// Time from the beginning of the first reception in which this may happen; [`MAX_SPAN`] for as
    /// long as it lasts.
    pub window: Duration,
}

/// Which receptions are decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decoding {
    /// All with an SINR of at least this many dB from beginning to end, and no others.
    Threshold {
        /// Threshold, dB, for every rate.
        sinr_db: f64,
    },
    /// As `Threshold`, with the smallest SINR of the frame's rate
    /// ([`crate::radio::Rate::sinr_db_min`]).
    ThresholdByRate,
    /// At random, by the bit error ratio of the rate over each span of constant interference
    /// ([`crate::radio::Rate::success_ratio`]); drawn at the reception's end.
    ErrorRatio,
}

/// Properties of all receivers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiver {
    /// Noise including the receiver's own, dBm.
    pub noise_dbm: f64,
    /// Smallest power of a frame that a receiver locks on to, dBm.
    pub sensitivity_dbm: f64,
    /// Carrier sense: the channel is busy while all power received sums up to this or more, dBm,
    /// and while the receiver is locked on to a frame.
    pub sense_dbm: f64,
    /// Stations that receive less than this from each other, dBm, neither sense nor disturb each
    /// other. At most `sense_dbm` and `sensitivity_dbm`. With fading, this applies to the mean
    /// power.
    pub floor_dbm: f64,
    /// Which frames are decoded.
    pub decoding: Decoding,
    /// Smallest SINR, dB, at which a receiver locks on to a frame; `None`: it locks on to the first
    /// frame that arrives.
    pub lock_sinr_db: Option<f64>,
    /// Whether a receiver gives up a frame for a stronger one.
    pub capture: Option<Capture>,
}

impl Receiver {
    /// A 20 MHz receiver: noise figure of 7 dB, frames from -82 dBm on, each rate from the SINR on
    /// that it needs (IEEE 802.11-2012, 18.3.10).
    pub const DOT11: Receiver = Receiver {
        noise_dbm: -94.0,
        sensitivity_dbm: -82.0,
        sense_dbm: -82.0,
        floor_dbm: -104.0,
        decoding: Decoding::ThresholdByRate,
        lock_sinr_db: None,
        capture: None,
    };

    /// As in the CC2420's data sheet: frames from -95 dBm on, carrier sense from -77 dBm; noise at
    /// which the bit error ratio is what the sensitivity requires.
    pub const DOT15_4: Receiver = Receiver {
        noise_dbm: -98.0,
        sensitivity_dbm: -95.0,
        sense_dbm: -77.0,
        floor_dbm: -105.0,
        decoding: Decoding::ErrorRatio,
        lock_sinr_db: None,
        capture: None,
    };
}

/// The radios of one medium.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// The stations, numbered from 0; at most [`MAX_RADIOS`].
    pub stations: Vec<RadioStation>,
    /// How much power stations receive from each other.
    pub links: Links,
    /// How that varies over time.
    pub fading: Fading,
    /// Properties of all receivers.
    pub receiver: Receiver,
    /// Propagation delay, the same on every link, at most [`MAX_SPAN`].
    pub propagation: Duration,
    /// Seed of the whole experiment.
    pub seed: u64,
    /// Which replication of the experiment.
    pub replication: u64,
}

impl RadioConfig {
    /// Checks every range named in the fields' documentation, except the number of links that
    /// follow from positions: these are counted when they are made.
    ///
    /// # Errors
    /// The first field found out of its range, as the variant of [`RadioError`] that names it.
    pub fn check(&self) -> Result<(), RadioError> {
        let stations = self.stations.len();
        if !(1..=MAX_RADIOS).contains(&stations) {
            return Err(RadioError::Stations { given: stations });
        }
        for (index, station) in self.stations.iter().enumerate() {
            decibels("stations[].power_dbm", Some(index), station.power_dbm)?;
        }
        if self.propagation > MAX_SPAN {
            return Err(RadioError::Span { field: "propagation", given: self.propagation });
        }
        self.check_receiver()?;
        self.check_fading()?;
        match &self.links {
            Links::Matrix(links) => check_matrix(links, stations),
            Links::Positions { metres, path_loss } => check_positions(metres, path_loss, stations),
        }
    }

    fn check_receiver(&self) -> Result<(), RadioError> {
        let receiver = &self.receiver;
        decibels("receiver.noise_dbm", None, receiver.noise_dbm)?;
        decibels("receiver.sensitivity_dbm", None, receiver.sensitivity_dbm)?;
        decibels("receiver.sense_dbm", None, receiver.sense_dbm)?;
        decibels("receiver.floor_dbm", None, receiver.floor_dbm)?;
        let most = receiver.sense_dbm.min(receiver.sensitivity_dbm);
        if receiver.floor_dbm > most {
            return Err(RadioError::Floor { given: receiver.floor_dbm, most });
        }
        if let Decoding::Threshold { sinr_db } = receiver.decoding {
            decibels("receiver.decoding.sinr_db", None, sinr_db)?;
        }
        if let Some(sinr_db) = receiver.lock_sinr_db {
            decibels("receiver.lock_sinr_db", None, sinr_db)?;
        }
        if let Some(capture) = receiver.capture {
            decibels("receiver.capture.margin_db", None, capture.margin_db)?;
        }
        Ok(())
    }

    fn check_fading(&self) -> Result<(), RadioError> {
        match self.fading {
            Fading::None => Ok(()),
            Fading::Rician { k, doppler_hz } => {
                positive("fading.doppler_hz", doppler_hz)?;
                not_negative("fading.k", k)
            }
            Fading::LogNormal { sigma_db, period } => {
                if period.is_zero() || period > Duration::from_secs(1 << 32) {
                    return Err(RadioError::Span { field: "fading.period", given: period });
                }
                not_negative("fading.sigma_db", sigma_db)?;
                decibels("fading.sigma_db", None, sigma_db)
            }
        }
    }
}

fn check_matrix(links: &[RadioLink], stations: usize) -> Result<(), RadioError> {
    if links.len() > MAX_LINKS {
        return Err(RadioError::Links);
    }
    let mut pairs = Vec::with_capacity(links.len());
    for (index, link) in links.iter().enumerate() {
        let RadioLink { from, to, loss_db, .. } = *link;
        if from >= stations || to >= stations || from == to {
            return Err(RadioError::LinkEnds { index, from, to, stations });
        }
        decibels("links[].loss_db", Some(index), loss_db)?;
        let refused = |source| RadioError::Erasure { index, from, to, source };
        link.erasure.check().map_err(refused)?;
        pairs.push((from, to));
    }
    pairs.sort_unstable();
    match pairs.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(RadioError::DuplicateLink { from: pair[0].0, to: pair[0].1 }),
        None => Ok(()),
    }
}

fn check_positions(
    metres: &[[f64; 3]],
    path_loss: &PathLoss,
    stations: usize,
) -> Result<(), RadioError> {
    if metres.len() != stations {
        return Err(RadioError::Positions { given: metres.len(), stations });
    }
    for (index, position) in metres.iter().enumerate() {
        if let Some(&given) = position.iter().find(|metres| !metres.is_finite()) {
            return Err(RadioError::Number { field: "metres", index: Some(index), given });
        }
    }
    decibels("path_loss.reference_db", None, path_loss.reference_db)?;
    decibels("path_loss.extra_db", None, path_loss.extra_db)?;
    decibels("path_loss.shadowing_db", None, path_loss.shadowing_db)?;
    not_negative("path_loss.shadowing_db", path_loss.shadowing_db)?;
    positive("path_loss.reference_m", path_loss.reference_m)?;
    positive("path_loss.exponent", path_loss.exponent)
}

fn decibels(field: &'static str, index: Option<usize>, given: f64) -> Result<(), RadioError> {
    if given.abs() <= MAX_DB { Ok(()) } else { Err(RadioError::Number { field, index, given }) }
}

fn positive(field: &'static str, given: f64) -> Result<(), RadioError> {
    let fine = given > 0.0 && given.is_finite();
    if fine { Ok(()) } else { Err(RadioError::Positive { field, given }) }
}

fn not_negative(field: &'static str, given: f64) -> Result<(), RadioError> {
    let fine = given >= 0.0 && given.is_finite();
    if fine { Ok(()) } else { Err(RadioError::Negative { field, given }) }
}
