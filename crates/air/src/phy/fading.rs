//! Fading: a link's power over time, relative to its mean, independent of the traffic.

use core::f64::consts::TAU;
use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

use super::config::Fading;
use super::waves::{self, Lanes, WAVES};

/// A sum of cosines of time.
#[derive(Clone, Copy, Debug, Default)]
struct Tones {
    hz: Lanes,
    /// Phase in turns, 0 to 1.
    phase: Lanes,
}

impl Tones {
    /// The sum of all. Whole turns and their fraction are kept apart, so that late times lose no
    /// precision.
    fn sum(&self, seconds: u64, nanos: u32) -> f64 {
        let [whole, part] = [seconds as f64, f64::from(nanos) * 1e-9];
        let mut turns = [0.0; WAVES];
        for (turns, hz) in turns.iter_mut().zip(self.hz) {
            *turns = hz * whole;
        }
        turns = waves::fractions(turns);
        for ((turns, hz), phase) in turns.iter_mut().zip(self.hz).zip(self.phase) {
            *turns = *turns + hz * part + phase;
        }
        let mut angles = waves::fractions(turns);
        for angle in &mut angles {
            *angle *= TAU;
        }
        waves::cosines(angles).iter().sum()
    }
}

/// The fading of one pair of stations.
#[derive(Clone, Debug)]
pub(super) struct Variation {
    kind: Fading,
    in_phase: Tones,
    quadrature: Tones,
}

impl Variation {
    /// The fading of the pair that `entity` identifies; `None` if links do not vary.
    pub fn new(fading: Fading, key: StreamKey) -> Option<Self> {
        let mut stream = key.stream();
        let mut variation =
            Variation { kind: fading, in_phase: Tones::default(), quadrature: Tones::default() };
        match fading {
            Fading::None => return None,
            Fading::Rician { doppler_hz, .. } => variation.scatter(doppler_hz, &mut stream),
            Fading::LogNormal { period, .. } => variation.spread(period, &mut stream),
        }
        Some(variation)
    }

    /// Angles of arrival as in Zheng and Xiao's Eq. 6: evenly spread, rotated by a random angle.
    fn scatter(&mut self, doppler_hz: f64, stream: &mut Stream) {
        let theta = TAU * (uniform(stream) - 0.5);
        for n in 0..WAVES {
            let angle = (TAU * (n + 1) as f64 - TAU / 2.0 + theta) / (4 * WAVES) as f64;
            let (hz_i, hz_q) = (doppler_hz * libm::cos(angle), doppler_hz * libm::sin(angle));
            (self.in_phase.hz[n], self.in_phase.phase[n]) = (hz_i, uniform(stream));
            (self.quadrature.hz[n], self.quadrature.phase[n]) = (hz_q, uniform(stream));
        }
    }

    /// Tones of random frequency, from a tenth of the highest.
    fn spread(&mut self, period: Duration, stream: &mut Stream) {
        let hz_max = 1.0 / period.as_secs_f64();
        let Tones { hz, phase } = &mut self.in_phase;
        for (hz, phase) in hz.iter_mut().zip(phase) {
            (*hz, *phase) = (hz_max * (0.1 + 0.9 * uniform(stream)), uniform(stream));
        }
    }

    /// The gain over the mean power at `now`; its mean over time is 1 (Rician), or 0 dB.
    pub fn gain(&self, now: Time) -> f64 {
        let (seconds, nanos) = (now.as_nanos() / 1_000_000_000, now.as_nanos() % 1_000_000_000);
        let sum = |tones: &Tones| tones.sum(seconds, nanos as u32);
        // Eight cosines of variance one half each.
        let normal = 1.0 / libm::sqrt(WAVES as f64 / 2.0);
        match self.kind {
            Fading::None => 1.0,
            Fading::Rician { k, .. } => {
                let scattered = libm::sqrt(1.0 / (2.0 * (k + 1.0))) * normal;
                let direct = libm::sqrt(k / (k + 1.0));
                let (i, q) =
                    (sum(&self.in_phase) * scattered + direct, sum(&self.quadrature) * scattered);
                i * i + q * q
            }
            Fading::LogNormal { sigma_db, .. } => {
                libm::pow(10.0, sigma_db * sum(&self.in_phase) * normal / 10.0)
            }
        }
    }
}

/// Steps of slow fading in its shortest period: in a step, the gain changes by at most a tenth of
/// its deviation, and is computed only once.
const STEPS: u64 = 64;

/// Stands for "no time step".
const NO_STEP: u64 = u64::MAX;

/// The fading of all pairs of stations. Slow fading advances in time steps, still as a function of
/// time, whenever it is queried.
#[derive(Debug)]
pub(super) struct Variations {
    /// Length of a time step; `None` for fading without steps.
    step_ns: Option<u64>,
    /// What a query for a pair needs within the same step, apart from the rest: by pair, the step
    /// last queried, and its gain.
    known: Vec<(u64, f64)>,
    pairs: Vec<Variation>,
}

/// The time of a query for gains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    now: Time,
    step: u64,
}

