//! The verb `diff`: compares two models.

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

/// Compare two models: added and removed tensors, and changes of dtype, shape or values
///
/// Values of every dtype are compared as f64, so a model can be compared with its conversion to
/// another dtype. The relative difference is the difference divided by the larger absolute value.
/// NaN equals only NaN. Order, padding, metadata and sharding are not compared.
///
/// The exit code is 1 if the models differ, even if only in bytes, as 0 and -0 do.
///
/// `--json` prints one object: {"a", "b", "same", "equal": n, "added": [{"name", "dtype",
/// "shape"}], "removed": [..], "changed": [{"name", "dtype": [a, b], "shape": [a, b], "elements",
/// "differing", "max_abs", "max_rel"}]}. "differing" is the number of elements whose values differ;
/// it is null if the shapes differ, and for C64. "max_abs" and "max_rel" are the largest
/// differences between finite values, or null.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The first model
    a: PathBuf,
    /// The second model
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
    let mut out = Printer::for_verdict();
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
            progress.suspend(|| diff::print(&mut out, terminal, &change))?;
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
    Ok(if tally.is_same() { Exit::Success } else { Exit::Invalid })
}

fn sorted(model: &Model) -> Result<Vec<TensorInfo<'_>>, Failure> {
    let mut tensors = model.chosen(&[])?;
    model.check_complete()?;
    tensors.sort_by_cached_key(|info| info.name.to_cow());
    Ok(tensors)
}

/// Merges two sorted lists, and pairs the tensors with the same name.
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

/// Compares a pair. Returns `None` if the tensors are equal.
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
