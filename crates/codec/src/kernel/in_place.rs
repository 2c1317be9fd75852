//! Overwrites a few rows with combinations of all of them: used to complete a block when its last
//! symbol arrives. Separate outputs would occupy part of the L1 cache.

use super::terms::Every;
use super::{Backend, PADDING, TILE};
use crate::{Field, MAX_BLOCK_SIZE};

/// Writable rows of bytes at equal distances.
#[derive(Debug)]
pub(crate) struct RowsMut<'a> {
    pub bytes: &'a mut [u8],
    pub stride: usize,
    pub count: usize,
}

impl Backend {
    /// `rows[targets[i]] =` the combination of `rows`, as before the call, with coding vector
    /// `vectors[i]` over GF(2^8): the first `len` bytes of it. Returns whether it did so: only for
    /// as many outputs as a kernel makes at once, one, two or four.
    ///
    /// # Panics
    /// If a vector is too short, the numbers of vectors and targets differ, a target is not a row,
    /// or rows are not padded.
    pub(crate) fn combine_in_place(
        self,
        rows: RowsMut<'_>,
        vectors: &[&[u8]],
        targets: &[usize],
        len: usize,
    ) -> bool {
        let RowsMut { bytes, stride, count } = rows;
        let Some(functions) = &self.0.every else { return false };
        let combine = match vectors.len() {
            1 => functions.one,
            2 => functions.two,
            TILE => functions.four,
            _ => return false,
        };
        assert!(vectors.len() == targets.len() && targets.iter().all(|&target| target < count));
        assert!(vectors.iter().all(|vector| vector.len() >= count));
        assert!(count <= MAX_BLOCK_SIZE && len <= stride && stride.is_multiple_of(PADDING));
        assert!(count * stride <= bytes.len());
        let base = bytes.as_mut_ptr();
        let mut every = Every { stride, count, vectors: [core::ptr::null(); TILE] };
        let mut to = [core::ptr::null_mut(); TILE];
        for (place, (vector, &target)) in vectors.iter().zip(targets).enumerate() {
            every.vectors[place] = vector.as_ptr();
            to[place] = base.wrapping_add(target * stride);
        }
        let to = &to[..targets.len()];
        // SAFETY: the machine has this backend's instructions; the lengths were checked just now,
        // and all rows are borrowed exclusively. Outputs are whole rows.
        unsafe { combine(Field::Gf256.tables(), base, &every, to, len) };
        true
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::kernel::Rows;

    #[test]
    fn rows_become_what_they_would_elsewhere() {
        let mut rng = ChaCha8Rng::seed_from_u64(16);
        let mut random = |len: usize| {
            let mut bytes = vec![0; len];
            rng.fill_bytes(&mut bytes);
            bytes
        };
        for backend in Backend::available() {
            for (count, len) in [(1, 1_usize), (5, 63), (16, 64), (16, 1280), (17, 321), (70, 1450)]
            {
                let stride = len.next_multiple_of(PADDING);
                for outputs in [1, 2, 3, 4].into_iter().filter(|&outputs| outputs <= count) {
                    let before = random(count * stride);
                    let vectors: Vec<_> = (0..outputs).map(|_| random(count)).collect();
                    let vectors: Vec<_> = vectors.iter().map(Vec::as_slice).collect();
                    // Include the last row, and others.
                    let targets: Vec<_> =
                        (0..outputs).map(|i| (i * 7 + count - 1) % count).collect();
                    let mut bytes = before.clone();
                    let rows = RowsMut { bytes: &mut bytes, stride, count };
                    let done = backend.combine_in_place(rows, &vectors, &targets, len);
                    let mut expected = before.clone();
                    if done {
                        for (vector, target) in vectors.iter().zip(&targets) {
                            let rows = Rows { bytes: &before, stride, count };
                            let out = &mut expected[target * stride..][..len];
                            backend.combine(Field::Gf256, rows, None, &[vector], &mut [out], len);
                        }
                    }
                    assert_eq!(bytes, expected, "{backend:?} {count} x {len}, {outputs} outputs");
                    assert!(!done || outputs != 3 && backend.name() != "portable");
                }
            }
        }
    }
}
