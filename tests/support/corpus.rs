//! The corpus: files from public bug reports, each with the correct verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A case of `tests/corpus/manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub id: String,
    /// `file`, `index`, `api`, `writer` or `scenario`.
    pub kind: String,
    /// The file name in the corpus, if the case is stored as a file.
    pub file: Option<String>,
    /// A description of the case.
    pub about: String,
    /// Where the case was reported.
    pub source: String,
    /// `accept`, `reject` or `either`, with default limits.
    pub default: String,
    /// The same, with strict limits.
    pub strict: String,
    /// The expected errors with default and strict limits.
    pub errors: Option<[Option<Reason>; 2]>,
    /// The contents of an accepted file.
    pub view: Option<View>,
    /// The values of some tensors, by name: the bits of each `f32` in hexadecimal, or `nan` and
    /// `-nan` for any NaN with that sign.
    pub values: Option<BTreeMap<String, Vec<String>>>,
    /// The tensor that an `api` case uses.
    pub base: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    pub data_start: u64,
    pub metadata: Option<BTreeMap<String, String>>,
    pub count: usize,
    pub tensors: Option<BTreeMap<String, TensorOf>>,
}

/// An error's kind and byte.
pub type Reason = (String, Option<u64>);

/// Dtype, shape, data_offsets and data in hexadecimal.
pub type TensorOf = (String, Vec<u64>, (u64, u64), String);

impl Case {
    /// Reads the file of a case that is stored as one.
    pub fn bytes(&self) -> Vec<u8> {
        let path = folder().join(self.file.as_ref().expect("a file"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Checks whether the case is a single stored file. The `big-` ones are generated instead.
    pub fn is_file(&self) -> bool {
        self.kind == "file" && !self.id.starts_with("big-")
    }
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let manifest = std::fs::read_to_string(folder().join("manifest.json")).expect("the manifest");
    serde_json::from_str(&manifest).expect("a manifest of cases")
}

/// The cases that are a single stored file.
pub fn files() -> Vec<Case> {
    cases().into_iter().filter(Case::is_file).collect()
}
