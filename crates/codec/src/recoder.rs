//! Recoder for a helper or relay that need not decode a block: it takes overheard symbols, and
//! makes new combinations of them.
//!
//! Only coefficients are eliminated, to find out what is innovative. Payloads are stored unchanged,
//! so that an arriving symbol costs one copy of its payload, and a dependent one not even that.

use alloc::vec::Vec;

use rand::Rng;

use crate::kernel::OUTPUTS_MAX;
use crate::rows::{Layout, Payloads, Shape};
use crate::storage::{Heap, Lent, Storage, Supply};
use crate::tableau::{Tableau, VECTOR_LEN_MAX};
use crate::{Backend, CodecError, Field, Outcome};

/// The size of a recoded symbol, written to the caller's buffers: see [`Recoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recoded {
    /// Number of symbols the coding vector covers.
    pub count: usize,
    /// Payload length, in bytes: that of the longest payload combined.
    pub len: usize,
}

/// Recoder of one block: holds the innovative symbols, as received.
///
/// ```
/// use corridor_codec::{Field, Recoded, Recoder};
/// use rand_chacha::ChaCha8Rng;
/// use rand_chacha::rand_core::SeedableRng;
///
/// let mut recoder = Recoder::new(Field::Gf256, 4, 8)?;
/// recoder.add_source(0, b"zero")?;
/// recoder.add_coded(&[1, 1, 1], 3, b"overhear")?;
///
/// let (mut vectors, mut payloads) = ([0; 4 * 4], [[0; 8]; 4]);
/// let mut outs = payloads.each_mut().map(|payload| &mut payload[..]);
/// let mut rng = ChaCha8Rng::seed_from_u64(1);
/// let recoded = recoder.recode_batch(&mut rng, &mut vectors, &mut outs);
/// assert_eq!(recoded, Some(Recoded { count: 3, len: 8 }));
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recoder<S: Storage = Vec<u8>> {
    shape: Shape,
    /// Coding vectors of `payloads`, in order of arrival.
    vectors: Payloads,
    payloads: Payloads<S>,
    tableau: Tableau,
    known_count: usize,
    payload_len_max: usize,
}

impl Recoder {
    /// A recoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes.
    ///
    /// Allocates all memory: `block_size * symbol_size_max` bytes, three times `block_size` coding
    /// vectors, and a little more; payloads once more if they are stored interleaved (GFNI, GF(2)
    /// and GF(2^4)).
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
impl<'a> Recoder<&'a mut [u8]> {
    /// A recoder that stores payloads in the borrowed `storage` and uses a given instruction set.
    /// The memory may have any contents and alignment; bytes that are not needed are not touched.
    /// Coding vectors and bookkeeping are in memory of its own. Otherwise as
    /// [`with_backend`](Recoder::with_backend).
    ///
    /// ```
    /// use corridor_codec::{Backend, Field, Recoder};
    ///
    /// let (field, backend) = (Field::Gf16, Backend::detected());
    /// let mut memory = vec![0; Recoder::storage_len_bytes(field, 4, 8, backend)?];
    /// let mut recoder = Recoder::with_storage(field, 4, 8, backend, &mut memory)?;
    /// recoder.add_source(0, b"zero")?;
    /// assert_eq!(recoder.rank(), 1);
    /// # Ok::<(), corridor_codec::CodecError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Recoder::new); [`CodecError::BufferTooShort`] when `storage` has fewer than
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
    /// As [`new`](Recoder::new).
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

impl<S: Storage> Recoder<S> {
    fn build(
        shape: Shape,
        backend: Backend,
        supply: &mut impl Supply<Storage = S>,
    ) -> Result<Self, CodecError> {
        let vectors = Layout::of_vectors(&shape, backend);
        let payloads = Layout::of_payloads(&shape, Some(backend), true);
        Ok(Self {
            shape,
            vectors: Payloads::new(&shape, backend, vectors, &mut Heap),
            payloads: Payloads::new(&shape, backend, payloads, supply),
            tableau: Tableau::new(&shape, backend, false),
            known_count: 0,
            payload_len_max: 0,
        })
    }

