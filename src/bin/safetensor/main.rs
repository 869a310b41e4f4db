//! The program `safetensor`: inspects, checks, compares and converts safetensors files.
//!
//! Data flows `files` → `show` → `verbs` → `arguments` → `main`: each imports only from those
//! before it. Like the library, the program never panics, whatever a file contains.
//!
//! Exit codes: 0 for success; 1 if the file is invalid, differs, or does not have what was asked
//! for; 2 for wrong usage, a refused save, or a file that cannot be read. Each error is one line on
//! stderr: `safetensor: FILE: SENTENCE`.

#![forbid(unsafe_code)]
// The lints against panics stay on. Plain arithmetic is fine for drawings and progress.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::integer_division
)]

mod files;
mod show;
mod verbs;
mod arguments;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::arguments::{Arguments, Verb};
use crate::files::failure::{Exit, Failure};
use crate::files::interrupt;
use crate::show::errors;
use crate::show::terminal::Terminal;
use crate::verbs::{
    completions, diff, export, hash, info, meta, repack, selftest, stats, tensors, verify,
};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::refuse(&error),
    };
    let terminal = Terminal::new(arguments.color);
    match run(&arguments.verb, &terminal) {
        Ok(exit) => exit.into(),
        Err(Failure::Closed) => Exit::Success.into(),
        Err(Failure::Interrupted) => ExitCode::from(interrupt::EXIT_CODE),
        Err(Failure::Error { subject, sentence, exit }) => {
            errors::print_error(&subject, &sentence);
            exit.into()
        }
    }
}

fn run(verb: &Verb, terminal: &Terminal) -> Result<Exit, Failure> {
    match verb {
        Verb::Info(arguments) => info::run(arguments, terminal),
        Verb::Tensors(arguments) => tensors::run(arguments, terminal),
        Verb::Verify(arguments) => verify::run(arguments, terminal),
        Verb::Stats(arguments) => stats::run(arguments, terminal),
        Verb::Export(arguments) => export::run(arguments),
        Verb::Diff(arguments) => diff::run(arguments, terminal),
        Verb::Hash(arguments) => hash::run(arguments),
        Verb::Meta(arguments) => meta::run(arguments, terminal),
        Verb::Repack(arguments) => repack::run(arguments),
        Verb::Selftest => selftest::run(terminal),
        Verb::Completions(arguments) => completions::run(arguments, Arguments::command()),
    }
}
