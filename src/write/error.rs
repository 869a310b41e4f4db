//! The error type for writing.

use core::fmt;

use alloc::borrow::ToOwned as _;
use alloc::string::String;

use crate::base::error::ErrorKind;
use crate::json::text::Quoted;

#[cfg(feature = "std")]
use crate::read::file::{FileError, FileType};
#[cfg(feature = "std")]
use std::{io, path::Path, path::PathBuf};

/// An error from writing a file.
///
/// Its `Display` is the path, if known, and one sentence, with the name of the tensor at fault if
/// there is one. [`WriteError::sentence`] is the sentence without the path.
#[derive(Debug)]
pub struct WriteError {
    #[cfg(feature = "std")]
    path: Option<PathBuf>,
    tensor: Option<String>,
    kind: WriteErrorKind,
}

/// The kinds of [`WriteError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// The format or the limits do not allow the file, or the data does not match the plan.
    Refused(ErrorKind),
    /// There is not enough memory.
    OutOfMemory {
        /// The number of bytes requested.
        bytes: u64,
    },
    /// The path exists but is not a regular file. It is not replaced.
    #[cfg(feature = "std")]
    NotAFile(FileType),
    /// The temporary file cannot be created in the target's folder.
    #[cfg(feature = "std")]
    Create(io::Error),
    /// Writing to the stream or to the file failed.
    #[cfg(feature = "std")]
    Write(io::Error),
    /// Syncing the file or its folder to disk failed.
    #[cfg(feature = "std")]
    Sync(io::Error),
    /// Renaming the new file over the old one failed.
    #[cfg(feature = "std")]
    Rename(io::Error),
    /// The file to copy or change could not be read.
    #[cfg(feature = "std")]
    Read(FileError),
    /// The caller's progress function stopped the write. The old file is unchanged.
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

    /// Sets the tensor, unless the error already has one.
    pub(crate) fn with_tensor(mut self, tensor: Option<&str>) -> WriteError {
        if self.tensor.is_none() {
            self.tensor = tensor.map(str::to_owned);
        }
        self
    }

    /// Sets the path.
    #[cfg(feature = "std")]
    pub(crate) fn with_path(mut self, path: &Path) -> WriteError {
        self.path = Some(path.to_owned());
        self
    }

    /// Returns what went wrong.
    #[must_use]
    pub fn kind(&self) -> &WriteErrorKind {
        &self.kind
    }

    /// Returns the reason if the kind is [`WriteErrorKind::Refused`], or `None` otherwise.
    #[must_use]
    pub fn refusal(&self) -> Option<ErrorKind> {
        match self.kind {
            WriteErrorKind::Refused(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns the name of the tensor at fault, if there is one.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// Returns the path of the file being written, if known.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the error's sentence without the path. It includes the tensor's name.
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
