//! Error lines on stderr.

use std::io::{self, Write as _};

use crate::show::terminal;

/// Prints an error of a file as one line.
pub(crate) fn print_error(subject: &str, sentence: &str) {
    print_line(&format!("{subject}: {sentence}"));
}

/// Prints a line after the program's name. Failures to print are ignored.
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(io::stderr(), "safetensor: {}", terminal::visible(line));
}
