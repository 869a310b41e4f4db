//! The rules, one kind of error each.

use super::terms::{Expected, Field, JsonType, Key, ShardNameFault, StringKind};
use crate::base::dtype::Dtype;
use crate::base::foreign::Foreign;

/// What went wrong. A kind is one rule broken.
///
/// The kinds come in five groups: the file's frame and text, one entry of the header, the entries
/// together, a shard index, and what a caller may ask of a valid file.
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
    /// The header, or a shard index, is not UTF-8.
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
    /// Something follows the object that is the header, or a shard index.
    AfterHeader {
        /// The first byte of it.
        found: u8,
    },
    /// The text ends inside its object.
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
    /// An entry without one of its three keys, or an index without its `weight_map`.
    MissingKey {
        /// The key.
        key: Key,
    },
    /// An entry, or an index, with one of its keys twice.
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
    /// `__metadata__` is null, which [strict](crate::Limits::null_metadata) rules refuse; or
    /// `metadata` of a shard index.
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

    /// The shard index is larger than [`IndexLimits::bytes`](crate::IndexLimits::bytes).
    IndexTooLarge {
        /// Bytes of the index.
        len: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The first bytes of a shard index are those of another format.
    ForeignIndex {
        /// What the index looks like.
        format: Foreign,
    },
    /// `weight_map` has no tensors, which [strict](crate::IndexLimits::empty_weight_map) rules refuse.
    EmptyWeightMap,
    /// More shards than [`IndexLimits::shards`](crate::IndexLimits::shards).
    TooManyShards {
        /// Shards allowed.
        limit: u32,
    },
    /// The name of a shard that is none, or that may lead elsewhere than to the model's folder.
    ShardName {
        /// What is wrong with it.
        fault: ShardNameFault,
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
    /// [`MAX_INDEXERS`](crate::tensor::slice::MAX_INDEXERS).
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

    /// A tensor of the name that the format keeps for the metadata.
    ReservedName,
    /// Two tensors of one name are to be written.
    NameRepeated {
        /// Where the first of them stands in the list, counted from 0.
        first: u64,
    },
    /// A key of the metadata is to be written twice.
    MetadataKeyRepeated,
    /// An alignment that is no power of two.
    NotPowerOfTwo {
        /// The alignment.
        align: u64,
    },
    /// A file whose length does not fit 64 bits.
    FileTooLarge,
    /// Numbers of a type that the dtype does not take: integers for floats, floats for integers.
    NoConversion {
        /// The dtype.
        dtype: Dtype,
    },
    /// An integer that the dtype cannot hold.
    ValueOutOfRange {
        /// Where it stands in the values given, counted from 0.
        index: u64,
        /// The integer.
        value: i64,
        /// The dtype.
        dtype: Dtype,
    },
    /// Fewer bytes of a tensor than it has.
    DataMissing {
        /// Bytes of the tensor.
        needed: u64,
        /// Bytes that were written.
        written: u64,
    },
    /// More bytes of a tensor than it has.
    DataExcess {
        /// Bytes of the tensor.
        needed: u64,
        /// Bytes that were to be written.
        written: u64,
    },
    /// Data of a tensor whose turn, in a stream, has passed.
    OutOfOrder,
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
