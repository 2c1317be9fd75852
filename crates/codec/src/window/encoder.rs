//! Window encoder: it takes source symbols, and makes coded symbols over any run of them.

use alloc::vec::Vec;

use crate::kernel::OUTPUTS_MAX;
use crate::recoder::TILE;
use crate::rows::{Layout, Payloads, Shape};
use crate::storage::{Heap, Lent, Storage, Supply};
use crate::window::ring::Ring;
use crate::window::{Coefficients, check_run, end_of, ring_of};
use crate::{Backend, CodecError, Field, MAX_BLOCK_SIZE};

/// Encoder of a stream: holds the source symbols in the window, usually those not acknowledged yet,
/// and combines them.
///
/// ```
/// use corridor_codec::{Coefficients, Field, WindowEncoder};
///
/// let mut encoder = WindowEncoder::new(Field::Gf2, 64, 1500)?;
/// assert_eq!(encoder.push(b"first")?, 0);
/// assert_eq!(encoder.push(b"second")?, 1);
///
/// // The sum of both, which repairs either.
/// let mut payload = [0; 1500];
/// let len = encoder.encode(0, 2, Coefficients::Vector(&[0b11]), &mut payload)?;
/// assert_eq!(len, 6);
///
/// // The first is acknowledged: its place is free again.
/// encoder.advance_to(1);
/// assert_eq!((encoder.base(), encoder.end()), (1, 2));
/// assert_eq!(encoder.symbol(0), None);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WindowEncoder<S: Storage = Vec<u8>> {
    shape: Shape,
    window_size: usize,
    ring: Ring,
    symbols: Payloads<S>,
    base: u64,
    end: u64,
    /// The latest of the longest symbols held, so that the length of most combinations is known
    /// without looking at each of them. Any id if none is held.
    longest: u64,
}

impl WindowEncoder {
    /// An encoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes. The
    /// first symbol has id 0; [`reset`](Self::reset) starts elsewhere.
    ///
    /// Allocates all memory: `window_size * symbol_size_max` bytes and a little more.
    ///
    /// # Errors
    /// [`CodecError::WindowSize`] and [`CodecError::SymbolSizeMax`] when a size is zero or beyond
    /// [`MAX_WINDOW_SIZE`](crate::MAX_WINDOW_SIZE), [`MAX_SYMBOL_SIZE`](crate::MAX_SYMBOL_SIZE).
    pub fn new(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        Self::with_backend(field, window_size, symbol_size_max, Backend::detected())
    }

    /// Like [`new`](Self::new), with a given instruction set.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_backend(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: Backend,
    ) -> Result<Self, CodecError> {
        Self::build(field, window_size, symbol_size_max, backend, &mut Heap)
    }
}

/// In memory lent by the caller.
impl<'a> WindowEncoder<&'a mut [u8]> {
    /// An encoder that stores payloads in the borrowed `storage` and uses a given instruction set.
    /// The memory may have any contents and alignment; bytes that are not needed are not touched.
    /// Only the symbols' lengths are stored elsewhere. Otherwise as
    /// [`with_backend`](WindowEncoder::with_backend).
    ///
    /// ```
    /// use corridor_codec::{Backend, Coefficients, Field, WindowEncoder};
    ///
    /// let (field, backend) = (Field::Gf256, Backend::detected());
    /// let mut memory = vec![0; WindowEncoder::storage_len_bytes(field, 8, 4, backend)?];
    /// let mut encoder = WindowEncoder::with_storage(field, 8, 4, backend, &mut memory)?;
    /// encoder.push(b"one.")?;
    /// let mut payload = [0; 4];
    /// assert_eq!(encoder.encode(0, 1, Coefficients::Vector(&[1]), &mut payload)?, 4);
    /// assert_eq!(&payload, b"one.");
    /// # Ok::<(), corridor_codec::CodecError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](WindowEncoder::new); [`CodecError::BufferTooShort`] when `storage` has fewer than
    /// [`storage_len_bytes`](Self::storage_len_bytes).
    pub fn with_storage(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: Backend,
        storage: &'a mut [u8],
    ) -> Result<Self, CodecError> {
        let expected = Self::storage_len_bytes(field, window_size, symbol_size_max, backend)?;
        let mut lent = Lent::new(storage, expected)?;
        Self::build(field, window_size, symbol_size_max, backend, &mut lent)
    }

    /// Bytes of storage that [`with_storage`](Self::with_storage) needs; without a backend, the
    /// most that any backend needs, on any machine.
    ///
    /// # Errors
    /// As [`new`](WindowEncoder::new).
    pub fn storage_len_bytes(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: impl Into<Option<Backend>>,
    ) -> Result<usize, CodecError> {
        let (_, shape) = ring_of(field, window_size, symbol_size_max)?;
        Ok(Layout::of_payloads(&shape, backend.into(), false).storage_len())
    }
}

