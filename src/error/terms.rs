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
}

impl Field {
    pub(super) fn needed(self) -> &'static str {
        match self {
            Field::Entry | Field::Metadata => "an object",
            Field::Dtype | Field::MetadataValue => "a string",
            Field::Shape | Field::DataOffsets => "an array",
            Field::Dimension | Field::Offset => "a number",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Entry => "the entry of a tensor",
            Field::Dtype => "dtype",
            Field::Shape => "shape",
            Field::Dimension => "a dimension",
            Field::DataOffsets => "data_offsets",
            Field::Offset => "an offset",
            Field::Metadata => "__metadata__",
            Field::MetadataValue => "a value in __metadata__",
        })
    }
}

/// A key of a tensor's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// `dtype`.
    Dtype,
    /// `shape`.
    Shape,
    /// `data_offsets`.
    DataOffsets,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Key::Dtype => "dtype",
            Key::Shape => "shape",
            Key::DataOffsets => "data_offsets",
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
}

impl fmt::Display for StringKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StringKind::Name => "the name of a tensor",
            StringKind::Property => "a key or a property",
            StringKind::MetadataValue => "a value in __metadata__",
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
