//! The error of everything that reads files: which file, which tensor, what went wrong.

use core::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;
use std::string::ToString;

use crate::base::error::Error;
use crate::header::error_in_file::ErrorInFile;
use crate::json::text::Quoted;
use crate::read::source::ReadError;

/// What went wrong with a file, or with what was asked of it.
///
/// Its `Display` is the path and one sentence; [`FileError::sentence`] is the sentence alone.
pub struct FileError(Box<Inner>);

struct Inner {
    path: PathBuf,
    tensor: Option<String>,
    kind: FileErrorKind,
    /// The kind's sentence, where it was told with the names in the file.
    told: Option<String>,
}

/// What went wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// It cannot be opened.
    Open(io::Error),
    /// It is no regular file.
    NotAFile(FileType),
    /// Bytes of it cannot be read.
    Read {
        /// Why.
        error: io::Error,
        /// Where they begin in the file.
        offset: u64,
        /// How many they are.
        len: u64,
    },
    /// Bytes of it that were there when it was opened are no longer.
    Shrunk {
        /// Where they begin in the file.
        offset: u64,
        /// How many they are.
        len: u64,
    },
    /// Another file has its path than when it was opened.
    Replaced,
    /// What is in it is wrong, or does not have what was asked of it.
    Invalid(Error),
    /// There is not enough memory for a part that has to be in memory.
    OutOfMemory {
        /// Bytes of the part.
        bytes: u64,
    },
    /// It cannot be mapped.
    Map(io::Error),
    /// What was read could not be written to where the caller said.
    Write {
        /// Why.
        error: io::Error,
        /// Bytes that were written before.
        written: u64,
    },
    /// The caller's progress function stopped it.
    Stopped {
        /// What was done by then: bytes or elements, as the function was told.
        done: u64,
    },
    /// A folder without a shard index, and without a safetensors file.
    NoModel,
    /// A folder with several shard indexes, or without one and with several safetensors files.
    ManyModels {
        /// Their names, sorted.
        names: Vec<String>,
    },
    /// A shard that does not have a tensor that the index says it has.
    NotInShard,
}

/// What a path leads to that is no regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileType {
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Something else.
    Other,
}

impl FileType {
    /// `None` for a regular file.
    pub(crate) fn of(found: fs::FileType) -> Option<FileType> {
        if found.is_file() {
            return None;
        }
        if found.is_dir() {
            return Some(FileType::Folder);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt as _;
            if found.is_fifo() {
                return Some(FileType::Pipe);
            }
            if found.is_socket() {
                return Some(FileType::Socket);
            }
            if found.is_char_device() || found.is_block_device() {
                return Some(FileType::Device);
            }
        }
        Some(FileType::Other)
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileType::Folder => "a folder",
            FileType::Pipe => "a pipe",
            FileType::Socket => "a socket",
            FileType::Device => "a device",
            FileType::Other => "a special file",
        })
    }
}

impl FileError {
    #[cold]
    pub(crate) fn new(path: &Path, kind: FileErrorKind) -> FileError {
        FileError(Box::new(Inner { path: path.to_owned(), tensor: None, kind, told: None }))
    }

    #[cold]
    pub(crate) fn of_read(path: &Path, error: ReadError<io::Error>) -> FileError {
        let kind = match error {
            ReadError::Length(error) => FileErrorKind::Open(error),
            ReadError::Read { error, offset, len } => {
                if error.kind() == io::ErrorKind::UnexpectedEof {
                    FileErrorKind::Shrunk { offset, len }
                } else {
                    FileErrorKind::Read { error, offset, len }
                }
            }
            ReadError::Invalid(error) => FileErrorKind::Invalid(error),
        };
        FileError::new(path, kind)
    }

    /// The same error, of the tensor with this name.
    pub(crate) fn of(mut self, tensor: &str) -> FileError {
        self.0.tensor = Some(tensor.to_string());
        self
    }

