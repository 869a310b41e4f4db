//! The output of `info`: what a model is, at a glance.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use safetensors_zero::{Dtype, Table, Text};

use crate::files::failure::Failure;
use crate::files::input::Model;
use crate::files::printer::Printer;
use crate::show::chart;
use crate::show::columns::Columns;
use crate::show::groups::Groups;
use crate::show::json::{List, Pairs};
use crate::show::numbers;
use crate::show::terminal::{self, Style, Terminal};

/// The greatest number of groups to show.
const GROUPS: usize = 24;

/// Totals of some tensors.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Sum {
    tensors: u64,
    parameters: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.tensors += other.tensors;
        self.parameters = self.parameters.saturating_add(other.parameters);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Totals of a model's tensors: of all, by dtype, and by group.
#[derive(Debug, Default)]
pub(crate) struct Summary<'m> {
    all: Sum,
    by_dtype: BTreeMap<&'static str, Sum>,
    groups: Groups<'m>,
}

impl Summary<'_> {
    /// Adds up the tensors of a model.
    pub(crate) fn of(model: &Model) -> Summary<'_> {
        let mut summary = Summary::default();
        let mut sums = [Sum::default(); Dtype::ALL.len()];
        for entry in model.entries() {
            let info = &entry.info;
            let one = Sum { tensors: 1, parameters: info.elements(), bytes: info.byte_len() };
            if let Some(sum) = sums.get_mut(info.dtype as usize) {
                sum.add(one);
            }
            summary.groups.add(info.name, one.bytes);
        }
        for (dtype, sum) in Dtype::ALL.iter().zip(sums) {
            summary.all.add(sum);
            if sum.tensors > 0 {
                summary.by_dtype.insert(dtype.as_str(), sum);
            }
        }
        summary
    }
}

pub(crate) fn print(
    out: &mut Printer,
    terminal: &Terminal,
    model: &Model,
    summary: &Summary<'_>,
) -> io::Result<()> {
    let path = model.path().display().to_string();
    writeln!(out, "{}", terminal.paint(Style::Name, &terminal::visible(&path)))?;
    let Sum { tensors, parameters, bytes } = summary.all;
    let mut field = |name: &str, text: &str| {
        writeln!(out, "{}{text}", terminal.paint(Style::Heading, &format!("{name:<12}")))
    };
    field("tensors", &numbers::grouped(tensors))?;
    let about = numbers::parameters(parameters);
    let exact = numbers::grouped(parameters);
    let about = if about == exact { String::new() } else { format!(" ({about})") };
    field("parameters", &format!("{exact}{about}"))?;
    let about = match bytes {
        0..=1023 => String::new(),
        _ => format!(" ({})", numbers::bytes(bytes)),
    };
    field("data", &format!("{}{about}", numbers::counted(bytes, "byte")))?;
    if model.is_indexed() {
        print_shards(out, terminal, model)?;
    } else if let Some((_, table)) = model.files().next() {
        field("header", &numbers::counted(table.header().len() as u64, "byte"))?;
        field("alignment", &alignment(&table))?;
        print_metadata(out, terminal, &table)?;
    }
    print_dtypes(out, terminal, summary)?;
    print_groups(out, terminal, &summary.groups)
}

fn alignment(table: &Table<'_, '_>) -> String {
    let alignment = table.alignment();
    let start =
        format!("data starts at {}, a multiple of {}", table.data_start(), alignment.data_start);
    let misaligned = alignment.misaligned_tensors as u64;
    if misaligned == 0 {
        return format!("{start}; every tensor is aligned");
    }
    let are = if misaligned == 1 { "is" } else { "are" };
    format!("{start}; {} {are} not aligned", numbers::counted(misaligned, "tensor"))
}

fn print_metadata(out: &mut Printer, terminal: &Terminal, table: &Table<'_, '_>) -> io::Result<()> {
    let Some(metadata) = table.metadata() else { return Ok(()) };
    writeln!(out, "{}", terminal.paint(Style::Heading, "metadata"))?;
    for (key, value) in metadata {
        let (mut key, mut value) = (terminal::name(&key), printable(terminal, value));
        if let Some(width) = terminal.width() {
            key = Cow::Owned(terminal::cut(&key, width / 2, terminal.is_unicode()).into_owned());
            let room = width.saturating_sub(terminal::columns(&key) + 5);
            value = terminal::cut(&value, room, terminal.is_unicode()).into_owned();
        }
        writeln!(out, "  {} = {value}", terminal.paint(Style::Name, &key))?;
    }
    Ok(())
}

/// Returns a value in printable form: whole, or what fits on a terminal line, since values of a
/// megabyte are not rare.
fn printable(terminal: &Terminal, value: Text<'_>) -> String {
    match terminal.width() {
        Some(width) if value.raw().len() > width => {
            let begin: String = value.chars().take(width).collect();
            terminal::visible(&begin.replace('\\', "\\\\")).into_owned() + "…"
        }
        _ => terminal::name(&value).into_owned(),
    }
}

