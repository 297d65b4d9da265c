//! The lock on a data directory: one process at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use super::StoreError;

/// A locked data directory; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct DirLock {
    file: File,
}

impl DirLock {
    /// Makes the directory if it is not there, and locks it.
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
        // Closing the file would not do: a child that some thread is just starting has a copy of
        // it until its program is loaded, and the lock belongs to all copies.
        drop(self.file.unlock());
    }
}

/// A directory that is made here is there after a power cut too.
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

    /// Programs started meanwhile.
    const STARTS: usize = 60;

    #[test]
    fn the_lock_is_free_at_once_even_while_other_threads_start_programs() {
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
