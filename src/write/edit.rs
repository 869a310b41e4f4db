//! Changing the metadata of a file: in its place where the header's padding has room, else by a new
//! file with the same data. The tensors' entries stay as they are spelled.

use core::fmt::Write as _;
use core::ops::{ControlFlow, Range};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::prelude::v1::*;

use crate::base::convert::to_u64;
use crate::base::error::FRAME_BYTES;
use crate::base::limits::Limits;
use crate::header::frame::Header;
use crate::header::walk::{Item, Walk};
use crate::read::file::{File, FileError, FileErrorKind, Progress};
use crate::table::owned::OwnedTable;
use crate::write::error::{WriteError, WriteErrorKind};
use crate::write::plan::{write_map, write_padding, write_string, Writing, RESERVED};
use crate::write::save::{write_all_at, AtomicFile};

/// Bytes that are copied between two calls of the progress function.
const PIECE: u64 = 16 << 20;

/// What [`MetadataEdit::apply`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edited {
    /// The metadata were so already. The file was not touched.
    Unchanged,
    /// The header was changed, within its length.
    InPlace,
    /// The header did not fit. A new file with the same data took the old one's place.
    Rewritten,
}

/// Changes of a file's metadata.
///
/// Keys that are not named stay. The changed `__metadata__` has its keys in order; all other text of
/// the header stays as it is, unknown keys included.
///
/// If the new header fits the room of the old one, padding included, only the bytes that differ are
/// written, into the file itself: no data is read or moved, whatever the file's size. That is one
/// small write, but not one that a power failure could not tear. Otherwise the data are copied into a
/// new file, with the alignment that they have (up to 4096), which takes the old one's place as with
/// [`FileWriter`](crate::FileWriter). A symbolic link is followed.
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
    /// New values by keys, `None` for those to be removed.
    changes: BTreeMap<String, Option<String>>,
}

impl MetadataEdit {
    /// No changes so far.
    #[must_use]
    pub fn new() -> Self {
        MetadataEdit::default()
    }

