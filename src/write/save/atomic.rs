//! A file that replaces another atomically.

use std::borrow::ToOwned as _;
use std::format;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::read::file::FileType;
use crate::write::error::{WriteError, WriteErrorKind};

/// A file of any content that replaces another in one step, or not at all.
///
/// Bytes go to a temporary file in the target's folder, named `.safetensors-….partial`.
/// [`commit`](AtomicFile::commit) syncs it and renames it over the target. Until then the old file
/// is untouched. Dropping an `AtomicFile` without a commit removes the temporary file; a process
/// that is killed leaves it behind.
///
/// [`FileWriter`](crate::FileWriter) writes model files this way. Use an `AtomicFile` for other
/// files of a model, such as a `config.json`.
///
/// ```
/// use safetensors_zero::AtomicFile;
/// use std::io::Write as _;
///
/// # let folder = std::env::temp_dir().join(format!("safetensors-zero-atomic-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("config.json");
/// let mut file = AtomicFile::create(&path)?;
/// file.write_all(b"{}")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    file: fs::File,
    target: PathBuf,
    /// Removed on drop, unless it has become the target.
    temporary: Temporary,
}

#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    remove: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.remove {
            // Failures are ignored: a destructor cannot report them.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl AtomicFile {
    /// Creates the temporary file, with the permissions of a new file.
    ///
    /// # Errors
    /// Returns an error if the path exists but is not a regular file, or if no file can be created
    /// in its folder.
    pub fn create(path: impl AsRef<Path>) -> Result<AtomicFile, WriteError> {
        let target = path.as_ref();
        if let Ok(metadata) = fs::metadata(target) {
            if let Some(found) = FileType::of(metadata.file_type()) {
                return Err(WriteError::new(WriteErrorKind::NotAFile(found)).with_path(target));
            }
        }
        let (file, path) = create_temporary(target)
            .map_err(|error| WriteError::new(WriteErrorKind::Create(error)).with_path(target))?;
        let temporary = Temporary { path, remove: true };
        Ok(AtomicFile { file, target: target.to_owned(), temporary })
    }

    /// Returns the temporary file.
    #[must_use]
    pub fn as_std(&self) -> &fs::File {
        &self.file
    }

    /// Returns the path of the file to replace.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Syncs the temporary file and closes it.
    pub(crate) fn finish(self) -> Result<Finished, WriteError> {
        let AtomicFile { file, target, temporary } = self;
        match file.sync_all() {
            Ok(()) => Ok(Finished { target, temporary }),
            Err(error) => Err(WriteError::new(WriteErrorKind::Sync(error)).with_path(&target)),
        }
    }

    /// Syncs the temporary file, renames it over the target, and syncs the folder.
    ///
    /// # Errors
    /// Returns an error if one of these steps fails. The old file is untouched, unless the last
    /// step failed: the new file is then in place, but a power failure can still undo the rename.
    pub fn commit(self) -> Result<(), WriteError> {
        self.finish()?.publish()
    }
}

impl io::Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A temporary file that is synced and closed, but not yet renamed.
#[derive(Debug)]
pub(crate) struct Finished {
    target: PathBuf,
    temporary: Temporary,
}

impl Finished {
    /// Renames the file over its target, and syncs the folder.
    pub(crate) fn publish(mut self) -> Result<(), WriteError> {
        let failed = |kind: WriteErrorKind| WriteError::new(kind).with_path(&self.target);
        fs::rename(&self.temporary.path, &self.target)
            .map_err(|error| failed(WriteErrorKind::Rename(error)))?;
        self.temporary.remove = false;
        sync_folder(folder_of(&self.target)).map_err(|error| failed(WriteErrorKind::Sync(error)))
    }
}

/// Creates a file with a unique name in the target's folder.
fn create_temporary(target: &Path) -> io::Result<(fs::File, PathBuf)> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = std::process::id();
        let name = format!(".safetensors-{id:x}-{count:x}-{:x}.partial", now.as_nanos());
        let path = folder_of(target).join(name);
        match fs::File::options().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Syncs the names in a folder, where the system has a call for it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::File::open(folder)?.sync_all()?;
    let _ = folder;
    Ok(())
}

/// Writes all of the bytes at an offset.
pub(crate) fn write_all_at(file: &fs::File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
    }
    #[cfg(windows)]
    {
        let (mut offset, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let written = match std::os::windows::fs::FileExt::seek_write(file, rest, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            offset = offset.saturating_add(crate::base::convert::to_u64(written));
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }
    #[cfg(not(any(unix, windows)))]
    {
        use io::{Seek as _, Write as _};
        let mut file = file;
        file.seek(io::SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }
}