    /// Adds source symbol `index`.
    ///
    /// # Errors
    /// As [`BlockDecoder::add_source`](crate::BlockDecoder::add_source).
    pub fn add_source(&mut self, index: usize, symbol: &[u8]) -> Result<Outcome, CodecError> {
        self.shape.check_index(index)?;
        self.shape.check_symbol(symbol)?;
        self.known_count = self.known_count.max(index + 1);
        let place = self.rank();
        if self.tableau.add_source(index).is_none() {
            return Ok(Outcome::Dependent);
        }
        let mut unit = [0; VECTOR_LEN_MAX];
        self.shape.field.set_coefficient(&mut unit, index, 1);
        let len = self.shape.field.vector_len_bytes(index + 1);
        self.keep(place, &unit[..len], symbol);
        Ok(Outcome::Innovative)
    }

    /// Adds a coded symbol: the combination `payload` of the first `count` symbols with coding
    /// vector `vector`.
    ///
    /// # Errors
    /// As [`BlockDecoder::add_coded`](crate::BlockDecoder::add_coded).
    pub fn add_coded(
        &mut self,
        vector: &[u8],
        count: usize,
        payload: &[u8],
    ) -> Result<Outcome, CodecError> {
        self.shape.check_vector(vector, count, self.shape.block_size)?;
        self.shape.check_symbol(payload)?;
        self.known_count = self.known_count.max(count);
        let place = self.rank();
        if self.tableau.add_coded(vector, count).is_none() {
            return Ok(Outcome::Dependent);
        }
        let mut padded = [0; VECTOR_LEN_MAX];
        padded[..vector.len()].copy_from_slice(vector);
        self.shape.field.mask_unused(&mut padded, count);
        self.keep(place, &padded[..vector.len()], payload);
        Ok(Outcome::Innovative)
    }

    /// Draws a combination of all symbols held, uniformly from the nonzero ones, and writes its
    /// coding vector over the first [`known_count`](Self::known_count) symbols and its payload.
    ///
    /// `None` if nothing is held, or a buffer is too short:
    /// [`vector_len_bytes`](Field::vector_len_bytes) of the block size and `symbol_size_max` always
    /// suffice.
    pub fn recode(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vector_out: &mut [u8],
        payload_out: &mut [u8],
    ) -> Option<Recoded> {
        let vector = vector_out.get_mut(..self.shape.field.vector_len_bytes(self.known_count))?;
        if self.rank() == 0 || payload_out.len() < self.payload_len_max {
            return None;
        }
        let len = self.recode_tile(rng, &mut [vector], &mut [payload_out], None)?;
        Some(Recoded { count: self.known_count, len })
    }

    /// Draws several combinations at once, faster than one by one: writes one coding vector per
    /// entry of `payloads_out` to `vectors_out`, one after the other. All payloads of a batch are
    /// as long as the longest held.
    ///
    /// `None` if nothing is held, or a buffer is too short.
    pub fn recode_batch(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vectors_out: &mut [u8],
        payloads_out: &mut [&mut [u8]],
    ) -> Option<Recoded> {
        let count = self.known_count;
        let size = self.shape.field.vector_len_bytes(count);
        let vectors = vectors_out.get_mut(..size * payloads_out.len())?;
        let short = payloads_out.iter().any(|out| out.len() < self.payload_len_max);
        if self.rank() == 0 || short {
            return None;
        }
        let tiles =
            vectors.chunks_mut(size * OUTPUTS_MAX).zip(payloads_out.chunks_mut(OUTPUTS_MAX));
        for (vectors, outs) in tiles {
            let mut rows: [&mut [u8]; OUTPUTS_MAX] = Default::default();
            rows.iter_mut().zip(vectors.chunks_exact_mut(size)).for_each(|(to, row)| *to = row);
            let len = Some(self.payload_len_max);
            self.recode_tile(rng, &mut rows[..outs.len()], outs, len)?;
        }
        Some(Recoded { count, len: self.payload_len_max })
    }

    /// Rank: number of innovative symbols held.
    pub fn rank(&self) -> usize {
        self.tableau.rank()
    }

    /// One more than the highest symbol index seen so far, in a source symbol or in the count of a
    /// coded one, innovative or not; initially 0.
    pub fn known_count(&self) -> usize {
        self.known_count
    }

