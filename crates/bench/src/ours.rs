//! Our codec, by backend and field.

use std::hint::black_box;
use std::mem;
use std::rc::Rc;

use corridor_codec::{Backend, BlockDecoder, BlockEncoder, Field, Recoder};

use crate::fixture::{
    Aligned, Block, POLYNOMIAL_GF16, POLYNOMIAL_RFC_8681, Replay, VECTORS_IN_TURN, repair_count,
};
use crate::measure::{Contestant, Work};

mod window;

/// The name of this library in results.
pub const LIBRARY: &str = "corridor";

/// Coded symbols per batch.
const BATCH: usize = 16;

/// The available fields, the one that most peers use first.
const FIELDS: [Field; 3] = [Field::Gf256, Field::Gf16, Field::Gf2];

/// The name of the default backend.
pub fn default_backend() -> &'static str {
    Backend::detected().name()
}

fn field_name(field: Field) -> &'static str {
    match field.order() {
        2 => "GF(2)",
        16 => "GF(2^4)",
        _ => "GF(2^8)",
    }
}

/// One of our ways to do a piece of work.
#[derive(Clone, Copy)]
pub struct Way {
    pub backend: Backend,
    pub field: Field,
}

impl Way {
    /// All ways, the default backend first: every backend over GF(2^8), the other fields with the
    /// default and with AVX2.
    pub fn all() -> Vec<Way> {
        let default = default_backend();
        let mut backends: Vec<Backend> = Backend::available().collect();
        backends.sort_by_key(|backend| backend.name() != default);
        backends
            .into_iter()
            .flat_map(|backend| FIELDS.map(|field| Way { backend, field }))
            .filter(|way| {
                way.field == Field::Gf256 || [default, "avx2"].contains(&way.backend.name())
            })
            .collect()
    }

    fn contestant(self, payload_bytes: usize, work: impl Work + 'static) -> Contestant {
        let (backend, field) = (self.backend.name().to_owned(), field_name(self.field));
        Contestant { library: LIBRARY, backend, field, payload_bytes, work: Box::new(work) }
    }

    fn new_encoder(self, block: &Block) -> BlockEncoder {
        let (block_size, symbol_size) = (block.block_size, block.symbol_size);
        BlockEncoder::with_backend(self.field, block_size, symbol_size, self.backend)
            .expect("sizes")
    }

    fn new_decoder(self, block: &Block) -> BlockDecoder {
        let (block_size, symbol_size) = (block.block_size, block.symbol_size);
        BlockDecoder::with_backend(self.field, block_size, symbol_size, self.backend)
            .expect("sizes")
    }

    fn new_recoder(self, block: &Block) -> Recoder {
        let (block_size, symbol_size) = (block.block_size, block.symbol_size);
        Recoder::with_backend(self.field, block_size, symbol_size, self.backend).expect("sizes")
    }

    fn full_encoder(self, block: &Block) -> BlockEncoder {
        let mut encoder = self.new_encoder(block);
        for symbol in &block.symbols {
            encoder.push(symbol).expect("a symbol");
        }
        encoder
    }

    /// Coding vectors in our packing, drawn as by a sender.
    fn vectors(self, block: &Block, count: usize) -> Vec<Vec<u8>> {
        let mut rng = crate::fixture::rng(block.seed ^ 3);
        let draw = |_| {
            let mut vector = vec![0; self.field.vector_len_bytes(block.block_size)];
            self.field.draw_vector(block.block_size, &mut rng, &mut vector).expect("a buffer");
            vector
        };
        (0..count).map(draw).collect()
    }

    /// Coded symbols, more than a block needs: the number needed is random.
    fn coded_symbols(self, block: &Block, needed: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        // The output does not depend on the backend: use the fastest.
        let encoder = Way { backend: Backend::detected(), ..self }.full_encoder(block);
        let code = |vector: Vec<u8>| {
            let mut payload = vec![0; block.symbol_size];
            let len = encoder.encode(&vector, block.block_size, &mut payload).expect("a buffer");
            payload.truncate(len);
            (vector, payload)
        };
        self.vectors(block, needed + 40).into_iter().map(code).collect()
    }

    /// One coded symbol at a time.
    pub fn encode(self, block: &Rc<Block>) -> Contestant {
        self.contestant(block.symbol_size, self.encode_of(block, 1))
    }

