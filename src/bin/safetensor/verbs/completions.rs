//! The hidden verb `completions`: prints a script with which a shell completes this program's
//! arguments.

use std::io::Write as _;

use clap_complete::Shell;

use crate::files::failure::{Exit, Failure};
use crate::files::printer::Printer;

/// Print a script with which a shell completes arguments
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: clap::Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "safetensor", &mut script);
    let mut out = Printer::new();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Success)
}
