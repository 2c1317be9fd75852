//! What an end-to-end tag costs, compared with alternatives: keyed BLAKE3 (the one in use),
//! HMAC-SHA256, and AES-128-GCM, which encrypts each frame anyway.
//!
//!     cargo run --release --package corridor-proto --example tag_cost

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;

/// Tags made in a row; the fastest of several rows counts.
const ROW: u32 = 20_000;

fn fastest_ns(mut make: impl FnMut()) -> f64 {
    let row = |_| {
        let start = Instant::now();
        (0..ROW).for_each(|_| make());
        start.elapsed().as_nanos() as f64 / f64::from(ROW)
    };
    (0..20).map(row).fold(f64::MAX, f64::min)
}

fn main() {
    println!("bytes   keyed BLAKE3   HMAC-SHA256   sealing   (ns each)");
    for len in [64, 200, 1_400, 9_000] {
        let (text, key) = (vec![0x5a; len], [7; 32]);
        let blake3 = fastest_ns(|| {
            let mut hasher = blake3::Hasher::new_keyed(&key);
            hasher.update(&[1; 14]).update(black_box(&text));
            black_box(hasher.finalize());
        });
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let hmac = fastest_ns(|| {
            black_box(hmac::sign(&key, black_box(&text)));
        });
        let key = UnboundKey::new(&AES_128_GCM, &[7; 16]).expect("16 bytes");
        let (key, mut body) = (LessSafeKey::new(key), text.clone());
        let sealing = fastest_ns(|| {
            let nonce = Nonce::assume_unique_for_key([0; 12]);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), black_box(&mut body));
            let _ = black_box(tag.expect("short enough"));
        });
        println!("{len:5}   {blake3:12.0}   {hmac:11.0}   {sealing:7.0}");
    }
}
