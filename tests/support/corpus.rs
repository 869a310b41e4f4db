//! The corpus: files from public bug reports, each with the right verdict.

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
    /// The file in the corpus, if it is kept as one.
    pub file: Option<String>,
    /// What the case is.
    pub about: String,
    /// Where it was seen.
    pub source: String,
    /// `accept`, `reject` or `either`, with default limits.
    pub default: String,
    /// The same, with strict rules.
    pub strict: String,
    /// The errors that reject it, by default and strict.
    pub errors: Option<[Option<Reason>; 2]>,
    /// What an accepted file holds.
    pub view: Option<View>,
    /// The values of some tensors, by name: the bits of each as `f32`, in hexadecimal, or `nan` and
    /// `-nan` for any NaN of the sign.
    pub values: Option<BTreeMap<String, Vec<String>>>,
    /// The tensor that an `api` case is about.
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

/// The kind of an error, and its byte.
pub type Reason = (String, Option<u64>);

/// Dtype, shape, data_offsets and data in hexadecimal.
pub type TensorOf = (String, Vec<u64>, (u64, u64), String);

impl Case {
    /// The bytes of a case that is kept as a file.
    pub fn bytes(&self) -> Vec<u8> {
        let path = folder().join(self.file.as_ref().expect("a file"));
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Whether the case is one file that is there.
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

/// The cases that are one file each.
pub fn files() -> Vec<Case> {
    cases().into_iter().filter(Case::is_file).collect()
}
