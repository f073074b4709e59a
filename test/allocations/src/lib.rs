//! Counts the allocations of a thread and the bytes that they hold, for tests and examples that
//! bound them.
//!
//! ```
//! use allocations::{Counting, count};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = count();
//! let list = vec![1, 2, 3];
//! assert_eq!(count() - before, 1);
//! # drop(list);
//! ```
//!
//! Each thread has a count of its own, because the one that runs the tests allocates whenever it
//! likes. Is not: a profiler.

#![warn(missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static FREED: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that the allocations of this thread hold now; 0 unless [`Counting`] is the allocator.
/// What one thread makes and another one frees counts against both, so a test that asks for
/// bytes does all of its work in one thread.
pub fn held_bytes() -> i64 {
    HELD.get()
}

/// The most that [`held_bytes`] has been since [`begin_peak`].
pub fn peak_bytes() -> i64 {
    PEAK.get()
}

/// Forgets the peak so far.
pub fn begin_peak() {
    PEAK.set(HELD.get());
}

fn note(bytes: i64) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

/// Allocations of this thread so far, those included that make something larger; 0 unless
/// [`Counting`] is the allocator.
pub fn count() -> u64 {
    COUNT.get()
}

/// Allocations that this thread has freed so far; 0 unless [`Counting`] is the allocator.
pub fn freed_count() -> u64 {
    FREED.get()
}

/// The system's allocator, counted.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged. The count is a constant at
// first and has no destructor, so that it neither allocates nor is ever gone.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        note(layout.size() as i64);
        // SAFETY: the caller's promise about `layout` is the one that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        note(size as i64 - layout.size() as i64);
        // SAFETY: `pointer` came from `System` with this layout, and the caller's promise about
        // `size` is the one that `System` wants.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.set(FREED.get() + 1);
        note(-(layout.size() as i64));
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
