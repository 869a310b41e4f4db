//! A file on disk, of which only the header is in memory.

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

/// A file on disk: its header in memory, its data where they are until they are asked for.
///
/// Opening costs what the header costs, however large the file. Reading goes through `&self` by
/// positioned reads, from as many threads as you like. Unlike a map it cannot crash the program: if
/// the file becomes shorter while it is open, reading what is gone is an error. Nothing can notice
/// that other bytes have been written into it.
///
/// ```
/// use safetensors_zero::File;
///
/// let file = File::open("examples/animals.safetensors")?;
/// let table = file.tensor("embedding.weight")?;
/// let mut rows = [0.0; 2 * 8];
/// table.dequant_rows(3..5, &mut rows)?;
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
    /// Opens a file and reads and checks its header, with [`Limits::default`].
    ///
    /// # Errors
    /// The path cannot be opened, or is no regular file: a folder (see [`Shards`](crate::Shards)), a
    /// pipe, a device; or what is wrong with the file.
    pub fn open(path: impl AsRef<Path>) -> Result<File, FileError> {
        Self::open_with(path, &Limits::DEFAULT)
    }

    /// As [`File::open`], with limits of the caller's choice.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<File, FileError> {
        let path = path.as_ref();
        Self::from_std(open_regular(path)?, path, limits)
    }

    /// As [`File::open_with`], of a file that is open already. The path is for messages.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn from_std(
        file: fs::File,
        path: impl Into<PathBuf>,
        limits: &Limits,
    ) -> Result<File, FileError> {
        let path = path.into();
        let table = read_table(&file, &path, limits)?;
        Ok(File { path, file: Arc::new(file), table })
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    #[must_use]
    pub fn as_std(&self) -> &fs::File {
        &self.file
    }

    /// The table, which tells of the tensors without their data. Takes constant time.
    #[must_use]
    pub fn table(&self) -> Table<'_, '_> {
        self.table.table()
    }

    /// What the header says of the tensor with this name. See [`Table::info`].
    ///
    /// # Errors
    /// No tensor has the name.
    pub fn info(&self, name: &str) -> Result<TensorInfo<'_>, FileError> {
        self.table().info(name).map_err(|error| self.error(error.into()).of(name))
    }

    /// The tensor with this name.
    ///
    /// # Errors
    /// No tensor has the name.
    pub fn tensor(&self, name: &str) -> Result<FileTensor<'_>, FileError> {
        Ok(self.tensor_of(self.info(name)?))
    }

    /// The tensors in the order of their data.
    pub fn tensors(&self) -> impl Iterator<Item = FileTensor<'_>> {
        let count = self.len();
        // The table is made anew each time, and does not outlive the step that needs it.
        (0..count).filter_map(|at| self.table().nth(at)).map(|info| self.tensor_of(info))
    }

    /// The names in the order of the data.
    pub fn names(&self) -> impl Iterator<Item = Text<'_>> {
        (0..self.len()).filter_map(|at| self.table().nth(at)).map(|info| info.name)
    }

    /// How many tensors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// The file's metadata. `None` if there is none, or if it is null.
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

    /// What a map is made of.
    #[cfg(feature = "mmap")]
    pub(crate) fn into_parts(self) -> (PathBuf, Arc<fs::File>, OwnedTable) {
        (self.path, self.file, self.table)
    }
}

/// Opens a path, if it is a regular file. A pipe is not opened, since that could wait for ever.
pub(crate) fn open_regular(path: &Path) -> Result<fs::File, FileError> {
    let failed = |error| FileError::new(path, FileErrorKind::Open(error));
    let check = |metadata: fs::Metadata| match FileType::of(metadata.file_type()) {
        None => Ok(()),
        Some(found) => Err(FileError::new(path, FileErrorKind::NotAFile(found))),
    };
    check(fs::metadata(path).map_err(failed)?)?;
    let file = fs::File::open(path).map_err(failed)?;
    // It may be another by now.
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

/// Reads bytes that the file was found to have.
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
