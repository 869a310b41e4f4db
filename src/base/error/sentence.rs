//! The sentence that each kind of error says.

use core::fmt;

use super::kind::ErrorKind;
use super::terms::Byte;

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
            K::InvalidUtf8 => f.write_str("the JSON text is not UTF-8"),
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
                write!(f, "found {} after the JSON object, which has to be all", Byte(found))
            }
            K::UnexpectedEnd { expected } => write!(f, "expected {expected}, found the end of the JSON text"),
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
            K::MissingKey { key } => write!(f, "{} has no `{key}`", key.owner()),
            K::DuplicateKey { key } => write!(f, "{} has `{key}` twice", key.owner()),
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
            K::TooManyTensors { limit } => write!(f, "there are more than {limit} tensors"),
            K::TooManyMetadataEntries { limit } => {
                write!(f, "__metadata__ has more than {limit} keys")
            }
            K::DuplicateName { first } => {
                write!(f, "the name stands twice, first at byte {first}")
            }
            K::DuplicateMetadata => f.write_str("__metadata__ stands twice in the header"),
            K::DuplicateMetadataKey { first } => {
                write!(f, "a key stands twice in __metadata__, first at byte {first}")
            }
            K::NullMetadata => f.write_str("the metadata has to be an object, not null"),
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
            K::IndexTooLarge { len, limit } => {
                write!(f, "the index has {len} bytes, above the limit of {limit}")
            }
            K::ForeignIndex { format } => {
                write!(f, "this is no shard index: it looks like {format}")
            }
            K::EmptyWeightMap => f.write_str("weight_map has no tensors"),
            K::TooManyShards { limit } => write!(f, "there are more than {limit} shards"),
            K::ShardName { fault } => write!(f, "the name of a shard {fault}"),
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
            K::ReservedName => {
                f.write_str("the name __metadata__ is reserved, so no tensor can have it")
            }
            K::NameRepeated { first } => {
                write!(f, "the tensor at {first} in the list has the same name")
            }
            K::MetadataKeyRepeated => f.write_str("a key of the metadata is given twice"),
            K::NotPowerOfTwo { align } => {
                write!(f, "the alignment is {align}, which is no power of two")
            }
            K::FileTooLarge => f.write_str("the length of the file does not fit 64 bits"),
            K::NoConversion { dtype } => {
                write!(f, "numbers of this type cannot be written as {dtype}")
            }
            K::ValueOutOfRange { index, value, dtype } => {
                write!(f, "{dtype} cannot hold {value}, the value at {index}")
            }
            K::DataMissing { needed, written } => {
                write!(f, "of its {needed} bytes, {written} were written")
            }
            K::DataExcess { needed, written } => {
                write!(f, "it has {needed} bytes, but {written} were to be written")
            }
            K::OutOfOrder => f.write_str("its turn in the stream has passed"),
        }
    }
}
