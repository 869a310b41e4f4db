//! Promise: the core needs little stack: less than 2 KiB where the compiler optimises.
//!
//! The stack below a call is painted, and looked at after the call for the deepest place where the
//! paint is gone.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]
#![allow(unsafe_code, reason = "looks at the stack")]

#[allow(dead_code)]
mod support;

use std::hint::black_box;

use safetensors_zero::{Dtype, Header, Limits, SafeTensors, TensorSlot, TensorView};
use support::corpus;

const AREA: usize = 256 << 10;
const PAINT: u8 = 0xa5;

/// Paints the stack below its caller, and tells where.
#[inline(never)]
fn paint() -> usize {
    let mut area = [PAINT; AREA];
    black_box(&mut area).as_ptr() as usize
}

/// Bytes at the deep end of the area that still have their paint.
#[inline(never)]
fn painted(area: usize) -> usize {
    let start = area as *const u8;
    // Below the stack pointer nothing is alive, but the memory is there.
    (0..AREA).take_while(|at| unsafe { start.add(*at).read_volatile() } == PAINT).count()
}

/// How deep a call goes below its caller, in bytes.
#[inline(never)]
fn depth(call: &mut dyn FnMut()) -> usize {
    let area = paint();
    call();
    AREA - painted(area)
}

fn bound() -> usize {
    if cfg!(debug_assertions) {
        // Without the optimiser every temporary has a place of its own.
        128 << 10
    } else {
        2 << 10
    }
}

#[test]
fn the_measure_measures() {
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
fn parsing_is_shallow() {
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
fn views_are_shallow() {
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
