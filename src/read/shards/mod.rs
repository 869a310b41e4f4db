//! A model in one or several files, opened by its index, its folder or its file.

mod locate;
mod verify;

use core::fmt;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::vec;

use crate::base::error::{Error, ErrorKind};
use crate::base::limits::{IndexLimits, Limits};
use crate::json::text::Text;
use crate::read::file::{self, FileError, FileErrorKind, FileTensor};
use crate::read::reader::TensorReader;
use crate::read::weight_map::WeightMap;
use crate::table::info::TensorInfo;
use crate::table::owned::OwnedTable;
use crate::table::table::Table;

pub use verify::{Finding, FindingKind};

/// A model in one or several files.
///
/// A shard's header is read when one of its tensors is first requested, or by
/// [`open_all`](Shards::open_all). Tensor data is read on request. Reads take `&self` and can run
/// on any number of threads. The number of files kept open is limited by
/// [`ShardsOptions::open_files`]. A file that is opened again must be the same file as before.
///
/// ```
/// use safetensors_zero::Shards;
///
/// // The path of an index, of a single file, or of a folder that contains either.
/// let model = Shards::open("examples/animals.safetensors")?;
/// for tensor in model.tensors() {
///     let tensor = tensor?;
///     println!("{} {} {}", tensor.name(), tensor.dtype(), tensor.shape());
/// }
/// let mut row = [0.0; 8];
/// model.tensor("embedding.weight")?.dequant_rows(3..4, &mut row)?;
/// assert_eq!(row[2], 0.89990234);
/// # Ok::<(), safetensors_zero::FileError>(())
/// ```
pub struct Shards {
    index: Option<IndexFile>,
    shards: Vec<Shard>,
    options: ShardsOptions,
    /// The open files with the numbers of their shards, the most recently used last.
    open: Mutex<VecDeque<(usize, Arc<fs::File>)>>,
}

struct IndexFile {
    path: PathBuf,
    map: WeightMap,
}

struct Shard {
    path: PathBuf,
    opened: OnceLock<Opened>,
}

/// A shard whose header has been read.
struct Opened {
    table: OwnedTable,
    identity: Identity,
}

/// Options for opening [`Shards`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardsOptions {
    /// The limits for each shard.
    pub limits: Limits,
    /// The limits for the index.
    pub index: IndexLimits,
    /// The number of shards kept open at a time. 0 means 1. Many systems limit a process to a
    /// few hundred open files.
    pub open_files: usize,
}

impl ShardsOptions {
    /// Accepts what loaders accept for honest models.
    pub const DEFAULT: ShardsOptions =
        ShardsOptions { limits: Limits::DEFAULT, index: IndexLimits::DEFAULT, open_files: 64 };

    /// Applies the strict rules of [`Limits::STRICT`] and [`IndexLimits::STRICT`].
    pub const STRICT: ShardsOptions = ShardsOptions {
        limits: Limits::STRICT,
        index: IndexLimits::STRICT,
        ..ShardsOptions::DEFAULT
    };
}

impl Default for ShardsOptions {
    /// Returns [`ShardsOptions::DEFAULT`].
    fn default() -> Self {
        ShardsOptions::DEFAULT
    }
}

impl Shards {
    /// Opens a model with [`ShardsOptions::default`]. The path leads to a shard index (whose name
    /// ends in `.json`), a safetensors file, or a folder that contains either.
    ///
    /// In a folder, this opens the index `model.safetensors.index.json`, or the only file whose
    /// name ends in `.safetensors.index.json`. If there is no index, it opens `model.safetensors`,
    /// or the only file whose name ends in `.safetensors`. Files that the index does not mention
    /// are not part of the model.
    ///
    /// # Errors
    /// Returns an error if the path cannot be opened, if the folder contains no model or several,
    /// or if the index or the single file is invalid. Invalid shards are reported when they are
    /// first used, and by [`open_all`](Shards::open_all) and [`verify`](Shards::verify).
    pub fn open(path: impl AsRef<Path>) -> Result<Shards, FileError> {
        Self::open_with(path, &ShardsOptions::DEFAULT)
    }

