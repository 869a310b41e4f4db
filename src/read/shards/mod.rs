//! A model in several files, or in one: opened by its index, its folder or its file alike.

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
use crate::read::file::{self, FileError, FileErrorKind, FileTensor};
use crate::read::reader::TensorReader;
use crate::read::weight_map::WeightMap;
use crate::table::info::TensorInfo;
use crate::table::owned::OwnedTable;
use crate::table::table::Table;

pub use verify::{Finding, FindingKind};

/// The tensors of a model, whichever files they are in.
///
/// The header of a shard is read when a tensor of it is first asked for, or by
/// [`open_all`](Shards::open_all); of the data nothing is read until it is asked for. Reading goes
/// through `&self`, from as many threads as you like. However many shards there are, only some are
/// kept open ([`ShardsOptions::open_files`]); one that is opened again has to be the same file as
/// before.
///
/// ```
/// use safetensors_zero::Shards;
///
/// // An index, a folder that holds one, a single file, or a folder with that.
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
    /// Those that are open, by the number of their shard, the one used last at the end.
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

/// How [`Shards`] are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardsOptions {
    /// What is accepted of each shard.
    pub limits: Limits,
    /// What is accepted of the index.
    pub index: IndexLimits,
    /// How many shards are kept open at a time, at least one. Systems allow a process a few hundred
    /// open files.
    pub open_files: usize,
}

impl ShardsOptions {
    /// Accepts what loaders accept of honest models.
    pub const DEFAULT: ShardsOptions =
        ShardsOptions { limits: Limits::DEFAULT, index: IndexLimits::DEFAULT, open_files: 64 };

    /// The strict rules of [`Limits::STRICT`] and [`IndexLimits::STRICT`].
    pub const STRICT: ShardsOptions = ShardsOptions {
        limits: Limits::STRICT,
        index: IndexLimits::STRICT,
        ..ShardsOptions::DEFAULT
    };
}

impl Default for ShardsOptions {
    /// [`ShardsOptions::DEFAULT`].
    fn default() -> Self {
        ShardsOptions::DEFAULT
    }
}

impl Shards {
    /// Opens a model, with [`ShardsOptions::default`]: a shard index (whose name ends in `.json`), a
    /// safetensors file, or a folder that holds either.
    ///
    /// Of a folder's indexes `model.safetensors.index.json` is chosen, or the only one whose name ends
    /// in `.safetensors.index.json`. Without any, `model.safetensors` is chosen, or the only file whose
    /// name ends in `.safetensors`. Files that the index does not mention are no part of the model.
    ///
    /// # Errors
    /// The path cannot be opened; the folder holds no model, or several; what is wrong with the index,
    /// or with the file if it is a single one. What is wrong with shards is told when they are first
    /// used, or by [`open_all`](Shards::open_all) and [`verify`](Shards::verify).
    pub fn open(path: impl AsRef<Path>) -> Result<Shards, FileError> {
        Self::open_with(path, &ShardsOptions::DEFAULT)
    }

    /// As [`Shards::open`], with options of the caller's choice.
    ///
    /// # Errors
    /// As [`Shards::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &ShardsOptions) -> Result<Shards, FileError> {
        let (index, paths) = match locate::locate(path.as_ref())? {
            locate::Found::File(path) => (None, vec![path]),
            locate::Found::Index(path) => {
                let map = read_index(&path, &options.index)?;
                // Not the folder of the file that a link leads to: the shards are beside the link.
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

    /// Reads the headers of all shards that have not been read.
    ///
    /// # Errors
    /// A shard cannot be opened, or what is wrong with it.
    pub fn open_all(&self) -> Result<(), FileError> {
        (0..self.shards.len()).try_for_each(|shard| self.opened(shard).map(|_| ()))
    }

    /// The tensor with this name.
    ///
    /// # Errors
    /// No tensor has the name; its shard cannot be opened, is invalid, or does not have it.
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

    /// All tensors, shard by shard in the order in which the index mentions them, those of a shard in
    /// the order of their data. Tensors that the index does not list, or lists as another shard's, are
    /// not among them.
    ///
    /// A shard that cannot be opened is one error, after which the next shard comes.
    pub fn tensors(&self) -> impl Iterator<Item = Result<FileTensor<'_>, FileError>> {
        (0..self.shards.len()).flat_map(move |shard| {
            let (table, error) = match self.table(shard) {
                Ok(table) => (Some(table), None),
                Err(error) => (None, Some(Err(error))),
            };
            let len = table.as_ref().map_or(0, |table| table.len());
            let infos =
                (0..len).filter_map(move |at| table.as_ref().and_then(|table| table.nth(at)));
            let own = infos.filter(move |info| self.is_of(shard, info));
            own.map(move |info| self.tensor_of(shard, info)).chain(error)
        })
    }

    /// How many shards there are; one if the model is a single file.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The path of a shard, by its number. Empty if there is no such shard.
    #[must_use]
    pub fn path(&self, shard: usize) -> &Path {
        self.shards.get(shard).map_or(Path::new(""), |shard| &shard.path)
    }

    /// The table of a shard, by its number.
    ///
    /// # Errors
    /// The shard cannot be opened, or what is wrong with it.
    pub fn table(&self, shard: usize) -> Result<Table<'_, '_>, FileError> {
        Ok(self.opened(shard)?.table.table())
    }

    /// The index. `None` if the model is a single file.
    #[must_use]
    pub fn index(&self) -> Option<&WeightMap> {
        self.index.as_ref().map(|index| &index.map)
    }

    /// The path of the index. `None` if the model is a single file.
    #[must_use]
    pub fn index_path(&self) -> Option<&Path> {
        self.index.as_ref().map(|index| index.path.as_path())
    }

    /// How many tensors there are, by the index if there is one.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.index {
            Some(index) => index.map.len(),
            None => self.table(0).map_or(0, |table| table.len()),
        }
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a tensor that a shard has is one of the model's there.
    fn is_of(&self, shard: usize, info: &TensorInfo<'_>) -> bool {
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

    /// A shard, its header read.
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
        // Set here, or by another thread.
        shard.opened.get().ok_or_else(missing)
    }

    /// Opens a shard and reads its header.
    fn read(&self, path: &Path) -> Result<(Arc<fs::File>, Opened), FileError> {
        let file = file::open_regular(path)?;
        let identity = Identity::of(&file, path)?;
        let table = file::read_table(&file, path, &self.options.limits)?;
        Ok((Arc::new(file), Opened { table, identity }))
    }

    /// The open file of a shard, opened again if it is no longer kept.
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

    /// Keeps a file open, in place of the one that was not used for the longest time.
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

/// By what a file is known to be the same as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    len: u64,
    /// Device and number on it.
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
