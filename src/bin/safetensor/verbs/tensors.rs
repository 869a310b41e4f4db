//! The verb `tensors`: a line for each tensor.

use std::io::Write as _;
use std::path::PathBuf;

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::listing::{Listing, Order};
use crate::files::printer::Printer;
use crate::show::tensors;
use crate::show::terminal::Terminal;

/// List the tensors: name, dtype, shape, bytes, absolute offset
///
/// On a terminal the lines are aligned under headings and names are shortened to fit. Elsewhere they
/// have no headings, are separated by tabs, and names are whole; characters that are not visible, and
/// backslashes, are escaped. A sharded model's lines end in the shard's name, in which the offset is.
///
/// `--json` prints one object: {"file", "header_len", "data_start", "data_len", "metadata": {..} or
/// null, "tensors": [{"name", "dtype", "shape": [..], "data_offsets": [a, b], "elements"}]}, numbers
/// exact, tensors in the order of their data. Of a sharded model "header_len" to "metadata" stand in
/// "shards": [{"file", ..}] instead, and each tensor has its "shard", whose name is that "file".
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// In which order
    #[arg(long, value_enum, default_value_t = Order::Offset)]
    sort: Order,
    /// Only those whose whole name fits; `*` stands for any characters, `?` for one
    #[arg(long = "match", value_name = "GLOB")]
    pattern: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let model = Model::open(&arguments.file)?;
    let listing = Listing::new(&model, arguments.pattern.as_deref(), arguments.sort);
    let mut out = Printer::new();
    if arguments.json {
        tensors::print_json(&mut out, &listing)?;
    } else if terminal.width().is_some() {
        tensors::print_columns(&mut out, terminal, &listing)?;
    } else {
        tensors::print_lines(&mut out, &listing)?;
    }
    out.flush()?;
    model.check_complete()?;
    Ok(Exit::Well)
}
