//! rlnc-simdx: dense and systematic coding over GF(2^8).

use std::hint::black_box;
use std::rc::Rc;

use rlnc_simdx::aligned::AlignedBuffer;
use rlnc_simdx::kernel::bench::{DirectAxpyTier, available_axpy_tiers};
use rlnc_simdx::{CodedPacket, Decoder, kernel};

use crate::fixture::{Block, POLYNOMIAL_AES, Replay, repair_count};
use crate::measure::{Contestant, Work};

fn contestant(payload_bytes: usize, work: impl Work + 'static) -> Contestant {
    let (library, field) = ("rlnc-simdx", "GF(2^8)");
    let backend = rlnc_simdx::active_kernel().to_owned();
    Contestant { library, backend, field, payload_bytes, work: Box::new(work) }
}

fn coded_packets(block: &Block, count: usize) -> Vec<CodedPacket> {
    let sources: Vec<&[u8]> = block.symbols.iter().map(Vec::as_slice).collect();
    let mut coefficients = Replay::new(block.seed ^ 2, count * block.block_size);
    (0..count)
        .map(|_| {
            let mut vector = vec![0; block.block_size];
            let mut payload = vec![0; block.symbol_size];
            coefficients.fill(&mut vector);
            kernel::axpy_multi(&vector, &sources, &mut payload);
            CodedPacket::from_slices(&vector, &payload)
        })
        .collect()
}

/// What the library's encoder does, without drawing coefficients and allocating: faster than the
/// encoder itself.
struct Encode {
    block: Rc<Block>,
    /// What a caller of the library has at hand: slices of aligned buffers.
    sources: Vec<&'static [u8]>,
    payload: AlignedBuffer,
    /// Packets per run.
    count: usize,
    next: usize,
}

pub fn encode(block: &Rc<Block>) -> Contestant {
    contestant(block.symbol_size, encode_of(block, 1))
}

pub fn encode_systematic(block: &Rc<Block>) -> Contestant {
    let payload_bytes = block.block_size * block.symbol_size;
    contestant(payload_bytes, encode_of(block, repair_count(block.block_size)))
}

fn encode_of(block: &Rc<Block>, count: usize) -> Encode {
    let aligned = block.symbols.iter().map(|symbol| AlignedBuffer::from_slice(symbol));
    // Leaked until the end of the program, which is near: a struct cannot easily hold slices of its
    // own data.
    let aligned: &'static [AlignedBuffer] = aligned.collect::<Vec<_>>().leak();
    let sources = aligned.iter().map(AlignedBuffer::as_slice).collect();
    let payload = AlignedBuffer::zeroed(block.symbol_size);
    Encode { block: block.clone(), sources, payload, count, next: 0 }
}

impl Work for Encode {
    fn run(&mut self) {
        for _ in 0..self.count {
            self.next = (self.next + 1) % self.block.vectors.len();
            self.payload.zero();
            let vector = &self.block.vectors[self.next];
            kernel::axpy_multi(vector, &self.sources, self.payload.as_mut_slice());
            black_box(self.payload.as_slice());
        }
    }
    fn verify(&mut self) -> Result<(), String> {
        let vector = self.block.vectors[self.next].iter().copied();
        self.block.verify_coded(POLYNOMIAL_AES, vector, self.payload.as_slice())
    }
}

/// The name of the library's AVX2 kernels.
pub const AVX2: &str = "avx2+ssse3";

/// What the encoder would do on a machine without GFNI and AVX-512.
struct EncodeByAvx2 {
    tier: DirectAxpyTier,
    encode: Encode,
}

pub fn encode_by_avx2(block: &Rc<Block>) -> Option<Contestant> {
    let tier = available_axpy_tiers().into_iter().find(|tier| tier.name() == AVX2)?;
    let work = EncodeByAvx2 { tier, encode: encode_of(block, 1) };
    Some(Contestant { backend: AVX2.to_owned(), ..contestant(block.symbol_size, work) })
}

