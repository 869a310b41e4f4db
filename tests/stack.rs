//! Promise: the core needs less than 2 KiB of stack in optimised builds.
//!
//! The test fills the stack below a call with a pattern, then finds the deepest byte that the call
//! changed.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]
#![allow(unsafe_code, reason = "reads the stack below the stack pointer")]

#[allow(dead_code)]
mod support;

use std::hint::black_box;

use safetensors_zero::{Dtype, Header, Limits, SafeTensors, TensorSlot, TensorView};
use support::corpus;

const AREA: usize = 256 << 10;
const PATTERN: u8 = 0xa5;

/// Fills the stack below the caller with the pattern. Returns the address of the filled area.
#[inline(never)]
fn fill() -> usize {
    let mut area = [PATTERN; AREA];
    black_box(&mut area).as_ptr() as usize
}

/// The number of bytes at the deep end of the area that still have the pattern.
#[inline(never)]
fn untouched(area: usize) -> usize {
    let start = area as *const u8;
    // Nothing below the stack pointer is in use, but the memory is still mapped.
    (0..AREA).take_while(|at| unsafe { start.add(*at).read_volatile() } == PATTERN).count()
}

/// The bytes of stack that a call uses below its caller.
#[inline(never)]
fn depth(call: &mut dyn FnMut()) -> usize {
    let area = fill();
    call();
    AREA - untouched(area)
}

fn bound() -> usize {
    if cfg!(debug_assertions) {
        // Without optimisation, every temporary has its own stack slot.
        128 << 10
    } else {
        2 << 10
    }
}

#[test]
fn depth_measures_known_calls() {
    let mut shallow = || assert_eq!(black_box(1), 1);
    #[inline(never)]
    fn deep() {
        black_box(&mut [1_u8; 5000]);
    }
    let (shallow, deep) = (depth(&mut shallow), depth(&mut deep));
    assert!(shallow < 1000, "{shallow}");
    assert!((5000..6500).contains(&deep), "{deep}");
}

#[test]
fn parsing_uses_little_stack() {
    let mut slots = vec![TensorSlot::EMPTY; 1000];
    let mut deepest = 0;
    for case in corpus::files() {
        let file = case.bytes();
        let parse = depth(&mut || {
            black_box(SafeTensors::parse(&file, &mut slots).is_ok());
        });
        let mut calls = vec![parse];
        if let Ok((header, _)) = Header::of_file(&file, &Limits::DEFAULT) {
            let mut accepted = [false; 3];
            calls.push(depth(&mut || accepted[0] = header.scan().finish().is_ok()));
            calls.push(depth(&mut || accepted[1] = header.find("t").is_ok()));
            calls.push(depth(&mut || accepted[2] = header.count().is_ok()));
            black_box(accepted);
        }
        deepest = deepest.max(*calls.iter().max().unwrap());
        assert!(deepest < bound(), "{}: {calls:?}", case.id);
    }
    println!("parsing needs {deepest} bytes of stack");
}

#[test]
fn views_use_little_stack() {
    let data = vec![0; 4096];
    let mut out = vec![0.0; 1024];
    let mut deepest = 0;
    for dtype in Dtype::ALL.into_iter().filter(|dtype| dtype.has_f32()) {
        let shape = [8, 1024 / 8];
        let bytes = &data[1..1 + 1024 * dtype.bitsize() / 8 * usize::from(dtype.bitsize() < 32)];
        let bytes = if bytes.is_empty() { &data[..] } else { bytes };
        let Ok(view) = TensorView::new(dtype, &shape, bytes) else { continue };
        let widen = depth(&mut || view.dequant_into(&mut out).unwrap());
        let stats = depth(&mut || assert!(black_box(view.stats()).is_ok()));
        let slice = depth(&mut || {
            let slice = view.slice(&[(1..5).into(), (4..8).into()]).unwrap();
            slice.dequant_into(&mut out[..16]).unwrap();
        });
        deepest = deepest.max(widen).max(stats).max(slice);
        assert!(deepest < bound(), "{dtype}: {widen} {stats} {slice}");
    }
    println!("views need {deepest} bytes of stack");
}
