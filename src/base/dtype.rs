//! The 22 dtypes of the format: how a header spells them, how many bits an element has, and what
//! kind of number it is. Nothing here depends on a file.

use core::fmt;
use core::str::FromStr;

/// The type of a tensor's elements.
///
/// Names and order are those of the reference implementation, whose writer sorts tensors by dtype
/// in descending order. Numbers are little-endian in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
#[non_exhaustive]
#[repr(u8)]
pub enum Dtype {
    /// A byte: zero is false, anything else is true.
    BOOL,
    /// 4-bit float E2M1 of the OCP microscaling formats, two in a byte, low nibble first.
    F4,
    /// 6-bit float E2M3 of the OCP microscaling formats, four in three bytes, low bits first.
    F6_E2M3,
    /// 6-bit float E3M2 of the OCP microscaling formats, four in three bytes, low bits first.
    F6_E3M2,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// 8-bit float with a 5-bit exponent: a truncated F16, with infinities.
    F8_E5M2,
    /// 8-bit float with a 4-bit exponent: no infinities, NaN at 0x7f and 0xff (PyTorch's
    /// `float8_e4m3fn`).
    F8_E4M3,
    /// A power of two, 2^(x - 127), with NaN at 0xff: the scale of the OCP microscaling formats.
    F8_E8M0,
    /// Like F8_E4M3, with a bias of 8, no negative zero and one NaN, at 0x80.
    F8_E4M3FNUZ,
    /// Like F8_E5M2, with a bias of 16, no infinities, no negative zero and one NaN, at 0x80.
    F8_E5M2FNUZ,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// IEEE 754 single precision.
    F32,
    /// Complex number: two `f32`, the real part first.
    C64,
    /// IEEE 754 double precision.
    F64,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
}

/// One row per dtype, in the enum's order.
const TABLE: [(Dtype, &str, u8); 22] = [
    (Dtype::BOOL, "BOOL", 8),
    (Dtype::F4, "F4", 4),
    (Dtype::F6_E2M3, "F6_E2M3", 6),
    (Dtype::F6_E3M2, "F6_E3M2", 6),
    (Dtype::U8, "U8", 8),
    (Dtype::I8, "I8", 8),
    (Dtype::F8_E5M2, "F8_E5M2", 8),
    (Dtype::F8_E4M3, "F8_E4M3", 8),
    (Dtype::F8_E8M0, "F8_E8M0", 8),
    (Dtype::F8_E4M3FNUZ, "F8_E4M3FNUZ", 8),
    (Dtype::F8_E5M2FNUZ, "F8_E5M2FNUZ", 8),
    (Dtype::I16, "I16", 16),
    (Dtype::U16, "U16", 16),
    (Dtype::F16, "F16", 16),
    (Dtype::BF16, "BF16", 16),
    (Dtype::I32, "I32", 32),
    (Dtype::U32, "U32", 32),
    (Dtype::F32, "F32", 32),
    (Dtype::C64, "C64", 64),
    (Dtype::F64, "F64", 64),
    (Dtype::I64, "I64", 64),
    (Dtype::U64, "U64", 64),
];

