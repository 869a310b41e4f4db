//! The rules, one kind of error each, and the sentence that each says.

use core::fmt;

use super::terms::{Byte, Expected, Field, JsonType, Key, StringKind};
use crate::dtype::Dtype;
use crate::foreign::Foreign;

/// What went wrong. A kind is one rule broken.
///
/// The kinds come in four groups: the file's frame and text, one entry of the header, the entries
/// together, and what a caller may ask of a valid file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file has fewer than the 8 bytes of the header's length.
    FileTooShort {
        /// Bytes of the file.
        len: u64,
    },
    /// The first bytes are those of another format.
    Foreign {
        /// What the file looks like.
        format: Foreign,
    },
    /// The header's length is 0.
    HeaderEmpty,
    /// The header is larger than [`Limits::header_bytes`](crate::Limits::header_bytes).
    HeaderTooLarge {
        /// Bytes that the file says its header has.
        len: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The file ends inside its header.
    HeaderTruncated {
        /// Bytes that the file says its header has.
        len: u64,
        /// Bytes that follow the header's length.
        available: u64,
    },
    /// The header is not UTF-8.
    InvalidUtf8,
    /// The header does not begin with `{`.
    HeaderStart {
        /// The byte in its place.
        found: u8,
    },
    /// The header begins with white space, which [strict](crate::Limits::leading_whitespace) rules
    /// refuse.
    LeadingWhitespace,
    /// The header is padded with NUL bytes.
    NulPadding,
    /// The header is padded with other than spaces, which [strict](crate::Limits::any_padding) rules
    /// refuse.
    Padding {
        /// The white space found.
        found: u8,
    },
    /// Something follows the header's object.
    AfterHeader {
        /// The first byte of it.
        found: u8,
    },
    /// The header's text ends inside its object.
    UnexpectedEnd {
        /// What had to come.
        expected: Expected,
    },
    /// A byte that JSON does not allow here.
    UnexpectedByte {
        /// The byte.
        found: u8,
        /// What had to come.
        expected: Expected,
    },
    /// A control character in a string, which has to be escaped.
    ControlCharacter {
        /// The character.
        found: u8,
    },
    /// An escape that JSON does not have.
    InvalidEscape,
    /// Half of a surrogate pair, which stands for no character.
    LoneSurrogate,
    /// A number that is not written as JSON writes numbers: `01`, `1.`, `-`.
    InvalidNumber,
    /// A number beyond the range of 64-bit floats, in the value of an unknown key.
    NumberRange,
    /// Values nested deeper than [`Limits::depth`](crate::Limits::depth).
    TooDeep {
        /// Levels allowed.
        limit: u8,
    },
    /// A string longer than the limit on its kind.
    StringTooLong {
        /// Which kind of string.
        what: StringKind,
        /// Its bytes, decoded.
        len: u64,
        /// Bytes allowed.
        limit: u32,
    },

    /// A value of another JSON type than the format asks for.
    WrongType {
        /// Whose value.
        field: Field,
        /// Its type.
        found: JsonType,
    },
    /// An entry without one of its three keys.
    MissingKey {
        /// The key.
        key: Key,
    },
    /// An entry with one of its keys twice.
    DuplicateKey {
        /// The key.
        key: Key,
    },
    /// An entry with a key of its own, which [strict](crate::Limits::unknown_keys) rules refuse.
    UnknownKey,
    /// A dtype that the format does not have.
    UnknownDtype,
    /// A dtype that [`Limits::dtypes`](crate::Limits::dtypes) leaves out.
    DtypeNotAccepted {
        /// The dtype.
        dtype: Dtype,
    },
    /// A number with a sign, a fraction or an exponent where a natural number has to be.
    NotNatural {
        /// Whose value.
        field: Field,
    },
    /// A natural number above 2^64 - 1.
    IntegerOverflow {
        /// Whose value.
        field: Field,
    },
    /// A natural number above [`Limits::integer`](crate::Limits::integer), or
    /// [`Limits::empty_dimension`](crate::Limits::empty_dimension).
    IntegerTooLarge {
        /// The number.
        value: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// More dimensions than [`Limits::rank`](crate::Limits::rank).
    RankTooLarge {
        /// Dimensions allowed.
        limit: u32,
    },
    /// The product of the dimensions, or the bytes it takes, does not fit 64 bits.
    ShapeOverflow,
    /// Elements smaller than a byte, that end inside one.
    PartialByte {
        /// Their dtype.
        dtype: Dtype,
        /// How many.
        elements: u64,
    },
    /// `data_offsets` with other than two numbers.
    OffsetCount,
    /// `data_offsets` whose end is before its begin.
    OffsetsReversed {
        /// The first number.
        begin: u64,
        /// The second number.
        end: u64,
    },
    /// `data_offsets` that hold another number of bytes than dtype and shape need.
    SizeMismatch {
        /// Begin of the bytes.
        begin: u64,
        /// End of the bytes.
        end: u64,
        /// The dtype.
        dtype: Dtype,
        /// The product of the shape.
        elements: u64,
    },

    /// More tensors than [`Limits::tensors`](crate::Limits::tensors).
    TooManyTensors {
        /// Tensors allowed.
        limit: u32,
    },
    /// More keys in `__metadata__` than
    /// [`Limits::metadata_entries`](crate::Limits::metadata_entries).
    TooManyMetadataEntries {
        /// Keys allowed.
        limit: u32,
    },
    /// Two tensors of one name, however each is spelled.
    DuplicateName {
        /// The byte of the file at which the first one stands.
        first: u64,
    },
    /// A second `__metadata__`.
    DuplicateMetadata,
    /// A key of `__metadata__` twice, however each is spelled.
    DuplicateMetadataKey {
        /// The byte of the file at which the first one stands.
        first: u64,
    },
    /// `__metadata__` is null, which [strict](crate::Limits::null_metadata) rules refuse.
    NullMetadata,
    /// Bytes of the data region, before a tensor, that belong to no tensor.
    Hole {
        /// Begin of the bytes, counted from the data region's begin.
        begin: u64,
        /// End of the bytes: where the tensor begins.
        end: u64,
    },
    /// A tensor that begins before the one before it ends.
    Overlap {
        /// Where it begins, counted from the data region's begin.
        begin: u64,
        /// Where the one before it ends.
        previous_end: u64,
    },
    /// The data region is shorter than its tensors.
    DataTruncated {
        /// Bytes that the tensors take.
        needed: u64,
        /// Bytes of the data region.
        available: u64,
    },
    /// The data region goes on after its last tensor.
    DataTrailing {
        /// Bytes that the tensors take.
        needed: u64,
        /// Bytes of the data region.
        available: u64,
    },
    /// The tensors' sizes together are not the data region's. Said where the tensors are not listed
    /// in the order of their data, and which of them is wrong is not known.
    DataMismatch {
        /// Bytes that the tensors take.
        total: u64,
        /// Bytes of the data region.
        available: u64,
    },

    /// Fewer slots than the header needs.
    TooFewSlots {
        /// Slots that are enough.
        needed: u64,
        /// Slots that the caller gave.
        given: u64,
    },
    /// No tensor has the name.
    TensorNotFound,
    /// A buffer of another length than what it is for.
    BufferLength {
        /// Length needed, in the buffer's own elements.
        needed: u64,
        /// Length given.
        given: u64,
    },
    /// A range of elements or rows that the tensor does not have.
    RangeOutOfBounds {
        /// Begin of the range.
        begin: u64,
        /// End of the range.
        end: u64,
        /// Elements or rows that there are.
        len: u64,
    },
    /// A scalar, which has no rows.
    NoRows,
    /// The dtype has no value as `f32`: C64.
    NoF32 {
        /// The dtype.
        dtype: Dtype,
    },
    /// More elements in one call than
    /// [`Limits::dequant_elements`](crate::Limits::dequant_elements).
    TooManyElements {
        /// Elements asked for.
        count: u64,
        /// Elements allowed.
        limit: u64,
    },
    /// A typed slice of another type than the tensor's.
    WrongElementType {
        /// The tensor's dtype.
        dtype: Dtype,
        /// The dtype that the type asked for stands for.
        asked: Dtype,
    },
    /// A typed slice of bytes that do not begin where the type may.
    Misaligned {
        /// Bytes by which the type's addresses have to be divisible.
        align: usize,
        /// What remains of the address on division.
        remainder: usize,
    },
    /// A typed slice of little-endian numbers on a big-endian machine.
    BigEndianHost,
    /// More indexers than dimensions, or than
    /// [`MAX_INDEXERS`](crate::slice::MAX_INDEXERS).
    TooManyIndexers {
        /// Indexers given.
        given: u64,
        /// Indexers possible.
        limit: u64,
    },
    /// An index, or the end of a range, outside its dimension.
    IndexOutOfRange {
        /// The dimension, counted from 0.
        dimension: u32,
        /// The index.
        index: u64,
        /// The dimension's size.
        size: u64,
    },
    /// A range of indexes whose end is before its start.
    IndexReversed {
        /// The dimension, counted from 0.
        dimension: u32,
        /// The first index.
        start: u64,
        /// The index after the last.
        stop: u64,
    },
    /// A slice of elements smaller than a byte, that begins or ends inside one.
    PartialByteSlice {
        /// Their dtype.
        dtype: Dtype,
    },
}

impl ErrorKind {
    /// A short name of the kind, stable across versions, for logs and scripts: the variant's name in
    /// snake case.
    #[must_use]
    pub fn name(&self) -> &'static str {
        use ErrorKind as K;
        match self {
            K::FileTooShort { .. } => "file_too_short",
            K::Foreign { .. } => "foreign",
            K::HeaderEmpty => "header_empty",
            K::HeaderTooLarge { .. } => "header_too_large",
            K::HeaderTruncated { .. } => "header_truncated",
            K::InvalidUtf8 => "invalid_utf8",
            K::HeaderStart { .. } => "header_start",
            K::LeadingWhitespace => "leading_whitespace",
            K::NulPadding => "nul_padding",
            K::Padding { .. } => "padding",
            K::AfterHeader { .. } => "after_header",
            K::UnexpectedEnd { .. } => "unexpected_end",
            K::UnexpectedByte { .. } => "unexpected_byte",
            K::ControlCharacter { .. } => "control_character",
            K::InvalidEscape => "invalid_escape",
            K::LoneSurrogate => "lone_surrogate",
            K::InvalidNumber => "invalid_number",
            K::NumberRange => "number_range",
            K::TooDeep { .. } => "too_deep",
            K::StringTooLong { .. } => "string_too_long",
            K::WrongType { .. } => "wrong_type",
            K::MissingKey { .. } => "missing_key",
            K::DuplicateKey { .. } => "duplicate_key",
            K::UnknownKey => "unknown_key",
            K::UnknownDtype => "unknown_dtype",
            K::DtypeNotAccepted { .. } => "dtype_not_accepted",
            K::NotNatural { .. } => "not_natural",
            K::IntegerOverflow { .. } => "integer_overflow",
            K::IntegerTooLarge { .. } => "integer_too_large",
            K::RankTooLarge { .. } => "rank_too_large",
            K::ShapeOverflow => "shape_overflow",
            K::PartialByte { .. } => "partial_byte",
            K::OffsetCount => "offset_count",
            K::OffsetsReversed { .. } => "offsets_reversed",
            K::SizeMismatch { .. } => "size_mismatch",
            K::TooManyTensors { .. } => "too_many_tensors",
            K::TooManyMetadataEntries { .. } => "too_many_metadata_entries",
            K::DuplicateName { .. } => "duplicate_name",
            K::DuplicateMetadata => "duplicate_metadata",
            K::DuplicateMetadataKey { .. } => "duplicate_metadata_key",
            K::NullMetadata => "null_metadata",
            K::Hole { .. } => "hole",
            K::Overlap { .. } => "overlap",
            K::DataTruncated { .. } => "data_truncated",
            K::DataTrailing { .. } => "data_trailing",
            K::DataMismatch { .. } => "data_mismatch",
            K::TooFewSlots { .. } => "too_few_slots",
            K::TensorNotFound => "tensor_not_found",
            K::BufferLength { .. } => "buffer_length",
            K::RangeOutOfBounds { .. } => "range_out_of_bounds",
            K::NoRows => "no_rows",
            K::NoF32 { .. } => "no_f32",
            K::TooManyElements { .. } => "too_many_elements",
            K::WrongElementType { .. } => "wrong_element_type",
            K::Misaligned { .. } => "misaligned",
            K::BigEndianHost => "big_endian_host",
            K::TooManyIndexers { .. } => "too_many_indexers",
            K::IndexOutOfRange { .. } => "index_out_of_range",
            K::IndexReversed { .. } => "index_reversed",
            K::PartialByteSlice { .. } => "partial_byte_slice",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ErrorKind as K;
        match *self {
            K::FileTooShort { len } => write!(
                f,
                "the file has {len} bytes, fewer than the 8 of the header length it has to begin with"
            ),
            K::Foreign { format } => write!(f, "this is no safetensors file: it looks like {format}"),
            K::HeaderEmpty => f.write_str("the header length is 0, so there is no header"),
            K::HeaderTooLarge { len, limit } => {
                write!(f, "the header length is {len}, above the limit of {limit}")
            }
            K::HeaderTruncated { len, available } => write!(
                f,
                "the file is truncated: of {len} bytes of header, {available} are there"
            ),
            K::InvalidUtf8 => f.write_str("the header is not UTF-8"),
            K::HeaderStart { found: 0xef } => {
                f.write_str("the header begins with 0xef, as a byte order mark does, not with `{`")
            }
            K::HeaderStart { found } => {
                write!(f, "the header begins with {}, not with `{{`", Byte(found))
            }
            K::LeadingWhitespace => f.write_str("the header begins with white space, not with `{`"),
            K::NulPadding => {
                f.write_str("the header is padded with NUL bytes, where only spaces may be")
            }
            K::Padding { found } => {
                write!(f, "the header is padded with {}, where only spaces may be", Byte(found))
            }
            K::AfterHeader { found } => {
                write!(f, "found {} after the header's object, which has to be its end", Byte(found))
            }
            K::UnexpectedEnd { expected } => write!(f, "expected {expected}, found the header's end"),
            K::UnexpectedByte { found, expected } => {
                write!(f, "expected {expected}, found {}", Byte(found))
            }
            K::ControlCharacter { found } => {
                write!(f, "found {} in a string, where it has to be escaped", Byte(found))
            }
            K::InvalidEscape => f.write_str("a backslash begins no escape of JSON"),
            K::LoneSurrogate => f.write_str("half of a surrogate pair stands for no character"),
            K::InvalidNumber => f.write_str("a number is not written as JSON writes numbers"),
            K::NumberRange => f.write_str("a number is beyond the range of 64-bit floats"),
            K::TooDeep { limit } => write!(f, "values are nested deeper than {limit} levels"),
            K::StringTooLong { what, len, limit } => {
                write!(f, "{what} has {len} bytes, above the limit of {limit}")
            }
            K::WrongType { field, found } => {
                write!(f, "{field} has to be {}, not {found}", field.needed())
            }
            K::MissingKey { key } => write!(f, "the entry has no `{key}`"),
            K::DuplicateKey { key } => write!(f, "the entry has `{key}` twice"),
            K::UnknownKey => {
                f.write_str("the entry has a key other than `dtype`, `shape` and `data_offsets`")
            }
            K::UnknownDtype => f.write_str("the dtype is none of the format's"),
            K::DtypeNotAccepted { dtype } => {
                write!(f, "the dtype {dtype} is not among those accepted")
            }
            K::NotNatural { field } => {
                write!(f, "{field} has to be a natural number, written in digits alone")
            }
            K::IntegerOverflow { field } => write!(f, "{field} is above 18446744073709551615"),
            K::IntegerTooLarge { value, limit } => {
                write!(f, "the number {value} is above the limit of {limit}")
            }
            K::RankTooLarge { limit } => {
                write!(f, "the shape has more than the {limit} dimensions allowed")
            }
            K::ShapeOverflow => f.write_str("the size of the shape does not fit 64 bits"),
            K::PartialByte { dtype, elements } => {
                write!(f, "{elements} elements of {dtype} do not fill whole bytes")
            }
            K::OffsetCount => f.write_str("data_offsets has to hold two numbers, begin and end"),
            K::OffsetsReversed { begin, end } => {
                write!(f, "data_offsets {begin}..{end} end before they begin")
            }
            K::SizeMismatch { begin, end, dtype, elements } => {
                let held = end.saturating_sub(begin);
                let needed = dtype.byte_len(elements).unwrap_or(u64::MAX);
                write!(
                    f,
                    "data_offsets {begin}..{end} hold {held} bytes, \
                     but {elements} elements of {dtype} need {needed}"
                )
            }
            K::TooManyTensors { limit } => write!(f, "the header has more than {limit} tensors"),
            K::TooManyMetadataEntries { limit } => {
                write!(f, "__metadata__ has more than {limit} keys")
            }
            K::DuplicateName { first } => {
                write!(f, "the name stands twice in the header, first at byte {first}")
            }
            K::DuplicateMetadata => f.write_str("__metadata__ stands twice in the header"),
            K::DuplicateMetadataKey { first } => {
                write!(f, "a key stands twice in __metadata__, first at byte {first}")
            }
            K::NullMetadata => f.write_str("__metadata__ has to be an object, not null"),
            K::Hole { begin, end } => {
                write!(f, "the bytes {begin}..{end} of the data before it belong to no tensor")
            }
            K::Overlap { begin, previous_end } => write!(
                f,
                "it begins at byte {begin} of the data, where the tensor before it goes on to {previous_end}"
            ),
            K::DataTruncated { needed, available } => write!(
                f,
                "the file is truncated: of {needed} bytes of data, {available} are there"
            ),
            K::DataTrailing { needed, available } => write!(
                f,
                "the last tensor ends at byte {needed} of the data, which goes on to {available}"
            ),
            K::DataMismatch { total, available } => write!(
                f,
                "the tensors take {total} bytes together, but the data has {available}"
            ),
            K::TooFewSlots { needed, given } => {
                write!(f, "the header needs {needed} slots, but {given} were given")
            }
            K::TensorNotFound => f.write_str("no tensor has this name"),
            K::BufferLength { needed, given } => {
                write!(f, "the buffer has a length of {given}, but {needed} is needed")
            }
            K::RangeOutOfBounds { begin, end, len } => {
                write!(f, "the range {begin}..{end} is not within 0..{len}")
            }
            K::NoRows => f.write_str("a tensor without dimensions has no rows"),
            K::NoF32 { dtype } => write!(f, "elements of {dtype} have no value as f32"),
            K::TooManyElements { count, limit } => {
                write!(f, "{count} elements in one call are above the limit of {limit}")
            }
            K::WrongElementType { dtype, asked } => {
                write!(f, "the elements are of dtype {dtype}, not {asked}")
            }
            K::Misaligned { align, remainder } => write!(
                f,
                "the bytes begin {remainder} after an address divisible by {align}, as their type needs"
            ),
            K::BigEndianHost => {
                f.write_str("the numbers are little-endian, but this machine is big-endian")
            }
            K::TooManyIndexers { given, limit } => {
                write!(f, "{given} indexers were given, but {limit} is the most")
            }
            K::IndexOutOfRange { dimension, index, size } => {
                write!(f, "{index} is outside dimension {dimension}, whose size is {size}")
            }
            K::IndexReversed { dimension, start, stop } => {
                write!(f, "the range {start}..{stop} of dimension {dimension} ends before it starts")
            }
            K::PartialByteSlice { dtype } => {
                write!(f, "the slice of {dtype} elements begins or ends inside a byte")
            }
        }
    }
}
