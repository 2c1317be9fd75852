//! The coders compared with their naive counterpart, on random blocks, orders and losses.

use std::{vec, vec::Vec};

use proptest::collection::vec as vec_of;
use proptest::prelude::*;
use proptest::sample::Index;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::naive::{NaiveDecoder, combine, unpack};
use crate::{Backend, BlockDecoder, BlockEncoder, Field, Outcome, Recoder};

const SYMBOL_SIZE_MAX: usize = 24;

/// A symbol sent by the encoder or a recoder.
#[derive(Clone, Debug)]
enum Sent {
    Source(Index),
    /// Over as many symbols as the index gives; the bytes are the vector, including zeros and
    /// unused bits.
    Coded(Index, Vec<u8>),
    /// Few coefficients: rows stay entangled in small groups.
    Sparse(Vec<Index>),
    /// From the recoder, if it holds anything.
    Recoded,
    /// A source or coded symbol that only the recoder hears.
    Overheard(Index, Vec<u8>),
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        4 => any::<Index>().prop_map(Sent::Source),
        3 => (any::<Index>(), vec_of(any::<u8>(), 80)).prop_map(|(i, v)| Sent::Coded(i, v)),
        3 => vec_of(any::<Index>(), 1..4).prop_map(Sent::Sparse),
        3 => Just(Sent::Recoded),
        3 => (any::<Index>(), vec_of(any::<u8>(), 80)).prop_map(|(i, v)| Sent::Overheard(i, v)),
    ]
}

fn field() -> impl Strategy<Value = Field> {
    prop_oneof![Just(Field::Gf2), Just(Field::Gf16), Just(Field::Gf256)]
}

/// One of the available backends, for all three coders; several seeds cover all of them.
fn backend(seed: u64) -> Backend {
    let count = Backend::available().count();
    Backend::available().nth(seed as usize % count).unwrap()
}

/// Blocks within a byte of the coding vector, and some across its 64-bit words; symbols of varying
/// lengths, or all of the same.
fn block() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let symbol = || vec_of(any::<u8>(), 1..=SYMBOL_SIZE_MAX);
    let alike = (1..=SYMBOL_SIZE_MAX).prop_flat_map(|len| vec_of(vec_of(any::<u8>(), len), 1..=12));
    prop_oneof![4 => vec_of(symbol(), 1..=12), 2 => alike, 1 => vec_of(symbol(), 60..=70)]
}

/// A frame on the air: a coding vector and a payload, or a source symbol.
enum Frame {
    Source(usize, Vec<u8>),
    Coded(Vec<u8>, usize, Vec<u8>),
}

/// An encoder, a recoder and a decoder under test, with naive counterparts of the latter two.
struct Net {
    field: Field,
    symbols: Vec<Vec<u8>>,
    encoder: BlockEncoder,
    recoder: Recoder,
    recoder_twin: NaiveDecoder,
    decoder: BlockDecoder,
    decoder_twin: NaiveDecoder,
    rng: ChaCha8Rng,
    /// Longest payload the decoder received.
    len_max: usize,
}

impl Net {
    fn new(field: Field, symbols: Vec<Vec<u8>>, seed: u64) -> Self {
        let count = symbols.len();
        let mut encoder =
            BlockEncoder::with_backend(field, count, SYMBOL_SIZE_MAX, backend(seed)).unwrap();
        for (index, symbol) in symbols.iter().enumerate() {
            assert_eq!(encoder.push(symbol), Ok(index));
        }
        Self {
            field,
            symbols,
            encoder,
            recoder: Recoder::with_backend(field, count, SYMBOL_SIZE_MAX, backend(seed)).unwrap(),
            recoder_twin: NaiveDecoder::new(field, count, SYMBOL_SIZE_MAX),
            decoder: BlockDecoder::with_backend(field, count, SYMBOL_SIZE_MAX, backend(seed))
                .unwrap(),
            decoder_twin: NaiveDecoder::new(field, count, SYMBOL_SIZE_MAX),
            rng: ChaCha8Rng::seed_from_u64(seed),
            len_max: 0,
        }
    }

