//! Dequantisation to `f32`, compared with `half`'s slice conversions and a plain copy.
//!
//! `cargo bench --bench dequant`

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

use divan::counter::BytesCount;
use divan::{black_box, Bencher};
use half::slice::HalfFloatSliceExt;
use safetensors_zero::{dequant, Dtype};

/// Element counts: 1 MiB of output, which fits in cache, and 256 MiB, which does not.
const ELEMENTS: [usize; 2] = [1 << 18, 1 << 26];

fn main() {
    divan::main();
}

/// Returns deterministic bytes that take every value.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect()
}

fn widen(bencher: Bencher, dtype: Dtype, elements: usize, misalign: usize) {
    let bytes = bytes(elements * dtype.bitsize() / 8 + misalign);
    let mut out = vec![0.0; elements];
    bencher.counter(BytesCount::of_many::<f32>(elements)).bench_local(|| {
        dequant::dequant_into(dtype, black_box(&bytes[misalign..]), black_box(&mut out)).unwrap();
    });
}

macro_rules! dtypes {
    ($($name:ident: $dtype:ident,)*) => {$(
        #[divan::bench(args = ELEMENTS)]
        fn $name(bencher: Bencher, elements: usize) {
            widen(bencher, Dtype::$dtype, elements, 0);
        }
    )*};
}

dtypes! {
    bf16: BF16,
    f16: F16,
    f32_copied: F32,
    f64: F64,
    i8: I8,
    u8: U8,
    i16: I16,
    u16: U16,
    i32: I32,
    u32: U32,
    i64: I64,
    u64: U64,
    bool: BOOL,
    f8_e5m2: F8_E5M2,
    f8_e4m3: F8_E4M3,
    f8_e8m0: F8_E8M0,
    f8_e4m3fnuz: F8_E4M3FNUZ,
    f8_e5m2fnuz: F8_E5M2FNUZ,
    f6_e2m3: F6_E2M3,
    f6_e3m2: F6_E3M2,
    f4: F4,
}

#[divan::bench(args = ELEMENTS)]
fn f16_unaligned(bencher: Bencher, elements: usize) {
    widen(bencher, Dtype::F16, elements, 1);
}

#[divan::bench(args = ELEMENTS)]
fn bf16_unaligned(bencher: Bencher, elements: usize) {
    widen(bencher, Dtype::BF16, elements, 1);
}

#[divan::bench(args = ELEMENTS)]
fn peer_half_f16(bencher: Bencher, elements: usize) {
    let halves: Vec<half::f16> =
        bytes(elements * 2).chunks(2).map(|c| half::f16::from_le_bytes([c[0], c[1]])).collect();
    let mut out = vec![0.0; elements];
    bencher.counter(BytesCount::of_many::<f32>(elements)).bench_local(|| {
        black_box(&halves).convert_to_f32_slice(black_box(&mut out));
    });
}

#[divan::bench(args = ELEMENTS)]
fn peer_half_bf16(bencher: Bencher, elements: usize) {
    let halves: Vec<half::bf16> =
        bytes(elements * 2).chunks(2).map(|c| half::bf16::from_le_bytes([c[0], c[1]])).collect();
    let mut out = vec![0.0; elements];
    bencher.counter(BytesCount::of_many::<f32>(elements)).bench_local(|| {
        black_box(&halves).convert_to_f32_slice(black_box(&mut out));
    });
}

#[divan::bench(args = ELEMENTS)]
fn peer_memcpy(bencher: Bencher, elements: usize) {
    let from = vec![1.0_f32; elements];
    let mut out = vec![0.0; elements];
    bencher.counter(BytesCount::of_many::<f32>(elements)).bench_local(|| {
        black_box(&mut out).copy_from_slice(black_box(&from));
    });
}
