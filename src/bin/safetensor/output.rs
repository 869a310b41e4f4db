//! Where the program writes to: standard output, or a file that is there as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::failure::{Exit, Failure};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 64 << 10;

/// Standard output, locked once.
#[derive(Debug)]
pub(crate) struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    /// Whether a closed pipe is to go unnoticed, since the exit code still has something to tell.
    keep_going: bool,
    closed: bool,
}

impl Printer {
    /// For verbs that have nothing to do once nobody reads.
    pub(crate) fn new() -> Printer {
        let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        Printer { out, keep_going: false, closed: false }
    }

    /// For verbs whose exit code is a verdict, which has to be reached even if nobody reads.
    pub(crate) fn of_verdict() -> Printer {
        Printer { keep_going: true, ..Printer::new() }
    }

    fn outcome<T>(&mut self, result: io::Result<T>, unread: T) -> io::Result<T> {
        match result {
            Err(error) if self.keep_going && error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(unread)
            }
            result => result,
        }
    }
}

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.outcome(written, bytes.len())
    }

    /// JSON is written in many small pieces.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.out.write_all(bytes) {
            Ok(()) => Ok(()),
            failed => self.outcome(failed, ()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.outcome(flushed, ())
    }
}

/// What the user named by `-o`.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout(Printer),
    /// A pipe or a device, which cannot be replaced.
    Special(BufWriter<File>, PathBuf),
    File(Partial),
}

/// A file beside the one that it will replace. Unless it is finished, nothing of it stays, on Ctrl-C
/// neither.
#[derive(Debug)]
pub(crate) struct Partial {
    file: BufWriter<File>,
    temporary: PathBuf,
    target: PathBuf,
    finished: bool,
}

/// The file to be removed if the program is interrupted.
static PARTIAL: Mutex<Option<PathBuf>> = Mutex::new(None);

fn partial() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    PARTIAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exit code of what a signal ended, as shells give it for Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

impl Output {
    /// Opens what the user named: `-` is standard output. `inputs` are files that must not be replaced.
    pub(crate) fn create(path: &Path, inputs: &[&Path]) -> Result<Output, Failure> {
        if path == Path::new("-") {
            return Ok(Output::Stdout(Printer::new()));
        }
        let failed = |error: io::Error| cannot_write(path, &error);
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(_) => return Ok(Output::File(Partial::create(path.to_owned(), path)?)),
        };
        let is_target = |input: &&Path| fs::canonicalize(input).is_ok_and(|input| input == target);
        if inputs.iter().any(is_target) {
            return Err(Failure::usage(path, "this is the file to be read; it is not overwritten"));
        }
        let metadata = fs::metadata(&target).map_err(failed)?;
        if metadata.is_dir() {
            return Err(Failure::usage(path, "this is a folder; name a file"));
        }
        if !metadata.is_file() {
            let file = OpenOptions::new().write(true).open(&target).map_err(failed)?;
            return Ok(Output::Special(BufWriter::with_capacity(BUFFER, file), path.to_owned()));
        }
        let partial = Partial::create(target, path)?;
        partial.file.get_ref().set_permissions(metadata.permissions()).map_err(failed)?;
        Ok(Output::File(partial))
    }

    /// Writes all bytes, or tells why not.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Output::Stdout(printer) => Ok(printer.write_all(bytes)?),
            Output::Special(file, path) => of_special(file.write_all(bytes), path),
            Output::File(partial) => {
                partial.file.write_all(bytes).map_err(|error| cannot_write(&partial.target, &error))
            }
        }
    }

    /// Makes sure that everything is written, and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Output::Stdout(mut printer) => Ok(printer.flush()?),
            Output::Special(mut file, path) => of_special(file.flush(), &path),
            Output::File(partial) => partial.finish(),
        }
    }
}

impl Partial {
    fn create(target: PathBuf, named: &Path) -> Result<Partial, Failure> {
        // It can only be set once; a second time it is set already.
        let _ = ctrlc::set_handler(remove_and_exit);
        let mut registered = partial();
        let (file, temporary) =
            create_beside(&target).map_err(|error| cannot_write(named, &error))?;
        *registered = Some(temporary.clone());
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Partial { file, temporary, target, finished: false })
    }

    fn finish(mut self) -> Result<(), Failure> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        written.map_err(|error| cannot_write(&self.target, &error))?;
        let mut registered = partial();
        fs::rename(&self.temporary, &self.target)
            .map_err(|error| cannot_write(&self.target, &error))?;
        *registered = None;
        self.finished = true;
        Ok(())
    }
}

/// Makes a new file in the folder of another.
fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut attempt = 0;
    loop {
        let name = format!(".safetensor-{}-{attempt}.partial", std::process::id());
        let path = target.with_file_name(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            // Left behind by a process of this number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.finished {
            let mut registered = partial();
            let _ = fs::remove_file(&self.temporary);
            *registered = None;
        }
    }
}

/// Runs in a thread of its own when the program is told to end.
fn remove_and_exit() {
    // Held to the end, so that the file is not finished meanwhile.
    let mut registered = partial();
    if let Some(path) = registered.take() {
        let _ = fs::remove_file(path);
    }
    std::process::exit(INTERRUPTED.into());
}

/// A pipe whose reader has had enough is no error, as with standard output.
fn of_special(result: io::Result<()>, path: &Path) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => cannot_write(path, &error),
    })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(path, format!("cannot be written: {error}"), Exit::Unreadable)
}