impl Variations {
    /// Fading without any pairs.
    pub fn new(fading: Fading) -> Self {
        let step_ns = match fading {
            Fading::LogNormal { period, .. } => Some((period.as_nanos() as u64 / STEPS).max(1)),
            Fading::None | Fading::Rician { .. } => None,
        };
        Variations { step_ns, known: Vec::new(), pairs: Vec::new() }
    }

    /// Adds a pair; returns its index.
    pub fn push(&mut self, pair: Variation) -> u32 {
        self.known.push((NO_STEP, 1.0));
        self.pairs.push(pair);
        (self.pairs.len() - 1) as u32
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// A query at `now` for any number of pairs.
    pub fn look(&self, now: Time) -> Look {
        Look { now, step: self.step_ns.map_or(NO_STEP, |step_ns| now.as_nanos() / step_ns) }
    }

    /// The gain over a pair's mean power; `None` if there is no such pair.
    pub fn gain(&mut self, look: Look, pair: u32) -> Option<f64> {
        let known = self.known.get_mut(pair as usize)?;
        let Some(step_ns) = self.step_ns else {
            return Some(self.pairs[pair as usize].gain(look.now));
        };
        if known.0 != look.step {
            let begin = Time::from_nanos(look.step * step_ns);
            *known = (look.step, self.pairs[pair as usize].gain(begin));
        }
        Some(known.1)
    }
}

/// Uniform in (0, 1).
pub(super) fn uniform(stream: &mut Stream) -> f64 {
    const HALF_STEP: f64 = 1.0 / (1_u64 << 33) as f64;
    f64::from(stream.next_u32()) / (1_u64 << 32) as f64 + HALF_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variation(fading: Fading, entity: u64) -> Variation {
        let key = StreamKey { seed: 7, replication: 0, entity, purpose: "fading" };
        Variation::new(fading, key).expect("a fading that varies")
    }

    /// Gains of many links at many times.
    fn gains(fading: Fading) -> Vec<f64> {
        let links = (0..200).map(|entity| variation(fading, entity));
        links
            .flat_map(|link| (0..200).map(move |ms| link.gain(Time::from_millis(ms * 37))))
            .collect()
    }

    #[test]
    fn rayleigh_power_is_exponential() {
        let gains = gains(Fading::Rician { k: 0.0, doppler_hz: 10.0 });
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        for level in [0.1, 0.5, 1.0, 2.0] {
            let below = gains.iter().filter(|&&gain| gain < level).count() as f64;
            let (share, expected) = (below / gains.len() as f64, 1.0 - libm::exp(-level));
            assert!((share - expected).abs() < 0.02, "below {level}: {share}, not {expected}");
        }
    }

    #[test]
    fn a_direct_wave_makes_power_vary_less() {
        let variance = |k| {
            let gains = gains(Fading::Rician { k, doppler_hz: 10.0 });
            gains.iter().map(|gain| (gain - 1.0) * (gain - 1.0)).sum::<f64>() / gains.len() as f64
        };
        // Of Rician power: (1 + 2 k) / (1 + k)^2.
        assert!((variance(0.0) - 1.0).abs() < 0.15, "{}", variance(0.0));
        assert!((variance(5.0) - 11.0 / 36.0).abs() < 0.05, "{}", variance(5.0));
    }

    #[test]
    fn slow_fading_has_its_deviation_in_decibels() {
        let fading = Fading::LogNormal { sigma_db: 4.0, period: Duration::from_millis(500) };
        let db: Vec<_> = gains(fading).iter().map(|&gain| 10.0 * libm::log10(gain)).collect();
        let variance = db.iter().map(|db| db * db).sum::<f64>() / db.len() as f64;
        assert!((libm::sqrt(variance) - 4.0).abs() < 0.2, "{}", libm::sqrt(variance));
    }

    #[test]
    fn slow_fading_in_steps_is_near_that_without() {
        let fading = Fading::LogNormal { sigma_db: 4.0, period: Duration::from_secs(10) };
        let link = variation(fading, 3);
        let [mut steps, mut again] = [(); 2].map(|()| {
            let mut pairs = Variations::new(fading);
            assert_eq!(pairs.push(link.clone()), 0);
            pairs
        });
        let mut gain_at = |now| steps.gain(steps.look(now), 0).expect("a pair");
        for ms in 0..30_000 {
            let now = Time::from_millis(ms);
            let apart_db = 10.0 * libm::log10(gain_at(now) / link.gain(now));
            assert!(apart_db.abs() < 0.8, "{apart_db} dB at {ms} ms");
        }
        // The same after an earlier query.
        let last = Time::from_millis(29_999);
        assert_eq!(Some(gain_at(last)), again.gain(again.look(last), 0));
        assert_eq!(again.gain(again.look(last), 1), None);
    }

    #[test]
    fn fading_follows_time_at_the_doppler_rate_of_each_link() {
        let link = variation(Fading::Rician { k: 0.0, doppler_hz: 10.0 }, 3);
        let other = variation(Fading::Rician { k: 0.0, doppler_hz: 10.0 }, 4);
        let at = Time::from_millis(86_400_000);
        let soon = at + Duration::from_micros(100);
        assert_eq!(link.gain(at), link.gain(at));
        assert!((link.gain(at) - link.gain(soon)).abs() < 0.05);
        assert_ne!(link.gain(at), other.gain(at));
    }
}
