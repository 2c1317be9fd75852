//! Handles of the block coders.

use corridor_codec::{BlockDecoder, BlockEncoder, Recoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{
    CorridorStatus, ask, check_out, field, give, guard, handle, handle_mut, slice, slice_mut, take,
    write,
};

/// Encoder of one block: holds its source symbols, and combines them.
pub struct CorridorBlockEncoder(pub(crate) BlockEncoder);

/// Progressive decoder of one block.
pub struct CorridorBlockDecoder(pub(crate) BlockDecoder);

/// Recoder of one block, for a helper or relay that does not decode it.
pub struct CorridorBlockRecoder(pub(crate) Recoder);

/// Makes an encoder of blocks of up to `block_size` symbols of up to `symbol_size_max` bytes, over
/// the field of order 2, 16 or 256. Allocates all memory.
///
/// # Safety
/// `out` is valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_new(
    field_order: u32,
    block_size: usize,
    symbol_size_max: usize,
    out: *mut *mut CorridorBlockEncoder,
) -> CorridorStatus {
    guard(|| {
        check_out(out)?;
        let coder = BlockEncoder::new(field(field_order)?, block_size, symbol_size_max)?;
        // SAFETY: the caller's promise.
        unsafe { give(out, CorridorBlockEncoder(coder)) }
    })
}

/// Frees the handle; null is allowed.
///
/// # Safety
/// The handle is used for the last time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_free(handle: *mut CorridorBlockEncoder) {
    // SAFETY: the caller's promise.
    unsafe { take(handle) }
}

/// Appends a source symbol to the block, and writes its index if `index_out` is not null.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_push(
    handle: *mut CorridorBlockEncoder,
    symbol: *const u8,
    symbol_len: usize,
    index_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let symbol = unsafe { slice(symbol, symbol_len)? };
        let index = coder.push(symbol)?;
        if !index_out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { write(index_out, index)? };
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Writes the combination of the first `count` symbols with the given coding vector, and its length
/// in bytes. A buffer of `symbol_size_max` bytes is always long enough.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_encode(
    handle: *const CorridorBlockEncoder,
    vector: *const u8,
    vector_len: usize,
    count: usize,
    out: *mut u8,
    out_len: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let (vector, out) = unsafe { (slice(vector, vector_len)?, slice_mut(out, out_len)?) };
        check_out(len_out)?;
        let len = coder.encode(vector, count, out)?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Number of source symbols in the block so far; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_count(
    handle: *const CorridorBlockEncoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.count())
    })
}

/// Clears the block for the next one; keeps the memory.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_encoder_clear(
    handle: *mut CorridorBlockEncoder,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        coder.clear();
        Ok(CorridorStatus::Ok)
    })
}

/// Makes a decoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes, over the
/// field of order 2, 16 or 256. Allocates all memory.
///
/// # Safety
/// `out` is valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_new(
    field_order: u32,
    block_size: usize,
    symbol_size_max: usize,
    out: *mut *mut CorridorBlockDecoder,
) -> CorridorStatus {
    guard(|| {
        check_out(out)?;
        let coder = BlockDecoder::new(field(field_order)?, block_size, symbol_size_max)?;
        // SAFETY: the caller's promise.
        unsafe { give(out, CorridorBlockDecoder(coder)) }
    })
}

/// Frees the handle; null is allowed.
///
/// # Safety
/// The handle is used for the last time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_free(handle: *mut CorridorBlockDecoder) {
    // SAFETY: the caller's promise.
    unsafe { take(handle) }
}

/// Adds source symbol `index`: `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_add_source(
    handle: *mut CorridorBlockDecoder,
    index: usize,
    symbol: *const u8,
    symbol_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let symbol = unsafe { slice(symbol, symbol_len)? };
        Ok(coder.add_source(index, symbol)?.into())
    })
}

/// Adds a coded symbol, the combination of the first `count` symbols with the given coding vector:
/// `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_add_coded(
    handle: *mut CorridorBlockDecoder,
    vector: *const u8,
    vector_len: usize,
    count: usize,
    payload: *const u8,
    payload_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let (vector, payload) =
            unsafe { (slice(vector, vector_len)?, slice(payload, payload_len)?) };
        Ok(coder.add_coded(vector, count, payload)?.into())
    })
}

/// Writes a random combination of all symbols held: its coding vector over the first `*count_out`
/// symbols, and its payload of `*len_out` bytes. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a
/// buffer is too short: the vector length of the block size, and `symbol_size_max`, always suffice.
/// Equal seeds draw the same combination: use a new seed for each call.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_recode(
    handle: *const CorridorBlockDecoder,
    seed: u64,
    vector_out: *mut u8,
    vector_len: usize,
    count_out: *mut usize,
    payload_out: *mut u8,
    payload_len: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vector_out = unsafe { slice_mut(vector_out, vector_len)? };
        // SAFETY: the caller's promise.
        let payload_out = unsafe { slice_mut(payload_out, payload_len)? };
        check_out(count_out)?;
        check_out(len_out)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let recoded = coder.recode(&mut rng, vector_out, payload_out);
        let recoded = recoded.ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe {
            write(count_out, recoded.count)?;
            write(len_out, recoded.len)?;
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Rank: number of innovative symbols held; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_rank(handle: *const CorridorBlockDecoder) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.rank())
    })
}

