//! The verb `tensors`: a line for each tensor.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use safetensors_zero::Table;

use crate::columns::Columns;
use crate::failure::{Exit, Failure};
use crate::glob;
use crate::input::{Entry, Model};
use crate::json::{Dimensions, List, Name, Pairs};
use crate::numbers;
use crate::output::Printer;
use crate::terminal::{self, Terminal};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    Name,
    /// The largest first
    Size,
    /// As the data lies in the file
    Offset,
}

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let model = Model::open(&arguments.file)?;
    let mut all = 0;
    let mut entries: Vec<Entry<'_>> = model.entries().inspect(|_| all += 1).collect();
    if let Some(pattern) = &arguments.pattern {
        let pattern: Vec<char> = pattern.chars().collect();
        entries.retain(|entry| glob::fits(&pattern, entry.info.name.chars()));
    }
    match arguments.sort {
        Order::Offset => {}
        Order::Name => entries.sort_by(|a, b| a.info.name.cmp(&b.info.name)),
        Order::Size => entries.sort_by_key(|entry| std::cmp::Reverse(entry.info.byte_len())),
    }
    let mut out = Printer::new();
    if arguments.json {
        print_json(&mut out, &model, &entries)?;
    } else if terminal.width().is_some() {
        print_columns(&mut out, terminal, &model, &entries)?;
    } else {
        print_lines(&mut out, &model, &entries)?;
    }
    out.flush()?;
    model.check_complete(all)?;
    Ok(Exit::Well)
}

/// For other programs: fields between tabs.
fn print_lines(out: &mut Printer, model: &Model, entries: &[Entry<'_>]) -> io::Result<()> {
    for entry in entries {
        let info = &entry.info;
        out.write_all(terminal::name(&info.name).as_bytes())?;
        write!(out, "\t{}\t{}", info.dtype.as_str(), info.shape)?;
        write!(out, "\t{}\t{}", info.byte_len(), entry.offset())?;
        if model.is_indexed() {
            write!(out, "\t{}", terminal::visible(model.shard_name(entry.shard)))?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// For people: aligned, and what it comes to.
fn print_columns(
    out: &mut Printer,
    terminal: &Terminal,
    model: &Model,
    entries: &[Entry<'_>],
) -> io::Result<()> {
    let cells = |entry: &Entry<'_>| -> [Cow<'_, str>; 5] {
        let info = entry.info;
        [
            Cow::Owned(terminal::name(&info.name).into_owned()),
            info.dtype.as_str().into(),
            info.shape.to_string().into(),
            numbers::grouped(info.byte_len()).into(),
            entry.offset().to_string().into(),
        ]
    };
    let mut columns = Columns::new(terminal, ["name", "dtype", "shape", " bytes", " offset"]);
    entries.iter().for_each(|entry| columns.measure(&cells(entry)));
    columns.fit();
    columns.heading(out)?;
    let mut shard = 0;
    for (at, entry) in entries.iter().enumerate() {
        if model.is_indexed() && (at == 0 || entry.shard != shard) {
            shard = entry.shard;
            writeln!(out, "{}:", terminal::visible(model.shard_name(shard)))?;
        }
        columns.line(out, &cells(entry))?;
    }
    let bytes = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.info.byte_len()));
    let count = numbers::counted(entries.len() as u64, "tensor");
    writeln!(out, "{count}, {}", numbers::bytes(bytes))
}

#[derive(Serialize)]
struct FileLine<'m> {
    file: Cow<'m, str>,
    header_len: u64,
    data_start: u64,
    data_len: u64,
    metadata: Option<Pairs<'m>>,
}

#[derive(Serialize)]
struct TensorLine<'m> {
    name: Name<'m>,
    dtype: &'static str,
    shape: Dimensions<'m>,
    data_offsets: (u64, u64),
    elements: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<&'m str>,
}

#[derive(Serialize)]
struct Single<'m, T> {
    #[serde(flatten)]
    file: FileLine<'m>,
    tensors: T,
}

#[derive(Serialize)]
struct Sharded<'m, S, T> {
    file: Cow<'m, str>,
    shards: S,
    tensors: T,
}

fn print_json(out: &mut Printer, model: &Model, entries: &[Entry<'_>]) -> Result<(), Failure> {
    let path = model.path().to_string_lossy();
    let tensors = List(|| entries.iter().map(|entry| tensor_line(model, entry)));
    if model.is_indexed() {
        let named = |(shard, (_, table))| file_line(model.shard_name(shard).into(), &table);
        let shards = List(|| model.files().enumerate().map(named));
        serde_json::to_writer(&mut *out, &Sharded { file: path, shards, tensors })?;
    } else if let Some((_, table)) = model.files().next() {
        let file = file_line(path, &table);
        serde_json::to_writer(&mut *out, &Single { file, tensors })?;
    }
    Ok(out.write_all(b"\n")?)
}

fn file_line<'m>(file: Cow<'m, str>, table: &Table<'m, '_>) -> FileLine<'m> {
    FileLine {
        file,
        header_len: table.header().len() as u64,
        data_start: table.data_start(),
        data_len: table.data_len(),
        metadata: table.metadata().map(Pairs),
    }
}

fn tensor_line<'m>(model: &'m Model, entry: &Entry<'m>) -> TensorLine<'m> {
    let info = entry.info;
    TensorLine {
        name: Name(info.name),
        dtype: info.dtype.as_str(),
        shape: Dimensions(info.shape),
        data_offsets: info.data_offsets,
        elements: info.elements(),
        shard: model.is_indexed().then(|| model.shard_name(entry.shard)),
    }
}
