//! A temporary folder for a test's files, removed when dropped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub struct Temp(PathBuf);

impl Temp {
    pub fn new() -> Temp {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Temp(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the folder.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a sparse file of `len` bytes: `begin`, a hole, and `end`.
    pub fn write_sparse(&self, name: &str, begin: &[u8], len: u64, end: &[u8]) -> PathBuf {
        use std::io::{Seek, SeekFrom, Write};
        let path = self.write(name, begin);
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(len).unwrap();
        file.seek(SeekFrom::Start(len - end.len() as u64)).unwrap();
        file.write_all(end).unwrap();
        path
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
