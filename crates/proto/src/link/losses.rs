//! Smooths the loss ratio of frames as feedback reports it.

/// Upper bound of loss estimates: some frames must get through.
pub(crate) const LOSS_RATIO_MAX: f64 = 0.95;

/// Frames that an estimate of losses covers, and how many standard errors count as chance.
const LOSS_FRAMES: f64 = 1_024.0;
const LOSS_DEVIATIONS: f64 = 3.0;
/// Frames over which estimates that differ by chance are averaged.
const LOSS_FRAMES_SMOOTH: f64 = 8_192.0;

/// Updates `ratio` to the estimate `told`, which comes `frames` frames after the one before: at
/// once if the difference cannot be chance, otherwise averaged over so many frames that chance
/// hardly matters. Ratios are from 0 to 1.
pub(crate) fn follow(ratio: f64, told: f64, frames: u32) -> f64 {
    let error = told - ratio;
    let chance = LOSS_DEVIATIONS * (told * (1.0 - told) / LOSS_FRAMES).sqrt();
    let weight = (f64::from(frames) / LOSS_FRAMES_SMOOTH).min(1.0);
    ratio + if error.abs() > chance { error } else { weight * error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_chance_is_averaged_and_what_cannot_be_is_followed_at_once() {
        let near = follow(0.1, 0.11, 82);
        assert!((near - 0.1001).abs() < 1e-5, "{near}");
        assert!((follow(0.1, 0.2, 1) - 0.2).abs() < 1e-12);
        assert!((follow(0.1, 0.11, 100_000) - 0.11).abs() < 1e-12);
        assert_eq!(follow(0.0, 0.0, 10), 0.0);
    }
}
