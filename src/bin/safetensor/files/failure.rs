//! Why a verb ends early, and the program's exit codes.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use safetensors_zero::{FileError, FileErrorKind, WriteError, WriteErrorKind};

/// How the program ends, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Success = 0,
    /// The file is invalid, differs, or does not have what was asked for.
    Invalid = 1,
    /// Wrong usage, a refused save, or a file that cannot be read.
    Unreadable = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a verb ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error to print as one line.
    Error {
        /// The file, as the user named it.
        subject: String,
        /// What is wrong with it.
        sentence: String,
        exit: Exit,
    },
    /// The reader of the output closed the pipe, which is not an error.
    Closed,
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl Failure {
    pub(crate) fn new(subject: &Path, sentence: impl fmt::Display, exit: Exit) -> Failure {
        let subject = subject.display().to_string();
        Failure::Error { subject, sentence: sentence.to_string(), exit }
    }

    /// The file does not have what was asked for.
    pub(crate) fn invalid(subject: &Path, sentence: impl fmt::Display) -> Failure {
        Failure::new(subject, sentence, Exit::Invalid)
    }

    /// A failed save of the file at `path`, unless the error has a path itself.
    pub(crate) fn from_write(path: &Path, error: WriteError) -> Failure {
        match error.kind() {
            WriteErrorKind::Stopped => Failure::Interrupted,
            WriteErrorKind::Read(error) => {
                Failure::new(error.path(), error.sentence(), exit_of(error))
            }
            kind => {
                let refused = matches!(kind, WriteErrorKind::Refused(_));
                let exit = if refused { Exit::Invalid } else { Exit::Unreadable };
                Failure::new(error.path().unwrap_or(path), error.sentence(), exit)
            }
        }
    }

    /// Wrong usage, or a file that cannot be read or written.
    pub(crate) fn usage(subject: &Path, sentence: impl fmt::Display) -> Failure {
        Failure::new(subject, sentence, Exit::Unreadable)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        if let FileErrorKind::Stopped { .. } = error.kind() {
            return Failure::Interrupted;
        }
        Failure::new(error.path(), error.sentence(), exit_of(&error))
    }
}

/// Errors of stdout. Errors of files are converted where the file's path is known.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::Closed;
        }
        Failure::usage(Path::new("standard output"), format!("cannot be written: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        io::Error::from(error).into()
    }
}

/// Returns the exit code for an error of a file.
pub(crate) fn exit_of(error: &FileError) -> Exit {
    if error.is_invalid() {
        Exit::Invalid
    } else {
        Exit::Unreadable
    }
}
