//! Batches of the C interface: each symbol equals one made alone; and misuse.

use std::ptr::{null, null_mut};

use corridor_capi::*;

use CorridorStatus as Status;

const SIZE: usize = 8;
const SYMBOLS: [&[u8]; 4] = [b"zero", b"one", b"two, two", b"3"];

/// The parts of a buffer written by a batch: `len` bytes of each.
fn parts(buffer: &[u8], len: usize) -> impl Iterator<Item = &[u8]> {
    buffer.chunks_exact(SIZE).map(move |part| &part[..len])
}

/// Vectors expanded from consecutive seeds.
fn vectors(order: u32, seed: u32, count: usize, vectors: usize) -> Vec<u8> {
    let size = corridor_vector_len(order, count);
    let mut out = vec![0; size * vectors];
    for (ahead, vector) in (0..).zip(out.chunks_mut(size)) {
        let seed = seed.wrapping_add(ahead);
        // SAFETY: the buffer has that many bytes.
        let status = unsafe { corridor_expand_seed(order, seed, count, vector.as_mut_ptr(), size) };
        assert_eq!(status, Status::Ok);
    }
    out
}

#[test]
fn a_block_goes_in_batches() {
    for order in [2, 16, 256] {
        let (mut encoder, mut recoder, mut decoder) = (null_mut(), null_mut(), null_mut());
        let (mut payloads, mut alone) = ([0xEE; 65 * SIZE], [0; SIZE]);
        let (mut count, mut len, mut len_alone) = (0, 0, 0);
        let vectors = vectors(order, 1, 4, 20);
        let size = vectors.len() / 20;
        // SAFETY: handles are made and freed once; each buffer comes with its length.
        unsafe {
            assert_eq!(corridor_block_encoder_new(order, 4, SIZE, &mut encoder), Status::Ok);
            assert_eq!(corridor_block_recoder_new(order, 4, SIZE, &mut recoder), Status::Ok);
            assert_eq!(corridor_block_decoder_new(order, 4, SIZE, &mut decoder), Status::Ok);
            for symbol in SYMBOLS {
                let (symbol, len) = (symbol.as_ptr(), symbol.len());
                corridor_block_encoder_push(encoder, symbol, len, null_mut());
            }
            let (from, out) = (vectors.as_ptr(), payloads.as_mut_ptr());
            let (given, stride) = (vectors.len(), SIZE);
            let status = corridor_block_encoder_encode_batch(
                encoder, from, given, 4, 20, out, stride, &mut len,
            );
            assert_eq!((status, len), (Status::Ok, SIZE));
            assert!(payloads[20 * SIZE..].iter().all(|&byte| byte == 0xEE), "written beyond");
            for (vector, payload) in vectors.chunks(size).zip(parts(&payloads, len)) {
                let (vector, out) = (vector.as_ptr(), alone.as_mut_ptr());
                corridor_block_encoder_encode(encoder, vector, size, 4, out, SIZE, &mut len_alone);
                alone[len_alone..].fill(0);
                assert_eq!(payload, alone);
                let payload = payload.as_ptr();
                corridor_block_recoder_add_coded(recoder, vector, size, 4, payload, len);
            }
            assert_eq!(corridor_block_recoder_rank(recoder), 4);
            let mut recoded = vec![0; 64 * size];
            let to = recoded.as_mut_ptr();
            let out = payloads.as_mut_ptr();
            let status = corridor_block_recoder_recode_batch(
                recoder,
                7,
                to,
                64 * size,
                &mut count,
                64,
                out,
                SIZE,
                &mut len,
            );
            assert_eq!((status, count, len), (Status::Ok, 4, SIZE));
            for (vector, payload) in recoded.chunks(size).zip(parts(&payloads, len)) {
                let (vector, payload) = (vector.as_ptr(), payload.as_ptr());
                corridor_block_decoder_add_coded(decoder, vector, size, 4, payload, len);
            }
            assert!(corridor_block_decoder_is_complete(decoder));
            let mut symbol = null();
            for (index, sent) in SYMBOLS.into_iter().enumerate() {
                corridor_block_decoder_symbol(decoder, index, &mut symbol, &mut len);
                assert!(std::slice::from_raw_parts(symbol, len).starts_with(sent));
            }
            let out = payloads.as_mut_ptr();
            let status = corridor_block_decoder_recode_batch(
                decoder,
                7,
                to,
                64 * size,
                &mut count,
                3,
                out,
                SIZE,
                &mut len,
            );
            assert_eq!((status, count, len), (Status::Ok, 4, SIZE));
            corridor_block_encoder_free(encoder);
            corridor_block_recoder_free(recoder);
            corridor_block_decoder_free(decoder);
        }
    }
}

