//! The gates: the codec's requirements, as ratios measured within one run.

use corridor_results::checks::Check;
use serde::Serialize;

use crate::limits::{BYTES_PER_CYCLE_MIN, Limits, ReadSources};
use crate::peers::simdx;
use crate::plan::{BLOCK_SIZES, Group, Operation, SYSTEMATIC_SYMBOL_SIZE};
use crate::report::{Figures, Row};

/// The dense peers.
const DENSE_PEERS: [&str; 2] = ["rlnc", "rlnc-simdx"];
const GF256: &str = "GF(2^8)";
const GF2: &str = "GF(2)";

/// Best rates of dense decoding over GF(2), in bytes per second, at this register limit: 64 bytes
/// per cycle at 3.5 GHz.
const GF2_DECODE_BEST: [(usize, f64); 2] = [(64, 2.2e9), (150, 0.87e9)];
const GF2_DECODE_BEST_LIMIT: f64 = 224e9;

/// A gate and its result. Its value is the smallest ratio of measured to required.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    #[serde(flatten)]
    pub check: Check,
    /// Whether not all of it could be measured, but nothing violates the limit.
    pub open: bool,
    /// Every figure it rests on.
    pub detail: String,
}

impl Gate {
    /// A gate that requires all these ratios to reach `limit`.
    fn all(name: &str, limit: f64, ratios: Vec<(String, Option<f64>)>) -> Self {
        let known: Vec<f64> = ratios.iter().filter_map(|(_, ratio)| *ratio).collect();
        let value = known.iter().copied().min_by(f64::total_cmp);
        let check = Check::at_least(name, value, limit, "1");
        let is_complete = !known.is_empty() && known.len() == ratios.len();
        let open = !is_complete && value.is_none_or(|_| check.holds);
        let detail = ratios.iter().map(|(what, ratio)| {
            let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            format!("{what}: {ratio}")
        });
        let detail = detail.collect::<Vec<_>>().join(", ");
        Gate { check: Check { holds: check.holds && !open, ..check }, open, detail }
    }

    /// Adds figures to show beside a gate.
    fn beside(mut self, what: &str, ratios: Vec<(String, Option<f64>)>) -> Self {
        let bounds = Gate::all("", 0.0, ratios).detail;
        self.detail += &format!("; {what} would give {bounds}");
        self
    }

    /// The gate on one line, its figures on the next.
    pub fn text(&self) -> String {
        let Check { name, value, limit, holds, .. } = &self.check;
        let word = match (holds, self.open) {
            (true, _) => "pass",
            (false, false) => "FAIL",
            (false, true) => "open",
        };
        let worst = value.map_or("-".to_owned(), |worst| format!("{worst:.2}"));
        format!("{word}  {name} (least {worst} of {limit})\n        {}\n", self.detail)
    }
}

