//! The verb `stats`: what values a tensor has.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use safetensors_zero::{FileTensor, Stats, TensorInfo};

use crate::failure::{Exit, Failure};
use crate::histogram::Histogram;
use crate::input::Model;
use crate::json::{Dimensions, Name};
use crate::numbers;
use crate::output::{Output, Printer};
use crate::picture;
use crate::progress::Progress;
use crate::terminal::{self, Style, Terminal};

/// Summarise values: count, min, max, mean, standard deviation, NaN, inf, zeros, a histogram
///
/// A single tensor gets a full histogram; several get a line each. Without NAMEs all tensors are
/// summarised. Min, max, mean and standard deviation are those of the finite values, in f64. Data are
/// read twice: a histogram needs to know the range. Tensors of C64, which have no order, are told by
/// their count alone.
///
/// `--json` prints one object: {"file", "tensors": [{"name", "dtype", "shape", "count", "finite",
/// "nan", "positive_infinity", "negative_infinity", "zeros", "min", "max", "mean", "std_dev",
/// "histogram": {"low", "high", "counts": [..]} or null}]}. Figures are null where there are none: of
/// tensors without finite values, and of C64; a standard deviation beyond f64 is null too.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// Exact names of tensors
    name: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Bins of the histogram; with 0 there is none, and data are read once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=4096))]
    bins: Option<u16>,
    /// Also draw the histogram of the one tensor that is named, as a PNG file; - is standard output
    #[arg(long, value_name = "OUT")]
    png: Option<PathBuf>,
}

/// Bins unless the user says otherwise: of a full histogram, and of one in a line.
const BINS: u16 = 64;
const LINE_BINS: u16 = 16;
const ROWS: usize = 6;
/// Columns of a name, at least.
const NARROWEST: usize = 16;

/// Bins of a picture.
const PICTURE_BINS: u16 = 120;

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let model = Model::open_lazily(&arguments.file)?;
    let tensors = model.chosen(&arguments.name)?;
    if let Some(path) = &arguments.png {
        draw(arguments, &model, &tensors, path)?;
        if path.as_os_str() == "-" {
            return Ok(Exit::Well);
        }
    }
    let passes = if arguments.bins == Some(0) { 1 } else { 2 };
    let bytes = tensors.iter().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.byte_len()));
    let progress = Progress::new(bytes.saturating_mul(passes));
    let mut out = Printer::new();
    if arguments.json {
        print_json(&mut out, &model, &tensors, arguments, &progress)?;
    } else if let [tensor] = &*tensors {
        print_one(&mut out, terminal, &model.read(tensor)?, arguments, &progress)?;
    } else {
        print_lines(&mut out, terminal, &model, &tensors, arguments, &progress)?;
    }
    out.flush()?;
    if arguments.name.is_empty() {
        model.check_complete()?;
    }
    Ok(Exit::Well)
}

/// A tensor's figures; none for C64.
fn summarise(
    tensor: &FileTensor<'_>,
    bins: u16,
    progress: &Progress,
) -> Result<Option<(Stats, Option<Histogram>)>, Failure> {
    if !tensor.dtype().has_f32() {
        progress.add(tensor.byte_len().saturating_mul(2));
        return Ok(None);
    }
    let stats = tensor.stats_with(&mut progress.of_call())?;
    let histogram = Histogram::of(tensor, &stats, usize::from(bins), progress)?;
    Ok(Some((stats, histogram)))
}

