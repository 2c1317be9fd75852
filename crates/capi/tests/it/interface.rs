//! The C interface, called as from C: every function, misuse, and null.

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use corridor_capi::*;

use CorridorStatus as Status;

/// A handle, or another output, before it is written.
fn blank<T>() -> *mut T {
    null_mut()
}

fn text(status: i32) -> &'static str {
    // SAFETY: it points to a zero-terminated string with static lifetime.
    unsafe { CStr::from_ptr(corridor_status_text(status)) }.to_str().unwrap()
}

#[test]
fn every_status_has_a_text() {
    let known = (-99..=5).filter(|&status| text(status) != "no status of this library").count();
    assert_eq!(known, 25);
    assert_eq!(text(Status::WindowFull as i32), "the window is full");
    assert_eq!(text(i32::MIN), "no status of this library");
    assert_eq!(corridor_abi_version(), 1);
}

#[test]
fn vectors_are_expanded_as_in_rust() {
    assert_eq!([2, 16, 256, 3].map(|order| corridor_vector_len(order, 9)), [2, 5, 9, 0]);
    let mut out = [0; 5];
    // SAFETY: the buffer has that many bytes.
    unsafe {
        let status = corridor_expand_repair_key(256, 1, 15, 5, out.as_mut_ptr(), 5);
        assert_eq!((status, out), (Status::Ok, [37, 225, 177, 176, 21]));
        let status = corridor_expand_repair_key(16, 1, 15, 5, out.as_mut_ptr(), 5);
        assert_eq!(status, Status::RepairKeyField);
        let status = corridor_expand_repair_key(256, 1, 16, 5, out.as_mut_ptr(), 5);
        assert_eq!(status, Status::DensityThreshold);
        assert_eq!(corridor_expand_seed(256, 1, 6, out.as_mut_ptr(), 5), Status::BufferTooShort);
        assert_eq!(corridor_expand_seed(255, 1, 5, out.as_mut_ptr(), 5), Status::UnknownField);
        assert_eq!(corridor_expand_seed(16, 7, 9, out.as_mut_ptr(), 5), Status::Ok);
    }
    let mut expected = [0; 5];
    corridor_codec::Field::Gf16.expand_seed(7, 9, &mut expected).unwrap();
    assert_eq!(out, expected);
}

#[test]
fn a_block_goes_through_a_recoder() {
    let (mut encoder, mut recoder, mut decoder) = (blank(), blank(), blank());
    let (mut vector, mut payload) = ([0_u8; 4], [0_u8; 8]);
    let (mut index, mut count, mut len) = (9, 0, 0);
    // SAFETY: handles are made and freed once; each buffer comes with its length.
    unsafe {
        assert_eq!(corridor_block_encoder_new(16, 4, 8, &mut encoder), Status::Ok);
        assert_eq!(corridor_block_recoder_new(16, 4, 8, &mut recoder), Status::Ok);
        assert_eq!(corridor_block_decoder_new(16, 4, 8, &mut decoder), Status::Ok);
        for symbol in [b"zero", b"one.", b"two.", b"thr."] {
            let status = corridor_block_encoder_push(encoder, symbol.as_ptr(), 4, &mut index);
            assert_eq!(status, Status::Ok);
        }
        assert_eq!((index, corridor_block_encoder_count(encoder)), (3, 4));
        let status = corridor_block_encoder_push(encoder, b"more".as_ptr(), 4, null_mut());
        assert_eq!(status, Status::BlockFull);

        let status = corridor_block_recoder_add_source(recoder, 0, b"zero".as_ptr(), 4);
        assert_eq!(status, Status::Innovative);
        let mut seed = 0;
        while corridor_block_recoder_rank(recoder) < 4 {
            corridor_expand_seed(16, seed, 4, vector.as_mut_ptr(), 2);
            let out = payload.as_mut_ptr();
            let status =
                corridor_block_encoder_encode(encoder, vector.as_ptr(), 2, 4, out, 8, &mut len);
            assert_eq!((status, len), (Status::Ok, 4));
            corridor_block_recoder_add_coded(recoder, vector.as_ptr(), 2, 4, out, len);
            seed += 1;
        }
        assert_eq!(corridor_block_recoder_known_count(recoder), 4);
        let mut draw = 0;
        while !corridor_block_decoder_is_complete(decoder) {
            let (vector, payload) = (vector.as_mut_ptr(), payload.as_mut_ptr());
            let status = corridor_block_recoder_recode(
                recoder, draw, vector, 2, &mut count, payload, 8, &mut len,
            );
            assert_eq!((status, count, len), (Status::Ok, 4, 4));
            let status = corridor_block_decoder_add_coded(decoder, vector, 2, count, payload, len);
            assert!(matches!(status, Status::Innovative | Status::Dependent));
            draw += 1;
        }
        assert_eq!(corridor_block_decoder_rank(decoder), 4);
        assert_eq!(corridor_block_decoder_decoded_count(decoder), 4);
        assert_eq!(corridor_block_decoder_known_count(decoder), 4);
        let mut symbol = null();
        let status = corridor_block_decoder_symbol(decoder, 3, &mut symbol, &mut len);
        assert_eq!((status, std::slice::from_raw_parts(symbol, len)), (Status::Ok, &b"thr."[..]));
        let status = corridor_block_decoder_symbol(decoder, 4, &mut symbol, &mut len);
        assert_eq!(status, Status::Nothing);
        assert_eq!(
            corridor_block_decoder_decoded_bitmap(decoder, payload.as_mut_ptr(), 2),
            Status::Ok
        );
        assert_eq!(payload[..2], [0b1111, 0]);
        let status = corridor_block_decoder_add_source(decoder, 4, symbol, 4);
        assert_eq!(status, Status::IndexOutOfRange);
        let status = corridor_block_decoder_recode(
            decoder,
            1,
            vector.as_mut_ptr(),
            2,
            &mut count,
            payload.as_mut_ptr(),
            8,
            &mut len,
        );
        assert_eq!(status, Status::Ok);

        assert_eq!(corridor_block_encoder_clear(encoder), Status::Ok);
        assert_eq!(corridor_block_recoder_reset(recoder), Status::Ok);
        assert_eq!(corridor_block_decoder_reset(decoder), Status::Ok);
        assert_eq!(corridor_block_encoder_count(encoder), 0);
        let status = corridor_block_recoder_recode(
            recoder,
            1,
            vector.as_mut_ptr(),
            2,
            &mut count,
            payload.as_mut_ptr(),
            8,
            &mut len,
        );
        assert_eq!(status, Status::Nothing);
        corridor_block_encoder_free(encoder);
        corridor_block_recoder_free(recoder);
        corridor_block_decoder_free(decoder);
    }
}

