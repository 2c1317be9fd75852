//! Misuse by a caller, or by a forged frame, and documented edge cases.

use corridor_codec::{
    BlockDecoder, BlockEncoder, CodecError, Field, MAX_BLOCK_SIZE, MAX_SYMBOL_SIZE, Outcome,
    Recoder,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(1)
}

#[test]
fn sizes_out_of_range_are_refused() {
    for given in [0, MAX_BLOCK_SIZE + 1, usize::MAX] {
        let error = CodecError::BlockSize { given };
        assert_eq!(BlockEncoder::new(Field::Gf2, given, 1).err(), Some(error));
        assert_eq!(BlockDecoder::new(Field::Gf2, given, 1).err(), Some(error));
        assert_eq!(Recoder::new(Field::Gf2, given, 1).err(), Some(error));
    }
    for given in [0, MAX_SYMBOL_SIZE + 1, usize::MAX] {
        let error = CodecError::SymbolSizeMax { given };
        assert_eq!(BlockEncoder::new(Field::Gf256, 1, given).err(), Some(error));
        assert_eq!(BlockDecoder::new(Field::Gf256, 1, given).err(), Some(error));
        assert_eq!(Recoder::new(Field::Gf256, 1, given).err(), Some(error));
    }
}

#[test]
fn the_largest_block_works() {
    let (count, size) = (MAX_BLOCK_SIZE, 2);
    let mut encoder = BlockEncoder::new(Field::Gf2, count, size).unwrap();
    let mut decoder = BlockDecoder::new(Field::Gf2, count, size).unwrap();
    for index in 0..count {
        let symbol = (index as u16).to_be_bytes();
        encoder.push(&symbol).unwrap();
        if index != 500 && index != 1023 {
            assert_eq!(decoder.add_source(index, &symbol), Ok(Outcome::Innovative));
        }
    }
    let mut vector = vec![0xFF; Field::Gf2.vector_len_bytes(count)];
    let mut out = [0; 2];
    let len = encoder.encode(&vector, count, &mut out).unwrap();
    assert_eq!(decoder.add_coded(&vector, count, &out[..len]), Ok(Outcome::Innovative));
    assert_eq!((decoder.rank(), decoder.decoded_count()), (count - 1, count - 2));
    vector[1023 / 8] = 0;
    let len = encoder.encode(&vector, count, &mut out).unwrap();
    assert_eq!(decoder.add_coded(&vector, count, &out[..len]), Ok(Outcome::Innovative));
    assert!(decoder.is_complete());
    assert_eq!(decoder.symbol(1023), Some(&1023_u16.to_be_bytes()[..]));
    assert_eq!(decoder.symbol(1024), None);
    assert!(!decoder.is_decoded(usize::MAX));
}

#[test]
fn what_a_frame_says_is_checked() {
    let mut decoder = BlockDecoder::new(Field::Gf2, 9, 4).unwrap();
    let mut recoder = Recoder::new(Field::Gf2, 9, 4).unwrap();
    let source = [
        (9, &b"ok"[..], CodecError::IndexOutOfRange { expected_max: 8, given: 9 }),
        (0, b"", CodecError::SymbolLength { expected_max: 4, given: 0 }),
        (0, b"five!", CodecError::SymbolLength { expected_max: 4, given: 5 }),
    ];
    for (index, symbol, error) in source {
        assert_eq!(decoder.add_source(index, symbol), Err(error));
        assert_eq!(recoder.add_source(index, symbol), Err(error));
    }
    let coded = [
        (&[][..], 0, &b"ok"[..], CodecError::CountOutOfRange { expected_max: 9, given: 0 }),
        (&[1, 1], 10, b"ok", CodecError::CountOutOfRange { expected_max: 9, given: 10 }),
        (&[1, 1], 8, b"ok", CodecError::VectorLength { expected: 1, given: 2 }),
        (&[1], 9, b"ok", CodecError::VectorLength { expected: 2, given: 1 }),
        (&[1], 8, b"", CodecError::SymbolLength { expected_max: 4, given: 0 }),
        (&[1], 8, b"five!", CodecError::SymbolLength { expected_max: 4, given: 5 }),
    ];
    for (vector, count, payload, error) in coded {
        assert_eq!(decoder.add_coded(vector, count, payload), Err(error));
        assert_eq!(recoder.add_coded(vector, count, payload), Err(error));
    }
    assert_eq!((decoder.rank(), decoder.known_count()), (0, 0));
    assert_eq!((recoder.rank(), recoder.known_count()), (0, 0));
}

