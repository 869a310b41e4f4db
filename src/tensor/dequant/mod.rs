//! Every dtype to `f32`, in the caller's buffer: pure functions on a tensor's bytes.
//!
//! "Dequantise" is the field's word. Nothing is calibrated: each element becomes the `f32` of its
//! value, exact where an `f32` can hold it, else rounded once, to nearest, ties to even.
//!
//! | dtype | as `f32` |
//! |---|---|
//! | F32, BF16 | the same bits, in front of zeros for BF16; NaN payloads and signalling NaN kept |
//! | F16 | exact; NaN keeps sign and payload, and where the processor converts (see below) a signalling NaN becomes quiet |
//! | F8_E5M2 | exact: the upper half of an F16; NaN keeps sign and payload |
//! | F8_E4M3 | exact; no infinities; 0x7f and 0xff are NaN of their sign |
//! | F8_E4M3FNUZ, F8_E5M2FNUZ | exact; 0x80 is NaN, there is no negative zero |
//! | F8_E8M0 | 2^(x - 127), down to the subnormal 2^-127; 0xff is NaN |
//! | F6_E2M3, F6_E3M2, F4 | exact; no infinities and no NaN |
//! | BOOL | 0 for a zero byte, 1 for every other |
//! | U8, I8, U16, I16 | exact |
//! | U32, I32, U64, I64 | rounded above 2^24 |
//! | F64 | rounded; infinite above the range of `f32`; NaN of the same sign |
//! | C64 | none: an error |
//!
//! Elements smaller than a byte: the container's README does not give their order in the byte. F4
//! has its first element in the low nibble, as PyTorch and ONNX store it; the F6 have their first
//! element in the lowest bits of three bytes, little-endian.
//!
//! Cost is linear in the elements asked for, whatever the tensor's size. With the feature `std`, F16
//! is converted by the processor on x86 with F16C and on 64-bit ARM with FP16, found at run time.
//! No conversion computes with subnormal numbers, which are slow on some processors, so a hostile
//! file cannot choose its own speed.

mod kernels;
mod small;

use crate::base::convert::to_u64;
use crate::base::dtype::Dtype;
use crate::base::error::{Error, ErrorKind};

/// Writes all elements of a tensor with these bytes.
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
/// [`BufferLength`](ErrorKind::BufferLength) if `out` has not exactly as many places as the bytes
/// hold elements (of the two F6, in whole groups of three bytes); [`NoF32`](ErrorKind::NoF32) for C64. `out` is then as it was.
pub fn dequant_into(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    let (needed, given) = (dtype.elements_in(to_u64(bytes.len())), to_u64(out.len()));
    if needed != given {
        return Err(Error::new(ErrorKind::BufferLength { needed, given }));
    }
    dequant_range(dtype, bytes, 0, out)
}

/// Writes as many elements as `out` has places, from the element `first` on, of a tensor with these
/// bytes. The range may begin and end inside a byte.
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
/// [`RangeOutOfBounds`](ErrorKind::RangeOutOfBounds) if the bytes do not hold these elements;
/// [`NoF32`](ErrorKind::NoF32) for C64. `out` is then as it was.
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

/// Writes elements of whole bytes, as many as `out` has places. There are enough bytes.
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
        // Refused above, or smaller than a byte.
        Dtype::C64 | Dtype::F4 | Dtype::F6_E2M3 | Dtype::F6_E3M2 => {}
    }
}