/// All gates.
pub fn evaluate(rows: &[Row], limits: &Limits, block_size_max: usize) -> Vec<Gate> {
    let figures = Figures(rows);
    let block_sizes: Vec<usize> =
        BLOCK_SIZES.into_iter().filter(|&size| size <= block_size_max).collect();
    let group = |operation, block_size, symbol_size| Group { operation, block_size, symbol_size };
    let rate = |group, field: &str, backend| {
        figures.ours(group, field, backend).map(|row| row.payload_bytes_per_s)
    };
    let best_peer = |group| {
        let rates = DENSE_PEERS.map(|peer| figures.peer(group, peer, None));
        rates.into_iter().flatten().max_by(f64::total_cmp)
    };
    let over = |ours: Option<f64>, theirs: Option<f64>| {
        ours.zip(theirs).map(|(ours, theirs)| ours / theirs)
    };
    // Ratios at every block size.
    let each = |sizes: &[usize], ratio: &dyn Fn(usize) -> Option<f64>| -> Vec<_> {
        sizes.iter().map(|&size| (size.to_string(), ratio(size))).collect()
    };
    let over_peers = |operation, symbol_size| {
        each(&block_sizes, &|size| {
            let group = group(operation, size, symbol_size);
            over(rate(group, GF256, None), best_peer(group))
        })
    };
    let reading_over_peers = |symbol_size| {
        each(&block_sizes, &|size| {
            let group = group(Operation::Encode, size, symbol_size);
            over(figures.peer(group, ReadSources::LIBRARY, None), best_peer(group))
        })
    };
    let ratio_to_limit = |operation, field: &str, size| {
        figures.ours(group(operation, size, 1450), field, None)?.ratio_to_limit
    };
    let small: Vec<usize> = block_sizes.iter().copied().filter(|&size| size <= 256).collect();
    let recode_over_encode = |how: &str, recode, encode| {
        let ratios = each(&block_sizes, &|size| {
            let [recode, encode] =
                [recode, encode].map(|operation| rate(group(operation, size, 1450), GF256, None));
            over(recode, encode)
        });
        // Recoding combines the vectors as well.
        let share = |size: usize| Some(1450.0 / (1450 + size) as f64);
        Gate::all(&format!("GF(2^8) recode over encode, {how}, 1450 B"), 0.8, ratios)
            .beside("the same rate for vectors and payloads", each(&block_sizes, &share))
    };
    let avx2_over_simdx = |operation, backend: Option<&'static str>| {
        let at = |symbol_size| {
            each(&block_sizes, &|size| {
                let group = group(operation, size, symbol_size);
                let theirs = figures.peer(group, "rlnc-simdx", backend);
                over(rate(group, GF256, Some("avx2")), theirs)
            })
        };
        at(1450).into_iter().chain(at(1536)).collect::<Vec<_>>()
    };
    let avx2_bound_over_simdx = || {
        let at = |symbol_size| {
            each(&block_sizes, &|size| {
                let bound = limits.register_mul_add_avx2.map(|limit| limit / size as f64);
                let group = group(Operation::Encode, size, symbol_size);
                over(bound, figures.peer(group, "rlnc-simdx", None))
            })
        };
        at(1450).into_iter().chain(at(1536)).collect::<Vec<_>>()
    };
    vec![
        Gate::all(
            "the register loop moves enough bytes per cycle to be a limit",
            BYTES_PER_CYCLE_MIN,
            vec![("bytes per cycle".to_owned(), limits.register_bytes_per_cycle)],
        ),
        Gate::all(
            "GF(2^8) batch encode over the register limit, 1450 B",
            0.80,
            each(&small, &|size| ratio_to_limit(Operation::EncodeBatch, GF256, size)),
        ),
        Gate::all(
            "GF(2^8) encode of one symbol over the best of rlnc and rlnc-simdx, 1450 B",
            2.0,
            over_peers(Operation::Encode, 1450),
        )
        .beside("reading the sources alone", reading_over_peers(1450)),
        Gate::all(
            "GF(2^8) encode of one symbol over the best of rlnc and rlnc-simdx, 1536 B",
            1.0,
            over_peers(Operation::Encode, 1536),
        )
        .beside("reading the sources alone", reading_over_peers(1536)),
        Gate::all(
            "GF(2^8) dense decode over the best of rlnc and rlnc-simdx, 1450 B",
            3.0,
            over_peers(Operation::Decode, 1450),
        ),
        Gate::all(
            "GF(2^8) dense decode over the best of rlnc and rlnc-simdx, 1536 B",
            1.0,
            over_peers(Operation::Decode, 1536),
        ),
        recode_over_encode("one symbol", Operation::Recode, Operation::Encode),
        recode_over_encode("batch", Operation::RecodeBatch, Operation::EncodeBatch),
        Gate::all(
            "GF(2) batch encode over the register limit of GF(2^8), 1450 B",
            3.2,
            each(&[64, 150], &|size| ratio_to_limit(Operation::EncodeBatch, GF2, size)),
        ),
        Gate::all(
            "GF(2) dense decode over the best known, scaled by the limit, 1450 B",
            1.0,
            GF2_DECODE_BEST
                .into_iter()
                .map(|(size, best)| {
                    let scale = limits.register_mul_add.map(|limit| limit / GF2_DECODE_BEST_LIMIT);
                    let ours = rate(group(Operation::Decode, size, 1450), GF2, None);
                    (size.to_string(), over(ours, scale.map(|scale| scale * best)))
                })
                .collect(),
        ),
        Gate::all(
            "GF(2^8) decode after 10 % loss over rlnc-simdx, 1280 B",
            4.0,
            each(&[16, 50, 100], &|size| {
                let group = group(Operation::SystematicDecode, size, SYSTEMATIC_SYMBOL_SIZE);
                over(rate(group, GF256, None), figures.peer(group, "rlnc-simdx", None))
            }),
        ),
        Gate::all(
            "GF(2^8) encode of one symbol by AVX2 over rlnc-simdx, 1450 B and 1536 B",
            1.0,
            avx2_over_simdx(Operation::Encode, None),
        )
        .beside("multiplying by AVX2 from registers alone", avx2_bound_over_simdx())
        .beside(
            "against rlnc-simdx by AVX2 it",
            avx2_over_simdx(Operation::Encode, Some(simdx::AVX2)),
        ),
        Gate::all(
            "GF(2^8) dense decode by AVX2 over rlnc-simdx, 1450 B and 1536 B",
            1.0,
            avx2_over_simdx(Operation::Decode, None),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_judged_by_its_least_ratio() {
        let ratios = |least| vec![("16".to_owned(), Some(3.0)), ("32".to_owned(), least)];
        let verdict = |least| {
            let gate = Gate::all("x", 2.0, ratios(least));
            (gate.check.holds, gate.open)
        };
        assert_eq!(verdict(Some(2.0)), (true, false));
        assert_eq!(verdict(Some(1.9)), (false, false));
        assert_eq!(verdict(None), (false, true), "not measured");
        let text = Gate::all("x", 2.0, ratios(Some(1.9))).text();
        assert_eq!(text, "FAIL  x (least 1.90 of 2)\n        16: 3.00, 32: 1.90\n");
    }
}
