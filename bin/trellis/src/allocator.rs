//! The allocator, which knows how many bytes are in use.

use libmimalloc_sys::{
    mi_collect, mi_free, mi_malloc, mi_option_set, mi_option_t, mi_realloc, mi_zalloc,
};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Rows, programs and replies are many small allocations; the C library's allocator took 15 % of a
/// shard's time under TPC-C.
pub(crate) struct Counted;

/// Counts of bytes, each for some of the threads: one for all would be passed between cores with
/// every allocation. A count alone means nothing, since a thread frees what another has made.
const COUNTS: usize = 32;

#[repr(align(128))]
struct Count(AtomicI64);

static IN_USE: [Count; COUNTS] = [const { Count(AtomicI64::new(0)) }; COUNTS];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Index of this thread's count.
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn add(bytes: i64) {
    // A thread that ends frees its last memory without one.
    let own = OWN.try_with(|own| {
        if own.get() == usize::MAX {
            own.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        own.get()
    });
    IN_USE[own.unwrap_or(0) % COUNTS]
        .0
        .fetch_add(bytes, Ordering::Relaxed);
}

/// Bytes that are allocated and not freed.
pub(crate) fn allocated_bytes() -> u64 {
    let counts = IN_USE.iter().map(|count| count.0.load(Ordering::Relaxed));
    counts.sum::<i64>().max(0) as u64
}

/// `mi_option_arena_purge_mult` of the library: how many seconds freed pages are kept before the
/// thread that frees or allocates next gives them back to the system.
const SECONDS_KEPT: mi_option_t = 24;

/// Leaves it to [`give_back`] to give freed pages back: a shard that did it stood still for up to
/// 95 ms behind a statement that had freed 400 MB. For the beginning of the program, when it has
/// one thread.
pub(crate) fn keep_pages() {
    // SAFETY: no other thread reads or sets options.
    unsafe { mi_option_set(SECONDS_KEPT, 100) }
}

/// Makes this process do without huge pages. The system clears 2 MiB at the first use of one, which
/// takes milliseconds, and keeps all of it as long as a part is in use: a node that had reached its
/// limit could not go on deleting, because what was deleted did not go back.
///
/// # Errors
/// Those of the system.
pub(crate) fn without_huge_pages() -> nix::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_thp_disable(true)?;
    Ok(())
}

/// Gives memory back to the system: pages that all threads have freed, and what this one holds for
/// later. It takes milliseconds. A thread that has never taken memory gives none back.
pub(crate) fn give_back() {
    // SAFETY: no pointers are involved.
    unsafe { mi_collect(true) }
}

/// Alignment of every block of the allocator. Asked for aligned blocks, it takes one that is larger
/// by the alignment unless the size is a power of two: 48 bytes would come from blocks of 64.
const BLOCK_ALIGN: usize = 8;

/// Whether a block that gets smaller must move: mimalloc leaves it where it is down to half of its
/// size, and a list that is cut to its length would take twice what it counts.
fn shrinks(before: usize, after: usize) -> bool {
    before >= 1_024 && after < before - before / 8
}

/// The first `size` bytes of a block in a new one; the old one is freed.
///
/// # Safety
/// The block is one of this allocator, and has at least `size` bytes.
unsafe fn moved(pointer: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise; two blocks never overlap.
    unsafe {
        let new: *mut u8 = mi_malloc(size).cast();
        if !new.is_null() {
            core::ptr::copy_nonoverlapping(pointer, new, size);
            mi_free(pointer.cast());
        }
        new
    }
}

// SAFETY: every call goes to mimalloc, whose blocks are aligned to words; the counts do not touch
// memory that is allocated.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        if layout.align() <= BLOCK_ALIGN {
            // SAFETY: any size may be asked for; a block is aligned as the layout asks.
            return unsafe { mi_malloc(layout.size()) }.cast();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        if layout.align() <= BLOCK_ALIGN {
            // SAFETY: as above.
            return unsafe { mi_zalloc(layout.size()) }.cast();
        }
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        if layout.align() <= BLOCK_ALIGN {
            if shrinks(layout.size(), size) {
                // SAFETY: the new block has `size` bytes, the old one more; both are ours.
                return unsafe { moved(pointer, size) };
            }
            // SAFETY: the pointer is a block of this allocator, as the caller promises.
            return unsafe { mi_realloc(pointer.cast(), size) }.cast();
        }
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_hold_is_counted_and_what_they_free_is_not() {
        const BYTES: usize = 64 << 20;
        let before = allocated_bytes();
        let made = std::thread::spawn(|| vec![1_u8; BYTES]).join();
        let made = made.expect("nothing panics there");
        let held = allocated_bytes() - before;
        // Tests beside this one allocate and free a little, too.
        let about = BYTES as u64 * 9 / 10..BYTES as u64 * 11 / 10;
        assert!(about.contains(&held), "{held}");
        drop(made);
        let left = allocated_bytes().saturating_sub(before);
        assert!(left < BYTES as u64 / 10, "{left}");
    }

    /// The number of the option is that of this version of the library.
    #[test]
    fn freed_pages_are_kept_for_a_second_by_default() {
        const PURGE_DELAY: mi_option_t = 15;
        // SAFETY: no pointers are involved.
        let get = |option| unsafe { libmimalloc_sys::mi_option_get(option) };
        let (delay_ms, times) = (get(PURGE_DELAY), get(SECONDS_KEPT));
        assert_eq!((delay_ms, times), (1_000, 1));
    }
}
