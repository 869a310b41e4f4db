//! An allocator that counts what the thread takes, and refuses what goes beyond a limit. A test that uses
//! it makes one its global allocator.

#![allow(unsafe_code, reason = "an allocator is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

pub struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Counts bytes that are taken, unless they are too many.
fn take(bytes: usize) -> bool {
    CALLS.set(CALLS.get() + 1);
    let held = HELD.get().wrapping_add(bytes);
    // What another thread took may be given back here.
    if held > LIMIT.get() && held < usize::MAX / 2 {
        return false;
    }
    HELD.set(held);
    PEAK.set(PEAK.get().max(if held > usize::MAX / 2 { 0 } else { held }));
    true
}

fn give_back(bytes: usize) {
    HELD.set(HELD.get().wrapping_sub(bytes));
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if take(layout.size()) {
            unsafe { System.alloc(layout) }
        } else {
            null_mut()
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old bytes and the new ones may be there at a time.
        if !take(size) {
            return null_mut();
        }
        give_back(layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The bytes that are held at the peak of a call, and its result.
pub fn peak<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.replace(0);
    PEAK.set(0);
    let result = run();
    HELD.set(HELD.get().wrapping_add(before));
    (PEAK.get(), result)
}

/// As `peak`, with no more memory than this.
pub fn within<T>(limit: usize, run: impl FnOnce() -> T) -> T {
    let before = HELD.replace(0);
    LIMIT.set(limit);
    let result = run();
    LIMIT.set(usize::MAX);
    HELD.set(HELD.get().wrapping_add(before));
    result
}

/// How often a call allocates.
pub fn allocations(run: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    run();
    CALLS.get() - before
}
