//! Standard output.

use std::io::{self, BufWriter, StdoutLock, Write};

/// The size of the output buffer, in bytes.
pub(crate) const BUFFER: usize = 64 << 10;

/// Standard output, locked once.
#[derive(Debug)]
pub(crate) struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    /// Whether to carry on when the pipe is closed, because the exit code still matters.
    keep_going: bool,
    closed: bool,
}

impl Printer {
    /// A printer that fails once the pipe is closed.
    pub(crate) fn new() -> Printer {
        let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        Printer { out, keep_going: false, closed: false }
    }

    /// A printer that ignores a closed pipe, for verbs whose exit code is a verdict.
    pub(crate) fn for_verdict() -> Printer {
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

    // Inlined, because JSON is written in many small pieces.
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
