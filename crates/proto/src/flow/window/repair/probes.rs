//! Where no feedback comes: how many timeouts losses may explain, and with how many symbols each of
//! them asks.

/// Bounds of the timeouts in a row that are tolerated: a few frames in a row do get lost.
const TOLERATED_MIN: u32 = 2;
const TOLERATED_MAX: u32 = 8;
/// Probability that as many probes and answers are lost although the receiver is there.
const ALL_LOST: f64 = 0.02;
/// Probability that all probes of a timeout are lost, and the most of them.
const PROBES_LOST: f64 = 0.1;
const PROBES_MAX: u32 = 4;
/// The most at the first timeout, and at those after it that losses may explain, where so many
/// symbols are unacknowledged.
const PROBES_FIRST_MAX: u32 = 8;
const PROBES_BURST_MAX: u32 = 16;

/// Timeouts in a row that may be the work of losses alone.
pub(crate) fn timeouts_tolerated(loss_ratio: f64) -> u32 {
    let unanswered = 1.0 - (1.0 - loss_ratio).powi(2);
    tries(unanswered, ALL_LOST).clamp(TOLERATED_MIN, TOLERATED_MAX)
}

/// Symbols that the timeout of this number in a row, from 1, asks with, while so many are held. A
/// burst of losses that is counted in frames ends the sooner the more are sent, and where it took
/// all that was on its way, as many are needed anyway.
pub(crate) fn wanted(timeouts_in_row: u32, held: u32, loss_ratio: f64, is_long: bool) -> u32 {
    match timeouts_in_row {
        1 => tries(loss_ratio, PROBES_LOST)
            .clamp(1, PROBES_MAX)
            .max((held / 2).min(PROBES_FIRST_MAX)),
        row if !is_long || row <= timeouts_tolerated(loss_ratio) => {
            held.clamp(PROBES_MAX, PROBES_BURST_MAX)
        }
        _ => PROBES_MAX,
    }
}

/// Tries after which all have failed with no more than this probability.
fn tries(failing: f64, all_failed: f64) -> u32 {
    if failing > 0.0 { (all_failed.ln() / failing.ln()).ceil() as u32 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ask_as_losses_need() {
        assert_eq!([0.0, 0.1, 0.3, 0.9].map(|ratio| wanted(1, 1, ratio, true)), [1, 1, 2, 4]);
        // Half of what is held, then all of it, until losses explain nothing any more.
        assert_eq!([6, 16, 100].map(|held| wanted(1, held, 0.1, true)), [3, 8, 8]);
        assert_eq!([1, 6, 100].map(|held| wanted(2, held, 0.1, true)), [4, 6, 16]);
        assert_eq!([0.0, 0.1, 0.3, 0.9].map(timeouts_tolerated), [2, 3, 6, 8]);
        assert_eq!([true, false].map(|is_long| wanted(9, 100, 0.9, is_long)), [4, 16]);
    }
}
