//! A file on disk. Only its header is held in memory.

mod error;
mod tensor;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;
use std::sync::Arc;

use crate::base::convert::to_u64;
use crate::base::limits::Limits;
use crate::header::frame::Frame;
use crate::header::metadata::Metadata;
use crate::json::text::Text;
use crate::read::reader::TensorReader;
use crate::read::source::{ReadError, Source};
use crate::table::info::TensorInfo;
use crate::table::owned::OwnedTable;
use crate::table::table::Table;

pub use error::{FileError, FileErrorKind, FileType};
pub use tensor::{FileSlice, FileTensor, Progress};

/// A file on disk. Its header is held in memory; its data is read on request.
///
/// Opening takes time and memory for the header only, however large the file is. Reads take `&self`
/// and use positioned reads, from any number of threads. Unlike a memory map, this cannot crash the
/// program: if the file is truncated while it is open, reading the missing part is an error.
/// Bytes overwritten in the meantime go unnoticed.
///
/// ```
/// use safetensors_zero::File;
///
/// let file = File::open("examples/animals.safetensors")?;
/// let tensor = file.tensor("embedding.weight")?;
/// let mut rows = [0.0; 2 * 8];
/// tensor.dequant_rows(3..5, &mut rows)?;
/// assert_eq!(rows[2], 0.89990234);
/// # Ok::<(), safetensors_zero::FileError>(())
/// ```
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: Arc<fs::File>,
    table: OwnedTable,
}

impl File {
    /// Opens a file, and reads and checks its header with [`Limits::default`].
    ///
    /// # Errors
    /// Returns an error if the path cannot be opened, if it leads to a folder, a pipe or a device,
    /// or if the header cannot be read or is invalid. [`Shards`](crate::Shards) opens folders.
    pub fn open(path: impl AsRef<Path>) -> Result<File, FileError> {
        Self::open_with(path, &Limits::DEFAULT)
    }

    /// Like [`File::open`], but with the given limits.
    ///
    /// # Errors
    /// Same as [`File::open`].
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<File, FileError> {
        let path = path.as_ref();
        Self::from_std(open_regular(path)?, path, limits)
    }

    /// Like [`File::open_with`], but takes a file that is already open. The path is only used in
    /// messages and returned by [`File::path`].
    ///
    /// # Errors
    /// Returns an error if the header cannot be read or is invalid.
    pub fn from_std(
        file: fs::File,
        path: impl Into<PathBuf>,
        limits: &Limits,
    ) -> Result<File, FileError> {
        let path = path.into();
        let table = read_table(&file, &path, limits)?;
        Ok(File { path, file: Arc::new(file), table })
    }

    /// Returns the path that the file was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the underlying open file.
    #[must_use]
    pub fn as_std(&self) -> &fs::File {
        &self.file
    }

    /// Returns the table, which describes the tensors without their data. Takes constant time.
    #[must_use]
    pub fn table(&self) -> Table<'_, '_> {
        self.table.table()
    }

    /// Returns the description of the tensor with this name. See [`Table::info`].
    ///
    /// # Errors
    /// Returns an error if no tensor has this name.
    pub fn info(&self, name: &str) -> Result<TensorInfo<'_>, FileError> {
        self.table().info(name).map_err(|error| self.error(error.into()).of(name))
    }

    /// Returns the tensor with this name.
    ///
    /// # Errors
    /// Returns an error if no tensor has this name.
    pub fn tensor(&self, name: &str) -> Result<FileTensor<'_>, FileError> {
        Ok(self.tensor_of(self.info(name)?))
    }

    /// Returns the tensor with this name, or `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<FileTensor<'_>> {
        self.table().get(name).map(|info| self.tensor_of(info))
    }

    /// Returns `true` if a tensor has this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.table().contains(name)
    }

    /// Returns the tensors in the order of their data.
    pub fn tensors(&self) -> impl Iterator<Item = FileTensor<'_>> {
        let count = self.len();
        // The table cannot be kept in the iterator: it is rebuilt at each step, in constant time.
        (0..count).filter_map(|at| self.table().nth(at)).map(|info| self.tensor_of(info))
    }

    /// Returns the tensors' names in the order of their data.
    pub fn names(&self) -> impl Iterator<Item = Text<'_>> {
        (0..self.len()).filter_map(|at| self.table().nth(at)).map(|info| info.name)
    }

    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Returns `true` if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// Returns the file's metadata, or `None` if it is absent or null.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'_>> {
        self.table().metadata()
    }

    fn tensor_of<'f>(&'f self, info: TensorInfo<'f>) -> FileTensor<'f> {
        let reader = TensorReader::of_table(Arc::clone(&self.file), &self.table(), info);
        FileTensor::new(&self.path, reader)
    }

    fn error(&self, error: ReadError<io::Error>) -> FileError {
        FileError::of_read(&self.path, error)
    }

    /// Splits the file into the parts that a memory map needs.
    #[cfg(feature = "mmap")]
    pub(crate) fn into_parts(self) -> (PathBuf, Arc<fs::File>, OwnedTable) {
        (self.path, self.file, self.table)
    }
}

/// Opens a path if it is a regular file. A pipe is never opened, because that can block forever.
pub(crate) fn open_regular(path: &Path) -> Result<fs::File, FileError> {
    let failed = |error| FileError::new(path, FileErrorKind::Open(error));
    let check = |metadata: fs::Metadata| match FileType::of(metadata.file_type()) {
        None => Ok(()),
        Some(found) => Err(FileError::new(path, FileErrorKind::NotAFile(found))),
    };
    check(fs::metadata(path).map_err(failed)?)?;
    let file = fs::File::open(path).map_err(failed)?;
    // Another file can have taken its place since the first check.
    check(file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Reads and checks the header of an open file.
pub(crate) fn read_table(
    file: &fs::File,
    path: &Path,
    limits: &Limits,
) -> Result<OwnedTable, FileError> {
    let failed = |error| FileError::of_read(path, error);
    let frame = Frame::read_from(file, limits).map_err(failed)?;
    let range = frame.header_range();
    let text = read_to_vec(file, path, range.start, frame.header_len())?;
    OwnedTable::parse_or_return(text, frame.data_len(), limits)
        .map_err(|(error, text)| FileError::of_text(path, error.in_header(&text)))
}

/// Reads a range of a file into a new vector. The caller has checked that the file is long enough,
/// so that a malformed length cannot cause a huge allocation.
pub(crate) fn read_to_vec(
    file: &fs::File,
    path: &Path,
    offset: u64,
    len: u64,
) -> Result<Vec<u8>, FileError> {
    let too_large = || FileError::new(path, FileErrorKind::OutOfMemory { bytes: len });
    let mut bytes = Vec::new();
    let in_memory = usize::try_from(len).map_err(|_| too_large())?;
    bytes.try_reserve_exact(in_memory).map_err(|_| too_large())?;
    bytes.resize(in_memory, 0);
    file.read_exact_at(offset, &mut bytes).map_err(|error| {
        let len = to_u64(bytes.len());
        FileError::of_read(path, ReadError::Read { error, offset, len })
    })?;
    Ok(bytes)
}
