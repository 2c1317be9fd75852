//! Memory in use, counted by the allocator: what the process has from the kernel is too coarse,
//! and is not given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The most that has been in use since [`restart_peak`].
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// The system's allocator, and a count of what it has given and not got back.
struct Counting;

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "the trait of allocators is unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc`, and so from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// From here on the peak counts anew.
pub fn restart_peak() {
    PEAK_BYTES.store(live_bytes(), Ordering::Relaxed);
}

/// The most bytes in use at a time since the last [`restart_peak`].
pub fn peak_bytes() -> usize {
    PEAK_BYTES.load(Ordering::Relaxed)
}

/// Bytes allocated and not yet freed.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}
