//! Batches of symbols: faster than single symbols, as the kernels share what they read.

use std::array;

use corridor_codec::{Coefficients, Field, Recoded};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{
    CorridorBlockDecoder, CorridorBlockEncoder, CorridorBlockRecoder, CorridorStatus,
    CorridorWindowDecoder, CorridorWindowEncoder, check_out, guard, handle, slice, slice_mut,
    write,
};

/// Maximum number of symbols per call.
pub const CORRIDOR_BATCH_MAX: usize = 64;

type Outs<'a> = [&'a mut [u8]; CORRIDOR_BATCH_MAX];

/// Makes `symbol_count` coded symbols of the first `count` symbols: writes the one with the i-th
/// coding vector of `vectors`, which are concatenated, to `out + i * stride`. All symbols of a
/// batch are padded with zeros to the longest of them, `*len_out` bytes; a stride of
/// `symbol_size_max` bytes always suffices. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else
/// `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value; `out` for `symbol_count`
/// times `stride` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_encode_batch(
    handle: *const CorridorBlockEncoder,
    vectors: *const u8,
    vectors_len: usize,
    count: usize,
    symbol_count: usize,
    out: *mut u8,
    stride: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vectors = unsafe { slice(vectors, vectors_len)? };
        // SAFETY: the caller's promise.
        let mut outs = unsafe { outs(out, symbol_count, stride)? };
        check_out(len_out)?;
        let len = coder.encode_batch(vectors, count, &mut outs[..symbol_count])?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Draws `symbol_count` combinations of all symbols held: writes their coding vectors over the
/// first `*count_out` symbols one after the other, and their payloads, all `*len_out` bytes long,
/// to `payloads_out + i * stride`. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a buffer is too
/// short: vector lengths of the block size, and a stride of `symbol_size_max`, always suffice.
/// Equal seeds draw the same combinations: use a new seed for each call. `symbol_count` is at most
/// `CORRIDOR_BATCH_MAX`, else `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value; `payloads_out` for
/// `symbol_count` times `stride` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_recode_batch(
    handle: *const CorridorBlockRecoder,
    seed: u64,
    vectors_out: *mut u8,
    vectors_len: usize,
    count_out: *mut usize,
    symbol_count: usize,
    payloads_out: *mut u8,
    stride: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vectors = unsafe { slice_mut(vectors_out, vectors_len)? };
        // SAFETY: the caller's promise.
        let mut outs = unsafe { outs(payloads_out, symbol_count, stride)? };
        check_out(count_out)?;
        check_out(len_out)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let recoded = coder.recode_batch(&mut rng, vectors, &mut outs[..symbol_count]);
        // SAFETY: the caller's promise.
        unsafe { tell(recoded, count_out, len_out) }
    })
}

/// Draws combinations of all symbols held, like `corridor_block_recoder_recode_batch`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value; `payloads_out` for
/// `symbol_count` times `stride` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_recode_batch(
    handle: *const CorridorBlockDecoder,
    seed: u64,
    vectors_out: *mut u8,
    vectors_len: usize,
    count_out: *mut usize,
    symbol_count: usize,
    payloads_out: *mut u8,
    stride: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vectors = unsafe { slice_mut(vectors_out, vectors_len)? };
        // SAFETY: the caller's promise.
        let mut outs = unsafe { outs(payloads_out, symbol_count, stride)? };
        check_out(count_out)?;
        check_out(len_out)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let recoded = coder.recode_batch(&mut rng, vectors, &mut outs[..symbol_count]);
        // SAFETY: the caller's promise.
        unsafe { tell(recoded, count_out, len_out) }
    })
}

/// Makes `symbol_count` coded symbols of the `count` symbols from id `first` on: writes the one
/// with the i-th coding vector of `vectors`, which are concatenated, to `out + i * stride`. All
/// symbols of a batch are padded with zeros to the longest of them, `*len_out` bytes; a stride of
/// `symbol_size_max` bytes always suffices. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else
/// `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value; `out` for `symbol_count`
/// times `stride` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_encode_batch(
    handle: *const CorridorWindowEncoder,
    first: u64,
    count: usize,
    vectors: *const u8,
    vectors_len: usize,
    symbol_count: usize,
    out: *mut u8,
    stride: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vectors = unsafe { slice(vectors, vectors_len)? };
        // SAFETY: the caller's promise.
        let mut outs = unsafe { outs(out, symbol_count, stride)? };
        check_out(len_out)?;
        let size = vector_len(coder.field(), count, symbol_count, vectors_len)?;
        let mut given = [Coefficients::Vector(&[]); CORRIDOR_BATCH_MAX];
        for (given, vector) in given.iter_mut().zip(vectors.chunks_exact(size)) {
            *given = Coefficients::Vector(vector);
        }
        let given = &given[..symbol_count];
        let len = coder.encode_batch(first, count, given, &mut outs[..symbol_count])?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// The same with the vectors that the seeds `seed`, `seed + 1` and so on expand to; after the
