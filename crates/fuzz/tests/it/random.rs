//! The fuzz targets on random bytes, as `cargo fuzz` does, without its guidance.

use proptest::collection::vec as vec_of;
use proptest::prelude::*;

proptest! {
    #![proptest_config(corridor_testing::cases!(1500))]

    #[test]
    fn block_coders_agree_with_their_twins(data in vec_of(any::<u8>(), 0..700)) {
        corridor_fuzz::block(&data);
    }

    #[test]
    fn what_is_parsed_is_written_as_it_was(kind: u8, data in vec_of(any::<u8>(), 0..200)) {
        corridor_fuzz::wire(&[&[kind], &data[..]].concat());
        // Numbers in frames are mostly small.
        let small: Vec<u8> = data.iter().map(|&byte| if byte < 160 { byte % 3 } else { byte }).collect();
        corridor_fuzz::wire(&[&[kind], &small[..]].concat());
    }

    #[test]
    fn relays_give_out_what_was_sent(data in vec_of(any::<u8>(), 0..900)) {
        corridor_fuzz::relay(&data);
        // Mostly correct.
        let calm: Vec<u8> = data.iter().map(|&byte| if byte < 128 { byte % 8 } else { byte }).collect();
        corridor_fuzz::relay(&calm);
    }

    #[test]
    fn relays_take_what_neighbours_have_sealed_once(data in vec_of(any::<u8>(), 0..300)) {
        corridor_fuzz::sealed(&data);
    }

    #[test]
    fn parts_make_what_was_cut_and_nothing_else(data in vec_of(any::<u8>(), 0..600)) {
        corridor_fuzz::parts(&data);
        // Nothing is false, and little gets lost.
        let calm: Vec<u8> = data.iter().map(|&byte| if byte < 128 { byte % 8 } else { byte }).collect();
        corridor_fuzz::parts(&calm);
    }

    #[test]
    fn headers_come_out_as_they_went_in(data in vec_of(any::<u8>(), 0..1500), steady: bool) {
        corridor_fuzz::headers(&data);
        // Few fields change, as in an active flow.
        let calm = |&byte: &u8| if steady && byte % 5 > 0 { byte % 8 } else { byte };
        corridor_fuzz::headers(&data.iter().map(calm).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_but_windows_changes(data in vec_of(any::<u8>(), 0..600)) {
        corridor_fuzz::clamp(&data);
    }

    #[test]
    fn window_coders_agree_with_their_twins(data in vec_of(any::<u8>(), 0..700)) {
        corridor_fuzz::window(&data);
    }
}

// Handshakes are costly: fewer of them, and `make soak` runs others.
proptest! {
    #![proptest_config(corridor_testing::cases!(500))]

    #[test]
    fn secrets_are_agreed_on_with_nobody_else(data in vec_of(any::<u8>(), 0..300)) {
        corridor_fuzz::keys(&data);
        // Of frames that mostly arrive.
        let calm: Vec<u8> = data.iter().map(|&byte| if byte < 200 { byte % 2 } else { byte }).collect();
        corridor_fuzz::keys(&calm);
    }

    #[test]
    fn strangers_keep_no_friend_out(data in vec_of(any::<u8>(), 0..300)) {
        corridor_fuzz::gate(&data);
        // Floods, and little else.
        let floods: Vec<u8> = data.iter().map(|&byte| if byte < 128 { byte % 4 } else { byte }).collect();
        corridor_fuzz::gate(&floods);
    }
}

/// Bytes that are the same each time.
fn random() -> impl FnMut() -> u8 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u8
    }
}

/// Random bytes reach the code that reduces windows and generates updates.
#[test]
fn windows_do_change() {
    let mut byte = random();
    let (mut clamped, mut updates) = (0, 0);
    for _ in 0..60 {
        let data: Vec<u8> = (0..600).map(|_| byte()).collect();
        let (more_clamped, more_updates) = corridor_fuzz::clamp(&data);
        (clamped, updates) = (clamped + more_clamped, updates + more_updates);
    }
    println!("{clamped} windows clamped, {updates} updates");
    assert!(clamped > 0 && updates > 0, "{clamped} and {updates}");
}

/// Random bytes reach complete chunks: of parts that the sender has cut, and of invented ones.
#[test]
fn parts_do_come_together() {
    let mut byte = random();
    let (mut honest, mut all) = (0, 0);
    for _ in 0..60 {
        let data: Vec<u8> = (0..600).map(|_| byte()).collect();
        all += corridor_fuzz::parts(&data);
        // Of the twelve steps the first nine are honest.
        let truth: Vec<u8> = data.iter().map(|byte| byte / 13 * 12 + byte % 9).collect();
        honest += corridor_fuzz::parts(&truth);
    }
    println!("{honest} wholes without lies, {all} with them");
    assert!(honest > 0 && all > 0, "{honest} and {all}");
}

/// Cells of three are among what is drawn, and their stations hand each other secrets.
#[test]
fn handouts_are_on_the_wire() {
    assert!(corridor_fuzz::keys(&[0, 0, 0, 0]) >= 6);
    assert_eq!(corridor_fuzz::keys(&[1, 0, 0, 0]), 0, "a pair agrees on one instead");
}

proptest! {
    #![proptest_config(corridor_testing::cases!(60))]

    #[test]
    fn nothing_comes_out_that_did_not_go_in(data in vec_of(any::<u8>(), 0..600)) {
        corridor_fuzz::tags(&data);
        // Symbols that mostly arrive unaltered.
        let calm: Vec<u8> = data.iter().map(|&byte| if byte < 180 { byte & 0xf8 } else { byte }).collect();
        corridor_fuzz::tags(&calm);
    }
}