    fn send(&mut self, sent: &Sent) {
        match sent {
            Sent::Source(index) => {
                let index = index.index(self.symbols.len());
                let frame = Frame::Source(index, self.symbols[index].clone());
                self.recoder_hears(&frame);
                self.decoder_hears(&frame);
            }
            Sent::Coded(count, vector) => {
                if let Some(frame) = self.encode(count.index(self.symbols.len()) + 1, vector) {
                    self.decoder_hears(&frame);
                }
            }
            Sent::Sparse(indices) => {
                let mut vector = vec![0; 80];
                for index in indices {
                    let factor = (29 % self.field.order()) as u8;
                    let index = index.index(self.symbols.len());
                    self.field.add_to_coefficient(&mut vector, index, factor);
                }
                if let Some(frame) = self.encode(self.symbols.len(), &vector) {
                    self.recoder_hears(&frame);
                    self.decoder_hears(&frame);
                }
            }
            Sent::Recoded => {
                if let Some(frame) = self.recode() {
                    self.decoder_hears(&frame);
                }
            }
            Sent::Overheard(count, vector) => {
                let count = count.index(self.symbols.len());
                let frame = match vector[0] % 2 {
                    0 => Some(Frame::Source(count, self.symbols[count].clone())),
                    _ => self.encode(count + 1, vector),
                };
                if let Some(frame) = frame {
                    self.recoder_hears(&frame);
                }
            }
        }
    }

    /// A coded symbol, checked; none if the vector happens to be zero.
    fn encode(&mut self, count: usize, vector: &[u8]) -> Option<Frame> {
        let vector = &vector[..self.field.vector_len_bytes(count)];
        let mut out = [0xEE; SYMBOL_SIZE_MAX];
        let len = self.encoder.encode(vector, count, &mut out).unwrap();
        let expected = combine(self.field, &unpack(self.field, vector, count), &self.symbols);
        assert_eq!(out[..len], expected);
        assert!(out[len..].iter().all(|&byte| byte == 0xEE), "written beyond its length");
        self.encode_batch(count);
        (len > 0).then(|| Frame::Coded(vector.to_vec(), count, expected))
    }

    /// Several coded symbols at once, checked.
    fn encode_batch(&mut self, count: usize) {
        let size = self.field.vector_len_bytes(count);
        let outputs = (self.rng.next_u32() % 19) as usize;
        let mut vectors = vec![0; outputs * size];
        self.rng.fill_bytes(&mut vectors);
        let mut payloads = vec![0xEE; outputs * SYMBOL_SIZE_MAX];
        let mut outs: Vec<_> = payloads.chunks_mut(SYMBOL_SIZE_MAX).collect();
        let len = self.encoder.encode_batch(&vectors, count, &mut outs).unwrap();
        let mut len_max = 0;
        for (vector, out) in vectors.chunks(size).zip(outs) {
            let mut expected =
                combine(self.field, &unpack(self.field, vector, count), &self.symbols);
            len_max = len_max.max(expected.len());
            expected.resize(len, 0);
            assert_eq!(out[..len], expected);
            assert!(out[len..].iter().all(|&byte| byte == 0xEE), "written beyond its length");
        }
        assert_eq!(len, len_max);
    }

