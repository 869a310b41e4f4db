//! Promise: dequantising to `f32` is exact if `f32` can hold the value. Other values are rounded
//! once, to the nearest `f32`, ties to even.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

#[allow(dead_code)]
mod support;

use safetensors_zero::{dequant, Dtype};
use support::naive;

fn widen(dtype: Dtype, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![f32::MAX; bytes.len() * 8 / dtype.bitsize()];
    dequant::dequant_into(dtype, bytes, &mut out).unwrap();
    out
}

/// Two buffers of every 16-bit pattern. The second has one byte before the patterns, so that they
/// are at odd addresses.
fn all_16_bits() -> [Vec<u8>; 2] {
    let even: Vec<u8> = (0..=u16::MAX).flat_map(|bits| bits.to_le_bytes()).collect();
    let odd = [&[0], even.as_slice()].concat();
    [even, odd]
}

#[test]
fn converts_every_f16() {
    let [even, odd] = all_16_bits();
    for bytes in [&even[..], &odd[1..]] {
        let out = widen(Dtype::F16, bytes);
        for bits in 0..=u16::MAX {
            let (found, expected) = (out[usize::from(bits)], half::f16::from_bits(bits).to_f32());
            if expected.is_nan() {
                // Sign and payload are kept, but a signalling NaN can become quiet.
                let kept =
                    u32::from(bits & 0x8000) << 16 | 0x7f80_0000 | u32::from(bits & 0x3ff) << 13;
                assert_eq!(found.to_bits() & !0x0040_0000, kept & !0x0040_0000, "{bits:#06x}");
                assert!(found.is_nan());
            } else {
                assert_eq!(found.to_bits(), expected.to_bits(), "{bits:#06x}");
            }
        }
    }
}

#[test]
fn converts_every_bf16() {
    let [even, odd] = all_16_bits();
    for bytes in [&even[..], &odd[1..]] {
        let out = widen(Dtype::BF16, bytes);
        for bits in 0..=u16::MAX {
            let found = out[usize::from(bits)];
            assert_eq!(found.to_bits(), u32::from(bits) << 16);
            let expected = half::bf16::from_bits(bits).to_f32();
            assert!(naive::same(found, expected), "{bits:#06x}");
        }
    }
}

#[test]
fn converts_every_16_bit_integer() {
    let [even, _] = all_16_bits();
    let (unsigned, signed) = (widen(Dtype::U16, &even), widen(Dtype::I16, &even));
    for bits in 0..=u16::MAX {
        assert_eq!(unsigned[usize::from(bits)], f32::from(bits));
        assert_eq!(signed[usize::from(bits)], f32::from(bits as i16));
    }
}

#[test]
fn converts_every_8_bit_code() {
    let codes: Vec<u8> = (0..=255).collect();
    for dtype in Dtype::ALL.into_iter().filter(|dtype| dtype.bitsize() == 8) {
        let out = widen(dtype, &codes);
        for code in codes.iter() {
            let (found, expected) =
                (out[usize::from(*code)], naive::value(dtype, u64::from(*code)));
            assert!(naive::same(found, expected), "{dtype} {code:#04x}: {found} {expected}");
        }
    }
    // A few known values, in case the naive implementation has the same bug.
    let landmarks = [
        (Dtype::F8_E4M3, 0x7e, 448.0),
        (Dtype::F8_E4M3, 0x01, 0.001_953_125),
        (Dtype::F8_E4M3FNUZ, 0x7f, 240.0),
        (Dtype::F8_E4M3FNUZ, 0x01, 0.000_976_562_5),
        (Dtype::F8_E5M2, 0x7b, 57_344.0),
        (Dtype::F8_E5M2, 0x7c, f32::INFINITY),
        (Dtype::F8_E5M2, 0xfc, f32::NEG_INFINITY),
        (Dtype::F8_E5M2FNUZ, 0x7f, 57_344.0),
        (Dtype::F8_E5M2FNUZ, 0x01, 7.629_394_5e-6),
        (Dtype::F8_E8M0, 0x7f, 1.0),
        (Dtype::F8_E8M0, 0x00, 5.877_472e-39),
        (Dtype::F8_E8M0, 0xfe, 1.701_411_8e38),
        (Dtype::BOOL, 0x02, 1.0),
        (Dtype::I8, 0x80, -128.0),
    ];
    for (dtype, code, expected) in landmarks {
        assert_eq!(widen(dtype, &[code]), [expected], "{dtype} {code:#04x}");
    }
    assert!(widen(Dtype::F8_E4M3, &[0x7f, 0xff]).iter().all(|nan| nan.is_nan()));
    assert!(widen(Dtype::F8_E4M3FNUZ, &[0x80]).iter().all(|nan| nan.is_nan()));
    assert!(widen(Dtype::F8_E5M2FNUZ, &[0x80]).iter().all(|nan| nan.is_nan()));
    assert!(widen(Dtype::F8_E8M0, &[0xff]).iter().all(|nan| nan.is_nan()));
}

