//! Operations on a block encoder, a decoder, and a recoder that overhears.

use corridor_codec::{BlockDecoder, BlockEncoder, Field, Outcome, Recoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::input::{Input, source};
use crate::twin::{Twin, combine, unpack};

/// Maximum number of operations of one input: the twin is slow.
const OPERATIONS_MAX: usize = 200;

/// Interprets `data` as the dimensions of a block and operations on it.
///
/// # Panics
/// If the coders do not agree with their twins.
pub fn block(data: &[u8]) {
    let mut input = Input::new(data);
    let mut net = Net::new(&mut input);
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            return;
        }
        net.operate(&mut input);
        net.check();
    }
}

struct Net {
    field: Field,
    block_size: usize,
    symbol_size_max: usize,
    symbols: Vec<Vec<u8>>,
    encoder: BlockEncoder,
    decoder: BlockDecoder,
    decoder_twin: Twin,
    recoder: Recoder,
    recoder_twin: Twin,
    rng: ChaCha8Rng,
    /// Whether the decoder or recoder received anything false.
    is_poisoned: bool,
}

/// Who receives a symbol.
#[derive(Clone, Copy, PartialEq)]
enum Ears {
    Decoder,
    Recoder,
    Both,
}

impl Net {
    fn new(input: &mut Input) -> Self {
        let field = input.field();
        let (block_size, symbol_size_max) = (input.size(), 1 + input.below(12));
        let mut net = Self {
            field,
            block_size,
            symbol_size_max,
            symbols: vec![],
            encoder: BlockEncoder::new(field, block_size, symbol_size_max).unwrap(),
            decoder: BlockDecoder::new(field, block_size, symbol_size_max).unwrap(),
            decoder_twin: Twin::new(field, symbol_size_max, 0),
            recoder: Recoder::new(field, block_size, symbol_size_max).unwrap(),
            recoder_twin: Twin::new(field, symbol_size_max, 0),
            rng: ChaCha8Rng::seed_from_u64(1),
            is_poisoned: false,
        };
        net.start(0);
        net
    }

    /// A new block in the same memory.
    fn start(&mut self, number: u64) {
        self.encoder.clear();
        self.decoder.reset();
        self.recoder.reset();
        self.decoder_twin = Twin::new(self.field, self.symbol_size_max, 0);
        self.recoder_twin = Twin::new(self.field, self.symbol_size_max, 0);
        self.is_poisoned = false;
        let ids = (number * 1000..).take(self.block_size);
        self.symbols = ids.map(|id| source(id, self.symbol_size_max)).collect();
        for (index, symbol) in self.symbols.iter().enumerate() {
            assert_eq!(self.encoder.push(symbol), Ok(index));
        }
        assert!(self.encoder.is_full());
    }

    fn operate(&mut self, input: &mut Input) {
        let operation = input.below(16);
        let ears = [Ears::Decoder, Ears::Recoder, Ears::Both][input.below(3)];
        match operation {
            0..4 => {
                let index = input.below(self.block_size);
                let symbol = self.symbols[index].clone();
                self.hear_source(ears, index, &symbol);
            }
            4..10 => self.send_coded(ears, input),
            10..13 => self.recode(),
            13 => self.recode_at_the_decoder(),
            14 => self.send_garbage(ears, input),
            _ => self.start(input.byte().into()),
        }
    }

    fn send_coded(&mut self, ears: Ears, input: &mut Input) {
        let count = 1 + input.below(self.block_size);
        let len = self.field.vector_len_bytes(count);
        let mut vector = vec![0; len];
        match input.below(6) {
            0..3 => vector = input.vec(len),
            3..5 => {
                let bits = self.field.order().ilog2() as usize;
                for _ in 0..2 {
                    let bit = input.below(count) * bits;
                    vector[bit / 8] ^= 1 << (bit % 8);
                }
            }
            _ => self.field.expand_seed(input.u32(), count, &mut vector).unwrap(),
        }
        let mut payload = vec![0xEE; self.symbol_size_max];
        let len = self.encoder.encode(&vector, count, &mut payload).unwrap();
        let coefficients = unpack(self.field, &vector, count);
        let symbols = self.symbols.iter().map(Vec::as_slice);
        let expected = combine(self.field, &coefficients, symbols);
        assert_eq!(payload[..len], expected);
        assert!(payload[len..].iter().all(|&byte| byte == 0xEE), "written beyond");
        if len > 0 {
            self.hear_coded(ears, &vector, count, &expected);
        }
    }

    /// The decoder receives what the recoder makes of overheard symbols.
    fn recode(&mut self) {
        let mut vector = vec![0xEE; self.field.vector_len_bytes(self.block_size)];
        let mut payload = vec![0xEE; self.symbol_size_max];
        let recoded = self.recoder.recode(&mut self.rng, &mut vector, &mut payload);
        assert_eq!(recoded.is_some(), self.recoder.rank() > 0);
        if let Some(recoded) = recoded {
            assert_eq!(recoded.count, self.recoder.known_count());
            vector.truncate(self.field.vector_len_bytes(recoded.count));
            payload.truncate(recoded.len);
            self.check_recoded(&vector, recoded.count, &payload);
            self.hear_coded(Ears::Decoder, &vector, recoded.count, &payload);
        }
    }