#[test]
fn a_window_goes_in_batches() {
    for order in [2, 16, 256] {
        let (mut encoder, mut relay, mut decoder) = (null_mut(), null_mut(), null_mut());
        let (mut payloads, mut seeded) = ([0xEE; 65 * SIZE], [0; 20 * SIZE]);
        let mut len = 0;
        let vectors = vectors(order, u32::MAX, 4, 1);
        let size = vectors.len();
        let vectors = [vectors, self::vectors(order, 0, 4, 19)].concat();
        // SAFETY: handles are made and freed once; each buffer comes with its length.
        unsafe {
            assert_eq!(corridor_window_encoder_new(order, 5, SIZE, 9, &mut encoder), Status::Ok);
            assert_eq!(corridor_window_decoder_new(order, 5, SIZE, 9, &mut relay), Status::Ok);
            assert_eq!(corridor_window_decoder_new(order, 5, SIZE, 9, &mut decoder), Status::Ok);
            for symbol in SYMBOLS {
                let (symbol, len) = (symbol.as_ptr(), symbol.len());
                corridor_window_encoder_push(encoder, symbol, len, null_mut());
            }
            let (from, out) = (vectors.as_ptr(), payloads.as_mut_ptr());
            let given = vectors.len();
            let status = corridor_window_encoder_encode_batch(
                encoder, 9, 4, from, given, 20, out, SIZE, &mut len,
            );
            assert_eq!((status, len), (Status::Ok, SIZE));
            let (seed, out) = (u32::MAX, seeded.as_mut_ptr());
            let status = corridor_window_encoder_encode_batch_seeds(
                encoder, 9, 4, seed, 20, out, SIZE, &mut len,
            );
            assert_eq!((status, len), (Status::Ok, SIZE));
            assert_eq!(payloads[..20 * SIZE], seeded);
            assert!(payloads[20 * SIZE..].iter().all(|&byte| byte == 0xEE), "written beyond");
            for (vector, payload) in vectors.chunks(size).zip(parts(&payloads, len)) {
                let (vector, payload) = (vector.as_ptr(), payload.as_ptr());
                corridor_window_decoder_add_coded(relay, 9, 4, vector, size, payload, len);
            }
            assert_eq!(corridor_window_decoder_rank(relay), 4);
            let mut recoded = vec![0; 64 * size];
            let (to, out) = (recoded.as_mut_ptr(), payloads.as_mut_ptr());
            let status = corridor_window_decoder_recode_batch(
                relay,
                9,
                4,
                3,
                to,
                64 * size,
                64,
                out,
                SIZE,
                &mut len,
            );
            assert_eq!((status, len), (Status::Ok, SIZE));
            for (vector, payload) in recoded.chunks(size).zip(parts(&payloads, len)) {
                let (vector, payload) = (vector.as_ptr(), payload.as_ptr());
                corridor_window_decoder_add_coded(decoder, 9, 4, vector, size, payload, len);
            }
            assert_eq!(corridor_window_decoder_in_order_end(decoder), 13);
            let mut symbol = null();
            for (id, sent) in (9..).zip(SYMBOLS) {
                corridor_window_decoder_symbol(decoder, id, &mut symbol, &mut len);
                assert!(std::slice::from_raw_parts(symbol, len).starts_with(sent));
            }
            corridor_window_encoder_free(encoder);
            corridor_window_decoder_free(relay);
            corridor_window_decoder_free(decoder);
        }
    }
}

