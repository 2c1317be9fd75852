//! Handles of the sliding-window coders.

use corridor_codec::{Coefficients, Density, WindowDecoder, WindowEncoder};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{
    CorridorStatus, ask, check_out, field, give, guard, handle, handle_mut, slice, slice_mut, take,
    write,
};

/// Encoder of a stream: holds the source symbols in the window, usually those not acknowledged yet,
/// and combines them.
pub struct CorridorWindowEncoder(pub(crate) WindowEncoder);

/// Progressive decoder, and recoder, of a stream of source symbols.
pub struct CorridorWindowDecoder(pub(crate) WindowDecoder);

/// Makes an encoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes, the
/// first with id `first`, over the field of order 2, 16 or 256. Allocates all memory.
///
/// # Safety
/// `out` is valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_new(
    field_order: u32,
    window_size: usize,
    symbol_size_max: usize,
    first: u64,
    out: *mut *mut CorridorWindowEncoder,
) -> CorridorStatus {
    guard(|| {
        check_out(out)?;
        let mut coder = WindowEncoder::new(field(field_order)?, window_size, symbol_size_max)?;
        coder.reset(first);
        // SAFETY: the caller's promise.
        unsafe { give(out, CorridorWindowEncoder(coder)) }
    })
}

/// Frees the handle; null is allowed.
///
/// # Safety
/// The handle is used for the last time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_free(handle: *mut CorridorWindowEncoder) {
    // SAFETY: the caller's promise.
    unsafe { take(handle) }
}

/// Appends a source symbol, and writes its id if `id_out` is not null.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_push(
    handle: *mut CorridorWindowEncoder,
    symbol: *const u8,
    symbol_len: usize,
    id_out: *mut u64,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let symbol = unsafe { slice(symbol, symbol_len)? };
        let id = coder.push(symbol)?;
        if !id_out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { write(id_out, id)? };
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Writes the combination of the `count` symbols from id `first` on with the given coding vector,
/// and its length in bytes. A buffer of `symbol_size_max` bytes is always long enough.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_encode(
    handle: *const CorridorWindowEncoder,
    first: u64,
    count: usize,
    vector: *const u8,
    vector_len: usize,
    out: *mut u8,
    out_len: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let vector = unsafe { slice(vector, vector_len)? };
        let given = Coefficients::Vector(vector);
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        check_out(len_out)?;
        let len = coder.encode(first, count, given, out)?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Writes the combination of the `count` symbols from id `first` on with the vector that the seed
/// expands to, and its length in bytes. A buffer of `symbol_size_max` bytes is always long enough.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_encode_seed(
    handle: *const CorridorWindowEncoder,
    first: u64,
    count: usize,
    seed: u32,
    out: *mut u8,
    out_len: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        let given = Coefficients::Seed(seed);
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        check_out(len_out)?;
        let len = coder.encode(first, count, given, out)?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Writes the combination of the `count` symbols from id `first` on with the vector that the
/// repair key of RFC 8681 expands to, over the field of order 2 or 256, and its length in bytes.
/// `density_threshold` is in 0..=15. A buffer of `symbol_size_max` bytes is always long enough.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_encode_repair_key(
    handle: *const CorridorWindowEncoder,
    first: u64,
    count: usize,
    repair_key: u16,
    density_threshold: u8,
    out: *mut u8,
    out_len: usize,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        let density = Density::new(density_threshold)?;
        let given = Coefficients::RepairKey(repair_key, density);
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        check_out(len_out)?;
        let len = coder.encode(first, count, given, out)?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Drops all symbols before `id`.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_advance_to(
    handle: *mut CorridorWindowEncoder,
    id: u64,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        coder.advance_to(id);
        Ok(CorridorStatus::Ok)
    })
}

/// Id of the first symbol held; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_base(handle: *const CorridorWindowEncoder) -> u64 {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.base())
    })
}

/// Id of the next symbol to be pushed; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_end(handle: *const CorridorWindowEncoder) -> u64 {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.end())
    })
}

/// Empties the window; the next symbol gets the id `first`.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_encoder_reset(
    handle: *mut CorridorWindowEncoder,
    first: u64,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        coder.reset(first);
        Ok(CorridorStatus::Ok)
    })
}

/// Makes a decoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes, from id
/// `first` on, over the field of order 2, 16 or 256. Allocates all memory.
///
/// # Safety
/// `out` is valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_new(
    field_order: u32,
    window_size: usize,
    symbol_size_max: usize,
    first: u64,
    out: *mut *mut CorridorWindowDecoder,
) -> CorridorStatus {
    guard(|| {
        check_out(out)?;
        let mut coder = WindowDecoder::new(field(field_order)?, window_size, symbol_size_max)?;
        coder.reset(first);
        // SAFETY: the caller's promise.
        unsafe { give(out, CorridorWindowDecoder(coder)) }
    })
}

/// Frees the handle; null is allowed.
///
/// # Safety
/// The handle is used for the last time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_free(handle: *mut CorridorWindowDecoder) {
    // SAFETY: the caller's promise.
    unsafe { take(handle) }
}

/// Adds source symbol `id`: innovative, dependent, stale or ahead.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_add_source(
    handle: *mut CorridorWindowDecoder,
    id: u64,
    symbol: *const u8,
    symbol_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let symbol = unsafe { slice(symbol, symbol_len)? };
        Ok(coder.add_source(id, symbol)?.into())
    })
}

/// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
/// given coding vector: innovative, dependent, stale or ahead.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_add_coded(
    handle: *mut CorridorWindowDecoder,
    first: u64,
    count: usize,
    vector: *const u8,
    vector_len: usize,
    payload: *const u8,
    payload_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        // SAFETY: the caller's promise.
        let vector = unsafe { slice(vector, vector_len)? };
        let given = Coefficients::Vector(vector);
        // SAFETY: the caller's promise.
        let payload = unsafe { slice(payload, payload_len)? };
        Ok(coder.add_coded(first, count, given, payload)?.into())
    })
}

/// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
/// vector that the seed expands to: innovative, dependent, stale or ahead.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_add_coded_seed(
    handle: *mut CorridorWindowDecoder,
    first: u64,
    count: usize,
    seed: u32,
    payload: *const u8,
    payload_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        let given = Coefficients::Seed(seed);
        // SAFETY: the caller's promise.
        let payload = unsafe { slice(payload, payload_len)? };
        Ok(coder.add_coded(first, count, given, payload)?.into())
    })
}

/// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
/// vector that the repair key of RFC 8681 expands to, over the field of order 2 or 256;
/// `density_threshold` is in 0..=15: innovative, dependent, stale or ahead.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_add_coded_repair_key(
    handle: *mut CorridorWindowDecoder,
    first: u64,
    count: usize,
    repair_key: u16,
    density_threshold: u8,
    payload: *const u8,
    payload_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        let density = Density::new(density_threshold)?;
        let given = Coefficients::RepairKey(repair_key, density);
        // SAFETY: the caller's promise.
        let payload = unsafe { slice(payload, payload_len)? };
        Ok(coder.add_coded(first, count, given, payload)?.into())
    })
}

/// Drops all symbols before `id`, and writes how many of them were not decoded if `missed_out` is
/// not null.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_advance_to(
    handle: *mut CorridorWindowDecoder,
    id: u64,
    missed_out: *mut u64,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        let missed = coder.advance_to(id);
        if !missed_out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { write(missed_out, missed)? };
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Writes the lowest decoded id that this function has not reported yet; `CORRIDOR_STATUS_NOTHING`
/// if there is none.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_poll_decoded(
    handle: *mut CorridorWindowDecoder,
    id_out: *mut u64,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        check_out(id_out)?;
        let id = coder.poll_decoded().ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe { write(id_out, id)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Returns a pointer to symbol `id`, if it is decoded; else `CORRIDOR_STATUS_NOTHING`. The bytes
/// stay valid until the handle is next passed to a function that takes it as non-const.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_symbol(
    handle: *const CorridorWindowDecoder,
    id: u64,
    symbol_out: *mut *const u8,
    len_out: *mut usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        check_out(symbol_out)?;
        check_out(len_out)?;
        let symbol = coder.symbol(id).ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe {
            write(symbol_out, symbol.as_ptr())?;
            write(len_out, symbol.len())?;
        }
        Ok(CorridorStatus::Ok)
    })
}

/// Writes a bitmap of missing symbols: bit `i % 8` (least significant first) of byte `i / 8` for id
/// `base + i`, as far as the buffer reaches.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_missing_bitmap(
    handle: *const CorridorWindowDecoder,
    out: *mut u8,
    out_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        coder.missing_bitmap(out);
        Ok(CorridorStatus::Ok)
    })
}

/// Writes a random combination of the symbols held that only cover the `count` symbols from id
/// `first` on: its coding vector over them, and its payload of `*len_out` bytes;
/// `CORRIDOR_STATUS_NOTHING` if there are none. Equal seeds draw the same combination: use a new
/// seed for each call.
///
/// # Safety
/// As above: the handle, and each pointer for its length or one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_recode(
    handle: *const CorridorWindowDecoder,
    first: u64,
    count: usize,
    seed: u64,
    vector_out: *mut u8,
    vector_len: usize,
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
        check_out(len_out)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let recoded = coder.recode(first, count, &mut rng, vector_out, payload_out)?;
        let recoded = recoded.ok_or(CorridorStatus::Nothing)?;
        // SAFETY: the caller's promise.
        unsafe { write(len_out, recoded.len)? };
        Ok(CorridorStatus::Ok)
    })
}

/// Id of the first symbol of the window; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_base(handle: *const CorridorWindowDecoder) -> u64 {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.base())
    })
}

/// One more than the highest id that any received symbol covers; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_end(handle: *const CorridorWindowDecoder) -> u64 {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.end())
    })
}

/// Id of the first symbol that is not decoded; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_in_order_end(
    handle: *const CorridorWindowDecoder,
) -> u64 {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.in_order_end())
    })
}

/// Rank: decoded symbols, plus coded symbols held; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_rank(
    handle: *const CorridorWindowDecoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.rank())
    })
}

/// Number of symbols in the window that are not decoded; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_missing_count(
    handle: *const CorridorWindowDecoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.missing_count())
    })
}

/// Number of innovative symbols needed to decode the whole window; 0 for null.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_deficit(
    handle: *const CorridorWindowDecoder,
) -> usize {
    ask(0, || {
        // SAFETY: the caller's promise.
        let coder = unsafe { &self::handle(handle)?.0 };
        Ok(coder.deficit())
    })
}

/// Clears the decoder; the window begins with `first`.
///
/// # Safety
/// As above: the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_window_decoder_reset(
    handle: *mut CorridorWindowDecoder,
    first: u64,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let coder = unsafe { &mut handle_mut(handle)?.0 };
        coder.reset(first);
        Ok(CorridorStatus::Ok)
    })
}
