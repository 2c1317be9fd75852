//! The kernels: linear combinations of rows of bytes, at the speed of the machine.
//!
//! One table of functions per instruction set, one file each, all instantiated from the same
//! generic code in [`simd`]; the best is detected once. All `unsafe` code is here: the safe
//! functions of [`Backend`] check every length before they call it.
#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;

use crate::{Field, MAX_BLOCK_SIZE};

mod arrive;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod beside;
mod eliminate;
#[cfg(target_arch = "x86_64")]
mod gfni256;
#[cfg(target_arch = "x86_64")]
mod gfni512;
mod groups;
mod in_place;
mod matrices;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod simd;
#[cfg(target_arch = "x86_64")]
mod ssse3;
pub(crate) mod tables;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use arrive::Arrival;
pub(crate) use eliminate::{Grid, Pivot, RowList};
pub(crate) use in_place::RowsMut;
pub(crate) use tables::Tables;
use terms::{Every, Term, Terms};

/// Rows are read up to the next multiple of this many bytes, a cache line.
pub(crate) const PADDING: usize = 64;

/// Most efficient number of outputs for [`Backend::combine`].
pub(crate) const OUTPUTS_MAX: usize = 16;

/// Outputs per tile; tiles processed together; columns per strip.
const TILE: usize = 4;
const TILES_MAX: usize = 4;
const COLUMNS: usize = 256;

/// Larger sources leave no room for outputs in the L1 cache.
const FAR_BYTES: usize = 32 << 10;

/// Minimum number of outputs for which interleaved sources pay off.
const GROUPED_OUTPUTS_MIN: usize = 3;

/// Symbols that backends which interleave this field interleave in a group; `None` if none does.
pub(crate) fn group_size_any(field: Field) -> Option<usize> {
    match field {
        Field::Gf2 => Some(8),
        Field::Gf16 => Some(2),
        Field::Gf256 => None,
    }
}

