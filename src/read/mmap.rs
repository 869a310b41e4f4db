//! A file that is mapped into memory: the one place of the crate that has `unsafe`, for the mapping
//! alone.

use core::fmt;
use core::ops::Range;
use std::io;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;
use std::sync::Arc;

use crate::base::limits::Limits;
use crate::read::file::{File, FileError, FileErrorKind};
use crate::read::source::{EndOfSource, Source};
use crate::table::owned::OwnedTable;
use crate::table::table::Table;
use crate::tensor::tensors::SafeTensors;

/// A file mapped into memory, its header read and checked.
///
/// The map and the table are one value, which can be kept, moved and shared; [`Mmap::tensors`] gives
/// the [`SafeTensors`] that borrow it, in constant time. The header is copied when the file is opened,
/// so that what was checked stays what is read.
///
/// [`File`] reads as lazily without a map, and without the dangers of one. A map is for those who want
/// the data in place: typed slices without a copy, pages shared between processes.
pub struct Mmap {
    path: PathBuf,
    map: memmap2::Mmap,
    table: OwnedTable,
}

/// How a file is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MmapOptions {
    /// What is accepted of the file.
    pub limits: Limits,
    /// Read the whole file into memory at once, instead of each page when it is first used. Where the
    /// system cannot do that, nothing happens.
    pub populate: bool,
}

/// What a program is going to do with a map, for the system to read ahead or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing in particular.
    Normal,
    /// Read it from begin to end.
    Sequential,
    /// Read here and there, where reading ahead is in vain.
    Random,
    /// Read it soon: the system may begin to load it.
    WillNeed,
}

impl Mmap {
    /// Maps a file and reads and checks its header, with [`Limits::default`].
    ///
    /// # Safety
    /// As long as the map lives, nobody may shorten the file or write into it, in this process or
    /// another. If the file is shortened, touching what is gone kills the program (SIGBUS on Unix, an
    /// exception on Windows), and so does a disk or a network that fails. If it is written into, bytes
    /// that Rust takes to be constant change, which is undefined behaviour. The crate cannot prevent
    /// either; files that are replaced by renaming, as this crate's writer replaces them, are safe.
    ///
    /// # Errors
    /// As [`File::open`]; or the file is empty, or cannot be mapped, as on some network file systems:
    /// [`FileErrorKind::Map`]. [`File`] reads what cannot be mapped.
    #[allow(unsafe_code, reason = "an unsafe fn: the caller vouches for the file")]
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Mmap, FileError> {
        // SAFETY: the contract is the same.
        unsafe { Self::open_with(path, &MmapOptions::default()) }
    }

    /// As [`Mmap::open`], with options of the caller's choice.
    ///
    /// # Safety
    /// As [`Mmap::open`].
    ///
    /// # Errors
    /// As [`Mmap::open`].
    #[allow(unsafe_code, reason = "an unsafe fn: the caller vouches for the file")]
    pub unsafe fn open_with(
        path: impl AsRef<Path>,
        options: &MmapOptions,
    ) -> Result<Mmap, FileError> {
        let path = path.as_ref();
        let file = crate::read::file::open_regular(path)?;
        let failed = |error| FileError::new(path, FileErrorKind::Map(error));
        if file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let message = "the file is empty";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, message)));
        }
        let (path, file, table) = File::from_std(file, path, &options.limits)?.into_parts();
        let len = table.table().data_start().saturating_add(table.table().data_len());
        // SAFETY: the caller vouches that the file stays as it is while the map lives.
        let map = unsafe { map(&file, len, options.populate) };
        let map = map.map_err(|error| FileError::new(&path, FileErrorKind::Map(error)))?;
        Ok(Mmap { path, map, table })
    }

    /// The tensors, whose data are in the map. Takes constant time.
    #[must_use]
    pub fn tensors(&self) -> SafeTensors<'_, '_> {
        let table = self.table.table();
        let start = usize::try_from(table.data_start()).unwrap_or(usize::MAX);
        SafeTensors::of_table(table, self.map.get(start..).unwrap_or_default())
    }

    /// The table, which tells of the tensors without their data. Takes constant time.
    #[must_use]
    pub fn table(&self) -> Table<'_, '_> {
        self.table.table()
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.map
    }

    /// Tells the system what is going to be read of the whole file. Where there is no such call, as on
    /// Windows, nothing happens.
    ///
    /// # Errors
    /// The system refuses.
    pub fn advise(&self, advice: Advice) -> Result<(), FileError> {
        self.advise_range(advice, 0..u64::MAX)
    }

    /// As [`Mmap::advise`], of a range of the file such as a tensor's
    /// [`data_offsets`](crate::TensorInfo::data_offsets) after the data's
    /// [begin](Table::data_start). What is beyond the file does not count.
    ///
    /// # Errors
    /// The system refuses.
    pub fn advise_range(&self, advice: Advice, range: Range<u64>) -> Result<(), FileError> {
        let in_map =
            |at: u64| usize::try_from(at).map_or(self.map.len(), |at| at.min(self.map.len()));
        let (start, end) = (in_map(range.start), in_map(range.end));
        advise(&self.map, advice, start, end.saturating_sub(start))
            .map_err(|error| FileError::new(&self.path, FileErrorKind::Map(error)))
    }
}

#[cfg(unix)]
fn advise(map: &memmap2::Mmap, advice: Advice, offset: usize, len: usize) -> io::Result<()> {
    let advice = match advice {
        Advice::Normal => memmap2::Advice::Normal,
        Advice::Sequential => memmap2::Advice::Sequential,
        Advice::Random => memmap2::Advice::Random,
        Advice::WillNeed => memmap2::Advice::WillNeed,
    };
    map.advise_range(advice, offset, len)
}

#[cfg(not(unix))]
fn advise(_: &memmap2::Mmap, _: Advice, _: usize, _: usize) -> io::Result<()> {
    Ok(())
}

/// Maps the first `len` bytes of a file.
///
/// # Safety
/// As long as the map lives, nobody may shorten the file or write into it.
#[allow(unsafe_code, reason = "mapping a file is unsafe, and this is all that is")]
unsafe fn map(file: &Arc<std::fs::File>, len: u64, populate: bool) -> io::Result<memmap2::Mmap> {
    let Ok(len) = usize::try_from(len) else {
        let message = "the file is larger than the address space";
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
    };
    let mut options = memmap2::MmapOptions::new();
    options.len(len);
    if populate {
        options.populate();
    }
    // SAFETY: the caller vouches that the file stays as it is while the map lives.
    unsafe { options.map(&**file) }
}

impl fmt::Debug for Mmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mmap")
            .field("path", &self.path)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl Source for Mmap {
    type Error = EndOfSource;

    fn len(&self) -> Result<u64, EndOfSource> {
        Source::len(self.as_bytes())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), EndOfSource> {
        self.as_bytes().read_exact_at(offset, buffer)
    }
}