impl<S: Storage> WindowEncoder<S> {
    fn build(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: Backend,
        supply: &mut impl Supply<Storage = S>,
    ) -> Result<Self, CodecError> {
        let (ring, shape) = ring_of(field, window_size, symbol_size_max)?;
        let layout = Layout::of_payloads(&shape, Some(backend), false);
        let symbols = Payloads::new(&shape, backend, layout, supply);
        Ok(Self { shape, window_size, ring, symbols, base: 0, end: 0, longest: 0 })
    }

    /// Appends a source symbol to the window and returns its id: one more than the last one's.
    ///
    /// # Errors
    /// [`CodecError::WindowFull`]: [advance](Self::advance_to) first;
    /// [`CodecError::SymbolLength`] when the symbol is empty or longer than `symbol_size_max`;
    /// [`CodecError::IdRange`] after 2^64 - 1 symbols.
    pub fn push(&mut self, symbol: &[u8]) -> Result<u64, CodecError> {
        if self.is_full() {
            return Err(CodecError::WindowFull { window_size: self.window_size });
        }
        self.shape.check_symbol(symbol)?;
        let id = self.end;
        self.end = end_of(id, 1)?;
        self.symbols.set(self.ring.slot(id), symbol);
        if self.count() == 1 || symbol.len() >= self.len_of(self.longest) {
            self.longest = id;
        }
        Ok(id)
    }

    fn len_of(&self, id: u64) -> usize {
        self.symbols.len(self.ring.slot(id))
    }

    /// Length of the combination with this coding vector, laid out around the ring: of a run of
    /// symbols held.
    fn combined_len(&self, vector: &[u8]) -> usize {
        let slot = self.ring.slot(self.longest);
        match self.shape.field.coefficient(vector, slot) {
            0 => self.symbols.combined_len(vector, self.ring.slots()),
            _ => self.symbols.len(slot),
        }
    }

    /// Writes to `out` the combination of the `count` symbols from id `first` on, and returns its
    /// length in bytes: that of the longest symbol with a nonzero coefficient, so 0 for an all-zero
    /// vector.
    ///
    /// `out` must hold that many bytes; `symbol_size_max` bytes always suffice.
    ///
    /// # Errors
    /// [`CodecError::OutsideWindow`] unless the run is in [`base`](Self::base)..
    /// [`end`](Self::end) and has a symbol; [`CodecError::VectorLength`] for a vector that is not
    /// as long as the run makes it; [`CodecError::RepairKeyField`]; [`CodecError::BufferTooShort`].
    pub fn encode(
        &self,
        first: u64,
        count: usize,
        coefficients: Coefficients<'_>,
        out: &mut [u8],
    ) -> Result<usize, CodecError> {
        check_run(first, count, self.base, self.end)?;
        coefficients.check(self.shape.field, count)?;
        let mut around = [0; MAX_BLOCK_SIZE];
        let vector = self.wrap(first, count, coefficients, &mut around)?;
        let len = self.combined_len(vector);
        let given = out.len();
        let Some(out) = out.get_mut(..len) else {
            return Err(CodecError::BufferTooShort { expected: len, given });
        };
        self.symbols.combine(&[vector], self.ring.slots(), &mut [out], len);
        Ok(len)
    }

