//! The words that errors are made of: whose value, which key, what was expected.

use core::fmt;

/// Whose value an [`ErrorKind::WrongType`](super::ErrorKind::WrongType) or a number's error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The entry of a tensor, which has to be an object.
    Entry,
    /// `dtype`, which has to be a string.
    Dtype,
    /// `shape`, which has to be an array.
    Shape,
    /// An element of `shape`, which has to be a natural number.
    Dimension,
    /// `data_offsets`, which has to be an array.
    DataOffsets,
    /// An element of `data_offsets`, which has to be a natural number.
    Offset,
    /// `__metadata__`, which has to be an object.
    Metadata,
    /// A value in `__metadata__`, which has to be a string.
    MetadataValue,
    /// `weight_map` of a shard index, which has to be an object.
    WeightMap,
    /// A value in `weight_map`, which has to be a string.
    ShardName,
    /// `metadata` of a shard index, which has to be an object.
    IndexMetadata,
    /// `total_size` of a shard index, which has to be a natural number under strict rules.
    TotalSize,
}

impl Field {
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
    /// What the key belongs to.
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

/// The type of a JSON value, as its first byte tells.
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

/// The strings that have a limit of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StringKind {
    /// The name of a tensor.
    Name,
    /// A key of an entry or of `__metadata__`, a dtype, or a string in the value of an unknown key.
    Property,
    /// A value in `__metadata__`.
    MetadataValue,
    /// The name of a shard in an index.
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

/// Why a name in a shard index may not be the name of a shard: it might lead out of the model's
/// folder, on some operating system if not on this one, or to a file of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardNameFault {
    /// It begins with `/`.
    Absolute,
    /// It has a `\`, which separates folders on Windows and begins network paths there.
    Backslash,
    /// It has a `:`, which stands in drives, streams and URLs.
    Colon,
    /// It has `..` between slashes, which is the folder above.
    Parent,
    /// It has `.` between slashes, other than one `./` at its begin.
    Dot,
    /// It is empty, or has nothing between two slashes.
    Empty,
    /// It has a control character, such as NUL, which ends names in C.
    Control,
    /// One of its parts ends with a space or a dot, which Windows leaves out.
    TrailingDot,
    /// One of its parts is the name of a device on Windows, such as `NUL` or `com1.safetensors`.
    Device,
    /// It does not end in `.safetensors`.
    Extension,
    /// It is in a subfolder, which [strict](crate::IndexLimits::subfolders) rules refuse.
    Subfolder,
    /// It begins with `./`, which [strict](crate::IndexLimits::dot_prefix) rules refuse.
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

/// What JSON needs at a place where something else was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// `{`
    Object,
    /// `"`, which begins a key.
    Key,
    /// `:`
    Colon,
    /// A value.
    Value,
    /// `,` or `}`
    CommaOrBrace,
    /// `,` or `]`
    CommaOrBracket,
    /// `"`, which ends a string.
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

/// A byte as a person reads it: in quotes where it is a visible ASCII character, in hexadecimal
/// elsewhere.
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
