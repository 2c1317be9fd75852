//! Bit error ratios as a function of SINR. [`super::Rate::success_ratio`] has the equations.

use std::sync::LazyLock;

use super::rate::Rate;

/// Number of cached SINR values, a power of two.
const KNOWN: usize = 512;

/// From this SINR on, linear, no span of O-QPSK of at most [`CERTAIN_BITS`] bits has an error ratio
/// that a double could represent: the first term of the equation's alternating sum is the largest,
/// so the bit error ratio is below `4 exp(-10 sinr)`, and the error ratio of 2,048 bits below
/// 1.6e-18, while half a step below 1 is 5.5e-17.
const CERTAIN_SINR: f64 = 5.0;
const CERTAIN_BITS: f64 = 2_048.0;

impl Rate {
    /// Share of spans of `bits` bits that come through without error at an SINR (linear, in the
    /// whole bandwidth), 0 to 1.
    ///
    /// O-QPSK: IEEE 802.15.4-2006, E.4.1.8. OFDM: hard decisions of the uncoded modulation, and the
    /// first terms of the union bound over the convolutional code's distances (G. Pei and T.
    /// Henderson, Validation of OFDM error rate model in ns-3, 2010, Eqs. 1-9; the distances:
    /// P. Frenger et al., Multirate convolutional codes, 1998). DSSS: DBPSK and DQPSK with their
    /// processing gain; CCK as E.4.1.3 bounds it.
    pub fn success_ratio(self, sinr: f64, bits: f64) -> f64 {
        success_ratio(bits, || log_success(self, sinr))
    }
}

/// Share of spans of `bits` bits without error, from the logarithm of that of one bit.
fn success_ratio(bits: f64, log: impl FnOnce() -> f64) -> f64 {
    if bits <= 0.0 { 1.0 } else { libm::exp(bits * log()) }
}

/// Natural logarithm of the share of bits without error, precise even for very small ratios.
fn log_success(rate: Rate, sinr: f64) -> f64 {
    libm::log1p(-bit_error_ratio(rate, sinr).clamp(0.0, 1.0))
}

/// A cache of the equations' results. They are expensive, and while links do not vary, receivers
/// ask for the same values with each frame.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By hash, the last entry with that hash; never queried before the first one.
    entries: Vec<Option<(Rate, f64, f64)>>,
}

/// A part of a frame with constant interference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    /// SINR, linear.
    pub sinr: f64,
    pub bits: f64,
}

impl Known {
    /// Whether a draw from 0 to 1 is less than the share of frames of these spans that come through
    /// without error. Agrees to the bit with the product of [`Rate::success_ratio`].
    pub fn comes_through(&mut self, rate: Rate, spans: &[Span], luck: f64) -> bool {
        // The bounds nearly always suffice to decide.
        let bounds = if rate == Rate::Oqpsk250 { bounds(spans) } else { None };
        if let Some((low, high)) = bounds {
            // An exponential lies above its tangent.
            if luck < 1.0 + low - ROUNDING {
                return true;
            }
            let luck = libm::log(luck);
            if luck < low - ROUNDING {
                return true;
            }
            if luck > high + ROUNDING {
                return false;
            }
        }
        let shares = spans.iter().map(|span| self.success_ratio(rate, span.sinr, span.bits));
        luck < shares.fold(1.0, |product, share| product * share)
    }

    /// As [`Rate::success_ratio`], to the bit.
    fn success_ratio(&mut self, rate: Rate, sinr: f64, bits: f64) -> f64 {
        // Saves sixteen exponentials whose result is 1.
        if rate == Rate::Oqpsk250 && sinr >= CERTAIN_SINR && bits <= CERTAIN_BITS {
            return 1.0;
        }
        success_ratio(bits, || {
            if self.entries.is_empty() {
                self.entries.resize(KNOWN, None);
            }
            // Fibonacci hashing: the highest bits of the product depend on all of the ratio's.
            let hash = sinr.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let entry = &mut self.entries[(hash >> (u64::BITS - KNOWN.ilog2())) as usize];
            match *entry {
                Some((of, at, log)) if of == rate && at.to_bits() == sinr.to_bits() => log,
                _ => {
                    let log = log_success(rate, sinr);
                    *entry = Some((rate, sinr, log));
                    log
                }
            }
        })
    }
}

