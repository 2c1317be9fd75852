//! The symbols a coder exposes are sufficient to continue from: a coder that receives them then
//! behaves like the first one, symbol by symbol.

use std::{vec, vec::Vec};

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{BlockDecoder, BlockEncoder, Coefficients, Field, Recoder, WindowDecoder};

const FIELDS: [Field; 3] = [Field::Gf2, Field::Gf16, Field::Gf256];
const SYMBOL_SIZE_MAX: usize = 40;
const SEEDS: u64 = 12;

fn symbol(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut symbol = vec![0; rng.random_range(1..=SYMBOL_SIZE_MAX)];
    rng.fill_bytes(&mut symbol);
    symbol
}

/// Few coefficients, so that many symbols are dependent and rows stay entangled.
fn sparse(field: Field, count: usize, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut vector = vec![0; field.vector_len_bytes(count)];
    for _ in 0..rng.random_range(0..4) {
        let value = rng.random_range(1..field.order()) as u8;
        field.set_coefficient(&mut vector, rng.random_range(0..count), value);
    }
    vector
}

fn block_of(field: Field, size: usize, rng: &mut ChaCha8Rng) -> BlockEncoder {
    let mut encoder = BlockEncoder::new(field, size, SYMBOL_SIZE_MAX).unwrap();
    for _ in 0..size {
        encoder.push(&symbol(rng)).unwrap();
    }
    encoder
}

#[test]
fn a_decoder_goes_on_from_what_another_held() {
    for (field, seed) in FIELDS.into_iter().flat_map(|field| (0..SEEDS).map(move |s| (field, s))) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // One block is so large that columns of it wait.
        let size = if seed == 0 && field == Field::Gf256 { 600 } else { 3 + 7 * seed as usize };
        let encoder = block_of(field, size, &mut rng);
        let mut whole = BlockDecoder::new(field, size, SYMBOL_SIZE_MAX).unwrap();
        let mut decoder = whole.clone();
        for step in 0..3 * size {
            if step % size.div_ceil(5) == 0 {
                let mut copy = BlockDecoder::new(field, size, SYMBOL_SIZE_MAX).unwrap();
                let count = decoder.known_count();
                decoder.each_held(|vector, payload| {
                    copy.add_coded(vector, count, payload).unwrap();
                });
                decoder = copy;
                assert_same(&whole, &decoder);
            }
            let count = rng.random_range(1..=size);
            if rng.random_bool(0.4) {
                let symbol = encoder.symbol(count - 1).unwrap();
                let outcome = whole.add_source(count - 1, symbol);
                assert_eq!(decoder.add_source(count - 1, symbol), outcome);
            } else {
                let (vector, mut payload) = (sparse(field, count, &mut rng), [0; SYMBOL_SIZE_MAX]);
                let len = encoder.encode(&vector, count, &mut payload).unwrap().max(1);
                let outcome = whole.add_coded(&vector, count, &payload[..len]);
                assert_eq!(decoder.add_coded(&vector, count, &payload[..len]), outcome);
            }
        }
        assert_same(&whole, &decoder);
        assert!(decoder.decoded_count() > 0);
    }
}

fn assert_same(one: &BlockDecoder, other: &BlockDecoder) {
    assert_eq!((one.rank(), one.known_count()), (other.rank(), other.known_count()));
    for index in 0..one.block_size() {
        let (one, other) = (one.symbol(index), other.symbol(index));
        assert_eq!(one.is_some(), other.is_some(), "symbol {index}");
        let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
        // A received symbol keeps its own length; one solved for may have trailing zeros.
        let common = one.len().min(other.len());
        assert_eq!(one[..common], other[..common], "symbol {index}");
    }
}

#[test]
fn a_recoder_goes_on_from_what_another_held() {
    for (field, seed) in FIELDS.into_iter().flat_map(|field| (0..SEEDS).map(move |s| (field, s))) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let size = 2 + 6 * seed as usize;
        let encoder = block_of(field, size, &mut rng);
        let mut recoder = Recoder::new(field, size, SYMBOL_SIZE_MAX).unwrap();
        for _ in 0..size {
            let index = rng.random_range(0..size);
            if rng.random_bool(0.5) {
                recoder.add_source(index, encoder.symbol(index).unwrap()).unwrap();
            } else {
                let vector = sparse(field, index + 1, &mut rng);
                let mut payload = [0; SYMBOL_SIZE_MAX];
                let len = encoder.encode(&vector, index + 1, &mut payload).unwrap().max(1);
                recoder.add_coded(&vector, index + 1, &payload[..len]).unwrap();
            }
            let mut copy = Recoder::new(field, size, SYMBOL_SIZE_MAX).unwrap();
            let count = recoder.known_count();
            recoder.each_held(|vector, payload| {
                copy.add_coded(vector, count, payload).unwrap();
            });
            assert_eq!(copy.rank(), recoder.rank());
            if recoder.rank() > 0 {
                assert_eq!(recoded(&recoder), recoded(&copy), "{field:?}, seed {seed}");
            }
        }
    }
}

