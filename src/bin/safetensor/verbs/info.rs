//! The verb `info`: shows what a model is, at a glance.

use std::io::Write as _;
use std::path::PathBuf;

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::printer::Printer;
use crate::show::info::{self, Summary};
use crate::show::terminal::Terminal;

/// Show what a model is: tensors, sizes, parameters by dtype, header, alignment, metadata
///
/// A chart shows the size of each group of tensors. A group's name ends at the number of a layer. A
/// name without a number is in the group named by all but its last part.
///
/// `--json` prints one object: {"file", "tensors", "parameters", "data_len", "dtypes": [{"dtype",
/// "tensors", "parameters", "bytes"}], "header_len", "data_start", "alignment",
/// "misaligned_tensors", "metadata": {..} or null}. "alignment" is the largest power of two that
/// divides "data_start". For a sharded model, "header_len" to "metadata" are in "shards": [{"file",
/// ..}] instead.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let model = Model::open(&arguments.file)?;
    let summary = Summary::of(&model);
    let mut out = Printer::new();
    if arguments.json {
        info::print_json(&mut out, &model, &summary)?;
    } else {
        info::print(&mut out, terminal, &model, &summary)?;
    }
    out.flush()?;
    model.check_complete()?;
    Ok(Exit::Success)
}
