//! The block that all contestants of a group code, and the naive method to verify their results.

use std::rc::Rc;
use std::sync::OnceLock;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Coding vectors given to an encoder in turn: enough that branch prediction cannot learn them.
pub const VECTORS_IN_TURN: usize = 16;

/// x^8 + x^4 + x^3 + x^2 + 1, the polynomial of RFC 8681: ours, and cu-fec's.
pub const POLYNOMIAL_RFC_8681: u16 = 0x11D;
/// x^8 + x^4 + x^3 + x + 1, that of AES: rlnc's and rlnc-simdx's.
pub const POLYNOMIAL_AES: u16 = 0x11B;

/// x^4 + x + 1: that of our GF(2^4), two elements of which are a byte.
pub const POLYNOMIAL_GF16: u16 = 0x13;

/// Source symbols, and plenty of coefficients.
pub struct Block {
    pub block_size: usize,
    pub symbol_size: usize,
    pub seed: u64,
    pub symbols: Vec<Vec<u8>>,
    /// Coding vectors over GF(2^8), one byte per coefficient.
    pub vectors: Vec<Vec<u8>>,
}

impl Block {
    pub fn new(block_size: usize, symbol_size: usize, seed: u64) -> Rc<Self> {
        let mut rng = rng(seed);
        let mut bytes = |len: usize| {
            let mut bytes = vec![0; len];
            rng.fill_bytes(&mut bytes);
            bytes
        };
        // The data end as rlnc requires: other contestants do not care.
        let mut symbols: Vec<Vec<u8>> = (0..block_size).map(|_| bytes(symbol_size)).collect();
        if let Some(last) = symbols.last_mut() {
            last[symbol_size - 1] = crate::peers::rlnc::BOUNDARY_MARKER;
        }
        let vectors = (0..VECTORS_IN_TURN).map(|_| bytes(block_size)).collect();
        Rc::new(Block { block_size, symbol_size, seed, symbols, vectors })
    }

    /// All symbols, one after the other.
    pub fn bytes(&self) -> Vec<u8> {
        self.symbols.concat()
    }

