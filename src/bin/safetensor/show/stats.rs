//! The output of `stats`: a block or a line for each tensor, or JSON.

use std::io::{self, Write};

use serde::Serialize;

use safetensors_zero::{Stats, TensorInfo};

use crate::files::failure::Failure;
use crate::files::printer::Printer;
use crate::show::histogram::Histogram;
use crate::show::json::{Dimensions, Name};
use crate::show::numbers;
use crate::show::terminal::{self, Style, Terminal};

/// The figures of a tensor, of any dtype but C64.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) stats: Stats,
    pub(crate) histogram: Option<Histogram>,
}

/// The number of bins in a full histogram.
pub(crate) const BINS: u16 = 64;
/// The number of bins in a histogram of one line.
const LINE_BINS: u16 = 16;
/// The number of lines of a full histogram.
const ROWS: usize = 6;
/// The least number of columns for a name.
const NARROWEST: usize = 16;

/// The number of bins in a full histogram that fits the terminal.
pub(crate) fn bins_that_fit(terminal: &Terminal) -> u16 {
    terminal.drawing_width().saturating_sub(20).clamp(10, usize::from(BINS)) as u16
}

/// Prints a block of lines and the full histogram.
pub(crate) fn print_one(
    out: &mut Printer,
    terminal: &Terminal,
    tensor: &TensorInfo<'_>,
    found: Option<Figures>,
) -> io::Result<()> {
    let name = terminal::name(&tensor.name);
    let name = terminal.paint(Style::Name, &name);
    writeln!(out, "{name}  {} {}", tensor.dtype, tensor.shape)?;
    let mut field = |name: &str, text: &str| {
        writeln!(out, "{}{text}", terminal.paint(Style::Heading, &format!("{name:<10}")))
    };
    field("count", &numbers::grouped(tensor.elements()))?;
    let Some(Figures { stats, histogram }) = found else {
        return field("values", "complex numbers have no order");
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
}

/// The layout of lines. On a narrow terminal the count is left out, and NaN and infinity are
/// mentioned only if there are any.
pub(crate) struct Layout {
    name: usize,
    dtype: usize,
    bins: u16,
    is_full: bool,
}

impl Layout {
    pub(crate) fn new(
        terminal: &Terminal,
        tensors: &[TensorInfo<'_>],
        bins: Option<u16>,
    ) -> Layout {
        let names = tensors.iter().map(|tensor| terminal::columns(&terminal::name(&tensor.name)));
        let name = names.max().unwrap_or(0).max(NARROWEST);
        let dtype = tensors.iter().map(|tensor| tensor.dtype.as_str().len()).max().unwrap_or(0);
        let dtype = dtype.max("dtype".len());
        let mut layout = Layout { name, dtype, bins: bins.unwrap_or(LINE_BINS), is_full: true };
        let Some(width) = terminal.width() else { return layout };
        // Names up to half the width of the terminal matter more than the columns of the wide
        // layout.
        layout.is_full = width >= layout.width_of_figures() + name.min(width / 2);
        let room = width.saturating_sub(layout.width_of_figures());
        if room < NARROWEST && bins.is_none() {
            layout.bins = LINE_BINS.saturating_sub((NARROWEST - room) as u16).max(4);
        }
        layout.name = name.min(room.max(NARROWEST));
        layout
    }

    /// Returns the width of everything but the name.
    fn width_of_figures(&self) -> usize {
        let more = if self.is_full { 15 + 8 + 8 } else { 0 };
        2 + self.dtype + 4 * 11 + more + 10 + 2 + usize::from(self.bins)
    }

    pub(crate) fn bins(&self) -> u16 {
        self.bins
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

    /// Returns what follows the dtype in a line.
    fn figures(
        &self,
        terminal: &Terminal,
        tensor: &TensorInfo<'_>,
        found: Option<Figures>,
    ) -> String {
        let count =
            if self.is_full { format!(" {:>14}", tensor.elements()) } else { String::new() };
        let Some(Figures { stats, histogram }) = found else {
            return format!("{count} complex numbers have no order");
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

    /// Prints the headings.
    pub(crate) fn print_heading(&self, out: &mut Printer, terminal: &Terminal) -> io::Result<()> {
        writeln!(out, "{}", terminal.paint(Style::Heading, &self.heading()))
    }

    /// Prints the line of a tensor, with a small histogram.
    pub(crate) fn print_line(
        &self,
        out: &mut Printer,
        terminal: &Terminal,
        tensor: &TensorInfo<'_>,
        found: Option<Figures>,
    ) -> io::Result<()> {
        let name = terminal::name(&tensor.name);
        let name = terminal::shortened(&name, self.name, terminal.is_unicode());
        let padding = " ".repeat(self.name.saturating_sub(terminal::columns(&name)));
        let name = terminal.paint(Style::Name, &name);
        let (width, figures) = (self.dtype, self.figures(terminal, tensor, found));
        writeln!(out, "{name}{padding}  {:width$}{figures}", tensor.dtype.as_str())?;
        if terminal.width().is_some() {
            out.flush()?;
        }
        Ok(())
    }
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

/// Prints the object of a tensor.
pub(crate) fn print_json(
    out: &mut Printer,
    tensor: &TensorInfo<'_>,
    found: Option<Figures>,
) -> Result<(), Failure> {
    let (stats, histogram) = match found {
        Some(Figures { stats, histogram }) => (Some(stats), histogram),
        None => (None, None),
    };
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
    Ok(serde_json::to_writer(out, &line)?)
}
