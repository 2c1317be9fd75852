//! How many symbols the encoder and the helper send: the PlayNCool budgets that FRANC uses (its
//! Section II-A), the transmission optimum, and the credits derived from it.
//!
//! Stations: encoder S, helper H, decoder D. Erasure ratios: e1 = S to H, e2 = H to D, e3 = S to D.
//! All of the daemon's formulas about transmissions are in this module.

use corridor_codec::Field;

use crate::config::{ErasureRatios, Policy};

/// Upper bound of estimates: a link that loses more than 19 of 20 frames counts as down, and its
/// budget would be unbounded.
pub const ERASURE_RATIO_MAX: f64 = 0.95;

/// Symbols beyond the expected number that make dependence over GF(2) an exception.
const DEPENDENT_MARGIN_GF2: f64 = 2.0;
/// Dimensions by which a helper stays behind before it spends credits (`credit` policy), so that
/// the encoder's own symbols can fill them first: over GF(2).
const HELPER_LAG_GF2: f64 = 6.0;
/// The same over larger fields.
const HELPER_LAG: f64 = 3.0;

impl ErasureRatios {
    /// The ratios, each limited to [`ERASURE_RATIO_MAX`].
    pub fn bounded(self) -> Self {
        let bound = |ratio: f64| ratio.clamp(0.0, ERASURE_RATIO_MAX);
        ErasureRatios { e1: bound(self.e1), e2: bound(self.e2), e3: bound(self.e3) }
    }

    /// Share of the encoder's transmissions that reach the helper but not the decoder:
    /// A = (1-e1) e3.
    fn useful_to_helper(self) -> f64 {
        (1.0 - self.e1) * self.e3
    }

    /// Share of the encoder's transmissions that reach the helper or the decoder: 1 - e1 e3.
    fn reach_someone(self) -> f64 {
        1.0 - self.e1 * self.e3
    }
}

/// The budgets of PlayNCool for a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayNCool {
    /// Encoder transmissions before the helper starts (r).
    pub encoder_head_start: f64,
    /// Symbols that the helper has overheard when it starts (p = r (1-e1)).
    pub helper_threshold: f64,
    /// Transmissions of the helper (k).
    pub helper_budget: f64,
    /// Transmissions of the encoder, without overshoot (r + k).
    pub encoder_budget: f64,
}

/// PlayNCool's budgets for a block of `block_size` symbols, as the authors' code computes them.
///
/// With A = (1-e1) e3 and B = 1-e2: r = 1/A when B < A, else
/// r = g (1-e2-e3+e1e3) / (1+e1e2e3-e2-e1e3); k = (g - r(1-e3)) / (2-e2-e3).
pub fn playncool(block_size: f64, ratios: ErasureRatios) -> PlayNCool {
    let ErasureRatios { e1, e2, e3 } = ratios.bounded();
    let g = block_size;
    let a = ratios.bounded().useful_to_helper();
    let b = 1.0 - e2;
    let r = if b < a {
        1.0 / a
    } else {
        g * (1.0 - e2 - e3 + e1 * e3) / (1.0 + e1 * e2 * e3 - e2 - e1 * e3)
    };
    let k = ((g - r * (1.0 - e3)) / (2.0 - e2 - e3)).max(0.0);
    PlayNCool {
        encoder_head_start: r,
        helper_threshold: r * (1.0 - e1),
        helper_budget: k,
        encoder_budget: r + k,
    }
}

/// Minimum expected transmissions (encoder's, helper's) that bring `block_size` dimensions to the
/// decoder: minimises Ns + Nh with Ns (1-e1e3) >= g and Ns (1-e3) + Nh (1-e2) >= g.
pub fn optimum(block_size: f64, ratios: ErasureRatios) -> (f64, f64) {
    let ratios = ratios.bounded();
    if helper_is_worth_it(ratios) {
        let encoder = block_size / ratios.reach_someone();
        (encoder, encoder * ratios.useful_to_helper() / (1.0 - ratios.e2))
    } else {
        (block_size / (1.0 - ratios.e3), 0.0)
    }
}

