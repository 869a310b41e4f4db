//! The verb `diff`: in what two models differ.

mod compare;

use std::cmp::Ordering;
use std::io::Write as _;
use std::path::PathBuf;

use safetensors_zero::TensorInfo;

use crate::files::failure::{Exit, Failure};
use crate::files::input::Model;
use crate::files::printer::Printer;
use crate::show::diff::{self, Change, Tally};
use crate::show::numbers;
use crate::show::progress::Progress;
use crate::show::terminal::Terminal;

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
            progress.beside(|| diff::print(&mut out, terminal, &change))?;
        }
    }
    if arguments.json {
        diff::print_json(&mut out, (&model_a, &model_b), &tally, &changes)?;
    } else {
        let Tally { equal, added, removed, changed } = tally;
        let tensors = numbers::counted(equal, "equal tensor");
        writeln!(out, "{tensors}, {added} added, {removed} removed, {changed} changed")?;
    }
    out.flush()?;
    Ok(if tally.is_same() { Exit::Well } else { Exit::Invalid })
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
