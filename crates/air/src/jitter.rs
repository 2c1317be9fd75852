//! Delays of a link that vary randomly from packet to packet.

use core::time::Duration;

use corridor_base::Stream;

use crate::draw;
use crate::limits::MAX_SPAN;

/// Random delay of each frame on a link, beyond the constant one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    /// None.
    #[default]
    None,
    /// Exponentially distributed with this mean, at most [`MAX_SPAN`].
    Exponential(Duration),
    /// Uniform from zero to this, at most [`MAX_SPAN`].
    Uniform(Duration),
    /// Normally distributed; negative values count as zero.
    Normal {
        /// Mean of the distribution, at most [`MAX_SPAN`].
        mean: Duration,
        /// Its standard deviation, at most [`MAX_SPAN`].
        deviation: Duration,
    },
}

impl Jitter {
    /// The longest of the times that parameterise it.
    pub(crate) fn span(self) -> Duration {
        match self {
            Jitter::None => Duration::ZERO,
            Jitter::Exponential(span) | Jitter::Uniform(span) => span,
            Jitter::Normal { mean, deviation } => mean.max(deviation),
        }
    }

    /// Whether its parameters are valid.
    pub(crate) fn is_in_range(self) -> bool {
        self.span() <= MAX_SPAN
    }

    /// The jitter of the next frame. Draws nothing if there is no jitter.
    pub(crate) fn draw(self, stream: &mut Stream) -> Duration {
        match self {
            Jitter::None => Duration::ZERO,
            Jitter::Exponential(mean) => draw::exponential(stream, mean),
            Jitter::Uniform(most) => most.mul_f64(draw::unit(stream)),
            Jitter::Normal { mean, deviation } => {
                let seconds = mean.as_secs_f64() + deviation.as_secs_f64() * draw::normal(stream);
                Duration::from_nanos((seconds.max(0.0) * 1e9) as u64)
            }
        }
    }
}
