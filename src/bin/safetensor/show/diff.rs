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

/// In what two tensors differ, besides dtype and shape.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Difference {
    /// Elements whose values differ. `None` if they were not compared.
    pub(crate) differing: Option<u64>,
    /// The largest difference between finite values that differ.
    pub(crate) max_abs: Option<f64>,
    /// The largest difference by the larger size of the two.
    pub(crate) max_rel: Option<f64>,
}

/// What is said of one name.
pub(crate) enum Change<'m> {
    Added(TensorInfo<'m>),
    Removed(TensorInfo<'m>),
    Changed(TensorInfo<'m>, TensorInfo<'m>, Difference),
}

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
    /// What is said of it, besides dtype and shape.
    fn in_words(&self, elements: u64) -> Vec<String> {
        let mut said = Vec::new();
        match self.differing {
            None => {}
            Some(0) => said.push("equal values".to_owned()),
            Some(count) => {
                let of = numbers::grouped(elements);
                said.push(format!("{} of {of} values differ", numbers::grouped(count)));
            }
        }
        if let Some(most) = self.max_abs {
            said.push(format!("at most by {}", numbers::short(most)));
        }
        if let Some(most) = self.max_rel {
            said.push(format!("relatively {}", numbers::short(most)));
        }
        said
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
