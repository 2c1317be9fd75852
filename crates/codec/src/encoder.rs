//! Block encoder, the first coding step on a packet's path: it takes source symbols, and makes
//! coded symbols.

use alloc::vec::Vec;

use crate::kernel::OUTPUTS_MAX;
use crate::rows::{Layout, Payloads, Shape};
use crate::storage::{Heap, Lent, Storage, Supply};
use crate::{Backend, CodecError, Field};

/// Encoder of one block: holds its source symbols, and combines them.
///
/// Symbols keep their own lengths, without padding; a coded symbol is as long as the longest symbol
/// in it.
///
/// ```
/// use corridor_codec::{BlockEncoder, Field};
///
/// let mut encoder = BlockEncoder::new(Field::Gf2, 3, 8)?;
/// for symbol in [&b"one"[..], b"two", b"three"] {
///     encoder.push(symbol)?;
/// }
/// // The first and the last; then all three and the first two, at once.
/// let mut payload = [0; 8];
/// assert_eq!(encoder.encode(&[0b101], 3, &mut payload)?, 5);
/// let mut payloads = [[0; 8]; 2];
/// let mut outs = payloads.each_mut().map(|payload| &mut payload[..]);
/// assert_eq!(encoder.encode_batch(&[0b111, 0b011], 3, &mut outs)?, 5);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockEncoder<S: Storage = Vec<u8>> {
    shape: Shape,
    symbols: Payloads<S>,
    count: usize,
}

impl BlockEncoder {
    /// An encoder of blocks of up to `block_size` symbols of up to `symbol_size_max` bytes.
    ///
    /// Allocates all memory: `block_size * symbol_size_max` bytes and a little more, and as much
    /// again if symbols are stored interleaved (GFNI, GF(2) and GF(2^4)).
    ///
    /// # Errors
    /// [`CodecError::BlockSize`] and [`CodecError::SymbolSizeMax`] when a size is zero or beyond
    /// [`MAX_BLOCK_SIZE`](crate::MAX_BLOCK_SIZE), [`MAX_SYMBOL_SIZE`](crate::MAX_SYMBOL_SIZE).
    pub fn new(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        Self::with_backend(field, block_size, symbol_size_max, Backend::detected())
    }

    /// Like [`new`](Self::new), with a given instruction set.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_backend(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
        backend: Backend,
    ) -> Result<Self, CodecError> {
        Self::build(Shape::new(field, block_size, symbol_size_max)?, backend, &mut Heap)
    }
}

/// In memory lent by the caller.
impl<'a> BlockEncoder<&'a mut [u8]> {
    /// An encoder that stores payloads in the borrowed `storage` and uses a given instruction set.
    /// The memory may have any contents and alignment; bytes that are not needed are not touched.
    /// Only the symbols' lengths are stored elsewhere. Otherwise as
    /// [`with_backend`](BlockEncoder::with_backend).
    ///
    /// ```
    /// use corridor_codec::{Backend, BlockEncoder, Field};
    ///
    /// let (field, backend) = (Field::Gf256, Backend::detected());
    /// let mut memory = vec![0; BlockEncoder::storage_len_bytes(field, 2, 8, backend)?];
    /// let mut encoder = BlockEncoder::with_storage(field, 2, 8, backend, &mut memory)?;
    /// encoder.push(b"one")?;
    /// let mut payload = [0; 8];
    /// assert_eq!(encoder.encode(&[1], 1, &mut payload)?, 3);
    /// # Ok::<(), corridor_codec::CodecError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](BlockEncoder::new); [`CodecError::BufferTooShort`] when `storage` has fewer than
    /// [`storage_len_bytes`](Self::storage_len_bytes).
    pub fn with_storage(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
        backend: Backend,
        storage: &'a mut [u8],
    ) -> Result<Self, CodecError> {
        let expected = Self::storage_len_bytes(field, block_size, symbol_size_max, backend)?;
        let mut lent = Lent::new(storage, expected)?;
        Self::build(Shape::new(field, block_size, symbol_size_max)?, backend, &mut lent)
    }