    /// A batch of coded symbols at a time.
    pub fn encode_batch(self, block: &Rc<Block>) -> Contestant {
        self.contestant(BATCH * block.symbol_size, self.encode_of(block, BATCH))
    }

    /// The repair symbols for a tenth of the block, at once.
    pub fn encode_systematic(self, block: &Rc<Block>) -> Contestant {
        let payload_bytes = block.block_size * block.symbol_size;
        self.contestant(payload_bytes, self.encode_of(block, repair_count(block.block_size)))
    }

    fn encode_of(self, block: &Rc<Block>, count: usize) -> Encode {
        let vectors = self.vectors(block, count.max(VECTORS_IN_TURN));
        // Payloads start at cache lines, like those of rlnc-simdx.
        let stride = block.symbol_size.next_multiple_of(64);
        Encode {
            way: self,
            block: block.clone(),
            encoder: self.full_encoder(block),
            vector_len: self.field.vector_len_bytes(block.block_size),
            vectors: vectors.concat(),
            stride,
            payloads: Aligned::new(count * stride, 0),
            count,
            next: 0,
        }
    }

    /// One recoded symbol at a time, from as many received ones as the block has.
    pub fn recode(self, block: &Rc<Block>) -> Contestant {
        self.contestant(block.symbol_size, self.recode_of(block, 1))
    }

    /// A batch of recoded symbols at a time.
    pub fn recode_batch(self, block: &Rc<Block>) -> Contestant {
        self.contestant(BATCH * block.symbol_size, self.recode_of(block, BATCH))
    }

    fn recode_of(self, block: &Rc<Block>, count: usize) -> Recode {
        let mut recoder = self.new_recoder(block);
        for (vector, payload) in self.coded_symbols(block, block.block_size) {
            recoder.add_coded(&vector, block.block_size, &payload).expect("a coded symbol");
        }
        let vector_len = self.field.vector_len_bytes(block.block_size);
        let stride = block.symbol_size.next_multiple_of(64);
        Recode {
            way: self,
            block: block.clone(),
            recoder,
            coefficients: Replay::new(block.seed, VECTORS_IN_TURN * vector_len),
            vectors: vec![0; count * vector_len],
            stride,
            payloads: Aligned::new(count * stride, 0),
        }
    }

    /// A block of coded symbols only.
    pub fn decode(self, block: &Rc<Block>) -> Contestant {
        self.decode_of(block, false)
    }

    /// A block of which a tenth is lost and repaired by coded symbols.
    pub fn decode_systematic(self, block: &Rc<Block>) -> Contestant {
        self.decode_of(block, true)
    }

    fn decode_of(self, block: &Rc<Block>, systematic: bool) -> Contestant {
        let received = if systematic { block.received_symbols() } else { Vec::new() };
        let work = Decode {
            block: block.clone(),
            received: received.iter().map(|&(index, _)| index).collect(),
            coded: self.coded_symbols(block, block.block_size - received.len()),
            decoder: self.new_decoder(block),
        };
        self.contestant(block.block_size * block.symbol_size, work)
    }

    /// Coefficients of one of our vectors, one byte each.
    fn coefficients(self, vector: &[u8], count: usize) -> impl Iterator<Item = u8> {
        let bits = self.field.order().ilog2() as usize;
        let mask = u8::MAX >> (8 - bits);
        (0..count).map(move |index| (vector[index * bits / 8] >> (index * bits % 8)) & mask)
    }

    /// Checks a coded symbol by the naive method.
    fn verify_coded(self, block: &Block, vector: &[u8], payload: &[u8]) -> Result<(), String> {
        let polynomial = match self.field {
            Field::Gf16 => POLYNOMIAL_GF16,
            _ => POLYNOMIAL_RFC_8681,
        };
        block.verify_coded(polynomial, self.coefficients(vector, block.block_size), payload)
    }
}

struct Encode {
    way: Way,
    block: Rc<Block>,
    encoder: BlockEncoder,
    vector_len: usize,
    /// Concatenated.
    vectors: Vec<u8>,
    stride: usize,
    payloads: Aligned,
    /// Coded symbols per run.
    count: usize,
    /// Offset of the next symbol's vector, for single symbols.
    next: usize,
}

impl Encode {
    fn encode_batch(&mut self, outs: &mut [&mut [u8]]) {
        let vectors = &self.vectors[..self.count * self.vector_len];
        let len = self.encoder.encode_batch(vectors, self.block.block_size, outs);
        black_box(len.expect("buffers"));
    }
}

