//! Bytes that are not in memory, read with one operation: exactly these bytes at this offset.

use core::fmt;

use crate::base::convert::to_u64;
use crate::base::error::Error;

/// A place to read a file's bytes from, such as a file, a flash chip behind a bus, or a server that
/// answers range requests.
///
/// Reads take `&self`, so that several can run at once. Wrap a driver that needs `&mut` in a
/// `RefCell` or a lock.
///
/// ```
/// use core::cell::RefCell;
/// use safetensors_zero::{Limits, Reader, Source, TensorSlot};
///
/// # struct Chip(&'static [u8]);
/// # #[derive(Debug)] struct BusError;
/// # impl Chip { fn read(&mut self, address: u32, out: &mut [u8]) -> Result<(), BusError> {
/// #     out.copy_from_slice(&self.0[address as usize..][..out.len()]); Ok(()) } }
/// struct Flash {
///     chip: RefCell<Chip>,
///     len: u64,
/// }
///
/// impl Source for Flash {
///     type Error = BusError;
///
///     fn len(&self) -> Result<u64, BusError> {
///         Ok(self.len)
///     }
///
///     fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), BusError> {
///         let address = u32::try_from(offset).map_err(|_| BusError)?;
///         self.chip.borrow_mut().read(address, out)
///     }
/// }
///
/// # let file = include_bytes!("../../examples/animals.safetensors");
/// # let flash = Flash { chip: RefCell::new(Chip(file)), len: file.len() as u64 };
/// let (mut header, mut slots) = ([0; 512], [TensorSlot::EMPTY; 8]);
/// let reader = Reader::open(&flash, &mut header, &mut slots, &Limits::default()).unwrap();
/// let tensor = reader.tensor("embedding.weight").unwrap();
/// let (mut row, mut buffer) = ([0.0; 8], [0; 64]);
/// tensor.dequant_rows(3..4, &mut row, &mut buffer).unwrap();
/// assert_eq!(row[2], 0.89990234);
/// ```
#[allow(clippy::len_without_is_empty, reason = "an `is_empty` would have no use")]
pub trait Source {
    /// The error of a failed read.
    type Error;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The source's own error.
    fn len(&self) -> Result<u64, Self::Error>;

    /// Fills the whole buffer with the bytes at an offset. Callers stay within [`len`](Self::len),
    /// so the range exists unless the length has changed since.
    ///
    /// # Errors
    /// The source's own error, including when the bytes end before the buffer is full. The contents
    /// of the buffer are then unspecified.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Self::Error>;
}

/// The error of reading past the end of a source in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndOfSource;

impl fmt::Display for EndOfSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the source ends before these bytes")
    }
}

impl core::error::Error for EndOfSource {}

impl Source for [u8] {
    type Error = EndOfSource;

    fn len(&self) -> Result<u64, EndOfSource> {
        Ok(to_u64(self.len()))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), EndOfSource> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let bytes = from.and_then(|from| from.get(..buffer.len())).ok_or(EndOfSource)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

macro_rules! through_pointers {
    ($($(#[$feature:meta])? $pointer:ty),*) => {$(
        $(#[$feature])?
        impl<S: Source + ?Sized> Source for $pointer {
            type Error = S::Error;

            fn len(&self) -> Result<u64, S::Error> {
                S::len(self)
            }

            fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), S::Error> {
                S::read_exact_at(self, offset, buffer)
            }
        }
    )*};
}

through_pointers!(
    &S,
    #[cfg(feature = "alloc")]
    alloc::boxed::Box<S>,
    #[cfg(feature = "alloc")]
    alloc::rc::Rc<S>,
    #[cfg(feature = "alloc")]
    alloc::sync::Arc<S>
);

/// Uses positioned reads, which can run on several threads at once. The file's cursor is never
/// used. On Unix it does not move either; Windows moves it with every read.
#[cfg(feature = "std")]
impl Source for std::fs::File {
    type Error = std::io::Error;

    fn len(&self) -> std::io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let (mut offset, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let read = match std::os::windows::fs::FileExt::seek_read(self, rest, offset) {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            offset = offset.saturating_add(to_u64(read));
            rest = rest.get_mut(read..).unwrap_or_default();
        }
        Ok(())
    }

    #[cfg(not(any(unix, windows)))]
    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// The error of reading a file from a [`Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError<E> {
    /// The source failed to return its length.
    Length(E),
    /// The source failed to read a range of bytes.
    Read {
        /// The source's error.
        error: E,
        /// The offset of the range in the source.
        offset: u64,
        /// The length of the range in bytes.
        len: u64,
    },
    /// The source's contents are invalid, or the request does not fit them.
    Invalid(Error),
}

impl<E> ReadError<E> {
    /// Returns the error in the file's contents or in the request, or `None` if the source failed.
    pub fn invalid(&self) -> Option<Error> {
        match self {
            ReadError::Invalid(error) => Some(*error),
            _ => None,
        }
    }
}

impl<E> From<Error> for ReadError<E> {
    fn from(error: Error) -> Self {
        ReadError::Invalid(error)
    }
}

impl<E: fmt::Display> fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Length(error) => write!(f, "cannot get its length: {error}"),
            ReadError::Read { error, offset, len } => {
                write!(f, "cannot read {len} bytes at byte {offset}: {error}")
            }
            ReadError::Invalid(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for ReadError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            ReadError::Length(error) | ReadError::Read { error, .. } => Some(error),
            ReadError::Invalid(_) => None,
        }
    }
}