/// One more than the highest index seen so far; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_known_count(
    handle: *const CorridorBlockDecoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.known_count())
    })
}

/// Number of decoded symbols; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_decoded_count(
    handle: *const CorridorBlockDecoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.decoded_count())
    })
}

/// Whether all symbols of the block are decoded; false for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_is_complete(
    handle: *const CorridorBlockDecoder,
) -> bool {
    ask(false, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.is_complete())
    })
}

/// Returns a pointer to symbol `index`, if it is decoded; else `CORRIDOR_STATUS_NOTHING`. The bytes
/// stay valid until the handle is next passed to a function that takes it as non-const.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_symbol(
    handle: *const CorridorBlockDecoder,
    index: usize,
    symbol_out: *mut *const u8,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        check_out(symbol_out)?;
        check_out(len_out)?;
        let symbol = coder.symbol(index).ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe {
            write(symbol_out, symbol.as_ptr())?;
            write(len_out, symbol.len())?;
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Writes a bitmap of decoded symbols: bit `i % 8` (least significant first) of byte `i / 8` for
/// symbol `i`, as far as the buffer reaches.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_decoded_bitmap(
    handle: *const CorridorBlockDecoder,
    out: *mut u8,
    out_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        coder.decoded_bitmap(out);
        Ok(CorridorStatus::Ok)
    })
}

/// Clears the block for the next one; keeps the memory.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_decoder_reset(
    handle: *mut CorridorBlockDecoder,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        coder.reset();
        Ok(CorridorStatus::Ok)
    })
}

/// Makes a recoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes, over the
/// field of order 2, 16 or 256. Allocates all memory.
///
/// # Safety
/// `out` is valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_new(
    field_order: u32,
    block_size: usize,
    symbol_size_max: usize,
    out: *mut *mut CorridorBlockRecoder,
) -> CorridorStatus {
    guard(|| {
        check_out(out)?;
        let coder = Recoder::new(field(field_order)?, block_size, symbol_size_max)?;
        // SAFETY: the caller's promise.
        unsafe { give(out, CorridorBlockRecoder(coder)) }
    })
}

/// Frees the handle; null is allowed.
///
/// # Safety
/// The handle is used for the last time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_free(handle: *mut CorridorBlockRecoder) {
    // SAFETY: the caller's promise.
    unsafe { take(handle) }
}

/// Adds source symbol `index`: `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_add_source(
    handle: *mut CorridorBlockRecoder,
    index: usize,
    symbol: *const u8,
    symbol_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let symbol = unsafe { slice(symbol, symbol_len)? };
        Ok(coder.add_source(index, symbol)?.into())
    })
}

/// Adds a coded symbol, the combination of the first `count` symbols with the given coding vector:
/// `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_add_coded(
    handle: *mut CorridorBlockRecoder,
    vector: *const u8,
    vector_len: usize,
    count: usize,
    payload: *const u8,
    payload_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let (vector, payload) =
            unsafe { (slice(vector, vector_len)?, slice(payload, payload_len)?) };
        Ok(coder.add_coded(vector, count, payload)?.into())
    })
}

/// Writes a random combination of all symbols held: its coding vector over the first `*count_out`
/// symbols, and its payload of `*len_out` bytes. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a
/// buffer is too short: the vector length of the block size, and `symbol_size_max`, always suffice.
/// Equal seeds draw the same combination: use a new seed for each call.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_recode(
    handle: *const CorridorBlockRecoder,
    seed: u64,
    vector_out: *mut u8,
    vector_len: usize,
    count_out: *mut usize,
    payload_out: *mut u8,
    payload_len: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vector_out = unsafe { slice_mut(vector_out, vector_len)? };
        // SAFETY: the caller's promise.
        let payload_out = unsafe { slice_mut(payload_out, payload_len)? };
        check_out(count_out)?;
        check_out(len_out)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let recoded = coder.recode(&mut rng, vector_out, payload_out);
        let recoded = recoded.ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe {
            write(count_out, recoded.count)?;
            write(len_out, recoded.len)?;
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Rank: number of innovative symbols held; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_rank(handle: *const CorridorBlockRecoder) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.rank())
    })
}

/// One more than the highest index seen so far; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_known_count(
    handle: *const CorridorBlockRecoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.known_count())
    })
}

/// Clears the block for the next one; keeps the memory.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_block_recoder_reset(
    handle: *mut CorridorBlockRecoder,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        coder.reset();
        Ok(CorridorStatus::Ok)
    })
}