fn recoded(recoder: &Recoder) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let len = recoder.field().vector_len_bytes(recoder.known_count());
    let (mut vectors, mut payloads) = (vec![0; 5 * len], vec![vec![0; SYMBOL_SIZE_MAX]; 5]);
    let mut outs: Vec<_> = payloads.iter_mut().map(|payload| &mut payload[..]).collect();
    recoder.recode_batch(&mut rng, &mut vectors, &mut outs).unwrap();
    (vectors, payloads)
}

#[test]
fn a_window_goes_on_from_what_another_held() {
    for (field, seed) in FIELDS.into_iter().flat_map(|field| (0..SEEDS).map(move |s| (field, s))) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let size = 2 + 5 * seed as usize;
        let first = if seed % 2 == 0 { 0 } else { u64::MAX - 1000 };
        let stream: Vec<_> = (0..8 * size).map(|_| symbol(&mut rng)).collect();
        let mut whole = WindowDecoder::new(field, size, SYMBOL_SIZE_MAX).unwrap();
        whole.reset(first);
        let mut decoder = whole.clone();
        for step in 0..40 * size {
            if step % 5 == 0 {
                decoder = restored(&decoder);
                assert_same_window(&whole, &decoder, seed);
            }
            let from = (whole.base() - first) as usize;
            let end = stream.len().min(from + size);
            if from >= end {
                break;
            }
            let index = rng.random_range(from..end);
            let (id, count) = (first + index as u64, rng.random_range(1..=end - index));
            match rng.random_range(0..10) {
                0..3 => {
                    let outcome = whole.add_source(id, &stream[index]);
                    assert_eq!(decoder.add_source(id, &stream[index]), outcome);
                }
                3..9 => {
                    let vector = sparse(field, count, &mut rng);
                    let payload = combined(field, &vector, &stream[index..index + count]);
                    let given = Coefficients::Vector(&vector);
                    let outcome = whole.add_coded(id, count, given, &payload);
                    assert_eq!(decoder.add_coded(id, count, given, &payload), outcome);
                }
                _ => {
                    let to = whole.in_order_end().max(whole.base() + 1);
                    assert_eq!(decoder.advance_to(to), whole.advance_to(to));
                }
            }
        }
    }
}

/// With maximum-length symbols: restored ones have lengths of their own.
fn combined(field: Field, vector: &[u8], symbols: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = BlockEncoder::new(field, symbols.len(), SYMBOL_SIZE_MAX).unwrap();
    for symbol in symbols {
        encoder.push(symbol).unwrap();
    }
    let mut payload = vec![0; SYMBOL_SIZE_MAX];
    encoder.encode(vector, symbols.len(), &mut payload).unwrap();
    payload
}

fn restored(decoder: &WindowDecoder) -> WindowDecoder {
    let (field, base, end) = (decoder.field(), decoder.base(), decoder.end());
    let mut copy = WindowDecoder::new(field, decoder.window_size(), SYMBOL_SIZE_MAX).unwrap();
    copy.reset(base);
    let count = (end - base) as usize;
    if count > 0 {
        // The window may extend beyond all symbols held.
        let zeros = vec![0; field.vector_len_bytes(count)];
        copy.add_coded(base, count, Coefficients::Vector(&zeros), &[0]).unwrap();
    }
    for id in (base..end).filter(|&id| decoder.is_decoded(id)) {
        copy.add_source(id, decoder.symbol(id).unwrap()).unwrap();
    }
    decoder.each_coded(|vector, payload| {
        copy.add_coded(base, count, Coefficients::Vector(vector), payload).unwrap();
    });
    copy
}

fn assert_same_window(one: &WindowDecoder, other: &WindowDecoder, seed: u64) {
    let numbers = |of: &WindowDecoder| {
        (of.base(), of.end(), of.rank(), of.decoded_count(), of.in_order_end(), of.seen_end())
    };
    assert_eq!(numbers(one), numbers(other), "seed {seed}");
    for id in one.base()..one.end() {
        assert_eq!(one.symbol(id), other.symbol(id), "seed {seed}, symbol {id}");
        assert_eq!(one.is_seen(id), other.is_seen(id), "seed {seed}, symbol {id}");
    }
    let count = (one.end() - one.base()) as usize;
    let recoded = |of: &WindowDecoder| {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut vector = vec![0; of.field().vector_len_bytes(count)];
        let mut payload = vec![0; SYMBOL_SIZE_MAX];
        of.recode(of.base(), count, &mut rng, &mut vector, &mut payload).unwrap();
        (vector, payload)
    };
    if count > 0 {
        assert_eq!(recoded(one), recoded(other), "seed {seed}");
    }
}
