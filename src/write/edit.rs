//! Editing a file's metadata: in place if it fits the header's padding, otherwise by writing a new
//! file with the same data. The text of the tensors' entries is not changed.

use core::fmt::Write as _;
use core::ops::{ControlFlow, Range};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::string::{String, ToString as _};

use crate::base::convert::to_u64;
use crate::base::error::FRAME_BYTES;
use crate::base::limits::Limits;
use crate::header::frame::Header;
use crate::header::walk::{Item, Walk};
use crate::read::file::{File, FileError, FileErrorKind, Progress};
use crate::table::owned::OwnedTable;
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::plan::{write_map, write_padding, write_string, TextWriter, RESERVED};
use crate::write::save::{write_all_at, AtomicFile};

/// The number of bytes copied between two calls of the progress function.
const CHUNK: u64 = 16 << 20;

/// What [`MetadataEdit::apply`] did to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edited {
    /// The file already had the requested metadata and was not touched.
    Unchanged,
    /// The header was changed in place. Its length is the same.
    InPlace,
    /// The new header did not fit. The file was replaced by a new one with the same data.
    Rewritten,
}

/// A set of changes to a file's metadata.
///
/// Keys that are not mentioned keep their values. The new `__metadata__` has sorted keys. All other
/// text of the header is kept as it is, including unknown keys.
///
/// If the new header fits into the old one, including its padding, only the bytes that differ are
/// written into the file itself. No data is read or moved, whatever the file's size. This is one
/// small write, but it is not atomic: a power failure can leave it half done. Otherwise the data is
/// copied to a new file with the same permissions and alignment (up to 4096), which replaces the
/// old file as with [`FileWriter`](crate::FileWriter). Symbolic links are followed.
///
/// ```
/// use safetensors_zero::{File, MetadataEdit};
///
/// # let folder = std::env::temp_dir().join(format!("safetensors-zero-edit-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("animals.safetensors");
/// # std::fs::copy("examples/animals.safetensors", &path)?;
/// MetadataEdit::new().set("licence", "MIT").remove("words").apply(&path)?;
/// let file = File::open(&path)?;
/// let metadata = file.metadata().unwrap();
/// assert_eq!(metadata.get("licence").unwrap(), "MIT");
/// assert!(metadata.get("words").is_none());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MetadataEdit {
    clear: bool,
    /// The new value of each changed key, `None` if the key is removed.
    changes: BTreeMap<String, Option<String>>,
}

impl MetadataEdit {
    /// Creates an edit without changes.
    #[must_use]
    pub fn new() -> Self {
        MetadataEdit::default()
    }

