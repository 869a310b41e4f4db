//! The loops over elements of whole bytes. Each is a zip of two slices without branches on the
//! data, so that the compiler can vectorise it for any target.

/// Fills `out` by applying `widen` to each group of `N` bytes.
#[inline]
pub(super) fn each<const N: usize>(bytes: &[u8], out: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
    for (place, group) in out.iter_mut().zip(bytes.chunks_exact(N)) {
        if let Some(group) = group.first_chunk() {
            *place = widen(*group);
        }
    }
}

/// Copies F32.
pub(super) fn f32(bytes: &[u8], out: &mut [f32]) {
    if cfg!(target_endian = "little") {
        let out: &mut [u8] = bytemuck::cast_slice_mut(out);
        if let Some(bytes) = bytes.get(..out.len()) {
            out.copy_from_slice(bytes);
        }
    } else {
        each(bytes, out, |quad| f32::from_bits(u32::from_le_bytes(quad)));
    }
}

/// Conversions with `as`, which rounds to nearest, ties to even.
#[allow(clippy::as_conversions, clippy::cast_precision_loss, clippy::cast_possible_truncation)]
mod rounding {
    #[inline]
    pub(crate) fn round_u32(value: u32) -> f32 {
        value as f32
    }

    #[inline]
    pub(crate) fn round_i32(value: i32) -> f32 {
        value as f32
    }

    #[inline]
    pub(crate) fn round_u64(value: u64) -> f32 {
        value as f32
    }

    #[inline]
    pub(crate) fn round_i64(value: i64) -> f32 {
        value as f32
    }

    #[inline]
    pub(crate) fn round_f64(value: f64) -> f32 {
        value as f32
    }
}

pub(super) use rounding::{round_f64, round_i32, round_i64, round_u32, round_u64};

/// Widens F16, with the processor's conversion instruction if there is one.
pub(super) fn f16(bytes: &[u8], out: &mut [f32]) {
    #[cfg(feature = "std")]
    if hardware::converts_f16() {
        hardware::f16(bytes, out);
        return;
    }
    each(bytes, out, |pair| widen_f16(u16::from_le_bytes(pair)));
}

/// Widens F8_E5M2, which is the upper half of an F16, in the same way.
pub(super) fn e5m2(bytes: &[u8], out: &mut [f32]) {
    let half = |code: u8| u16::from(code) << 8;
    #[cfg(feature = "std")]
    if hardware::converts_f16() {
        hardware::f16_in_blocks::<1>(bytes, out, |codes, halves| {
            for (place, code) in halves.iter_mut().zip(codes) {
                *place = half(*code);
            }
        });
        return;
    }
    each(bytes, out, |[code]| widen_f16(half(code)));
}

/// Converts an F16 to `f32`, with integer arithmetic and one subtraction of normal numbers.
#[inline]
pub(super) fn widen_f16(half: u16) -> f32 {
    /// The exponent offset between the formats. It is added twice for infinities and NaN, which
    /// raises their exponent from 31 to 255.
    const REBIAS: u32 = (127 - 15) << 23;
    const EXPONENT: u32 = 0x1f << 23;
    let magnitude = (u32::from(half) & 0x7fff) << 13;
    let sign = (u32::from(half) & 0x8000) << 16;
    let exponent = magnitude & EXPONENT;
    // Masks: all ones or all zeros.
    let is_special = 0_u32.wrapping_sub(u32::from(exponent == EXPONENT));
    let is_subnormal = 0_u32.wrapping_sub(u32::from(exponent == 0));
    let normal = magnitude.wrapping_add(REBIAS).wrapping_add(REBIAS & is_special);
    // A subnormal is 0.f * 2^-14. With the exponent incremented it becomes 1.f * 2^-14, which is
    // too large by 2^-14.
    let subnormal =
        f32::from_bits(normal.wrapping_add(1 << 23)) - f32::from_bits(REBIAS + (1 << 23));
    let bits = (normal & !is_subnormal) | (subnormal.to_bits() & is_subnormal);
    f32::from_bits(bits | sign)
}

/// Conversions with instructions outside the target's baseline, which `half` detects at run time.
#[cfg(feature = "std")]
mod hardware {
    use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    pub(super) fn converts_f16() -> bool {
        std::arch::is_x86_feature_detected!("f16c")
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn converts_f16() -> bool {
        std::arch::is_aarch64_feature_detected!("fp16")
    }

    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn converts_f16() -> bool {
        false
    }

    /// Widens F16. `bytes` can be longer than `out` needs.
    pub(super) fn f16(bytes: &[u8], out: &mut [f32]) {
        let bytes = bytes.get(..out.len().saturating_mul(2)).unwrap_or_default();
        if cfg!(target_endian = "little") {
            if let Ok(halves) = bytemuck::try_cast_slice::<u8, u16>(bytes) {
                convert(halves, out);
                return;
            }
        }
        f16_in_blocks::<2>(bytes, out, |pairs, halves| {
            if cfg!(target_endian = "little") {
                let halves: &mut [u8] = bytemuck::cast_slice_mut(halves);
                if halves.len() == pairs.len() {
                    halves.copy_from_slice(pairs);
                }
            } else {
                for (place, pair) in halves.iter_mut().zip(pairs.chunks_exact(2)) {
                    *place = pair.first_chunk().map_or(0, |pair| u16::from_le_bytes(*pair));
                }
            }
        });
    }

    /// The number of elements converted at a time if they are not F16 or not aligned.
    const BLOCK: usize = 256;

    /// Converts elements of `N` bytes block by block. `halve` converts them to F16 first.
    #[inline]
    pub(super) fn f16_in_blocks<const N: usize>(
        bytes: &[u8],
        out: &mut [f32],
        halve: impl Fn(&[u8], &mut [u16]),
    ) {
        let mut block = [0_u16; BLOCK];
        let block_bytes = const { BLOCK.saturating_mul(N) };
        for (out, bytes) in out.chunks_mut(BLOCK).zip(bytes.chunks(block_bytes)) {
            if let Some(halves) = block.get_mut(..out.len()) {
                halve(bytes, halves);
                convert(halves, out);
            }
        }
    }

    fn convert(halves: &[u16], out: &mut [f32]) {
        // `half` panics on unequal lengths.
        if halves.len() == out.len() {
            halves.reinterpret_cast::<half::f16>().convert_to_f32_slice(out);
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn widen_f16_is_exact_for_every_pattern() {
        for bits in 0..=u16::MAX {
            let expected = half::f16::from_bits(bits).to_f32_const();
            let found = widen_f16(bits);
            if expected.is_nan() {
                // Sign and payload are kept, and a signalling NaN stays signalling.
                let kept = (u32::from(bits & 0x8000) << 16)
                    | 0x7f80_0000
                    | (u32::from(bits & 0x3ff) << 13);
                assert_eq!(found.to_bits(), kept, "{bits:#06x}");
            } else {
                assert_eq!(found.to_bits(), expected.to_bits(), "{bits:#06x}");
            }
        }
    }
}