    /// Bytes of storage that [`with_storage`](Self::with_storage) needs; without a backend, the
    /// most that any backend needs, on any machine.
    ///
    /// # Errors
    /// As [`new`](BlockEncoder::new).
    pub fn storage_len_bytes(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
        backend: impl Into<Option<Backend>>,
    ) -> Result<usize, CodecError> {
        let shape = Shape::new(field, block_size, symbol_size_max)?;
        Ok(Layout::of_payloads(&shape, backend.into(), true).storage_len())
    }
}

impl<S: Storage> BlockEncoder<S> {
    fn build(
        shape: Shape,
        backend: Backend,
        supply: &mut impl Supply<Storage = S>,
    ) -> Result<Self, CodecError> {
        let layout = Layout::of_payloads(&shape, Some(backend), true);
        let symbols = Payloads::new(&shape, backend, layout, supply);
        Ok(Self { shape, symbols, count: 0 })
    }

    /// Appends a source symbol to the block and returns its index.
    ///
    /// # Errors
    /// [`CodecError::BlockFull`]; [`CodecError::SymbolLength`] when the symbol is empty or longer
    /// than `symbol_size_max`.
    pub fn push(&mut self, symbol: &[u8]) -> Result<usize, CodecError> {
        if self.is_full() {
            return Err(CodecError::BlockFull { block_size: self.shape.block_size });
        }
        self.shape.check_symbol(symbol)?;
        let index = self.count;
        self.symbols.set(index, symbol);
        self.count += 1;
        self.symbols.mirror_complete(self.count);
        Ok(index)
    }

    /// Writes to `out` the combination of the first `count` symbols with coding vector `vector`,
    /// and returns its length in bytes: that of the longest symbol with a nonzero coefficient, so 0
    /// for an all-zero vector.
    ///
    /// `out` must hold that many bytes; `symbol_size_max` bytes always suffice. Unused bits of the
    /// vector's last byte are ignored.
    ///
    /// # Errors
    /// [`CodecError::CountOutOfRange`] unless `count` is in 1..=[`count`](Self::count);
    /// [`CodecError::VectorLength`] unless the vector has
    /// [`vector_len_bytes`](Field::vector_len_bytes) of `count` bytes;
    /// [`CodecError::BufferTooShort`].
    pub fn encode(&self, vector: &[u8], count: usize, out: &mut [u8]) -> Result<usize, CodecError> {
        self.shape.check_vector(vector, count, self.count)?;
        let len = self.symbols.combined_len(vector, count);
        let given = out.len();
        let Some(out) = out.get_mut(..len) else {
            return Err(CodecError::BufferTooShort { expected: len, given });
        };
        self.symbols.combine(&[vector], count, &mut [out], len);
        Ok(len)
    }

    /// Writes several coded symbols at once, faster than one by one: to `outs[i]` the combination
    /// of the first `count` symbols with the `i`-th coding vector of `vectors`, which are
    /// concatenated. All symbols of a batch are padded with zeros to the longest of them, whose
    /// length is returned.
    ///
    /// Batches of 4 are most efficient over GF(2^8), of 8 or 16 over GF(2) and GF(2^4).
    ///
    /// # Errors
    /// As [`encode`](Self::encode); [`CodecError::VectorLength`] unless there is one vector per
    /// output.
    pub fn encode_batch(
        &self,
        vectors: &[u8],
        count: usize,
        outs: &mut [&mut [u8]],
    ) -> Result<usize, CodecError> {
        let field = self.shape.field;
        let size = field.vector_len_bytes(count);
        if !(1..=self.count).contains(&count) {
            return Err(CodecError::CountOutOfRange { expected_max: self.count, given: count });
        }
        let (expected, given) = (size * outs.len(), vectors.len());
        if expected != given {
            return Err(CodecError::VectorLength { expected, given });
        }
        let mut len = 0;
        for vector in vectors.chunks_exact(size) {
            len = len.max(self.symbols.combined_len(vector, count));
            if len == self.symbols.longest() {
                break;
            }
        }
        if let Some(out) = outs.iter().find(|out| out.len() < len) {
            return Err(CodecError::BufferTooShort { expected: len, given: out.len() });
        }
        let tiles = vectors.chunks(size * OUTPUTS_MAX).zip(outs.chunks_mut(OUTPUTS_MAX));
        for (tile, outs) in tiles {
            let mut vectors = [&[][..]; OUTPUTS_MAX];
            vectors.iter_mut().zip(tile.chunks_exact(size)).for_each(|(to, from)| *to = from);
            self.symbols.combine(&vectors[..outs.len()], count, outs, len);
        }
        Ok(len)
    }