impl Work for Encode {
    fn run(&mut self) {
        if self.count == 1 {
            self.next = (self.next + self.vector_len) % self.vectors.len();
            let vector = &self.vectors[self.next..][..self.vector_len];
            let payload = self.payloads.as_mut_slice();
            let len = self.encoder.encode(vector, self.block.block_size, payload);
            black_box(len.expect("a buffer"));
            return;
        }
        // What a caller would have at hand; moved out of `self` only for the borrow checker.
        let mut payloads = mem::take(&mut self.payloads);
        let mut parts = payloads.as_mut_slice().chunks_exact_mut(self.stride);
        if self.count <= BATCH {
            let mut outs: [&mut [u8]; BATCH] =
                std::array::from_fn(|_| parts.next().unwrap_or_default());
            self.encode_batch(&mut outs[..self.count]);
        } else {
            self.encode_batch(&mut parts.collect::<Vec<_>>());
        }
        self.payloads = payloads;
    }
    fn verify(&mut self) -> Result<(), String> {
        let vectors = self.vectors[self.next..].chunks_exact(self.vector_len);
        let mut pairs = vectors.zip(self.payloads.as_slice().chunks_exact(self.stride));
        pairs.try_for_each(|(vector, payload)| {
            self.way.verify_coded(&self.block, vector, &payload[..self.block.symbol_size])
        })
    }
}

struct Recode {
    way: Way,
    block: Rc<Block>,
    recoder: Recoder,
    coefficients: Replay,
    /// Buffers for the vectors and payloads of a run, concatenated.
    vectors: Vec<u8>,
    stride: usize,
    payloads: Aligned,
}

impl Work for Recode {
    fn run(&mut self) {
        let (rng, payloads) = (&mut self.coefficients, self.payloads.as_mut_slice());
        let recoded = if payloads.len() == self.stride {
            self.recoder.recode(rng, &mut self.vectors, payloads)
        } else {
            let mut parts = payloads.chunks_exact_mut(self.stride);
            let mut outs: [&mut [u8]; BATCH] =
                std::array::from_fn(|_| parts.next().unwrap_or_default());
            self.recoder.recode_batch(rng, &mut self.vectors, &mut outs)
        };
        black_box(recoded.expect("buffers"));
    }
    fn verify(&mut self) -> Result<(), String> {
        let vector_len = self.way.field.vector_len_bytes(self.block.block_size);
        let vectors = self.vectors.chunks_exact(vector_len);
        let mut pairs = vectors.zip(self.payloads.as_slice().chunks_exact(self.stride));
        pairs.try_for_each(|(vector, payload)| {
            self.way.verify_coded(&self.block, vector, &payload[..self.block.symbol_size])
        })
    }
}

struct Decode {
    block: Rc<Block>,
    /// Source symbols that arrive before the coded ones.
    received: Vec<usize>,
    coded: Vec<(Vec<u8>, Vec<u8>)>,
    decoder: BlockDecoder,
}

impl Work for Decode {
    fn run(&mut self) {
        self.decoder.reset();
        for &index in &self.received {
            self.decoder.add_source(index, &self.block.symbols[index]).expect("a symbol");
        }
        for (vector, payload) in &self.coded {
            if self.decoder.is_complete() {
                break;
            }
            let outcome = self.decoder.add_coded(vector, self.block.block_size, payload);
            outcome.expect("a coded symbol");
        }
        for index in 0..self.block.block_size {
            black_box(self.decoder.symbol(index));
        }
    }
    fn verify(&mut self) -> Result<(), String> {
        // A symbol that was solved for has the length of the payloads it was computed from.
        let symbols = (0..self.block.block_size).map_while(|index| self.decoder.symbol(index));
        self.block.verify_symbols(symbols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_does_its_work_right() {
        let block = Block::new(16, 70, 5);
        for way in Way::all() {
            for mut contestant in [
                way.encode(&block),
                way.encode_batch(&block),
                way.encode_systematic(&block),
                way.recode(&block),
                way.recode_batch(&block),
                way.decode(&block),
                way.decode_systematic(&block),
                way.window_encode(&block),
                way.window_decode(&block),
            ] {
                contestant.work.prepare();
                contestant.work.run();
                assert_eq!(contestant.work.verify(), Ok(()), "{}", contestant.name());
            }
        }
    }
}
