//! Conversion from `f64`, `f32` and `i64` values to a dtype's bytes, in the caller's buffer. The
//! reverse of [`dequant`](crate::dequant), for writers.
//!
//! | values | dtypes |
//! |---|---|
//! | `f64` | F64 exact; F32, F16, BF16 rounded once, to nearest, ties to even |
//! | `f32` | F64, F32 exact; F16, BF16 rounded once, to nearest, ties to even |
//! | `i64` | U8, I8, U16, I16, U32, I32, U64, I64 exact; values out of range are an error |
//!
//! Floats out of range become infinite. NaN stays NaN with its sign and the upper bits of its
//! payload, and becomes quiet if bits are lost. An `f64` is converted to F16 and BF16 in one step.
//! Converting by way of `f32` would round twice, and give a different result for about one in 2^29
//! values.
//!
//! The cost is linear in the number of values. The bytes are little-endian on every machine.

use half::slice::HalfFloatSliceExt as _;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::tensor::extent::check_buffer;

/// Writes `f64` values as elements of a dtype.
///
/// ```
/// use safetensors_zero::{encode, Dtype};
///
/// let mut bytes = [0; 4];
/// encode::from_f64(Dtype::F16, &[1.0, -2.0], &mut bytes)?;
/// assert_eq!(bytes, [0x00, 0x3c, 0x00, 0xc0]);
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
///
/// # Errors
/// [`NoConversion`](ErrorKind::NoConversion) for dtypes other than F64, F32, F16 and BF16;
/// [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not the encoded size of the
/// values. `out` is then unchanged.
pub fn from_f64(dtype: Dtype, values: &[f64], out: &mut [u8]) -> Result<(), Error> {
    check(dtype, is_float, values.len(), out)?;
    match dtype {
        Dtype::F64 => each(values, out, |value| value.to_le_bytes()),
        Dtype::F32 => each(values, out, |value| narrow(value).to_le_bytes()),
        Dtype::F16 => each(values, out, |value| round(value, &F16).to_le_bytes()),
        _ => each(values, out, |value| round(value, &BF16).to_le_bytes()),
    }
    Ok(())
}

/// Writes `f32` values as elements of a dtype.
///
/// # Errors
/// Same as [`from_f64`].
pub fn from_f32(dtype: Dtype, values: &[f32], out: &mut [u8]) -> Result<(), Error> {
    check(dtype, is_float, values.len(), out)?;
    match dtype {
        Dtype::F64 => each(values, out, |value| f64::from(value).to_le_bytes()),
        Dtype::F32 => each(values, out, f32::to_le_bytes),
        Dtype::F16 => f16_of_f32(values, out),
        _ => each(values, out, |value| half::bf16::from_f32(value).to_le_bytes()),
    }
    Ok(())
}

/// Writes `i64` values as elements of a dtype.
///
/// ```
/// use safetensors_zero::{encode, Dtype, ErrorKind};
///
/// let mut bytes = [0; 3];
/// encode::from_i64(Dtype::I8, &[-1, 0, 127], &mut bytes)?;
/// assert_eq!(bytes, [0xff, 0, 0x7f]);
/// let error = encode::from_i64(Dtype::U8, &[0, 255, 256], &mut bytes).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::ValueOutOfRange { index: 2, value: 256, dtype: Dtype::U8 });
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
///
/// # Errors
/// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for the first value that the dtype cannot hold;
/// [`NoConversion`](ErrorKind::NoConversion) for dtypes that are not integers;
/// [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not the encoded size of the
/// values. `out` is then unchanged.
pub fn from_i64(dtype: Dtype, values: &[i64], out: &mut [u8]) -> Result<(), Error> {
    check(dtype, |dtype| range_of(dtype).is_some(), values.len(), out)?;
    let (least, most) = range_of(dtype).unwrap_or_default();
    let outside = |value: &i64| *value < least || *value > most;
    if let Some(index) = values.iter().position(outside) {
        let value = values.get(index).copied().unwrap_or_default();
        let index = to_u64(index);
        return Err(Error::new(ErrorKind::ValueOutOfRange { index, value, dtype }));
    }
    // Every value is in range, so its low bytes are the element's bytes.
    match dtype.bitsize() {
        8 => each(values, out, low_bytes::<1>),
        16 => each(values, out, low_bytes::<2>),
        32 => each(values, out, low_bytes::<4>),
        _ => each(values, out, i64::to_le_bytes),
    }
    Ok(())
}

fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16)
}

/// Returns the smallest and largest `i64` that an integer dtype can hold.
fn range_of(dtype: Dtype) -> Option<(i64, i64)> {
    Some(match dtype {
        Dtype::U8 => (0, u8::MAX.into()),
        Dtype::I8 => (i8::MIN.into(), i8::MAX.into()),
        Dtype::U16 => (0, u16::MAX.into()),
        Dtype::I16 => (i16::MIN.into(), i16::MAX.into()),
        Dtype::U32 => (0, u32::MAX.into()),
        Dtype::I32 => (i32::MIN.into(), i32::MAX.into()),
        Dtype::U64 => (0, i64::MAX),
        Dtype::I64 => (i64::MIN, i64::MAX),
        _ => return None,
    })
}

