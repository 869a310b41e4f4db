//! Parts of errors: fields, keys, JSON types, and what was expected.

use core::fmt;

/// The field whose value is wrong, in [`ErrorKind::WrongType`](super::ErrorKind::WrongType) and
/// errors about numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// A tensor's entry, which must be an object.
    Entry,
    /// `dtype`, which must be a string.
    Dtype,
    /// `shape`, which must be an array.
    Shape,
    /// An element of `shape`, which must be a natural number.
    Dimension,
    /// `data_offsets`, which must be an array.
    DataOffsets,
    /// An element of `data_offsets`, which must be a natural number.
    Offset,
    /// `__metadata__`, which must be an object.
    Metadata,
    /// A value in `__metadata__`, which must be a string.
    MetadataValue,
    /// `weight_map` of a shard index, which must be an object.
    WeightMap,
    /// A value in `weight_map`, which must be a string.
    ShardName,
    /// `metadata` of a shard index, which must be an object.
    IndexMetadata,
    /// `total_size` of a shard index, which must be a natural number under strict rules.
    TotalSize,
}

impl Field {
    /// Returns the required JSON type.
    pub(super) fn needed(self) -> &'static str {
        match self {
            Field::Entry | Field::Metadata | Field::WeightMap | Field::IndexMetadata => "an object",
            Field::Dtype | Field::MetadataValue | Field::ShardName => "a string",
            Field::Shape | Field::DataOffsets => "an array",
            Field::Dimension | Field::Offset | Field::TotalSize => "a number",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Entry => "the entry",
            Field::Dtype => "dtype",
            Field::Shape => "shape",
            Field::Dimension => "a dimension",
            Field::DataOffsets => "data_offsets",
            Field::Offset => "an offset",
            Field::Metadata => "__metadata__",
            Field::MetadataValue => "a __metadata__ value",
            Field::WeightMap => "weight_map",
            Field::ShardName => "the shard name",
            Field::IndexMetadata => "metadata",
            Field::TotalSize => "total_size",
        })
    }
}

/// A key of a tensor's entry, or of a shard index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// `dtype`.
    Dtype,
    /// `shape`.
    Shape,
    /// `data_offsets`.
    DataOffsets,
    /// `weight_map`, of an index.
    WeightMap,
    /// `metadata`, of an index.
    Metadata,
    /// `total_size`, of an index's metadata.
    TotalSize,
}

impl Key {
    /// Returns what the key belongs to.
    pub(super) fn owner(self) -> &'static str {
        match self {
            Key::Dtype | Key::Shape | Key::DataOffsets => "the entry",
            Key::WeightMap | Key::Metadata => "the index",
            Key::TotalSize => "the index's metadata",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Key::Dtype => "dtype",
            Key::Shape => "shape",
            Key::DataOffsets => "data_offsets",
            Key::WeightMap => "weight_map",
            Key::Metadata => "metadata",
            Key::TotalSize => "total_size",
        })
    }
}

/// The type of a JSON value, known from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonType {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A digit or `-`.
    Number,
    /// `t` or `f`.
    Bool,
    /// `n`
    Null,
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonType::Object => "an object",
            JsonType::Array => "an array",
            JsonType::String => "a string",
            JsonType::Number => "a number",
            JsonType::Bool => "true or false",
            JsonType::Null => "null",
        })
    }
}

/// A kind of string with its own length limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StringKind {
    /// A tensor's name.
    Name,
    /// A key of an entry or of `__metadata__`, a dtype, or a string in the value of an unknown key.
    Property,
    /// A value in `__metadata__`.
    MetadataValue,
    /// A shard's name in an index.
    ShardName,
}

impl fmt::Display for StringKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StringKind::Name => "the tensor's name",
            StringKind::Property => "a key or property",
            StringKind::MetadataValue => "a __metadata__ value",
            StringKind::ShardName => "the shard name",
        })
    }
}

/// Why a shard name in an index is rejected: on some operating system it could lead out of the
/// model's folder, or to something other than a safetensors file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardNameFault {
    /// It begins with `/`.
    Absolute,
    /// It has a `\`, which separates folders and begins network paths on Windows.
    Backslash,
    /// It has a `:`, which is used in drives, streams and URLs.
    Colon,
    /// It has a `..` part, which is the parent folder.
    Parent,
    /// It has a `.` part, other than one `./` at the start.
    Dot,
    /// It is empty or has an empty part.
    Empty,
    /// It has a control character, such as NUL, which ends strings in C.
    Control,
    /// One of its parts ends with a space or a dot, which Windows drops.
    TrailingDot,
    /// One of its parts is a Windows device name, such as `NUL` or `com1.safetensors`.
    Device,
    /// It does not end in `.safetensors`.
    Extension,
    /// It is in a subfolder, which [strict rules](crate::IndexLimits::subfolders) reject.
    Subfolder,
    /// It begins with `./`, which [strict rules](crate::IndexLimits::dot_prefix) reject.
    DotPrefix,
}

impl fmt::Display for ShardNameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShardNameFault::Absolute => "begins with `/`",
            ShardNameFault::Backslash => "has a backslash",
            ShardNameFault::Colon => "has a colon",
            ShardNameFault::Parent => "leads to the parent folder",
            ShardNameFault::Dot => "has a `.` part",
            ShardNameFault::Empty => "is empty or has an empty part",
            ShardNameFault::Control => "has a control character",
            ShardNameFault::TrailingDot => "has a part that ends with a dot or a space",
            ShardNameFault::Device => "has a part that is a Windows device name",
            ShardNameFault::Extension => "does not end in `.safetensors`",
            ShardNameFault::Subfolder => "is in a subfolder",
            ShardNameFault::DotPrefix => "begins with `./`",
        })
    }
}

/// What JSON requires where something else was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// `{`
    Object,
    /// The `"` that begins a key.
    Key,
    /// `:`
    Colon,
    /// A value.
    Value,
    /// `,` or `}`
    CommaOrBrace,
    /// `,` or `]`
    CommaOrBracket,
    /// The `"` that ends a string.
    ClosingQuote,
    /// The four hexadecimal digits of `\u`.
    HexDigits,
    /// `true`, `false` or `null`.
    Literal,
    /// The digits of a number.
    Digits,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Object => "`{`",
            Expected::Key => "a key in quotes",
            Expected::Colon => "`:`",
            Expected::Value => "a value",
            Expected::CommaOrBrace => "`,` or `}`",
            Expected::CommaOrBracket => "`,` or `]`",
            Expected::ClosingQuote => "the quote that ends a string",
            Expected::HexDigits => "four hexadecimal digits",
            Expected::Literal => "`true`, `false` or `null`",
            Expected::Digits => "a digit",
        })
    }
}

/// A byte for display: quoted if it is a visible ASCII character, otherwise in hexadecimal.
pub(super) struct Byte(pub(super) u8);

impl fmt::Display for Byte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b' ' => f.write_str("a space"),
            visible @ 0x21..=0x7e => write!(f, "`{}`", char::from(visible)),
            other => write!(f, "the byte 0x{other:02x}"),
        }
    }
}