/// Whether a helper saves transmissions: only if it is nearer to the decoder than the encoder is.
pub fn helper_is_worth_it(ratios: ErasureRatios) -> bool {
    ratios.e2 < ratios.e3
}

/// Transmissions that the encoder earns with each source symbol added, by policy.
///
/// `helper`: whether there is a helper within earshot. In PlayNCool's case 1, the authors' credits
/// add up to less than the r + k transmissions that the block needs, so the credit there is (r + k)
/// / g.
/// credits total less than the r + k transmissions the block needs, so there the credit is
/// (r + k) / g.
pub fn encoder_credit(
    policy: Policy,
    block_size: f64,
    ratios: ErasureRatios,
    overshoot: f64,
    helper: bool,
) -> f64 {
    let ratios = ratios.bounded();
    let credit = match policy {
        _ if !helper => 1.0 / (1.0 - ratios.e3),
        Policy::PlayNCool if 1.0 - ratios.e2 < ratios.useful_to_helper() => {
            playncool(block_size, ratios).encoder_budget / block_size
        }
        Policy::PlayNCool => 1.0 / ratios.reach_someone(),
        Policy::Credit => optimum(block_size, ratios).0 / block_size,
    };
    overshoot * credit
}

/// Transmissions that a helper earns with each symbol it overhears: PlayNCool's 1/(1-e1) per symbol
/// above the threshold; the optimum's e3/(1-e2) per innovative symbol where a helper is worth it at
/// all.
pub fn helper_credit(policy: Policy, ratios: ErasureRatios) -> f64 {
    let ratios = ratios.bounded();
    match policy {
        Policy::PlayNCool => 1.0 / (1.0 - ratios.e1),
        Policy::Credit if helper_is_worth_it(ratios) => ratios.e3 / (1.0 - ratios.e2),
        Policy::Credit => 0.0,
    }
}

/// Dimensions by which a helper with the `credit` policy stays behind.
pub fn helper_lag(field: Field) -> f64 {
    if field == Field::Gf2 { HELPER_LAG_GF2 } else { HELPER_LAG }
}

/// Coded symbols that a decoder needs on average beyond the dimensions it lacks, when it lacks
/// many: the sum over j of 1/(q^j - 1).
pub fn expected_extra(field: Field) -> f64 {
    let q = f64::from(field.order());
    (1..40).map(|j| 1.0 / (q.powi(j) - 1.0)).sum()
}

/// Expected number of random combinations that have to be sent over a link with erasure ratio
/// `ratio` to supply `dimensions` missing dimensions; 0 for none.
pub fn repair(dimensions: f64, ratio: f64, field: Field) -> f64 {
    if dimensions <= 0.0 {
        return 0.0;
    }
    (dimensions + expected_extra(field)) / (1.0 - ratio.clamp(0.0, ERASURE_RATIO_MAX))
}

