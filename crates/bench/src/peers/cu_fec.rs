//! cu-fec: the sliding-window code of RFC 8681 in portable code, its window filled by one block.
//!
//! Its sizes are constants of its types: every block size has its own coder here.

use std::hint::black_box;
use std::rc::Rc;

use cu_fec::{
    DensityThreshold, EncodingSymbolId, Field, RepairParameters, RepairPayloadId, RlcConfig,
    RlcDecoder, RlcEncoder, generate_coding_coefficients,
};

use crate::fixture::{Block, POLYNOMIAL_RFC_8681, repair_count};
use crate::measure::{Contestant, Work};

/// The largest symbol measured.
const SYMBOL_SIZE_MAX: usize = 1536;

/// Maximum number of equations: solving a block with more takes seconds.
const EQUATIONS_MAX: usize = 256;

fn contestant(payload_bytes: usize, field: Field, work: Box<dyn Work>) -> Contestant {
    let field = match field {
        Field::Gf2 => "GF(2)",
        Field::Gf256 => "GF(2^8)",
    };
    Contestant { library: "cu-fec", backend: "portable".to_owned(), field, payload_bytes, work }
}

/// Calls a function with a block size as a constant.
macro_rules! with_block_size {
    ($block_size:expr, $function:ident $arguments:tt) => {
        with_block_size!(@ $block_size, $function $arguments, 16 32 50 64 100 150 256 500 1000 1024)
    };
    (@ $block_size:expr, $function:ident $arguments:tt, $($size:literal)*) => {
        match $block_size {
            $($size => Some($function::<$size> $arguments),)*
            _ => None,
        }
    };
}

fn config(block: &Block, field: Field) -> RlcConfig {
    RlcConfig::new(block.symbol_size, block.block_size, field).expect("sizes")
}

/// Over GF(2), half of the coefficients are one; over GF(2^8), all are random.
fn parameters(field: Field, key: u16) -> RepairParameters {
    let density = match field {
        Field::Gf2 => DensityThreshold::new(7).expect("a threshold"),
        Field::Gf256 => DensityThreshold::FULL,
    };
    RepairParameters::new(key, density)
}

struct Encode<const N: usize> {
    block: Rc<Block>,
    field: Field,
    encoder: Box<RlcEncoder<SYMBOL_SIZE_MAX, N>>,
    payload: Vec<u8>,
    key: u16,
    count: usize,
}

pub fn encode(block: &Rc<Block>) -> Vec<Contestant> {
    [Field::Gf2, Field::Gf256]
        .into_iter()
        .filter_map(|field| {
            let work = with_block_size!(block.block_size, boxed_encode(block, field, 1))?;
            Some(contestant(block.symbol_size, field, work))
        })
        .collect()
}

pub fn encode_systematic(block: &Rc<Block>) -> Option<Contestant> {
    let (field, count) = (Field::Gf256, repair_count(block.block_size));
    let work = with_block_size!(block.block_size, boxed_encode(block, field, count))?;
    Some(contestant(block.block_size * block.symbol_size, field, work))
}

fn boxed_encode<const N: usize>(block: &Rc<Block>, field: Field, count: usize) -> Box<dyn Work> {
    Box::new(encode_of::<N>(block, field, count))
}

fn encode_of<const N: usize>(block: &Rc<Block>, field: Field, count: usize) -> Encode<N> {
    let encoder = RlcEncoder::new(config(block, field), EncodingSymbolId::new(0));
    let mut encoder = Box::new(encoder.expect("capacities"));
    for symbol in &block.symbols {
        encoder.push_source(symbol).expect("a symbol");
    }
    let payload = vec![0; block.symbol_size];
    Encode { block: block.clone(), field, encoder, payload, key: 0, count }
}

impl<const N: usize> Encode<N> {
    fn repair(&mut self) -> RepairPayloadId {
        self.key = self.key.wrapping_add(1);
        let parameters = parameters(self.field, self.key);
        self.encoder.encode_repair(parameters, &mut self.payload).expect("a full window")
    }
}

impl<const N: usize> Work for Encode<N> {
    fn run(&mut self) {
        for _ in 0..self.count {
            self.repair();
            black_box(&self.payload);
        }
    }
    fn verify(&mut self) -> Result<(), String> {
        let mut vector = vec![0; self.block.block_size];
        let parameters = parameters(self.field, self.key);
        generate_coding_coefficients(self.field, self.key, parameters.density(), &mut vector);
        self.block.verify_coded(POLYNOMIAL_RFC_8681, vector, &self.payload)
    }
}

struct Decode<const N: usize, const E: usize> {
    block: Rc<Block>,
    received: Vec<usize>,
    repairs: Vec<(RepairPayloadId, Vec<u8>)>,
    decoder: Option<Box<RlcDecoder<SYMBOL_SIZE_MAX, N, E>>>,
}

pub fn decode(block: &Rc<Block>) -> Option<Contestant> {
    if block.block_size > EQUATIONS_MAX {
        return None;
    }
    let lost: Vec<usize> = (0..block.block_size).collect();
    decode_with(block, &lost)
}

pub fn decode_systematic(block: &Rc<Block>) -> Option<Contestant> {
    decode_with(block, &block.lost_symbols())
}

fn decode_with(block: &Rc<Block>, lost: &[usize]) -> Option<Contestant> {
    let work = with_block_size!(block.block_size, boxed_decode(block, lost))?;
    Some(contestant(block.block_size * block.symbol_size, Field::Gf256, work))
}

fn boxed_decode<const N: usize>(block: &Rc<Block>, lost: &[usize]) -> Box<dyn Work> {
    let mut encoding = encode_of::<N>(block, Field::Gf256, 1);
    let repairs = (0..lost.len() + 4).map(|_| {
        let id = encoding.repair();
        (id, encoding.payload.clone())
    });
    let work: Decode<N, EQUATIONS_MAX> = Decode {
        block: block.clone(),
        received: (0..block.block_size).filter(|index| !lost.contains(index)).collect(),
        repairs: repairs.collect(),
        decoder: None,
    };
    Box::new(work)
}

impl<const N: usize, const E: usize> Work for Decode<N, E> {
    fn prepare(&mut self) -> bool {
        let decoder = RlcDecoder::new(config(&self.block, Field::Gf256), E);
        self.decoder = Some(Box::new(decoder.expect("capacities")));
        true
    }
    fn run(&mut self) {
        let Some(decoder) = &mut self.decoder else { return };
        let mut missing = self.block.block_size;
        for &index in &self.received {
            let id = EncodingSymbolId::new(index as u32);
            let report = decoder.receive_source(id, &self.block.symbols[index]);
            missing -= 1 + report.expect("a symbol").recovered();
        }
        for (id, payload) in &self.repairs {
            if missing == 0 {
                break;
            }
            let report = decoder.receive_repair(*id, payload).expect("a repair symbol");
            missing -= report.recovered();
        }
    }
    fn verify(&mut self) -> Result<(), String> {
        let decoder = self.decoder.as_ref().ok_or("not run")?;
        let symbols = (0..self.block.block_size)
            .map_while(|index| decoder.symbol(EncodingSymbolId::new(index as u32)));
        self.block.verify_symbols(symbols)
    }
}
