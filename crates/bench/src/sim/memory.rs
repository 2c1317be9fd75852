//! Memory in use, counted by the allocator: the process's memory from the kernel is too coarse, and
//! is not returned.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The peak since [`restart_peak`].
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// The system allocator, with a count of outstanding bytes.
struct Counting;

// SAFETY: every call is passed on unchanged to the system allocator, which keeps the contract.
#[expect(unsafe_code, reason = "the trait of allocators is unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc`, and so from the system allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Resets the peak.
pub fn restart_peak() {
    PEAK_BYTES.store(live_bytes(), Ordering::Relaxed);
}

/// Peak number of bytes in use since the last [`restart_peak`].
pub fn peak_bytes() -> usize {
    PEAK_BYTES.load(Ordering::Relaxed)
}

/// Bytes allocated and not yet freed.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}
