//! A block coder allocates at construction, never afterwards.

use corridor_codec::{Backend, BlockDecoder, BlockEncoder, Field, Recoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::allocations::allocations;

const COUNT: usize = 21;
const SIZE: usize = 100;

/// A helper between encoder and decoder, some source symbols lost, batches of all sizes.
#[test]
fn nothing_is_allocated_after_construction() {
    for (field, backend) in [Field::Gf2, Field::Gf16, Field::Gf256]
        .into_iter()
        .flat_map(|field| Backend::available().map(move |backend| (field, backend)))
    {
        let mut encoder = BlockEncoder::with_backend(field, COUNT, SIZE, backend).unwrap();
        let mut recoder = Recoder::with_backend(field, COUNT, SIZE, backend).unwrap();
        let mut decoder = BlockDecoder::with_backend(field, COUNT, SIZE, backend).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let before = allocations();
        assert!(before > 0, "allocations are counted");
        for block in 0..4_u8 {
            (0..COUNT as u8).for_each(|i| {
                encoder.push(&[i + block; SIZE][usize::from(i)..]).unwrap();
            });
            for index in (0..COUNT).filter(|index| index % 3 > 0) {
                decoder.add_source(index, encoder.symbol(index).unwrap()).unwrap();
            }
            let mut vectors = [0; 9 * COUNT];
            let mut payloads = [[0; SIZE]; 9];
            let mut outs = payloads.each_mut().map(|payload| &mut payload[..]);
            let vector_len = field.vector_len_bytes(COUNT);
            while recoder.rank() < COUNT {
                for vector in vectors.chunks_exact_mut(vector_len).take(9) {
                    field.draw_vector(COUNT, &mut rng, vector).unwrap();
                }
                let used = &vectors[..9 * vector_len];
                let len = encoder.encode_batch(used, COUNT, &mut outs).unwrap();
                for (vector, out) in used.chunks_exact(vector_len).zip(&outs) {
                    recoder.add_coded(vector, COUNT, &out[..len]).unwrap();
                }
            }
            while !decoder.is_complete() {
                let recoded = recoder.recode_batch(&mut rng, &mut vectors, &mut outs).unwrap();
                for (vector, out) in vectors.chunks_exact(vector_len).zip(&outs) {
                    decoder.add_coded(vector, recoded.count, &out[..recoded.len]).unwrap();
                }
            }
            decoder.recode_batch(&mut rng, &mut vectors, &mut outs).unwrap();
            for index in 0..COUNT {
                let sent = encoder.symbol(index).unwrap();
                assert_eq!(&decoder.symbol(index).unwrap()[..sent.len()], sent);
            }
            encoder.clear();
            recoder.reset();
            decoder.reset();
        }
        let after = allocations();
        assert_eq!(after, before, "allocations over {field:?} with {backend:?}");
    }
}
