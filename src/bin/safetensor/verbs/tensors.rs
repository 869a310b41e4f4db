//! The verb `tensors`: lists a model's tensors.

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
/// On a terminal, lines are aligned under headings and names are shortened to fit. Elsewhere there
/// are no headings, fields are separated by tabs, and names are whole. Invisible characters and
/// backslashes are escaped. For a sharded model, each line ends with the name of the shard to which
/// the offset belongs.
///
/// `--json` prints one object: {"file", "header_len", "data_start", "data_len", "metadata": {..} or
/// null, "tensors": [{"name", "dtype", "shape": [..], "data_offsets": [a, b], "elements"}]}, with
/// exact numbers and the tensors in the chosen order. For a sharded model, "header_len" to
/// "metadata" are in "shards": [{"file", ..}] instead, and each tensor has a "shard", which is such
/// a "file".
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Order of the tensors
    #[arg(long, value_enum, default_value_t = Order::Offset)]
    sort: Order,
    /// List only tensors whose whole name matches; `*` matches any characters, `?` matches one
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
    Ok(Exit::Success)
}
