//! Counts a thread's allocations for tests: their number, and the bytes allocated and not freed
//! while counting was on.

// Counting needs an allocator, which is unsafe to implement.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes allocated while counting, less those freed while counting.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

fn count(bytes: isize) {
    if RUNS.with(Cell::get) {
        HELD.with(|held| held.set(held.get() + bytes));
    }
}

// SAFETY: everything is delegated to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread so far.
pub fn allocations() -> usize {
    ALLOCATIONS.with(Cell::get)
}

/// Runs `run` with counting on.
pub fn counted<T>(run: impl FnOnce() -> T) -> T {
    RUNS.with(|runs| runs.set(true));
    let result = run();
    RUNS.with(|runs| runs.set(false));
    result
}

/// Bytes held by what was [`counted`].
pub fn held() -> isize {
    HELD.with(Cell::get)
}
