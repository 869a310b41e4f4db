//! Finds the model that a path leads to: an index, a file, or a folder with one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;

use crate::read::file::{FileError, FileErrorKind};

/// The file that a model is opened by.
pub(super) enum Found {
    Index(PathBuf),
    File(PathBuf),
}

const INDEX: &str = ".safetensors.index.json";
const FILE: &str = ".safetensors";

/// Finds the index or the file that a model is opened by. In a folder, indexes have priority over
/// files, and the usual name has priority over others.
pub(super) fn locate(path: &Path) -> Result<Found, FileError> {
    let failed = |error| FileError::new(path, FileErrorKind::Open(error));
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        let is_index = path.extension().is_some_and(|extension| extension == "json");
        let path = path.to_path_buf();
        return Ok(if is_index { Found::Index(path) } else { Found::File(path) });
    }
    let (mut indexes, mut files) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(failed)? {
        // A name that is not valid Unicode ends in neither.
        let Ok(name) = entry.map_err(failed)?.file_name().into_string() else { continue };
        if name.ends_with(INDEX) {
            indexes.push(name);
        } else if name.ends_with(FILE) {
            files.push(name);
        }
    }
    let choose = |names: Vec<String>, usual: &str| {
        if names.iter().any(|name| name == usual) {
            return Ok(path.join(usual));
        }
        match names.as_slice() {
            [] => Err(FileError::new(path, FileErrorKind::NoModel)),
            [name] => Ok(path.join(name)),
            _ => {
                let mut names = names;
                names.sort_unstable();
                Err(FileError::new(path, FileErrorKind::ManyModels { names }))
            }
        }
    };
    if indexes.is_empty() {
        choose(files, "model.safetensors").map(Found::File)
    } else {
        choose(indexes, "model.safetensors.index.json").map(Found::Index)
    }
}