    /// Writes several coded symbols over the same run at once, faster than one by one: to `outs[i]`
    /// the one with `coefficients[i]`. All are padded with zeros to the longest of them, whose
    /// length is returned.
    ///
    /// # Errors
    /// As [`encode`](Self::encode); [`CodecError::CountOutOfRange`] unless there are as many
    /// outputs as coefficients.
    pub fn encode_batch(
        &self,
        first: u64,
        count: usize,
        coefficients: &[Coefficients<'_>],
        outs: &mut [&mut [u8]],
    ) -> Result<usize, CodecError> {
        check_run(first, count, self.base, self.end)?;
        if coefficients.len() != outs.len() {
            let (expected_max, given) = (coefficients.len(), outs.len());
            return Err(CodecError::CountOutOfRange { expected_max, given });
        }
        coefficients.iter().try_for_each(|given| given.check(self.shape.field, count))?;
        // Lengths first: nothing is written unless everything fits.
        let (mut len, mut around) = (0, [0; MAX_BLOCK_SIZE]);
        for given in coefficients {
            let vector = self.wrap(first, count, *given, &mut around)?;
            len = self.combined_len(vector).max(len);
            if len == self.len_of(self.longest) {
                break;
            }
        }
        if let Some(out) = outs.iter().find(|out| out.len() < len) {
            return Err(CodecError::BufferTooShort { expected: len, given: out.len() });
        }
        let tiles = coefficients.chunks(OUTPUTS_MAX).zip(outs.chunks_mut(OUTPUTS_MAX));
        for (tile, outs) in tiles {
            if outs.len() <= TILE {
                self.encode_tile::<TILE>(first, count, tile, outs, len)?;
            } else {
                self.encode_tile::<OUTPUTS_MAX>(first, count, tile, outs, len)?;
            }
        }
        Ok(len)
    }

    /// Makes up to `N` coded symbols of that length, as in [`encode_batch`](Self::encode_batch).
    fn encode_tile<const N: usize>(
        &self,
        first: u64,
        count: usize,
        coefficients: &[Coefficients<'_>],
        outs: &mut [&mut [u8]],
        len: usize,
    ) -> Result<(), CodecError> {
        let mut around = [[0; MAX_BLOCK_SIZE]; N];
        let mut vectors = [&[][..]; N];
        let places = vectors.iter_mut().zip(&mut around).zip(coefficients);
        for ((vector, around), given) in places {
            *vector = self.wrap(first, count, *given, around)?;
        }
        self.symbols.combine(&vectors[..outs.len()], self.ring.slots(), outs, len);
        Ok(())
    }

    /// The coding vector of a run, laid out around the ring.
    fn wrap<'a>(
        &self,
        first: u64,
        count: usize,
        given: Coefficients<'_>,
        around: &'a mut [u8; MAX_BLOCK_SIZE],
    ) -> Result<&'a [u8], CodecError> {
        let field = self.shape.field;
        let mut vector = [0; MAX_BLOCK_SIZE];
        given.expand(field, count, &mut vector)?;
        let around = &mut around[..field.vector_len_bytes(self.ring.slots())];
        self.ring.wrap_vector(
            field,
            &vector[..field.vector_len_bytes(count)],
            self.ring.slot(first),
            around,
        );
        Ok(around)
    }

    /// Drops all symbols before `id`. An id before the window changes nothing; one beyond it
    /// empties the window, and does not change the id of the next symbol.
    pub fn advance_to(&mut self, id: u64) {
        self.base = id.clamp(self.base, self.end);
        if self.longest < self.base {
            let longest = (self.base..self.end).max_by_key(|&id| self.len_of(id));
            self.longest = longest.unwrap_or(self.end);
        }
    }

    /// Id of the first symbol held; that of the next symbol if none is.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Id of the next symbol to be pushed.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of symbols held.
    pub fn count(&self) -> usize {
        (self.end - self.base) as usize
    }

    /// Whether the window must be advanced before another symbol fits.
    pub fn is_full(&self) -> bool {
        self.count() == self.window_size
    }

    /// Source symbol `id`, if it is in the window.
    pub fn symbol(&self, id: u64) -> Option<&[u8]> {
        (self.base..self.end).contains(&id).then(|| self.symbols.payload(self.ring.slot(id)))
    }

