//! Promise: nothing in the core allocates: parsing, reading values, planning files, and errors.
//!
//! The allocator counts per thread, so tests don't disturb each other.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use std::fmt::Write;

use safetensors_zero::{
    encode, Dtype, Frame, Header, Index, IndexLimits, Limits, Plan, PlanOptions, PlanTensor,
    Reader, SafeTensors, Shape, TensorIndexer, TensorSlot,
};
use support::allocator::{allocations, Counting};
use support::corpus;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A writer that discards its text.
struct Sink;

impl Write for Sink {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        Ok(())
    }
}

/// Calls everything that reads a file in memory.
fn use_file(
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

/// Calls everything that reads through a source. Returns whether the file is accepted.
fn use_source(file: &[u8], text: &mut [u8], slots: &mut [TensorSlot], out: &mut [f32]) -> bool {
    if Frame::read_from(file, &Limits::DEFAULT).is_err() {
        return false;
    }
    let Ok(reader) = Reader::open(file, text, slots, &Limits::DEFAULT) else { return false };
    let mut buffer = [0; 64];
    for tensor in reader.tensors() {
        tensor.stats(&mut buffer).ok();
        let len = (tensor.elements() as usize).min(out.len());
        tensor.dequant_range(0, &mut out[..len], &mut buffer).ok();
        if let Ok(slice) = tensor.slice(&[TensorIndexer::stepped(.., 2).unwrap()]) {
            let len = (slice.elements() as usize).min(out.len());
            slice.dequant_into(&mut out[..len], &mut buffer).ok();
        }
    }
    true
}

/// Plans a file, writes its header, and encodes numbers of each kind.
fn use_plan(tensors: &mut [PlanTensor<'_>], out: &mut [u8]) {
    let mut metadata = [("key", "value"), ("a", "\n")];
    let plan = Plan::new(tensors, Some(&mut metadata), &PlanOptions::DEFAULT).unwrap();
    plan.copy_to(out).unwrap();
    plan.write_header(&mut Sink).unwrap();
    encode::from_f64(Dtype::BF16, &[1.5; 9], &mut out[..18]).unwrap();
    encode::from_f32(Dtype::F16, &[1.5; 9], &mut out[..18]).unwrap();
    encode::from_i64(Dtype::I32, &[-1; 9], &mut out[..36]).unwrap();
    let error = Plan::new(&mut [tensors[0], tensors[0]], None, &PlanOptions::DEFAULT).unwrap_err();
    write!(Sink, "{error}").unwrap();
}

#[test]
fn files_in_memory_are_read_without_allocating() {
    assert_eq!(allocations(|| drop(vec![0])), 1, "the allocator counts");
    let mut slots = vec![TensorSlot::EMPTY; 1000];
    let mut out = vec![0.0; 1000];
    let mut bytes = vec![0; 1000];
    let mut accepted = 0;
    for case in corpus::files() {
        let file = case.bytes();
        for limits in [Limits::DEFAULT, Limits::STRICT, Limits::TIGHT] {
            let count = allocations(|| use_file(&file, &mut slots, &mut out, &mut bytes, &limits));
            assert_eq!(count, 0, "{}", case.id);
        }
        accepted += u32::from(case.default == "accept");
    }
    assert_eq!(accepted, 74);
}

#[test]
fn sources_plans_and_indexes_do_not_allocate() {
    let (mut text, mut slots) = (vec![0; 100_000], vec![TensorSlot::EMPTY; 1000]);
    let (mut out, mut bytes) = (vec![0.0; 1000], vec![0; 1000]);
    let mut read = 0;
    for case in corpus::files() {
        let file = case.bytes();
        let mut accepted = false;
        let count = allocations(|| accepted = use_source(&file, &mut text, &mut slots, &mut out));
        assert_eq!(count, 0, "{}", case.id);
        read += u32::from(accepted);
    }
    assert!(read > 60, "{read}");

    let shape = Shape::new(&[2, 3]);
    let mut tensors: Vec<_> = ["b", "a\u{1}", ""]
        .into_iter()
        .zip([Dtype::U8, Dtype::F4, Dtype::F4])
        .map(|(name, dtype)| PlanTensor::new(name, dtype, shape))
        .collect();
    assert_eq!(allocations(|| use_plan(&mut tensors, &mut bytes)), 0);

    let index =
        br#"{"metadata":{"total_size":3},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}}"#;
    let use_index = || {
        let index = Index::parse(index, &IndexLimits::DEFAULT).unwrap();
        let shard = index.shard_of("b").unwrap();
        write!(Sink, "{shard} {:?} {}", index.total_size(), index.iter().count()).unwrap();
        let error = Index::parse(b"{\"weight_map\":[]}", &IndexLimits::STRICT).unwrap_err();
        write!(Sink, "{error}").unwrap();
    };
    assert_eq!(allocations(use_index), 0);
}
