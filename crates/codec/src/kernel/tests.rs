//! Every backend that this machine has, compared with the naive method.

use std::{eprintln, vec, vec::Vec};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::naive::multiply_byte;

const FIELDS: [Field; 3] = [Field::Gf2, Field::Gf16, Field::Gf256];
const NAMES: [&str; 7] = ["gfni512", "gfni256", "avx512", "avx2", "ssse3", "neon", "portable"];

/// All available backends; reports the missing ones.
fn backends() -> Vec<Backend> {
    for name in NAMES.iter().filter(|name| Backend::named(name).is_none()) {
        eprintln!("absent: this machine has no {name}: skipped");
    }
    assert!(Backend::available().all(|backend| NAMES.contains(&backend.name())));
    Backend::available().collect()
}

/// Zero, one, and values around the widths and strips of all backends.
fn lens() -> impl Iterator<Item = usize> {
    let around = [8, 16, 32, 64, 128, 256, 512, 1450];
    [0, 1, 2].into_iter().chain(around.into_iter().flat_map(|len| len - 1..=len + 1))
}

fn random(rng: &mut ChaCha8Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// Coding vectors, half of the time mostly zeros, which take another code path.
fn random_vectors(
    rng: &mut ChaCha8Rng,
    field: Field,
    count: usize,
    outputs: usize,
) -> Vec<Vec<u8>> {
    let mut vectors: Vec<_> =
        (0..outputs).map(|_| random(rng, field.vector_len_bytes(count))).collect();
    if rng.next_u32().is_multiple_of(2) {
        for vector in &mut vectors {
            for index in (0..count).filter(|_| !rng.next_u32().is_multiple_of(4)) {
                field.set_coefficient(vector, index, 0);
            }
        }
    }
    vectors
}

/// Rows of random bytes, at an odd address.
struct Case {
    memory: Vec<u8>,
    offset: usize,
    stride: usize,
    count: usize,
}

impl Case {
    fn new(rng: &mut ChaCha8Rng, count: usize, len: usize, offset: usize) -> Self {
        let stride = len.next_multiple_of(PADDING).max(PADDING);
        Self { memory: random(rng, offset + count * stride), offset, stride, count }
    }

    fn rows(&self) -> Rows<'_> {
        Rows { bytes: &self.memory[self.offset..], stride: self.stride, count: self.count }
    }

    fn expected(&self, field: Field, vector: &[u8], len: usize) -> Vec<u8> {
        let mut sum = vec![0; len];
        for row in 0..self.count {
            let factor = field.coefficient(vector, row);
            for (sum, &byte) in sum.iter_mut().zip(&self.rows().bytes[row * self.stride..]) {
                *sum ^= multiply_byte(field, factor, byte);
            }
        }
        sum
    }
}

#[test]
fn names_find_their_backends() {
    for backend in backends() {
        assert_eq!(Backend::named(backend.name()).map(Backend::name), Some(backend.name()));
    }
    assert!(Backend::named("6502").is_none());
    assert!(Backend::named("portable").is_some());
}

#[test]
fn combinations_agree_with_the_schoolbook() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for backend in backends() {
        for field in FIELDS {
            for len in lens() {
                let offset = (rng.next_u32() % 65) as usize;
                let count = [0, 1, 2, 3, 7, 8, 9, 17][(rng.next_u32() % 8) as usize];
                let case = Case::new(&mut rng, count, len, offset);
                check_combinations(&mut rng, backend, field, &case, len);
            }
        }
    }
}

/// More rows than the L1 cache has room for: other strips, other tiles.
#[test]
fn combinations_of_far_rows_agree_with_the_schoolbook() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for backend in backends() {
        for field in FIELDS {
            for len in [FAR_BYTES / 50 + 1, 1280, 1450] {
                let case = Case::new(&mut rng, 50, len, 0);
                for outputs in [1, 4, 7, 8, 13, 16] {
                    let vectors = random_vectors(&mut rng, field, case.count, outputs);
                    let vectors: Vec<_> = vectors.iter().map(|vector| &vector[..]).collect();
                    let mut memory = vec![vec![0xEE; len + 1]; outputs];
                    let mut outs: Vec<_> = memory.iter_mut().map(|out| &mut out[..]).collect();
                    backend.combine(field, case.rows(), None, &vectors, &mut outs, len);
                    for (out, vector) in memory.iter().zip(vectors) {
                        let what = (backend, field, len, outputs);
                        assert_eq!(out[..len], case.expected(field, vector, len), "{what:?}");
                        assert_eq!(out[len], 0xEE, "written beyond: {what:?}");
                    }
                }
            }
        }
    }
}

