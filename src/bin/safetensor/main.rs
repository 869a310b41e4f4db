//! The program `safetensor`: looks into safetensors files, checks, compares and converts them.
//!
//! It reads files as the library does: whatever is in them, nothing here may panic. Exit codes: 0 all
//! well; 1 the file is invalid, differs, or does not have what was asked for; 2 usage, or the file
//! could not be read. Errors are one line each on standard error: `safetensor: FILE: SENTENCE`.

#![forbid(unsafe_code)]
// The lints against panics hold here too; arithmetic is for pictures and progress.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::incompatible_msrv,
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
        Err(Failure::Closed) => Exit::Well.into(),
        Err(Failure::Interrupted) => ExitCode::from(interrupt::EXIT_CODE),
        Err(Failure::Told { subject, sentence, exit }) => {
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
