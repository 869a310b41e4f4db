//! An error told with the names that stand in the file.

use core::fmt;

use crate::base::error::{Error, ErrorKind, Field, FRAME_BYTES};
use crate::json::text::Text;
use crate::json::tokenizer::Cursor;

/// Characters of a name that a message shows.
const SHOWN: usize = 120;
/// Bytes within which a string that is not a name has to end to be shown.
const SUBJECT_BYTES: usize = 4096;

impl Error {
    /// The error as a sentence that names the tensor, read back from the file that it is about.
    ///
    /// Names are shown with what is invisible or commands terminals escaped, and cut after 120
    /// characters. Any bytes are fine; of another file than the error's, the name may be missing or
    /// wrong.
    #[must_use]
    pub fn in_file<'b>(&self, file: &'b [u8]) -> ErrorInFile<'b> {
        self.in_part(file, 0)
    }

    /// As [`Error::in_file`], given the header's text alone.
    #[must_use]
    pub fn in_header<'b>(&self, header: &'b [u8]) -> ErrorInFile<'b> {
        self.in_part(header, FRAME_BYTES)
    }

    /// As [`Error::in_file`], given what stands from the byte `begin` of the file on.
    fn in_part<'b>(&self, part: &'b [u8], begin: u64) -> ErrorInFile<'b> {
        let place = |byte: u64| usize::try_from(byte.checked_sub(begin)?).ok();
        let name = self.tensor().and_then(|span| {
            let len = usize::try_from(span.end.checked_sub(span.start)?).ok()?;
            // With its closing quote.
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

/// The string whose first character, after the quote, stands at a position, if it ends within `len` bytes.
fn string_at(part: &[u8], start: usize, len: usize) -> Option<Text<'_>> {
    let quoted = part.get(start.checked_sub(1)?..)?;
    let quoted = quoted.get(..len.saturating_add(1)).unwrap_or(quoted);
    // What follows the string need not be UTF-8.
    let valid = match core::str::from_utf8(quoted) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(quoted.get(..error.valid_up_to())?).ok()?,
    };
    let string = Cursor::new(valid).string(Field::Entry).ok()?;
    Some(Text::in_header(valid, string))
}

/// An [`Error`] with the names it concerns. Its `Display` is one sentence.
#[derive(Debug, Clone, Copy)]
pub struct ErrorInFile<'b> {
    error: Error,
    name: Option<Text<'b>>,
    /// The string at the error's byte, where the error is about that string.
    subject: Option<Text<'b>>,
}

impl<'b> ErrorInFile<'b> {
    /// The error itself.
    #[must_use]
    pub fn error(&self) -> Error {
        self.error
    }

    /// The name of the tensor concerned, where there is one.
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
