//! Floats of 8 bits or less, with a sign, an exponent and a mantissa of a few bits each.
//!
//! The format parameters come from the OCP specifications (OFP8 1.0, MX 1.0) and, for the FNUZ
//! formats, from "8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022).
//!
//! One function widens a code of any format. With `std`, its results for all codes are tabulated at
//! compile time, 7 KiB in total. Without `std`, it is called for each element, to save flash.

use super::kernels::each;

/// A format of small floats.
pub(super) struct Format {
    /// The number of mantissa bits.
    mantissa: u32,
    /// The number of exponent and mantissa bits together: all except the sign.
    magnitude: u32,
    /// The exponent bias.
    bias: u32,
    nan: Nan,
    /// The `f32` of every code.
    #[cfg(feature = "std")]
    table: [u32; 256],
}

/// The codes that are NaN. None of these formats has infinities.
#[derive(Clone, Copy)]
enum Nan {
    None,
    /// The largest magnitude of either sign. The NaN keeps the sign.
    Largest,
    /// The code of negative zero. The NaN has no sign.
    NegativeZero,
}

pub(super) static E4M3: Format = Format::new(4, 3, 7, Nan::Largest);
pub(super) static E4M3FNUZ: Format = Format::new(4, 3, 8, Nan::NegativeZero);
pub(super) static E5M2FNUZ: Format = Format::new(5, 2, 16, Nan::NegativeZero);
pub(super) static E2M3: Format = Format::new(2, 3, 1, Nan::None);
pub(super) static E3M2: Format = Format::new(3, 2, 3, Nan::None);
/// F4. Two elements are looked up at a time: see [`pair_of`].
const E2M1: Format = Format::new(2, 1, 1, Nan::None);

impl Format {
    #[allow(
        clippy::indexing_slicing,
        reason = "evaluated by the compiler, which stops on overflow"
    )]
    const fn new(exponent: u32, mantissa: u32, bias: u32, nan: Nan) -> Format {
        let magnitude = exponent.wrapping_add(mantissa);
        #[allow(unused_mut, reason = "without `std` there is no table")]
        let mut format = Format {
            mantissa,
            magnitude,
            bias,
            nan,
            #[cfg(feature = "std")]
            table: [0; 256],
        };
        #[cfg(feature = "std")]
        {
            let mut code: usize = 0;
            let mut byte: u8 = 0;
            while code < 256 {
                format.table[code] = format.widen(byte);
                code = code.wrapping_add(1);
                byte = byte.wrapping_add(1);
            }
        }
        format
    }

    /// Converts a code to the bits of an `f32`. Bits of the code above the sign are ignored.
    #[inline]
    const fn widen(&self, code: u8) -> u32 {
        const QUIET_NAN: u32 = 0x7fc0_0000;
        #[allow(clippy::as_conversions, reason = "`From` is not const")]
        let code = code as u32;
        let largest = !(u32::MAX << (self.magnitude & 31));
        let sign = code >> (self.magnitude & 31) << 31;
        let magnitude = code & largest;
        match self.nan {
            Nan::Largest if magnitude == largest => return QUIET_NAN | sign,
            Nan::NegativeZero if magnitude == 0 && sign != 0 => return QUIET_NAN,
            _ if magnitude == 0 => return sign,
            _ => {}
        }
        // Moves the code's bits to their position in an `f32`, except for the exponent's offset.
        let shift = 23_u32.wrapping_sub(self.mantissa) & 31;
        let offset = 127_u32.wrapping_sub(self.bias);
        if magnitude >> (self.mantissa & 31) != 0 {
            return sign | (magnitude << shift).wrapping_add(offset << 23);
        }
        // A subnormal number becomes a normal one: its top bit becomes the hidden bit of an `f32`.
        let up = magnitude.leading_zeros().wrapping_sub(31_u32.wrapping_sub(self.mantissa));
        let mantissa = magnitude << (shift.wrapping_add(up) & 31) & 0x007f_ffff;
        sign | mantissa | offset.wrapping_add(1).wrapping_sub(up) << 23
    }

    /// Converts a code to `f32`.
    #[cfg(feature = "std")]
    #[inline]
    fn get(&self, code: u8) -> f32 {
        f32::from_bits(self.table.get(usize::from(code)).copied().unwrap_or(0))
    }

    /// Converts a code to `f32`.
    #[cfg(not(feature = "std"))]
    #[inline]
    fn get(&self, code: u8) -> f32 {
        f32::from_bits(self.widen(code))
    }
}

