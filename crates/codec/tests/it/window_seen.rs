//! A window decoder's *seen* symbols match the definition of Sundararajan et al. (Network Coding
//! Meets TCP, 2011, Definition 1): a symbol is seen if some combination of the received symbols
//! begins with it.

use corridor_codec::{Coefficients, Field, WindowDecoder};

/// Number of symbols in the window; all combinations of received symbols are enumerated.
const SYMBOLS: usize = 7;

/// The leading symbols of all combinations of the vectors, as a bitmap: over GF(2), bit `i` of a
/// vector is the coefficient of symbol `i`.
fn leading(vectors: &[u8]) -> u8 {
    (1..1_u32 << vectors.len()).fold(0, |seen, chosen| {
        let chosen = vectors.iter().enumerate().filter(|(index, _)| chosen >> index & 1 == 1);
        let sum = chosen.fold(0, |sum, (_, vector)| sum ^ vector);
        seen | sum & sum.wrapping_neg()
    })
}

#[test]
fn seen_are_the_symbols_that_combinations_begin_with() {
    for seed in 0..300 {
        let mut decoder = WindowDecoder::new(Field::Gf2, SYMBOLS, 1).unwrap();
        let mut received = Vec::new();
        for arrival in 0..SYMBOLS as u32 + 2 {
            let mut vector = [0];
            Field::Gf2.expand_seed(seed * 100 + arrival, SYMBOLS, &mut vector).unwrap();
            // Every third arrival only covers the later symbols, so that gaps occur.
            let vector = vector[0] & if arrival % 3 == 2 { 0x78 } else { 0x7F };
            received.push(vector);
            let given = Coefficients::Vector(&[vector]);
            decoder.add_coded(0, SYMBOLS, given, &[1]).unwrap();
            let seen = leading(&received);
            for id in 0..SYMBOLS as u64 {
                assert_eq!(decoder.is_seen(id), seen >> id & 1 == 1, "seed {seed}, symbol {id}");
            }
            assert_eq!(decoder.seen_end(), u64::from(seen.trailing_ones()), "seed {seed}");
        }
    }
}

#[test]
fn decoded_symbols_are_seen_and_the_window_moves() {
    let mut decoder = WindowDecoder::new(Field::Gf256, 8, 1).unwrap();
    assert_eq!(decoder.seen_end(), 0);
    decoder.add_source(0, &[1]).unwrap();
    decoder.add_coded(1, 3, Coefficients::Vector(&[1, 1, 1]), &[5]).unwrap();
    decoder.add_source(3, &[9]).unwrap();
    assert_eq!((decoder.in_order_end(), decoder.seen_end()), (1, 2));
    assert!(decoder.is_seen(3) && !decoder.is_seen(2));
    decoder.add_coded(2, 1, Coefficients::Vector(&[1]), &[7]).unwrap();
    assert_eq!((decoder.seen_end(), decoder.in_order_end()), (4, 4));
    decoder.advance_to(4);
    assert!(!decoder.is_seen(3));
    assert_eq!(decoder.seen_end(), 4);
}