    /// Sets a key to a value. Adds the key if the file does not have it.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.changes.insert(key.into(), Some(value.into()));
        self
    }

    /// Removes a key if the file has it.
    pub fn remove(&mut self, key: impl Into<String>) -> &mut Self {
        self.changes.insert(key.into(), None);
        self
    }

    /// Removes all of the file's keys. Only keys set by this edit remain, whether they were set
    /// before or after this call.
    pub fn clear(&mut self) -> &mut Self {
        self.clear = true;
        self
    }

    /// Applies the changes to a file, with [`Limits::default`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not valid, or cannot be written, or if the
    /// limits do not allow the new header. The file is then unchanged, unless the failure occurred
    /// while writing in place or syncing.
    pub fn apply(&self, path: impl AsRef<Path>) -> Result<Edited, WriteError> {
        self.apply_with(path, &Limits::DEFAULT, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`MetadataEdit::apply`], with the given limits and a progress function.
    ///
    /// If data is copied, `progress` is called after every 16 MiB. It stops the edit by returning
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Same as [`MetadataEdit::apply`], and [`WriteErrorKind::Stopped`] if `progress` stops the
    /// edit.
    pub fn apply_with(
        &self,
        path: impl AsRef<Path>,
        limits: &Limits,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Edited, WriteError> {
        let path = path.as_ref();
        let target = fs::canonicalize(path)
            .map_err(|error| read_error(FileError::new(path, FileErrorKind::Open(error))))?;
        let file = File::open_with(&target, limits).map_err(read_error)?;
        let Some(metadata) = self.changed_metadata(&file) else { return Ok(Edited::Unchanged) };
        let old_len = file.table().header().len();
        let text = header_with(&file, limits, &metadata);
        let fits = text.len() <= old_len;
        let text = padded(text, &file, fits);
        let edited = check(&text, &file, limits).and_then(|()| match fits {
            true => overwrite_header(&file, &text).map(|()| Edited::InPlace),
            false => rewrite(&file, &text, progress).map(|()| Edited::Rewritten),
        });
        edited.map_err(|error| error.with_path(path))
    }

    /// Returns the new metadata, or `None` if it equals the file's.
    fn changed_metadata(&self, file: &File) -> Option<BTreeMap<String, String>> {
        let old: BTreeMap<String, String> = file
            .metadata()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let mut new = if self.clear { BTreeMap::new() } else { old.clone() };
        for (key, value) in &self.changes {
            match value {
                Some(value) => drop(new.insert(key.clone(), value.clone())),
                None => drop(new.remove(key)),
            }
        }
        (new != old).then_some(new)
    }
}

/// Returns the text of a file's header with its metadata replaced, without padding.
fn header_with(file: &File, limits: &Limits, metadata: &BTreeMap<String, String>) -> String {
    let table = file.table();
    let old = table.header();
    let mut map = String::new();
    // Writing to a string never fails.
    let _ = write_map(&mut TextWriter(&mut map), metadata);
    let (range, inserted) = match metadata_range(old, table.data_len(), limits) {
        Some(range) => (range, map),
        None => {
            let at = old.find('{').map_or(0, |brace| brace.saturating_add(1));
            let mut member = String::new();
            let _ = write_string(&mut TextWriter(&mut member), RESERVED);
            let _ = write!(member, ":{map}{}", if table.is_empty() { "" } else { "," });
            (at..at, member)
        }
    };
    let before = old.get(..range.start).unwrap_or_default();
    let after = old.get(range.end..).unwrap_or_default();
    let after = after.trim_end_matches([' ', '\t', '\n', '\r']);
    [before, &inserted, after].concat()
}

/// Returns the byte range of the value of `__metadata__` in a valid header, or `None` if it has
/// none.
fn metadata_range(text: &str, data_len: u64, limits: &Limits) -> Option<Range<usize>> {
    let header = Header::new(text.as_bytes(), data_len, limits).ok()?;
    let mut walk = Walk::new(header.parts());
    loop {
        match walk.next().ok()?? {
            Item::Tensor(_) => {}
            Item::Metadata(Some(metadata)) => return Some(metadata.begin()..walk.at()),
            Item::Metadata(None) => return Some(walk.at().saturating_sub("null".len())..walk.at()),
        }
    }
}

/// Pads a header: to the length of the old one if it fits, otherwise to the data's old alignment,
/// at most 4096.
fn padded(mut text: String, file: &File, fits: bool) -> String {
    let start = FRAME_BYTES.saturating_add(to_u64(text.len()));
    let old_start = file.table().data_start();
    let align = 1_u64 << old_start.trailing_zeros().clamp(3, 12);
    let new_start = if fits { old_start } else { start.next_multiple_of(align) };
    // Writing to a string never fails.
    let _ = write_padding(&mut text, new_start.saturating_sub(start));
    text
}

/// Checks that a header is valid with the file's data.
fn check(text: &str, file: &File, limits: &Limits) -> Result<(), WriteError> {
    let checked = OwnedTable::parse(text.as_bytes().to_vec(), file.table().data_len(), limits);
    checked.map(drop).map_err(|error| WriteError::refused(error.kind()))
}

/// Overwrites the range of a file's header that differs from a new header of the same length.
fn overwrite_header(file: &File, text: &str) -> Result<(), WriteError> {
    let (old, new) = (file.table().header().as_bytes(), text.as_bytes());
    let failed = |error| WriteError::new(WriteErrorKind::Write(error));
    let differs = |(a, b): (&u8, &u8)| a != b;
    let Some(first) = old.iter().zip(new).position(differs) else { return Ok(()) };
    let same_at_end = old.iter().rev().zip(new.iter().rev()).position(differs).unwrap_or(0);
    let end = new.len().saturating_sub(same_at_end);
    let changed = new.get(first..end).unwrap_or_default();
    let output = fs::File::options().write(true).open(file.path()).map_err(failed)?;
    let offset = FRAME_BYTES.saturating_add(to_u64(first));
    write_all_at(&output, offset, changed).and_then(|()| output.sync_data()).map_err(failed)
}

/// Replaces a file with a new one that has the given header and the same data.
fn rewrite(
    file: &File,
    text: &str,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), WriteError> {
    let new = AtomicFile::create(file.path())?;
    let failed = |error| WriteError::new(WriteErrorKind::Write(error));
    let mut output = new.as_std();
    output.write_all(&to_u64(text.len()).to_le_bytes()).map_err(failed)?;
    output.write_all(text.as_bytes()).map_err(failed)?;

    let (start, total) = (file.table().data_start(), file.table().data_len());
    let mut input = file.as_std();
    let seek_failed = |error| {
        read_error(FileError::new(
            file.path(),
            FileErrorKind::Read { error, offset: start, len: total },
        ))
    };
    input.seek(SeekFrom::Start(start)).map_err(seek_failed)?;
    let mut done: u64 = 0;
    while done < total {
        let len = CHUNK.min(total.saturating_sub(done));
        let copied = io::copy(&mut input.take(len), &mut output).map_err(failed)?;
        if copied < len {
            let kind = FileErrorKind::Shrunk { offset: start.saturating_add(done), len };
            return Err(read_error(FileError::new(file.path(), kind)));
        }
        done = done.saturating_add(copied);
        if progress(Progress { done, total }).is_break() {
            return Err(WriteError::new(WriteErrorKind::Stopped));
        }
    }
    new.commit()
}

fn read_error(error: FileError) -> WriteError {
    WriteError::new(WriteErrorKind::Read(error))
}
