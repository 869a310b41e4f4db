//! The verb `stats`: summarises the values of tensors.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use safetensors_zero::{FileTensor, TensorInfo};

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::output::Output;
use crate::files::printer::Printer;
use crate::show::histogram::Histogram;
use crate::show::picture;
use crate::show::progress::Progress;
use crate::show::stats::{self, Figures, Layout};
use crate::show::terminal::{self, Terminal};

/// Summarise values: count, min, max, mean, standard deviation, NaN, inf, zeros, a histogram
///
/// A single tensor gets a full histogram; several get a line each. Without NAMEs, all tensors are
/// summarised. Min, max, mean and standard deviation are those of the finite values, in f64.
///
/// Data is read twice, since a histogram needs the range first. For C64, whose values have no
/// order, only the count is shown.
///
/// `--json` prints one object: {"file", "tensors": [{"name", "dtype", "shape", "count", "finite",
/// "nan", "positive_infinity", "negative_infinity", "zeros", "min", "max", "mean", "std_dev",
/// "histogram": {"low", "high", "counts": [..]} or null}]}. Figures that do not exist are null: for
/// tensors without finite values, for C64, and for a standard deviation that overflows f64.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// Exact names of the tensors
    name: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Number of bins in the histogram; 0 for no histogram, and then data is read only once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=4096))]
    bins: Option<u16>,
    /// Also draw the histogram of the one named tensor as a PNG file; - is stdout
    #[arg(long, value_name = "OUT")]
    png: Option<PathBuf>,
}

/// The number of bins in a picture.
const PICTURE_BINS: u16 = 120;

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let model = Model::open_lazily(&arguments.file)?;
    let tensors = model.chosen(&arguments.name)?;
    if let Some(path) = &arguments.png {
        draw(arguments, &model, &tensors, path)?;
        if path.as_os_str() == "-" {
            return Ok(Exit::Success);
        }
    }
    let passes = if arguments.bins == Some(0) { 1 } else { 2 };
    let bytes = tensors.iter().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.byte_len()));
    let progress = Progress::new(bytes.saturating_mul(passes));
    let mut out = Printer::new();
    if arguments.json {
        print_json(&mut out, &model, &tensors, arguments, &progress)?;
    } else if let [tensor] = &*tensors {
        let bins = arguments.bins.unwrap_or_else(|| stats::bins_that_fit(terminal));
        let found = summarise(&model.read(tensor)?, bins, &progress)?;
        progress.suspend(|| stats::print_one(&mut out, terminal, tensor, found))?;
    } else {
        print_lines(&mut out, terminal, &model, &tensors, arguments, &progress)?;
    }
    out.flush()?;
    if arguments.name.is_empty() {
        model.check_complete()?;
    }
    Ok(Exit::Success)
}

/// Reads a tensor's figures. `None` for C64.
fn summarise(
    tensor: &FileTensor<'_>,
    bins: u16,
    progress: &Progress,
) -> Result<Option<Figures>, Failure> {
    if !tensor.dtype().has_f32() {
        progress.add(tensor.byte_len().saturating_mul(2));
        return Ok(None);
    }
    let stats = tensor.stats_with(&mut progress.for_call())?;
    let histogram = Histogram::of(tensor, &stats, usize::from(bins), progress)?;
    Ok(Some(Figures { stats, histogram }))
}

/// Prints a line for each tensor as soon as it is known.
fn print_lines(
    out: &mut Printer,
    terminal: &Terminal,
    model: &Model,
    tensors: &[TensorInfo<'_>],
    arguments: &Arguments,
    progress: &Progress,
) -> Result<(), Failure> {
    let layout = Layout::new(terminal, tensors, arguments.bins);
    layout.print_heading(out, terminal)?;
    for tensor in tensors {
        let found = summarise(&model.read(tensor)?, layout.bins(), progress)?;
        progress.suspend(|| layout.print_line(out, terminal, tensor, found))?;
    }
    Ok(())
}

/// Prints the tensors one by one, so that memory stays small and a reader sees the first at once.
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
        let bins = arguments.bins.unwrap_or(stats::BINS);
        let found = summarise(&model.read(tensor)?, bins, progress)?;
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        stats::print_json(out, tensor, found)?;
    }
    Ok(out.write_all(b"\n]}\n")?)
}

fn draw(
    arguments: &Arguments,
    model: &Model,
    tensors: &[TensorInfo<'_>],
    path: &Path,
) -> Result<(), Failure> {
    let [tensor] = tensors else {
        return Err(Failure::usage(model.path(), "--png needs the name of one tensor"));
    };
    let tensor = &model.read(tensor)?;
    let progress = Progress::new(tensor.byte_len().saturating_mul(2));
    let bins = arguments.bins.filter(|bins| *bins > 0).unwrap_or(PICTURE_BINS);
    let Some(Figures { histogram: Some(histogram), .. }) = summarise(tensor, bins, &progress)?
    else {
        let name = terminal::name(&tensor.name()).into_owned();
        let sentence = format!("tensor \"{name}\": it has no finite values to draw");
        return Err(Failure::invalid(tensor.path(), sentence));
    };
    let mut out = Output::create(path, model)?;
    out.put(&picture::histogram(&histogram).encode(path)?)?;
    out.finish()
}