fn print_shards(out: &mut Printer, terminal: &Terminal, model: &Model) -> io::Result<()> {
    let cells = |shard: usize, table: &Table<'_, '_>| -> [Cow<'_, str>; 5] {
        let alignment = table.alignment();
        [
            Cow::Owned(terminal::visible(model.shard_name(shard)).into_owned()),
            numbers::grouped(table.len() as u64).into(),
            numbers::grouped(table.data_len()).into(),
            numbers::grouped(table.header().len() as u64).into(),
            numbers::grouped(alignment.misaligned_tensors as u64).into(),
        ]
    };
    let headings = ["shard", " tensors", " bytes", " header", " misaligned"];
    let mut columns = Columns::new(terminal, headings);
    model.files().enumerate().for_each(|(at, (_, table))| columns.measure(&cells(at, &table)));
    columns.fit();
    writeln!(out)?;
    columns.heading(out)?;
    for (shard, (_, table)) in model.files().enumerate() {
        columns.line(out, &cells(shard, &table))?;
    }
    Ok(())
}

fn print_dtypes(out: &mut Printer, terminal: &Terminal, summary: &Summary<'_>) -> io::Result<()> {
    let mut columns = Columns::new(terminal, ["dtype", " tensors", " parameters", " bytes"]);
    let cells = |dtype: &'static str, sum: &Sum| -> [Cow<'_, str>; 4] {
        let Sum { tensors, parameters, bytes } = *sum;
        [
            dtype.into(),
            numbers::grouped(tensors).into(),
            numbers::grouped(parameters).into(),
            numbers::grouped(bytes).into(),
        ]
    };
    if summary.by_dtype.is_empty() {
        return Ok(());
    }
    summary.by_dtype.iter().for_each(|(dtype, sum)| columns.measure(&cells(dtype, sum)));
    writeln!(out)?;
    columns.heading(out)?;
    for (dtype, sum) in &summary.by_dtype {
        columns.line(out, &cells(dtype, sum))?;
    }
    Ok(())
}

fn print_groups(out: &mut Printer, terminal: &Terminal, groups: &Groups<'_>) -> io::Result<()> {
    let (shown, rest) = groups.largest(GROUPS);
    let most = shown.iter().map(|group| group.bytes).max().unwrap_or(0);
    if shown.len() < 2 {
        return Ok(());
    }
    let width = terminal.drawing_width();
    let names: Vec<Cow<'_, str>> =
        shown.iter().map(|group| terminal::visible(&group.name)).collect();
    let widest = names.iter().map(|name| terminal::columns(name)).max().unwrap_or(0).min(width / 2);
    let bars = width.saturating_sub(widest + 13).max(10);
    writeln!(out, "\n{}", terminal.paint(Style::Heading, "size by group"))?;
    for (group, name) in shown.iter().zip(&names) {
        let name = terminal::shortened(name, widest, terminal.is_unicode());
        let padding = " ".repeat(widest.saturating_sub(terminal::columns(&name)));
        let bar = chart::bar(terminal, group.bytes, most, bars);
        let size = numbers::bytes(group.bytes);
        writeln!(out, "{name}{padding} {size:>10}  {}", terminal.paint(Style::Bar, &bar))?;
    }
    if groups.len() > shown.len() {
        let others = numbers::grouped((groups.len() - shown.len()) as u64);
        let (tensors, size) =
            (numbers::counted(rest.tensors, "tensor"), numbers::bytes(rest.bytes));
        writeln!(out, "and {others} smaller groups with {tensors}, {size}")?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Json<'m, D, S> {
    file: Cow<'m, str>,
    tensors: u64,
    parameters: u64,
    data_len: u64,
    dtypes: D,
    #[serde(flatten)]
    table: Option<TableJson<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<S>,
}

#[derive(Serialize)]
struct DtypeJson {
    dtype: &'static str,
    #[serde(flatten)]
    sum: Sum,
}

#[derive(Serialize)]
struct TableJson<'m> {
    header_len: u64,
    data_start: u64,
    alignment: u64,
    misaligned_tensors: usize,
    metadata: Option<Pairs<'m>>,
}

#[derive(Serialize)]
struct ShardJson<'m> {
    file: &'m str,
    tensors: usize,
    data_len: u64,
    #[serde(flatten)]
    table: TableJson<'m>,
}

pub(crate) fn print_json(
    out: &mut Printer,
    model: &Model,
    summary: &Summary<'_>,
) -> Result<(), Failure> {
    let dtype = |(dtype, sum): (&&'static str, &Sum)| DtypeJson { dtype, sum: *sum };
    let single = model.files().next().filter(|_| !model.is_indexed());
    let json = Json {
        file: model.path().to_string_lossy(),
        tensors: summary.all.tensors,
        parameters: summary.all.parameters,
        data_len: summary.all.bytes,
        dtypes: List(|| summary.by_dtype.iter().map(dtype)),
        table: single.map(|(_, table)| table_json(&table)),
        shards: model.is_indexed().then_some(List(|| {
            model.files().enumerate().map(|(at, (_, table))| ShardJson {
                file: model.shard_name(at),
                tensors: table.len(),
                data_len: table.data_len(),
                table: table_json(&table),
            })
        })),
    };
    serde_json::to_writer(&mut *out, &json)?;
    Ok(out.write_all(b"\n")?)
}

fn table_json<'m>(table: &Table<'m, '_>) -> TableJson<'m> {
    let alignment = table.alignment();
    TableJson {
        header_len: table.header().len() as u64,
        data_start: table.data_start(),
        alignment: alignment.data_start,
        misaligned_tensors: alignment.misaligned_tensors,
        metadata: table.metadata().map(Pairs),
    }
}
