//! The verb `diff`: in what two models differ.

mod compare;

use std::cmp::Ordering;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use safetensors_zero::TensorInfo;

use crate::failure::{Exit, Failure};
use crate::input::Model;
use crate::json::{Dimensions, Name};
use crate::numbers;
use crate::output::Printer;
use crate::progress::Progress;
use crate::terminal::{self, Style, Terminal};

use compare::Difference;

/// Compare two models: tensors added, removed, of another dtype or shape, of other values
///
/// Values are compared as f64, to which every dtype is widened, so that a model can be compared with
/// its conversion. The relative difference is the difference by the larger of the two sizes; NaN is
/// equal to NaN, and to nothing else. Order, padding, metadata and shards are not compared.
///
/// Exit code 1 if the models differ: also where only bytes do, as in 0 and -0.
///
/// `--json` prints one object: {"a", "b", "same", "equal": n, "added": [{"name", "dtype", "shape"}],
/// "removed": [..], "changed": [{"name", "dtype": [a, b], "shape": [a, b], "elements", "differing",
/// "max_abs", "max_rel"}]}. "differing" counts elements whose values differ; it is null where shapes
/// differ and nothing is compared, and for C64. "max_abs" and "max_rel" are those of finite values, or
/// null.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The one model
    a: PathBuf,
    /// The other
    b: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is said of one name.
enum Change<'m> {
    Added(TensorInfo<'m>),
    Removed(TensorInfo<'m>),
    Changed(TensorInfo<'m>, TensorInfo<'m>, Difference),
}

#[derive(Debug, Default)]
struct Tally {
    equal: u64,
    added: u64,
    removed: u64,
    changed: u64,
}

pub(crate) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Failure> {
    let (model_a, model_b) = (Model::open(&arguments.a)?, Model::open(&arguments.b)?);
    let (a, b) = (sorted(&model_a)?, sorted(&model_b)?);
    let bytes = |tensors: &[TensorInfo<'_>]| {
        tensors.iter().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.byte_len()))
    };
    let progress = Progress::new(bytes(&a).saturating_add(bytes(&b)));
    let mut out = Printer::of_verdict();
    let mut tally = Tally::default();
    let mut changes = Vec::new();
    let pairs = Pairs { a: a.into_iter().peekable(), b: b.into_iter().peekable() };
    for (a, b) in pairs {
        let Some(change) = change((&model_a, a), (&model_b, b), &progress)? else {
            tally.equal += 1;
            continue;
        };
        match &change {
            Change::Added(_) => tally.added += 1,
            Change::Removed(_) => tally.removed += 1,
            Change::Changed(..) => tally.changed += 1,
        }
        if arguments.json {
            changes.push(change);
        } else {
            progress.beside(|| print(&mut out, terminal, &change))?;
        }
    }
    if arguments.json {
        print_json(&mut out, (&model_a, &model_b), &tally, &changes)?;
    } else {
        let Tally { equal, added, removed, changed } = tally;
        let tensors = numbers::counted(equal, "equal tensor");
        writeln!(out, "{tensors}, {added} added, {removed} removed, {changed} changed")?;
    }
    out.flush()?;
    Ok(if tally.is_same() { Exit::Well } else { Exit::Invalid })
}

impl Tally {
    fn is_same(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

fn sorted(model: &Model) -> Result<Vec<TensorInfo<'_>>, Failure> {
    let mut tensors = model.chosen(&[])?;
    model.check_complete()?;
    tensors.sort_by_cached_key(|info| info.name.to_cow());
    Ok(tensors)
}

/// Merges two sorted lists: the tensors of one name together.
struct Pairs<I: Iterator> {
    a: std::iter::Peekable<I>,
    b: std::iter::Peekable<I>,
}

impl<'m, I: Iterator<Item = TensorInfo<'m>>> Iterator for Pairs<I> {
    type Item = (Option<TensorInfo<'m>>, Option<TensorInfo<'m>>);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.a.peek(), self.b.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.name.cmp(&b.name),
        };
        let a = if order.is_le() { self.a.next() } else { None };
        let b = if order.is_ge() { self.b.next() } else { None };
        Some((a, b))
    }
}