    fn recode_at_the_decoder(&mut self) {
        let mut vector = vec![0xEE; self.field.vector_len_bytes(self.block_size)];
        let mut payload = vec![0xEE; self.symbol_size_max];
        let recoded = self.decoder.recode(&mut self.rng, &mut vector, &mut payload);
        assert_eq!(recoded.is_some(), self.decoder.rank() > 0);
        if let Some(recoded) = recoded {
            vector.truncate(self.field.vector_len_bytes(recoded.count));
            payload.truncate(recoded.len);
            self.check_recoded(&vector, recoded.count, &payload);
            self.hear_coded(Ears::Recoder, &vector, recoded.count, &payload);
        }
    }

    fn check_recoded(&self, vector: &[u8], count: usize, payload: &[u8]) {
        let coefficients = unpack(self.field, vector, count);
        assert!(coefficients.iter().any(|&coefficient| coefficient != 0));
        if !self.is_poisoned {
            let symbols = self.symbols.iter().map(Vec::as_slice);
            let mut expected = combine(self.field, &coefficients, symbols);
            assert!(expected.len() <= payload.len(), "a symbol cut off");
            expected.resize(payload.len(), 0);
            assert_eq!(payload, expected);
        }
    }

    /// Sizes, indices and bytes that may be invalid.
    fn send_garbage(&mut self, ears: Ears, input: &mut Input) {
        let len = input.below(self.symbol_size_max + 2);
        let payload = input.vec(len);
        self.is_poisoned = true;
        if input.below(3) == 0 {
            let index = input.below(self.block_size + 2);
            self.hear_source(ears, index, &payload);
            return;
        }
        let count = input.below(self.block_size + 2);
        let misfit = usize::from(input.below(4) == 0);
        let vector = input.vec(self.field.vector_len_bytes(count) + misfit);
        self.hear_coded(ears, &vector, count, &payload);
    }

    fn hear_source(&mut self, ears: Ears, index: usize, symbol: &[u8]) {
        let fits = index < self.block_size && (1..=self.symbol_size_max).contains(&symbol.len());
        if ears != Ears::Recoder {
            let outcome = self.decoder.add_source(index, symbol);
            let expected = fits.then(|| self.decoder_twin.add(index as u64, &[1], symbol));
            assert_eq!(outcome.ok(), expected.map(outcome_of));
            if expected == Some(true) {
                assert_eq!(self.decoder.symbol(index), Some(symbol), "its own length");
            }
        }
        if ears != Ears::Decoder {
            let outcome = self.recoder.add_source(index, symbol);
            let expected = fits.then(|| self.recoder_twin.add(index as u64, &[1], symbol));
            assert_eq!(outcome.ok(), expected.map(outcome_of));
        }
    }

    fn hear_coded(&mut self, ears: Ears, vector: &[u8], count: usize, payload: &[u8]) {
        let fits = (1..=self.block_size).contains(&count)
            && vector.len() == self.field.vector_len_bytes(count)
            && (1..=self.symbol_size_max).contains(&payload.len());
        let coefficients = if fits { unpack(self.field, vector, count) } else { vec![] };
        if ears != Ears::Recoder {
            let outcome = self.decoder.add_coded(vector, count, payload);
            let expected = fits.then(|| self.decoder_twin.add(0, &coefficients, payload));
            assert_eq!(outcome.ok(), expected.map(outcome_of));
        }
        if ears != Ears::Decoder {
            let outcome = self.recoder.add_coded(vector, count, payload);
            let expected = fits.then(|| self.recoder_twin.add(0, &coefficients, payload));
            assert_eq!(outcome.ok(), expected.map(outcome_of));
        }
    }

    fn check(&self) {
        assert_eq!(self.recoder.rank(), self.recoder_twin.rank());
        assert_eq!(self.decoder.rank(), self.decoder_twin.rank());
        let symbols = self.decoder_twin.symbols();
        assert_eq!(self.decoder.decoded_count(), symbols.len());
        assert_eq!(self.decoder.is_complete(), symbols.len() == self.block_size);
        let mut bitmap = vec![0xFF; self.block_size / 8 + 2];
        self.decoder.decoded_bitmap(&mut bitmap);
        let bits = (0..bitmap.len() * 8).filter(|&i| bitmap[i / 8] >> (i % 8) & 1 == 1);
        assert!(bits.map(|i| i as u64).eq(symbols.iter().map(|&(id, _)| id)));
        for (id, expected) in &symbols {
            let symbol = self.decoder.symbol(*id as usize).expect("determined, but not decoded");
            assert_eq!(symbol, &expected[..symbol.len()], "symbol {id}");
            assert!(expected[symbol.len()..].iter().all(|&byte| byte == 0), "symbol {id} cut off");
        }
    }
}

fn outcome_of(innovative: bool) -> Outcome {
    if innovative { Outcome::Innovative } else { Outcome::Dependent }
}