    /// Like [`Shards::open`], but with the given options.
    ///
    /// # Errors
    /// Same as [`Shards::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &ShardsOptions) -> Result<Shards, FileError> {
        let (index, paths) = match locate::locate(path.as_ref())? {
            locate::Found::File(path) => (None, vec![path]),
            locate::Found::Index(path) => {
                let map = read_index(&path, &options.index)?;
                // If the path is a link, the shards are beside the link, not beside its target.
                let folder = path.parent().unwrap_or(Path::new(""));
                let paths = map.shards().iter().map(|name| folder.join(name)).collect();
                (Some(IndexFile { path, map }), paths)
            }
        };
        let shards =
            paths.into_iter().map(|path| Shard { path, opened: OnceLock::new() }).collect();
        let open = Mutex::new(VecDeque::new());
        let shards = Shards { index, shards, options: *options, open };
        if shards.index.is_none() {
            shards.open_all()?;
        }
        Ok(shards)
    }

    /// Reads the headers of all shards that have not been read yet.
    ///
    /// # Errors
    /// Returns an error if a shard cannot be opened or is invalid.
    pub fn open_all(&self) -> Result<(), FileError> {
        (0..self.shards.len()).try_for_each(|shard| self.opened(shard).map(|_| ()))
    }

    /// Returns the tensor with this name.
    ///
    /// # Errors
    /// Returns an error if no tensor has this name, or if its shard cannot be opened, is invalid,
    /// or does not have the tensor.
    pub fn tensor(&self, name: &str) -> Result<FileTensor<'_>, FileError> {
        let not_found = FileErrorKind::Invalid(Error::new(ErrorKind::TensorNotFound));
        let (shard, missing) = match &self.index {
            None => (0, not_found),
            Some(index) => match index.map.shard_of(name) {
                Some(shard) => (shard, FileErrorKind::NotInShard),
                None => return Err(FileError::new(&index.path, not_found).of(name)),
            },
        };
        match self.table(shard)?.info(name) {
            Ok(info) => self.tensor_of(shard, info),
            Err(_) => Err(FileError::new(self.path(shard), missing).of(name)),
        }
    }

    /// Checks whether a tensor has this name, by the index if there is one. Reads no files.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        match &self.index {
            Some(index) => index.map.shard_of(name).is_some(),
            None => self.table(0).is_ok_and(|table| table.contains(name)),
        }
    }

    /// Returns the tensors' names: in the index's order, or in data order if the model is a single
    /// file. Reads no files.
    pub fn names(&self) -> impl Iterator<Item = Text<'_>> {
        let single = if self.index.is_none() { self.table(0).ok() } else { None };
        let listed = self.index.iter().flat_map(|index| index.map.iter().map(|(name, _)| name));
        listed.chain(
            single
                .into_iter()
                .flat_map(|table| (0..table.len()).filter_map(move |at| Some(table.nth(at)?.name))),
        )
    }

    /// Returns all tensors. Shards come in the order of their first mention in the index, the
    /// tensors of a shard in the order of their data. Tensors that the index does not list, or
    /// lists in another shard, are left out.
    ///
    /// A shard that cannot be opened yields one error, and iteration continues with the next shard.
    pub fn tensors(&self) -> impl Iterator<Item = Result<FileTensor<'_>, FileError>> {
        (0..self.shards.len()).flat_map(move |shard| {
            let (table, error) = match self.table(shard) {
                Ok(table) => (Some(table), None),
                Err(error) => (None, Some(Err(error))),
            };
            let len = table.as_ref().map_or(0, |table| table.len());
            let infos =
                (0..len).filter_map(move |at| table.as_ref().and_then(|table| table.nth(at)));
            let listed = infos.filter(move |info| self.is_listed(shard, info));
            listed.map(move |info| self.tensor_of(shard, info)).chain(error)
        })
    }

    /// Returns the number of shards. It is 1 if the model is a single file.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Returns the path of the shard with this number, counted from 0. It is empty if there is no
    /// such shard.
    #[must_use]
    pub fn path(&self, shard: usize) -> &Path {
        self.shards.get(shard).map_or(Path::new(""), |shard| &shard.path)
    }

    /// Returns the table of the shard with this number.
    ///
    /// # Errors
    /// Returns an error if there is no such shard, or if it cannot be opened or is invalid.
    pub fn table(&self, shard: usize) -> Result<Table<'_, '_>, FileError> {
        Ok(self.opened(shard)?.table.table())
    }

    /// Returns the index, or `None` if the model is a single file.
    #[must_use]
    pub fn index(&self) -> Option<&WeightMap> {
        self.index.as_ref().map(|index| &index.map)
    }

    /// Returns the path of the index, or `None` if the model is a single file.
    #[must_use]
    pub fn index_path(&self) -> Option<&Path> {
        self.index.as_ref().map(|index| index.path.as_path())
    }

    /// Returns the number of tensors, as listed in the index if there is one.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.index {
            Some(index) => index.map.len(),
            None => self.table(0).map_or(0, |table| table.len()),
        }
    }

    /// Returns `true` if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if the index lists a tensor in this shard, or if there is no index.
    fn is_listed(&self, shard: usize, info: &TensorInfo<'_>) -> bool {
        match &self.index {
            Some(index) => index.map.shard_of(&info.name.to_cow()) == Some(shard),
            None => true,
        }
    }

    fn tensor_of<'f>(
        &'f self,
        shard: usize,
        info: TensorInfo<'f>,
    ) -> Result<FileTensor<'f>, FileError> {
        let opened = self.opened(shard)?;
        let file = self.descriptor(shard, &opened.identity)?;
        let reader = TensorReader::of_table(file, &opened.table.table(), info);
        Ok(FileTensor::new(self.path(shard), reader))
    }

    /// Returns a shard. Reads its header on first use.
    fn opened(&self, number: usize) -> Result<&Opened, FileError> {
        let missing = || FileError::new(self.path(number), FileErrorKind::NoModel);
        let shard = self.shards.get(number).ok_or_else(missing)?;
        if let Some(opened) = shard.opened.get() {
            return Ok(opened);
        }
        let (file, opened) = self.read(&shard.path)?;
        if shard.opened.set(opened).is_ok() {
            self.keep(number, file);
        }
        // It was set above, or by another thread in the meantime.
        shard.opened.get().ok_or_else(missing)
    }

    /// Opens a shard and reads its header.
    fn read(&self, path: &Path) -> Result<(Arc<fs::File>, Opened), FileError> {
        let file = file::open_regular(path)?;
        let identity = Identity::of(&file, path)?;
        let table = file::read_table(&file, path, &self.options.limits)?;
        Ok((Arc::new(file), Opened { table, identity }))
    }

    /// Returns the open file of a shard. Opens it again if it was closed.
    fn descriptor(&self, number: usize, before: &Identity) -> Result<Arc<fs::File>, FileError> {
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = open.iter().position(|(shard, _)| *shard == number) {
                if let Some(entry) = open.remove(at) {
                    let file = Arc::clone(&entry.1);
                    open.push_back(entry);
                    return Ok(file);
                }
            }
        }
        let path = self.path(number);
        let file = file::open_regular(path)?;
        if Identity::of(&file, path)? != *before {
            return Err(FileError::new(path, FileErrorKind::Replaced));
        }
        let file = Arc::new(file);
        self.keep(number, Arc::clone(&file));
        Ok(file)
    }

    /// Keeps a file open. Closes the least recently used file if there are too many.
    fn keep(&self, number: usize, file: Arc<fs::File>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back((number, file));
        if open.len() > self.options.open_files.max(1) {
            open.pop_front();
        }
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards")
            .field("index", &self.index_path())
            .field("shards", &self.shards())
            .field("tensors", &self.len())
            .finish_non_exhaustive()
    }
}