#[test]
fn a_window_goes_through_a_relay() {
    let (mut encoder, mut relay, mut decoder) = (blank(), blank(), blank());
    let (mut vector, mut payload) = ([0_u8; 4], [0_u8; 8]);
    let (mut id, mut missed, mut len, mut symbol) = (0, 0, 0, null());
    // SAFETY: handles are made and freed once; each buffer comes with its length.
    unsafe {
        assert_eq!(corridor_window_encoder_new(256, 4, 8, 100, &mut encoder), Status::Ok);
        assert_eq!(corridor_window_decoder_new(256, 4, 8, 100, &mut relay), Status::Ok);
        assert_eq!(corridor_window_decoder_new(256, 4, 8, 100, &mut decoder), Status::Ok);
        for symbol in [b"zero", b"one.", b"two.", b"thr."] {
            let status = corridor_window_encoder_push(encoder, symbol.as_ptr(), 4, &mut id);
            assert_eq!(status, Status::Ok);
        }
        let status = corridor_window_encoder_push(encoder, b"more".as_ptr(), 4, null_mut());
        assert_eq!((id, status), (103, Status::WindowFull));
        assert_eq!(corridor_window_encoder_base(encoder), 100);
        assert_eq!(corridor_window_encoder_end(encoder), 104);

        // Three kinds of coefficients.
        let out = payload.as_mut_ptr();
        let ones = [1, 1, 1];
        let status =
            corridor_window_encoder_encode(encoder, 100, 3, ones.as_ptr(), 3, out, 8, &mut len);
        assert_eq!((status, len), (Status::Ok, 4));
        let status = corridor_window_decoder_add_coded(relay, 100, 3, ones.as_ptr(), 3, out, len);
        assert_eq!(status, Status::Innovative);
        let status = corridor_window_encoder_encode_seed(encoder, 101, 3, 7, out, 8, &mut len);
        assert_eq!(status, Status::Ok);
        let status = corridor_window_decoder_add_coded_seed(relay, 101, 3, 7, out, len);
        assert_eq!(status, Status::Innovative);
        let status =
            corridor_window_encoder_encode_repair_key(encoder, 100, 4, 7, 15, out, 8, &mut len);
        assert_eq!(status, Status::Ok);
        let status = corridor_window_decoder_add_coded_repair_key(relay, 100, 4, 7, 15, out, len);
        assert_eq!(status, Status::Innovative);
        let status = corridor_window_decoder_add_source(relay, 103, b"thr.".as_ptr(), 4);
        assert_eq!(status, Status::Innovative);
        assert_eq!(corridor_window_decoder_rank(relay), 4);
        for expected in 100..104 {
            assert_eq!(corridor_window_decoder_poll_decoded(relay, &mut id), Status::Ok);
            assert_eq!(id, expected);
        }
        assert_eq!(corridor_window_decoder_poll_decoded(relay, &mut id), Status::Nothing);

        let status = corridor_window_decoder_recode(
            relay,
            101,
            2,
            5,
            vector.as_mut_ptr(),
            2,
            out,
            8,
            &mut len,
        );
        assert_eq!((status, len), (Status::Ok, 4));
        let status =
            corridor_window_decoder_add_coded(decoder, 101, 2, vector.as_ptr(), 2, out, len);
        assert_eq!(status, Status::Innovative);
        assert_eq!(corridor_window_decoder_missing_count(decoder), 3);
        assert_eq!(corridor_window_decoder_deficit(decoder), 2);
        assert_eq!(corridor_window_decoder_in_order_end(decoder), 100);
        assert_eq!(corridor_window_decoder_end(decoder), 103);
        assert_eq!(
            corridor_window_decoder_missing_bitmap(decoder, vector.as_mut_ptr(), 1),
            Status::Ok
        );
        assert_eq!(vector[0], 0b111);
        let status = corridor_window_decoder_add_source(decoder, 101, b"one.".as_ptr(), 4);
        assert_eq!(status, Status::Innovative);
        let status = corridor_window_decoder_symbol(decoder, 102, &mut symbol, &mut len);
        assert_eq!((status, std::slice::from_raw_parts(symbol, len)), (Status::Ok, &b"two."[..]));

        assert_eq!(corridor_window_decoder_advance_to(decoder, 102, &mut missed), Status::Ok);
        assert_eq!((missed, corridor_window_decoder_base(decoder)), (1, 102));
        let status = corridor_window_decoder_add_source(decoder, 101, b"one.".as_ptr(), 4);
        assert_eq!(status, Status::Stale);
        let status = corridor_window_decoder_add_source(decoder, 106, b"six.".as_ptr(), 4);
        assert_eq!(status, Status::Ahead);
        assert_eq!(corridor_window_encoder_advance_to(encoder, 102), Status::Ok);
        let status = corridor_window_encoder_encode_seed(encoder, 101, 2, 7, out, 8, &mut len);
        assert_eq!(status, Status::OutsideWindow);
        assert_eq!(corridor_window_encoder_reset(encoder, u64::MAX), Status::Ok);
        let status = corridor_window_encoder_push(encoder, b"more".as_ptr(), 4, null_mut());
        assert_eq!(status, Status::IdRange);
        assert_eq!(corridor_window_decoder_reset(decoder, 0), Status::Ok);
        assert_eq!(corridor_window_decoder_rank(decoder), 0);
        corridor_window_encoder_free(encoder);
        corridor_window_decoder_free(relay);
        corridor_window_decoder_free(decoder);
    }
}