/// The instruction set that block coders use.
///
/// A value exists only if the machine has the instructions. Coders use [`detected`](Self::detected)
/// by default.
///
/// ```
/// use corridor_codec::{Backend, BlockEncoder, Field};
///
/// // The portable one is always there.
/// let portable = Backend::named("portable").unwrap();
/// let encoder = BlockEncoder::with_backend(Field::Gf256, 16, 1450, portable)?;
/// assert!(Backend::available().any(|backend| backend.name() == "portable"));
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Backend(&'static Functions);

impl Backend {
    /// The fastest one the machine has; with `std`, the one named by the environment variable
    /// `CORRIDOR_CODEC_BACKEND`, if the machine has it.
    ///
    /// Detected once. Without `std`, the compiler's target features decide.
    pub fn detected() -> Self {
        #[cfg(feature = "std")]
        {
            static DETECTED: std::sync::OnceLock<Backend> = std::sync::OnceLock::new();
            *DETECTED.get_or_init(|| {
                let forced = std::env::var("CORRIDOR_CODEC_BACKEND").ok();
                forced.and_then(|name| Self::named(&name)).unwrap_or_else(Self::fastest)
            })
        }
        #[cfg(not(feature = "std"))]
        Self::fastest()
    }

    /// All that the machine has, fastest first, including the portable one.
    pub fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let special = [
            gfni512::Gfni512::new().map(gfni512::Gfni512::functions),
            gfni256::Gfni256::new().map(gfni256::Gfni256::functions),
            avx512::Avx512::new().map(avx512::Avx512::functions),
            avx2::Avx2::new().map(avx2::Avx2::functions),
            ssse3::Ssse3::new().map(ssse3::Ssse3::functions),
        ];
        #[cfg(target_arch = "aarch64")]
        let special = [neon::Neon::new().map(neon::Neon::functions)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let special: [Option<&'static Functions>; 0] = [];
        special.into_iter().flatten().chain([portable::Portable.functions()]).map(Self)
    }

    /// The one of that name, if the machine has it: `gfni512`, `gfni256`, `avx512`, `avx2`,
    /// `ssse3`, `neon`, `portable`.
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|backend| backend.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    fn fastest() -> Self {
        Self::available().next().unwrap_or(Self(portable::Portable.functions()))
    }

    /// The number of symbols this backend interleaves, if any.
    pub(crate) fn group_size(self, field: Field) -> Option<usize> {
        self.grouping(field).map(|(_, _, size)| size)
    }

    /// The functions, their vector width, and the symbols per group.
    fn grouping(self, field: Field) -> Option<(&'static Grouping, usize, usize)> {
        let (groups, size) = (self.0.groups?, group_size_any(field)?);
        let grouping = if field == Field::Gf2 { &groups.bits } else { &groups.halves };
        Some((grouping, groups.width, size))
    }

    /// Interleaves up to a group of rows, whole strides of them, and stores them as group `group`
    /// of the `groups` in `mirror`, which has as many bytes as all these rows. Missing rows count
    /// as zeros.
    pub(crate) fn interleave(
        self,
        field: Field,
        rows: Rows<'_>,
        mirror: &mut [u8],
        group: usize,
        groups: usize,
    ) {
        let Some((grouping, width, size)) = self.grouping(field) else { return };
        let count = rows.count.min(size);
        assert!(rows.stride.is_multiple_of(PADDING) && group < groups);
        assert!(rows.bytes.len() >= count * rows.stride);
        assert!(mirror.len() >= groups * size * rows.stride);
        let (base, pitch) = (rows.bytes.as_ptr(), groups * size * width);
        // SAFETY: this backend has its instructions; the lengths were checked just now.
        unsafe {
            let out = mirror.as_mut_ptr().add(group * size * width);
            (grouping.interleave)(base, rows.stride, count, out, pitch, rows.stride);
        }
    }

    /// `outs[i] =` the combination of `rows` with coding vector `vectors[i]`, the first `len` bytes
    /// of it. `mirror` may hold the leading rows interleaved.
    ///
    /// # Panics
    /// If a vector or output is too short, their numbers differ, or rows are not padded.
    pub(crate) fn combine(
        self,
        field: Field,
        rows: Rows<'_>,
        mirror: Option<Mirror<'_>>,
        vectors: &[&[u8]],
        outs: &mut [&mut [u8]],
        len: usize,
    ) {
        assert_eq!(vectors.len(), outs.len());
        assert!(vectors.iter().all(|vector| vector.len() >= field.vector_len_bytes(rows.count)));
        assert!(outs.iter().all(|out| out.len() >= len));
        let Some(last) = rows.count.checked_sub(1) else {
            outs.iter_mut().for_each(|out| out[..len].fill(0));
            return;
        };
        assert!(rows.count <= MAX_BLOCK_SIZE && len <= rows.stride);
        assert!(last * rows.stride + len.next_multiple_of(PADDING) <= rows.bytes.len());
        match &self.0.every {
            Some(functions) if field == Field::Gf256 && !is_sparse(vectors, rows.count) => {
                // SAFETY: this backend has its instructions; the lengths were checked just now.
                unsafe { combine_every(functions, rows, vectors, outs, len) }
            }
            // SAFETY: the same.
            _ => unsafe { self.combine_others(field, rows, mirror, vectors, outs, len) },
        }
    }

    /// Combines interleaved rows, or the rows with nonzero factors.
    ///
    /// # Safety
    /// Each row is readable for `len` bytes, padded; each output has `len` bytes, and each vector
    /// a coefficient for each row.
    // A separate function, because it uses much stack.
    #[inline(never)]
    unsafe fn combine_others(
        self,
        field: Field,
        rows: Rows<'_>,
        mirror: Option<Mirror<'_>>,
        vectors: &[&[u8]],
        outs: &mut [&mut [u8]],
        len: usize,
    ) {
        let mut done = 0;
        if let (Some(mirror), Some((grouping, width, size))) = (mirror, self.grouping(field)) {
            let pointers = mirror.groups(rows, width, size);
            while let Some(groups) = pointers
                && vectors.len() - done >= GROUPED_OUTPUTS_MIN
            {
                let end = vectors.len().min(done + grouping.many.0 * size);
                let (vectors, outs) = (&vectors[done..end], &mut outs[done..end]);
                // SAFETY: this backend has its instructions; the rest is the caller's promise.
                unsafe {
                    combine_groups(field, (grouping, size), rows.count, groups, vectors, outs, len)
                };
                done = end;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.combine_listed(field, rows, &vectors[done..], &mut outs[done..], len) }
    }

    /// Combines the rows with nonzero factors.
    ///
    /// # Safety
    /// Each row is readable for `len` bytes, padded; each output has `len` bytes, and each vector
    /// a coefficient for each row.
    unsafe fn combine_listed(
        self,
        field: Field,
        rows: Rows<'_>,
        vectors: &[&[u8]],
        outs: &mut [&mut [u8]],
        len: usize,
    ) {
        let (mut done, functions) = (0, self.0);
        let far = rows.count * len > FAR_BYTES && field != Field::Gf2;
        while far && vectors.len() - done >= 2 * TILE {
            let end = done + ((vectors.len() - done) / TILE).min(TILES_MAX) * TILE;
            let (vectors, outs) = (&vectors[done..end], &mut outs[done..end]);
            // SAFETY: this backend has its instructions; the rest is the caller's promise.
            unsafe { self.combine_tiles(field, rows, vectors, outs, len) };
            done = end;
        }
        let mut terms = Terms::new();
        while done < vectors.len() {
            let (count, combine) = match field {
                Field::Gf2 => (1, functions.listed.one),
                _ => functions.listed.most(vectors.len() - done),
            };
            terms.fill(field, &vectors[done..done + count], rows.count, rows.stride);
            let mut to = [core::ptr::null_mut(); TILE];
            for (to, out) in to.iter_mut().zip(&mut outs[done..done + count]) {
                *to = out.as_mut_ptr();
            }
            let (base, terms) = (rows.bytes.as_ptr(), terms.as_slice());
            // SAFETY: this backend has its instructions; each term is one of the rows, whose
            // lengths the caller has checked; outputs are borrowed exclusively.
            unsafe {
                if field == Field::Gf2 {
                    (functions.sum)(base, terms, to[0], len);
                } else {
                    combine(field.tables(), base, terms, &to[..count], len);
                }
            }
            done += count;
        }
    }

    /// Several tiles together, so that the data one has read are in cache for the next.
    ///
    /// # Safety
    /// As for the combination of four, for each tile; there are no more than [`TILES_MAX`].
    #[inline(never)]
    unsafe fn combine_tiles(
        self,
        field: Field,
        rows: Rows<'_>,
        vectors: &[&[u8]],
        outs: &mut [&mut [u8]],
        len: usize,
    ) {
        let mut tiles = [Terms::new(), Terms::new(), Terms::new(), Terms::new()];
        for (terms, vectors) in tiles.iter_mut().zip(vectors.chunks_exact(TILE)) {
            terms.fill(field, vectors, rows.count, rows.stride);
        }
        for at in (0..len).step_by(COLUMNS) {
            let part = COLUMNS.min(len - at);
            for (terms, outs) in tiles.iter().zip(outs.chunks_exact_mut(TILE)) {
                let mut to = [core::ptr::null_mut(); TILE];
                for (to, out) in to.iter_mut().zip(outs) {
                    *to = out[at..].as_mut_ptr();
                }
                // SAFETY: as promised by the caller, from column `at` on.
                unsafe {
                    let base = rows.bytes.as_ptr().add(at);
                    (self.0.listed.four)(field.tables(), base, terms.as_slice(), &to, part);
                }
            }
        }
    }
}

impl Backend {
    /// `to += coefficient * from`, over slices of one length.
    pub(crate) fn add_scaled(self, field: Field, to: &mut [u8], coefficient: u8, from: &[u8]) {
        debug_assert_eq!(to.len(), from.len());
        let term = Term { offset: 0, factors: [coefficient, 0, 0, 0] };
        let whole = to.len().min(from.len()) / PADDING * PADDING;
        let (to, to_tail) = to.split_at_mut(whole);
        let (from, from_tail) = from.split_at(whole);
        if coefficient == 0 {
            return;
        }
        // SAFETY: this backend has its instructions; both slices have `whole` bytes.
        unsafe {
            (self.0.update)(field.tables(), to.as_mut_ptr(), &[term], from.as_ptr(), whole);
        }
        if !to_tail.is_empty() {
            let (mut to_line, mut from_line) = ([0; PADDING], [0; PADDING]);
            let len = to_tail.len().min(from_tail.len());
            to_line[..len].copy_from_slice(&to_tail[..len]);
            from_line[..len].copy_from_slice(&from_tail[..len]);
            self.add_scaled(field, &mut to_line, coefficient, &from_line);
            to_tail[..len].copy_from_slice(&to_line[..len]);
        }
    }

    /// `row *= coefficient`; the row's length is a multiple of [`PADDING`].
    pub(crate) fn scale(self, field: Field, row: &mut [u8], coefficient: u8) {
        assert!(row.len().is_multiple_of(PADDING));
        if coefficient != 1 {
            let term = Term { offset: 0, factors: [coefficient, 0, 0, 0] };
            let (to, len) = (row.as_mut_ptr(), row.len());
            // SAFETY: this backend has its instructions. The output is the one row, which is
            // allowed: each strip is read before it is written.
            unsafe { (self.0.listed.one)(field.tables(), to, &[term], &[to], len) };
        }
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backend({})", self.name())
    }
}

/// Rows of bytes at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
    pub count: usize,
}

/// The leading rows, whole groups of them, interleaved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mirror<'a> {
    pub bytes: &'a [u8],
    /// Number of interleaved groups, and capacity.
    pub groups: usize,
    pub groups_max: usize,
}

impl Mirror<'_> {
    /// The groups usable for the rows, if no more than part of a group is missing.
    fn groups(&self, rows: Rows<'_>, width: usize, size: usize) -> Option<groups::Groups> {
        let count = self.groups.min(self.groups_max).min(rows.count.div_ceil(size));
        let tail_rows = rows.count.saturating_sub(count * size);
        if tail_rows >= size || self.bytes.len() < self.groups_max * size * rows.stride {
            return None;
        }
        let tail = rows.bytes.get((count * size).min(rows.count) * rows.stride..)?.as_ptr();
        let (base, pitch) = (self.bytes.as_ptr(), self.groups_max * size * width);
        let tail_stride = rows.stride;
        Some(groups::Groups { base, pitch, count, tail, tail_stride, tail_rows })
    }
}

