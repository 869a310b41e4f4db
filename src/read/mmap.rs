//! A file mapped into memory. This is the only module with `unsafe` code, and only the mapping
//! needs it.

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

/// A file mapped into memory, with its header read and checked.
///
/// This value owns both the map and the table, and can be stored, moved and shared.
/// [`Mmap::tensors`] returns [`SafeTensors`] that borrow it, in constant time. The header is copied
/// when the file is opened, so that later changes to the file cannot invalidate the checks.
///
/// [`File`] is just as lazy, without the dangers of a map. Use a map to get the data in place:
/// typed slices without a copy, and pages shared between processes.
pub struct Mmap {
    path: PathBuf,
    map: memmap2::Mmap,
    table: OwnedTable,
}

/// Options for mapping a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MmapOptions {
    /// The limits for the file.
    pub limits: Limits,
    /// Whether to load the whole file into memory at once, instead of each page when it is first
    /// used. Ignored on systems that do not support it.
    pub populate: bool,
}

/// The expected access pattern of a map, a hint to the system for reading ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// No particular pattern.
    Normal,
    /// Sequential reads from start to end.
    Sequential,
    /// Random reads, for which reading ahead is useless.
    Random,
    /// The range will be read soon, so the system can start to load it.
    WillNeed,
}

impl Mmap {
    /// Maps a file, and reads and checks its header with [`Limits::default`].
    ///
    /// # Safety
    /// While the map exists, the file must not be truncated or written to, by this process or any
    /// other. If it is truncated, accessing the missing part kills the program (SIGBUS on Unix, an
    /// exception on Windows). A failing disk or network has the same effect. If it is written to,
    /// bytes that Rust assumes to be constant change, which is undefined behaviour. The crate
    /// cannot prevent either. Replacing the file by renaming, as this crate's writer does, is safe.
    ///
    /// # Errors
    /// Same as [`File::open`]; or [`FileErrorKind::Map`] if the file is empty or cannot be mapped,
    /// as on some network file systems. [`File`] can read files that cannot be mapped.
    #[allow(unsafe_code, reason = "an unsafe fn: the caller keeps the file unchanged")]
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Mmap, FileError> {
        // SAFETY: the contract is the same.
        unsafe { Self::open_with(path, &MmapOptions::default()) }
    }

    /// Like [`Mmap::open`], but with the given options.
    ///
    /// # Safety
    /// Same as [`Mmap::open`].
    ///
    /// # Errors
    /// Same as [`Mmap::open`].
    #[allow(unsafe_code, reason = "an unsafe fn: the caller keeps the file unchanged")]
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
        // SAFETY: the caller guarantees that the file does not change while the map exists.
        let map = unsafe { map(&file, len, options.populate) };
        let map = map.map_err(|error| FileError::new(&path, FileErrorKind::Map(error)))?;
        Ok(Mmap { path, map, table })
    }

    /// Returns the tensors, with their data in the map. Takes constant time.
    #[must_use]
    pub fn tensors(&self) -> SafeTensors<'_, '_> {
        let table = self.table.table();
        let start = usize::try_from(table.data_start()).unwrap_or(usize::MAX);
        SafeTensors::of_table(table, self.map.get(start..).unwrap_or_default())
    }

    /// Returns the table, which describes the tensors without their data. Takes constant time.
    #[must_use]
    pub fn table(&self) -> Table<'_, '_> {
        self.table.table()
    }

    /// Returns the path that the file was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of the whole file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.map
    }

    /// Advises the system how the whole file will be read. Does nothing on systems without such a
    /// call, such as Windows.
    ///
    /// # Errors
    /// [`FileErrorKind::Map`] if the system refuses.
    pub fn advise(&self, advice: Advice) -> Result<(), FileError> {
        self.advise_range(advice, 0..u64::MAX)
    }

    /// Like [`Mmap::advise`], but for a byte range of the file. A tensor's range is its
    /// [`data_offsets`](crate::TensorInfo::data_offsets) plus [`data_start`](Table::data_start).
    /// The part of a range beyond the end of the file is ignored.
    ///
    /// # Errors
    /// [`FileErrorKind::Map`] if the system refuses.
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
/// While the map exists, the file must not be truncated or written to.
#[allow(unsafe_code, reason = "mapping a file is unsafe; nothing else here is")]
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
    // SAFETY: the caller guarantees that the file does not change while the map exists.
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

/// Same as [`Mmap::as_bytes`].
impl AsRef<[u8]> for Mmap {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
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
