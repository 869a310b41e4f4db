//! Conversion of every dtype to `f32`, in the caller's buffer. Pure functions on a tensor's bytes.
//!
//! To dequantise here means only to convert: no scales are applied. Each element is converted to
//! `f32` exactly if an `f32` can hold its value, otherwise it is rounded once, to nearest, ties to
//! even.
//!
//! | dtype | as `f32` |
//! |---|---|
//! | F32, BF16 | the same bits, followed by 16 zeros for BF16; keeps payloads and signalling NaN |
//! | F16 | exact; NaN keeps sign and payload; hardware conversion (see below) makes it quiet |
//! | F8_E5M2 | exact: the upper half of an F16; NaN as for F16 |
//! | F8_E4M3 | exact; no infinities; 0x7f and 0xff are NaN and keep their sign |
//! | F8_E4M3FNUZ, F8_E5M2FNUZ | exact; 0x80 is NaN; no negative zero |
//! | F8_E8M0 | 2^(x - 127), down to the subnormal 2^-127; 0xff is NaN |
//! | F6_E2M3, F6_E3M2, F4 | exact; no infinities and no NaN |
//! | BOOL | 0 for a zero byte, 1 for any other |
//! | U8, I8, U16, I16 | exact |
//! | U32, I32, U64, I64 | rounded above 2^24 |
//! | F64 | rounded; infinite above the range of `f32`; NaN keeps its sign |
//! | C64 | no conversion: an error |
//!
//! The format's README does not define the order of elements smaller than a byte. F4 has its first
//! element in the low nibble, as in PyTorch and ONNX. The two F6 dtypes have their first element in
//! the lowest bits of three bytes, little-endian.
//!
//! The cost is linear in the number of elements converted, whatever the tensor's size. With the
//! feature `std`, the processor converts F16 on x86 with F16C and on 64-bit ARM with FP16, both
//! detected at run time. No conversion except that of F64 computes with subnormal numbers, which
//! are slow on some processors, so hostile values cannot slow the others.

mod kernels;
mod small;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};
use crate::tensor::extent::check_buffer;

/// Converts all elements in `bytes` to `f32`.
///
/// ```
/// use safetensors_zero::{dequant, Dtype};
///
/// let mut out = [0.0; 3];
/// dequant::dequant_into(Dtype::BF16, &[0x80, 0x3f, 0x00, 0xc0, 0x80, 0x7f], &mut out)?;
/// assert_eq!(out, [1.0, -2.0, f32::INFINITY]);
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
///
/// # Errors
/// [`BufferLength`](ErrorKind::BufferLength) if the length of `out` is not the number of elements
/// in `bytes` (for the two F6 dtypes, in whole groups of three bytes); [`NoF32`](ErrorKind::NoF32)
/// for C64. `out` is then unchanged.
pub fn dequant_into(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    check_buffer(dtype.elements_in(to_u64(bytes.len())), to_u64(out.len()))?;
    dequant_range(dtype, bytes, 0, out)
}

/// Fills `out` with elements from `bytes` as `f32`, starting at the element `first`. The range can
/// begin and end inside a byte.
///
/// ```
/// use safetensors_zero::{dequant, Dtype};
///
/// let mut out = [0.0; 2];
/// dequant::dequant_range(Dtype::F4, &[0x10, 0x32, 0x54], 3, &mut out)?;
/// assert_eq!(out, [1.5, 2.0]);
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
///
/// # Errors
/// [`RangeOutOfBounds`](ErrorKind::RangeOutOfBounds) if the range extends beyond the elements in
/// `bytes`; [`NoF32`](ErrorKind::NoF32) for C64. `out` is then unchanged.
pub fn dequant_range(dtype: Dtype, bytes: &[u8], first: u64, out: &mut [f32]) -> Result<(), Error> {
    if !dtype.has_f32() {
        return Err(Error::new(ErrorKind::NoF32 { dtype }));
    }
    let len = dtype.elements_in(to_u64(bytes.len()));
    let end = first.saturating_add(to_u64(out.len()));
    let out_of_bounds = || Error::new(ErrorKind::RangeOutOfBounds { begin: first, end, len });
    if end > len {
        return Err(out_of_bounds());
    }
    match dtype {
        Dtype::F4 => small::f4(bytes, first, out),
        Dtype::F6_E2M3 => small::f6(bytes, first, out, &small::E2M3),
        Dtype::F6_E3M2 => small::f6(bytes, first, out, &small::E3M2),
        _ => {
            let begin = dtype.byte_len(first).ok().and_then(|begin| usize::try_from(begin).ok());
            let bytes = begin.and_then(|begin| bytes.get(begin..)).ok_or_else(out_of_bounds)?;
            whole_bytes(dtype, bytes, out);
        }
    }
    Ok(())
}

/// Fills `out` with elements of whole bytes. The caller has checked that there are enough bytes.
fn whole_bytes(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        Dtype::BOOL => kernels::each(bytes, out, |[byte]| if byte == 0 { 0.0 } else { 1.0 }),
        Dtype::U8 => kernels::each(bytes, out, |[byte]| f32::from(byte)),
        Dtype::I8 => kernels::each(bytes, out, |byte| f32::from(i8::from_le_bytes(byte))),
        Dtype::U16 => kernels::each(bytes, out, |pair| f32::from(u16::from_le_bytes(pair))),
        Dtype::I16 => kernels::each(bytes, out, |pair| f32::from(i16::from_le_bytes(pair))),
        Dtype::U32 => {
            kernels::each(bytes, out, |quad| kernels::round_u32(u32::from_le_bytes(quad)))
        }
        Dtype::I32 => {
            kernels::each(bytes, out, |quad| kernels::round_i32(i32::from_le_bytes(quad)))
        }
        Dtype::U64 => {
            kernels::each(bytes, out, |octet| kernels::round_u64(u64::from_le_bytes(octet)))
        }
        Dtype::I64 => {
            kernels::each(bytes, out, |octet| kernels::round_i64(i64::from_le_bytes(octet)))
        }
        Dtype::F64 => {
            kernels::each(bytes, out, |octet| kernels::round_f64(f64::from_le_bytes(octet)))
        }
        Dtype::F32 => kernels::f32(bytes, out),
        Dtype::BF16 => kernels::each(bytes, out, |[low, high]| {
            f32::from_bits(u32::from_le_bytes([0, 0, low, high]))
        }),
        Dtype::F16 => kernels::f16(bytes, out),
        Dtype::F8_E8M0 => kernels::each(bytes, out, |[byte]| small::e8m0(byte)),
        Dtype::F8_E5M2 => kernels::e5m2(bytes, out),
        Dtype::F8_E4M3 => small::f8(bytes, out, &small::E4M3),
        Dtype::F8_E4M3FNUZ => small::f8(bytes, out, &small::E4M3FNUZ),
        Dtype::F8_E5M2FNUZ => small::f8(bytes, out, &small::E5M2FNUZ),
        // Rejected or handled by the caller.
        Dtype::C64 | Dtype::F4 | Dtype::F6_E2M3 | Dtype::F6_E3M2 => {}
    }
}