    /// What is wrong with a text of the file, told with the names that stand in it.
    #[cold]
    pub(crate) fn of_text(path: &Path, error: ErrorInFile<'_>) -> FileError {
        let mut told = FileError::new(path, FileErrorKind::Invalid(error.error()));
        told.0.told = Some(error.to_string());
        told.0.tensor = error.tensor().map(|name| name.to_string());
        told
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &FileErrorKind {
        &self.0.kind
    }

    /// The name of the tensor concerned: the one that was asked for, or the one of which the file
    /// says something wrong.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// What is wrong with the file or with the request, if that is what is wrong.
    #[must_use]
    pub fn invalid(&self) -> Option<Error> {
        match self.0.kind {
            FileErrorKind::Invalid(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the file itself is at fault, or does not have what was asked for: not the system,
    /// which could not read it, nor the caller, who stopped.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.0.kind, FileErrorKind::Invalid(_) | FileErrorKind::NotInShard)
    }

    /// The error without the path: one sentence that names the tensor.
    #[must_use]
    pub fn sentence(&self) -> impl fmt::Display + '_ {
        Sentence(&self.0)
    }
}

impl fmt::Debug for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileError")
            .field("path", &self.0.path)
            .field("tensor", &self.0.tensor)
            .field("kind", &self.0.kind)
            .finish()
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.path.display(), self.sentence())
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            FileErrorKind::Open(error)
            | FileErrorKind::Read { error, .. }
            | FileErrorKind::Map(error)
            | FileErrorKind::Write { error, .. } => Some(error),
            FileErrorKind::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

struct Sentence<'e>(&'e Inner);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { tensor, kind, told, .. } = self.0;
        if let Some(told) = told {
            return f.write_str(told);
        }
        if let Some(tensor) = tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        kind.fmt(f)
    }
}

impl FileErrorKind {
    /// A short name, for logs and scripts: that of the [`ErrorKind`](crate::ErrorKind) where the
    /// file is invalid, else the variant's, and `not_found` where there is nothing at the path.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            FileErrorKind::Open(error) if error.kind() == io::ErrorKind::NotFound => "not_found",
            FileErrorKind::Open(_) => "open",
            FileErrorKind::NotAFile(_) => "not_a_file",
            FileErrorKind::Read { .. } => "read",
            FileErrorKind::Shrunk { .. } => "shrunk",
            FileErrorKind::Replaced => "replaced",
            FileErrorKind::Invalid(error) => error.kind().name(),
            FileErrorKind::OutOfMemory { .. } => "out_of_memory",
            FileErrorKind::Map(_) => "map",
            FileErrorKind::Write { .. } => "write",
            FileErrorKind::Stopped { .. } => "stopped",
            FileErrorKind::NoModel => "no_model",
            FileErrorKind::ManyModels { .. } => "many_models",
            FileErrorKind::NotInShard => "not_in_shard",
        }
    }
}

impl fmt::Display for FileErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileErrorKind::Open(error) => write!(f, "cannot be opened: {error}"),
            FileErrorKind::NotAFile(found) => write!(f, "this is {found}, not a regular file"),
            FileErrorKind::Read { error, offset, len } => {
                write!(f, "cannot read {len} bytes at byte {offset}: {error}")
            }
            FileErrorKind::Shrunk { offset, len } => write!(
                f,
                "the file shrank after it was opened: {len} bytes at byte {offset} are incomplete"
            ),
            FileErrorKind::Replaced => f.write_str("another file replaced it after it was opened"),
            FileErrorKind::Invalid(error) => error.fmt(f),
            FileErrorKind::OutOfMemory { bytes } => {
                write!(f, "not enough memory for {bytes} bytes")
            }
            FileErrorKind::Map(error) => {
                write!(f, "cannot be mapped: {error}; `File` can read it without mapping")
            }
            FileErrorKind::Write { error, written } => {
                write!(f, "writing failed after {written} bytes: {error}")
            }
            FileErrorKind::Stopped { done } => write!(f, "stopped after {done}"),
            FileErrorKind::NoModel => f.write_str(
                "the folder has no `.safetensors.index.json` and no `.safetensors` file",
            ),
            FileErrorKind::ManyModels { names } => {
                f.write_str("the folder holds several models:")?;
                for name in names.iter().take(10) {
                    write!(f, " {}", Quoted(name))?;
                }
                match names.len().saturating_sub(10) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            FileErrorKind::NotInShard => {
                f.write_str("the index lists it in this shard, but the shard does not have it")
            }
        }
    }
}