/// A block of lines and the full histogram.
fn print_one(
    out: &mut Printer,
    terminal: &Terminal,
    tensor: &FileTensor<'_>,
    arguments: &Arguments,
    progress: &Progress,
) -> Result<(), Failure> {
    let room = terminal.drawing_width().saturating_sub(20).clamp(10, usize::from(BINS)) as u16;
    let found = summarise(tensor, arguments.bins.unwrap_or(room), progress)?;
    progress.beside(|| -> io::Result<()> {
        let name = terminal::name(&tensor.name());
        let name = terminal.paint(Style::Name, &name);
        writeln!(out, "{name}  {} {}", tensor.dtype(), tensor.shape())?;
        let mut field = |name: &str, text: &str| {
            writeln!(out, "{}{text}", terminal.paint(Style::Heading, &format!("{name:<10}")))
        };
        field("count", &numbers::grouped(tensor.elements()))?;
        let Some((stats, histogram)) = found else {
            return field("values", "complex numbers, which have no order");
        };
        let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        field("min", &figure(stats.min))?;
        field("max", &figure(stats.max))?;
        field("mean", &figure(stats.mean))?;
        field("std dev", &figure(stats.std_dev))?;
        field("NaN", &numbers::grouped(stats.nan))?;
        field("inf", &numbers::grouped(stats.positive_infinity))?;
        field("-inf", &numbers::grouped(stats.negative_infinity))?;
        field("zeros", &numbers::grouped(stats.zeros))?;
        for line in histogram.map_or(Vec::new(), |histogram| histogram.draw(terminal, ROWS)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    })?;
    Ok(())
}

/// How lines are laid out: on a narrow terminal the count is left out, and NaN and infinity are told
/// only where there are any.
struct Layout {
    name: usize,
    dtype: usize,
    bins: u16,
    is_full: bool,
}

impl Layout {
    fn new(terminal: &Terminal, tensors: &[TensorInfo<'_>], bins: Option<u16>) -> Layout {
        let names = tensors.iter().map(|tensor| terminal::columns(&terminal::name(&tensor.name)));
        let name = names.max().unwrap_or(0).max(NARROWEST);
        let dtype = tensors.iter().map(|tensor| tensor.dtype.as_str().len()).max().unwrap_or(0);
        let dtype = dtype.max("dtype".len());
        let mut layout = Layout { name, dtype, bins: bins.unwrap_or(LINE_BINS), is_full: true };
        let Some(width) = terminal.width() else { return layout };
        // Names up to half of the terminal are worth more than what else the wide layout shows.
        layout.is_full = width >= layout.width_of_figures() + name.min(width / 2);
        let room = width.saturating_sub(layout.width_of_figures());
        if room < NARROWEST && bins.is_none() {
            layout.bins = LINE_BINS.saturating_sub((NARROWEST - room) as u16).max(4);
        }
        layout.name = name.min(room.max(NARROWEST));
        layout
    }

    /// Columns that everything but the name takes.
    fn width_of_figures(&self) -> usize {
        let more = if self.is_full { 15 + 8 + 8 } else { 0 };
        2 + self.dtype + 4 * 11 + more + 10 + 2 + usize::from(self.bins)
    }

    fn heading(&self) -> String {
        let Layout { name, dtype, .. } = *self;
        let (count, odd) = if self.is_full {
            (format!(" {:>14}", "count"), format!(" {:>7} {:>7}", "NaN", "inf"))
        } else {
            (String::new(), String::new())
        };
        format!(
            "{:name$}  {:dtype$}{count} {:>10} {:>10} {:>10} {:>10}{odd} {:>9}  histogram",
            "name", "dtype", "min", "max", "mean", "std dev", "zeros"
        )
    }

    /// What stands after the dtype.
    fn figures(
        &self,
        terminal: &Terminal,
        tensor: &TensorInfo<'_>,
        found: Option<(Stats, Option<Histogram>)>,
    ) -> String {
        let count =
            if self.is_full { format!(" {:>14}", tensor.elements()) } else { String::new() };
        let Some((stats, histogram)) = found else {
            return format!("{count} complex numbers, which have no order");
        };
        let infinite = stats.positive_infinity + stats.negative_infinity;
        let mut notes = Vec::new();
        let mut odd = String::new();
        if self.is_full {
            odd = format!(" {:>7} {infinite:>7}", stats.nan);
        } else {
            notes.extend((stats.nan > 0).then(|| format!("{} NaN", stats.nan)));
            notes.extend((infinite > 0).then(|| format!("{infinite} inf")));
        }
        let [min, max, mean, std_dev] = [stats.min, stats.max, stats.mean, stats.std_dev]
            .map(|value| value.map_or("-".to_owned(), numbers::short));
        let drawn = histogram.map_or(String::new(), |histogram| histogram.line(terminal));
        let drawn = terminal.paint(Style::Bar, drawn.trim_end());
        let notes = notes.join(", ");
        let notes = terminal.paint(Style::Bad, &notes);
        let line = format!(
            "{count} {min:>10} {max:>10} {mean:>10} {std_dev:>10}{odd} {:>9}  {drawn} {notes}",
            stats.zeros
        );
        line.trim_end().to_owned()
    }
}

/// A line for each tensor, with a small histogram. Each is printed when it is known.
fn print_lines(
    out: &mut Printer,
    terminal: &Terminal,
    model: &Model,
    tensors: &[TensorInfo<'_>],
    arguments: &Arguments,
    progress: &Progress,
) -> Result<(), Failure> {
    let layout = Layout::new(terminal, tensors, arguments.bins);
    writeln!(out, "{}", terminal.paint(Style::Heading, &layout.heading()))?;
    for tensor in tensors {
        let found = summarise(&model.read(tensor)?, layout.bins, progress)?;
        progress.beside(|| -> io::Result<()> {
            let name = terminal::name(&tensor.name);
            let name = terminal::shortened(&name, layout.name, terminal.is_unicode());
            let padding = " ".repeat(layout.name.saturating_sub(terminal::columns(&name)));
            let name = terminal.paint(Style::Name, &name);
            let (width, figures) = (layout.dtype, layout.figures(terminal, tensor, found));
            writeln!(out, "{name}{padding}  {:width$}{figures}", tensor.dtype.as_str())?;
            if terminal.width().is_some() {
                out.flush()?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn draw(
    arguments: &Arguments,
    model: &Model,
    tensors: &[TensorInfo<'_>],
    path: &std::path::Path,
) -> Result<(), Failure> {
    let [tensor] = tensors else {
        return Err(Failure::usage(model.path(), "--png draws one tensor; name one"));
    };
    let tensor = &model.read(tensor)?;
    let progress = Progress::new(tensor.byte_len().saturating_mul(2));
    let bins = arguments.bins.filter(|bins| *bins > 0).unwrap_or(PICTURE_BINS);
    let Some((_, Some(histogram))) = summarise(tensor, bins, &progress)? else {
        let name = terminal::name(&tensor.name()).into_owned();
        let sentence = format!("tensor \"{name}\": it has no finite values to be drawn");
        return Err(Failure::absent(tensor.path(), sentence));
    };
    let mut out = Output::create(path, &[tensor.path()])?;
    out.put(&picture::histogram(&histogram).encode(path)?)?;
    out.finish()
}

#[derive(Serialize)]
struct TensorJson<'m> {
    name: Name<'m>,
    dtype: &'static str,
    shape: Dimensions<'m>,
    count: u64,
    finite: Option<u64>,
    nan: Option<u64>,
    positive_infinity: Option<u64>,
    negative_infinity: Option<u64>,
    zeros: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    std_dev: Option<f64>,
    histogram: Option<HistogramJson>,
}

#[derive(Serialize)]
struct HistogramJson {
    low: f64,
    high: f64,
    counts: Vec<u64>,
}

/// One tensor after another, so that memory stays small and a reader sees the first at once.
fn print_json(
    out: &mut Printer,
    model: &Model,
    tensors: &[TensorInfo<'_>],
    arguments: &Arguments,
    progress: &Progress,
) -> Result<(), Failure> {
    out.write_all(b"{\"file\":")?;
    serde_json::to_writer(&mut *out, &model.path().to_string_lossy())?;
    out.write_all(b",\"tensors\":[")?;
    for (at, tensor) in tensors.iter().enumerate() {
        let found = summarise(&model.read(tensor)?, arguments.bins.unwrap_or(BINS), progress)?;
        let (stats, histogram) = found.map_or((None, None), |(stats, bins)| (Some(stats), bins));
        let line = TensorJson {
            name: Name(tensor.name),
            dtype: tensor.dtype.as_str(),
            shape: Dimensions(tensor.shape),
            count: tensor.elements(),
            finite: stats.map(|stats| stats.finite),
            nan: stats.map(|stats| stats.nan),
            positive_infinity: stats.map(|stats| stats.positive_infinity),
            negative_infinity: stats.map(|stats| stats.negative_infinity),
            zeros: stats.map(|stats| stats.zeros),
            min: stats.and_then(|stats| stats.min),
            max: stats.and_then(|stats| stats.max),
            mean: stats.and_then(|stats| stats.mean),
            std_dev: stats.and_then(|stats| stats.std_dev),
            histogram: histogram.map(|Histogram { low, high, counts }| HistogramJson {
                low,
                high,
                counts,
            }),
        };
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &line)?;
    }
    Ok(out.write_all(b"\n]}\n")?)
}