/// What is to be said of a pair, if anything.
fn change<'m>(
    (model_a, a): (&Model, Option<TensorInfo<'m>>),
    (model_b, b): (&Model, Option<TensorInfo<'m>>),
    progress: &Progress,
) -> Result<Option<Change<'m>>, Failure> {
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (None, Some(b)) => return Ok(Some(Change::Added(b))),
        (Some(a), None) => return Ok(Some(Change::Removed(a))),
        (None, None) => return Ok(None),
    };
    let difference = compare::compare(&model_a.read(&a)?, &model_b.read(&b)?, progress)?;
    Ok(difference.map(|difference| Change::Changed(a, b, difference)))
}

fn print(out: &mut Printer, terminal: &Terminal, change: &Change<'_>) -> io::Result<()> {
    let (style, sign, tensor) = match change {
        Change::Added(tensor) => (Style::Good, "+", tensor),
        Change::Removed(tensor) => (Style::Bad, "-", tensor),
        Change::Changed(tensor, ..) => (Style::Name, "~", tensor),
    };
    let name = terminal::name(&tensor.name);
    let name = match terminal.width() {
        Some(width) => terminal::shortened(&name, width.saturating_sub(2), terminal.is_unicode()),
        None => name,
    };
    let line = format!("{sign} {name}");
    let line = terminal.paint(style, &line);
    let Change::Changed(a, b, difference) = change else {
        return writeln!(out, "{line}  {} {}", tensor.dtype, tensor.shape);
    };
    let mut said = Vec::new();
    if a.dtype != b.dtype {
        said.push(format!("{} -> {}", a.dtype, b.dtype));
    }
    if a.shape != b.shape {
        said.push(format!("{} -> {}", a.shape, b.shape));
    }
    said.extend(difference.in_words(a.elements()));
    writeln!(out, "{line}  {}", said.join(", "))
}

#[derive(Serialize)]
struct Json<'m> {
    a: std::borrow::Cow<'m, str>,
    b: std::borrow::Cow<'m, str>,
    same: bool,
    equal: u64,
    added: Vec<OneJson<'m>>,
    removed: Vec<OneJson<'m>>,
    changed: Vec<ChangedJson<'m>>,
}

#[derive(Serialize)]
struct OneJson<'m> {
    name: Name<'m>,
    dtype: &'static str,
    shape: Dimensions<'m>,
}

#[derive(Serialize)]
struct ChangedJson<'m> {
    name: Name<'m>,
    dtype: [&'static str; 2],
    shape: [Dimensions<'m>; 2],
    elements: u64,
    differing: Option<u64>,
    max_abs: Option<f64>,
    max_rel: Option<f64>,
}

fn print_json(
    out: &mut Printer,
    (a, b): (&Model, &Model),
    tally: &Tally,
    changes: &[Change<'_>],
) -> Result<(), Failure> {
    let mut json = Json {
        a: a.path().to_string_lossy(),
        b: b.path().to_string_lossy(),
        same: tally.is_same(),
        equal: tally.equal,
        added: Vec::new(),
        removed: Vec::new(),
        changed: Vec::new(),
    };
    for change in changes {
        match change {
            Change::Added(tensor) => json.added.push(one_json(tensor)),
            Change::Removed(tensor) => json.removed.push(one_json(tensor)),
            Change::Changed(a, b, difference) => json.changed.push(ChangedJson {
                name: Name(a.name),
                dtype: [a.dtype.as_str(), b.dtype.as_str()],
                shape: [Dimensions(a.shape), Dimensions(b.shape)],
                elements: a.elements(),
                differing: difference.differing,
                max_abs: difference.max_abs,
                max_rel: difference.max_rel,
            }),
        }
    }
    serde_json::to_writer(&mut *out, &json)?;
    Ok(out.write_all(b"\n")?)
}

fn one_json<'m>(tensor: &TensorInfo<'m>) -> OneJson<'m> {
    OneJson {
        name: Name(tensor.name),
        dtype: tensor.dtype.as_str(),
        shape: Dimensions(tensor.shape),
    }
}