    /// Several recoded symbols at once, from recoder and decoder, checked.
    fn recode_batch(&mut self) {
        let outputs = (self.rng.next_u32() % 19) as usize;
        for of_recoder in [true, false] {
            let known =
                if of_recoder { self.recoder.known_count() } else { self.decoder.known_count() };
            let size = self.field.vector_len_bytes(known);
            let mut vectors = vec![0xEE; outputs * size];
            let mut payloads = vec![0xEE; outputs * SYMBOL_SIZE_MAX];
            let mut outs: Vec<_> = payloads.chunks_mut(SYMBOL_SIZE_MAX).collect();
            let recoded = match of_recoder {
                true => self.recoder.recode_batch(&mut self.rng, &mut vectors, &mut outs),
                false => self.decoder.recode_batch(&mut self.rng, &mut vectors, &mut outs),
            };
            let Some(recoded) = recoded else { continue };
            assert_eq!(recoded.count, known);
            for (vector, out) in vectors.chunks(size).zip(outs) {
                let coefficients = unpack(self.field, vector, known);
                assert_ne!(coefficients, vec![0; known]);
                let mut expected = combine(self.field, &coefficients, &self.symbols);
                expected.resize(recoded.len, 0);
                assert_eq!(
                    out[..recoded.len],
                    expected,
                    "{:?}, {outputs} of {}",
                    if of_recoder { "recoder" } else { "decoder" },
                    self.recoder.rank(),
                );
            }
        }
    }

    /// A recoded symbol, checked against its vector. It may be longer, by trailing zeros.
    fn recode(&mut self) -> Option<Frame> {
        let mut vector = vec![0xEE; self.field.vector_len_bytes(self.symbols.len())];
        let mut payload = vec![0xEE; SYMBOL_SIZE_MAX];
        let recoded = self.recoder.recode(&mut self.rng, &mut vector, &mut payload);
        assert_eq!(recoded.is_some(), self.recoder.rank() > 0);
        let recoded = recoded?;
        assert_eq!(recoded.count, self.recoder.known_count());
        vector.truncate(self.field.vector_len_bytes(recoded.count));
        payload.truncate(recoded.len);
        let coefficients = unpack(self.field, &vector, recoded.count);
        assert_ne!(coefficients, vec![0; recoded.count]);
        let mut expected = combine(self.field, &coefficients, &self.symbols);
        assert!(expected.len() <= recoded.len);
        expected.resize(recoded.len, 0);
        assert_eq!(payload, expected);
        self.recode_batch();
        Some(Frame::Coded(vector, recoded.count, payload))
    }

    fn recoder_hears(&mut self, frame: &Frame) {
        let (before, outcome) = (
            self.recoder.rank(),
            match frame {
                Frame::Source(index, symbol) => self.recoder.add_source(*index, symbol),
                Frame::Coded(vector, count, payload) => {
                    self.recoder.add_coded(vector, *count, payload)
                }
            },
        );
        teach(&mut self.recoder_twin, self.field, frame);
        assert_eq!(self.recoder.rank(), self.recoder_twin.rank());
        assert_eq!(outcome == Ok(Outcome::Innovative), self.recoder.rank() > before);
    }

    fn decoder_hears(&mut self, frame: &Frame) {
        let before = self.decoder.rank();
        let outcome = match frame {
            Frame::Source(index, symbol) => {
                let outcome = self.decoder.add_source(*index, symbol);
                if outcome == Ok(Outcome::Innovative) {
                    assert_eq!(self.decoder.symbol(*index), Some(&symbol[..]), "its own length");
                }
                self.len_max = self.len_max.max(symbol.len());
                outcome
            }
            Frame::Coded(vector, count, payload) => {
                self.len_max = self.len_max.max(payload.len());
                self.decoder.add_coded(vector, *count, payload)
            }
        };
        teach(&mut self.decoder_twin, self.field, frame);
        assert_eq!(self.decoder.rank(), self.decoder_twin.rank());
        assert_eq!(outcome == Ok(Outcome::Innovative), self.decoder.rank() > before);
        self.check_symbols();
    }

