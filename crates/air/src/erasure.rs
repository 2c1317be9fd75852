//! Erasure processes: which transmissions a link loses.
//!
//! [`ErasureConfig`] describes the process of a link; the process itself is private, draws from the
//! link's own random stream, and decides for each transmission.

use corridor_base::Stream;
use corridor_base::rand::Rng;

use crate::error::ErasureError;
use crate::trace::LossTrace;

/// Bits of a draw that are compared with a ratio: the size of a float's mantissa.
const DRAW_BITS: u32 = 53;

/// How a link loses transmissions.
#[derive(Clone, Debug, PartialEq)]
pub enum ErasureConfig {
    /// Every transmission is lost with the same probability, independently.
    ///
    /// At the same place of the same stream a lower ratio loses a subset: runs with different
    /// ratios are paired.
    Bernoulli {
        /// Probability of a loss, 0 to 1.
        ratio: f64,
    },
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
    /// Losses replayed from a trace.
    Trace(LossTrace),
}

impl ErasureConfig {
    /// Nothing is lost.
    pub const NONE: ErasureConfig = ErasureConfig::Bernoulli { ratio: 0.0 };

    /// Mean share of transmissions lost, 0 to 1.
    pub fn loss_ratio(&self) -> f64 {
        match self {
            ErasureConfig::Bernoulli { ratio } => *ratio,
            ErasureConfig::GilbertElliott(config) => config.loss_ratio,
            ErasureConfig::Trace(trace) => trace.loss_ratio(),
        }
    }

    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), ErasureError> {
        match self {
            ErasureConfig::Bernoulli { ratio } => check_ratio("erasure_ratio", *ratio, 0.0, 1.0),
            ErasureConfig::GilbertElliott(config) => config.transitions().map(|_| ()),
            ErasureConfig::Trace(_) => Ok(()),
        }
    }
}

/// Independent losses with this ratio.
impl From<f64> for ErasureConfig {
    fn from(ratio: f64) -> Self {
        ErasureConfig::Bernoulli { ratio }
    }
}

/// A channel that is either good or bad and changes state between transmissions as a Markov chain
/// (E. N. Gilbert, Bell System Technical Journal 39, 1960; E. O. Elliott, ibid. 42, 1963).
///
/// It is parameterised by means rather than by the chain's transition probabilities. With loss
/// ratios `g` in the good and `b` in the bad state, a mean loss ratio `e` and a mean stay of `L`
/// transmissions in the bad state:
///
/// - share of the bad state: `s = (e - g) / (b - g)`, from `e = s b + (1 - s) g`;
/// - from bad to good: `r = 1 / L`, since a stay is geometric;
/// - from good to bad: `p = r s / (1 - s)`, from the balance `s r = (1 - s) p`.
///
/// With `g = 0` and `b = 1` (Gilbert's simplest channel, [`GilbertElliott::simple`]) a stay in the
/// bad state is a burst of losses, so `L` is their mean length; independent losses of the same
/// ratio would have bursts of `1 / (1 - e)`. The initial state is drawn according to its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Mean share of transmissions lost, `good_loss_ratio` or more and below `bad_loss_ratio`.
    pub loss_ratio: f64,
    /// Mean stay in the bad state, in transmissions: 1 or more, and at least `s / (1 - s)`, so that
    /// a stay in the good state lasts for one transmission or more.
    pub burst_packets: f64,
    /// Probability of a loss in the good state, 0 to 1.
    pub good_loss_ratio: f64,
    /// Probability of a loss in the bad state, 0 to 1.
    pub bad_loss_ratio: f64,
}

impl GilbertElliott {
    /// Nothing is lost in the good state, everything in the bad one.
    pub fn simple(loss_ratio: f64, burst_packets: f64) -> Self {
        GilbertElliott { loss_ratio, burst_packets, good_loss_ratio: 0.0, bad_loss_ratio: 1.0 }
    }

