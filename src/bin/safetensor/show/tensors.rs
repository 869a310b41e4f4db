//! The output of `tensors`: a line for each tensor.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use safetensors_zero::Table;

use crate::files::failure::Failure;
use crate::files::input::{Entry, Model};
use crate::files::listing::Listing;
use crate::files::printer::Printer;
use crate::show::columns::Columns;
use crate::show::json::{Dimensions, List, Name, Pairs};
use crate::show::numbers;
use crate::show::terminal::{self, Terminal};

/// Prints lines for other programs: fields separated by tabs.
pub(crate) fn print_lines(out: &mut Printer, listing: &Listing<'_>) -> io::Result<()> {
    let model = listing.model();
    let mut line = Vec::new();
    for entry in listing.entries() {
        let info = &entry.info;
        line.clear();
        line.extend_from_slice(terminal::name(&info.name).as_bytes());
        line.push(b'\t');
        line.extend_from_slice(info.dtype.as_str().as_bytes());
        line.extend_from_slice(b"\t[");
        for (at, dimension) in info.shape.iter().enumerate() {
            if at > 0 {
                line.extend_from_slice(b", ");
            }
            numbers::push(&mut line, dimension);
        }
        line.extend_from_slice(b"]\t");
        numbers::push(&mut line, info.byte_len());
        line.push(b'\t');
        numbers::push(&mut line, entry.offset());
        if model.is_indexed() {
            line.push(b'\t');
            let shard = terminal::visible(model.shard_name(entry.shard));
            line.extend_from_slice(shard.as_bytes());
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

/// Prints a table for people, with totals.
pub(crate) fn print_columns(
    out: &mut Printer,
    terminal: &Terminal,
    listing: &Listing<'_>,
) -> io::Result<()> {
    let model = listing.model();
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
    listing.entries().for_each(|entry| columns.measure(&cells(&entry)));
    columns.fit();
    columns.heading(out)?;
    let (mut shard, mut count, mut bytes) = (None, 0, 0_u64);
    for entry in listing.entries() {
        if model.is_indexed() && shard != Some(entry.shard) {
            shard = Some(entry.shard);
            writeln!(out, "{}:", terminal::visible(model.shard_name(entry.shard)))?;
        }
        columns.line(out, &cells(&entry))?;
        count += 1;
        bytes = bytes.saturating_add(entry.info.byte_len());
    }
    writeln!(out, "{}, {}", numbers::counted(count, "tensor"), numbers::bytes(bytes))
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

pub(crate) fn print_json(out: &mut Printer, listing: &Listing<'_>) -> Result<(), Failure> {
    let model = listing.model();
    let path = model.path().to_string_lossy();
    let tensors = List(|| listing.entries().map(|entry| tensor_line(model, entry)));
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

fn tensor_line<'m>(model: &'m Model, entry: Entry<'m>) -> TensorLine<'m> {
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
