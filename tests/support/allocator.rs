//! A counting allocator with a limit per thread. A test that uses it declares it as its global
//! allocator.

#![allow(unsafe_code, reason = "`GlobalAlloc` is an unsafe trait")]

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

/// Counts an allocation. Returns false if it exceeds the limit.
fn acquire(bytes: usize) -> bool {
    CALLS.set(CALLS.get() + 1);
    let held = HELD.get().wrapping_add(bytes);
    // This thread can free what another one allocated, so the count can wrap below zero.
    if held > LIMIT.get() && held < usize::MAX / 2 {
        return false;
    }
    HELD.set(held);
    PEAK.set(PEAK.get().max(if held > usize::MAX / 2 { 0 } else { held }));
    true
}

fn release(bytes: usize) {
    HELD.set(HELD.get().wrapping_sub(bytes));
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if acquire(layout.size()) {
            unsafe { System.alloc(layout) }
        } else {
            null_mut()
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        release(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block can exist at the same time.
        if !acquire(size) {
            return null_mut();
        }
        release(layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the peak number of bytes that a call holds, and its result.
pub fn peak<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.replace(0);
    PEAK.set(0);
    let result = run();
    HELD.set(HELD.get().wrapping_add(before));
    (PEAK.get(), result)
}

/// Runs a call that can hold at most `limit` bytes.
pub fn within<T>(limit: usize, run: impl FnOnce() -> T) -> T {
    let before = HELD.replace(0);
    LIMIT.set(limit);
    let result = run();
    LIMIT.set(usize::MAX);
    HELD.set(HELD.get().wrapping_add(before));
    result
}

/// Counts the allocations of a call.
pub fn allocations(run: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    run();
    CALLS.get() - before
}
