//! How many symbols beyond the block size a dense code costs, against theory.
//!
//! When j dimensions are missing, a uniform vector is innovative with probability 1 - q^-j, so the
//! expected extra symbols are the sum over j = 1..=g of 1 / (q^j - 1), and their variance is the
//! sum of q^-j / (1 - q^-j)^2. Seeds are fixed; the bound is four standard errors.

use corridor_codec::{BlockDecoder, BlockEncoder, Field, Outcome, Recoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

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
    assert!((theory(Field::Gf256, 150).0 - 0.004).abs() < 0.0001);
}

#[test]
fn drawn_vectors_cost_what_theory_says() {
    for (field, blocks) in [(Field::Gf2, 3000), (Field::Gf256, 20_000)] {
        let block_size = 24;
        let mut rng = ChaCha8Rng::seed_from_u64(2014);
        let mut decoder = BlockDecoder::new(field, block_size, 1).unwrap();
        let mut vector = vec![0; field.vector_len_bytes(block_size)];
        assert_mean(field, block_size, blocks, |_| {
            decoder.reset();
            let mut received = 0;
            while !decoder.is_complete() {
                field.draw_vector(block_size, &mut rng, &mut vector).unwrap();
                decoder.add_coded(&vector, block_size, &[0]).unwrap();
                received += 1;
            }
            received - block_size
        });
    }
}

/// Blocks wider than the state of a small generator, with consecutive seeds as a sender uses
/// them: an expander that is linear over GF(2) would never complete one.
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

/// A helper that has the whole block is as good as the encoder.
#[test]
fn recoded_symbols_cost_what_theory_says() {
    let (field, block_size) = (Field::Gf2, 24);
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let mut helper = Recoder::new(field, block_size, 1).unwrap();
    let mut peer = BlockDecoder::new(field, block_size, 1).unwrap();
    let mut encoder = BlockEncoder::new(field, block_size, 1).unwrap();
    (0..block_size).for_each(|index| assert_eq!(encoder.push(&[7]), Ok(index)));
    let (mut vector, mut payload) = ([0; 3], [0]);
    while helper.rank() < block_size {
        field.draw_vector(block_size, &mut rng, &mut vector).unwrap();
        encoder.encode(&vector, block_size, &mut payload).unwrap();
        helper.add_coded(&vector, block_size, &payload).unwrap();
        peer.add_coded(&vector, block_size, &payload).unwrap();
    }
    assert!(peer.is_complete());
    let mut decoder = BlockDecoder::new(field, block_size, 1).unwrap();
    assert_mean(field, block_size, 3000, |block| {
        decoder.reset();
        let mut received = 0;
        while !decoder.is_complete() {
            let recoded = match block % 2 {
                0 => helper.recode(&mut rng, &mut vector, &mut payload),
                _ => peer.recode(&mut rng, &mut vector, &mut payload),
            };
            assert_eq!(recoded.map(|recoded| recoded.count), Some(block_size));
            decoder.add_coded(&vector, block_size, &payload).unwrap();
            received += 1;
        }
        assert_eq!(decoder.symbol(0), Some(&[7][..]));
        received - block_size
    });
}

/// With a systematic encoder only what was lost has to be repaired, and a lossless link gives
/// each symbol at once.
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
