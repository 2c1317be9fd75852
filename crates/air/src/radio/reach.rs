//! Which stations hear or sense each other, by the mean power of links: for routes and for
//! drawings.

use super::driver::{MacConfig, RadioMedium, RadioMediumConfig};
use crate::dcf::RateControl;
use crate::phy::{Decoding, Rate};

/// That one place hears or senses another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// The place that sends.
    pub from: usize,
    /// The place that hears or senses it.
    pub to: usize,
    /// Whether it receives frames when no other place sends; otherwise it can only be disturbed, or
    /// find the channel busy.
    pub hears: bool,
    /// Whether it finds the channel busy.
    pub senses: bool,
    /// Mean power there, dBm, where the radio has powers.
    pub power_dbm: Option<f64>,
}

impl<P: Clone> RadioMedium<P> {
    /// Who hears or senses whom, by (from, to); `config` is the medium's configuration.
    pub fn reaches(&self, config: &RadioMediumConfig) -> Vec<Reach> {
        let (heard_mw, sensed_mw) = least_mw(config);
        let reach = |from: usize| {
            self.radio().neighbours(from).map(move |(to, power_mw)| {
                let (hears, senses) = (power_mw >= heard_mw, power_mw >= sensed_mw);
                let power_dbm = Some(10.0 * libm::log10(power_mw));
                Reach { from, to, hears, senses, power_dbm }
            })
        };
        (0..self.stations()).flat_map(reach).collect()
    }
}

/// Share of frames of [`USUAL_BITS`] that have to come through for a link to count.
const HEARD_RATIO: f64 = 0.5;
/// Bits of the frame by which links are judged.
const USUAL_BITS: f64 = 1_000.0;

/// Smallest power at which a frame is received without interference, and at which it is sensed, mW.
fn least_mw(config: &RadioMediumConfig) -> (f64, f64) {
    let receiver = &config.radio.receiver;
    let mw = |dbm: f64| libm::pow(10.0, dbm / 10.0);
    let rate = match &config.mac {
        MacConfig::Dcf(dcf) => match &dcf.rates {
            RateControl::Fixed(rate) => *rate,
            RateControl::Minstrel(rates) => rates.first().copied().unwrap_or(Rate::Ofdm6),
        },
        MacConfig::Wpan(_) => Rate::Oqpsk250,
    };
    let above_noise_db = match receiver.decoding {
        Decoding::Threshold { sinr_db } => sinr_db,
        Decoding::ThresholdByRate => rate.sinr_db_min(),
        // To a tenth of a decibel.
        Decoding::ErrorRatio => {
            let decibels = (-100..=400).map(|tenths| f64::from(tenths) / 10.0);
            let is_heard = |db: &f64| rate.success_ratio(mw(*db), USUAL_BITS) >= HEARD_RATIO;
            decibels.clone().find(is_heard).unwrap_or(40.0)
        }
    };
    let least_dbm = receiver.sensitivity_dbm.max(receiver.noise_dbm + above_noise_db);
    // A receiver that is locked on to a frame finds the channel busy as well.
    (mw(least_dbm), mw(receiver.sense_dbm.min(receiver.sensitivity_dbm)))
}
