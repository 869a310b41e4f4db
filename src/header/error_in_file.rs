//! An error together with the names that it is about, read back from the file.

use core::fmt;

use crate::base::error::{Error, ErrorKind, Field, FRAME_BYTES};
use crate::json::text::Text;
use crate::json::tokenizer::Cursor;

/// Characters of a name shown in a message.
const SHOWN: usize = 120;
/// A string other than a tensor's name is shown if it ends within this many bytes.
const SUBJECT_BYTES: usize = 4096;

impl Error {
    /// Returns the error with the tensor's name, read back from the file.
    ///
    /// In messages, names are cut after 120 characters, and invisible and control characters are
    /// escaped. If `file` is not the file that the error is about, the name can be missing or
    /// wrong.
    #[must_use]
    pub fn in_file<'b>(&self, file: &'b [u8]) -> ErrorInFile<'b> {
        self.in_part(file, 0)
    }

    /// Like [`Error::in_file`], given only the header's text.
    #[must_use]
    pub fn in_header<'b>(&self, header: &'b [u8]) -> ErrorInFile<'b> {
        self.in_part(header, FRAME_BYTES)
    }

    /// Like [`Error::in_file`], given the part of the file that starts at the byte `begin`.
    fn in_part<'b>(&self, part: &'b [u8], begin: u64) -> ErrorInFile<'b> {
        let place = |byte: u64| usize::try_from(byte.checked_sub(begin)?).ok();
        let name = self.tensor().and_then(|span| {
            let len = usize::try_from(span.end.checked_sub(span.start)?).ok()?;
            // One more byte for the closing quote.
            string_at(part, place(span.start)?, len.saturating_add(1))
        });
        let subject = match self.kind() {
            ErrorKind::UnknownDtype
            | ErrorKind::UnknownKey
            | ErrorKind::ShardName { .. }
            | ErrorKind::DuplicateMetadataKey { .. } => {
                self.byte().and_then(|byte| string_at(part, place(byte)?, SUBJECT_BYTES))
            }
            _ => None,
        };
        ErrorInFile { error: *self, name, subject }
    }
}

/// Returns the string that starts, after its opening quote, at `start`, if it ends within `len`
/// bytes.
fn string_at(part: &[u8], start: usize, len: usize) -> Option<Text<'_>> {
    let quoted = part.get(start.checked_sub(1)?..)?;
    let quoted = quoted.get(..len.saturating_add(1)).unwrap_or(quoted);
    // The bytes after the string might not be UTF-8.
    let valid = match core::str::from_utf8(quoted) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(quoted.get(..error.valid_up_to())?).ok()?,
    };
    let string = Cursor::new(valid).string(Field::Entry).ok()?;
    Some(Text::in_header(valid, string))
}

/// An [`Error`] together with the names that it is about. `Display` writes one sentence.
#[derive(Debug, Clone, Copy)]
pub struct ErrorInFile<'b> {
    error: Error,
    name: Option<Text<'b>>,
    /// The string at the error's position, if the error is about that string.
    subject: Option<Text<'b>>,
}

impl<'b> ErrorInFile<'b> {
    /// Returns the error itself.
    #[must_use]
    pub fn error(&self) -> Error {
        self.error
    }

    /// Returns the tensor's name, or `None` if the error is not about a single tensor.
    #[must_use]
    pub fn tensor(&self) -> Option<Text<'b>> {
        self.name
    }
}

impl fmt::Display for ErrorInFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name {
            f.write_str("tensor ")?;
            name.fmt_quoted(f, SHOWN)?;
            f.write_str(": ")?;
        }
        write!(f, "{}", self.error.kind())?;
        if let Some(subject) = self.subject {
            f.write_str(": ")?;
            subject.fmt_quoted(f, SHOWN)?;
        }
        match self.error.byte() {
            Some(byte) => write!(f, " (byte {byte})"),
            None => Ok(()),
        }
    }
}