/// highest seed comes 0.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value; `out` for `symbol_count`
/// times `stride` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_encode_batch_seeds(
    handle: *const CorridorWindowEncoder,
    first: u64,
    count: usize,
    seed: u32,
    symbol_count: usize,
    out: *mut u8,
    stride: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let mut outs = unsafe { outs(out, symbol_count, stride)? };
        check_out(len_out)?;
        let given: [Coefficients<'_>; CORRIDOR_BATCH_MAX] =
            array::from_fn(|place| Coefficients::Seed(seed.wrapping_add(place as u32)));
        let given = &given[..symbol_count];
        let len = coder.encode_batch(first, count, given, &mut outs[..symbol_count])?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Draws `symbol_count` combinations of the symbols held that only cover the `count` symbols from
/// id `first` on: writes their coding vectors over this run one after the other, and their
/// payloads, all `*len_out` bytes long, to `payloads_out + i * stride`. `CORRIDOR_STATUS_NOTHING`
/// if there is nothing to combine. Equal seeds draw the same combinations: use a new seed for each
/// call. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value; `payloads_out` for
/// `symbol_count` times `stride` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_recode_batch(
    handle: *const CorridorWindowDecoder,
    first: u64,
    count: usize,
    seed: u64,
    vectors_out: *mut u8,
    vectors_len: usize,
    symbol_count: usize,
    payloads_out: *mut u8,
    stride: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vectors = unsafe { slice_mut(vectors_out, vectors_len)? };
        // SAFETY: the caller's promise.
        let mut outs = unsafe { outs(payloads_out, symbol_count, stride)? };
        check_out(len_out)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let outs = &mut outs[..symbol_count];
        let recoded = coder.recode_batch(first, count, &mut rng, vectors, outs)?;
        let recoded = recoded.ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, recoded.len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Splits a buffer into `count` parts of `stride` bytes, and empty ones.
///
/// # Safety
/// `out` is valid for reads and writes of `count * stride` bytes, and not used elsewhere, while
/// the result is; or null.
unsafe fn outs<'a>(out: *mut u8, count: usize, stride: usize) -> Result<Outs<'a>, CorridorStatus> {
    if count > CORRIDOR_BATCH_MAX {
        return Err(CorridorStatus::CountOutOfRange);
    }
    let len = count.checked_mul(stride).ok_or(CorridorStatus::LengthTooLong)?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice_mut(out, len)? };
    let mut outs: Outs<'a> = array::from_fn(|_| &mut [][..]);
    if stride > 0 {
        outs.iter_mut().zip(bytes.chunks_exact_mut(stride)).for_each(|(to, part)| *to = part);
    }
    Ok(outs)
}

/// Length of each of several vectors over `count` symbols, given their total length.
fn vector_len(
    field: Field,
    count: usize,
    vectors: usize,
    given: usize,
) -> Result<usize, CorridorStatus> {
    let size = field.vector_len_bytes(count);
    match size.checked_mul(vectors) {
        _ if size == 0 => Err(CorridorStatus::OutsideWindow),
        Some(expected) if expected == given => Ok(size),
        _ => Err(CorridorStatus::VectorLength),
    }
}

/// # Safety
/// Both are null or valid for a write.
unsafe fn tell(
    recoded: Option<Recoded>,
    count_out: *mut usize,
    len_out: *mut usize,
) -> Result<CorridorStatus, CorridorStatus> {
    let recoded = recoded.ok_or(CorridorStatus::Nothing)?;
    // SAFETY: the caller's promise.
    unsafe {
        write(count_out, recoded.count)?;
        write(len_out, recoded.len)?;
    }
    Ok(CorridorStatus::Ok)
}
