//! The program's arguments, and the error lines for invalid ones.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::files::failure::Exit;
use crate::show::errors;
use crate::show::terminal::Color;
use crate::verbs::{completions, diff, export, hash, info, meta, repack, stats, tensors, verify};

/// Inspect, check, compare, export and rewrite safetensors files
///
/// FILE is a `.safetensors` file, a shard index (`*.index.json`), or a folder that holds either.
///
/// Files are not trusted: nothing in them is executed, and text from them is escaped before it is
/// printed. Memory use does not grow with the data: only headers are kept in memory.
///
/// Exit codes: 0 for success; 1 if a file is invalid, differs, or does not have what was asked for;
/// 2 for wrong usage, a refused save, or a file that cannot be read.
#[derive(Debug, Parser)]
#[command(name = "safetensor", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// When to use colours; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "Examples:
  safetensor info model.safetensors
  safetensor tensors model/ --match '*.norm.*' --sort size
  safetensor verify --strict model.safetensors.index.json
  safetensor stats model.safetensors lm_head.weight
  safetensor export model.safetensors lm_head.weight --rows 0..10 --format npy -o head.npy
  safetensor meta model.safetensors --set licence=MIT
  safetensor repack model/ model.safetensors --align 4096";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Info(info::Arguments),
    Tensors(tensors::Arguments),
    Verify(verify::Arguments),
    Stats(stats::Arguments),
    Export(export::Arguments),
    Diff(diff::Arguments),
    Hash(hash::Arguments),
    Meta(meta::Arguments),
    Repack(repack::Arguments),
    /// Check that malformed files are refused and numbers are read exactly
    ///
    /// Reads built-in files: valid ones, and one for each way in which a header can be malformed.
    /// Each malformed file must be refused for the expected reason. Those that only the strict
    /// rules refuse must be accepted by the default rules. Shard indexes, and files that must not
    /// be written, are checked in the same way. Then numbers of every dtype must convert to the
    /// expected f32. Prints a line for each check. Needs no files. The exit code is 1 if any check
    /// fails.
    Selftest,
    #[command(hide = true)]
    Completions(completions::Arguments),
}

/// Prints why arguments are invalid, as one line, or the help or version that was asked for.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is not an error.
            let _ = error.print();
            Exit::Success.into()
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::Unreadable.into()
        }
        _ => {
            errors::print_line(&in_one_line(&error.to_string()));
            Exit::Unreadable.into()
        }
    }
}

/// Joins the lines of clap's message that come before the usage.
fn in_one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines = message.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let is_message = |line: &&str| !line.is_empty() && !line.starts_with("For more information");
    let lines: Vec<&str> = lines.filter(is_message).collect();
    lines.join("; ") + "; see `safetensor --help`"
}