    /// The chain: share of the bad state, and the probabilities of changing to bad and to good.
    fn transitions(&self) -> Result<[f64; 3], ErasureError> {
        let GilbertElliott { loss_ratio, burst_packets, good_loss_ratio, bad_loss_ratio } = *self;
        check_ratio("bad_loss_ratio", bad_loss_ratio, 0.0, 1.0)?;
        check_ratio("good_loss_ratio", good_loss_ratio, 0.0, bad_loss_ratio)?;
        check_ratio("loss_ratio", loss_ratio, good_loss_ratio, bad_loss_ratio)?;
        if loss_ratio == bad_loss_ratio {
            // Always bad: a mean burst length has no meaning.
            return Err(ErasureError::AlwaysBad { given: loss_ratio });
        }
        let share = (loss_ratio - good_loss_ratio) / (bad_loss_ratio - good_loss_ratio);
        let least = (share / (1.0 - share)).max(1.0);
        // The comparison also rejects NaN.
        if !(burst_packets >= least && burst_packets.is_finite()) {
            return Err(ErasureError::BurstPackets { given: burst_packets, least });
        }
        let to_good = 1.0 / burst_packets;
        Ok([share, (to_good * share / (1.0 - share)).min(1.0), to_good])
    }
}

fn check_ratio(field: &'static str, given: f64, least: f64, most: f64) -> Result<(), ErasureError> {
    // The comparison also rejects NaN.
    match (least..=most).contains(&given) {
        true => Ok(()),
        false => Err(ErasureError::Ratio { field, given, least, most }),
    }
}

/// Decides for each transmission whether a link loses it. Each link has its own state.
#[derive(Clone, Debug)]
pub(crate) enum Erasure {
    Bernoulli { lost: Chance },
    GilbertElliott(Chain),
    Trace { trace: LossTrace, run: usize, left: u32 },
}

/// A running Gilbert-Elliott channel.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    is_bad: bool,
    to_bad: Chance,
    to_good: Chance,
    lost_in_good: Chance,
    lost_in_bad: Chance,
}

/// An event of a given probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    /// It happens if a draw of [`DRAW_BITS`] bits is below this.
    threshold: u64,
}

impl Chance {
    /// Probability `ratio`, 0 to 1.
    fn new(ratio: f64) -> Self {
        // Scaling by a power of two is exact, so 0 never and 1 always happens.
        Chance { threshold: (ratio * (1_u64 << DRAW_BITS) as f64).ceil() as u64 }
    }

    fn draw(self, stream: &mut Stream) -> bool {
        stream.next_u64() >> (64 - DRAW_BITS) < self.threshold
    }
}

impl Erasure {
    /// The process at its start; the initial state, if there is one, is drawn from `stream`.
    ///
    /// # Errors
    /// See [`ErasureConfig::check`].
    pub(crate) fn new(config: &ErasureConfig, stream: &mut Stream) -> Result<Self, ErasureError> {
        config.check()?;
        Ok(match config {
            ErasureConfig::Bernoulli { ratio } => Erasure::Bernoulli { lost: Chance::new(*ratio) },
            ErasureConfig::GilbertElliott(config) => {
                let [bad, to_bad, to_good] = config.transitions()?;
                Erasure::GilbertElliott(Chain {
                    is_bad: Chance::new(bad).draw(stream),
                    to_bad: Chance::new(to_bad),
                    to_good: Chance::new(to_good),
                    lost_in_good: Chance::new(config.good_loss_ratio),
                    lost_in_bad: Chance::new(config.bad_loss_ratio),
                })
            }
            ErasureConfig::Trace(trace) => {
                Erasure::Trace { trace: trace.clone(), run: 0, left: trace.run(0) }
            }
        })
    }

    /// Whether the link loses its next transmission.
    ///
    /// Draws the same number of values from `stream` for each transmission whatever the ratios, so
    /// that runs with different ratios are paired.
    pub(crate) fn draw(&mut self, stream: &mut Stream) -> bool {
        match self {
            Erasure::Bernoulli { lost } => lost.draw(stream),
            Erasure::GilbertElliott(chain) => chain.draw(stream),
            Erasure::Trace { trace, run, left } => {
                while *left == 0 {
                    *run = (*run + 1) % trace.runs();
                    *left = trace.run(*run);
                }
                *left -= 1;
                // Runs alternate, and the first one is of transmissions that are carried.
                *run % 2 == 1
            }
        }
    }
}

impl Chain {
    fn draw(&mut self, stream: &mut Stream) -> bool {
        let (lost, change) = match self.is_bad {
            true => (self.lost_in_bad, self.to_good),
            false => (self.lost_in_good, self.to_bad),
        };
        let lost = lost.draw(stream);
        self.is_bad ^= change.draw(stream);
        lost
    }
}