#[test]
fn errors_say_what_was_expected_and_given() {
    let error = CodecError::VectorLength { expected: 19, given: 150 };
    assert_eq!(error.to_string(), "a coding vector of 150 bytes: expected 19");
    let error = CodecError::BlockSize { given: 0 };
    assert_eq!(error.to_string(), "a block of 0 symbols: not in 1..=1024");
}

#[test]
fn useless_symbols_are_outcomes_not_errors() {
    let mut decoder = BlockDecoder::new(Field::Gf2, 4, 4).unwrap();
    assert_eq!(decoder.add_coded(&[0], 3, b"zero"), Ok(Outcome::Dependent), "an all-zero vector");
    assert_eq!(decoder.add_coded(&[0b1000], 3, b"zero"), Ok(Outcome::Dependent), "unused bits");
    assert_eq!(decoder.known_count(), 3);
    assert_eq!(decoder.add_source(1, b"one"), Ok(Outcome::Innovative));
    assert_eq!(decoder.add_source(1, b"one"), Ok(Outcome::Dependent));
    assert_eq!(decoder.add_source(1, b"else"), Ok(Outcome::Dependent));
    assert_eq!(decoder.symbol(1), Some(&b"one"[..]));
    assert_eq!((decoder.rank(), decoder.known_count()), (1, 3));
}

#[test]
fn a_source_symbol_keeps_its_length_among_longer_coded_ones() {
    let mut decoder = BlockDecoder::new(Field::Gf2, 3, 8).unwrap();
    decoder.add_coded(&[0b011], 3, &[b'a' ^ b'l', b'o', b'n', b'g']).unwrap();
    assert_eq!(decoder.decoded_count(), 0);
    assert_eq!(decoder.add_source(0, b"a"), Ok(Outcome::Innovative));
    assert_eq!(decoder.symbol(0), Some(&b"a"[..]));
    assert_eq!(decoder.symbol(1), Some(&b"long"[..]));
    assert_eq!(decoder.symbol(2), None);
    let mut bitmap = [0xFF; 2];
    decoder.decoded_bitmap(&mut bitmap);
    assert_eq!(bitmap, [0b011, 0]);
    decoder.decoded_bitmap(&mut []);
}

#[test]
fn nothing_held_and_short_buffers_give_nothing_to_recode() {
    let mut decoder = BlockDecoder::new(Field::Gf256, 3, 4).unwrap();
    let mut recoder = Recoder::new(Field::Gf256, 3, 4).unwrap();
    let (mut vector, mut payload) = ([0; 3], [0; 4]);
    assert_eq!(decoder.recode(&mut rng(), &mut vector, &mut payload), None);
    assert_eq!(recoder.recode(&mut rng(), &mut vector, &mut payload), None);
    decoder.add_source(1, b"abc").unwrap();
    recoder.add_source(1, b"abc").unwrap();
    for (vector_len, payload_len) in [(1, 4), (2, 2)] {
        let (vector, payload) = (&mut vector[..vector_len], &mut payload[..payload_len]);
        assert_eq!(decoder.recode(&mut rng(), vector, payload), None);
        assert_eq!(recoder.recode(&mut rng(), vector, payload), None);
    }
    let mut coded = BlockDecoder::new(Field::Gf256, 3, 4).unwrap();
    coded.add_coded(&[1, 2, 3], 3, b"abcd").unwrap();
    assert_eq!(coded.recode(&mut rng(), &mut vector, &mut payload[..3]), None);
    let recoded = recoder.recode(&mut rng(), &mut vector[..2], &mut payload[..3]).unwrap();
    assert_eq!((recoded.count, recoded.len), (2, 3));
    assert_eq!(vector[0], 0);
    assert_ne!(vector[1], 0);
}