    /// Indices of lost symbols at a loss of one tenth, rounded up: drawn from the seed.
    pub fn lost_symbols(&self) -> Vec<usize> {
        let mut rng = rng(self.seed ^ 0x10);
        let mut order: Vec<usize> = (0..self.block_size).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, (rng.next_u64() % (place as u64 + 1)) as usize);
        }
        order.truncate(repair_count(self.block_size));
        order.sort_unstable();
        order
    }

    /// The symbols not lost, with their indices.
    pub fn received_symbols(&self) -> Vec<(usize, &[u8])> {
        let lost = self.lost_symbols();
        let symbols = self.symbols.iter().map(Vec::as_slice).enumerate();
        symbols.filter(|(index, _)| lost.binary_search(index).is_err()).collect()
    }

    /// Checks that a payload is the combination of the symbols with these coefficients, over the
    /// field of a polynomial.
    pub fn verify_coded(
        &self,
        polynomial: u16,
        coefficients: impl IntoIterator<Item = u8>,
        payload: &[u8],
    ) -> Result<(), String> {
        let products = products(polynomial);
        let mut expected = vec![0; self.symbol_size];
        for (coefficient, symbol) in coefficients.into_iter().zip(&self.symbols) {
            let products = &products[coefficient as usize];
            let terms = symbol.iter().map(|&byte| products[byte as usize]);
            expected.iter_mut().zip(terms).for_each(|(sum, term)| *sum ^= term);
        }
        if payload == expected { Ok(()) } else { Err("a coded symbol is wrong".to_owned()) }
    }

    /// Checks decoded symbols, in order.
    pub fn verify_symbols<'a>(
        &self,
        decoded: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), String> {
        let mut decoded = decoded.into_iter();
        for (index, symbol) in self.symbols.iter().enumerate() {
            match decoded.next() {
                None => return Err(format!("symbol {index} was not decoded")),
                Some(given) if given != symbol => {
                    return Err(format!("symbol {index} was decoded wrongly"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Number of repair symbols for the loss of a tenth of a block.
pub fn repair_count(block_size: usize) -> usize {
    block_size.div_ceil(10)
}

/// A generator from the run's seed.
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// `products[a][b]` is the coefficient `a` times the byte `b`, over the field of a polynomial.
fn products(polynomial: u16) -> &'static [[u8; 256]] {
    static TABLES: [OnceLock<Vec<[u8; 256]>>; 3] = [const { OnceLock::new() }; 3];
    let (place, order) = match polynomial {
        POLYNOMIAL_GF16 => (0, 16),
        POLYNOMIAL_RFC_8681 => (1, 256),
        _ => (2, 256),
    };
    let product = |a: u8, b: u8| {
        if order == 16 {
            multiply(polynomial, a, b & 15) | multiply(polynomial, a, b >> 4) << 4
        } else {
            multiply(polynomial, a, b)
        }
    };
    TABLES[place].get_or_init(|| {
        (0..order).map(|a| std::array::from_fn(|b| product(a as u8, b as u8))).collect()
    })
}

/// The product of two elements of the field of a polynomial, bit by bit.
fn multiply(polynomial: u16, a: u8, b: u8) -> u8 {
    let degree = polynomial.ilog2();
    let product = (0..degree).rev().fold(0_u16, |sum, bit| {
        let doubled = sum << 1;
        let reduced = if doubled >> degree == 1 { doubled ^ polynomial } else { doubled };
        reduced ^ (u16::from(a >> bit & 1) * u16::from(b))
    });
    product as u8
}

/// A buffer with a byte aligned to a cache line.
#[derive(Default)]
pub struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// A buffer of `len` zeros whose byte `aligned` starts a cache line.
    pub fn new(len: usize, aligned: usize) -> Self {
        let bytes = vec![0_u8; len + 128];
        let to_line = bytes.as_ptr().align_offset(64);
        let start = (to_line + 64 - aligned % 64) % 64;
        Aligned { bytes, start, len }
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

/// Coefficients drawn in advance and replayed: the contestants' generators are not compared.
#[derive(Clone)]
pub struct Replay {
    bytes: Vec<u8>,
    next: usize,
}

impl Replay {
    pub fn new(seed: u64, len: usize) -> Self {
        let mut bytes = vec![0; len];
        rng(seed).fill_bytes(&mut bytes);
        Replay { bytes, next: 0 }
    }

    pub fn fill(&mut self, out: &mut [u8]) {
        if self.next + out.len() > self.bytes.len() {
            self.next = 0;
        }
        out.copy_from_slice(&self.bytes[self.next..self.next + out.len()]);
        self.next += out.len();
    }
}

impl rand::TryRng for Replay {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        self.fill(out);
        Ok(())
    }
}

impl rand_core_09::RngCore for Replay {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        u32::from_le_bytes(bytes)
    }
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
    fn fill_bytes(&mut self, out: &mut [u8]) {
        self.fill(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_their_fields() {
        assert_eq!(multiply(POLYNOMIAL_RFC_8681, 0x80, 2), 0x1D);
        assert_eq!(multiply(POLYNOMIAL_AES, 0x80, 2), 0x1B);
        assert_eq!(multiply(POLYNOMIAL_GF16, 8, 2), 3);
        assert_eq!(multiply(POLYNOMIAL_AES, 0x53, 0xCA), 1, "the pair of FIPS 197");
    }

    #[test]
    fn buffers_are_aligned_where_they_are_asked_to() {
        for aligned in [0, 1, 16, 63, 64, 150] {
            let mut buffer = Aligned::new(200, aligned);
            assert_eq!(buffer.as_slice()[aligned..].as_ptr().align_offset(64), 0, "{aligned}");
            assert_eq!(buffer.as_mut_slice().len(), 200);
        }
    }

    #[test]
    fn a_tenth_is_lost_and_the_rest_received() {
        let block = Block::new(16, 4, 1);
        let (lost, received) = (block.lost_symbols(), block.received_symbols());
        assert_eq!((lost.len(), received.len()), (2, 14));
        assert!(received.iter().all(|(index, _)| !lost.contains(index)));
    }

    #[test]
    fn a_wrong_payload_is_found() {
        let block = Block::new(2, 4, 1);
        let payload = block.symbols[1].clone();
        assert!(block.verify_coded(POLYNOMIAL_AES, [0, 1], &payload).is_ok());
        assert!(block.verify_coded(POLYNOMIAL_AES, [1, 0], &payload).is_err());
        assert!(block.verify_symbols([&payload[..]]).is_err());
    }
}
