//! Coders in lent memory behave like those that own it, whatever its contents and alignment; and
//! they take no more of it than they claim.

use corridor_codec::{
    Backend, BlockDecoder, BlockEncoder, CodecError, Coefficients, Field, Recoder, Storage,
    WindowDecoder, WindowEncoder,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Miri takes a thousand times as long.
const COUNT: usize = if cfg!(miri) { 5 } else { 13 };
const SIZE: usize = if cfg!(miri) { 66 } else { 100 };
/// Bytes before the lent memory, so that it is unaligned, and after it.
const BEFORE: usize = 3;
const AFTER: usize = 5;
const DIRT: u8 = 0xA5;

/// Each field with each backend; under Miri only one.
fn all_ways() -> impl Iterator<Item = (Field, Backend)> {
    let fields = [Field::Gf256, Field::Gf16, Field::Gf2];
    let count = if cfg!(miri) { 1 } else { fields.len() };
    fields
        .into_iter()
        .take(count)
        .flat_map(|field| Backend::available().map(move |backend| (field, backend)))
}

/// Memory to lend, with guard bytes around it.
struct Memory(Vec<u8>);

impl Memory {
    fn new(len: Result<usize, CodecError>) -> Self {
        Self(vec![DIRT; BEFORE + len.unwrap() + AFTER])
    }

    fn lent(&mut self) -> &mut [u8] {
        let end = self.0.len() - AFTER;
        &mut self.0[BEFORE..end]
    }

    fn check(&self) {
        let end = self.0.len() - AFTER;
        assert_eq!((&self.0[..BEFORE], &self.0[end..]), (&[DIRT; BEFORE][..], &[DIRT; AFTER][..]));
    }
}

/// Symbols of different lengths.
fn symbol(index: usize) -> Vec<u8> {
    (0..SIZE - index).map(|place| (place * 7 + index * 31 + 1) as u8).collect()
}

/// All outputs of block coders: a third of the source symbols, and recoded ones.
fn block_output<S: Storage>(
    encoder: &mut BlockEncoder<S>,
    recoder: &mut Recoder<S>,
    decoder: &mut BlockDecoder<S>,
) -> Vec<Vec<u8>> {
    let (mut rng, mut output) = (ChaCha8Rng::seed_from_u64(3), Vec::new());
    let field = encoder.field();
    // Twice, so that memory is reused.
    for _ in 0..2 {
        encoder.clear();
        recoder.reset();
        decoder.reset();
        (0..COUNT).for_each(|index| assert_eq!(encoder.push(&symbol(index)), Ok(index)));
        let (mut vector, mut payload) = (vec![0; field.vector_len_bytes(COUNT)], [0; SIZE]);
        while recoder.rank() < COUNT {
            field.draw_vector(COUNT, &mut rng, &mut vector).unwrap();
            let len = encoder.encode(&vector, COUNT, &mut payload).unwrap();
            output.push(payload[..len].to_vec());
            recoder.add_coded(&vector, COUNT, &payload[..len]).unwrap();
        }
        for index in (0..COUNT).step_by(3) {
            decoder.add_source(index, encoder.symbol(index).unwrap()).unwrap();
        }
        while !decoder.is_complete() {
            let recoded = recoder.recode(&mut rng, &mut vector, &mut payload).unwrap();
            output.push(payload[..recoded.len].to_vec());
            decoder.add_coded(&vector, recoded.count, &payload[..recoded.len]).unwrap();
        }
        for index in 0..COUNT {
            let decoded = decoder.symbol(index).unwrap();
            assert_eq!(decoded[..SIZE - index], symbol(index));
            output.push(decoded.to_vec());
        }
    }
    output
}

#[test]
fn block_coders_in_memory_lent_are_those_that_own_it() {
    for (field, backend) in all_ways() {
        let own = block_output(
            &mut BlockEncoder::with_backend(field, COUNT, SIZE, backend).unwrap(),
            &mut Recoder::with_backend(field, COUNT, SIZE, backend).unwrap(),
            &mut BlockDecoder::with_backend(field, COUNT, SIZE, backend).unwrap(),
        );
        let mut memory = [
            Memory::new(BlockEncoder::storage_len_bytes(field, COUNT, SIZE, backend)),
            Memory::new(Recoder::storage_len_bytes(field, COUNT, SIZE, backend)),
            Memory::new(BlockDecoder::storage_len_bytes(field, COUNT, SIZE, backend)),
        ];
        let [first, second, third] = memory.each_mut().map(Memory::lent);
        let lent = block_output(
            &mut BlockEncoder::with_storage(field, COUNT, SIZE, backend, first).unwrap(),
            &mut Recoder::with_storage(field, COUNT, SIZE, backend, second).unwrap(),
            &mut BlockDecoder::with_storage(field, COUNT, SIZE, backend, third).unwrap(),
        );
        assert_eq!(lent, own, "{field:?} {backend:?}");
        memory.iter().for_each(Memory::check);
    }
}

/// All outputs of window coders: every third symbol is lost, and the window moves.
fn window_output<S: Storage>(
    encoder: &mut WindowEncoder<S>,
    decoder: &mut WindowDecoder<S>,
) -> Vec<Vec<u8>> {
    let (mut output, mut payload) = (Vec::new(), [0; SIZE]);
    for number in 0..3 * COUNT {
        let id = encoder.push(&symbol(number % COUNT)).unwrap();
        if number % 3 != 1 {
            decoder.add_source(id, encoder.symbol(id).unwrap()).unwrap();
        } else {
            // Two at a time, so that something remains if a field makes them dependent.
            for seed in [2 * number, 2 * number + 1] {
                let (first, count) = (encoder.base(), encoder.count());
                let seed = Coefficients::Seed(seed as u32);
                let len = encoder.encode(first, count, seed, &mut payload).unwrap();
                output.push(payload[..len].to_vec());
                decoder.add_coded(first, count, seed, &payload[..len]).unwrap();
            }
        }
        for id in decoder.base()..decoder.in_order_end() {
            let decoded = decoder.symbol(id).unwrap();
            let sent = symbol(id as usize % COUNT);
            assert_eq!(decoded[..sent.len()], sent);
            output.push(decoded.to_vec());
        }
        decoder.advance_to(decoder.in_order_end());
        encoder.advance_to(decoder.base());
    }
    assert!(decoder.base() > COUNT as u64, "symbols were delivered");
    output
}

#[test]
fn window_coders_in_memory_lent_are_those_that_own_it() {
    for (field, backend) in all_ways() {
        let own = window_output(
            &mut WindowEncoder::with_backend(field, COUNT, SIZE, backend).unwrap(),
            &mut WindowDecoder::with_backend(field, COUNT, SIZE, backend).unwrap(),
        );
        let mut memory = [
            Memory::new(WindowEncoder::storage_len_bytes(field, COUNT, SIZE, backend)),
            Memory::new(WindowDecoder::storage_len_bytes(field, COUNT, SIZE, backend)),
        ];
        let [first, second] = memory.each_mut().map(Memory::lent);
        let lent = window_output(
            &mut WindowEncoder::with_storage(field, COUNT, SIZE, backend, first).unwrap(),
            &mut WindowDecoder::with_storage(field, COUNT, SIZE, backend, second).unwrap(),
        );
        assert_eq!(lent, own, "{field:?} {backend:?}");
        memory.iter().for_each(Memory::check);
    }
}

/// Without a named backend the length is the same on any machine: GFNI keeps short fields' payloads
/// twice, and the sum of a node's memory must not depend on it.
#[test]
fn without_a_backend_it_is_the_most_that_any_takes() {
    for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
        let lens = |backend: Option<Backend>| {
            [
                BlockEncoder::storage_len_bytes(field, COUNT, SIZE, backend),
                Recoder::storage_len_bytes(field, COUNT, SIZE, backend),
                BlockDecoder::storage_len_bytes(field, COUNT, SIZE, backend),
                WindowEncoder::storage_len_bytes(field, COUNT, SIZE, backend),
                WindowDecoder::storage_len_bytes(field, COUNT, SIZE, backend),
            ]
            .map(Result::unwrap)
        };
        let most = lens(None);
        for backend in Backend::available() {
            let of = lens(Some(backend));
            assert!(of.iter().zip(&most).all(|(of, most)| of <= most), "{field:?} {backend:?}");
            if backend.name().starts_with("gfni") {
                assert_eq!(of, most, "{field:?} {backend:?}");
            }
        }
        let twice = most[0] > lens(Backend::named("portable"))[0] * 3 / 2;
        assert_eq!(twice, field != Field::Gf256, "{field:?}");
    }
}

