//! Storage of payloads: a coder's own memory, or memory lent to it.

use alloc::{vec, vec::Vec};
use core::ops::{Deref, DerefMut};

use crate::CodecError;
use crate::kernel::PADDING;

/// Storage of a coder's payloads: a `Vec<u8>` of its own, or a `&mut [u8]` lent to it.
///
/// It is the coders' type parameter, with the former as default, so that `BlockDecoder` alone means
/// a decoder that owns its memory. There are no other kinds.
///
/// ```
/// use corridor_codec::{BlockDecoder, Backend, Field, Storage};
///
/// // For decoders of both kinds.
/// fn missing<S: Storage>(decoder: &BlockDecoder<S>) -> usize {
///     decoder.block_size() - decoder.decoded_count()
/// }
///
/// let backend = Backend::detected();
/// let mut memory = vec![0; BlockDecoder::storage_len_bytes(Field::Gf2, 4, 8, backend)?];
/// let mut lent = BlockDecoder::with_storage(Field::Gf2, 4, 8, backend, &mut memory)?;
/// lent.add_source(2, b"two")?;
/// assert_eq!(missing(&lent), 3);
/// assert_eq!(missing(&BlockDecoder::new(Field::Gf2, 4, 8)?), 4);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
pub trait Storage: sealed::Bytes {}

impl Storage for Vec<u8> {}
impl Storage for &mut [u8] {}

mod sealed {
    use alloc::vec::Vec;

    pub trait Bytes {
        fn bytes(&self) -> &[u8];
        fn bytes_mut(&mut self) -> &mut [u8];
    }

    impl Bytes for Vec<u8> {
        #[inline(always)]
        fn bytes(&self) -> &[u8] {
            self
        }
        #[inline(always)]
        fn bytes_mut(&mut self) -> &mut [u8] {
            self
        }
    }

    impl Bytes for &mut [u8] {
        #[inline(always)]
        fn bytes(&self) -> &[u8] {
            self
        }
        #[inline(always)]
        fn bytes_mut(&mut self) -> &mut [u8] {
            self
        }
    }
}

/// Supplies storage to new objects, zeroed, piece by piece.
pub(crate) trait Supply {
    type Storage: Storage;
    fn take(&mut self, len: usize) -> Self::Storage;
}

/// Allocates.
pub(crate) struct Heap;

impl Supply for Heap {
    type Storage = Vec<u8>;
    fn take(&mut self, len: usize) -> Vec<u8> {
        vec![0; len]
    }
}

/// The remainder of the lent memory.
pub(crate) struct Lent<'a>(&'a mut [u8]);

impl<'a> Lent<'a> {
    /// Memory of at least `expected` bytes, as many as will be taken.
    pub fn new(storage: &'a mut [u8], expected: usize) -> Result<Self, CodecError> {
        let given = storage.len();
        if given < expected {
            return Err(CodecError::BufferTooShort { expected, given });
        }
        Ok(Self(storage))
    }
}

impl<'a> Supply for Lent<'a> {
    type Storage = &'a mut [u8];
    fn take(&mut self, len: usize) -> &'a mut [u8] {
        let (taken, rest) = core::mem::take(&mut self.0).split_at_mut(len);
        self.0 = rest;
        taken.fill(0);
        taken
    }
}

/// Bytes aligned to a cache line, initially zero.
#[derive(Debug)]
pub(crate) struct Aligned<S = Vec<u8>> {
    bytes: S,
    start: usize,
    len: usize,
}

impl Aligned {
    /// Allocates owned memory.
    pub fn new(len: usize) -> Self {
        Self::from_supply(len, &mut Heap)
    }
}

impl<S: Storage> Aligned<S> {
    pub fn from_supply(len: usize, supply: &mut impl Supply<Storage = S>) -> Self {
        let bytes = supply.take(Self::taken(len));
        let start = line_start(bytes.bytes());
        Self { bytes, start, len }
    }

    /// The amount taken from the supply for that many bytes.
    pub fn taken(len: usize) -> usize {
        len + PADDING
    }
}

/// Offset of the first cache line.
fn line_start(bytes: &[u8]) -> usize {
    // If alignment fails, it works as well, only slower.
    bytes.as_ptr().align_offset(PADDING).min(PADDING)
}

impl<S: Storage + Clone> Clone for Aligned<S> {
    fn clone(&self) -> Self {
        let (mut bytes, len) = (self.bytes.clone(), self.len);
        // Cache lines start at another offset in the copy.
        let start = line_start(bytes.bytes());
        bytes.bytes_mut().copy_within(self.start..self.start + len, start);
        Self { bytes, start, len }
    }
}

impl<S: Storage> Deref for Aligned<S> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes.bytes()[self.start..][..self.len]
    }
}

impl<S: Storage> DerefMut for Aligned<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes.bytes_mut()[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_bytes_from_a_line_on() {
        let mut first = Aligned::new(200);
        (0_u8..).zip(first.iter_mut()).for_each(|(value, byte)| *byte = value);
        let copies: Vec<_> = (0..9).map(|_| first.clone()).collect();
        for copy in &copies {
            assert_eq!(copy[..], first[..]);
            assert!(copy.as_ptr().addr().is_multiple_of(PADDING) || cfg!(miri));
        }
    }

    #[test]
    fn memory_lent_is_cleared_and_taken_from_its_front() {
        let mut memory = [7; 100];
        assert!(Lent::new(&mut memory, 101).is_err());
        let mut lent = Lent::new(&mut memory, 50).unwrap();
        assert_eq!(lent.take(30), [0; 30]);
        assert_eq!(lent.take(20), [0; 20]);
        assert_eq!(memory[49..51], [0, 7]);
    }
}
