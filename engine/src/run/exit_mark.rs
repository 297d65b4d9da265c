//! The last moments of a node among others: everything is written here, it says so and goodbye, and
//! stays a little for those who have not heard. Killed then, it may have nothing left to do, and nobody
//! to do it with; a mark in its data directory says so to the next process.

use std::fs;
use std::path::{Path, PathBuf};

use crate::threads::ignore::ignore_leftover;

fn mark(dir: &Path) -> PathBuf {
    dir.join("ended")
}

/// Begins: everything is written, and the exit code is known. Without the mark, the next process
/// waits for the others in vain; after a power cut it may, for nothing is synced here.
pub(crate) fn begin(dir: &Path, code: u8) {
    if let Err(error) = fs::write(mark(dir), code.to_string()) {
        tracing::debug!(%error, "no mark of the end");
    }
}

/// Ends in order, or begins something else.
pub(crate) fn end(dir: &Path) {
    ignore_leftover(fs::remove_file(mark(dir)));
}

/// What the process before this one would have ended with, if it was killed then.
pub(crate) fn code(dir: &Path) -> Option<u8> {
    fs::read_to_string(mark(dir)).ok()?.parse().ok()
}
