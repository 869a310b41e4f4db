//! The output of a verb: stdout, or a file that is replaced as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use safetensors_zero::{AtomicFile, WriteError};

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::interrupt;
use crate::files::printer::{Printer, BUFFER};

/// What the user named with `-o`.
#[derive(Debug)]
pub(crate) struct Output {
    /// The path as the user gave it, for messages.
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout(Printer),
    /// A pipe or a device, which cannot be replaced.
    Special(BufWriter<File>),
    File(BufWriter<AtomicFile>),
}

impl Output {
    /// Opens what the user named: `-` is stdout. No file of the model is replaced.
    pub(crate) fn create(path: &Path, model: &Model) -> Result<Output, Failure> {
        Ok(Output { path: path.to_owned(), to: To::create(path, model)? })
    }

    /// Writes all of the bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.to {
            To::Stdout(printer) => Ok(printer.write_all(bytes)?),
            To::Special(file) => special_result(file.write_all(bytes), &self.path),
            To::File(file) => {
                file.write_all(bytes).map_err(|error| cannot_write(&self.path, &error))
            }
        }
    }

    /// Flushes the output, and moves a file to its path.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Output { path, to } = self;
        match to {
            To::Stdout(mut printer) => Ok(printer.flush()?),
            To::Special(mut file) => special_result(file.flush(), &path),
            To::File(file) => {
                let file = file.into_inner().map_err(|error| cannot_write(&path, error.error()))?;
                file.commit().map_err(|error| refused(&path, &error))
            }
        }
    }
}

impl To {
    fn create(path: &Path, model: &Model) -> Result<To, Failure> {
        if path == Path::new("-") {
            return Ok(To::Stdout(Printer::new()));
        }
        model.check_not_own(path)?;
        if let Ok(metadata) = fs::metadata(path) {
            if metadata.is_dir() {
                return Err(Failure::usage(path, "this is a folder, not a file"));
            }
            if !metadata.is_file() {
                let file = OpenOptions::new().write(true).open(path);
                let file = file.map_err(|error| cannot_write(path, &error))?;
                return Ok(To::Special(BufWriter::with_capacity(BUFFER, file)));
            }
        }
        interrupt::watch();
        let file = AtomicFile::create(path).map_err(|error| refused(path, &error))?;
        Ok(To::File(BufWriter::with_capacity(BUFFER, file)))
    }
}

/// A pipe closed by its reader is not an error, as with stdout.
fn special_result(result: io::Result<()>, path: &Path) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => cannot_write(path, &error),
    })
}

fn refused(path: &Path, error: &WriteError) -> Failure {
    Failure::new(path, error.sentence(), Exit::Unreadable)
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(path, format!("cannot be written: {error}"), Exit::Unreadable)
}
