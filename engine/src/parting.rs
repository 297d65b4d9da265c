//! The last moments of a node among others: its run has ended everywhere, it says goodbye, and stays a
//! little for those who have not heard. Killed then, it has nothing left to do, and nobody to do it
//! with; a mark in its data directory says so to the next process.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn mark(dir: &Path) -> PathBuf {
    dir.join("ended")
}

/// Begins: everything is written, and the exit code is known. Without the mark, the next process
/// waits for the others in vain.
pub(crate) fn begin(dir: &Path, code: u8) {
    let kept = File::create(mark(dir)).and_then(|mut file| {
        write!(file, "{code}")?;
        file.sync_all()
    });
    if let Err(error) = kept {
        tracing::debug!(%error, "no mark of the end");
    }
}

/// Ends in order, or begins something else.
pub(crate) fn end(dir: &Path) {
    drop(fs::remove_file(mark(dir)));
}

/// What the process before this one would have ended with, if it was killed then.
pub(crate) fn take(dir: &Path) -> Option<u8> {
    let text = fs::read_to_string(mark(dir)).ok()?;
    end(dir);
    text.parse().ok()
}
