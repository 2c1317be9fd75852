//! reed-solomon-simd: Leopard codes over GF(2^16), with work that grows as n log n.

use std::hint::black_box;
use std::rc::Rc;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::DETECTED;
use crate::fixture::{Block, repair_count};
use crate::measure::{Contestant, Work};

fn contestant(payload_bytes: usize, work: impl Work + 'static) -> Contestant {
    let (library, field, backend) = ("reed-solomon-simd", "GF(2^16)", DETECTED.to_owned());
    Contestant { library, backend, field, payload_bytes, work: Box::new(work) }
}

struct Encode {
    block: Rc<Block>,
    encoder: ReedSolomonEncoder,
    count: usize,
}

/// As many repair symbols as there are source symbols.
pub fn encode_batch(block: &Rc<Block>) -> Contestant {
    contestant(block.block_size * block.symbol_size, encode_of(block, block.block_size))
}

pub fn encode_systematic(block: &Rc<Block>) -> Contestant {
    let payload_bytes = block.block_size * block.symbol_size;
    contestant(payload_bytes, encode_of(block, repair_count(block.block_size)))
}

fn encode_of(block: &Rc<Block>, count: usize) -> Encode {
    let encoder = ReedSolomonEncoder::new(block.block_size, count, block.symbol_size);
    Encode { block: block.clone(), encoder: encoder.expect("sizes"), count }
}

impl Work for Encode {
    fn prepare(&mut self) -> bool {
        // Encoding consumes them.
        for symbol in &self.block.symbols {
            self.encoder.add_original_shard(symbol).expect("an empty encoder");
        }
        true
    }
    fn run(&mut self) {
        let result = self.encoder.encode().expect("a full encoder");
        result.recovery_iter().for_each(|symbol| {
            black_box(symbol);
        });
    }
    fn verify(&mut self) -> Result<(), String> {
        let mut decoding = decode_of(&self.block, &(0..self.count).collect::<Vec<_>>());
        decoding.run();
        decoding.verify()
    }
}

struct Decode {
    block: Rc<Block>,
    decoder: ReedSolomonDecoder,
    received: Vec<usize>,
    repairs: Vec<Vec<u8>>,
    /// Filled by `verify` only.
    decoded: Option<Vec<Vec<u8>>>,
    keep: bool,
}

/// All source symbols are lost.
pub fn decode(block: &Rc<Block>) -> Contestant {
    let all: Vec<usize> = (0..block.block_size).collect();
    contestant(block.block_size * block.symbol_size, decode_of(block, &all))
}

pub fn decode_systematic(block: &Rc<Block>) -> Contestant {
    contestant(block.block_size * block.symbol_size, decode_of(block, &block.lost_symbols()))
}

fn decode_of(block: &Rc<Block>, lost: &[usize]) -> Decode {
    let repairs = reed_solomon_simd::encode(block.block_size, lost.len(), &block.symbols);
    let decoder = ReedSolomonDecoder::new(block.block_size, lost.len(), block.symbol_size);
    Decode {
        block: block.clone(),
        decoder: decoder.expect("sizes"),
        received: (0..block.block_size).filter(|index| !lost.contains(index)).collect(),
        repairs: repairs.expect("sizes"),
        decoded: None,
        keep: false,
    }
}

impl Work for Decode {
    fn run(&mut self) {
        for &index in &self.received {
            let symbol = &self.block.symbols[index];
            self.decoder.add_original_shard(index, symbol).expect("a symbol");
        }
        for (index, repair) in self.repairs.iter().enumerate() {
            self.decoder.add_recovery_shard(index, repair).expect("a symbol");
        }
        let result = self.decoder.decode().expect("enough symbols");
        if self.keep {
            let mut decoded = self.block.symbols.clone();
            decoded.iter_mut().enumerate().for_each(|(index, symbol)| {
                if self.received.binary_search(&index).is_err() {
                    symbol.clear();
                }
            });
            for (index, symbol) in result.restored_original_iter() {
                decoded[index] = symbol.to_vec();
            }
            self.decoded = Some(decoded);
        } else {
            result.restored_original_iter().for_each(|symbol| {
                black_box(symbol);
            });
        }
    }
    fn verify(&mut self) -> Result<(), String> {
        self.keep = true;
        self.run();
        self.keep = false;
        self.block.verify_symbols(self.decoded.take().iter().flatten().map(Vec::as_slice))
    }
}
