//! Loss probes, sent when feedback does not come: how many timeouts losses may explain, and how
//! many probes each of them sends.

/// Bounds of the number of successive timeouts that are tolerated: losing a few frames in a row is
/// normal.
const TOLERATED_MIN: u32 = 2;
const TOLERATED_MAX: u32 = 8;
/// Probability with which all probes and answers may be lost although the receiver is alive.
const ALL_LOST: f64 = 0.02;
/// Probability with which all probes of one timeout may be lost, and the limit of their number.
const PROBES_LOST: f64 = 0.1;
const PROBES_MAX: u32 = 4;
/// Limit for the first timeout, and for later ones that losses may explain.
const PROBES_FIRST_MAX: u32 = 8;
const PROBES_BURST_MAX: u32 = 16;

/// Whether losses alone cannot explain so many successive timeouts. This is asked for each frame:
/// logarithms are computed only after more timeouts than are always tolerated.
pub(crate) fn are_unexplained(timeouts_in_row: u32, loss_ratio: f64) -> bool {
    timeouts_in_row > TOLERATED_MIN && timeouts_in_row > timeouts_tolerated(loss_ratio)
}

/// Successive timeouts that losses alone may explain.
pub(crate) fn timeouts_tolerated(loss_ratio: f64) -> u32 {
    let unanswered = 1.0 - (1.0 - loss_ratio).powi(2);
    tries(unanswered, ALL_LOST).clamp(TOLERATED_MIN, TOLERATED_MAX)
}

/// Probes that the n-th successive timeout sends, n from 1, while `held` symbols are
/// unacknowledged. A burst of losses counted in frames ends the sooner the more are sent; and if it
/// took all that was in flight, as many symbols are needed anyway.
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

/// Number of tries that all fail with at most this probability.
fn tries(failing: f64, all_failed: f64) -> u32 {
    if failing > 0.0 { (all_failed.ln() / failing.ln()).ceil() as u32 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ask_as_losses_need() {
        assert_eq!([0.0, 0.1, 0.3, 0.9].map(|ratio| wanted(1, 1, ratio, true)), [1, 1, 2, 4]);
        // Half of what is held, then all of it, until losses can explain nothing any more.
        assert_eq!([6, 16, 100].map(|held| wanted(1, held, 0.1, true)), [3, 8, 8]);
        assert_eq!([1, 6, 100].map(|held| wanted(2, held, 0.1, true)), [4, 6, 16]);
        assert_eq!([0.0, 0.1, 0.3, 0.9].map(timeouts_tolerated), [2, 3, 6, 8]);
        assert_eq!([true, false].map(|is_long| wanted(9, 100, 0.9, is_long)), [4, 16]);
    }
}
