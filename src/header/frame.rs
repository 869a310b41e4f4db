//! The frame of a file (the header's length) and the header's text.
//!
//! ```text
//! 0        8                     8 + N                      end
//! | N, LE  | header, N bytes      | data region              |
//! ```
//!
//! N is compared with the file's size before it is used in arithmetic or to size anything.

use crate::base::convert::to_u64;
use crate::base::error::{Error, ErrorKind, FRAME_BYTES};
use crate::base::foreign::recognise;
use crate::base::limits::Limits;

/// The first 8 bytes of a file, which give the header's length.
///
/// For files that are not in memory: read 8 bytes, parse a `Frame`, read the
/// [`header_range`](Frame::header_range), and create a [`Header`] from it.
///
/// ```
/// use safetensors_zero::{Frame, Header, Limits, Table, TensorSlot};
///
/// # let file = include_bytes!("../../examples/animals.safetensors");
/// # let (file_len, read) = (file.len() as u64, |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize]);
/// // `read(range)` stands for a request to a server, or a read from a flash chip.
/// let limits = Limits::default();
/// let frame = Frame::parse(read(0..8), file_len, &limits)?;
/// let text = read(frame.header_range());
/// let header = Header::new(text, frame.data_len(), &limits)?;
///
/// let mut slots = [TensorSlot::EMPTY; 8];
/// let table = Table::parse(&header, &mut slots)?;
/// let info = table.info("embedding.weight")?;
/// assert_eq!(frame.data_start() + info.data_offsets.0, 372);
/// # Ok::<(), safetensors_zero::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    header_len: u64,
    data_len: u64,
}

impl Frame {
    /// The size of a frame in bytes.
    pub const LEN: usize = 8;

    /// Parses the frame from the first bytes of a file that is `file_len` bytes long.
    ///
    /// Eight bytes are enough. With more, the error for a file in another format is more likely to
    /// name that format. Takes constant time.
    ///
    /// # Errors
    /// [`FileTooShort`](ErrorKind::FileTooShort) if `prefix` or the file is shorter than 8 bytes;
    /// [`HeaderEmpty`](ErrorKind::HeaderEmpty), [`HeaderTooLarge`](ErrorKind::HeaderTooLarge),
    /// [`HeaderTruncated`](ErrorKind::HeaderTruncated), or, instead of one of these three,
    /// [`Foreign`](ErrorKind::Foreign).
    #[inline]
    pub fn parse(prefix: &[u8], file_len: u64, limits: &Limits) -> Result<Frame, Error> {
        let (Some(length), Some(available)) =
            (prefix.first_chunk(), file_len.checked_sub(FRAME_BYTES))
        else {
            let len = file_len.min(to_u64(prefix.len()));
            return Err(Error::at_byte(ErrorKind::FileTooShort { len }, 0));
        };
        let len = u64::from_le_bytes(*length);
        let limit = header_limit(limits);
        let kind = if len == 0 {
            ErrorKind::HeaderEmpty
        } else if len > limit {
            ErrorKind::HeaderTooLarge { len, limit }
        } else if len > available {
            ErrorKind::HeaderTruncated { len, available }
        } else {
            return Ok(Frame { header_len: len, data_len: available.saturating_sub(len) });
        };
        Err(foreign_or(prefix, Error::at_byte(kind, 0)))
    }

    /// Returns the header's length in bytes.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Returns the header's byte range in the file.
    #[must_use]
    pub fn header_range(&self) -> core::ops::Range<u64> {
        FRAME_BYTES..self.data_start()
    }

    /// Returns the data region's offset in the file.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        FRAME_BYTES.saturating_add(self.header_len)
    }

    /// Returns the length of the data region in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data_len
    }
}

/// The text of a header, and the length of the data it describes.
///
/// The text is known to be UTF-8, within the size limit, and to begin like a header. Its content is
/// checked by [`Table::parse`](crate::Table::parse) and [`Header::scan`].
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    text: &'a str,
    data_len: u64,
    limits: Limits,
}

/// The content of a [`Header`], with borrowed limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'l, 'a> {
    pub(crate) text: &'a str,
    pub(crate) data_len: u64,
    pub(crate) limits: &'l Limits,
}

impl<'l, 'a> Parts<'l, 'a> {
    /// Returns the header and the data region of a file in memory.
    #[inline]
    pub(crate) fn of_file(file: &'a [u8], limits: &'l Limits) -> Result<(Self, &'a [u8]), Error> {
        let Frame { header_len, data_len } = Frame::parse(file, to_u64(file.len()), limits)?;
        // The frame checked that the file in memory has this many bytes, so the length fits.
        let header_len = usize::try_from(header_len).unwrap_or(usize::MAX);
        let (text, data) = file
            .get(Frame::LEN..)
            .and_then(|rest| rest.split_at_checked(header_len))
            .unwrap_or_default();
        Ok((Parts { text: checked(text, limits)?, data_len, limits }, data))
    }