#[test]
fn converts_every_sub_byte_code_at_every_position() {
    for (dtype, bits, largest) in
        [(Dtype::F4, 4, 6.0), (Dtype::F6_E2M3, 6, 7.5), (Dtype::F6_E3M2, 6, 28.0)]
    {
        let codes = 1_u32 << bits;
        let mut seen = Vec::new();
        for code in 0..codes {
            for position in 0..24 / bits {
                // The other codes of the group are the complement of this one.
                let all =
                    (0..24 / bits).map(|i| if i == position { code } else { code ^ (codes - 1) });
                let group = all.enumerate().map(|(i, code)| code << (i * bits)).sum::<u32>();
                let out = widen(dtype, &group.to_le_bytes()[..3]);
                let expected = naive::value(dtype, u64::from(code));
                assert!(naive::same(out[position], expected), "{dtype} {code:#x} at {position}");
                seen.push(out[position]);
            }
        }
        assert!(seen.iter().all(|value| value.is_finite() && value.abs() <= largest));
        assert!(seen.contains(&largest) && seen.contains(&-largest));
    }
}

/// Integers around each power of two, around the `f32` values and halfway points just above it, and
/// their negations.
fn edges() -> Vec<u64> {
    let mut edges = vec![0, u64::MAX];
    for power in 0..64 {
        let one = 1_u64 << power;
        for step in [0, one >> 24, one >> 23, (one >> 24) * 3, (one >> 23) * 3] {
            for near in [-2_i64, -1, 0, 1, 2] {
                edges.push(one.wrapping_add(step).wrapping_add_signed(near));
                edges.push(one.wrapping_neg().wrapping_sub(step).wrapping_add_signed(near));
            }
        }
    }
    edges
}

/// Rounds an integer to the nearest `f32`, ties to even, by its bits alone.
fn round(value: i128) -> f32 {
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    let bits = 128 - magnitude.leading_zeros();
    let drop = bits.saturating_sub(24);
    let kept = magnitude >> drop;
    let rest = magnitude - (kept << drop);
    let half = if drop == 0 { 1 } else { 1_u128 << (drop - 1) };
    let up = drop > 0 && (rest > half || (rest == half && kept & 1 == 1));
    let rounded = (kept + u128::from(up)) as f32 * 2_f32.powi(drop as i32);
    if value < 0 {
        -rounded
    } else {
        rounded
    }
}