/// Checks that the dtype is supported, and that `out` has the encoded size of the values.
fn check(
    dtype: Dtype,
    takes: impl FnOnce(Dtype) -> bool,
    values: usize,
    out: &[u8],
) -> Result<(), Error> {
    if !takes(dtype) {
        return Err(Error::new(ErrorKind::NoConversion { dtype }));
    }
    let needed = dtype.byte_len(to_u64(values)).unwrap_or(u64::MAX);
    check_buffer(needed, to_u64(out.len()))
}

fn each<T: Copy, const N: usize>(values: &[T], out: &mut [u8], bytes: impl Fn(T) -> [u8; N]) {
    for (value, place) in values.iter().zip(out.chunks_exact_mut(N)) {
        place.copy_from_slice(&bytes(*value));
    }
}

/// Converts to F16 in blocks, so that the processor's conversion instruction is detected once per
/// block, not once per value.
fn f16_of_f32(values: &[f32], out: &mut [u8]) {
    const BLOCK: usize = 64;
    let mut block = [half::f16::ZERO; BLOCK];
    for (values, out) in values.chunks(BLOCK).zip(out.chunks_mut(2 * BLOCK)) {
        let Some(block) = block.get_mut(..values.len()) else { return };
        block.convert_from_f32_slice(values);
        each(block, out, half::f16::to_le_bytes);
    }
}

fn low_bytes<const N: usize>(value: i64) -> [u8; N] {
    value.to_le_bytes().first_chunk().copied().unwrap_or([0; N])
}

#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "rounds to nearest even as intended; there is no other conversion"
)]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// A 16-bit float format.
struct Format {
    /// The number of stored significand bits.
    significand: u32,
    /// The exponent field of an infinity: all ones.
    infinite: u64,
    /// The difference between the exponent biases of `f64` and this format.
    rebias: u64,
}

const F16: Format = Format { significand: 10, infinite: 31, rebias: 1023 - 15 };
const BF16: Format = Format { significand: 7, infinite: 255, rebias: 1023 - 127 };

/// Rounds an `f64` to the nearest value of the format, ties to even, and returns its 16 bits.
fn round(value: f64, format: &Format) -> u16 {
    const STORED: u32 = 52;
    let bits = value.to_bits();
    let magnitude = bits & (u64::MAX >> 1);
    let exponent = magnitude >> STORED;
    let fraction = magnitude & ((1 << STORED) - 1);
    let lost = STORED.wrapping_sub(format.significand);
    let infinity = format.infinite.wrapping_shl(format.significand);

    let rounded = if exponent == 0x7ff {
        // An infinity, or NaN made quiet.
        let quiet = u64::from(fraction != 0).wrapping_shl(format.significand.wrapping_sub(1));
        infinity | quiet | fraction.wrapping_shr(lost)
    } else if exponent <= format.rebias {
        // Subnormal in this format: shift the significand, including its hidden bit, to the right.
        let below = format.rebias.wrapping_sub(exponent);
        let shift = u64::from(lost).wrapping_add(1).wrapping_add(below);
        // From a shift of 54, the value is less than half of the smallest subnormal. So are all
        // subnormal `f64` values.
        match u32::try_from(shift) {
            Ok(shift) if shift <= 53 => shift_rounding(fraction | 1 << STORED, shift),
            _ => 0,
        }
    } else {
        // A carry out of the significand increments the exponent, as it should.
        let rebiased = magnitude.wrapping_sub(format.rebias << STORED);
        shift_rounding(rebiased, lost).min(infinity)
    };
    let sign = bits >> 63 << 15;
    u16::try_from(rounded | sign).unwrap_or(u16::MAX)
}