    /// The decoded symbols are exactly the determined ones, and equal the encoded ones.
    fn check_symbols(&self) {
        let count = self.symbols.len();
        let expected = self.decoder_twin.symbols();
        let mut bitmap = vec![0xFF; count.div_ceil(8) + 1];
        self.decoder.decoded_bitmap(&mut bitmap);
        for (index, expected) in expected.iter().enumerate() {
            let decoded = self.decoder.symbol(index);
            assert_eq!(decoded.is_some(), expected.is_some(), "symbol {index}");
            assert_eq!(self.decoder.is_decoded(index), expected.is_some());
            assert_eq!(bitmap[index / 8] >> (index % 8) & 1 == 1, expected.is_some());
            if let (Some(decoded), Some(expected)) = (decoded, expected) {
                assert!(decoded.len() >= self.symbols[index].len());
                assert!(decoded.len() <= self.len_max);
                assert_eq!(decoded, &expected[..decoded.len()]);
                assert!(expected.starts_with(&self.symbols[index]));
                assert!(expected[self.symbols[index].len()..].iter().all(|&byte| byte == 0));
            }
        }
        let decoded_count = expected.iter().flatten().count();
        assert_eq!(self.decoder.decoded_count(), decoded_count);
        assert_eq!(
            bitmap.iter().map(|byte| byte.count_ones() as usize).sum::<usize>(),
            decoded_count
        );
        assert_eq!(self.decoder.is_complete(), self.decoder.rank() == count);
        assert_eq!(self.decoder.is_complete(), decoded_count == count);
    }

    /// Clears everything but the buffers, which keep the block's data.
    fn reset(self, symbols: Vec<Vec<u8>>, seed: u64) -> Self {
        let mut next = Self::new(self.field, symbols, seed);
        next.encoder = self.encoder;
        next.encoder.clear();
        for symbol in &next.symbols {
            next.encoder.push(symbol).unwrap();
        }
        (next.recoder, next.decoder) = (self.recoder, self.decoder);
        next.recoder.reset();
        next.decoder.reset();
        assert_eq!((next.decoder.rank(), next.decoder.known_count()), (0, 0));
        next
    }
}

