//! The mark beside a ledger: the number of a commit that is certainly on disk.
//!
//! A truncated journal looks like a short one, a truncated WAL of SQLite looks like an empty one, and a
//! missing file looks like a new data directory. The mark reveals the difference: a ledger older than its
//! mark has lost commits. The mark is written after a commit is durable, and never synced, so it costs
//! next to nothing. A mark older than the ledger is normal.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::journal::Journal;
use super::seal::{seal_numbered, unseal_numbered};

/// Files of the ledger in a data directory: tables, journal, WAL of the tables, and mark.
pub(crate) const LEDGER: &str = "state.db";
pub(crate) const JOURNAL: &str = "state.journal";
const LOG: &str = "state.db-wal";
/// All files of the tables.
pub(crate) const TABLES: [&str; 3] = [LEDGER, LOG, "state.db-shm"];
const NAME: &str = "state.mark";
/// The saved pages.
pub(crate) const PAGES_FILE: &str = "pages.db";
/// Files that only a run with a ledger leaves, apart from the mark.
const LEFT: [&str; 3] = [JOURNAL, LOG, PAGES_FILE];
/// Files that a node without a cluster leaves beside its tables.
pub(crate) const TRACES: [&str; 2] = [JOURNAL, NAME];
/// Two slots, written alternately in separate sectors, so that a torn write destroys one at most.
const SLOT: u64 = 512;
const SLOTS: [u64; 2] = [0, SLOT];
/// Size of a sealed number.
const SIZE: usize = 16;
/// Offset of the format in the first page of a database.
const FORMAT_AT: u64 = 60;

/// The mark of an open ledger.
#[derive(Debug)]
pub(crate) struct CommitMark {
    path: PathBuf,
    file: Option<File>,
}

impl CommitMark {
    pub(crate) fn of(dir: &Path) -> Self {
        Self::in_file(dir.join(NAME))
    }

    /// A mark for another kind of numbered record.
    pub(crate) fn in_file(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The last commit known to be durable; 0 if there is none.
    pub(crate) fn read(&self) -> u64 {
        let Ok(file) = File::open(&self.path) else { return 0 };
        let slots = SLOTS.iter().filter_map(|at| {
            let mut sealed = [0; SIZE];
            file.read_exact_at(&mut sealed, *at).ok()?;
            let number = unseal_numbered(*at as i64, &sealed)?;
            Some(u64::from_le_bytes(number.try_into().ok()?))
        });
        slots.max().unwrap_or(0)
    }

    /// Checks that no ledger is missing, before a new one is created in its place.
    pub(crate) fn look_for_ledger(&self) -> Result<(), StoreError> {
        let beside = |name: &str| self.path.with_file_name(name);
        let length = |name: &str| std::fs::metadata(beside(name)).map_or(0, |data| data.len());
        let ledger = beside(LEDGER);
        let state = match std::fs::metadata(&ledger) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "is missing",
            Ok(data) if data.len() == 0 => "is empty",
            // All of its content may still be in the WAL.
            Ok(_) if length(LOG) == 0 && is_blank(&ledger) => "is empty",
            _ => return Ok(()),
        };
        let trace = match self.read() {
            0 => LEFT.into_iter().find(|name| length(name) > 0),
            _ => Some(NAME),
        };
        let Some(trace) = trace else { return Ok(()) };
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let none = if trace == PAGES_FILE {
            "; a node without a vote has no ledger: run this command on a node with a vote"
        } else {
            ""
        };
        Err(StoreError::Damaged(format!(
            "`{}` {state}, but `{trace}` beside it belongs to a run; restore it, or remove `{}` to \
             start over{none}",
            ledger.display(),
            dir.display(),
        )))
    }

    /// Whether there is a ledger. It is an error if the ledger is missing and other files of a run exist.
    /// A journal that begins with the first commit is a complete ledger.
    pub(crate) fn is_ledger_there(&self) -> Result<bool, StoreError> {
        if Journal::of(&self.path.with_file_name(JOURNAL))?.first()? == Some(1) {
            return Ok(true);
        }
        self.look_for_ledger()?;
        Ok(self.path.with_file_name(LEDGER).exists())
    }

    /// The problem of a ledger that ends at commit `held`, if the mark is newer.
    pub(crate) fn is_short(&self, held: u64) -> Option<String> {
        let made = self.read();
        (held < made).then(|| {
            let ledger = self.path.with_file_name(LEDGER);
            format!(
                "`{}` ends at commit {held}, but {made} were made: `{JOURNAL}` or `{LOG}` is \
                 truncated, changed or missing; restore it, or remove `{}` to continue from commit \
                 {held} and repeat the rest",
                ledger.display(),
                self.path.display()
            )
        })
    }

    /// Writes the number of a durable commit. Failures are ignored, because an older mark is valid.
    pub(crate) fn note(&mut self, commit: u64) {
        if self.file.is_none() {
            let made = File::options().create(true).truncate(false).write(true).open(&self.path);
            self.file = made.ok();
        }
        let at = SLOTS[commit as usize % SLOTS.len()];
        if let Some(file) = &self.file
            && let Err(error) =
                file.write_all_at(&seal_numbered(at as i64, &commit.to_le_bytes()), at)
        {
            tracing::debug!(%error, "the mark could not be written");
        }
    }
}

/// Whether a database was created and is still empty.
fn is_blank(database: &Path) -> bool {
    let mut format = [0; 4];
    let read = File::open(database).and_then(|file| file.read_exact_at(&mut format, FORMAT_AT));
    read.is_err() || format == [0; 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_valid_slot_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut mark = CommitMark::of(dir.path());
        assert_eq!(mark.read(), 0);
        for commit in 1..=9 {
            mark.note(commit);
            assert_eq!(CommitMark::of(dir.path()).read(), commit);
        }
        assert_eq!(mark.is_short(9), None);
        assert!(mark.is_short(8).unwrap().contains("commit 8, but 9"));
        // A torn write destroys one slot.
        let path = dir.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[SLOT as usize + 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(mark.read(), 8);
        std::fs::write(&path, vec![0; bytes.len()]).unwrap();
        assert_eq!(mark.read(), 0);
    }

    #[test]
    fn a_missing_ledger_is_an_error_only_beside_files_of_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mark = CommitMark::of(dir.path());
        mark.look_for_ledger().unwrap();
        // The process was killed while it created the file.
        std::fs::write(path("lock"), "").unwrap();
        std::fs::write(path(LEDGER), "").unwrap();
        mark.look_for_ledger().unwrap();
        std::fs::write(path(LEDGER), vec![0; 4096]).unwrap();
        std::fs::write(path(LOG), "frames").unwrap();
        mark.look_for_ledger().unwrap();
        std::fs::write(path(LEDGER), "").unwrap();
        let error = mark.look_for_ledger().unwrap_err().to_string();
        assert!(error.contains("`state.db-wal` beside it"), "{error}");
        std::fs::remove_file(path(LEDGER)).unwrap();
        let error = mark.look_for_ledger().unwrap_err().to_string();
        assert!(error.contains("is missing"), "{error}");
    }
}
