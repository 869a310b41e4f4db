//! The conversions between integer types that the library needs. They say what they do where `as`
//! would not, and compile to nothing on 32 and 64 bits.

/// A position in a header as an index. Headers are in memory, so their positions fit.
#[inline]
pub(crate) fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A length in memory as a length in a file.
#[inline]
pub(crate) fn to_u64(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A position in a header, which `Header` has checked to be shorter than 4 GiB.
#[inline]
pub(crate) fn to_u32(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