/// Whether enough factors are zero to make skipping them worthwhile.
fn is_sparse(vectors: &[&[u8]], count: usize) -> bool {
    // The vectors have their nonzero factors in the same places: one tells for all.
    let Some(vector) = vectors.first() else { return false };
    // In parts short enough for a byte counter.
    let parts = vector[..count].chunks(128);
    let zeros = parts.map(|part| part.iter().map(|&factor| u8::from(factor == 0)).sum::<u8>());
    zeros.map(usize::from).sum::<usize>() * 8 > count
}

/// Combines all rows, whatever their factors over GF(2^8).
///
/// # Safety
/// The instructions of the functions; each row is readable for `len` bytes, padded; each output
/// has `len` bytes, and each vector a factor for each row.
unsafe fn combine_every(
    functions: &Combinations<Every>,
    rows: Rows<'_>,
    vectors: &[&[u8]],
    outs: &mut [&mut [u8]],
    len: usize,
) {
    let (stride, count, tables) = (rows.stride, rows.count, Field::Gf256.tables());
    // For rows outside the cache, all outputs process a few columns at a time, so that the data one
    // tile has read are near for the next.
    let far = count * len > FAR_BYTES && outs.len() >= 2 * TILE;
    let columns = if far { COLUMNS } else { len.max(1) };
    for at in (0..len).step_by(columns) {
        let (mut done, part) = (0, columns.min(len - at));
        while done < vectors.len() {
            let (outputs, combine) = functions.most(vectors.len() - done);
            let mut every = Every { stride, count, vectors: [core::ptr::null(); TILE] };
            let mut to = [core::ptr::null_mut(); TILE];
            for place in 0..outputs {
                every.vectors[place] = vectors[done + place].as_ptr();
                to[place] = outs[done + place][at..].as_mut_ptr();
            }
            // SAFETY: as promised by the caller, from column `at` on.
            unsafe { combine(tables, rows.bytes.as_ptr().add(at), &every, &to[..outputs], part) };
            done += outputs;
        }
    }
}

