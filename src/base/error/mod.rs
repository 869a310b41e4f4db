//! The one error of the crate: what is wrong, at which byte, in which tensor.
//!
//! An [`Error`] is plain data: `Copy`, no heap, no lifetime. It keeps where the tensor's name stands
//! in the file rather than the name; `Error::in_file` reads it back from there.

mod kind;
mod sentence;
mod terms;

use core::fmt;
use core::ops::Range;

use crate::base::convert::to_u64;

pub use kind::ErrorKind;
pub use terms::{Expected, Field, JsonType, Key, ShardNameFault, StringKind};

/// Bytes of the header's length at the beginning of a file. Positions in errors count from the
/// beginning of the file, positions in the header's text from there.
pub(crate) const FRAME_BYTES: u64 = 8;
const FRAME: u32 = 8;

/// What went wrong, and where.
///
/// Its `Display` is one sentence with the numbers, and ends with the position where there is one.
/// [`Error::in_file`] adds the tensor's name.
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
    /// `u64::MAX`: nowhere.
    byte: u64,
    /// Where the name begins in the file; `u32::MAX`: nowhere.
    name: u32,
    name_len: u32,
}

/// Where a tensor's name stands in the header's text, between its quotes, as it is spelled there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameSpan {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Error {
    /// An error that has no place in the file: the caller asked for what cannot be.
    #[cold]
    pub(crate) fn new(kind: ErrorKind) -> Error {
        Error { kind, byte: u64::MAX, name: u32::MAX, name_len: 0 }
    }

    /// An error at a byte of the file.
    #[cold]
    pub(crate) fn at_byte(kind: ErrorKind, byte: u64) -> Error {
        Error { byte, ..Error::new(kind) }
    }

    /// An error at a position in the header's text.
    #[cold]
    pub(crate) fn at(kind: ErrorKind, position: usize) -> Error {
        Error::at_byte(kind, FRAME_BYTES.saturating_add(to_u64(position)))
    }

    /// The same error, said of a tensor.
    #[cold]
    pub(crate) fn of(self, name: NameSpan) -> Error {
        // No header is so long that this is more than 32 bits hold.
        Error { name: name.start.saturating_add(FRAME), name_len: name.len, ..self }
    }

    /// The same error, of a text that has no frame before it: a shard index.
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

    /// What went wrong, with its numbers.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The byte of the file at which it went wrong, counted from 0 at the beginning of the file.
    /// `None` where no byte is to blame: the caller asked for what the file does not have.
    #[must_use]
    pub fn byte(&self) -> Option<u64> {
        (self.byte != u64::MAX).then_some(self.byte)
    }

    /// Where the name of the tensor concerned stands in the file: the bytes between its quotes, as
    /// they are spelled there. `None` where the error concerns no one tensor.
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