    /// Number of source symbols in the block so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the block has all its source symbols.
    pub fn is_full(&self) -> bool {
        self.count == self.shape.block_size
    }

    /// Source symbol `index`, if the block has it.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        (index < self.count).then(|| self.symbols.payload(index))
    }

    /// Clears the block for the next one; keeps the memory.
    pub fn clear(&mut self) {
        self.count = 0;
        self.symbols.clear();
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Capacity of the block, in symbols.
    pub fn block_size(&self) -> usize {
        self.shape.block_size
    }

    /// Maximum symbol size, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coded_symbol_is_as_long_as_the_longest_symbol_in_it() {
        let mut encoder = BlockEncoder::new(Field::Gf2, 3, 8).unwrap();
        for symbol in [&b"a"[..], b"long", b"bc"] {
            encoder.push(symbol).unwrap();
        }
        let mut out = [0xEE; 8];
        assert_eq!(encoder.encode(&[0b101], 3, &mut out), Ok(2));
        assert_eq!(out[..3], [b'a' ^ b'b', b'c', 0xEE]);
        assert_eq!(encoder.encode(&[0b1111_1011], 2, &mut out), Ok(4), "unused bits are ignored");
        assert_eq!(out[..5], [b'a' ^ b'l', b'o', b'n', b'g', 0xEE]);
        assert_eq!(encoder.encode(&[0], 3, &mut out), Ok(0));
    }

    #[test]
    fn a_cleared_encoder_starts_a_new_block() {
        let mut encoder = BlockEncoder::new(Field::Gf256, 1, 4).unwrap();
        assert_eq!(encoder.push(b"old!"), Ok(0));
        assert!(encoder.is_full());
        encoder.clear();
        assert_eq!((encoder.count(), encoder.symbol(0)), (0, None));
        assert_eq!(encoder.push(b"new"), Ok(0));
        assert_eq!(encoder.symbol(0), Some(&b"new"[..]));
    }

    #[test]
    fn misuse_is_a_typed_error() {
        let mut encoder = BlockEncoder::new(Field::Gf256, 2, 4).unwrap();
        let length = |given| Err(CodecError::SymbolLength { expected_max: 4, given });
        assert_eq!(encoder.push(b""), length(0));
        assert_eq!(encoder.push(b"five!"), length(5));
        let count = |expected_max, given| Err(CodecError::CountOutOfRange { expected_max, given });
        let mut out = [0; 4];
        assert_eq!(encoder.encode(&[], 0, &mut out), count(0, 0));
        encoder.push(b"four").unwrap();
        assert_eq!(encoder.encode(&[], 0, &mut out), count(1, 0));
        assert_eq!(encoder.encode(&[1, 1], 2, &mut out), count(1, 2));
        let vector = Err(CodecError::VectorLength { expected: 1, given: 2 });
        assert_eq!(encoder.encode(&[1, 1], 1, &mut out), vector);
        let short = Err(CodecError::BufferTooShort { expected: 4, given: 3 });
        assert_eq!(encoder.encode(&[1], 1, &mut out[..3]), short);
        encoder.push(b"4").unwrap();
        assert_eq!(encoder.push(b"4"), Err(CodecError::BlockFull { block_size: 2 }));
        assert_eq!(encoder.count(), 2);
    }
}