#[test]
fn integers_round_to_nearest_even() {
    let edges = edges();
    let bytes: Vec<u8> = edges.iter().flat_map(|edge| edge.to_le_bytes()).collect();
    let (unsigned, signed) = (widen(Dtype::U64, &bytes), widen(Dtype::I64, &bytes));
    for (i, edge) in edges.iter().enumerate() {
        assert_eq!(unsigned[i].to_bits(), round(i128::from(*edge)).to_bits(), "{edge}");
        let edge = *edge as i64;
        assert_eq!(signed[i].to_bits(), round(i128::from(edge)).to_bits(), "{edge}");
    }
    let bytes: Vec<u8> = edges.iter().flat_map(|edge| (*edge as u32).to_le_bytes()).collect();
    let (unsigned, signed) = (widen(Dtype::U32, &bytes), widen(Dtype::I32, &bytes));
    for (i, edge) in edges.iter().enumerate() {
        let edge = *edge as u32;
        assert_eq!(unsigned[i].to_bits(), round(i128::from(edge)).to_bits(), "{edge}");
        assert_eq!(signed[i].to_bits(), round(i128::from(edge as i32)).to_bits(), "{edge}");
    }
}

#[test]
fn f64_rounds_to_nearest_even() {
    let next = |value: f32| f32::from_bits(value.to_bits() + 1);
    let halfway = |value: f32| (f64::from(value) + f64::from(next(value))) / 2.0;
    let nudge = |value: f64, by: i64| f64::from_bits(value.to_bits().wrapping_add_signed(by));
    let mut cases: Vec<(f64, f32)> = Vec::new();
    for even in [0.0, 1.0, 2.0, f32::MIN_POSITIVE, f32::from_bits(2), f32::from_bits(0x7f7f_fffe)] {
        let odd = next(even);
        // A tie rounds to even. The `f64` next to it, on the odd neighbour's side, rounds to odd.
        cases.extend([(halfway(even), even), (nudge(halfway(even), 1), odd)]);
        if odd.to_bits() < f32::MAX.to_bits() {
            cases.extend([(halfway(odd), next(odd)), (nudge(halfway(odd), -1), odd)]);
        }
    }
    let over = f64::from(f32::MAX) + f64::from(f32::MAX) * 2_f64.powi(-25);
    cases.extend([
        (f64::from(f32::MAX), f32::MAX),
        (nudge(over, -1), f32::MAX),
        (f64::MAX, f32::INFINITY),
        (f64::INFINITY, f32::INFINITY),
        (f64::MIN_POSITIVE, 0.0),
        (5e-324, 0.0),
    ]);
    for (value, expected) in cases {
        for (value, expected) in [(value, expected), (-value, -expected)] {
            let found = widen(Dtype::F64, &value.to_le_bytes())[0];
            assert_eq!(found.to_bits(), expected.to_bits(), "{value:e}: {found:e}");
        }
    }
    for nan in [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
        let found = widen(Dtype::F64, &nan.to_le_bytes())[0];
        assert!(found.is_nan() && found.is_sign_negative() == nan.is_sign_negative());
    }
}

#[test]
fn f32_bits_are_kept() {
    let bits = [0, 1, 0x8000_0000, 0x7f80_0000, 0x7f80_0001, 0xffbf_ffff, 0x7fc0_1234, 0x0040_0000];
    let bytes: Vec<u8> = bits.iter().flat_map(|bits: &u32| bits.to_le_bytes()).collect();
    assert!(widen(Dtype::F32, &bytes).iter().map(|value| value.to_bits()).eq(bits));
}

#[test]
fn ranges_fill_exactly_the_output() {
    for dtype in Dtype::ALL.into_iter().filter(|dtype| dtype.has_f32()) {
        let bytes: Vec<u8> = (0..96_u8).map(|i| i.wrapping_mul(37)).collect();
        let elements = bytes.len() * 8 / dtype.bitsize();
        let all = naive::widen(dtype, &bytes);
        for first in 0..elements {
            for count in [0, 1, 2, 3, 4, 5, 7, elements - first] {
                if first + count > elements {
                    continue;
                }
                let mut out = vec![f32::MAX; count];
                dequant::dequant_range(dtype, &bytes, first as u64, &mut out).unwrap();
                let right = out.iter().zip(&all[first..]).all(|(a, b)| naive::same(*a, *b));
                assert!(right, "{dtype} {first}+{count}");
            }
        }
    }
}
