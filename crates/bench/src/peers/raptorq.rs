//! raptorq: the fountain code of RFC 6330.

use std::hint::black_box;
use std::rc::Rc;

use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan,
};

use super::DETECTED;
use crate::fixture::{Block, repair_count};
use crate::measure::{Contestant, Work};

fn contestant(payload_bytes: usize, work: impl Work + 'static) -> Contestant {
    let (library, field, backend) = ("raptorq", "GF(2), GF(2^8)", DETECTED.to_owned());
    Contestant { library, backend, field, payload_bytes, work: Box::new(work) }
}

fn config(block: &Block) -> ObjectTransmissionInformation {
    let symbol_size = u16::try_from(block.symbol_size).expect("a symbol size");
    ObjectTransmissionInformation::new(0, symbol_size, 0, 1, 1)
}

/// Computes repair symbols from the data of a block: the plan of the block size is prepared.
struct Encode {
    block: Rc<Block>,
    data: Vec<u8>,
    config: ObjectTransmissionInformation,
    plan: SourceBlockEncodingPlan,
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
    let plan = SourceBlockEncodingPlan::generate(block.block_size as u16);
    Encode { block: block.clone(), data: block.bytes(), config: config(block), plan, count }
}

impl Encode {
    fn repairs(&self, start: usize, count: usize) -> Vec<EncodingPacket> {
        let encoder =
            SourceBlockEncoder::with_encoding_plan(0, &self.config, &self.data, &self.plan);
        encoder.repair_packets(start as u32, count as u32)
    }
}

impl Work for Encode {
    fn run(&mut self) {
        black_box(self.repairs(0, self.count));
    }
    fn verify(&mut self) -> Result<(), String> {
        let lost: Vec<usize> = (0..self.count).collect();
        let mut decoding = decode_of(&self.block, &lost);
        decoding.prepare();
        decoding.run();
        decoding.verify()
    }
}

struct Decode {
    block: Rc<Block>,
    config: ObjectTransmissionInformation,
    packets: Vec<EncodingPacket>,
    arriving: Vec<EncodingPacket>,
    decoder: SourceBlockDecoder,
    decoded: Option<Vec<u8>>,
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
    let encoding = encode_of(block, lost.len());
    let config = config(block);
    let encoder =
        SourceBlockEncoder::with_encoding_plan(0, &config, &encoding.data, &encoding.plan);
    let mut packets = encoder.source_packets();
    packets.retain(|packet| !lost.contains(&(packet.payload_id().encoding_symbol_id() as usize)));
    let mut decode = Decode {
        block: block.clone(),
        config,
        packets,
        arriving: Vec::new(),
        decoder: decoder(block, &config),
        decoded: None,
    };
    // Occasionally a set of symbols does not suffice: then take the next set of repair symbols of
    // the same size.
    let sources = decode.packets.len();
    for attempt in 0..32 {
        decode.packets.truncate(sources);
        decode.packets.extend(encoding.repairs(attempt * lost.len(), lost.len()));
        decode.prepare();
        decode.run();
        if decode.decoded.is_some() {
            break;
        }
    }
    decode
}

fn decoder(block: &Block, config: &ObjectTransmissionInformation) -> SourceBlockDecoder {
    SourceBlockDecoder::new(0, config, (block.block_size * block.symbol_size) as u64)
}

impl Work for Decode {
    fn prepare(&mut self) -> bool {
        self.decoded = None;
        self.arriving.clear();
        self.arriving.extend(self.packets.iter().cloned());
        self.decoder = decoder(&self.block, &self.config);
        true
    }
    fn run(&mut self) {
        self.decoded = self.decoder.decode(self.arriving.drain(..));
    }
    fn verify(&mut self) -> Result<(), String> {
        let decoded = self.decoded.as_deref().unwrap_or_default();
        self.block.verify_symbols(decoded.chunks(self.block.symbol_size))
    }
}
