//! rlnc: dense coding over GF(2^8).

use std::rc::Rc;

use rlnc::full::{Decoder, Encoder, Recoder};

use super::DETECTED;
use crate::fixture::{Aligned, Block, POLYNOMIAL_AES, Replay};
use crate::measure::{Contestant, Work};

/// Marker that rlnc appends to the data; it is part of the last symbol.
pub const BOUNDARY_MARKER: u8 = 0x81;

fn contestant(payload_bytes: usize, work: impl Work + 'static) -> Contestant {
    let (library, field, backend) = ("rlnc", "GF(2^8)", DETECTED.to_owned());
    Contestant { library, backend, field, payload_bytes, work: Box::new(work) }
}

/// An encoder whose pieces are the block's symbols: it adds the last byte itself.
fn encoder(block: &Block) -> Encoder {
    let mut data = block.bytes();
    data.pop();
    Encoder::new(data, block.block_size).expect("a block that is not empty")
}

/// Full coded pieces: coding vector and payload.
fn coded_pieces(block: &Block, count: usize) -> Vec<Vec<u8>> {
    let encoder = encoder(block);
    let mut coefficients = Replay::new(block.seed ^ 1, count * block.block_size);
    (0..count).map(|_| encoder.code(&mut coefficients)).collect()
}

struct Encode {
    block: Rc<Block>,
    encoder: Encoder,
    coefficients: Replay,
    /// Coding vector and payload, the payload aligned.
    piece: Aligned,
}

pub fn encode(block: &Rc<Block>) -> Contestant {
    let encoder = encoder(block);
    let piece = Aligned::new(encoder.get_full_coded_piece_byte_len(), block.block_size);
    let coefficients = Replay::new(block.seed, 16 * block.block_size);
    contestant(block.symbol_size, Encode { block: block.clone(), encoder, coefficients, piece })
}

impl Work for Encode {
    fn run(&mut self) {
        let piece = self.piece.as_mut_slice();
        self.encoder.code_with_buf(&mut self.coefficients, piece).expect("a buffer");
    }
    fn verify(&mut self) -> Result<(), String> {
        let (vector, payload) = self.piece.as_slice().split_at(self.block.block_size);
        self.block.verify_coded(POLYNOMIAL_AES, vector.iter().copied(), payload)
    }
}

struct Recode {
    block: Rc<Block>,
    recoder: Recoder,
    coefficients: Replay,
    /// Coding vector and payload, the payload aligned.
    piece: Aligned,
}

pub fn recode(block: &Rc<Block>) -> Contestant {
    let pieces = coded_pieces(block, block.block_size);
    let len = block.block_size + block.symbol_size;
    let recoder = Recoder::new(pieces.concat(), len, block.block_size).expect("coded pieces");
    let coefficients = Replay::new(block.seed, 16 * block.block_size);
    let piece = Aligned::new(len, block.block_size);
    let work = Recode { block: block.clone(), recoder, coefficients, piece };
    contestant(block.symbol_size, work)
}

impl Work for Recode {
    fn run(&mut self) {
        let piece = self.piece.as_mut_slice();
        self.recoder.recode_with_buf(&mut self.coefficients, piece).expect("a buffer");
    }
    fn verify(&mut self) -> Result<(), String> {
        let (vector, payload) = self.piece.as_slice().split_at(self.block.block_size);
        self.block.verify_coded(POLYNOMIAL_AES, vector.iter().copied(), payload)
    }
}

struct Decode {
    block: Rc<Block>,
    pieces: Vec<Vec<u8>>,
    decoder: Decoder,
}

pub fn decode(block: &Rc<Block>) -> Contestant {
    // One in 255 blocks needs an additional piece.
    let pieces = coded_pieces(block, block.block_size + 4);
    decode_of(block, pieces)
}

/// Source symbols are passed as pieces with unit vectors: rlnc has no other way.
pub fn decode_systematic(block: &Rc<Block>) -> Contestant {
    let received = block.received_symbols();
    let unit = |index: usize| (0..block.block_size).map(move |i| u8::from(i == index));
    let sources =
        received.iter().map(|&(index, symbol)| unit(index).chain(symbol.iter().copied()).collect());
    let repairs = coded_pieces(block, block.block_size - received.len() + 4);
    decode_of(block, sources.chain(repairs).collect())
}

fn decode_of(block: &Rc<Block>, pieces: Vec<Vec<u8>>) -> Contestant {
    let decoder = Decoder::new(block.symbol_size, block.block_size).expect("sizes");
    let payload_bytes = block.block_size * block.symbol_size;
    contestant(payload_bytes, Decode { block: block.clone(), pieces, decoder })
}

impl Work for Decode {
    fn prepare(&mut self) -> bool {
        self.decoder = Decoder::new(self.block.symbol_size, self.block.block_size).expect("sizes");
        true
    }
    fn run(&mut self) {
        // The solved symbols are then in the decoder; copying them out is not timed.
        for piece in &self.pieces {
            if self.decoder.is_already_decoded() {
                break;
            }
            let _ = self.decoder.decode(piece);
        }
    }
    fn verify(&mut self) -> Result<(), String> {
        let decoded = self.decoder.clone().get_decoded_data().map_err(|fault| fault.to_string())?;
        let mut decoded = decoded;
        decoded.push(BOUNDARY_MARKER);
        self.block.verify_symbols(decoded.chunks(self.block.symbol_size))
    }
}
