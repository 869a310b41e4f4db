//! The kinds of errors, one per rule.

use super::terms::{Expected, Field, JsonType, Key, ShardNameFault, StringKind};
use crate::base::dtype::Dtype;
use crate::base::foreign::Foreign;

/// What is wrong. Each kind is the violation of one rule.
///
/// The kinds are grouped: the file's frame and text, a single entry of the header, the entries
/// together, a shard index, requests on a valid file, and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is shorter than the 8 bytes of the header's length.
    FileTooShort {
        /// Bytes in the file.
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
        /// The header's length in bytes, as given in the file.
        len: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file ends inside its header.
    HeaderTruncated {
        /// The header's length in bytes, as given in the file.
        len: u64,
        /// Bytes after the header's length.
        available: u64,
    },
    /// The header, or a shard index, is not UTF-8.
    InvalidUtf8,
    /// The header does not begin with `{`.
    HeaderStart {
        /// The first byte.
        found: u8,
    },
    /// The header begins with white space, which
    /// [strict rules](crate::Limits::leading_whitespace) reject.
    LeadingWhitespace,
    /// The header is padded with NUL bytes.
    NulPadding,
    /// The header is padded with white space other than spaces, which
    /// [strict rules](crate::Limits::any_padding) reject.
    Padding {
        /// The white space found.
        found: u8,
    },
    /// The JSON object of the header, or of a shard index, is followed by something else.
    AfterHeader {
        /// The first byte after the object.
        found: u8,
    },
    /// The JSON text ends inside its object.
    UnexpectedEnd {
        /// What JSON requires here.
        expected: Expected,
    },
    /// A byte that JSON does not allow here.
    UnexpectedByte {
        /// The byte.
        found: u8,
        /// What JSON requires here.
        expected: Expected,
    },
    /// An unescaped control character in a string.
    ControlCharacter {
        /// The character.
        found: u8,
    },
    /// An invalid escape in a string.
    InvalidEscape,
    /// An unpaired surrogate in a string.
    LoneSurrogate,
    /// An invalid number, such as `01`, `1.` or `-`.
    InvalidNumber,
    /// A number out of range for a 64-bit float, in the value of an unknown key.
    NumberRange,
    /// Values nested deeper than [`Limits::depth`](crate::Limits::depth).
    TooDeep {
        /// Levels allowed.
        limit: u8,
    },
    /// A string longer than the limit for its kind.
    StringTooLong {
        /// The kind of string.
        what: StringKind,
        /// Its length in bytes, decoded.
        len: u64,
        /// The limit in bytes.
        limit: u32,
    },

    /// A value of the wrong JSON type.
    WrongType {
        /// The field.
        field: Field,
        /// The type found.
        found: JsonType,
    },
    /// A required key is missing: one of an entry's three keys, or `weight_map` in a shard index.
    MissingKey {
        /// The key.
        key: Key,
    },
    /// An entry, or a shard index, has a key twice.
    DuplicateKey {
        /// The key.
        key: Key,
    },
    /// An unknown key in an entry, which [strict rules](crate::Limits::unknown_keys) reject.
    UnknownKey,
    /// An unknown dtype.
    UnknownDtype,
    /// A dtype that is not in [`Limits::dtypes`](crate::Limits::dtypes).
    DtypeNotAccepted {
        /// The dtype.
        dtype: Dtype,
    },
    /// A number with a sign, a fraction or an exponent, where a natural number is required.
    NotNatural {
        /// The field.
        field: Field,
    },
    /// A natural number above 2^64 - 1.
    IntegerOverflow {
        /// The field.
        field: Field,
    },
    /// A natural number above [`Limits::integer`](crate::Limits::integer) or
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
    /// The product of the dimensions, or the tensor's size in bytes, does not fit in 64 bits.
    ShapeOverflow,
    /// Elements smaller than a byte that do not fill whole bytes.
    PartialByte {
        /// The dtype.
        dtype: Dtype,
        /// The number of elements.
        elements: u64,
    },
    /// `data_offsets` does not have exactly two numbers.
    OffsetCount,
    /// `data_offsets` ends before it begins.
    OffsetsReversed {
        /// The first number.
        begin: u64,
        /// The second number.
        end: u64,
    },
    /// The size given by `data_offsets` differs from the size given by dtype and shape.
    SizeMismatch {
        /// The first offset.
        begin: u64,
        /// The second offset.
        end: u64,
        /// The dtype.
        dtype: Dtype,
        /// The product of the dimensions.
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
    /// Two tensors with the same name, compared after decoding escapes.
    DuplicateName {
        /// The position of the first one, in bytes from the start of the file or the shard index.
        first: u64,
    },
    /// A second `__metadata__`.
    DuplicateMetadata,
    /// A duplicate key in `__metadata__`, compared after decoding escapes.
    DuplicateMetadataKey {
        /// The position of the first one in the file.
        first: u64,
    },
    /// `__metadata__`, or `metadata` of a shard index, is null, which
    /// [strict rules](crate::Limits::null_metadata) reject.
    NullMetadata,
    /// Bytes of the data region just before a tensor belong to no tensor.
    Hole {
        /// The first of these bytes, as an offset in the data region.
        begin: u64,
        /// The end of these bytes, where the tensor begins.
        end: u64,
    },
    /// A tensor's data begins before the previous tensor's data ends.
    Overlap {
        /// Where it begins, as an offset in the data region.
        begin: u64,
        /// Where the previous tensor ends.
        previous_end: u64,
    },
    /// The data region is shorter than its tensors.
    DataTruncated {
        /// Bytes that the tensors need.
        needed: u64,
        /// Bytes in the data region.
        available: u64,
    },
    /// The data region continues after its last tensor.
    DataTrailing {
        /// Bytes that the tensors need.
        needed: u64,
        /// Bytes in the data region.
        available: u64,
    },
    /// The sum of the tensors' sizes differs from the size of the data region. Only reported by
    /// [`Header::scan`](crate::Header::scan) and [`Header::find`](crate::Header::find), for a
    /// header that does not list the tensors in data order, so that the wrong one is not known.
    DataMismatch {
        /// Bytes that the tensors need.
        total: u64,
        /// Bytes in the data region.
        available: u64,
    },

    /// The shard index is larger than [`IndexLimits::bytes`](crate::IndexLimits::bytes).
    IndexTooLarge {
        /// Bytes in the index.
        len: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The first bytes of a shard index are those of another format.
    ForeignIndex {
        /// What the index looks like.
        format: Foreign,
    },
    /// `weight_map` is empty, which [strict rules](crate::IndexLimits::empty_weight_map) reject.
    EmptyWeightMap,
    /// More shards than [`IndexLimits::shards`](crate::IndexLimits::shards).
    TooManyShards {
        /// Shards allowed.
        limit: u32,
    },
    /// An invalid shard name, or one that could lead out of the model's folder.
    ShardName {
        /// What is wrong with it.
        fault: ShardNameFault,
    },

    /// Fewer slots than the header needs.
    TooFewSlots {
        /// Slots needed.
        needed: u64,
        /// Slots given.
        given: u64,
    },
    /// No tensor has this name.
    TensorNotFound,
    /// A buffer of the wrong length.
    BufferLength {
        /// Length needed, in the buffer's elements.
        needed: u64,
        /// Length given.
        given: u64,
    },
    /// A range of bytes, elements or rows that is reversed or extends beyond the tensor.
    RangeOutOfBounds {
        /// The start of the range.
        begin: u64,
        /// The end of the range.
        end: u64,
        /// Bytes, elements or rows in the tensor.
        len: u64,
    },
    /// A scalar, which has no rows.
    NoRows,
    /// Elements of the dtype, C64, cannot be converted to `f32`.
    NoF32 {
        /// The dtype.
        dtype: Dtype,
    },
    /// More elements in one call than
    /// [`Limits::dequant_elements`](crate::Limits::dequant_elements).
    TooManyElements {
        /// Elements requested.
        count: u64,
        /// Elements allowed.
        limit: u64,
    },
    /// A typed slice of a type other than the tensor's.
    WrongElementType {
        /// The tensor's dtype.
        dtype: Dtype,
        /// The dtype of the requested type.
        asked: Dtype,
    },
    /// A typed slice of bytes that are not aligned for the type.
    Misaligned {
        /// The type's alignment in bytes.
        align: usize,
        /// The address modulo `align`.
        remainder: usize,
    },
    /// A typed slice of little-endian numbers on a big-endian machine.
    BigEndianHost,
    /// More indexers than dimensions, or than
    /// [`MAX_INDEXERS`](crate::tensor::slice::MAX_INDEXERS).
    TooManyIndexers {
        /// Indexers given.
        given: u64,
        /// Indexers allowed.
        limit: u64,
    },
    /// An index, or the end of a range, is out of range for its dimension.
    IndexOutOfRange {
        /// The dimension, counted from 0.
        dimension: u32,
        /// The index, or the exclusive end of the range.
        index: u64,
        /// The dimension's size.
        size: u64,
    },
    /// A range of indexes that ends before it starts.
    IndexReversed {
        /// The dimension, counted from 0.
        dimension: u32,
        /// The first index.
        start: u64,
        /// The index after the last.
        stop: u64,
    },
    /// A slice of elements smaller than a byte begins or ends inside a byte.
    PartialByteSlice {
        /// The dtype.
        dtype: Dtype,
    },

    /// A tensor has the name that the format reserves for the metadata.
    ReservedName,
    /// Two tensors to write have the same name.
    NameRepeated {
        /// The index of the first one in the list.
        first: u64,
    },
    /// The metadata to write has a duplicate key.
    MetadataKeyRepeated,
    /// An alignment that is not a power of two.
    NotPowerOfTwo {
        /// The alignment.
        align: u64,
    },
    /// A file whose length does not fit in 64 bits.
    FileTooLarge,
    /// Numbers of a type that cannot be written as the dtype: integers as floats, or floats as
    /// integers.
    NoConversion {
        /// The dtype.
        dtype: Dtype,
    },
    /// An integer that the dtype cannot hold.
    ValueOutOfRange {
        /// The integer's index in the values given.
        index: u64,
        /// The integer.
        value: i64,
        /// The dtype.
        dtype: Dtype,
    },
    /// Fewer bytes were written for a tensor than it has.
    DataMissing {
        /// Bytes in the tensor.
        needed: u64,
        /// Bytes written.
        written: u64,
    },
    /// More bytes were supplied for a tensor than it has.
    DataExcess {
        /// Bytes in the tensor.
        needed: u64,
        /// Bytes supplied.
        written: u64,
    },
    /// Data for a tensor that the stream is already past.
    OutOfOrder,
}

impl ErrorKind {
    /// Returns the variant's name in snake case. It is stable across versions, for logs and
    /// scripts.
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
            K::IndexTooLarge { .. } => "index_too_large",
            K::ForeignIndex { .. } => "foreign_index",
            K::EmptyWeightMap => "empty_weight_map",
            K::TooManyShards { .. } => "too_many_shards",
            K::ShardName { .. } => "shard_name",
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
            K::ReservedName => "reserved_name",
            K::NameRepeated { .. } => "name_repeated",
            K::MetadataKeyRepeated => "metadata_key_repeated",
            K::NotPowerOfTwo { .. } => "not_power_of_two",
            K::FileTooLarge => "file_too_large",
            K::NoConversion { .. } => "no_conversion",
            K::ValueOutOfRange { .. } => "value_out_of_range",
            K::DataMissing { .. } => "data_missing",
            K::DataExcess { .. } => "data_excess",
            K::OutOfOrder => "out_of_order",
        }
    }
}
