//! Random numbers for links, the same on every machine: computed with `libm`, not with the
//! machine's own library.

use core::time::Duration;

use corridor_base::Stream;
use corridor_base::rand::Rng;

/// Uniform in (0, 1].
pub(crate) fn unit(stream: &mut Stream) -> f64 {
    (f64::from(stream.next_u32()) + 1.0) / (1_u64 << 32) as f64
}

/// An integer below `count`, which is 1 or more. The high half of the product is uniform except for
/// a bias of `count` / 2^64.
pub(crate) fn below(stream: &mut Stream, count: usize) -> usize {
    ((u128::from(stream.next_u64()) * count as u128) >> 64) as usize
}

/// Exponentially distributed with this mean.
pub(crate) fn exponential(stream: &mut Stream, mean: Duration) -> Duration {
    mean.mul_f64(-libm::log(unit(stream)))
}

/// Normally distributed with mean 0 and deviation 1 (Box and Muller, 1958; one of the two values).
pub(crate) fn normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(unit(stream)));
    radius * libm::cos(core::f64::consts::TAU * unit(stream))
}