    /// Sets the value of a key, which need not be there.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.changes.insert(key.into(), Some(value.into()));
        self
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: impl Into<String>) -> &mut Self {
        self.changes.insert(key.into(), None);
        self
    }

    /// Removes all keys that the file has; those that are set here are then all there are.
    pub fn clear(&mut self) -> &mut Self {
        self.clear = true;
        self
    }

    /// Changes a file, read and written with [`Limits::default`].
    ///
    /// # Errors
    /// The file cannot be read, or is not valid; the new header is not allowed; the file cannot be
    /// written. It is then as it was.
    pub fn apply(&self, path: impl AsRef<Path>) -> Result<Edited, WriteError> {
        self.apply_with(path, &Limits::DEFAULT, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`MetadataEdit::apply`], with limits of the caller's choice, and a function that is told
    /// the progress of copying data, every 16 MiB, and stops it by [`ControlFlow::Break`].
    ///
    /// # Errors
    /// As [`MetadataEdit::apply`].
    pub fn apply_with(
        &self,
        path: impl AsRef<Path>,
        limits: &Limits,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Edited, WriteError> {
        let path = path.as_ref();
        let target = fs::canonicalize(path)
            .map_err(|error| unreadable(FileError::new(path, FileErrorKind::Open(error))))?;
        let file = File::open_with(&target, limits).map_err(unreadable)?;
        let Some(metadata) = self.changed(&file) else { return Ok(Edited::Unchanged) };
        let room = file.table().header().len();
        let text = text_with(&file, limits, &metadata);
        let fits = text.len() <= room;
        let text = padded(text, &file, fits);
        let done = check(&text, &file, limits).and_then(|()| match fits {
            true => change_in_place(&file, &text).map(|()| Edited::InPlace),
            false => rewrite(&file, &text, progress).map(|()| Edited::Rewritten),
        });
        done.map_err(|error| error.at(path))
    }

    /// The metadata as they shall be. `None` if they are so.
    fn changed(&self, file: &File) -> Option<BTreeMap<String, String>> {
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

/// The text of a file's header with other metadata, without padding.
fn text_with(file: &File, limits: &Limits, metadata: &BTreeMap<String, String>) -> String {
    let table = file.table();
    let old = table.header();
    let mut map = String::new();
    // A string takes everything.
    let _ = write_map(&mut Writing(&mut map), metadata);
    let place = place_of_metadata(old, table.data_len(), limits);
    let (range, inserted) = match place {
        Some(range) => (range, map),
        None => {
            let at = old.find('{').map_or(0, |brace| brace.saturating_add(1));
            let mut member = String::new();
            let _ = write_string(&mut Writing(&mut member), RESERVED);
            let _ = write!(member, ":{map}{}", if table.is_empty() { "" } else { "," });
            (at..at, member)
        }
    };
    let before = old.get(..range.start).unwrap_or_default();
    let after = old.get(range.end..).unwrap_or_default();
    let after = after.trim_end_matches([' ', '\t', '\n', '\r']);
    [before, &inserted, after].concat()
}

/// Where the value of `__metadata__` stands in a valid header, if it is there.
fn place_of_metadata(text: &str, data_len: u64, limits: &Limits) -> Option<Range<usize>> {
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

/// A header with padding: to the length of the old one if it fits, else so that the data are aligned as
/// they were, up to a page.
fn padded(mut text: String, file: &File, fits: bool) -> String {
    let start = FRAME_BYTES.saturating_add(to_u64(text.len()));
    let old_start = file.table().data_start();
    let align = 1_u64 << old_start.trailing_zeros().clamp(3, 12);
    let new_start = if fits { old_start } else { start.next_multiple_of(align) };
    // A string takes everything.
    let _ = write_padding(&mut text, new_start.saturating_sub(start));
    text
}

/// Checks that a header is valid, for the data of a file.
fn check(text: &str, file: &File, limits: &Limits) -> Result<(), WriteError> {
    let checked = OwnedTable::parse(text.as_bytes().to_vec(), file.table().data_len(), limits);
    checked.map(drop).map_err(|error| WriteError::refused(error.kind()))
}

/// Writes those bytes of a file's header that differ from the new ones of the same length.
fn change_in_place(file: &File, text: &str) -> Result<(), WriteError> {
    let (old, new) = (file.table().header().as_bytes(), text.as_bytes());
    let failed = |error| WriteError::new(WriteErrorKind::Write(error));
    let differs = |(a, b): (&u8, &u8)| a != b;
    let Some(first) = old.iter().zip(new).position(differs) else { return Ok(()) };
    let same = old.iter().rev().zip(new.iter().rev()).position(differs).unwrap_or(0);
    let last = new.len().saturating_sub(same);
    let changed = new.get(first..last).unwrap_or_default();
    let output = fs::File::options().write(true).open(file.path()).map_err(failed)?;
    let offset = FRAME_BYTES.saturating_add(to_u64(first));
    write_all_at(&output, offset, changed).and_then(|()| output.sync_data()).map_err(failed)
}

/// Writes a new file of this header and the old one's data in the old one's place.
fn rewrite(
    file: &File,
    text: &str,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), WriteError> {
    let new = AtomicFile::create(file.path())?;
    let failed = |error| WriteError::new(WriteErrorKind::Write(error));
    let mut output = new.as_std();
    let permissions = file.as_std().metadata().map(|metadata| metadata.permissions());
    permissions.and_then(|permissions| output.set_permissions(permissions)).map_err(failed)?;
    output.write_all(&to_u64(text.len()).to_le_bytes()).map_err(failed)?;
    output.write_all(text.as_bytes()).map_err(failed)?;

    let (start, total) = (file.table().data_start(), file.table().data_len());
    let mut input = file.as_std();
    let unread = |error| {
        unreadable(FileError::new(
            file.path(),
            FileErrorKind::Read { error, offset: start, len: total },
        ))
    };
    input.seek(SeekFrom::Start(start)).map_err(unread)?;
    let mut done: u64 = 0;
    while done < total {
        let len = PIECE.min(total.saturating_sub(done));
        let copied = io::copy(&mut input.take(len), &mut output).map_err(failed)?;
        if copied < len {
            let kind = FileErrorKind::Shrunk { offset: start.saturating_add(done), len };
            return Err(unreadable(FileError::new(file.path(), kind)));
        }
        done = done.saturating_add(copied);
        if progress(Progress { done, total }).is_break() {
            return Err(WriteError::new(WriteErrorKind::Stopped));
        }
    }
    new.commit()
}

fn unreadable(error: FileError) -> WriteError {
    WriteError::new(WriteErrorKind::Read(error))
}
