//! C interface of `corridor-codec`: opaque handles, caller-owned buffers, status codes.
//!
//! `include/corridor_codec.h` is generated from this crate and checked in. Rules for all functions,
//! besides their own documentation:
//!
//! - A handle comes from the `_new` function of its type, and is valid until passed to `_free`.
//!   It may be used by any thread, but by one at a time.
//! - A pointer with a length points to that many readable (or, as `out`, writable) bytes that
//!   overlap no other argument. It may be null if the length is zero; any other null is
//!   `CORRIDOR_STATUS_NULL_POINTER`.
//! - An error changes no state and writes nothing.
//! - No panic reaches the caller.

mod batch;
mod block;
mod status;
mod window;

use std::panic::{AssertUnwindSafe, catch_unwind};

use corridor_codec::{Density, Field};

pub use batch::*;
pub use block::*;
pub use status::*;
pub use window::*;

/// Version of the binary interface (ABI). It changes when programs must be recompiled.
#[unsafe(no_mangle)]
pub extern "C" fn corridor_abi_version() -> u32 {
    1
}

/// Length in bytes of a coding vector over `count` symbols; 0 for an invalid field order.
///
/// Coefficients are packed starting with the least significant bit of the first byte: one bit each
/// for the field of order 2, four for 16 (polynomial 0x13), eight for 256 (0x11D).
#[unsafe(no_mangle)]
pub extern "C" fn corridor_vector_len(field_order: u32, count: usize) -> usize {
    field(field_order).map_or(0, |field| field.vector_len_bytes(count))
}

/// Expands a seed into a coding vector over `count` symbols. Equal seeds give equal vectors on
/// every machine.
///
/// # Safety
/// `out` is valid for writes of `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_expand_seed(
    field_order: u32,
    seed: u32,
    count: usize,
    out: *mut u8,
    out_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        field(field_order)?.expand_seed(seed, check_count(count)?, out)?;
        Ok(CorridorStatus::Ok)
    })
}

/// Expands a repair key of RFC 8681 into a coding vector over `count` symbols, over the field of
/// order 2 or 256; `density_threshold` is in 0..=15.
///
/// # Safety
/// `out` is valid for writes of `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn corridor_expand_repair_key(
    field_order: u32,
    repair_key: u16,
    density_threshold: u8,
    count: usize,
    out: *mut u8,
    out_len: usize,
) -> CorridorStatus {
    guard(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { slice_mut(out, out_len)? };
        let density = Density::new(density_threshold)?;
        field(field_order)?.expand_repair_key(repair_key, density, check_count(count)?, out)?;
        Ok(CorridorStatus::Ok)
    })
}

type Outcome = Result<CorridorStatus, CorridorStatus>;

/// Runs the body of a function, and turns a panic in it into a status.
fn guard(body: impl FnOnce() -> Outcome) -> CorridorStatus {
    // After a panic, a handle is as the panic left it: useless, but safe.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status) | Err(status)) => status,
        Err(_) => CorridorStatus::Panic,
    }
}

/// Like [`guard`], for queries: a null handle, or a panic, gives `otherwise`.
fn ask<T>(otherwise: T, body: impl FnOnce() -> Result<T, CorridorStatus>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => answer,
        _ => otherwise,
    }
}

fn field(order: u32) -> Result<Field, CorridorStatus> {
    let fields = [Field::Gf2, Field::Gf16, Field::Gf256];
    fields.into_iter().find(|field| field.order() == order).ok_or(CorridorStatus::UnknownField)
}

/// Checks that no more symbols are covered than any vector can.
fn check_count(count: usize) -> Result<usize, CorridorStatus> {
    let count_max = corridor_codec::MAX_BLOCK_SIZE.max(corridor_codec::MAX_WINDOW_SIZE);
    if count <= count_max { Ok(count) } else { Err(CorridorStatus::CountOutOfRange) }
}

/// Stores a new coder behind the caller's pointer.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn give<T>(out: *mut *mut T, coder: T) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { write(out, Box::into_raw(Box::new(coder)))? };
    Ok(CorridorStatus::Ok)
}

/// Takes a coder back, to free it; null is ignored.
///
/// # Safety
/// `coder` is null, or came from [`give`] and is used for the last time.
unsafe fn take<T>(coder: *mut T) {
    if !coder.is_null() {
        // SAFETY: it was made by `Box::into_raw` of this type, and is not used again.
        let coder = unsafe { Box::from_raw(coder) };
        ask((), || {
            drop(coder);
            Ok(())
        });
    }
}

/// # Safety
/// `handle` is null or valid for reads while the result is used.
unsafe fn handle<'a, T>(handle: *const T) -> Result<&'a T, CorridorStatus> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or(CorridorStatus::NullPointer)
}

/// # Safety
/// `handle` is null or valid for reads and writes, and not used elsewhere, while the result is.
unsafe fn handle_mut<'a, T>(handle: *mut T) -> Result<&'a mut T, CorridorStatus> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_mut() }.ok_or(CorridorStatus::NullPointer)
}

/// # Safety
/// `bytes` is valid for reads of `len` bytes while the result is used, or null.
unsafe fn slice<'a>(bytes: *const u8, len: usize) -> Result<&'a [u8], CorridorStatus> {
    if len == 0 {
        return Ok(&[]);
    }
    check_pointer(bytes, len)?;
    // SAFETY: not null, no longer than an object can be, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(bytes, len) })
}

/// # Safety
/// `bytes` is valid for reads and writes of `len` bytes, and not used elsewhere, while the result
/// is; or null.
unsafe fn slice_mut<'a>(bytes: *mut u8, len: usize) -> Result<&'a mut [u8], CorridorStatus> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_pointer(bytes, len)?;
    // SAFETY: not null, no longer than an object can be, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(bytes, len) })
}

fn check_pointer(bytes: *const u8, len: usize) -> Result<(), CorridorStatus> {
    match isize::try_from(len) {
        _ if bytes.is_null() => Err(CorridorStatus::NullPointer),
        Ok(_) => Ok(()),
        Err(_) => Err(CorridorStatus::LengthTooLong),
    }
}

/// Checks that a value can be written, before a coder is changed.
fn check_out<T>(out: *mut T) -> Result<(), CorridorStatus> {
    if out.is_null() { Err(CorridorStatus::NullPointer) } else { Ok(()) }
}

/// # Safety
/// `out` is null or valid for a write.
unsafe fn write<T>(out: *mut T, value: T) -> Result<(), CorridorStatus> {
    check_out(out)?;
    // SAFETY: not null, and the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(guard(|| panic!("on purpose")), CorridorStatus::Panic);
        assert_eq!(ask(7, || panic!("on purpose")), 7);
    }

    #[test]
    fn wild_lengths_are_refused() {
        let byte = &mut 0_u8 as *mut u8;
        // SAFETY: such a length is refused before anything is read.
        let status = unsafe { corridor_expand_seed(2, 1, 8, byte, usize::MAX) };
        assert_eq!(status, CorridorStatus::LengthTooLong);
        // SAFETY: null is refused.
        let status = unsafe { corridor_expand_seed(2, 1, 8, std::ptr::null_mut(), 1) };
        assert_eq!(status, CorridorStatus::NullPointer);
        // SAFETY: no byte is read or written.
        let status = unsafe { corridor_expand_seed(2, 1, usize::MAX, std::ptr::null_mut(), 0) };
        assert_eq!(status, CorridorStatus::CountOutOfRange);
    }
}
