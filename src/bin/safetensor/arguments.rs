//! The program's arguments, and what is said where they make no sense.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::files::failure::Exit;
use crate::show::terminal::{self, Color};
use crate::verbs::{completions, diff, export, hash, info, meta, repack, stats, tensors, verify};

/// Look into safetensors files, check them, compare them, take tensors out of them, and write them anew.
///
/// FILE is a `.safetensors` file, a shard index (`*.index.json`), or a folder that holds either. Files
/// are read as if a stranger had made them: nothing in them is executed, believed or printed as it is.
/// Memory does not grow with the data: headers are kept, data pass through.
///
/// Exit codes: 0 all well; 1 the file is invalid, differs, or does not have what was asked for;
/// 2 usage, or the file could not be read.
#[derive(Debug, Parser)]
#[command(name = "safetensor", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// When to use colours. `auto`: on a terminal, unless NO_COLOR is set
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
    /// Craft every lie that a header can tell, and require each to be refused
    ///
    /// An honest control comes first. Each lie has to be refused for its own reason; those that only
    /// the strict rules refuse have to be accepted by the default ones. So with shard indexes, and with
    /// files that must not be written. Then numbers of every dtype have to widen to what they are. A line tells of each. Needs no files. Exit code 1 if any lie is
    /// believed.
    Selftest,
    #[command(hide = true)]
    Completions(completions::Arguments),
}

/// Says in one line why arguments are refused; or prints the help or version that was asked for.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no error.
            let _ = error.print();
            Exit::Well.into()
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::Unreadable.into()
        }
        _ => {
            let _ = writeln!(io::stderr(), "safetensor: {}", in_one_line(&error.to_string()));
            Exit::Unreadable.into()
        }
    }
}

/// The lines of clap's message before the usage, joined.
fn in_one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines = message.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("For more information");
    let lines: Vec<&str> = lines.filter(is_said).collect();
    terminal::visible(&lines.join("; ")).into_owned() + "; see `safetensor --help`"
}