/// Converts an F8_E8M0 code to 2^(code - 127). The code is the exponent field of an `f32`, except
/// for 0, which is subnormal in `f32`, and 255, which is NaN. Both have the highest bit of the
/// mantissa set.
#[inline]
pub(super) fn e8m0(code: u8) -> f32 {
    let exponent = u32::from(code);
    let is_special = u32::from(exponent.wrapping_add(1) & 0xff < 2);
    f32::from_bits(exponent << 23 | is_special << 22)
}

/// Converts elements of one byte each.
pub(super) fn f8(bytes: &[u8], out: &mut [f32], format: &Format) {
    each(bytes, out, |[code]| format.get(code));
}

/// Converts F4: two elements per byte, the first in the low nibble.
pub(super) fn f4(bytes: &[u8], first: u64, out: &mut [f32]) {
    let mut bytes = bytes.get(to_index(first >> 1)..).unwrap_or_default();
    let mut out = out;
    if first & 1 == 1 {
        let ([byte, after @ ..], [place, rest @ ..]) = (bytes, out) else { return };
        [_, *place] = pair_of(*byte);
        (bytes, out) = (after, rest);
    }
    let pairs = out.len() >> 1;
    let Some((even, last)) = out.split_at_mut_checked(pairs << 1) else { return };
    for (pair, byte) in even.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&pair_of(*byte));
    }
    if let ([place], Some(byte)) = (last, bytes.get(pairs)) {
        [*place, _] = pair_of(*byte);
    }
}

/// Converts the two elements in a byte.
#[cfg(feature = "std")]
#[inline]
fn pair_of(byte: u8) -> [f32; 2] {
    /// Both elements of every byte.
    static PAIRS: [[u32; 2]; 256] = {
        let mut pairs = [[0; 2]; 256];
        let (mut at, mut byte): (usize, u8) = (0, 0);
        #[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        while at < 256 {
            pairs[at] = [E2M1.widen(byte), E2M1.widen(byte >> 4)];
            (at, byte) = (at.wrapping_add(1), byte.wrapping_add(1));
        }
        pairs
    };
    PAIRS.get(usize::from(byte)).map_or([0.0; 2], |pair| pair.map(f32::from_bits))
}

/// Converts the two elements in a byte.
#[cfg(not(feature = "std"))]
#[inline]
fn pair_of(byte: u8) -> [f32; 2] {
    [byte, byte >> 4].map(|code| f32::from_bits(E2M1.widen(code)))
}

/// Converts F6: four elements in three bytes, the first in the lowest bits.
pub(super) fn f6(bytes: &[u8], first: u64, out: &mut [f32], format: &Format) {
    let group = to_index((first >> 2).saturating_mul(3));
    let mut bytes = bytes.get(group..).unwrap_or_default();
    let mut out = out;
    let skip = to_index(first & 3);
    if skip != 0 {
        let Some((group, after)) = bytes.split_first_chunk() else { return };
        let split = out.len().min(4_usize.saturating_sub(skip));
        let Some((head, rest)) = out.split_at_mut_checked(split) else { return };
        for (place, element) in head.iter_mut().zip(four(*group, format).into_iter().skip(skip)) {
            *place = element;
        }
        (bytes, out) = (after, rest);
    }
    // Eight elements take six bytes. They are read as one word, with the two bytes that follow.
    while let (Some(word), true) = (bytes.first_chunk(), out.len() >= 8) {
        let mut bits = u64::from_le_bytes(*word);
        let (eight, rest) = core::mem::take(&mut out).split_at_mut_checked(8).unwrap_or_default();
        for place in eight {
            let [code, ..] = bits.to_le_bytes();
            *place = format.get(code & 0x3f);
            bits >>= 6;
        }
        (bytes, out) = (bytes.get(6..).unwrap_or_default(), rest);
    }
    for (places, group) in out.chunks_mut(4).zip(bytes.chunks_exact(3)) {
        let group = group.first_chunk().copied().unwrap_or_default();
        for (place, element) in places.iter_mut().zip(four(group, format)) {
            *place = element;
        }
    }
}

/// Converts the four elements in a group of three bytes.
fn four([a, b, c]: [u8; 3], format: &Format) -> [f32; 4] {
    let bits = u32::from_le_bytes([a, b, c, 0]);
    [bits, bits >> 6, bits >> 12, bits >> 18].map(|bits| {
        let [code, ..] = bits.to_le_bytes();
        format.get(code & 0x3f)
    })
}

/// Converts a byte offset to an index.
fn to_index(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