/// Bit error ratio underlying all decoding; above one half where a bound is loose.
pub(super) fn bit_error_ratio(rate: Rate, sinr: f64) -> f64 {
    match rate {
        Rate::Oqpsk250 => oqpsk(sinr),
        // IEEE 802.15.4-2006, E.4.1.2 and E.4.1.3.
        Rate::Dsss1 => q(libm::sqrt(11.0 * sinr)),
        Rate::Dsss2 => q(libm::sqrt(5.5 * sinr)),
        Rate::Dsss5_5 => 8.0 / 15.0 * terms(sinr, &[(14.0, 8.0), (1.0, 16.0)]),
        Rate::Dsss11 => {
            let bound = [(24.0, 4.0), (16.0, 6.0), (174.0, 8.0), (16.0, 10.0), (24.0, 12.0)];
            128.0 / 255.0 * (terms(sinr, &bound) + terms(sinr, &[(1.0, 16.0)]))
        }
        Rate::Ofdm6 => coded(bpsk(sinr), &HALF),
        Rate::Ofdm9 => coded(bpsk(sinr), &THREE_QUARTERS),
        Rate::Ofdm12 => coded(bpsk(sinr / 2.0), &HALF),
        Rate::Ofdm18 => coded(bpsk(sinr / 2.0), &THREE_QUARTERS),
        Rate::Ofdm24 => coded(0.75 * 2.0 * bpsk(sinr / 10.0) / 2.0, &HALF),
        Rate::Ofdm36 => coded(0.75 * 2.0 * bpsk(sinr / 10.0) / 2.0, &THREE_QUARTERS),
        Rate::Ofdm48 => coded(7.0 / 12.0 * bpsk(sinr / 42.0), &TWO_THIRDS),
        Rate::Ofdm54 => coded(7.0 / 12.0 * bpsk(sinr / 42.0), &THREE_QUARTERS),
    }
}

/// IEEE 802.15.4-2006, E.4.1.8.
fn oqpsk(sinr: f64) -> f64 {
    let mut sum = 0.0;
    for (factor, share) in OQPSK {
        sum += factor * libm::exp(20.0 * sinr * share);
    }
    8.0 / 15.0 / 16.0 * sum
}

/// For each `k` from 2 to 16: `C(16, k)` with its sign, and `1 / k - 1`.
const OQPSK: [(f64, f64); 15] = {
    let (mut terms, mut choose, mut place) = ([(0.0, 0.0); 15], 16.0, 0);
    while place < 15 {
        let k = (place + 2) as f64;
        // C(16, k) from C(16, k - 1).
        choose *= (17.0 - k) / k;
        let sign = if place % 2 == 0 { 1.0 } else { -1.0 };
        terms[place] = (sign * choose, 1.0 / k - 1.0);
        place += 1;
    }
    terms
};

/// Table entries per unit of SINR.
const RATIOS: f64 = 256.0;

/// Logarithm of the share of O-QPSK's bits without error, at SINR from 0 to [`CERTAIN_SINR`].
static LOGS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let count = (CERTAIN_SINR * RATIOS) as u32;
    (0..=count).map(|n| log_success(Rate::Oqpsk250, f64::from(n) / RATIOS)).collect()
});

/// Relative error allowed for a logarithm in the table, and for a sum of them: far more than
/// rounding causes in either. The terms of the alternating sum are together less than 65,536 times
/// the exponential of the first, and half or more of that is a bit's error ratio.
const ERROR: f64 = 1e-9;
const ROUNDING: f64 = 1e-11;

/// Bounds of the logarithm of the share of frames of these spans that come through without error,
/// in O-QPSK; `None` outside the table.
///
/// The error ratio decreases with SINR, so a value between two entries of the table lies between
/// their logarithms.
fn bounds(spans: &[Span]) -> Option<(f64, f64)> {
    let (mut low, mut high) = (0.0, 0.0);
    for &Span { sinr, bits } in spans {
        if bits <= 0.0 || sinr >= CERTAIN_SINR && bits <= CERTAIN_BITS {
            continue;
        }
        let place = (sinr * RATIOS) as usize;
        let (&below, &above) = (LOGS.get(place)?, LOGS.get(place + 1)?);
        low += bits * below * (1.0 + ERROR);
        high += bits * above * (1.0 - ERROR);
    }
    Some((low, high))
}

/// Uncoded, by `Eb/N0`.
fn bpsk(ratio: f64) -> f64 {
    0.5 * libm::erfc(libm::sqrt(ratio))
}

fn q(x: f64) -> f64 {
    0.5 * libm::erfc(x / core::f64::consts::SQRT_2)
}

/// A sum of `factor` Q(sqrt(`scale` `sinr`)).
fn terms(sinr: f64, terms: &[(f64, f64)]) -> f64 {
    terms.iter().map(|&(factor, scale)| factor * q(libm::sqrt(scale * sinr))).sum()
}

/// A punctured code of memory 6: weights of the paths at its distances, over input bits, from the
/// free distance on.
struct Code {
    distance: i32,
    step: i32,
    inputs: f64,
    weights: [f64; 9],
}

