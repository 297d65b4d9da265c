//! The mark beside a ledger: the number of a commit that is on disk for certain.
//!
//! A journal that ends early, or is not there, looks like one of which no more was ever written, and
//! so does the log of an SQLite file; a missing file looks like a new one. The mark knows better. It is written after a commit is
//! durable and never waited for, so it costs next to nothing; a mark that is older than the ledger
//! says nothing, and a ledger that is older than its mark has lost what was committed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::journal::Journal;
use super::seal::{seal_numbered, unseal_numbered};

/// The ledger in a data directory, its journal, the log of its tables, and its mark.
pub(crate) const LEDGER: &str = "state.db";
pub(crate) const JOURNAL: &str = "state.journal";
const LOG: &str = "state.db-wal";
/// All files of the tables.
pub(crate) const TABLES: [&str; 3] = [LEDGER, LOG, "state.db-shm"];
const NAME: &str = "state.mark";
/// The saved pages.
pub(crate) const PAGES_FILE: &str = "pages.db";
/// Traces of a run that has a ledger, beside the mark.
const LEFT: [&str; 3] = [JOURNAL, LOG, PAGES_FILE];
/// What a process that was alone leaves beside its tables.
pub(crate) const TRACES: [&str; 2] = [JOURNAL, NAME];
/// Two places that are written in turn, each in a sector of its own: a torn one leaves the other.
const SLOT: u64 = 512;
const SLOTS: [u64; 2] = [0, SLOT];
/// A number behind its seal.
const SIZE: usize = 16;
/// Where the format stands in the first page of a database.
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

    /// The mark of something else that is numbered.
    pub(crate) fn in_file(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The last commit that is known to be durable; 0 if none is.
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

    /// Sees that a ledger is there, if there was one, before anything is made in its place.
    pub(crate) fn look_for_ledger(&self) -> Result<(), StoreError> {
        let beside = |name: &str| self.path.with_file_name(name);
        let length = |name: &str| std::fs::metadata(beside(name)).map_or(0, |data| data.len());
        let ledger = beside(LEDGER);
        let state = match std::fs::metadata(&ledger) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "is gone",
            Ok(data) if data.len() == 0 => "is empty",
            // All of it may still be in the log.
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
            "; a node without a vote has none: ask one with a vote"
        } else {
            ""
        };
        Err(StoreError::Damaged(format!(
            "`{}` {state}, but `{trace}` beside it tells of a run; put it back, or remove `{}` to \
             begin anew{none}",
            ledger.display(),
            dir.display(),
        )))
    }

    /// Whether there is a ledger; none where traces tell of one is an error. A journal from the
    /// first commit on is a whole one.
    pub(crate) fn is_ledger_there(&self) -> Result<bool, StoreError> {
        if Journal::of(&self.path.with_file_name(JOURNAL))?.first()? == Some(1) {
            return Ok(true);
        }
        self.look_for_ledger()?;
        Ok(self.path.with_file_name(LEDGER).exists())
    }

    /// What is wrong with a ledger that holds so many commits, if anything is.
    pub(crate) fn is_short(&self, held: u64) -> Option<String> {
        let made = self.read();
        (held < made).then(|| {
            let ledger = self.path.with_file_name(LEDGER);
            format!(
                "`{}` ends at commit {held}, but {made} were made: its journal `{JOURNAL}` or its \
                 log `{LOG}` is cut, changed or gone; put it back, or remove `{}` to go on from \
                 commit {held} and do the rest again",
                ledger.display(),
                self.path.display()
            )
        })
    }

    /// Notes a durable commit. What cannot be noted is not: an older mark is a good one.
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
            tracing::debug!(%error, "the mark stays as it is");
        }
    }
}

/// Whether a database was made and nothing was put into it.
fn is_blank(database: &Path) -> bool {
    let mut format = [0; 4];
    let read = File::open(database).and_then(|file| file.read_exact_at(&mut format, FORMAT_AT));
    read.is_err() || format == [0; 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_slot_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut mark = CommitMark::of(dir.path());
        assert_eq!(mark.read(), 0);
        for commit in 1..=9 {
            mark.note(commit);
            assert_eq!(CommitMark::of(dir.path()).read(), commit);
        }
        assert_eq!(mark.is_short(9), None);
        assert!(mark.is_short(8).unwrap().contains("commit 8, but 9"));
        // A torn write takes one of them.
        let path = dir.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[SLOT as usize + 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(mark.read(), 8);
        std::fs::write(&path, vec![0; bytes.len()]).unwrap();
        assert_eq!(mark.read(), 0);
    }

    #[test]
    fn a_missing_ledger_is_missed_only_where_one_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mark = CommitMark::of(dir.path());
        mark.look_for_ledger().unwrap();
        // A start that was killed while the file was made.
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
        assert!(error.contains("is gone"), "{error}");
    }
}