    /// Calls `see` with each symbol held, in order of arrival: its coding vector over the first
    /// [`known_count`](Self::known_count) symbols, and its payload. A new recoder that receives
    /// them with that count recodes like this one.
    pub fn each_held(&self, mut see: impl FnMut(&[u8], &[u8])) {
        let len = self.shape.field.vector_len_bytes(self.known_count);
        for place in 0..self.rank() {
            let mut vector = [0; VECTOR_LEN_MAX];
            let held = self.vectors.payload(place);
            vector[..held.len()].copy_from_slice(held);
            see(&vector[..len], self.payloads.payload(place));
        }
    }

    /// Clears the block for the next one; keeps the memory.
    pub fn reset(&mut self) {
        self.tableau.reset();
        self.payloads.clear();
        self.vectors.clear();
        self.known_count = 0;
        self.payload_len_max = 0;
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Number of symbols in the block.
    pub fn block_size(&self) -> usize {
        self.shape.block_size
    }

    /// Maximum symbol size, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// Stores a vector and its payload.
    fn keep(&mut self, place: usize, vector: &[u8], payload: &[u8]) {
        self.vectors.set(place, vector);
        self.vectors.mirror_complete(place + 1);
        self.payloads.set(place, payload);
        self.payloads.mirror_complete(place + 1);
        self.payload_len_max = self.payload_len_max.max(payload.len());
    }

    /// Draws up to [`OUTPUTS_MAX`] combinations; the buffers are long enough. Returns the payload
    /// length: `len`, or that of the only one.
    fn recode_tile(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vectors: &mut [&mut [u8]],
        outs: &mut [&mut [u8]],
        len: Option<usize>,
    ) -> Option<usize> {
        // The buffer is zeroed first: small blocks should not pay for large ones.
        match self.shape.field.vector_len_bytes(self.rank()) * outs.len() {
            ..=256 => self.recode_rows(rng, &mut [0; 256], vectors, outs, len),
            257..=1024 => self.recode_rows(rng, &mut [0; 1024], vectors, outs, len),
            1025..=4096 => self.recode_rows(rng, &mut [0; 4096], vectors, outs, len),
            _ => self.recode_rows(rng, &mut [0; OUTPUTS_MAX * VECTOR_LEN_MAX], vectors, outs, len),
        }
    }

    /// With room for the factors of all of them.
    fn recode_rows(
        &self,
        rng: &mut (impl Rng + ?Sized),
        room: &mut [u8],
        vectors: &mut [&mut [u8]],
        outs: &mut [&mut [u8]],
        len: Option<usize>,
    ) -> Option<usize> {
        let (field, rank) = (self.shape.field, self.rank());
        let size = field.vector_len_bytes(rank);
        let room = room.get_mut(..size * outs.len())?;
        for factors in room.chunks_exact_mut(size) {
            draw_factors(field, rank, rng, factors)?;
        }
        let vector_len = field.vector_len_bytes(self.known_count);
        if let ([vector], [out]) = (&mut *vectors, &mut *outs) {
            let len = len.unwrap_or_else(|| self.payloads.combined_len(room, rank));
            let (vector, out) = (vector.get_mut(..vector_len)?, out.get_mut(..len)?);
            self.payloads.combine_beside(&self.vectors, (room, rank), out, vector);
            return Some(len);
        }
        let mut factors = [&[][..]; OUTPUTS_MAX];
        factors.iter_mut().zip(room.chunks_exact(size)).for_each(|(to, from)| *to = from);
        let (factors, len) = (factors.get(..outs.len())?, len?);
        self.vectors.combine(factors, rank, vectors, vector_len);
        self.payloads.combine(factors, rank, outs, len);
        Some(len)
    }
}

/// Most efficient batch of combinations over GF(2^8).
pub(crate) const TILE: usize = 4;

/// Combinations per batch: more than four gain nothing over the largest field.
pub(crate) fn tile(field: Field) -> usize {
    if field == Field::Gf256 { TILE } else { OUTPUTS_MAX }
}

/// Draws a factor for each of the symbols held, in order.
pub(crate) fn draw_factors(
    field: Field,
    rank: usize,
    rng: &mut (impl Rng + ?Sized),
    out: &mut [u8],
) -> Option<()> {
    field.draw_vector(rank, rng, out).ok()
}