    /// Returns the data region's offset in the file.
    pub(crate) fn data_start(&self) -> u64 {
        FRAME_BYTES.saturating_add(to_u64(self.text.len()))
    }
}

impl<'a> Header<'a> {
    /// Creates a header from its text, without the 8 bytes before it, and the length of the file's
    /// data region.
    ///
    /// Takes time linear in the text.
    ///
    /// # Errors
    /// [`HeaderEmpty`](ErrorKind::HeaderEmpty); [`HeaderTooLarge`](ErrorKind::HeaderTooLarge);
    /// [`InvalidUtf8`](ErrorKind::InvalidUtf8),
    /// [`LeadingWhitespace`](ErrorKind::LeadingWhitespace) under strict rules,
    /// [`HeaderStart`](ErrorKind::HeaderStart), or, instead of one of these three,
    /// [`Foreign`](ErrorKind::Foreign).
    pub fn new(text: &'a [u8], data_len: u64, limits: &Limits) -> Result<Header<'a>, Error> {
        Ok(Header { text: checked(text, limits)?, data_len, limits: *limits })
    }

    /// Returns the header and the data region of a file in memory.
    ///
    /// # Errors
    /// Those of [`Frame::parse`] and [`Header::new`].
    pub fn of_file(file: &'a [u8], limits: &Limits) -> Result<(Header<'a>, &'a [u8]), Error> {
        let (parts, data) = Parts::of_file(file, limits)?;
        Ok((Header { text: parts.text, data_len: parts.data_len, limits: *limits }, data))
    }

    pub(crate) fn parts(&self) -> Parts<'_, 'a> {
        Parts { text: self.text, data_len: self.data_len, limits: &self.limits }
    }

    /// Returns the header's text, including its padding.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the data region's offset in the file.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        self.parts().data_start()
    }

    /// Returns the length of the data region in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data_len
    }
}

/// Checks that a header's text is UTF-8, not too long, and begins like a header.
#[inline]
fn checked<'a>(text: &'a [u8], limits: &Limits) -> Result<&'a str, Error> {
    if to_u64(text.len()) <= header_limit(limits) && text.first() == Some(&b'{') {
        if let Ok(text) = core::str::from_utf8(text) {
            return Ok(text);
        }
    }
    check_unusual(text, limits)
}

/// Like [`checked`], for a text that begins with white space or is invalid.
#[cold]
#[inline(never)]
fn check_unusual<'a>(text: &'a [u8], limits: &Limits) -> Result<&'a str, Error> {
    let (len, limit) = (to_u64(text.len()), header_limit(limits));
    if len > limit {
        return Err(Error::at_byte(ErrorKind::HeaderTooLarge { len, limit }, 0));
    }
    let error = match (text, core::str::from_utf8(text)) {
        ([], _) => Error::at_byte(ErrorKind::HeaderEmpty, 0),
        (_, Err(error)) => Error::at(ErrorKind::InvalidUtf8, error.valid_up_to()),
        ([b' ' | b'\t' | b'\n' | b'\r', ..], _) if !limits.leading_whitespace => {
            Error::at(ErrorKind::LeadingWhitespace, 0)
        }
        ([b'{' | b' ' | b'\t' | b'\n' | b'\r', ..], Ok(text)) => return Ok(text),
        ([found, ..], _) => Error::at(ErrorKind::HeaderStart { found: *found }, 0),
    };
    // The file's first bytes: the text's length and the text.
    let mut prefix = [0; 64];
    let file = len.to_le_bytes().into_iter().chain(text.iter().copied());
    for (place, byte) in prefix.iter_mut().zip(file) {
        *place = byte;
    }
    let given = prefix.len().min(text.len().saturating_add(Frame::LEN));
    Err(foreign_or(prefix.get(..given).unwrap_or_default(), error))
}

/// Returns the limit on the header's size, capped so that positions in the header, even counted
/// from the start of the file, fit in 32 bits with one value to spare.
pub(crate) fn header_limit(limits: &Limits) -> u64 {
    const MOST: u32 = u32::MAX - 9;
    limits.header_bytes.min(u64::from(MOST))
}

/// Returns [`ErrorKind::Foreign`] if the first bytes are those of another format, otherwise
/// `error`.
#[cold]
fn foreign_or(prefix: &[u8], error: Error) -> Error {
    match recognise(prefix) {
        Some(format) => Error::at_byte(ErrorKind::Foreign { format }, 0),
        None => error,
    }
}
