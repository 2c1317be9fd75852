//! A window coder allocates at construction, never afterwards.

use corridor_codec::{Coefficients, Density, Field, WindowDecoder, WindowEncoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::allocations::allocations;

#[test]
fn nothing_is_allocated_after_construction() {
    for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
        let mut encoder = WindowEncoder::new(field, 50, 100).unwrap();
        let mut decoder = WindowDecoder::new(field, 50, 100).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let before = allocations();
        assert!(before > 0, "allocations are counted");
        for number in 0..500_u32 {
            if encoder.is_full() {
                encoder.advance_to(encoder.base() + 1);
                decoder.advance_to(encoder.base());
            }
            let symbol = [number as u8; 100];
            let id = encoder.push(&symbol[..1 + number as usize % 100]).unwrap();
            if number % 3 > 0 {
                decoder.add_source(id, encoder.symbol(id).unwrap()).unwrap();
            } else {
                let given = match number % 2 {
                    0 if field != Field::Gf16 => Coefficients::RepairKey(7, Density::FULL),
                    _ => Coefficients::Seed(number),
                };
                let (base, count) = (encoder.base(), encoder.count());
                let mut payload = [0; 100];
                let len = encoder.encode(base, count, given, &mut payload).unwrap();
                decoder.add_coded(base, count, given, &payload[..len]).unwrap();
            }
            while decoder.poll_decoded().is_some() {}
            let (mut vector, mut payload) = ([0; 50], [0; 100]);
            let (base, count) = (decoder.base(), (decoder.end() - decoder.base()) as usize);
            decoder.recode(base, count, &mut rng, &mut vector, &mut payload).unwrap();
            let (mut vectors, mut payloads) = ([0; 7 * 50], [[0; 100]; 7]);
            let mut outs = payloads.each_mut().map(|payload| &mut payload[..]);
            decoder.recode_batch(base, count, &mut rng, &mut vectors, &mut outs).unwrap();
            let (base, count) = (encoder.base(), encoder.count());
            let seeds: [_; 7] = core::array::from_fn(|i| Coefficients::Seed(number + i as u32));
            encoder.encode_batch(base, count, &seeds, &mut outs).unwrap();
        }
        assert!(decoder.decoded_count() > 30);
        assert_eq!(allocations(), before, "{field:?}");
    }
}
