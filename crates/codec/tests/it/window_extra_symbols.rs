//! Number of coded symbols beyond those missing that the window decoder needs, compared with
//! theory: as in `extra_symbols.rs`, the sum over j = 1..=missing of 1 / (q^j - 1).

use corridor_codec::{Coefficients, Density, Field, WindowDecoder, WindowEncoder, WindowOutcome};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Compares the mean of `extra` over `rounds` rounds with theory, within four standard errors.
fn assert_mean(field: Field, missing: usize, rounds: u32, mut extra: impl FnMut(u32) -> usize) {
    let q = f64::from(field.order());
    let (expected, variance) = (1..=missing as i32).fold((0., 0.), |(mean, variance), j| {
        let dependent = q.powi(-j);
        let innovative = 1. - dependent;
        (mean + dependent / innovative, variance + dependent / (innovative * innovative))
    });
    let total: usize = (0..rounds).map(&mut extra).sum();
    let mean = total as f64 / f64::from(rounds);
    let bound = 4. * (variance / f64::from(rounds)).sqrt();
    println!("{field:?}, {missing} missing: {mean:.4}, expected {expected:.4} +- {bound:.4}");
    assert!((mean - expected).abs() < bound, "{mean} instead of {expected} +- {bound}");
}

/// A window keeps sliding; in each round a burst is lost, and coded symbols over the whole window
/// follow until everything is repaired.
fn assert_bursts_cost_what_theory_says(
    field: Field,
    rounds: u32,
    coefficients: impl Fn(u32) -> Coefficients<'static>,
) {
    let (window_size, missing) = (40, 9);
    let mut encoder = WindowEncoder::new(field, window_size, 2).unwrap();
    let mut decoder = WindowDecoder::new(field, window_size, 2).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(8681);
    encoder.reset((1 << 32) - 1000);
    decoder.reset((1 << 32) - 1000);
    let mut number = 0;
    assert_mean(field, missing, rounds, |_| {
        let lost = rng.next_u32() as usize % (window_size - missing);
        for place in 0..window_size {
            if encoder.is_full() {
                encoder.advance_to(encoder.base() + 1);
            }
            let id = encoder.push(&[place as u8, 7]).unwrap();
            decoder.advance_to(encoder.base());
            if !(lost..lost + missing).contains(&place) {
                let symbol = encoder.symbol(id).unwrap();
                assert_eq!(decoder.add_source(id, symbol), Ok(WindowOutcome::Innovative));
            }
        }
        assert_eq!((decoder.missing_count(), decoder.deficit()), (missing, missing));
        let (base, mut payload, mut received) = (encoder.base(), [0; 2], 0);
        while decoder.deficit() > 0 {
            let given = coefficients(number);
            number += 1;
            let len = encoder.encode(base, window_size, given, &mut payload).unwrap();
            // An all-zero vector is not worth sending, but it counts here.
            if len > 0 {
                decoder.add_coded(base, window_size, given, &payload[..len]).unwrap();
            }
            received += 1;
            assert!(received < missing + 64, "stuck");
        }
        assert_eq!(decoder.in_order_end(), encoder.end());
        let place = lost as u64;
        assert_eq!(decoder.symbol(base + place), Some(&[lost as u8, 7][..]));
        received - missing
    });
}

#[test]
fn seeds_cost_what_theory_says() {
    for (field, rounds) in [(Field::Gf2, 20_000), (Field::Gf16, 20_000), (Field::Gf256, 20_000)] {
        assert_bursts_cost_what_theory_says(field, rounds, Coefficients::Seed);
    }
}

/// RFC 8681's coefficients over GF(2) are uniform at half density. Over GF(2^8) with full density
/// none is zero, which is not quite uniform, but indistinguishable within the bound.
#[test]
fn repair_keys_cost_what_theory_says() {
    let half = Density::new(7).unwrap();
    let key = |number| Coefficients::RepairKey(number as u16, half);
    assert_bursts_cost_what_theory_says(Field::Gf2, 3000, key);
    let key = |number| Coefficients::RepairKey(number as u16, Density::FULL);
    assert_bursts_cost_what_theory_says(Field::Gf256, 5000, key);
}

/// A relay that has a complete window is as good as the sender.
#[test]
fn recoded_symbols_cost_what_theory_says() {
    for (field, rounds) in [(Field::Gf2, 3000), (Field::Gf16, 5000)] {
        let count = 20;
        let mut relay = WindowDecoder::new(field, count, 1).unwrap();
        relay.reset(u64::MAX - 100);
        let base = relay.base();
        for id in base..base + count as u64 {
            relay.add_source(id, &[9]).unwrap();
        }
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut decoder = WindowDecoder::new(field, count, 1).unwrap();
        let mut vector = vec![0; field.vector_len_bytes(count)];
        assert_mean(field, count, rounds, |_| {
            decoder.reset(base);
            let mut received = 0;
            while decoder.rank() < count {
                let mut payload = [0];
                let recoded = relay.recode(base, count, &mut rng, &mut vector, &mut payload);
                assert_eq!(recoded.unwrap().unwrap().count, count);
                let given = Coefficients::Vector(&vector);
                decoder.add_coded(base, count, given, &payload).unwrap();
                received += 1;
            }
            assert_eq!(decoder.symbol(base), Some(&[9][..]));
            received - count
        });
    }
}

/// Giving up the beginning of a window costs no more rank than necessary: coded symbols over both
/// dropped and kept symbols still count for the latter.
#[test]
fn giving_up_keeps_the_rank_of_the_rest() {
    for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
        let mut decoder = WindowDecoder::new(field, 32, 1).unwrap();
        let mut vector = vec![0; field.vector_len_bytes(32)];
        let mut seed = 0;
        while decoder.rank() < 20 {
            field.expand_seed(seed, 32, &mut vector).unwrap();
            decoder.add_coded(0, 32, Coefficients::Vector(&vector), &[1]).unwrap();
            seed += 1;
        }
        // 20 equations with 8 unknowns eliminated leave 12, but not for a decoder that keeps rows
        // unreduced.
        assert_eq!(decoder.advance_to(8), 8);
        assert!((12..=13).contains(&decoder.rank()), "{}", decoder.rank());
        assert_eq!(decoder.deficit(), 24 - decoder.rank());
    }
}