/// Shifts to the right by 1 to 63 bits, rounding to nearest, ties to even.
fn shift_rounding(value: u64, shift: u32) -> u64 {
    let kept = value.wrapping_shr(shift);
    let half = 1_u64.wrapping_shl(shift.wrapping_sub(1));
    let dropped = value & half.wrapping_shl(1).wrapping_sub(1);
    let up = dropped > half || (dropped == half && kept & 1 == 1);
    kept.wrapping_add(u64::from(up))
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::prelude::v1::*;
    use std::vec;

    /// Returns all finite values of a format in ascending order, and the infinity, as converted by
    /// `half`.
    fn values(of: impl Fn(u16) -> f64, infinity: u16) -> Vec<f64> {
        (0..=infinity).map(of).collect()
    }

    /// Finds the nearest value by search. The naive twin of `round`.
    fn nearest(values: &[f64], value: f64) -> u16 {
        let last = values.len() - 1;
        let below = values.partition_point(|v| *v <= value) - 1;
        if below == last {
            return last as u16;
        }
        let low = values[below];
        // For rounding, the infinity takes the place of the next finite value.
        let high =
            if below + 1 == last { low + (low - values[below - 1]) } else { values[below + 1] };
        let (down, up) = (value - low, high - value);
        let odd = below % 2 == 1;
        (if up < down || (up == down && odd) { below + 1 } else { below }) as u16
    }

    fn check_format(format: &Format, of: impl Fn(u16) -> f64, infinity: u16) {
        let values = values(of, infinity);
        let mut probes = vec![0.0, f64::MIN_POSITIVE, f64::from_bits(1), f64::MAX, f64::INFINITY];
        for pair in values.windows(2) {
            let (low, high) = (pair[0], pair[1].min(pair[0] * 2.0 + 1.0));
            let middle = low + (high - low) / 2.0;
            for probe in [low, middle, high] {
                let bits = probe.to_bits();
                probes.extend([bits.saturating_sub(1), bits, bits + 1].map(f64::from_bits));
                // Values that rounding to `f32` first would turn into a tie.
                probes.push(f64::from_bits(bits + (1 << 20)));
                probes.push(f64::from_bits(bits.saturating_sub(1 << 20)));
            }
        }
        for probe in probes {
            if probe.is_nan() {
                continue;
            }
            let expected = nearest(&values, probe);
            assert_eq!(round(probe, format), expected, "{probe:e}");
            assert_eq!(round(-probe, format), expected | 0x8000, "-{probe:e}");
        }
    }

    #[test]
    fn rounds_once_to_nearest_even() {
        check_format(&F16, |bits| half::f16::from_bits(bits).to_f64(), 0x7c00);
        check_format(&BF16, |bits| half::bf16::from_bits(bits).to_f64(), 0x7f80);
    }

    #[test]
    fn nan_keeps_its_sign_and_payload() {
        for (format, infinity, quiet) in [(&F16, 0x7c00, 0x0200), (&BF16, 0x7f80, 0x0040)] {
            assert_eq!(round(f64::NAN, format) & 0x7fff, infinity | quiet);
            let signalling = f64::from_bits(0xfff0_0000_0000_0001);
            assert_eq!(round(signalling, format), 0x8000 | infinity | quiet);
            let payload = f64::from_bits(0x7ff4_0000_0000_0000);
            assert_eq!(round(payload, format), infinity | quiet | quiet >> 1);
        }
    }

    #[test]
    fn all_16_bit_values_round_trip() {
        for bits in 0..=u16::MAX {
            for (dtype, value) in [
                (Dtype::F16, half::f16::from_bits(bits).to_f64()),
                (Dtype::BF16, half::bf16::from_bits(bits).to_f64()),
            ] {
                if value.is_nan() {
                    continue;
                }
                let mut bytes = [0; 2];
                from_f64(dtype, &[value], &mut bytes).unwrap();
                assert_eq!(u16::from_le_bytes(bytes), bits);
                from_f32(dtype, &[value as f32], &mut bytes).unwrap();
                assert_eq!(u16::from_le_bytes(bytes), bits);
                let mut back = [0.0];
                crate::tensor::dequant::dequant_into(dtype, &bytes, &mut back).unwrap();
                assert_eq!(f64::from(back[0]), value);
            }
        }
    }

    #[test]
    fn f32_and_f64_round_alike() {
        // Every exponent, with significands at and next to the ties of both formats.
        for exponent in 0..=0xff_u32 {
            for high in 0..1024_u32 {
                for low in [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff] {
                    let value = f32::from_bits(exponent << 23 | high << 13 | low);
                    if value.is_nan() {
                        continue;
                    }
                    for dtype in [Dtype::F16, Dtype::BF16] {
                        let (mut by_f32, mut by_f64) = ([0; 2], [0; 2]);
                        from_f32(dtype, &[value], &mut by_f32).unwrap();
                        from_f64(dtype, &[f64::from(value)], &mut by_f64).unwrap();
                        assert_eq!(by_f32, by_f64, "{dtype} {value:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn rejects_integers_out_of_range() {
        let mut bytes = [0xaa; 8];
        for dtype in Dtype::ALL {
            let Some((least, most)) = range_of(dtype) else {
                let error = from_i64(dtype, &[1], &mut bytes).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NoConversion { dtype });
                continue;
            };
            let size = dtype.bitsize() / 8;
            for value in [least, most, 0, 1] {
                let out = &mut bytes[..size];
                from_i64(dtype, &[value], out).unwrap();
                assert_eq!(*out, value.to_le_bytes()[..size]);
            }
            for value in [least.checked_sub(1), most.checked_add(1)].into_iter().flatten() {
                let mut out = vec![7; 2 * size];
                let kind = from_i64(dtype, &[0, value], &mut out).unwrap_err().kind();
                assert_eq!(kind, ErrorKind::ValueOutOfRange { index: 1, value, dtype });
                assert!(out.iter().all(|byte| *byte == 7));
            }
        }
        let kind = from_i64(Dtype::U64, &[-1], &mut bytes).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::ValueOutOfRange { index: 0, value: -1, dtype: Dtype::U64 });
        let kind = from_f32(Dtype::F32, &[1.0], &mut bytes).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::BufferLength { needed: 4, given: 8 });
        let kind = from_f64(Dtype::F8_E4M3, &[1.0], &mut bytes).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::NoConversion { dtype: Dtype::F8_E4M3 });
    }
}
