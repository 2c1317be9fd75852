//! Variance reduction: means of few blocks as exact as those of many. Most of the variation between
//! blocks comes from the number of erased frames, and that is known.
//!
//! A block ends at a stopping time, so by Wald's equation the frames that crossed a link are on
//! average its delivery ratio times the frames sent: each link's surplus has mean zero. What a
//! regression on the surpluses explains is therefore not part of the mean (control variates), and
//! the standard error is that of the residuals.

use corridor_proto::ErasureRatios;

/// A block's frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// ENC frames of the encoder.
    pub encoder: f64,
    /// ENC frames of the helper.
    pub helper: f64,
    /// Frames beyond the expected number that arrived from encoder to helper, from helper to
    /// decoder, and from encoder to decoder.
    pub surplus: [f64; 3],
}

impl Block {
    pub(super) fn note_sent(&mut self, from: usize, ratios: ErasureRatios, helper: bool) {
        if from == 2 {
            self.helper += 1.0;
            self.surplus[1] -= 1.0 - ratios.e2;
        } else if from == 0 {
            self.encoder += 1.0;
            self.surplus[0] -= if helper { 1.0 - ratios.e1 } else { 0.0 };
            self.surplus[2] -= 1.0 - ratios.e3;
        }
    }
}

/// A mean over blocks, with its standard error.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub mean: f64,
    pub error: f64,
}

/// The mean of `value` over blocks, without what the surpluses explain.
pub fn estimate(blocks: &[Block], value: impl Fn(&Block) -> f64) -> Estimate {
    let count = blocks.len() as f64;
    let mean = |of: &dyn Fn(&Block) -> f64| blocks.iter().map(of).sum::<f64>() / count;
    let means = [0, 1, 2].map(|link| mean(&|block| block.surplus[link]));
    let mean_value = mean(&value);
    let centred = |block: &Block, link: usize| block.surplus[link] - means[link];
    let covariance = |link| mean(&|block| centred(block, link) * (value(block) - mean_value));
    let moments = [0, 1, 2]
        .map(|row| [0, 1, 2].map(|col| mean(&|block| centred(block, row) * centred(block, col))));
    let slopes = solve(moments, [0, 1, 2].map(covariance));
    let explained = |block: &Block| (0..3).map(|k| slopes[k] * block.surplus[k]).sum::<f64>();
    let adjusted = mean(&|block| value(block) - explained(block));
    let residual = mean(&|block| libm::pow(value(block) - explained(block) - adjusted, 2.0));
    Estimate { mean: adjusted, error: (residual / (count - 4.0)).sqrt() }
}

/// Solves a symmetric system; a link without frames has a row of zeroes, and its slope is zero.
fn solve(mut rows: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        if rows[pivot][pivot].abs() < 1e-9 {
            rows[pivot] = [0.0; 3];
            (rows[pivot][pivot], right[pivot]) = (1.0, 0.0);
        }
        let (pivot_row, pivot_right) = (rows[pivot], right[pivot]);
        for row in (0..3).filter(|&row| row != pivot) {
            let factor = rows[row][pivot] / pivot_row[pivot];
            rows[row].iter_mut().zip(pivot_row).for_each(|(value, above)| *value -= factor * above);
            right[row] -= factor * pivot_right;
        }
    }
    [0, 1, 2].map(|at| right[at] / rows[at][at])
}
