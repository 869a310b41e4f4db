//! The output of `diff`: how two models differ.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use safetensors_zero::TensorInfo;

use crate::files::failure::Failure;
use crate::files::input::Model;
use crate::files::printer::Printer;
use crate::show::json::{Dimensions, Name};
use crate::show::numbers;
use crate::show::terminal::{self, Style, Terminal};

/// How the values of two tensors differ.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Difference {
    /// The number of elements whose values differ. `None` if values were not compared.
    pub(crate) differing: Option<u64>,
    /// The largest difference between finite values that differ.
    pub(crate) max_abs: Option<f64>,
    /// The largest difference relative to the larger absolute value of the two.
    pub(crate) max_rel: Option<f64>,
}

/// A difference between two models.
pub(crate) enum Change<'m> {
    Added(TensorInfo<'m>),
    Removed(TensorInfo<'m>),
    Changed(TensorInfo<'m>, TensorInfo<'m>, Difference),
}

/// Counts of tensors.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) equal: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    pub(crate) changed: u64,
}

impl Tally {
    pub(crate) fn is_same(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

impl Difference {
    /// Describes the difference in phrases.
    fn phrases(&self, elements: u64) -> Vec<String> {
        let mut phrases = Vec::new();
        match self.differing {
            None => {}
            Some(0) => phrases.push("equal values".to_owned()),
            Some(count) => {
                let of = numbers::grouped(elements);
                phrases.push(format!("{} of {of} values differ", numbers::grouped(count)));
            }
        }
        if let Some(most) = self.max_abs {
            phrases.push(format!("by at most {}", numbers::short(most)));
        }
        if let Some(most) = self.max_rel {
            phrases.push(format!("relative {}", numbers::short(most)));
        }
        phrases
    }
}

pub(crate) fn print(out: &mut Printer, terminal: &Terminal, change: &Change<'_>) -> io::Result<()> {
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
    let mut phrases = Vec::new();
    if a.dtype != b.dtype {
        phrases.push(format!("{} -> {}", a.dtype, b.dtype));
    }
    if a.shape != b.shape {
        phrases.push(format!("{} -> {}", a.shape, b.shape));
    }
    phrases.extend(difference.phrases(a.elements()));
    writeln!(out, "{line}  {}", phrases.join(", "))
}

#[derive(Serialize)]
struct Json<'m> {
    a: Cow<'m, str>,
    b: Cow<'m, str>,
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

pub(crate) fn print_json(
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