impl Dtype {
    /// All dtypes, in the enum's order.
    #[allow(
        clippy::indexing_slicing,
        reason = "evaluated at compile time, where an index out of bounds is an error"
    )]
    pub const ALL: [Dtype; 22] = {
        let mut all = [Dtype::BOOL; 22];
        let mut i = 0;
        while i < TABLE.len() {
            all[i] = TABLE[i].0;
            i += 1;
        }
        all
    };

    #[inline]
    fn row(self) -> (Dtype, &'static str, u8) {
        // The compiler proves that the index is below 22.
        let [first, ..] = TABLE;
        TABLE.get(usize::from(self.index())).copied().unwrap_or(first)
    }

    /// Returns the position in the enum's order.
    #[inline]
    const fn index(self) -> u8 {
        #[allow(clippy::as_conversions, reason = "the discriminant of a fieldless repr(u8) enum")]
        {
            self as u8
        }
    }

    /// Returns the spelling used in headers, such as `"BF16"`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// Returns the number of bits of one element: 4, 6, 8, 16, 32 or 64.
    #[inline]
    #[must_use]
    pub fn bitsize(self) -> usize {
        usize::from(self.row().2)
    }

    /// Returns `true` if elements can be converted to `f32`, which is so for all dtypes but C64.
    #[must_use]
    pub fn has_f32(self) -> bool {
        self != Dtype::C64
    }

    /// Returns the dtype with this spelling. Spellings are case-sensitive.
    #[inline]
    pub(crate) fn from_spelling(spelling: &[u8]) -> Option<Dtype> {
        Some(match spelling {
            b"BOOL" => Dtype::BOOL,
            b"F4" => Dtype::F4,
            b"F6_E2M3" => Dtype::F6_E2M3,
            b"F6_E3M2" => Dtype::F6_E3M2,
            b"U8" => Dtype::U8,
            b"I8" => Dtype::I8,
            b"F8_E5M2" => Dtype::F8_E5M2,
            b"F8_E4M3" => Dtype::F8_E4M3,
            b"F8_E8M0" => Dtype::F8_E8M0,
            b"F8_E4M3FNUZ" => Dtype::F8_E4M3FNUZ,
            b"F8_E5M2FNUZ" => Dtype::F8_E5M2FNUZ,
            b"I16" => Dtype::I16,
            b"U16" => Dtype::U16,
            b"F16" => Dtype::F16,
            b"BF16" => Dtype::BF16,
            b"I32" => Dtype::I32,
            b"U32" => Dtype::U32,
            b"F32" => Dtype::F32,
            b"C64" => Dtype::C64,
            b"F64" => Dtype::F64,
            b"I64" => Dtype::I64,
            b"U64" => Dtype::U64,
            _ => return None,
        })
    }

    /// Returns the dtype whose spelling, of at most seven bytes and followed by a quote, is this
    /// little-endian number.
    #[inline(always)]
    pub(crate) fn from_word(spelling: u64) -> Option<Dtype> {
        const fn word(spelling: &[u8]) -> u64 {
            match spelling {
                [first, rest @ ..] => {
                    #[allow(clippy::as_conversions, reason = "`From` is not const")]
                    let first = *first as u64;
                    first | word(rest) << 8
                }
                [] => 0,
            }
        }
        macro_rules! words {
            ($($dtype:ident)*) => {
                match spelling {
                    $(found if found == const { word(concat!(stringify!($dtype), "\"").as_bytes()) } => Some(Dtype::$dtype),)*
                    _ => None,
                }
            };
        }
        // The most common ones first.
        words!(BF16 F16 F32 U8 I8 I32 I64 U32 F64 BOOL U16 I16 U64 C64 F4 F8_E4M3 F8_E5M2 F8_E8M0 F6_E2M3 F6_E3M2)
    }

    /// Returns the number of bytes that `elements` elements take.
    ///
    /// The number of bits is never computed, so the result overflows only if the number of bytes
    /// does not fit in 64 bits.
    #[inline]
    pub(crate) fn byte_len(self, elements: u64) -> Result<u64, ByteLenError> {
        let whole = |group_bits: u32| elements & (1_u64 << group_bits).wrapping_sub(1) == 0;
        let bytes = match self.bitsize() {
            4 if whole(1) => Some(elements >> 1),
            6 if whole(2) => (elements >> 2).checked_mul(3),
            4 | 6 => return Err(ByteLenError::PartialByte),
            8 => Some(elements),
            16 => elements.checked_mul(2),
            32 => elements.checked_mul(4),
            _ => elements.checked_mul(8),
        };
        bytes.ok_or(ByteLenError::Overflow)
    }

    /// Returns how many elements fit in this many bytes. For the two F6 dtypes, counts only whole
    /// groups of three bytes.
    #[inline]
    pub(crate) fn elements_in(self, bytes: u64) -> u64 {
        match self.bitsize() {
            4 => bytes.saturating_mul(2),
            6 => bytes.checked_div(3).unwrap_or(0).saturating_mul(4),
            8 => bytes,
            16 => bytes >> 1,
            32 => bytes >> 2,
            _ => bytes >> 3,
        }
    }
}

/// Why the size of a number of elements cannot be given in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteLenError {
    /// The elements end inside a byte.
    PartialByte,
    /// The size does not fit in 64 bits.
    Overflow,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of parsing a [`Dtype`] from an unknown spelling. Spellings are case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseDtypeError;