#[test]
fn memory_that_is_too_short_is_refused() {
    let (field, backend) = (Field::Gf16, Backend::detected());
    let lens = [
        BlockEncoder::storage_len_bytes(field, COUNT, SIZE, backend),
        Recoder::storage_len_bytes(field, COUNT, SIZE, backend),
        BlockDecoder::storage_len_bytes(field, COUNT, SIZE, backend),
        WindowEncoder::storage_len_bytes(field, COUNT, SIZE, backend),
        WindowDecoder::storage_len_bytes(field, COUNT, SIZE, backend),
    ]
    .map(Result::unwrap);
    let mut memory = lens.map(|len| vec![0; len - 1]);
    let [a, b, c, d, e] = memory.each_mut();
    let errors = [
        BlockEncoder::with_storage(field, COUNT, SIZE, backend, a).map(drop),
        Recoder::with_storage(field, COUNT, SIZE, backend, b).map(drop),
        BlockDecoder::with_storage(field, COUNT, SIZE, backend, c).map(drop),
        WindowEncoder::with_storage(field, COUNT, SIZE, backend, d).map(drop),
        WindowDecoder::with_storage(field, COUNT, SIZE, backend, e).map(drop),
    ];
    for (error, expected) in errors.into_iter().zip(lens) {
        assert_eq!(error, Err(CodecError::BufferTooShort { expected, given: expected - 1 }));
    }
    let none = BlockDecoder::storage_len_bytes(field, 0, SIZE, backend);
    assert_eq!(none, Err(CodecError::BlockSize { given: 0 }));
    let none = WindowDecoder::with_storage(field, 0, SIZE, backend, &mut []).map(drop);
    assert_eq!(none, Err(CodecError::WindowSize { given: 0 }));
}
