//! What the user named by FILE: a file, a shard index, or a folder that holds either.

use std::path::Path;

use safetensors_zero::{ErrorKind, FileTensor, Shards, Table, TensorInfo};

use crate::files::failure::{Exit, Failure};
use crate::files::suggest;

/// A model of one file or of several.
#[derive(Debug)]
pub(crate) struct Model {
    shards: Shards,
}

/// A tensor as the header of its file tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'m> {
    /// The number of its file.
    pub(crate) shard: usize,
    /// Where the data region of its file begins.
    pub(crate) data_start: u64,
    pub(crate) info: TensorInfo<'m>,
}

impl Entry<'_> {
    /// Where the data begin in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.data_start.saturating_add(self.info.data_offsets.0)
    }
}

impl Model {
    /// Opens a model and reads all of its headers.
    pub(crate) fn open(path: &Path) -> Result<Model, Failure> {
        let model = Model::open_lazily(path)?;
        model.shards.open_all()?;
        Ok(model)
    }

    /// Opens a model of which some tensors are wanted: only the headers of their files are read, so
    /// that it does not matter whether the others are there.
    pub(crate) fn open_lazily(path: &Path) -> Result<Model, Failure> {
        Ok(Model { shards: Shards::open(path)? })
    }

    /// The file, or the index.
    pub(crate) fn path(&self) -> &Path {
        self.shards.index_path().unwrap_or(self.shards.path(0))
    }

    /// Whether there is an index.
    pub(crate) fn is_indexed(&self) -> bool {
        self.shards.index_path().is_some()
    }

    /// The paths of its files, and their tables.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, Table<'_, '_>)> {
        let table = |shard| Some((self.shards.path(shard), self.shards.table(shard).ok()?));
        (0..self.shards.shards()).filter_map(table)
    }

    /// A file as it is told of beside its index: by the index's name for it.
    pub(crate) fn shard_name(&self, shard: usize) -> &str {
        let names = self.shards.index().map_or(&[][..], |index| index.shards());
        names.get(shard).map_or("", |name| name)
    }

    /// The model's tensors, file by file, in the order of their data.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let index = self.shards.index();
        let table = |shard| Some((shard, self.shards.table(shard).ok()?));
        (0..self.shards.shards()).filter_map(table).flat_map(move |(shard, table)| {
            let data_start = table.data_start();
            (0..table.len())
                .filter_map(move |at| table.nth(at))
                .filter(move |info| {
                    index.is_none_or(|index| index.shard_of(&info.name.to_cow()) == Some(shard))
                })
                .map(move |info| Entry { shard, data_start, info })
        })
    }

    /// Refuses a model whose index lists tensors that its shards do not have.
    pub(crate) fn check_complete(&self) -> Result<(), Failure> {
        if !self.is_indexed() {
            return Ok(());
        }
        let (listed, found) = (self.shards.len(), self.entries().count());
        if found == listed {
            return Ok(());
        }
        let sentence = format!(
            "the index lists {listed} tensors, of which the shards have {found}; \
             `safetensor verify` tells which are missing"
        );
        Err(Failure::new(self.path(), sentence, Exit::Invalid))
    }

    /// The tensor that has exactly this name.
    pub(crate) fn tensor(&self, name: &str) -> Result<FileTensor<'_>, Failure> {
        self.shards.tensor(name).map_err(|error| {
            let kind = error.invalid().map(|error| error.kind());
            if kind != Some(ErrorKind::TensorNotFound) {
                return error.into();
            }
            let names = self.entries().map(|entry| entry.info.name);
            let nearest = suggest::nearest(name, names);
            let hint = nearest.map_or(String::new(), |name| format!("; did you mean {name:?}?"));
            Failure::absent(self.path(), format!("{}{hint}", error.sentence()))
        })
    }

    /// The tensors of these names; all if there are none. Their files are opened when they are read:
    /// a model may have more than a process may have open.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<TensorInfo<'_>>, Failure> {
        if !names.is_empty() {
            return names.iter().map(|name| Ok(self.tensor(name)?.info())).collect();
        }
        self.shards.open_all()?;
        Ok(self.entries().map(|entry| entry.info).collect())
    }

    /// A tensor of this model, to be read.
    pub(crate) fn read(&self, info: &TensorInfo<'_>) -> Result<FileTensor<'_>, Failure> {
        self.tensor(&info.name.to_cow())
    }
}
