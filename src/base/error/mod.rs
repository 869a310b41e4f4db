//! The crate's error type: what is wrong, at which byte, and in which tensor.
//!
//! An [`Error`] is plain data: `Copy`, no heap, no lifetime. It holds the position of the tensor's
//! name in the file instead of the name, which `Error::in_file` reads back.

mod kind;
mod sentence;
mod terms;

use core::fmt;
use core::ops::Range;

use crate::base::convert::to_u64;

pub use kind::ErrorKind;
pub use terms::{Expected, Field, JsonType, Key, ShardNameFault, StringKind};

/// The size of the frame, the bytes at the start of a file that give the header's length. Positions
/// in errors count from the start of the file, positions in the header's text from the end of the
/// frame.
pub(crate) const FRAME_BYTES: u64 = 8;
const FRAME: u32 = 8;

/// What is wrong, and where.
///
/// `Display` writes one sentence, which ends with the position if there is one. [`Error::in_file`]
/// adds the tensor's name.
///
/// ```
/// use safetensors_zero::{ErrorKind, SafeTensors, TensorSlot};
///
/// let file = b"\x36\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}1234";
/// let error = SafeTensors::parse(file, &mut [TensorSlot::EMPTY; 4]).unwrap_err();
/// assert_eq!(error.kind().name(), "size_mismatch");
/// assert_eq!(error.byte(), Some(55));
/// assert_eq!(
///     error.in_file(file).to_string(),
///     "tensor \"a\": data_offsets 0..4 hold 4 bytes, but 2 elements of F32 need 8 (byte 55)",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    /// `u64::MAX` if there is no position.
    byte: u64,
    /// The position of the tensor's name in the file, or `u32::MAX` if there is none.
    name: u32,
    name_len: u32,
}

/// The position and length of a tensor's name in the header's text, without quotes, as spelled
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameSpan {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Error {
    /// Creates an error without a position, for an invalid request.
    #[cold]
    pub(crate) fn new(kind: ErrorKind) -> Error {
        Error { kind, byte: u64::MAX, name: u32::MAX, name_len: 0 }
    }

    /// Creates an error at a byte of the file.
    #[cold]
    pub(crate) fn at_byte(kind: ErrorKind, byte: u64) -> Error {
        Error { byte, ..Error::new(kind) }
    }

    /// Creates an error at a position in the header's text.
    #[cold]
    pub(crate) fn at(kind: ErrorKind, position: usize) -> Error {
        Error::at_byte(kind, FRAME_BYTES.saturating_add(to_u64(position)))
    }

    /// Adds a tensor's name to the error.
    #[cold]
    pub(crate) fn of(self, name: NameSpan) -> Error {
        // Headers are short enough for this to fit in 32 bits.
        Error { name: name.start.saturating_add(FRAME), name_len: name.len, ..self }
    }

    /// Moves the error's positions to a text without a frame: a shard index.
    #[cold]
    pub(crate) fn without_frame(self) -> Error {
        let (mut byte, mut name) = (self.byte, self.name);
        if byte != u64::MAX {
            byte = byte.saturating_sub(FRAME_BYTES);
        }
        if name != u32::MAX {
            name = name.saturating_sub(FRAME);
        }
        Error { byte, name, ..self }
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the position in the file, in bytes from its start, or `None` if the error is in the
    /// request, not in the file.
    #[must_use]
    pub fn byte(&self) -> Option<u64> {
        (self.byte != u64::MAX).then_some(self.byte)
    }

    /// Returns the position of the tensor's name in the file: the bytes between its quotes, as
    /// spelled there. Returns `None` if the error is not about a single tensor.
    #[must_use]
    pub fn tensor(&self) -> Option<Range<u64>> {
        let start = u64::from(self.name);
        let end = start.saturating_add(u64::from(self.name_len));
        (self.name != u32::MAX).then_some(start..end)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match self.byte() {
            Some(byte) => write!(f, " (byte {byte})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Error {}