    /// Empties the window; the next symbol gets the id `first`. Keeps the memory.
    pub fn reset(&mut self, first: u64) {
        (self.base, self.end, self.longest) = (first, first, first);
        self.symbols.clear();
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Maximum number of symbols in the window.
    pub fn window_size(&self) -> usize {
        self.window_size
    }

    /// Maximum symbol size, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Density;

    #[test]
    fn misuse_is_a_typed_error() {
        assert_eq!(
            WindowEncoder::new(Field::Gf2, 0, 9).err(),
            Some(CodecError::WindowSize { given: 0 })
        );
        assert_eq!(
            WindowEncoder::new(Field::Gf2, 1025, 9).err(),
            Some(CodecError::WindowSize { given: 1025 })
        );
        assert_eq!(
            WindowEncoder::new(Field::Gf2, 1, 65_536).err(),
            Some(CodecError::SymbolSizeMax { given: 65_536 })
        );
        let mut encoder = WindowEncoder::new(Field::Gf256, 2, 4).unwrap();
        let length = |given| Err(CodecError::SymbolLength { expected_max: 4, given });
        assert_eq!(encoder.push(b""), length(0));
        assert_eq!(encoder.push(b"five!"), length(5));
        encoder.reset(10);
        assert_eq!((encoder.push(b"four"), encoder.push(b"4")), (Ok(10), Ok(11)));
        assert_eq!(encoder.push(b"4"), Err(CodecError::WindowFull { window_size: 2 }));
        let mut out = [0; 4];
        for (first, count) in [(9, 1), (9, 2), (10, 0), (10, 3), (11, 2), (12, 1)] {
            let (expected_first, expected_end) = (10, 12);
            let error = CodecError::OutsideWindow { expected_first, expected_end, first, count };
            let given = Coefficients::Seed(1);
            assert_eq!(encoder.encode(first, count, given, &mut out), Err(error));
        }
        assert_eq!(
            encoder.encode(u64::MAX, 1, Coefficients::Seed(1), &mut out),
            Err(CodecError::IdRange { first: u64::MAX, count: 1 })
        );
        assert_eq!(
            encoder.encode(10, 2, Coefficients::Vector(&[1]), &mut out),
            Err(CodecError::VectorLength { expected: 2, given: 1 })
        );
        assert_eq!(
            encoder.encode(10, 2, Coefficients::RepairKey(1, Density::FULL), &mut out[..3]),
            Err(CodecError::BufferTooShort { expected: 4, given: 3 })
        );
        encoder.reset(u64::MAX - 1);
        assert_eq!(encoder.push(b"last"), Ok(u64::MAX - 1));
        assert_eq!(encoder.push(b"!"), Err(CodecError::IdRange { first: u64::MAX, count: 1 }));
    }

    #[test]
    fn the_window_slides_over_its_own_memory() {
        let mut encoder = WindowEncoder::new(Field::Gf256, 3, 2).unwrap();
        for id in 0..100_u64 {
            encoder.advance_to(id.saturating_sub(2));
            encoder.advance_to(0);
            let first = encoder.base();
            assert_eq!(first, id.saturating_sub(2));
            assert_eq!(encoder.push(&[id as u8, 1]), Ok(id));
            let vector = &[1, 1, 1][..encoder.count()];
            let mut out = [0xEE; 3];
            let given = Coefficients::Vector(vector);
            assert_eq!(encoder.encode(first, vector.len(), given, &mut out), Ok(2));
            let sum = (first..=id).fold(0, |sum, id| sum ^ id as u8);
            assert_eq!(out, [sum, vector.len() as u8 % 2, 0xEE]);
            assert_eq!(encoder.symbol(first), Some(&[first as u8, 1][..]));
        }
        encoder.advance_to(u64::MAX);
        assert_eq!((encoder.base(), encoder.end(), encoder.count()), (100, 100, 0));
    }

    #[test]
    fn a_combination_is_as_long_as_the_longest_symbol_in_it() {
        let mut encoder = WindowEncoder::new(Field::Gf256, 7, 40).unwrap();
        // Lengths that rise, fall, repeat and stand out, and windows that lose their longest.
        for id in 0..200_u64 {
            let len = [1 + id % 40, 40 - id % 40, 20, 1 + id * id % 40][id as usize / 10 % 4];
            encoder.advance_to(id.saturating_sub(id / 3 % 7));
            assert_eq!(encoder.push(&[1; 40][..len as usize]), Ok(id));
            for first in encoder.base()..=id {
                let count = (id + 1 - first) as usize;
                for without in 0..=count {
                    let mut vector = [1; 7];
                    vector.get_mut(without).into_iter().for_each(|factor| *factor = 0);
                    let vector = &vector[..count];
                    let lens = (first..).zip(vector).filter(|(_, factor)| **factor != 0);
                    let lens = lens.map(|(id, _)| encoder.symbol(id).unwrap().len());
                    let len =
                        encoder.encode(first, count, Coefficients::Vector(vector), &mut [0; 40]);
                    assert_eq!(len, Ok(lens.max().unwrap_or(0)));
                }
            }
        }
    }

    #[test]
    fn a_batch_is_what_its_symbols_are() {
        for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
            let mut encoder = WindowEncoder::new(field, 13, 40).unwrap();
            encoder.reset(1000);
            for number in 0..13_u8 {
                encoder.push(&[number * 19 + 1; 40][..3 * usize::from(number) + 1]).unwrap();
            }
            // Miri takes a thousand times as long.
            for size in (0..=19).step_by(if cfg!(miri) { 9 } else { 1 }) {
                let given: std::vec::Vec<_> = (0..size).map(Coefficients::Seed).collect();
                let mut bytes = [[0xEE; 40]; 19];
                let mut outs: std::vec::Vec<_> =
                    bytes.iter_mut().take(given.len()).map(|out| &mut out[..]).collect();
                let len = encoder.encode_batch(1003, 9, &given, &mut outs).unwrap();
                let (mut alone, mut len_max) = ([0; 40], 0);
                for (given, out) in given.iter().zip(&bytes) {
                    let len_alone = encoder.encode(1003, 9, *given, &mut alone).unwrap();
                    alone[len_alone..].fill(0);
                    assert_eq!(out[..len], alone[..len]);
                    assert!(out[len..].iter().all(|&byte| byte == 0xEE), "written beyond");
                    len_max = len_max.max(len_alone);
                }
                assert_eq!(len, len_max);
            }
            let error = Err(CodecError::CountOutOfRange { expected_max: 1, given: 0 });
            assert_eq!(encoder.encode_batch(1003, 9, &[Coefficients::Seed(1)], &mut []), error);
        }
    }
}