impl Work for EncodeByAvx2 {
    fn run(&mut self) {
        let encode = &mut self.encode;
        encode.next = (encode.next + 1) % encode.block.vectors.len();
        encode.payload.zero();
        for (&coefficient, source) in encode.block.vectors[encode.next].iter().zip(&encode.sources)
        {
            self.tier.axpy(coefficient, source, encode.payload.as_mut_slice());
        }
        black_box(encode.payload.as_slice());
    }
    fn verify(&mut self) -> Result<(), String> {
        self.encode.verify()
    }
}

/// Like the library's recoder, without drawing and allocating.
struct Recode {
    block: Rc<Block>,
    packets: Vec<CodedPacket>,
    vector: AlignedBuffer,
    payload: AlignedBuffer,
    next: usize,
}

pub fn recode(block: &Rc<Block>) -> Contestant {
    let work = Recode {
        block: block.clone(),
        packets: coded_packets(block, block.block_size),
        vector: AlignedBuffer::zeroed(block.block_size),
        payload: AlignedBuffer::zeroed(block.symbol_size),
        next: 0,
    };
    contestant(block.symbol_size, work)
}

impl Work for Recode {
    fn run(&mut self) {
        self.next = (self.next + 1) % self.block.vectors.len();
        let drawn = &self.block.vectors[self.next];
        let mut sources: Vec<&[u8]> =
            self.packets.iter().map(CodedPacket::coefficients_slice).collect();
        self.vector.zero();
        kernel::axpy_multi(drawn, &sources, self.vector.as_mut_slice());
        sources.clear();
        sources.extend(self.packets.iter().map(CodedPacket::payload_slice));
        self.payload.zero();
        kernel::axpy_multi(drawn, &sources, self.payload.as_mut_slice());
        black_box((self.vector.as_slice(), self.payload.as_slice()));
    }
    fn verify(&mut self) -> Result<(), String> {
        let vector = self.vector.as_slice().iter().copied();
        self.block.verify_coded(POLYNOMIAL_AES, vector, self.payload.as_slice())
    }
}

struct Decode {
    block: Rc<Block>,
    packets: Vec<CodedPacket>,
    /// Copies of which the decoder takes ownership.
    arriving: Vec<CodedPacket>,
    decoder: Decoder,
    decoded: Option<Vec<Vec<u8>>>,
}

pub fn decode(block: &Rc<Block>) -> Contestant {
    decode_of(block, coded_packets(block, block.block_size + 4))
}

pub fn decode_systematic(block: &Rc<Block>) -> Contestant {
    let received = block.received_symbols();
    let unit =
        |index: usize| -> Vec<u8> { (0..block.block_size).map(|i| u8::from(i == index)).collect() };
    let sources =
        received.iter().map(|&(index, symbol)| CodedPacket::from_slices(&unit(index), symbol));
    let repairs = coded_packets(block, block.block_size - received.len() + 4);
    decode_of(block, sources.chain(repairs).collect())
}

fn decode_of(block: &Rc<Block>, packets: Vec<CodedPacket>) -> Contestant {
    let work = Decode {
        block: block.clone(),
        packets,
        arriving: Vec::new(),
        decoder: Decoder::new(block.block_size, block.symbol_size).expect("sizes"),
        decoded: None,
    };
    contestant(block.block_size * block.symbol_size, work)
}

impl Work for Decode {
    fn prepare(&mut self) -> bool {
        self.decoded = None;
        self.arriving.clear();
        self.arriving.extend(self.packets.iter().cloned());
        self.decoder = Decoder::new(self.block.block_size, self.block.symbol_size).expect("sizes");
        true
    }
    fn run(&mut self) {
        for packet in self.arriving.drain(..) {
            if self.decoder.is_complete() {
                break;
            }
            self.decoder.receive(packet).expect("a packet of the right size");
        }
        self.decoded = self.decoder.decode().expect("a decoder");
    }
    fn verify(&mut self) -> Result<(), String> {
        self.block.verify_symbols(self.decoded.iter().flatten().map(Vec::as_slice))
    }
}
