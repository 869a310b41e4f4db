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
/// If the path is a symbolic link, the file that it leads to is replaced, and the link stays.
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
    /// The path as the caller gave it.
    named: PathBuf,
    /// The path without a symbolic link at its end.
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
    /// Creates the temporary file, in the folder of the file that the path leads to.
    ///
    /// If there is an old file, the new one gets its permission bits, and its owner and group as
    /// far as the system permits. Otherwise it has those of a new file.
    ///
    /// # Errors
    /// Returns an error if the path exists but is not a regular file, or if no file can be created
    /// in its folder.
    pub fn create(path: impl AsRef<Path>) -> Result<AtomicFile, WriteError> {
        let named = path.as_ref();
        let failed = |kind| WriteError::new(kind).with_path(named);
        let target = follow_links(named).map_err(|error| failed(WriteErrorKind::Create(error)))?;
        let old = fs::metadata(&target).ok();
        if let Some(found) = old.as_ref().and_then(|old| FileType::of(old.file_type())) {
            return Err(failed(WriteErrorKind::NotAFile(found)));
        }
        let (file, path) = create_temporary(&target, old.is_some())
            .map_err(|error| failed(WriteErrorKind::Create(error)))?;
        let temporary = Temporary { path, remove: true };
        if let Some(old) = old {
            keep_attributes(&file, &old).map_err(|error| failed(WriteErrorKind::Create(error)))?;
        }
        Ok(AtomicFile { file, named: named.to_owned(), target, temporary })
    }

    /// Returns the temporary file.
    #[must_use]
    pub fn as_std(&self) -> &fs::File {
        &self.file
    }

    /// Returns the path that the file was created with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.named
    }

    /// Syncs the temporary file and closes it.
    pub(crate) fn finish(self) -> Result<Finished, WriteError> {
        let AtomicFile { file, named, target, temporary } = self;
        match file.sync_all() {
            Ok(()) => Ok(Finished { named, target, temporary }),
            Err(error) => Err(WriteError::new(WriteErrorKind::Sync(error)).with_path(&named)),
        }
    }

    /// Syncs the temporary file, renames it over the target, and syncs the folder.
    ///
    /// # Errors
    /// Returns an error if one of these steps fails. The old file is untouched, unless the last
    /// step failed: the new file is then in place, but a power failure can still undo the rename.
    /// It is no error if the file system cannot sync this folder at all.
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
    named: PathBuf,
    target: PathBuf,
    temporary: Temporary,
}

impl Finished {
    /// Renames the file over its target, and syncs the folder.
    pub(crate) fn publish(mut self) -> Result<(), WriteError> {
        let failed = |kind: WriteErrorKind| WriteError::new(kind).with_path(&self.named);
        fs::rename(&self.temporary.path, &self.target)
            .map_err(|error| failed(WriteErrorKind::Rename(error)))?;
        self.temporary.remove = false;
        sync_folder(folder_of(&self.target)).map_err(|error| failed(WriteErrorKind::Sync(error)))
    }
}

/// Follows symbolic links at the end of a path, also one that leads to no file yet.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    /// The most links that Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(path);
        }
        path = folder_of(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Gives a new file the permission bits of the old one, and its owner and group as far as the system
/// permits. Without the old owner and group, the bits that run a file as its owner are left out.
fn keep_attributes(file: &fs::File, old: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{fchown, MetadataExt as _, PermissionsExt as _};
        let new = file.metadata()?;
        let (owner, group) = (old.uid(), old.gid());
        let kept = (new.uid(), new.gid()) == (owner, group)
            || fchown(file, Some(owner), Some(group)).is_ok();
        if !kept {
            // Not permitted to most users: the file then has the group of a new file.
            let _ = fchown(file, None, Some(group));
        }
        let mode = old.permissions().mode() & if kept { 0o7777 } else { 0o777 };
        file.set_permissions(fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    file.set_permissions(old.permissions())
}

/// Creates a file with a unique name in the target's folder. If it is `private`, only its owner can
/// open it.
fn create_temporary(target: &Path, private: bool) -> io::Result<(fs::File, PathBuf)> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = std::process::id();
        let name = format!(".safetensors-{id:x}-{count:x}-{:x}.partial", now.as_nanos());
        let path = folder_of(target).join(name);
        let mut options = fs::File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let _ = private;
        match options.open(&path) {
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

/// Syncs the names in a folder, where the system has a call for it. It is no error if this folder
/// cannot be synced: network and shared file systems have no such call, and a folder that cannot be
/// read cannot be opened for it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.or_else(|error| if is_unsupported(&error) { Ok(()) } else { Err(error) })
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

/// Returns `true` if an error means that the call is not supported or not permitted here.
#[cfg(unix)]
fn is_unsupported(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported)
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