impl fmt::Display for ParseDtypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown dtype; dtypes are upper case, such as \"F32\" and \"BF16\"")
    }
}

impl core::error::Error for ParseDtypeError {}

impl FromStr for Dtype {
    type Err = ParseDtypeError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Dtype::from_spelling(s.as_bytes()).ok_or(ParseDtypeError)
    }
}

/// A set of dtypes, such as those accepted by [`Limits`](crate::Limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DtypeSet(u32);

impl DtypeSet {
    /// The empty set.
    pub const EMPTY: DtypeSet = DtypeSet(0);
    /// Every dtype.
    pub const ALL: DtypeSet = DtypeSet((1 << 22) - 1);
    /// Every dtype whose elements fill whole bytes: all but F4 and the two F6.
    pub const WHOLE_BYTES: DtypeSet =
        DtypeSet::ALL.difference(DtypeSet::of(&[Dtype::F4, Dtype::F6_E2M3, Dtype::F6_E3M2]));
    /// The five 8-bit floats.
    pub const FLOAT8: DtypeSet = DtypeSet::of(&[
        Dtype::F8_E5M2,
        Dtype::F8_E4M3,
        Dtype::F8_E8M0,
        Dtype::F8_E4M3FNUZ,
        Dtype::F8_E5M2FNUZ,
    ]);

    /// Returns the set of these dtypes.
    #[must_use]
    pub const fn of(dtypes: &[Dtype]) -> DtypeSet {
        let mut set = DtypeSet::EMPTY;
        let mut rest = dtypes;
        while let [first, tail @ ..] = rest {
            set = set.with(*first);
            rest = tail;
        }
        set
    }

    /// Returns this set with one more dtype.
    #[must_use]
    pub const fn with(self, dtype: Dtype) -> DtypeSet {
        DtypeSet(self.0 | (1 << dtype.index()))
    }

    /// Returns the dtypes that are in this set but not in `other`.
    #[must_use]
    pub const fn difference(self, other: DtypeSet) -> DtypeSet {
        DtypeSet(self.0 & !other.0)
    }

    /// Returns `true` if the dtype is in the set.
    #[inline]
    #[must_use]
    pub const fn contains(self, dtype: Dtype) -> bool {
        self.0 & (1 << dtype.index()) != 0
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use std::format;
    use std::prelude::v1::*;

    #[test]
    fn table_follows_the_order_of_the_enum() {
        for (i, dtype) in Dtype::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(dtype.index()), i);
            assert_eq!(dtype.as_str().parse(), Ok(dtype));
            assert_eq!(dtype.as_str(), format!("{dtype:?}"));
        }
    }

    #[test]
    fn byte_len_needs_whole_bytes_and_does_not_wrap() {
        assert_eq!(Dtype::F4.byte_len(18), Ok(9));
        assert_eq!(Dtype::F4.byte_len(3), Err(ByteLenError::PartialByte));
        assert_eq!(Dtype::F6_E2M3.byte_len(4), Ok(3));
        assert_eq!(Dtype::F6_E3M2.byte_len(2), Err(ByteLenError::PartialByte));
        assert_eq!(Dtype::F6_E3M2.byte_len(u64::MAX - 3), Ok((u64::MAX >> 2) * 3));
        assert_eq!(Dtype::U8.byte_len(u64::MAX), Ok(u64::MAX));
        assert_eq!(Dtype::F64.byte_len(1 << 61), Err(ByteLenError::Overflow));
        assert_eq!(Dtype::F64.byte_len((1 << 61) - 1), Ok(u64::MAX - 7));
        for dtype in Dtype::ALL {
            for elements in [0, 4, 8, 1 << 20] {
                assert_eq!(dtype.elements_in(dtype.byte_len(elements).unwrap()), elements);
            }
        }
    }

    #[test]
    fn sets_contain_what_they_name() {
        assert!(Dtype::ALL.into_iter().all(|d| DtypeSet::ALL.contains(d)));
        assert!(!DtypeSet::WHOLE_BYTES.contains(Dtype::F4));
        assert!(DtypeSet::WHOLE_BYTES.contains(Dtype::BOOL));
        assert!(!DtypeSet::ALL.difference(DtypeSet::FLOAT8).contains(Dtype::F8_E8M0));
    }
}
