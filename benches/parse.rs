//! Parsing, counting and look-ups, compared with the crate `safetensors`.
//!
//! `cargo bench --bench parse`

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use divan::counter::{BytesCount, ItemsCount};
use divan::{black_box, Bencher};
use safetensors_zero::{Header, Limits, SafeTensors, TensorSlot};
use support::Spelling;

const TENSORS: [usize; 5] = [104, 300, 3_000, 30_000, 100_000];

fn main() {
    divan::main();
}

fn header_bytes(file: &[u8]) -> BytesCount {
    BytesCount::new(u64::from_le_bytes(*file.first_chunk().unwrap()))
}

#[divan::bench(args = TENSORS)]
fn parse(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    let mut slots = vec![TensorSlot::EMPTY; tensors];
    bencher
        .counter(header_bytes(&file))
        .bench_local(|| SafeTensors::parse(black_box(&file), &mut slots).unwrap().len());
}

#[divan::bench(args = TENSORS)]
fn deserialize(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    bencher
        .counter(header_bytes(&file))
        .bench(|| SafeTensors::deserialize(black_box(&file)).unwrap());
}

#[divan::bench(args = TENSORS)]
fn reference_deserialize(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    bencher
        .counter(header_bytes(&file))
        .bench(|| safetensors::SafeTensors::deserialize(black_box(&file)).unwrap());
}

#[divan::bench(args = TENSORS)]
fn count(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    let (header, _) = Header::of_file(&file, &Limits::DEFAULT).unwrap();
    bencher.counter(header_bytes(&file)).bench(|| black_box(&header).count().unwrap());
}

#[divan::bench(args = TENSORS)]
fn find_without_slots(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    let (header, _) = Header::of_file(&file, &Limits::DEFAULT).unwrap();
    let name = "model.layers.7.mlp.up_proj.weight";
    bencher
        .counter(header_bytes(&file))
        .bench(|| black_box(&header).find(black_box(name)).unwrap());
}

/// Returns the names in an order that caches can't predict.
fn shuffled_names(tensors: usize) -> Vec<String> {
    let file = support::llama(tensors, Spelling::Compact);
    let parsed = SafeTensors::deserialize(&file).unwrap();
    let mut names: Vec<String> = parsed.names().map(|name| name.to_string()).collect();
    support::shuffle(&mut names);
    names
}

#[divan::bench(args = TENSORS)]
fn look_up(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    let parsed = SafeTensors::deserialize(&file).unwrap();
    let names = shuffled_names(tensors);
    bencher.counter(ItemsCount::new(tensors)).bench(|| {
        for name in &names {
            black_box(parsed.tensor(black_box(name)).unwrap());
        }
    });
}

#[divan::bench(args = TENSORS)]
fn reference_look_up(bencher: Bencher, tensors: usize) {
    let file = support::llama(tensors, Spelling::Compact);
    let parsed = safetensors::SafeTensors::deserialize(&file).unwrap();
    let names = shuffled_names(tensors);
    bencher.counter(ItemsCount::new(tensors)).bench(|| {
        for name in &names {
            black_box(parsed.tensor(black_box(name)).unwrap());
        }
    });
}
