//! The error of reading a file: the file, the tensor, and what went wrong.

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

/// The error of reading a file, with the file's path and, if there is one, the name of the tensor
/// at fault.
///
/// `Display` prints the path and one sentence. [`FileError::sentence`] is the sentence alone.
pub struct FileError(Box<Inner>);

struct Inner {
    path: PathBuf,
    tensor: Option<String>,
    kind: FileErrorKind,
    /// The sentence with names read from the file. If `None`, the kind's own sentence is used.
    sentence: Option<String>,
}

/// What went wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The path cannot be opened.
    Open(io::Error),
    /// The path does not lead to a regular file.
    NotAFile(FileType),
    /// A range of the file cannot be read.
    Read {
        /// The system's error.
        error: io::Error,
        /// The offset of the range in the file.
        offset: u64,
        /// The length of the range in bytes.
        len: u64,
    },
    /// The file has been truncated since it was opened, and part of this range is missing.
    Shrunk {
        /// The offset of the range in the file.
        offset: u64,
        /// The length of the range in bytes.
        len: u64,
    },
    /// The path leads to a different file than when it was first opened.
    Replaced,
    /// The file's contents are invalid, or the request does not fit them.
    Invalid(Error),
    /// There is not enough memory for a part of the file that is held in memory.
    OutOfMemory {
        /// The length of the part in bytes.
        bytes: u64,
    },
    /// The file cannot be mapped into memory.
    Map(io::Error),
    /// The caller's writer failed.
    Write {
        /// The writer's error.
        error: io::Error,
        /// The number of bytes written before the failed write.
        written: u64,
    },
    /// The caller's progress function stopped the call.
    Stopped {
        /// The last value of [`Progress::done`](crate::Progress::done), in bytes or elements.
        done: u64,
    },
    /// The folder contains neither a shard index nor a safetensors file.
    NoModel,
    /// The folder contains several shard indexes, or no index and several safetensors files, and
    /// none with the usual name.
    ManyModels {
        /// The names of these files, sorted.
        names: Vec<String>,
    },
    /// The index lists a tensor in this shard, but the shard does not have it.
    NotInShard,
}

/// The type of a file that is not a regular file.
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
    /// Converts the system's file type. Returns `None` for a regular file.
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
        FileError(Box::new(Inner { path: path.to_owned(), tensor: None, kind, sentence: None }))
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

    /// Adds the name of the tensor at fault.
    pub(crate) fn of(mut self, tensor: &str) -> FileError {
        self.0.tensor = Some(tensor.to_string());
        self
    }

    /// Creates an error about a text in the file. Its sentence quotes names from that text.
    #[cold]
    pub(crate) fn of_text(path: &Path, error: ErrorInFile<'_>) -> FileError {
        let mut file_error = FileError::new(path, FileErrorKind::Invalid(error.error()));
        file_error.0.sentence = Some(error.to_string());
        file_error.0.tensor = error.tensor().map(|name| name.to_string());
        file_error
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns what went wrong.
    #[must_use]
    pub fn kind(&self) -> &FileErrorKind {
        &self.0.kind
    }

    /// Returns the name of the tensor at fault, if there is one: the one requested, or the one
    /// whose header entry is invalid.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// Returns the error in the file's contents or in the request, or `None` for all other kinds.
    #[must_use]
    pub fn invalid(&self) -> Option<Error> {
        match self.0.kind {
            FileErrorKind::Invalid(error) => Some(error),
            _ => None,
        }
    }

    /// Returns `true` if the file's contents are invalid or do not fit the request. Returns `false`
    /// for all other kinds, such as system errors and calls that the caller stopped.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.0.kind, FileErrorKind::Invalid(_) | FileErrorKind::NotInShard)
    }

    /// Returns the error without the path: one sentence that names the tensor, if there is one.
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
            FileErrorKind::Invalid(error) => Some(error),
            kind => Some(kind.system_error()?),
        }
    }
}

/// Keeps the kind of an error of the system. A file that is not valid becomes
/// [`InvalidData`](io::ErrorKind::InvalidData).
impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        let kind = match (error.kind().system_error(), error.kind()) {
            (Some(error), _) => error.kind(),
            (None, FileErrorKind::OutOfMemory { .. }) => io::ErrorKind::OutOfMemory,
            (None, FileErrorKind::Shrunk { .. }) => io::ErrorKind::UnexpectedEof,
            _ if error.is_invalid() => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

struct Sentence<'e>(&'e Inner);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { tensor, kind, sentence, .. } = self.0;
        if let Some(sentence) = sentence {
            return f.write_str(sentence);
        }
        if let Some(tensor) = tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        kind.fmt(f)
    }
}

impl FileErrorKind {
    /// Returns the error of the system that caused this one, if one did.
    fn system_error(&self) -> Option<&io::Error> {
        match self {
            FileErrorKind::Open(error)
            | FileErrorKind::Read { error, .. }
            | FileErrorKind::Map(error)
            | FileErrorKind::Write { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns a short name for logs and scripts.
    ///
    /// It is the [`ErrorKind`](crate::ErrorKind)'s name for [`Invalid`](Self::Invalid), `not_found`
    /// if the path does not exist, and the variant's name in snake case otherwise.
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
