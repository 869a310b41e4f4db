//! The verb `export`: writes a tensor, or a part of one, to a file.

use std::ops::Range;
use std::path::PathBuf;

use safetensors_zero::{Dtype, FileTensor};

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::npy;
use crate::files::output::Output;
use crate::files::values;
use crate::show::heatmap::HeatMap;
use crate::show::progress::Progress;

/// Write a tensor, or a part of it, to a file: as f32, as a NumPy file, or as stored bytes
///
/// OUT is replaced as a whole or not at all: a temporary file is written next to it and then
/// renamed.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("outputs").required(true).multiple(true))]
pub(crate) struct Arguments {
    /// A safetensors file, a shard index, or a folder that holds either
    file: PathBuf,
    /// The exact name of the tensor
    name: String,
    /// The file to write; - is stdout
    #[arg(short, long, value_name = "OUT", group = "outputs")]
    output: Option<PathBuf>,
    /// Write only elements A to B - 1 of the flattened tensor; A or B can be left out
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with = "rows")]
    range: Option<Span>,
    /// Write only rows A to B - 1, along the first dimension; A or B can be left out
    #[arg(long, value_name = "A..B", value_parser = range)]
    rows: Option<Span>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::F32)]
    format: Format,
    /// Draw a heat map as a PNG file: the tensor as a matrix whose columns are the last dimension,
    /// red above zero, blue below, pink for NaN and infinity. A large matrix is drawn as the means
    /// of blocks. The colour scale ends at the largest mean, leaving out the outermost 0.5 %
    #[arg(long, value_name = "OUT", group = "outputs")]
    png: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Each element as a little-endian f32, without a header
    F32,
    /// A NumPy file, in the tensor's own type if NumPy has it, else in f32
    Npy,
    /// The stored bytes
    Raw,
}

/// A range whose ends can be left out.
type Span = (Option<u64>, Option<u64>);

fn range(text: &str) -> Result<Span, String> {
    let (begin, end) = text.split_once("..").ok_or("expected A..B")?;
    let number = |text: &str| match text {
        "" => Ok(None),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map(Some).map_err(|_| format!("{text} does not fit in 64 bits"))
        }
        _ => Err(format!("{text:?} is not a natural number")),
    };
    Ok((number(begin)?, number(end)?))
}

/// The elements to write, and the shape of the array that they form.
struct Part {
    elements: Range<u64>,
    shape: Vec<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let model = Model::open_lazily(&arguments.file)?;
    let tensor = model.tensor(&arguments.name)?;
    let part = part(arguments, &tensor)?;
    if let (Some(output), true) = (&arguments.output, arguments.output == arguments.png) {
        return Err(Failure::usage(output, "-o and --png name the same file"));
    }
    if let Some(path) = &arguments.output {
        // Errors of conversion come before a file is created.
        if needs_f32(arguments.format, tensor.dtype()) && !tensor.dtype().has_f32() {
            return Err(no_f32(&tensor));
        }
        if arguments.format == Format::Raw {
            check_whole_bytes(&tensor, &part.elements)?;
        }
        let mut out = Output::create(path, &model)?;
        write(&mut out, &tensor, &part, arguments.format)?;
        out.finish()?;
    }
    if let Some(path) = &arguments.png {
        let map = HeatMap::of(&tensor, &part.elements, &part.shape)?;
        let mut out = Output::create(path, &model)?;
        out.put(&map.picture().encode(path)?)?;
        out.finish()?;
    }
    Ok(Exit::Success)
}

fn needs_f32(format: Format, dtype: Dtype) -> bool {
    match format {
        Format::F32 => true,
        Format::Npy => !npy::is_own(dtype),
        Format::Raw => false,
    }
}

fn no_f32(tensor: &FileTensor<'_>) -> Failure {
    let sentence = format!(
        "tensor {:?}: {} has no value as f32; use --format npy or --format raw",
        tensor.name(),
        tensor.dtype()
    );
    Failure::invalid(tensor.path(), sentence)
}

/// Returns the part that the user asked for, or an error if the tensor does not have it.
fn part(arguments: &Arguments, tensor: &FileTensor<'_>) -> Result<Part, Failure> {
    let shape: Vec<u64> = tensor.shape().iter().collect();
    let all = tensor.elements();
    if let Some(span) = arguments.range {
        let elements = within(tensor, span, all, "elements")?;
        let shape = vec![elements.end - elements.start];
        return Ok(Part { elements, shape });
    }
    let Some(span) = arguments.rows else { return Ok(Part { elements: 0..all, shape }) };
    let row = tensor.row_len()?;
    let rows = within(tensor, span, shape.first().copied().unwrap_or(0), "rows")?;
    let mut shape = shape;
    if let Some(first) = shape.first_mut() {
        *first = rows.end - rows.start;
    }
    Ok(Part { elements: rows.start.saturating_mul(row)..rows.end.saturating_mul(row), shape })
}

fn within(
    tensor: &FileTensor<'_>,
    (begin, end): Span,
    len: u64,
    what: &str,
) -> Result<Range<u64>, Failure> {
    let (begin, end) = (begin.unwrap_or(0), end.unwrap_or(len));
    if begin <= end && end <= len {
        return Ok(begin..end);
    }
    let sentence = format!(
        "tensor {:?}: {what} {begin}..{end} are out of range; it has {len} {what}",
        tensor.name()
    );
    Err(Failure::invalid(tensor.path(), sentence))
}

/// Returns an error if a range of elements begins or ends inside a byte.
fn check_whole_bytes(tensor: &FileTensor<'_>, elements: &Range<u64>) -> Result<(), Failure> {
    let bits = tensor.dtype().bitsize() as u128;
    let is_whole = |element: u64| (u128::from(element) * bits) % 8 == 0;
    if is_whole(elements.start) && is_whole(elements.end) {
        return Ok(());
    }
    let Range { start, end } = elements;
    let sentence = format!(
        "tensor {:?}: elements {start}..{end} of {} begin or end inside a byte",
        tensor.name(),
        tensor.dtype()
    );
    Err(Failure::invalid(tensor.path(), sentence))
}

fn write(
    out: &mut Output,
    tensor: &FileTensor<'_>,
    part: &Part,
    format: Format,
) -> Result<(), Failure> {
    let dtype = tensor.dtype();
    if format == Format::Npy {
        out.put(&npy::header(npy::descr(dtype), &part.shape))?;
    }
    let widened = needs_f32(format, dtype);
    let bytes = values::byte_range(dtype, &part.elements);
    let progress = Progress::new(bytes.end - bytes.start);
    let (mut stored, mut singles) = (Vec::new(), Vec::new());
    progress.for_each_piece(part.elements.clone(), &[dtype], |piece| {
        if widened {
            singles.resize(usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX), 0.0);
            tensor.dequant_range(piece.start, &mut singles)?;
            stored.clear();
            stored.extend(singles.iter().flat_map(|single| single.to_le_bytes()));
        } else {
            values::read_into(tensor, values::byte_range(dtype, &piece), &mut stored)?;
        }
        if dtype == Dtype::BOOL && format == Format::Npy {
            // NumPy requires 0 or 1; the format allows any byte.
            stored.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        out.put(&stored)
    })
}