fn read_index(path: &Path, limits: &IndexLimits) -> Result<WeightMap, FileError> {
    let file = file::open_regular(path)?;
    let len = file.metadata().map_err(|e| FileError::new(path, FileErrorKind::Open(e)))?.len();
    if len > limits.bytes {
        let kind = ErrorKind::IndexTooLarge { len, limit: limits.bytes };
        return Err(FileError::new(path, FileErrorKind::Invalid(Error::new(kind))));
    }
    let text = file::read_to_vec(&file, path, 0, len)?;
    WeightMap::parse_or_return(text, limits)
        .map_err(|(error, text)| FileError::of_text(path, error.in_file(&text)))
}

/// The properties that identify a file, to notice that another has taken its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    len: u64,
    /// The device and the inode number.
    #[cfg(unix)]
    inode: (u64, u64),
    #[cfg(not(unix))]
    modified: Option<std::time::SystemTime>,
}

impl Identity {
    fn of(file: &fs::File, path: &Path) -> Result<Identity, FileError> {
        let metadata = file.metadata();
        let metadata = metadata.map_err(|e| FileError::new(path, FileErrorKind::Open(e)))?;
        Ok(Identity {
            len: metadata.len(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt as _;
                (metadata.dev(), metadata.ino())
            },
            #[cfg(not(unix))]
            modified: metadata.modified().ok(),
        })
    }
}
