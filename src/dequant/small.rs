//! Floats of 8 bits and less: sign, exponent and mantissa of a few bits each, by table.
//!
//! The tables are computed by the compiler from the formats' parameters, which are those of the OCP
//! specifications (OFP8 1.0, MX 1.0) and, for the FNUZ kinds, of "8-bit Numerical Formats for Deep
//! Neural Networks" (Noune et al., 2022).

/// What codes beyond plain numbers a format has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// None.
    Finite,
    /// The largest exponent is for infinity and NaN, as in IEEE 754.
    Ieee,
    /// All bits set but the sign is NaN.
    LargestIsNan,
    /// Negative zero is NaN.
    NegativeZeroIsNan,
}

/// The `f32` bits of a code with `exponent` bits of exponent, biased by `bias`, and `mantissa` bits
/// of mantissa. Bits above these and the sign are zero.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, which stops on overflow"
)]
const fn widen(code: u32, exponent: u32, mantissa: u32, bias: u32, special: Special) -> u32 {
    const QUIET_NAN: u32 = 0x7fc0_0000;
    let sign = code >> (exponent + mantissa);
    let magnitude = code & ((1 << (exponent + mantissa)) - 1);
    let e = magnitude >> mantissa;
    let m = magnitude & ((1 << mantissa) - 1);
    let largest = (1 << (exponent + mantissa)) - 1;
    let bits = match special {
        Special::Ieee if e == (1 << exponent) - 1 => 0x7f80_0000 | (m << (23 - mantissa)),
        Special::LargestIsNan if magnitude == largest => QUIET_NAN,
        Special::NegativeZeroIsNan if sign == 1 && magnitude == 0 => return QUIET_NAN,
        _ if e == 0 && m == 0 => 0,
        _ if e == 0 => {
            // Subnormal: shift the leading one to where a normal number does not store it.
            let shift = m.leading_zeros() - (31 - mantissa);
            let m = (m << shift) & ((1 << mantissa) - 1);
            ((127 + 1 - bias - shift) << 23) | (m << (23 - mantissa))
        }
        _ => ((127 + e - bias) << 23) | (m << (23 - mantissa)),
    };
    bits | (sign << 31)
}

#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "evaluated by the compiler"
)]
#[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "codes are below 256")]
const fn table<const N: usize>(
    exponent: u32,
    mantissa: u32,
    bias: u32,
    special: Special,
) -> [u32; N] {
    let mut table = [0; N];
    let mut code = 0;
    while code < N {
        table[code] = widen(code as u32, exponent, mantissa, bias, special);
        code += 1;
    }
    table
}

pub(super) static E5M2: [u32; 256] = table(5, 2, 15, Special::Ieee);
pub(super) static E4M3: [u32; 256] = table(4, 3, 7, Special::LargestIsNan);
pub(super) static E4M3FNUZ: [u32; 256] = table(4, 3, 8, Special::NegativeZeroIsNan);
pub(super) static E5M2FNUZ: [u32; 256] = table(5, 2, 16, Special::NegativeZeroIsNan);
pub(super) static E2M3: [u32; 64] = table(2, 3, 1, Special::Finite);
pub(super) static E3M2: [u32; 64] = table(3, 2, 3, Special::Finite);
static E2M1: [u32; 16] = table(2, 1, 1, Special::Finite);

#[inline]
fn look_up<const N: usize>(table: &[u32; N], code: u8) -> f32 {
    f32::from_bits(table.get(usize::from(code)).copied().unwrap_or(0))
}

/// Elements of a byte each.
pub(super) fn f8(bytes: &[u8], out: &mut [f32], table: &[u32; 256]) {
    for (place, code) in out.iter_mut().zip(bytes) {
        *place = look_up(table, *code);
    }
}

/// 2^(code - 127): a code is the exponent of an `f32`, but for the one that is subnormal there, and
/// NaN.
#[inline]
pub(super) fn e8m0(code: u8) -> f32 {
    let power = u32::from(code) << 23;
    let subnormal = if code == 0 { 0x0040_0000 } else { 0 };
    let nan = if code == 0xff { 0x0040_0000 } else { 0 };
    f32::from_bits(power | subnormal | nan)
}

/// Two elements in a byte, the first in the low nibble.
pub(super) fn f4(bytes: &[u8], first: u64, out: &mut [f32]) {
    let mut bytes = bytes.get(to_index(first >> 1)..).unwrap_or_default().iter();
    let mut out = out;
    if first & 1 == 1 {
        if let (Some(byte), [place, rest @ ..]) = (bytes.next(), out) {
            *place = look_up(&E2M1, byte >> 4);
            out = rest;
        } else {
            return;
        }
    }
    let mut pairs = out.chunks_exact_mut(2);
    for (pair, byte) in (&mut pairs).zip(bytes.by_ref()) {
        if let [low, high] = pair {
            *low = look_up(&E2M1, byte & 0xf);
            *high = look_up(&E2M1, byte >> 4);
        }
    }
    if let ([place], Some(byte)) = (pairs.into_remainder(), bytes.next()) {
        *place = look_up(&E2M1, byte & 0xf);
    }
}

/// Four elements in three bytes, the first in the lowest bits.
pub(super) fn f6(bytes: &[u8], first: u64, out: &mut [f32], table: &[u32; 64]) {
    let group = to_index((first >> 2).saturating_mul(3));
    let mut groups = bytes.get(group..).unwrap_or_default().chunks_exact(3);
    let codes = |group: &[u8]| match group {
        [a, b, c] => {
            let bits = u32::from_le_bytes([*a, *b, *c, 0]);
            [bits, bits >> 6, bits >> 12, bits >> 18].map(|code| code.to_le_bytes()[0] & 0x3f)
        }
        _ => [0; 4],
    };
    let mut out = out;
    let skip = to_index(first & 3);
    if skip != 0 {
        let split = out.len().min(4_usize.saturating_sub(skip));
        let Some((head, rest)) = out.split_at_mut_checked(split) else { return };
        let Some(group) = groups.next() else { return };
        for (place, code) in head.iter_mut().zip(codes(group).into_iter().skip(skip)) {
            *place = look_up(table, code);
        }
        out = rest;
    }
    for (places, group) in out.chunks_mut(4).zip(groups) {
        for (place, code) in places.iter_mut().zip(codes(group)) {
            *place = look_up(table, code);
        }
    }
}

/// A position in bytes that are in memory.
fn to_index(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
