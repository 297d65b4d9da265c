//! The exit mark: a file `ended` in the data directory of a node among others.
//!
//! At the end of a run a node has written everything and waits only for other nodes. If it is killed
//! then, its next process may find no other node and nothing to do. The mark holds the exit code with
//! which that process ends instead of waiting.

use std::fs;
use std::path::{Path, PathBuf};

use crate::threads::ignore::ignore_leftover;

fn mark(dir: &Path) -> PathBuf {
    dir.join("ended")
}

/// Writes the mark. It is not synced: after a power cut, or if the write fails, the next process waits
/// for other nodes.
pub(crate) fn write(dir: &Path, code: u8) {
    if let Err(error) = fs::write(mark(dir), code.to_string()) {
        tracing::debug!(%error, "the exit mark could not be written");
    }
}

/// Removes the mark of a process that has left, or that begins another run.
pub(crate) fn remove(dir: &Path) {
    ignore_leftover(fs::remove_file(mark(dir)));
}

/// The exit code of the process before this one, if it was killed when its run had ended.
pub(crate) fn code(dir: &Path) -> Option<u8> {
    fs::read_to_string(mark(dir)).ok()?.parse().ok()
}