/// As [`repair`], plus one standard deviation of the losses and, over GF(2), two more symbols. This
/// is worth it where a second round would cost a whole timeout of silence: 20 ms or 14 frames in
/// the paper's tests.
pub fn repair_at_once(dimensions: f64, ratio: f64, field: Field) -> f64 {
    if dimensions <= 0.0 {
        return 0.0;
    }
    let ratio = ratio.clamp(0.0, ERASURE_RATIO_MAX);
    let needed = dimensions + expected_extra(field);
    let deviation = (needed * ratio / (1.0 - ratio)).sqrt();
    let dependent = if field == Field::Gf2 { DEPENDENT_MARGIN_GF2 } else { 0.0 };
    repair(dimensions + dependent, ratio, field) + deviation
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: f64 = 150.0;

    fn ratios(e1: f64, e2: f64, e3: f64) -> ErasureRatios {
        ErasureRatios { e1, e2, e3 }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn case_2_simplifies_to_the_optimum_bound() {
        // r = g (B-A) / (B (1-e1e3)), k = g A / (B (1-e1e3)), r + k = g / (1-e1e3).
        for (e1, e2, e3) in [(0.1, 0.1, 0.5), (0.3, 0.3, 0.4), (0.5, 0.1, 0.9), (0.0, 0.5, 0.1)] {
            let (a, b) = ((1.0 - e1) * e3, 1.0 - e2);
            assert!(a <= b);
            let budgets = playncool(G, ratios(e1, e2, e3));
            assert!(near(budgets.encoder_head_start, G * (b - a) / (b * (1.0 - e1 * e3))));
            assert!(near(budgets.helper_budget, G * a / (b * (1.0 - e1 * e3))));
            assert!(near(budgets.encoder_budget, G / (1.0 - e1 * e3)));
        }
    }

    #[test]
    fn case_1_starts_the_helper_at_once_and_credits_the_whole_budget() {
        let ratios = ratios(0.1, 0.5, 0.9);
        let budgets = playncool(G, ratios);
        assert!(near(budgets.encoder_head_start, 1.0 / 0.81));
        let credit = encoder_credit(Policy::PlayNCool, G, ratios, 1.0, true);
        assert!(near(credit * G, budgets.encoder_budget));
    }

    #[test]
    fn the_optimum_switches_the_helper_off_where_it_wastes() {
        assert_eq!(optimum(G, ratios(0.1, 0.5, 0.2)), (187.5, 0.0));
        let (encoder, helper) = optimum(G, ratios(0.1, 0.1, 0.5));
        assert!((encoder + helper - 236.84).abs() < 0.01, "{encoder} + {helper}");
        assert_eq!(helper_credit(Policy::Credit, ratios(0.1, 0.5, 0.2)), 0.0);
    }

    #[test]
    fn the_helper_brings_what_the_encoder_leaves() {
        // The expected innovative arrivals at the decoder equal the block size when both spend the
        // optimum.
        for (e1, e2, e3) in [(0.1, 0.1, 0.5), (0.3, 0.2, 0.4), (0.5, 0.1, 0.9)] {
            let (encoder, helper) = optimum(G, ratios(e1, e2, e3));
            assert!(near(encoder * (1.0 - e3) + helper * (1.0 - e2), G));
            let credits = encoder * (1.0 - e1) * helper_credit(Policy::Credit, ratios(e1, e2, e3));
            assert!(near(credits, helper));
        }
    }

    #[test]
    fn a_lossless_link_earns_one_transmission_a_symbol() {
        let none = ErasureRatios::default();
        for policy in [Policy::PlayNCool, Policy::Credit] {
            for helper in [false, true] {
                assert_eq!(encoder_credit(policy, G, none, 1.0, helper), 1.0);
            }
        }
    }

    #[test]
    fn extra_symbols_are_those_of_theory() {
        assert!((expected_extra(Field::Gf2) - 1.607).abs() < 0.001);
        assert!((expected_extra(Field::Gf256) - 0.004).abs() < 0.001);
        assert_eq!(repair(0.0, 0.5, Field::Gf2), 0.0);
        assert!((repair(4.0, 0.5, Field::Gf256) - 8.008).abs() < 0.001);
    }

    #[test]
    fn no_estimate_makes_a_budget_without_bound() {
        for policy in [Policy::PlayNCool, Policy::Credit] {
            for e in [0.0, 0.5, 1.0, 2.0, -1.0] {
                let ratios = ratios(e, e, e);
                assert!((1.0..=20.1).contains(&encoder_credit(policy, G, ratios, 1.0, false)));
                let with_helper = encoder_credit(policy, G, ratios, 1.0, true);
                assert!(with_helper.is_finite() && with_helper <= 21.0, "{policy:?} {e}");
                assert!(helper_credit(policy, ratios) <= 20.1);
            }
        }
    }
}