/// # Safety
/// The instructions of `grouping`; `groups` are `rows` rows, readable for `len` bytes, padded;
/// each output has `len` bytes; there are no more than `grouping` has.
unsafe fn combine_groups(
    field: Field,
    (grouping, size): (&Grouping, usize),
    rows: usize,
    groups: groups::Groups,
    vectors: &[&[u8]],
    outs: &mut [&mut [u8]],
    len: usize,
) {
    let few = vectors.len() <= grouping.few.0 * size;
    let (tiles, combine) = if few { grouping.few } else { grouping.many };
    let mut all = [const { MaybeUninit::<u64>::uninit() }; MATRICES_MAX];
    let group_count = rows.div_ceil(size);
    // Unused bits of the last byte are ignored.
    let used = 0xFF_u8 >> (8 - (rows - (group_count - 1) * size) * (8 / size));
    for tile in 0..tiles {
        let vectors = vectors.chunks(size).nth(tile).unwrap_or_default();
        let (of_groups, out) = ((group_count, used), &mut all[tile..]);
        match field {
            Field::Gf2 => matrices::of_bits(vectors, of_groups, out, tiles),
            _ => matrices::of_halves(vectors, of_groups, out, tiles),
        }
    }
    let mut to = [core::ptr::null_mut(); OUTPUTS_MAX];
    for (to, out) in to.iter_mut().zip(&mut *outs) {
        *to = out.as_mut_ptr();
    }
    // SAFETY: the caller's promise; there are as many matrices as groups, times tiles.
    unsafe { combine(&groups, all.as_ptr().cast(), &to[..outs.len()], len) }
}

