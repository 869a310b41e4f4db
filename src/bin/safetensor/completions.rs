//! The hidden verb `completions`: a script by which a shell completes this program's arguments.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::failure::{Exit, Failure};
use crate::output::Printer;

/// Print a script for a shell, by which it completes arguments
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let mut command = crate::arguments::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "safetensor", &mut script);
    let mut out = Printer::new();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Well)
}