/// One output from rows outside the cache, of every possible strip width, and rows of several
/// strips.
#[test]
fn far_rows_of_every_width_agree_with_the_schoolbook() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for len in (1..=26).map(|lines| lines * 64 - 1).chain([2000, 3100, 9000]) {
        let case = Case::new(&mut rng, (simd::NEAR_BYTES / len + 2).min(MAX_BLOCK_SIZE), len, 0);
        let vector = random_vectors(&mut rng, Field::Gf256, case.count, 1).concat();
        let expected = case.expected(Field::Gf256, &vector, len);
        for backend in backends() {
            let mut out = vec![0xEE; len + 1];
            backend.combine(Field::Gf256, case.rows(), None, &[&vector], &mut [&mut out], len);
            assert_eq!(out[..len], expected, "{backend:?} {len}");
            assert_eq!(out[len], 0xEE, "written beyond: {backend:?} {len}");
        }
    }
}

fn check_combinations(
    rng: &mut ChaCha8Rng,
    backend: Backend,
    field: Field,
    case: &Case,
    len: usize,
) {
    let size = backend.group_size(field);
    let mut mirror = vec![0xEE; case.stride * (case.count + 8)];
    for outputs in [1, 2, 3, 4, 5, 8, 9, 16] {
        let vectors = random_vectors(rng, field, case.count, outputs);
        let vectors: Vec<_> = vectors.iter().map(|vector| &vector[..]).collect();
        let expected: Vec<_> =
            vectors.iter().map(|vector| case.expected(field, vector, len)).collect();
        let groups_max = size.map_or(0, |size| case.count.div_ceil(size));
        for groups in 0..=groups_max {
            if let (Some(size), Some(last)) = (size, groups.checked_sub(1)) {
                let (first, count) = (last * size, (case.count - last * size).min(size));
                let bytes = &case.rows().bytes[first * case.stride..];
                let rows = Rows { bytes, count, ..case.rows() };
                backend.interleave(field, rows, &mut mirror, last, groups_max);
            }
            let mut memory = vec![vec![0xEE; len + 70]; outputs];
            let offset = (rng.next_u32() % 64) as usize;
            let mut outs: Vec<_> = memory.iter_mut().map(|out| &mut out[offset..]).collect();
            let mirror = size.map(|_| Mirror { bytes: &mirror, groups, groups_max });
            backend.combine(field, case.rows(), mirror, &vectors, &mut outs, len);
            for (out, expected) in memory.iter().zip(&expected) {
                let what = (backend, field, case.count, len, outputs, groups);
                assert_eq!(out[offset..offset + len], expected[..], "{what:?}");
                let mut around = out[..offset].iter().chain(&out[offset + len..]);
                assert!(around.all(|&byte| byte == 0xEE), "written beyond: {what:?}");
            }
        }
    }
}

#[test]
fn updates_and_multiples_agree_with_the_schoolbook() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for backend in backends() {
        for field in FIELDS {
            for len in lens() {
                let factor = (rng.next_u32() % field.order()) as u8;
                let (to, from) = (random(&mut rng, len + 9), random(&mut rng, len + 9));
                let (a, b) = ((rng.next_u32() % 9) as usize, (rng.next_u32() % 9) as usize);
                let mut sum = to.clone();
                backend.add_scaled(field, &mut sum[a..a + len], factor, &from[b..b + len]);
                for (place, (&sum, &to)) in sum.iter().zip(&to).enumerate() {
                    let inside = (a..a + len).contains(&place);
                    let added = if inside { from[place - a + b] } else { 0 };
                    let expected = to ^ multiply_byte(field, factor, added);
                    assert_eq!(sum, expected, "{backend:?} {field:?} {len}");
                }
            }
            for len in [64, 128, 192, 576, 1472] {
                let from = random(&mut rng, len);
                let factor = (rng.next_u32() % field.order()).max(1) as u8;
                let mut row = from.clone();
                backend.scale(field, &mut row, factor);
                let expected: Vec<_> =
                    from.iter().map(|&byte| multiply_byte(field, factor, byte)).collect();
                assert_eq!(row, expected, "{backend:?} {field:?} {len}");
            }
        }
    }
}