#[test]
fn what_a_batch_cannot_be_is_told() {
    let (mut encoder, mut window, mut decoder) = (null_mut(), null_mut(), null_mut());
    let (mut out, mut len, mut count) = ([0xEE; 4 * SIZE], 77, 77);
    let ones = [1; 8];
    // SAFETY: handles are made and freed once; each buffer comes with its length.
    unsafe {
        corridor_block_encoder_new(256, 4, SIZE, &mut encoder);
        corridor_window_encoder_new(256, 4, SIZE, 0, &mut window);
        corridor_window_decoder_new(256, 4, SIZE, 0, &mut decoder);
        for symbol in SYMBOLS {
            let (symbol, len) = (symbol.as_ptr(), symbol.len());
            corridor_block_encoder_push(encoder, symbol, len, null_mut());
            corridor_window_encoder_push(window, symbol, len, null_mut());
        }
        let (ones, out_at) = (ones.as_ptr(), out.as_mut_ptr());
        let mut block = |vectors_len, count, symbols, stride| {
            corridor_block_encoder_encode_batch(
                encoder,
                ones,
                vectors_len,
                count,
                symbols,
                out_at,
                stride,
                &mut len,
            )
        };
        assert_eq!(block(8, 4, CORRIDOR_BATCH_MAX + 1, SIZE), Status::CountOutOfRange);
        assert_eq!(block(8, 4, 2, usize::MAX), Status::LengthTooLong);
        assert_eq!(block(8, 4, 3, SIZE), Status::VectorLength);
        assert_eq!(block(8, 5, 2, SIZE), Status::CountOutOfRange);
        assert_eq!(block(8, 4, 2, SIZE - 1), Status::BufferTooShort);
        assert_eq!(block(8, 4, 2, 0), Status::BufferTooShort);
        assert_eq!(block(0, 4, 0, SIZE), Status::Ok);
        assert_eq!(len, 0);
        let mut slide = |first, count, vectors_len, symbols, stride| {
            corridor_window_encoder_encode_batch(
                window,
                first,
                count,
                ones,
                vectors_len,
                symbols,
                out_at,
                stride,
                &mut len,
            )
        };
        assert_eq!(slide(0, 4, 8, CORRIDOR_BATCH_MAX + 1, SIZE), Status::CountOutOfRange);
        assert_eq!(slide(0, 4, 7, 2, SIZE), Status::VectorLength);
        assert_eq!(slide(0, 0, 0, 2, SIZE), Status::OutsideWindow);
        assert_eq!(slide(1, 4, 8, 2, SIZE), Status::OutsideWindow);
        assert_eq!(slide(0, 4, 8, 2, SIZE - 1), Status::BufferTooShort);
        assert_eq!(slide(0, usize::MAX, 8, 2, SIZE), Status::VectorLength);
        let status = corridor_window_decoder_recode_batch(
            decoder, 0, 1, 5, out_at, 4, 4, out_at, 0, &mut count,
        );
        assert_eq!(status, Status::OutsideWindow);
        let status =
            corridor_block_encoder_encode_batch(encoder, ones, 8, 4, 2, out_at, SIZE, null_mut());
        assert_eq!(status, Status::NullPointer);
        let status = corridor_block_encoder_encode_batch(
            encoder,
            ones,
            8,
            4,
            2,
            null_mut(),
            SIZE,
            &mut count,
        );
        assert_eq!((status, count), (Status::NullPointer, 77));
        assert!(out.iter().all(|&byte| byte == 0xEE), "nothing was written");
        corridor_block_encoder_free(encoder);
        corridor_window_encoder_free(window);
        corridor_window_decoder_free(decoder);
    }
}
