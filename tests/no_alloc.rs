//! Promise: nothing in the core allocates, from the file's bytes to its numbers and its errors.
//!
//! The allocator counts, on this test's own thread.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]
#![allow(unsafe_code, reason = "an allocator is one")]

#[allow(dead_code)]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;

use safetensors_zero::{Header, Limits, SafeTensors, TensorIndexer, TensorSlot};
use support::corpus;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often the closure allocates.
fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

/// Takes text and keeps none of it.
struct Sink;

impl Write for Sink {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        Ok(())
    }
}

/// Everything that can be asked of a file.
fn use_all(
    file: &[u8],
    slots: &mut [TensorSlot],
    out: &mut [f32],
    bytes: &mut [u8],
    limits: &Limits,
) {
    let tensors = match SafeTensors::parse_with(file, slots, limits) {
        Ok(tensors) => tensors,
        Err(error) => {
            write!(Sink, "{error} {} {error:?}", error.in_file(file)).unwrap();
            return;
        }
    };
    SafeTensors::count(file, limits).unwrap();
    write!(Sink, "{tensors:?} {:?}", tensors.table().alignment()).unwrap();
    for (key, value) in tensors.metadata().into_iter().flatten() {
        write!(Sink, "{key} {value:?}").unwrap();
        value.copy_to(bytes).ok();
        let _ = tensors.metadata().unwrap().get("format");
    }
    tensors.tensor("no such name").unwrap_err();
    for (name, view) in &tensors {
        let name = name.copy_to(bytes).unwrap_or("too long");
        tensors.tensor(name).ok();
        write!(Sink, "{view:?} {}", view.shape()).unwrap();
        let _ = view.shape().to_array::<2>();
        view.as_slice::<f32>().ok();
        view.stats().ok();
        let len = (view.elements() as usize).min(out.len());
        view.dequant_range(0, &mut out[..len]).ok();
        view.dequant_rows(0..1, &mut out[..len]).ok();
        let every_other = TensorIndexer::stepped(.., 2).unwrap();
        if let Ok(slice) = view.slice(&[every_other]) {
            for piece in slice.iter().take(10) {
                assert!(!piece.is_empty());
            }
            slice.copy_to(&mut bytes[..(slice.byte_len() as usize).min(1000)]).ok();
            slice.dequant_into(&mut out[..(slice.elements() as usize).min(len)]).ok();
        }
    }
    let (header, data) = Header::of_file(file, limits).unwrap();
    header.scan().finish().unwrap();
    if let Ok(found) = header.find("t") {
        header.view(&found.info, data).unwrap();
    }
}

#[test]
fn the_core_does_not_allocate() {
    assert_eq!(allocations(|| drop(vec![0])), 1, "allocations are counted");
    let mut slots = vec![TensorSlot::EMPTY; 1000];
    let mut out = vec![0.0; 1000];
    let mut bytes = vec![0; 1000];
    let mut accepted = 0;
    for case in corpus::files() {
        let file = case.bytes();
        for limits in [Limits::DEFAULT, Limits::STRICT, Limits::TIGHT] {
            let count = allocations(|| use_all(&file, &mut slots, &mut out, &mut bytes, &limits));
            assert_eq!(count, 0, "{}", case.id);
        }
        accepted += u32::from(case.default == "accept");
    }
    assert_eq!(accepted, 74);
}
