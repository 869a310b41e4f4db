//! An error told with the names that stand in the file.

use core::fmt;

use crate::convert::to_usize;
use crate::error::{Error, ErrorKind, Field, FRAME_BYTES};
use crate::json::Cursor;
use crate::text::Text;

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
        let start = usize::try_from(FRAME_BYTES).unwrap_or(usize::MAX);
        self.in_header(file.get(start..).unwrap_or_default())
    }

    /// As [`Error::in_file`], given the header's text alone.
    #[must_use]
    pub fn in_header<'b>(&self, header: &'b [u8]) -> ErrorInFile<'b> {
        let name = self.name_span().and_then(|span| {
            // With its closing quote.
            let len = to_usize(span.len).saturating_add(1);
            string_at(header, to_usize(span.start), len)
        });
        let subject = match self.kind() {
            ErrorKind::UnknownDtype
            | ErrorKind::UnknownKey
            | ErrorKind::DuplicateMetadataKey { .. } => self.byte().and_then(|byte| {
                let start = usize::try_from(byte.checked_sub(FRAME_BYTES)?).ok()?;
                string_at(header, start, SUBJECT_BYTES)
            }),
            _ => None,
        };
        ErrorInFile { error: *self, name, subject }
    }
}

/// The string whose first character, after the quote, stands at a position in a header, if it ends
/// within `len` bytes.
fn string_at(header: &[u8], start: usize, len: usize) -> Option<Text<'_>> {
    let quoted = header.get(start.checked_sub(1)?..)?;
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

impl ErrorInFile<'_> {
    /// The error itself.
    #[must_use]
    pub fn error(&self) -> Error {
        self.error
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
