//! Delays of a link that vary from packet to packet.

use core::time::Duration;

use corridor_base::Stream;

use crate::draw;
use crate::limits::MAX_SPAN;

/// By how much the delay of a link varies from frame to frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// By exponentially distributed times with this mean, at most [`MAX_SPAN`].
    Exponential(Duration),
    /// By times that are uniform from zero to this, at most [`MAX_SPAN`].
    Uniform(Duration),
    /// By normally distributed times, of which those below zero are none.
    Normal {
        /// Their mean before that, at most [`MAX_SPAN`].
        mean: Duration,
        /// Their standard deviation before that, at most [`MAX_SPAN`].
        deviation: Duration,
    },
}

impl Jitter {
    /// The longest of the times that describe it.
    pub(crate) fn span(self) -> Duration {
        match self {
            Jitter::None => Duration::ZERO,
            Jitter::Exponential(span) | Jitter::Uniform(span) => span,
            Jitter::Normal { mean, deviation } => mean.max(deviation),
        }
    }

    /// Whether it can be.
    pub(crate) fn is_in_range(self) -> bool {
        self.span() <= MAX_SPAN
    }

    /// By how much the next frame is late. Nothing is drawn where nothing varies.
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
