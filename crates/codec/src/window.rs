//! Random linear network coding over a sliding window (RFC 8406: *elastic encoding window*).
//!
//! There are no blocks: source symbols have consecutive ids, and a coded symbol covers any run of
//! them that both sides still hold. Its vector is relative to the run: coefficient `i` belongs to
//! id `first + i`.
//!
//! Columns of coding vectors and slots of payloads form a ring: their index is the id modulo a size
//! fixed at construction. Moving the window therefore moves no memory.

mod decoder;
mod encoder;
mod equations;
mod ring;

pub use decoder::WindowDecoder;
pub use encoder::WindowEncoder;

use crate::rows::Shape;
use crate::window::ring::Ring;
use crate::{CodecError, Density, Field, MAX_BLOCK_SIZE};

/// Maximum number of symbols in a window.
pub const MAX_WINDOW_SIZE: usize = MAX_BLOCK_SIZE;

/// The coding coefficients of a coded symbol over a run of symbols: the coefficients themselves, or
/// what they are expanded from.
///
/// ```
/// use corridor_codec::{Coefficients, Density, Field, WindowEncoder};
///
/// let mut encoder = WindowEncoder::new(Field::Gf256, 8, 4)?;
/// encoder.push(b"one.")?;
/// encoder.push(b"two.")?;
/// let (mut vector, mut payloads) = ([0; 2], [[0; 4]; 4]);
/// Field::Gf256.expand_seed(7, 2, &mut vector)?;
/// let kinds = [
///     Coefficients::Vector(&vector),
///     Coefficients::Seed(7),
///     Coefficients::Seed(8),
///     Coefficients::RepairKey(7, Density::FULL),
/// ];
/// let mut outs = payloads.each_mut().map(|payload| &mut payload[..]);
/// assert_eq!(encoder.encode_batch(0, 2, &kinds, &mut outs)?, 4);
/// assert_eq!(payloads[0], payloads[1]);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coefficients<'a> {
    /// The coding vector, of [`vector_len_bytes`](Field::vector_len_bytes) of the run's length.
    /// Unused bits of its last byte are ignored.
    Vector(&'a [u8]),
    /// The seed of [`Field::expand_seed`].
    Seed(u32),
    /// Repair key and density of RFC 8681: [`Field::expand_repair_key`].
    RepairKey(u16, Density),
}

impl Coefficients<'_> {
    fn check(self, field: Field, count: usize) -> Result<(), CodecError> {
        let expected = field.vector_len_bytes(count);
        match self {
            Self::Vector(vector) if vector.len() != expected => {
                Err(CodecError::VectorLength { expected, given: vector.len() })
            }
            Self::RepairKey(..) if field != Field::Gf2 && field != Field::Gf256 => {
                Err(CodecError::RepairKeyField { given: field })
            }
            _ => Ok(()),
        }
    }

    /// Writes the coding vector over `count` symbols to the start of `out`, unused bits zero.
    fn expand(self, field: Field, count: usize, out: &mut [u8]) -> Result<(), CodecError> {
        match self {
            Self::Vector(vector) => {
                out[..vector.len()].copy_from_slice(vector);
                field.mask_unused(&mut out[..vector.len()], count);
                Ok(())
            }
            Self::Seed(seed) => field.expand_seed(seed, count, out),
            Self::RepairKey(key, density) => field.expand_repair_key(key, density, count, out),
        }
    }
}

/// Effect of a received symbol on a [`WindowDecoder`].
///
/// ```
/// use corridor_codec::{Field, WindowDecoder, WindowOutcome};
///
/// let mut decoder = WindowDecoder::new(Field::Gf2, 8, 4)?;
/// decoder.advance_to(10);
/// assert_eq!(decoder.add_source(9, b"nine")?, WindowOutcome::Stale);
/// assert_eq!(decoder.add_source(10, b"ten.")?, WindowOutcome::Innovative);
/// assert_eq!(decoder.add_source(10, b"ten.")?, WindowOutcome::Dependent);
/// assert_eq!(decoder.add_source(18, b"far.")?, WindowOutcome::Ahead);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOutcome {
    /// Innovative: it raised the rank by one.
    Innovative,
    /// Linearly dependent on the symbols already held; dropped.
    Dependent,
    /// It covers a symbol before the window; dropped.
    Stale,
    /// It would make the window too long; dropped. The window must be advanced first, which gives
    /// up the symbols missing at its beginning.
    Ahead,
}

/// Restores the id whose lowest 32 bits were sent as `low_bits`: of all such ids the one nearest to
/// `near`, an id known to be less than 2^31 away.
///
/// ```
/// use corridor_codec::widen_id;
///
/// assert_eq!(widen_id(3, 0xFFFF_FFFE), 0x1_0000_0003);
/// assert_eq!(widen_id(0xFFFF_FFFE, 0x1_0000_0003), 0xFFFF_FFFE);
/// assert_eq!(widen_id(7, 5), 7);
/// ```
pub fn widen_id(low_bits: u32, near: u64) -> u64 {
    let ahead = low_bits.wrapping_sub(near as u32);
    let id = if (ahead as i32) < 0 {
        near.checked_sub(u64::from(ahead.wrapping_neg()))
    } else {
        near.checked_add(ahead.into())
    };
    // At either end of the id range, the nearest one is on the other side only.
    id.unwrap_or((near & !u64::from(u32::MAX)) | u64::from(low_bits))
}

/// The ring of a window of that size, and the shape of what is in it.
fn ring_of(
    field: Field,
    window_size: usize,
    symbol_size_max: usize,
) -> Result<(Ring, Shape), CodecError> {
    if !(1..=MAX_WINDOW_SIZE).contains(&window_size) {
        return Err(CodecError::WindowSize { given: window_size });
    }
    let ring = Ring::new(window_size);
    Ok((ring, Shape::new(field, ring.slots(), symbol_size_max)?))
}

/// One more than the last id of a run.
fn end_of(first: u64, count: usize) -> Result<u64, CodecError> {
    first.checked_add(count as u64).ok_or(CodecError::IdRange { first, count })
}

/// Checks that a run is not empty, and within the window from `base` to before `end`.
fn check_run(first: u64, count: usize, base: u64, end: u64) -> Result<(), CodecError> {
    let run_end = end_of(first, count)?;
    if count == 0 || first < base || run_end > end {
        let (expected_first, expected_end) = (base, end);
        return Err(CodecError::OutsideWindow { expected_first, expected_end, first, count });
    }
    Ok(())
}