#[test]
fn null_is_refused_and_changes_nothing() {
    let (mut encoder, mut decoder) = (blank(), blank());
    let mut byte = 0;
    // SAFETY: null is being tested; everything else comes with its length.
    unsafe {
        assert_eq!(corridor_block_encoder_new(2, 4, 8, null_mut()), Status::NullPointer);
        assert_eq!(corridor_block_encoder_new(2, 0, 8, &mut encoder), Status::BlockSize);
        assert_eq!(corridor_block_encoder_new(2, 1, 0, &mut encoder), Status::SymbolSizeMax);
        assert_eq!(encoder, null_mut());
        assert_eq!(corridor_block_encoder_new(2, 1, 8, &mut encoder), Status::Ok);
        assert_eq!(corridor_window_decoder_new(2, 1025, 8, 0, &mut decoder), Status::WindowSize);
        assert_eq!(corridor_window_decoder_new(2, 4, 8, 0, &mut decoder), Status::Ok);

        let status = corridor_block_encoder_push(encoder, null(), 3, null_mut());
        assert_eq!(status, Status::NullPointer);
        let status = corridor_block_encoder_push(encoder, null(), 0, null_mut());
        assert_eq!(status, Status::SymbolLength);
        let status = corridor_block_encoder_push(null_mut(), b"a".as_ptr(), 1, null_mut());
        assert_eq!(status, Status::NullPointer);
        assert_eq!(corridor_block_encoder_count(encoder), 0);
        assert_eq!(corridor_block_encoder_push(encoder, b"a".as_ptr(), 1, null_mut()), Status::Ok);
        let status =
            corridor_block_encoder_encode(encoder, [1].as_ptr(), 1, 1, &mut byte, 1, null_mut());
        assert_eq!((status, byte), (Status::NullPointer, 0));
        assert_eq!(corridor_window_decoder_poll_decoded(decoder, null_mut()), Status::NullPointer);
        assert_eq!(
            corridor_window_decoder_poll_decoded(null_mut(), null_mut()),
            Status::NullPointer
        );

        assert_eq!(corridor_block_encoder_count(null()), 0);
        assert_eq!(corridor_window_decoder_end(null()), 0);
        assert!(!corridor_block_decoder_is_complete(null()));
        assert_eq!(corridor_window_decoder_reset(null_mut(), 0), Status::NullPointer);
        corridor_block_encoder_free(null_mut());
        corridor_window_decoder_free(null_mut());
        corridor_block_encoder_free(encoder);
        corridor_window_decoder_free(decoder);
    }
}
