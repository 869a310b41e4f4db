//! Conversions between integer types. They saturate, where `as` would silently truncate. The
//! widening ones compile to nothing on 32-bit and 64-bit targets.

/// Converts a position in a header to an index. Headers are in memory, so their positions fit.
#[inline]
pub(crate) fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Converts a length in memory to a length in a file.
#[inline]
pub(crate) fn to_u64(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Converts a position in a header to 32 bits. `Header` checks that headers are shorter than 4 GiB.
#[inline]
pub(crate) fn to_u32(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