const HALF: Code = Code {
    distance: 10,
    step: 2,
    inputs: 1.0,
    weights: [
        36.0,
        211.0,
        1404.0,
        11_633.0,
        77_433.0,
        502_690.0,
        3_322_763.0,
        21_292_910.0,
        134_365_911.0,
    ],
};

const TWO_THIRDS: Code = Code {
    distance: 6,
    step: 1,
    inputs: 2.0,
    weights: [3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0],
};

const THREE_QUARTERS: Code = Code {
    distance: 5,
    step: 1,
    inputs: 3.0,
    weights: [
        42.0,
        201.0,
        1492.0,
        10_469.0,
        62_935.0,
        379_644.0,
        2_253_373.0,
        13_073_811.0,
        75_152_755.0,
    ],
};

/// The union bound over the code's first distances, with the Chernoff bound of each.
fn coded(bit_error_ratio: f64, code: &Code) -> f64 {
    let d = libm::sqrt(4.0 * bit_error_ratio * (1.0 - bit_error_ratio));
    let step = libm::pow(d, f64::from(code.step));
    let mut power = libm::pow(d, f64::from(code.distance));
    let mut sum = 0.0;
    for weight in code.weights {
        sum += weight * power;
        power *= step;
    }
    sum / (2.0 * code.inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_the_equations_say() {
        let mut known = Known::default();
        let ratios = (0..4_000).map(|n| f64::from(n) / 200.0);
        // Twice, so that some values are cached, and more values than the cache has room for.
        for sinr in ratios.clone().chain(ratios.map(|sinr| sinr / 3.0)) {
            for rate in [Rate::Oqpsk250, Rate::Ofdm6, Rate::Oqpsk250] {
                for bits in [-1.0, 0.0, 40.0, 1_016.0] {
                    let told = known.success_ratio(rate, sinr, bits);
                    assert_eq!(told.to_bits(), rate.success_ratio(sinr, bits).to_bits());
                }
            }
        }
        assert_eq!(known.entries.len(), KNOWN);
    }

    fn exact(spans: &[Span]) -> f64 {
        spans
            .iter()
            .fold(1.0, |product, span| product * Rate::Oqpsk250.success_ratio(span.sinr, span.bits))
    }

    #[test]
    fn bounds_are_about_what_the_equations_say() {
        for n in 0..40_000 {
            let sinr = f64::from(n) / 6_400.0;
            for bits in [-1.0, 0.0, 1.0, 352.0, 1_016.0, 1e6] {
                let spans = [Span { sinr, bits }, Span { sinr: 1.5, bits: 12.0 }];
                let Some((low, high)) = bounds(&spans) else {
                    assert!(sinr >= CERTAIN_SINR - 1.0 / RATIOS, "{sinr}");
                    continue;
                };
                let exact = libm::log(exact(&spans));
                assert!(exact.is_infinite() || low - ROUNDING <= exact, "{sinr}, {bits}: {low}");
                assert!(exact <= high + ROUNDING, "{sinr}, {bits}: {high}");
                // And close to it, where that matters.
                assert!(exact < -30.0 || high - low <= -0.05 * low + 1e-9, "{sinr}: {low}, {high}");
            }
        }
    }

    /// The bounds decide as the equations do for any draw, including draws next to the share
    /// itself.
    #[test]
    fn who_comes_through_is_who_does_by_the_equations() {
        let (mut known, mut state) = (Known::default(), 1_u64);
        let mut draw = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        for _ in 0..50_000 {
            let count = (4.0 * draw()) as usize;
            let spans: Vec<_> = (0..=count)
                .map(|_| Span { sinr: 6.0 * draw() * draw(), bits: 1_100.0 * draw() - 50.0 })
                .collect();
            let exact = exact(&spans);
            let next = [exact, exact.next_down(), exact.next_up(), exact - 1e-12, exact + 1e-12];
            for luck in next.into_iter().chain([draw(), draw(), draw() * exact]) {
                if luck > 0.0 {
                    let told = known.comes_through(Rate::Oqpsk250, &spans, luck);
                    assert_eq!(told, luck < exact, "{spans:?}, {luck}");
                }
            }
        }
    }

    /// Results that are not computed are 1 by the equations too, and just beyond they are not.
    #[test]
    fn what_is_certain_is_what_the_equations_say() {
        for n in 0..100_000 {
            let sinr = CERTAIN_SINR + f64::from(n) / 1_000.0;
            for bits in [1.0, 1_016.0, CERTAIN_BITS] {
                assert_eq!(Rate::Oqpsk250.success_ratio(sinr, bits).to_bits(), 1.0_f64.to_bits());
            }
        }
        assert!(Rate::Oqpsk250.success_ratio(0.9 * CERTAIN_SINR, CERTAIN_BITS) < 1.0);
    }
}
