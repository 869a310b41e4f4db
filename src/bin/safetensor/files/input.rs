//! The model that the user named with FILE: a file, a shard index, or a folder that holds either.

use std::path::Path;

use safetensors_zero::{ErrorKind, FileTensor, Shards, Table, TensorInfo};

use crate::files::failure::{Exit, Failure};
use crate::files::suggest;

/// What a file is known by to the system, whatever its names: the device and the inode, or its path
/// without links where there are none.
#[derive(PartialEq, Eq)]
struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] std::path::PathBuf);

impl FileId {
    /// Returns `None` if the path leads to no file.
    fn of(path: &Path) -> Option<FileId> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let metadata = std::fs::metadata(path).ok()?;
            Some(FileId((metadata.dev(), metadata.ino())))
        }
        #[cfg(not(unix))]
        std::fs::canonicalize(path).ok().map(FileId)
    }
}

/// A model of one file or of several.
#[derive(Debug)]
pub(crate) struct Model {
    shards: Shards,
}

/// A tensor, as described in the header of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'m> {
    /// The index of its file among the model's files.
    pub(crate) shard: usize,
    /// The offset of the data region in its file.
    pub(crate) data_start: u64,
    pub(crate) info: TensorInfo<'m>,
}

impl Entry<'_> {
    /// Returns the offset of the tensor's data in its file.
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

    /// Opens a model without reading headers. They are read when a tensor is asked for, so files
    /// that are not needed can be missing.
    pub(crate) fn open_lazily(path: &Path) -> Result<Model, Failure> {
        Ok(Model { shards: Shards::open(path)? })
    }

    /// Returns the path of the index, or of the only file.
    pub(crate) fn path(&self) -> &Path {
        self.shards.index_path().unwrap_or(self.shards.path(0))
    }

    /// Whether the model has an index.
    pub(crate) fn is_indexed(&self) -> bool {
        self.shards.index_path().is_some()
    }

    /// Refuses a path that leads to a file of this model: a shard or the index.
    pub(crate) fn check_not_own(&self, path: &Path) -> Result<(), Failure> {
        let Some(id) = FileId::of(path) else { return Ok(()) };
        let shards = (0..self.shards.shards()).map(|shard| self.shards.path(shard));
        let mut files = self.shards.index_path().into_iter().chain(shards);
        let Some(own) = files.find(|file| FileId::of(file).as_ref() == Some(&id)) else {
            return Ok(());
        };
        let sentence = format!(
            "this is {}, a file of the model being read, which is never overwritten",
            own.display()
        );
        Err(Failure::usage(path, sentence))
    }

    /// Iterates over the model's files: their paths and tables.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, Table<'_, '_>)> {
        let table = |shard| Some((self.shards.path(shard), self.shards.table(shard).ok()?));
        (0..self.shards.shards()).filter_map(table)
    }

    /// Returns a file's name in the index, or `""` without an index.
    pub(crate) fn shard_name(&self, shard: usize) -> &str {
        let names = self.shards.index().map_or(&[][..], |index| index.shards());
        names.get(shard).map_or("", |name| name)
    }

    /// Iterates over the model's tensors, file by file, in data order.
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

    /// Returns an error if the index lists tensors that the shards do not have.
    pub(crate) fn check_complete(&self) -> Result<(), Failure> {
        if !self.is_indexed() {
            return Ok(());
        }
        let (listed, found) = (self.shards.len(), self.entries().count());
        if found == listed {
            return Ok(());
        }
        let sentence = format!(
            "the index lists {listed} tensors, but the shards have only {found} of them; \
             run `safetensor verify` to see which are missing"
        );
        Err(Failure::new(self.path(), sentence, Exit::Invalid))
    }

    /// Returns the tensor with exactly this name.
    pub(crate) fn tensor(&self, name: &str) -> Result<FileTensor<'_>, Failure> {
        self.shards.tensor(name).map_err(|error| {
            let kind = error.invalid().map(|error| error.kind());
            if kind != Some(ErrorKind::TensorNotFound) {
                return error.into();
            }
            let names = self.entries().map(|entry| entry.info.name);
            let nearest = suggest::nearest(name, names);
            let hint = nearest.map_or(String::new(), |name| format!("; did you mean {name:?}?"));
            Failure::invalid(self.path(), format!("{}{hint}", error.sentence()))
        })
    }

    /// Returns the tensors with these names, or all tensors if `names` is empty. Files are opened
    /// when tensors are read, since a model can have more files than a process can have open.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<TensorInfo<'_>>, Failure> {
        if !names.is_empty() {
            return names.iter().map(|name| Ok(self.tensor(name)?.info())).collect();
        }
        self.shards.open_all()?;
        Ok(self.entries().map(|entry| entry.info).collect())
    }

    /// Returns a tensor of this model for reading.
    pub(crate) fn read(&self, info: &TensorInfo<'_>) -> Result<FileTensor<'_>, Failure> {
        self.tensor(&info.name.to_cow())
    }
}
