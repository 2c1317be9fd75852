//! Number of symbols beyond the block size that a dense code needs, compared with theory.
//!
//! When j dimensions are missing, a uniform vector is innovative with probability 1 - q^-j, so the
//! expected extra symbols are the sum over j = 1..=g of 1 / (q^j - 1), and their variance is the
//! sum of q^-j / (1 - q^-j)^2. Seeds are fixed; the bound is four standard errors. Blocks of 16
//! symbols suffice: further terms add less than 2^-15 to the sum.
//!
//! `cargo test --release -p corridor-codec --test it -- extra_symbols:: --nocapture` prints the
//! means.

use corridor_codec::{BlockDecoder, BlockEncoder, Field, Outcome, Recoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const FIELDS: [Field; 3] = [Field::Gf2, Field::Gf16, Field::Gf256];
const BLOCK_SIZE: usize = 16;
const BLOCKS: u32 = 100_000;

/// Expectation and variance of the extra symbols.
fn theory(field: Field, block_size: usize) -> (f64, f64) {
    let q = f64::from(field.order());
    (1..=block_size as i32).fold((0., 0.), |(mean, variance), j| {
        let dependent = q.powi(-j);
        let innovative = 1. - dependent;
        (mean + dependent / innovative, variance + dependent / (innovative * innovative))
    })
}

/// Compares the mean over `blocks` blocks with theory. `extra` gives one block's extra symbols.
fn assert_mean(field: Field, block_size: usize, blocks: u32, mut extra: impl FnMut(u32) -> usize) {
    let total: usize = (0..blocks).map(&mut extra).sum();
    let mean = total as f64 / f64::from(blocks);
    let (expected, variance) = theory(field, block_size);
    let bound = 4. * (variance / f64::from(blocks)).sqrt();
    println!("{field:?}, g = {block_size}: {mean:.4}, expected {expected:.4} +- {bound:.4}");
    assert!((mean - expected).abs() < bound, "{mean} instead of {expected} +- {bound}");
}

#[test]
fn theory_is_the_published_one() {
    assert!((theory(Field::Gf2, 150).0 - 1.607).abs() < 0.001);
    assert!((theory(Field::Gf16, 150).0 - 0.071).abs() < 0.001);
    assert!((theory(Field::Gf256, 150).0 - 0.004).abs() < 0.0001);
    assert!(theory(Field::Gf2, 150).0 - theory(Field::Gf2, BLOCK_SIZE).0 < 1. / 32_768.);
}

/// A full encoder, and its symbols.
fn encoder(field: Field) -> BlockEncoder {
    let mut encoder = BlockEncoder::new(field, BLOCK_SIZE, 1).unwrap();
    (1..=BLOCK_SIZE as u8).for_each(|symbol| {
        encoder.push(&[symbol]).unwrap();
    });
    encoder
}

/// Decodes blocks of coded symbols that `next` makes, each a vector and one byte.
fn assert_decoding(field: Field, mut next: impl FnMut(&mut [u8], &mut [u8; 1])) {
    let mut decoder = BlockDecoder::new(field, BLOCK_SIZE, 1).unwrap();
    let (mut vector, mut payload) = (vec![0; field.vector_len_bytes(BLOCK_SIZE)], [0]);
    assert_mean(field, BLOCK_SIZE, BLOCKS, |_| {
        decoder.reset();
        let mut received = 0;
        while !decoder.is_complete() {
            next(&mut vector, &mut payload);
            decoder.add_coded(&vector, BLOCK_SIZE, &payload).unwrap();
            received += 1;
            assert!(received < BLOCK_SIZE + 64, "the rank is stuck at {}", decoder.rank());
        }
        for index in [0, BLOCK_SIZE - 1] {
            assert_eq!(decoder.symbol(index), Some(&[index as u8 + 1][..]));
        }
        received - BLOCK_SIZE
    });
}

#[test]
fn explicit_vectors_cost_what_theory_says() {
    for field in FIELDS {
        let (encoder, mut rng) = (encoder(field), ChaCha8Rng::seed_from_u64(2014));
        assert_decoding(field, |vector, payload| {
            field.draw_vector(BLOCK_SIZE, &mut rng, vector).unwrap();
            encoder.encode(vector, BLOCK_SIZE, payload).unwrap();
        });
    }
}

#[test]
fn consecutive_seeds_cost_what_theory_says() {
    for field in FIELDS {
        let (encoder, mut seed) = (encoder(field), 0);
        assert_decoding(field, |vector, payload| {
            field.expand_seed(seed, BLOCK_SIZE, vector).unwrap();
            seed += 1;
            encoder.encode(vector, BLOCK_SIZE, payload).unwrap();
        });
    }
}

/// A helper that has the whole block, or a peer that has decoded it, is as good as the encoder.
#[test]
fn recoded_symbols_cost_what_theory_says() {
    for field in FIELDS {
        let (encoder, mut rng) = (encoder(field), ChaCha8Rng::seed_from_u64(41));
        let mut helper = Recoder::new(field, BLOCK_SIZE, 1).unwrap();
        let mut peer = BlockDecoder::new(field, BLOCK_SIZE, 1).unwrap();
        let (mut vector, mut payload) = (vec![0; field.vector_len_bytes(BLOCK_SIZE)], [0]);
        while helper.rank() < BLOCK_SIZE {
            field.draw_vector(BLOCK_SIZE, &mut rng, &mut vector).unwrap();
            encoder.encode(&vector, BLOCK_SIZE, &mut payload).unwrap();
            helper.add_coded(&vector, BLOCK_SIZE, &payload).unwrap();
            peer.add_coded(&vector, BLOCK_SIZE, &payload).unwrap();
        }
        assert!(peer.is_complete());
        let mut number = 0;
        assert_decoding(field, |vector, payload| {
            number += 1;
            let recoded = match number % 2 {
                0 => helper.recode(&mut rng, vector, payload),
                _ => peer.recode(&mut rng, vector, payload),
            };
            assert_eq!(recoded.map(|recoded| recoded.count), Some(BLOCK_SIZE));
        });
    }
}

/// Blocks wider than the state of a small generator, with consecutive seeds as a sender uses them:
/// an expander that is linear over GF(2) would never complete one.
#[test]
fn expanded_seeds_cost_what_theory_says() {
    for (field, block_size, blocks) in [(Field::Gf2, 200, 600), (Field::Gf256, 80, 600)] {
        let mut recoder = Recoder::new(field, block_size, 1).unwrap();
        let mut vector = vec![0; field.vector_len_bytes(block_size)];
        let mut seed = 0;
        assert_mean(field, block_size, blocks, |_| {
            recoder.reset();
            let mut received = 0;
            while recoder.rank() < block_size {
                field.expand_seed(seed, block_size, &mut vector).unwrap();
                recoder.add_coded(&vector, block_size, &[0]).unwrap();
                seed += 1;
                received += 1;
                assert!(received < block_size + 64, "the rank is stuck at {}", recoder.rank());
            }
            received - block_size
        });
    }
}

/// With a systematic encoder, only losses have to be repaired, and a lossless link delivers each
/// symbol at once.
#[test]
fn a_systematic_block_costs_nothing_without_loss() {
    for field in [Field::Gf2, Field::Gf256] {
        let mut decoder = BlockDecoder::new(field, 100, 3).unwrap();
        for index in 0..100 {
            let symbol = [index as u8; 3];
            assert_eq!(decoder.add_source(index, &symbol), Ok(Outcome::Innovative));
            assert_eq!(decoder.symbol(index), Some(&symbol[..]));
            assert_eq!(decoder.decoded_count(), index + 1);
        }
        assert!(decoder.is_complete());
    }
}
