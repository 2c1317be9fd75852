//! Memory in use, counted by the allocator: what the process has from the kernel is too coarse,
//! and is not given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// The system's allocator, and a count of what it has given and not got back.
struct Counting;

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "the trait of allocators is unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc`, and so from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Bytes allocated and not yet freed.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}
