//! Error lines on stderr.

use std::io::{self, Write as _};

use crate::show::terminal;

/// Prints an error as one line on stderr. Failures to print are ignored.
pub(crate) fn print_error(subject: &str, sentence: &str) {
    let line = format!("{subject}: {sentence}");
    let _ = writeln!(io::stderr(), "safetensor: {}", terminal::visible(&line));
}
