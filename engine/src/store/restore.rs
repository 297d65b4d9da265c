//! Restores a ledger from its files: the tables in `state.db`, and the newer commits in `state.journal`.

use std::path::Path;

use super::StoreError;
use super::journal::{Journal, JournalRecord};
use super::mark::{CommitMark, JOURNAL, LEDGER, TABLES};
use super::sqlite::{SqliteTables, StoredLedger, TableOwner};
use crate::ledger::{Command, Ledger, Stamp};

/// A ledger that continues where the last process ended.
#[derive(Debug)]
pub(crate) struct RestoredLedger {
    pub(crate) ledger: Ledger<SqliteTables>,
    pub(crate) journal: Journal,
    pub(crate) mark: CommitMark,
}

/// Appends a command to a record of the journal.
pub(crate) fn encode_command(
    record: &mut Vec<u8>,
    stamp: Stamp,
    command: &Command,
) -> Result<(), StoreError> {
    let bytes = std::mem::take(record);
    *record = postcard::to_extend(&(stamp, command), bytes)
        .map_err(|error| StoreError::Failed(format!("cannot encode a command: {error}")))?;
    Ok(())
}

impl RestoredLedger {
    /// Opens or creates the files in a locked directory. If the journal begins with the first commit, the
    /// tables may never have been synced: damaged ones are then rebuilt from the journal.
    pub(crate) fn open(dir: &Path, seen_memory: u64) -> Result<Self, StoreError> {
        let (journal, mark) = (Journal::of(&dir.join(JOURNAL))?, CommitMark::of(dir));
        let is_whole = journal.first()? == Some(1);
        if !is_whole {
            mark.look_for_ledger()?;
        }
        let open = || {
            let mut tables =
                SqliteTables::open(Some(&dir.join(LEDGER)), seen_memory, TableOwner::Solo)?;
            let stored = tables.restore()?;
            Ok((tables, stored))
        };
        let (tables, stored) = match open() {
            Err(StoreError::Damaged(words)) if is_whole => {
                tracing::info!("rebuilt from `{JOURNAL}`: {words}");
                for name in TABLES {
                    remove(&dir.join(name))?;
                }
                open()?
            }
            opened => opened?,
        };
        Self::apply(tables, stored, journal, mark)
    }

    /// Opens the files for reading only. Missing tables are created in memory.
    pub(crate) fn look(dir: &Path, has_tables: bool, seen_memory: u64) -> Result<Self, StoreError> {
        let (journal, mark) = (Journal::of(&dir.join(JOURNAL))?, CommitMark::of(dir));
        let file = dir.join(LEDGER);
        let file = has_tables.then_some(file.as_path());
        let mut tables = SqliteTables::open(file, seen_memory, TableOwner::Solo)?;
        let stored = tables.restore()?;
        Self::apply(tables, stored, journal, mark)
    }

    /// Applies the commits of the journal that the tables do not have.
    fn apply(
        mut tables: SqliteTables,
        (core, lanes): StoredLedger,
        mut journal: Journal,
        mark: CommitMark,
    ) -> Result<Self, StoreError> {
        match tables.journal {
            0 => tables.journal = journal.id(),
            owner => journal.belong_to(owner, LEDGER)?,
        }
        let (name, mut held) = (tables.name.clone(), tables.commits());
        let mut ledger = Ledger::new(core, lanes, tables);
        journal.read(|record| {
            if record.number <= held {
                return Ok(());
            }
            if record.number != held + 1 {
                return Err(StoreError::Damaged(format!(
                    "`{name}` ends at commit {held}, but its journal `{JOURNAL}` begins with commit \
                     {}: the file is an old copy, or `{name}-wal` is truncated or missing; restore it, \
                     or remove the data directory to start over",
                    record.number
                )));
            }
            replay(&mut ledger, &record, &name)?;
            held = record.number;
            Ok(())
        })?;
        if journal.next() != held + 1 {
            journal.begin_at(held + 1);
        }
        match mark.is_short(held) {
            Some(words) => Err(StoreError::Damaged(words)),
            None => Ok(Self { ledger, journal, mark }),
        }
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Failed(format!("`{}`: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

fn replay(
    ledger: &mut Ledger<SqliteTables>,
    record: &JournalRecord<'_>,
    name: &str,
) -> Result<(), StoreError> {
    let mut bytes = record.bytes;
    while !bytes.is_empty() {
        let ((stamp, command), rest): ((Stamp, Command), &[u8]) = postcard::take_from_bytes(bytes)
            .map_err(|error| {
                let number = record.number;
                StoreError::Damaged(format!("`{name}`: commit {number} of its journal: {error}"))
            })?;
        ledger.apply(stamp, command)?;
        bytes = rest;
    }
    Ok(())
}