/// Payloads and the rows alongside, with lengths around the widths of all backends, and blocks that
/// do or do not fill the L1 cache.
#[test]
fn rows_beside_others_agree_with_the_schoolbook() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut served = 0;
    for backend in backends() {
        for count in [0, 1, 2, 3, 7, 8, 15, 16, 23, 24, 25, 31, 32, 33, 50, 64] {
            for len in [1, 63, 64, 65, 255, 256, 257, 700, 1408, 1409, 1450, 1472, 1473, 2000] {
                let beside_len = (rng.next_u32() % 66) as usize;
                let offset = (rng.next_u32() % 65) as usize;
                let case = Case::new(&mut rng, count, len, offset);
                let mut beside = Case::new(&mut rng, count + PADDING, beside_len, offset);
                beside.count = count;
                if beside_len <= PADDING {
                    beside.stride = [beside_len.next_power_of_two(), PADDING][offset % 2];
                }
                let vector = random_vectors(&mut rng, Field::Gf256, count, 1).concat();
                let mut memory = [vec![0xEE; len + 2], vec![0xEE; beside_len + 2]];
                let [out, beside_out] = &mut memory;
                let outs = (&mut out[1..=len], &mut beside_out[1..=beside_len]);
                let both = (case.rows(), beside.rows());
                let done = backend.combine_beside(Field::Gf256, both, &vector, outs);
                served += usize::from(done);
                for (case, out) in [&case, &beside].into_iter().zip(&memory) {
                    let len = out.len() - 2;
                    let what = (backend, count, len, done);
                    let expected = case.expected(Field::Gf256, &vector, len);
                    assert!(!done || out[1..=len] == expected, "{what:?}");
                    let untouched =
                        if done { [&out[..1], &out[len + 1..]] } else { [&out[..], &[]] };
                    let mut untouched = untouched.into_iter().flatten();
                    assert!(untouched.all(|&byte| byte == 0xEE), "written beyond: {what:?}");
                }
            }
        }
    }
    // Vectors of 16 bytes handle the fewest cases: a quarter of the rows alongside, and of these
    // half are dense.
    let vectorised = Backend::available().filter(|backend| backend.name() != "portable").count();
    assert!(served >= 10 * vectorised, "hardly any case is served: {served}");
}

/// Cases one method declines are handled by the other, with the same result.
#[test]
fn only_dense_vectors_over_the_largest_field_are_combined_beside_others() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let (case, beside) = (Case::new(&mut rng, 16, 1450, 0), Case::new(&mut rng, 16, 16, 0));
    let both = (case.rows(), beside.rows());
    let (mut out, mut beside_out) = ([0; 1450], [0; 16]);
    for backend in backends() {
        let portable = backend.name() == "portable";
        for (field, vector, expected) in [
            (Field::Gf256, [7; 16], !portable),
            (Field::Gf16, [7; 16], false),
            (Field::Gf2, [7; 16], false),
            (Field::Gf256, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0], false),
        ] {
            let outs = (&mut out[..], &mut beside_out[..]);
            let done = backend.combine_beside(field, both, &vector, outs);
            assert_eq!(done, expected, "{backend:?} {field:?} {vector:?}");
        }
    }
}

#[test]
fn maps_give_the_bytes_of_bit_matrices() {
    for field in FIELDS {
        let tables = field.tables();
        for (coefficient, matrix) in (0..field.order()).zip(tables.affine) {
            let bytes = tables.maps.map(|map| {
                let rows = map.to_be_bytes().into_iter().enumerate();
                let bits =
                    rows.map(|(bit, row)| ((row & coefficient as u8).count_ones() % 2) << bit);
                bits.sum::<u32>() as u8
            });
            assert_eq!(u64::from_le_bytes(bytes), matrix, "{field:?} {coefficient}");
        }
    }
}
