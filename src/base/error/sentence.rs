//! The message of each kind of error.

use core::fmt;

use super::kind::ErrorKind;
use super::terms::Byte;

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ErrorKind as K;
        match *self {
            K::FileTooShort { len } => {
                write!(f, "the file has {len} bytes, too few for the 8-byte header length")
            }
            K::Foreign { format } => write!(f, "not a safetensors file: it looks like {format}"),
            K::HeaderEmpty => f.write_str("the header length is 0"),
            K::HeaderTooLarge { len, limit } => {
                write!(f, "the header length is {len}, above the limit of {limit}")
            }
            K::HeaderTruncated { len, available } => {
                write!(f, "the file is truncated: it has {available} of {len} header bytes")
            }
            K::InvalidUtf8 => f.write_str("the JSON text is not valid UTF-8"),
            K::HeaderStart { found: 0xef } => f.write_str(
                "expected `{` at the start of the header, \
                     found 0xef, as in a byte order mark",
            ),
            K::HeaderStart { found } => {
                write!(f, "expected `{{` at the start of the header, found {}", Byte(found))
            }
            K::LeadingWhitespace => {
                f.write_str("expected `{` at the start of the header, found white space")
            }
            K::NulPadding => f.write_str("the header is padded with NUL bytes instead of spaces"),
            K::Padding { found } => {
                write!(f, "the header is padded with {} instead of spaces", Byte(found))
            }
            K::AfterHeader { found } => {
                write!(f, "found {} after the end of the JSON object", Byte(found))
            }
            K::UnexpectedEnd { expected } => {
                write!(f, "expected {expected}, found the end of the JSON text")
            }
            K::UnexpectedByte { found, expected } => {
                write!(f, "expected {expected}, found {}", Byte(found))
            }
            K::ControlCharacter { found } => {
                write!(f, "found {} unescaped in a string", Byte(found))
            }
            K::InvalidEscape => f.write_str("invalid escape in a string"),
            K::LoneSurrogate => f.write_str("unpaired surrogate in a string"),
            K::InvalidNumber => f.write_str("invalid JSON number"),
            K::NumberRange => f.write_str("number out of range for a 64-bit float"),
            K::TooDeep { limit } => write!(f, "values are nested deeper than {limit} levels"),
            K::StringTooLong { what, len, limit } => {
                write!(f, "{what} has {len} bytes, above the limit of {limit}")
            }
            K::WrongType { field, found } => {
                write!(f, "{field} must be {}, not {found}", field.needed())
            }
            K::MissingKey { key } => write!(f, "{} has no `{key}`", key.owner()),
            K::DuplicateKey { key } => write!(f, "{} has `{key}` twice", key.owner()),
            K::UnknownKey => f.write_str("the entry has an unknown key"),
            K::UnknownDtype => f.write_str("unknown dtype"),
            K::DtypeNotAccepted { dtype } => {
                write!(f, "the dtype {dtype} is not accepted")
            }
            K::NotNatural { field } => {
                write!(f, "{field} must be a natural number in plain digits")
            }
            K::IntegerOverflow { field } => write!(f, "{field} is above 18446744073709551615"),
            K::IntegerTooLarge { value, limit } => {
                write!(f, "the number {value} is above the limit of {limit}")
            }
            K::RankTooLarge { limit } => {
                write!(f, "the shape has more than {limit} dimensions")
            }
            K::ShapeOverflow => f.write_str("the shape's size does not fit in 64 bits"),
            K::PartialByte { dtype, elements } => {
                write!(f, "{elements} elements of {dtype} do not fill whole bytes")
            }
            K::OffsetCount => f.write_str("data_offsets must hold two numbers, begin and end"),
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
            K::TooManyTensors { limit } => write!(f, "there are more than {limit} tensors"),
            K::TooManyMetadataEntries { limit } => {
                write!(f, "__metadata__ has more than {limit} keys")
            }
            K::DuplicateName { first } => {
                write!(f, "duplicate name, first used at byte {first}")
            }
            K::DuplicateMetadata => f.write_str("the header has __metadata__ twice"),
            K::DuplicateMetadataKey { first } => {
                write!(f, "duplicate key in __metadata__, first used at byte {first}")
            }
            K::NullMetadata => f.write_str("the metadata must be an object, not null"),
            K::Hole { begin, end } => {
                write!(f, "bytes {begin}..{end} of the data, just before it, belong to no tensor")
            }
            K::Overlap { begin, previous_end } => write!(
                f,
                "its data begins at byte {begin}, \
                 but the previous tensor ends at byte {previous_end}"
            ),
            K::DataTruncated { needed, available } => {
                write!(f, "the file is truncated: it has {available} of {needed} data bytes")
            }
            K::DataTrailing { needed, available } => write!(
                f,
                "the data has {available} bytes, but the last tensor ends at byte {needed}"
            ),
            K::DataMismatch { total, available } => {
                write!(f, "the tensors need {total} bytes in total, but the data has {available}")
            }
            K::IndexTooLarge { len, limit } => {
                write!(f, "the index has {len} bytes, above the limit of {limit}")
            }
            K::ForeignIndex { format } => {
                write!(f, "not a shard index: it looks like {format}")
            }
            K::EmptyWeightMap => f.write_str("weight_map is empty"),
            K::TooManyShards { limit } => write!(f, "there are more than {limit} shards"),
            K::ShardName { fault } => write!(f, "the shard name {fault}"),
            K::TooFewSlots { needed, given } => {
                write!(f, "the header needs {needed} slots, but {given} were given")
            }
            K::TensorNotFound => f.write_str("no tensor has this name"),
            K::BufferLength { needed, given } => {
                write!(f, "the buffer's length is {given}, but {needed} is needed")
            }
            K::RangeOutOfBounds { begin, end, len } => {
                write!(f, "the range {begin}..{end} is not within 0..{len}")
            }
            K::NoRows => f.write_str("a scalar has no rows"),
            K::NoF32 { dtype } => write!(f, "{dtype} elements have no f32 value"),
            K::TooManyElements { count, limit } => {
                write!(f, "{count} elements in one call exceed the limit of {limit}")
            }
            K::WrongElementType { dtype, asked } => {
                write!(f, "the elements are {dtype}, not {asked}")
            }
            K::Misaligned { align, remainder } => write!(
                f,
                "the data begins {remainder} bytes past a multiple of {align}, the type's alignment"
            ),
            K::BigEndianHost => {
                f.write_str("the data is little-endian, but this machine is big-endian")
            }
            K::TooManyIndexers { given, limit } => {
                write!(f, "{given} indexers were given, but at most {limit} fit")
            }
            K::IndexOutOfRange { dimension, index, size } => {
                write!(f, "{index} is out of range for dimension {dimension} of size {size}")
            }
            K::IndexReversed { dimension, start, stop } => {
                write!(
                    f,
                    "the range {start}..{stop} of dimension {dimension} ends before it starts"
                )
            }
            K::PartialByteSlice { dtype } => {
                write!(f, "the slice of {dtype} elements begins or ends inside a byte")
            }
            K::ReservedName => f.write_str("the name __metadata__ is reserved"),
            K::NameRepeated { first } => {
                write!(f, "duplicate name, first used by the tensor at index {first}")
            }
            K::MetadataKeyRepeated => f.write_str("duplicate metadata key"),
            K::NotPowerOfTwo { align } => {
                write!(f, "the alignment {align} is not a power of two")
            }
            K::FileTooLarge => f.write_str("the file's length does not fit in 64 bits"),
            K::NoConversion { dtype } => {
                write!(f, "numbers of this type cannot be written as {dtype}")
            }
            K::ValueOutOfRange { index, value, dtype } => {
                write!(f, "{dtype} cannot hold {value}, the value at index {index}")
            }
            K::DataMissing { needed, written } => {
                write!(f, "only {written} of its {needed} bytes were written")
            }
            K::DataExcess { needed, written } => {
                write!(f, "it has {needed} bytes, but {written} were supplied")
            }
            K::OutOfOrder => f.write_str("the stream is already past its data"),
        }
    }
}
