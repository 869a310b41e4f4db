//! Slow reference implementations of the library's fast paths: floats by definition, slices by
//! listing elements.

use safetensors_zero::Dtype;

/// Returns the elements of a tensor as `f32`, gathered bit by bit.
pub fn widen(dtype: Dtype, data: &[u8]) -> Vec<f32> {
    let bits = dtype.bitsize();
    (0..data.len() * 8 / bits)
        .map(|i| {
            let bit = |k: usize| u64::from(data[(i * bits + k) / 8] >> ((i * bits + k) % 8) & 1);
            value(dtype, (0..bits).map(|k| bit(k) << k).sum())
        })
        .collect()
}

/// Returns an element as `f32`. Its bits are the lowest ones of `code`.
pub fn value(dtype: Dtype, code: u64) -> f32 {
    match dtype {
        Dtype::BOOL => f32::from(u8::from(code != 0)),
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => code as f32,
        Dtype::I8 => code as u8 as i8 as f32,
        Dtype::I16 => code as u16 as i16 as f32,
        Dtype::I32 => code as u32 as i32 as f32,
        Dtype::I64 => code as i64 as f32,
        Dtype::F32 => f32::from_bits(code as u32),
        Dtype::BF16 => f32::from_bits((code as u32) << 16),
        Dtype::F64 => f64::from_bits(code) as f32,
        Dtype::F16 => small(code, 5, 10, 15, Some(Kind::Ieee)),
        Dtype::F8_E5M2 => small(code, 5, 2, 15, Some(Kind::Ieee)),
        Dtype::F8_E4M3 => small(code, 4, 3, 7, Some(Kind::LargestIsNan)),
        Dtype::F8_E4M3FNUZ => small(code, 4, 3, 8, Some(Kind::NegativeZeroIsNan)),
        Dtype::F8_E5M2FNUZ => small(code, 5, 2, 16, Some(Kind::NegativeZeroIsNan)),
        Dtype::F6_E2M3 => small(code, 2, 3, 1, None),
        Dtype::F6_E3M2 => small(code, 3, 2, 3, None),
        Dtype::F4 => small(code, 2, 1, 1, None),
        Dtype::F8_E8M0 if code == 0xff => f32::NAN,
        Dtype::F8_E8M0 => 2_f64.powi(code as i32 - 127) as f32,
        _ => panic!("{dtype} has no f32"),
    }
}

#[derive(PartialEq)]
enum Kind {
    Ieee,
    LargestIsNan,
    NegativeZeroIsNan,
}

/// Returns the value of a small float, computed from its definition.
fn small(code: u64, exponent_bits: u32, mantissa_bits: u32, bias: i32, kind: Option<Kind>) -> f32 {
    let exponent = (code >> mantissa_bits) as i32 & ((1 << exponent_bits) - 1);
    let mantissa = (code & ((1 << mantissa_bits) - 1)) as f64 / f64::from(1 << mantissa_bits);
    let negative = code >> (exponent_bits + mantissa_bits) & 1 == 1;
    let largest = exponent == (1 << exponent_bits) - 1;
    let all_set = largest && mantissa == 1.0 - 1.0 / f64::from(1 << mantissa_bits);
    let magnitude = match kind {
        Some(Kind::Ieee) if largest && mantissa == 0.0 => f64::INFINITY,
        Some(Kind::Ieee) if largest => f64::NAN,
        Some(Kind::LargestIsNan) if all_set => f64::NAN,
        Some(Kind::NegativeZeroIsNan) if negative && exponent == 0 && mantissa == 0.0 => {
            return f32::NAN
        }
        _ if exponent == 0 => mantissa * 2_f64.powi(1 - bias),
        _ => (1.0 + mantissa) * 2_f64.powi(exponent - bias),
    };
    let magnitude = magnitude as f32;
    // The sign is set in the bits because a NaN has one too.
    if negative {
        f32::from_bits(magnitude.to_bits() | 1 << 31)
    } else {
        f32::from_bits(magnitude.to_bits() & !(1 << 31))
    }
}

/// Checks whether two numbers have the same bits. NaNs only need the same sign.
pub fn same(a: f32, b: f32) -> bool {
    if a.is_nan() && b.is_nan() {
        a.is_sign_negative() == b.is_sign_negative()
    } else {
        a.to_bits() == b.to_bits()
    }
}

/// The indexes that a slice selects in one dimension.
#[derive(Debug, Clone)]
pub struct Pick {
    pub indexes: Vec<u64>,
    pub kept: bool,
}

/// Returns the row-major positions of a slice's elements, in order.
pub fn elements(shape: &[u64], picks: &[Pick]) -> Vec<u64> {
    let mut elements = vec![0];
    for (i, size) in shape.iter().enumerate() {
        let all: Vec<u64> = (0..*size).collect();
        let indexes = picks.get(i).map_or(&all, |pick| &pick.indexes);
        elements = elements
            .iter()
            .flat_map(|outer| indexes.iter().map(move |index| outer * size + index))
            .collect();
    }
    elements
}

/// Joins adjacent elements into ranges.
pub fn runs(elements: &[u64]) -> Vec<std::ops::Range<u64>> {
    let mut runs: Vec<std::ops::Range<u64>> = Vec::new();
    for &element in elements {
        match runs.last_mut() {
            Some(run) if run.end == element => run.end += 1,
            _ => runs.push(element..element + 1),
        }
    }
    runs
}
