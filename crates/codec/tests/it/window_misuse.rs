//! Misuse of the window coder by a caller, or by a forged frame, and documented edge cases.

use corridor_codec::{
    CodecError, Coefficients, Density, Field, MAX_SYMBOL_SIZE, MAX_WINDOW_SIZE, WindowDecoder,
    WindowEncoder, WindowOutcome, widen_id,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn decoder() -> WindowDecoder {
    WindowDecoder::new(Field::Gf256, 4, 4).unwrap()
}

#[test]
fn sizes_out_of_range_are_refused() {
    for given in [0, MAX_WINDOW_SIZE + 1, usize::MAX] {
        let error = CodecError::WindowSize { given };
        assert_eq!(WindowEncoder::new(Field::Gf2, given, 1).err(), Some(error));
        assert_eq!(WindowDecoder::new(Field::Gf2, given, 1).err(), Some(error));
    }
    for given in [0, MAX_SYMBOL_SIZE + 1, usize::MAX] {
        let error = CodecError::SymbolSizeMax { given };
        assert_eq!(WindowEncoder::new(Field::Gf2, 1, given).err(), Some(error));
        assert_eq!(WindowDecoder::new(Field::Gf2, 1, given).err(), Some(error));
    }
}

#[test]
fn what_a_frame_says_is_checked() {
    let mut decoder = decoder();
    let length = |given| Err(CodecError::SymbolLength { expected_max: 4, given });
    assert_eq!(decoder.add_source(0, b""), length(0));
    assert_eq!(decoder.add_source(0, b"five!"), length(5));
    let last = Err(CodecError::IdRange { first: u64::MAX, count: 1 });
    assert_eq!(decoder.add_source(u64::MAX, b"ok"), last);
    let seed = Coefficients::Seed(1);
    for given in [0, 5, usize::MAX] {
        let error = Err(CodecError::CountOutOfRange { expected_max: 4, given });
        assert_eq!(decoder.add_coded(0, given, seed, b"ok"), error);
    }
    let past = Err(CodecError::IdRange { first: u64::MAX - 1, count: 2 });
    assert_eq!(decoder.add_coded(u64::MAX - 1, 2, seed, b"ok"), past);
    let vector = Err(CodecError::VectorLength { expected: 2, given: 3 });
    assert_eq!(decoder.add_coded(0, 2, Coefficients::Vector(&[1, 1, 1]), b"ok"), vector);
    assert_eq!(decoder.add_coded(0, 2, seed, b""), length(0));
    assert_eq!(decoder.add_coded(0, 2, seed, b"five!"), length(5));
    assert_eq!((decoder.rank(), decoder.base(), decoder.end()), (0, 0, 0));
    let mut other = WindowDecoder::new(Field::Gf16, 4, 4).unwrap();
    let key = Coefficients::RepairKey(1, Density::FULL);
    let error = Err(CodecError::RepairKeyField { given: Field::Gf16 });
    assert_eq!(other.add_coded(0, 2, key, b"ok"), error);
}

#[test]
fn symbols_out_of_place_are_outcomes_not_errors() {
    let mut decoder = decoder();
    decoder.reset(10);
    assert_eq!(decoder.add_source(9, b"old"), Ok(WindowOutcome::Stale));
    assert_eq!(decoder.add_source(14, b"far"), Ok(WindowOutcome::Ahead));
    assert_eq!(decoder.add_source(u64::MAX - 1, b"far"), Ok(WindowOutcome::Ahead));
    let ones = Coefficients::Vector(&[1, 1]);
    assert_eq!(decoder.add_coded(8, 2, ones, b"old"), Ok(WindowOutcome::Stale));
    assert_eq!(decoder.add_coded(13, 2, ones, b"far"), Ok(WindowOutcome::Ahead));
    assert_eq!((decoder.rank(), decoder.end()), (0, 10));
    // Partly before the window: stale only if necessary.
    assert_eq!(decoder.add_coded(9, 2, ones, b"old"), Ok(WindowOutcome::Stale));
    let right = Coefficients::Vector(&[0, 1]);
    assert_eq!(decoder.add_coded(9, 2, right, b"ten"), Ok(WindowOutcome::Innovative));
    assert_eq!(decoder.symbol(10), Some(&b"ten"[..]));
    assert_eq!(
        decoder.add_coded(10, 1, Coefficients::Vector(&[5]), b"t"),
        Ok(WindowOutcome::Dependent)
    );
    let zero = Coefficients::Vector(&[0; 3]);
    assert_eq!(decoder.add_coded(11, 3, zero, b"nil"), Ok(WindowOutcome::Dependent));
    assert_eq!((decoder.end(), decoder.missing_count(), decoder.deficit()), (14, 3, 3));
}

#[test]
fn a_source_symbol_keeps_its_length_among_longer_coded_ones() {
    let mut decoder = WindowDecoder::new(Field::Gf2, 3, 8).unwrap();
    let sum = [b'a' ^ b'l', b'o', b'n', b'g'];
    decoder.add_coded(0, 2, Coefficients::Vector(&[0b1111_1111]), &sum).unwrap();
    assert_eq!((decoder.rank(), decoder.decoded_count(), decoder.poll_decoded()), (1, 0, None));
    assert_eq!(decoder.add_source(0, b"a"), Ok(WindowOutcome::Innovative));
    assert_eq!((decoder.symbol(0), decoder.symbol(1)), (Some(&b"a"[..]), Some(&b"long"[..])));
    assert_eq!([decoder.poll_decoded(), decoder.poll_decoded()], [Some(0), Some(1)]);
    assert_eq!(decoder.poll_decoded(), None);
}

#[test]
fn a_huge_step_forward_empties_the_window() {
    let mut decoder = decoder();
    decoder.add_source(0, b"zero").unwrap();
    decoder.add_coded(1, 3, Coefficients::Seed(9), b"some").unwrap();
    assert_eq!(decoder.advance_to(u64::MAX), u64::MAX - 1);
    assert_eq!((decoder.rank(), decoder.base(), decoder.end()), (0, u64::MAX, u64::MAX));
    assert_eq!(decoder.symbol(0), None);
    assert_eq!(decoder.poll_decoded(), None);
    assert_eq!(decoder.add_source(1, b"one"), Ok(WindowOutcome::Stale));
    assert_eq!(decoder.advance_to(5), 0);
    decoder.reset(0);
    assert_eq!(decoder.add_source(1, b"one"), Ok(WindowOutcome::Innovative));
    let mut bitmap = [0xFF; 2];
    decoder.missing_bitmap(&mut bitmap);
    assert_eq!(bitmap, [1, 0]);
    decoder.missing_bitmap(&mut []);
}

#[test]
fn recoding_names_what_it_cannot_do() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut decoder = decoder();
    let (mut vector, mut payload) = ([0xEE; 3], [0; 4]);
    let (expected_first, expected_end, first, count) = (0, 0, 0, 1);
    let outside = CodecError::OutsideWindow { expected_first, expected_end, first, count };
    assert_eq!(decoder.recode(0, 1, &mut rng, &mut vector, &mut payload), Err(outside));
    decoder.add_coded(0, 3, Coefficients::Vector(&[1, 2, 3]), b"some").unwrap();
    let result = decoder.recode(0, 3, &mut rng, &mut vector[..2], &mut payload);
    assert_eq!(result, Err(CodecError::BufferTooShort { expected: 3, given: 2 }));
    let result = decoder.recode(0, 3, &mut rng, &mut vector, &mut payload[..3]);
    assert_eq!(result, Err(CodecError::BufferTooShort { expected: 4, given: 3 }));
    assert_eq!(decoder.recode(0, 2, &mut rng, &mut vector, &mut payload), Ok(None));
    assert_eq!(decoder.recode(1, 2, &mut rng, &mut vector, &mut payload), Ok(None));
    decoder.add_source(1, b"b").unwrap();
    let recoded = decoder.recode(1, 1, &mut rng, &mut vector, &mut payload).unwrap().unwrap();
    assert_eq!((recoded.count, recoded.len, vector[1]), (1, 1, 0xEE));
    assert_ne!(vector[0], 0);
}

#[test]
fn short_ids_are_widened_towards_the_nearest() {
    for near in [0, 5, 1 << 31, (1 << 32) - 1, 1 << 32, 77 << 40, u64::MAX - 3] {
        for distance in [0, 1, 2, 1000, (1_u64 << 31) - 1] {
            for id in [near.checked_sub(distance), near.checked_add(distance)].into_iter().flatten()
            {
                assert_eq!(widen_id(id as u32, near), id, "{id} near {near}");
            }
        }
    }
    // No nearer id exists at zero, or at the top.
    assert_eq!(widen_id(u32::MAX, 0), u32::MAX.into());
    assert_eq!(widen_id(0, u64::MAX), u64::MAX - u64::from(u32::MAX));
}