/// Matrices per call: `MAX_BLOCK_SIZE / 2` groups of sources, four of outputs, over GF(2^4).
const MATRICES_MAX: usize = MAX_BLOCK_SIZE / 2 * 4;

/// The functions of one instruction set; all are unsafe to call without it.
struct Functions {
    name: &'static str,
    listed: Combinations<[Term]>,
    /// For dense vectors over GF(2^8), where it saves anything.
    every: Option<Combinations<Every>>,
    /// For one dense vector over GF(2^8), and rows with others alongside.
    beside: Option<beside::BesideKernel>,
    sum: unsafe fn(*const u8, &[Term], *mut u8, usize),
    update: unsafe fn(&Tables, *mut u8, &[Term], *const u8, usize),
    reduce: eliminate::Reduce,
    eliminate: eliminate::Eliminate,
    arrive: arrive::Arrive,
    groups: Option<&'static Grouped>,
}

/// By the number of outputs.
struct Combinations<T: ?Sized> {
    one: Combine<T>,
    two: Combine<T>,
    four: Combine<T>,
}

type Combine<T> = unsafe fn(&Tables, *const u8, &T, &[*mut u8], usize);

impl<T: ?Sized> Combinations<T> {
    /// The function that makes the most of a number of outputs, at least one, and how many it
    /// makes.
    fn most(&self, outputs: usize) -> (usize, Combine<T>) {
        match outputs {
            1 => (1, self.one),
            2 | 3 => (2, self.two),
            _ => (4, self.four),
        }
    }
}

/// The functions for interleaved symbols.
struct Grouped {
    width: usize,
    bits: Grouping,
    halves: Grouping,
}

struct Grouping {
    interleave: unsafe fn(*const u8, usize, usize, *mut u8, usize, usize),
    /// Number of output groups that the function makes.
    few: (usize, CombineGroups),
    many: (usize, CombineGroups),
}

type CombineGroups = unsafe fn(&groups::Groups, *const u64, &[*mut u8], usize);

/// Whether the machine has all these features; without `std`, whether the target has.
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($feature:tt),+) => {{
        #[cfg(feature = "std")]
        let detected = $(std::is_x86_feature_detected!($feature))&&+;
        #[cfg(not(feature = "std"))]
        let detected = $(cfg!(target_feature = $feature))&&+;
        detected
    }};
}
#[cfg(target_arch = "x86_64")]
use detected;
