//! The lock on a data directory, so that only one process uses it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use super::StoreError;

/// A locked data directory. Dropping this releases the lock.
#[derive(Debug)]
pub(crate) struct DirLock {
    file: File,
}

impl DirLock {
    /// Creates the directory if necessary, and locks it.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let failed = |error: &io::Error| match error.kind() {
            io::ErrorKind::StorageFull => StoreError::Full(format!("`{}`: {error}", dir.display())),
            _ => StoreError::Failed(format!("data directory `{}`: {error}", dir.display())),
        };
        make(dir).map_err(|error| failed(&error))?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join("lock"))
            .map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
            Err(TryLockError::Error(error)) => Err(failed(&error)),
        }
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that another thread is just starting has a
        // copy of it, and the lock lasts until all copies are closed.
        drop(self.file.unlock());
    }
}

/// Creates a directory that survives a power failure.
fn make(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(dir)?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Number of programs that the second thread starts.
    const STARTS: usize = 60;

    #[test]
    fn a_dropped_lock_is_free_at_once_while_other_threads_start_programs() {
        let dir = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        let held = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..STARTS {
                    assert!(Command::new("true").status().unwrap().success());
                }
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                let Ok(lock) = DirLock::take(dir.path()) else { return true };
                assert!(DirLock::take(dir.path()).is_err(), "one at a time");
                drop(lock);
            }
            false
        });
        assert!(!held, "a lock that was dropped is still held");
    }
}
