//! The error of writing: which file, which tensor, what went wrong.

use core::fmt;

use alloc::borrow::ToOwned as _;
use alloc::string::String;

use crate::base::error::ErrorKind;
use crate::json::text::Quoted;

#[cfg(feature = "std")]
use crate::read::file::{FileError, FileType};
#[cfg(feature = "std")]
use std::{io, path::Path, path::PathBuf};

/// Why something could not be written.
///
/// Its `Display` is the path, where there is one, and one sentence, which names the tensor where one
/// is concerned; [`WriteError::sentence`] is the sentence alone.
#[derive(Debug)]
pub struct WriteError {
    #[cfg(feature = "std")]
    path: Option<PathBuf>,
    tensor: Option<String>,
    kind: WriteErrorKind,
}

/// Why something could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// The format, or the limits, do not allow it, or the data are not what was planned.
    Refused(ErrorKind),
    /// There is not enough memory.
    OutOfMemory {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// There is something at the path that is no regular file, and must not be replaced by one.
    #[cfg(feature = "std")]
    NotAFile(FileType),
    /// No file can be created in the folder.
    #[cfg(feature = "std")]
    Create(io::Error),
    /// The writer, or the disk, did not take it.
    #[cfg(feature = "std")]
    Write(io::Error),
    /// The system could not say that what was written is on the disk.
    #[cfg(feature = "std")]
    Sync(io::Error),
    /// The new file could not be put in the place of the old one.
    #[cfg(feature = "std")]
    Rename(io::Error),
    /// What was to be copied or changed could not be read.
    #[cfg(feature = "std")]
    Read(FileError),
    /// The caller's progress function stopped it. The old file is as it was.
    #[cfg(feature = "std")]
    Stopped,
}

impl WriteError {
    #[cold]
    pub(crate) fn new(kind: WriteErrorKind) -> WriteError {
        WriteError {
            #[cfg(feature = "std")]
            path: None,
            tensor: None,
            kind,
        }
    }

    #[cold]
    pub(crate) fn refused(kind: ErrorKind) -> WriteError {
        WriteError::new(WriteErrorKind::Refused(kind))
    }

    /// The same error, said of a tensor, unless it has one.
    pub(crate) fn of(mut self, tensor: Option<&str>) -> WriteError {
        if self.tensor.is_none() {
            self.tensor = tensor.map(str::to_owned);
        }
        self
    }

    /// The same error, said of the file with this path.
    #[cfg(feature = "std")]
    pub(crate) fn at(mut self, path: &Path) -> WriteError {
        self.path = Some(path.to_owned());
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &WriteErrorKind {
        &self.kind
    }

    /// What is not allowed, if that is what went wrong.
    #[must_use]
    pub fn refusal(&self) -> Option<ErrorKind> {
        match self.kind {
            WriteErrorKind::Refused(kind) => Some(kind),
            _ => None,
        }
    }

    /// The name of the tensor concerned.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// The file that was to be written.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The error without the path: one sentence that names the tensor.
    #[must_use]
    pub fn sentence(&self) -> impl fmt::Display + '_ {
        Sentence(self)
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "std")]
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        self.sentence().fmt(f)
    }
}

struct Sentence<'e>(&'e WriteError);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tensor) = &self.0.tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        match &self.0.kind {
            WriteErrorKind::Refused(kind) => kind.fmt(f),
            WriteErrorKind::OutOfMemory { bytes } => {
                write!(f, "not enough memory for {bytes} bytes")
            }
            #[cfg(feature = "std")]
            WriteErrorKind::NotAFile(found) => {
                write!(f, "this is {found}, which saving does not replace")
            }
            #[cfg(feature = "std")]
            WriteErrorKind::Create(error) => {
                write!(f, "cannot create a file in its folder: {error}")
            }
            #[cfg(feature = "std")]
            WriteErrorKind::Write(error) => write!(f, "cannot be written: {error}"),
            #[cfg(feature = "std")]
            WriteErrorKind::Sync(error) => {
                write!(f, "cannot be synced to disk: {error}")
            }
            #[cfg(feature = "std")]
            WriteErrorKind::Rename(error) => {
                write!(f, "cannot rename the new file into place: {error}")
            }
            #[cfg(feature = "std")]
            WriteErrorKind::Read(error) => error.fmt(f),
            #[cfg(feature = "std")]
            WriteErrorKind::Stopped => f.write_str("writing was stopped"),
        }
    }
}

impl core::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            #[cfg(feature = "std")]
            WriteErrorKind::Create(error)
            | WriteErrorKind::Write(error)
            | WriteErrorKind::Sync(error)
            | WriteErrorKind::Rename(error) => Some(error),
            #[cfg(feature = "std")]
            WriteErrorKind::Read(error) => Some(error),
            _ => None,
        }
    }
}