fn teach(twin: &mut NaiveDecoder, field: Field, frame: &Frame) {
    match frame {
        Frame::Source(index, symbol) => {
            let mut coefficients = vec![0; index + 1];
            coefficients[*index] = 1;
            twin.add(&coefficients, symbol);
        }
        Frame::Coded(vector, count, payload) => {
            twin.add(&unpack(field, vector, *count), payload);
        }
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn every_step_agrees_with_the_twin(
        field in field(),
        symbols in block(),
        sent in vec_of(sent(), 1..100),
        seed: u64,
    ) {
        let count = symbols.len();
        let mut net = Net::new(field, symbols.clone(), seed);
        for sent in sent.iter().take(if count > 12 { 100 } else { 40 }) {
            net.send(sent);
        }
        let again = symbols.into_iter().rev().collect();
        let mut net = net.reset(again, seed ^ 1);
        for sent in sent.iter().rev().take(12) {
            net.send(sent);
        }
    }

    /// An encoder, then a chain of recoders, each with its own losses, then the decoder, which
    /// recodes as well. Every combination that leaves the chain is innovative if its rank says so.
    #[test]
    fn a_chain_of_recoders_delivers_the_block(
        field in field(),
        symbols in block(),
        hops in 1..4_usize,
        loss in 0..60_u32,
        seed: u64,
    ) {
        let count = symbols.len();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut encoder = BlockEncoder::new(field, count, SYMBOL_SIZE_MAX).unwrap();
        symbols.iter().for_each(|symbol| { encoder.push(symbol).unwrap(); });
        let mut relays =
            vec![Recoder::new(field, count, SYMBOL_SIZE_MAX).unwrap(); hops];
        let mut decoder = BlockDecoder::new(field, count, SYMBOL_SIZE_MAX).unwrap();
        let mut last = Recoder::new(field, count, SYMBOL_SIZE_MAX).unwrap();
        let (mut vector, mut payload) = (vec![0; count], [0; SYMBOL_SIZE_MAX]);
        let mut rounds = 0;
        while last.rank() < count {
            rounds += 1;
            prop_assert!(rounds < 100 * (count + 10), "no progress");
            let covered = rounds.min(count);
            field.draw_vector(covered, &mut rng, &mut vector).unwrap();
            let used = field.vector_len_bytes(covered);
            let len = encoder.encode(&vector[..used], covered, &mut payload).unwrap();
            if rng.next_u32() % 100 >= loss {
                relays[0].add_coded(&vector[..used], covered, &payload[..len]).unwrap();
            }
            for hop in 0..hops {
                let recoded = relays[hop].recode(&mut rng, &mut vector, &mut payload);
                let Some(recoded) = recoded.filter(|_| rng.next_u32() % 100 >= loss) else {
                    continue;
                };
                let vector = &vector[..field.vector_len_bytes(recoded.count)];
                let payload = &payload[..recoded.len];
                if hop + 1 < hops {
                    relays[hop + 1].add_coded(vector, recoded.count, payload).unwrap();
                } else {
                    decoder.add_coded(vector, recoded.count, payload).unwrap();
                }
            }
            if let Some(recoded) = decoder.recode(&mut rng, &mut vector, &mut payload) {
                prop_assert_eq!(recoded.count, decoder.known_count());
                let vector = &vector[..field.vector_len_bytes(recoded.count)];
                last.add_coded(vector, recoded.count, &payload[..recoded.len]).unwrap();
                let mut expected = combine(field, &unpack(field, vector, recoded.count), &symbols);
                expected.resize(recoded.len, 0);
                prop_assert_eq!(&payload[..recoded.len], expected);
            }
            prop_assert!(last.rank() <= decoder.rank());
        }
        prop_assert!(decoder.is_complete());
        for (index, symbol) in symbols.iter().enumerate() {
            let decoded = decoder.symbol(index).unwrap();
            prop_assert_eq!(&decoded[..symbol.len()], &symbol[..]);
            prop_assert!(decoded[symbol.len()..].iter().all(|&byte| byte == 0));
        }
    }

    /// Whatever comes from the network, nothing panics, and an error leaves the state unchanged.
    #[test]
    fn arbitrary_input_does_no_harm(
        field in field(),
        inputs in vec_of(
            (0..12_usize, vec_of(any::<u8>(), 0..12), vec_of(any::<u8>(), 0..12), any::<bool>()),
            0..60,
        ),
    ) {
        let mut decoder = BlockDecoder::new(field, 9, 10).unwrap();
        let mut recoder = Recoder::new(field, 9, 10).unwrap();
        for (number, mut vector, payload, fit) in inputs {
            if fit {
                vector.resize(field.vector_len_bytes(number), 0x5A);
            }
            let before = (decoder.rank(), decoder.known_count());
            let (coded, recoded) = if payload.first().is_some_and(|byte| byte % 2 == 0) {
                (decoder.add_source(number, &payload), recoder.add_source(number, &payload))
            } else {
                (
                    decoder.add_coded(&vector, number, &payload),
                    recoder.add_coded(&vector, number, &payload),
                )
            };
            prop_assert_eq!(&coded, &recoded);
            if coded.is_err() {
                prop_assert_eq!((decoder.rank(), decoder.known_count()), before);
            }
            prop_assert_eq!(decoder.rank(), recoder.rank());
            prop_assert_eq!(decoder.known_count(), recoder.known_count());
            prop_assert!(decoder.decoded_count() <= decoder.rank() && decoder.rank() <= 9);
        }
    }
}

/// Blocks whose payloads and vectors are combined together, and others around that limit: of any
/// rank, with every backend, reset in between.
#[test]
fn recoded_symbols_of_full_size_are_what_their_vectors_say() {
    let (size, mut rng) = (1450, ChaCha8Rng::seed_from_u64(11));
    for backend in Backend::available() {
        for (field, count) in [
            (Field::Gf256, 16),
            (Field::Gf256, 24),
            (Field::Gf256, 32),
            (Field::Gf256, 33),
            (Field::Gf16, 32),
            (Field::Gf2, 32),
        ] {
            let mut recoder = Recoder::with_backend(field, count, size, backend).unwrap();
            for round in 0..2 {
                recoder.reset();
                let mut symbols = vec![vec![0; size - round]; count];
                symbols.iter_mut().for_each(|symbol| rng.fill_bytes(symbol));
                while recoder.rank() < count {
                    let mut heard = vec![0; field.vector_len_bytes(count)];
                    field.draw_vector(count, &mut rng, &mut heard).unwrap();
                    let payload = combine(field, &unpack(field, &heard, count), &symbols);
                    recoder.add_coded(&heard, count, &payload).unwrap();
                    let (mut vector, mut out) = (heard.clone(), vec![0xEE; size]);
                    let recoded = recoder.recode(&mut rng, &mut vector, &mut out).unwrap();
                    assert_eq!((recoded.count, recoded.len), (count, size - round));
                    let mut expected = combine(field, &unpack(field, &vector, count), &symbols);
                    expected.resize(size - round, 0);
                    let what = (backend, field, count, recoder.rank());
                    assert_eq!(out[..recoded.len], expected, "{what:?}");
                    assert!(out[recoded.len..].iter().all(|&byte| byte == 0xEE), "{what:?}");
                }
            }
        }
    }
}

/// After a few losses, the block is complete with the last arriving symbol; its source symbols are
/// available at once, and can be recoded.
#[test]
fn a_block_with_losses_is_whole_in_the_end() {
    let (size, count, mut rng) = (200, 16, ChaCha8Rng::seed_from_u64(17));
    for (backend, field) in Backend::available()
        .flat_map(|backend| [Field::Gf256, Field::Gf16, Field::Gf2].map(|field| (backend, field)))
    {
        let mut decoder = BlockDecoder::with_backend(field, count, size, backend).unwrap();
        for (lost, late) in (1..=6).flat_map(|lost| [(lost, false), (lost, true)]) {
            decoder.reset();
            let mut symbols = vec![vec![0; size - lost]; count];
            symbols.iter_mut().for_each(|symbol| rng.fill_bytes(symbol));
            for (index, symbol) in symbols.iter().enumerate().skip(lost) {
                decoder.add_source(index, symbol).unwrap();
            }
            let mut heard = vec![0; field.vector_len_bytes(count)];
            while !decoder.is_complete() {
                // The last to arrive is one that was assumed lost.
                if late && decoder.rank() + 1 == count {
                    decoder.add_source(0, &symbols[0]).unwrap();
                }
                field.draw_vector(count, &mut rng, &mut heard).unwrap();
                let payload = combine(field, &unpack(field, &heard, count), &symbols);
                decoder.add_coded(&heard, count, &payload).unwrap();
            }
            let what = (backend, field, lost, late);
            for (index, symbol) in symbols.iter().enumerate() {
                assert_eq!(decoder.symbol(index), Some(&symbol[..]), "{index} {what:?}");
                assert_eq!(decoder.add_source(index, symbol), Ok(Outcome::Dependent), "{what:?}");
            }
            assert_eq!(decoder.decoded_count(), count);
            let (mut vector, mut out) = (heard.clone(), vec![0xEE; size]);
            for _ in 0..4 {
                let recoded = decoder.recode(&mut rng, &mut vector, &mut out).unwrap();
                let expected = combine(field, &unpack(field, &vector, count), &symbols);
                assert_eq!(out[..recoded.len], expected, "{what:?}");
                let outcome = decoder.add_coded(&vector, count, &expected);
                assert_eq!(outcome, Ok(Outcome::Dependent), "{what:?}");
            }
        }
    }
}
