//! The files of raft's log: journals with consecutive numbers. One write is one record and one sync. Each
//! file begins with all named records, so older files can be removed once their entries are purged.
//!
//! | file | holds |
//! | --- | --- |
//! | `raft-000001.journal`, ... | the records |
//! | `raft.mark` | how many records were synced, so that a lost file is noticed |

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cluster::messages::{LogEntry, LogId, encode};
use crate::cluster::raft_log::name;
use crate::failpoint;
use crate::store::StoreError;
use crate::store::journal::{Journal, sync_name};
use crate::store::mark::CommitMark;

/// Format of the records. Each record begins with it, and another format is refused.
const FORMAT: u8 = 3;
/// Prefix and suffix of the file names.
const NAME: (&str, &str) = ("raft-", ".journal");
/// File with the count of synced records.
const MARK: &str = "raft.mark";
/// Bytes of the buffer that are kept for the next record.
const BUFFER_BYTES: usize = 256 << 10;
/// File of the first format, which is not read any more.
const OLD: &str = "raft.db";

/// One change of the log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LogChange {
    /// A file begins. Holds the index of the next entry.
    Begin(u64),
    /// A named record replaces the one before.
    Keep(String, #[serde(with = "serde_bytes")] Vec<u8>),
    Entries(Vec<LogEntry>),
    /// Entries from this one on are cut off.
    Cut(u64),
    /// Entries up to this one are purged.
    Purge(LogId),
}

/// The position of the record that holds an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordPlace {
    part: u64,
    at: u64,
}

#[derive(Debug)]
struct LogPart {
    number: u64,
    journal: Journal,
    /// The index after the last entry that was ever written to it.
    reach: u64,
}

impl LogPart {
    /// Checks that the next journal belongs to the same log, and returns the number of its first record.
    fn lead_to(&self, journal: &mut Journal) -> Result<u64, StoreError> {
        let name = format!("{}{:06}{}", NAME.0, self.number, NAME.1);
        journal.belong_to(self.journal.id(), &name)?;
        Ok(self.journal.next())
    }
}

/// Decodes a record.
fn decode(record: &[u8], path: &Path) -> Result<Vec<LogChange>, StoreError> {
    let damaged = |words: String| StoreError::Damaged(format!("`{}`: {words}", path.display()));
    let Some((format, changes)) = record.split_first() else {
        return Err(damaged("an empty record".to_owned()));
    };
    let known = i64::from(FORMAT);
    match StoreError::of_format(i64::from(*format), known, &path.display().to_string()) {
        Some(error) => Err(error),
        None => {
            postcard::from_bytes(changes).map_err(|error| damaged(format!("a record: {error}")))
        }
    }
}

/// All files of a log, oldest first.
#[derive(Debug)]
pub(crate) struct LogParts {
    dir: PathBuf,
    /// A file larger than this is followed by a new one.
    bytes_max: u64,
    files: VecDeque<LogPart>,
    /// Index of the first entry, and the positions of all entries from there.
    first: u64,
    places: VecDeque<RecordPlace>,
    local: BTreeMap<String, Vec<u8>>,
    mark: CommitMark,
    /// Buffer for the next record.
    room: Vec<u8>,
}

/// The files in a directory, by number.
fn names(dir: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut names = BTreeMap::new();
    let all = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
        all => all?,
    };
    for entry in all {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            names.insert(number, path);
        }
    }
    Ok(names)
}

/// Whether a directory belongs to a node with a vote.
pub(crate) fn is_there(dir: &Path) -> bool {
    let has_parts = || names(dir).is_ok_and(|names| !names.is_empty());
    [MARK, OLD].iter().any(|name| dir.join(name).exists()) || has_parts()
}

impl LogParts {
    /// Reads the log in a directory. Nothing is created or changed before the first write.
    pub(crate) fn open(dir: &Path, bytes_max: u64) -> Result<Self, StoreError> {
        let old = dir.join(OLD);
        if old.exists() {
            let path = old.display().to_string();
            return Err(StoreError::Older { path, found: 1, known: FORMAT.into() });
        }
        let mut parts = Self {
            dir: dir.to_owned(),
            bytes_max,
            files: VecDeque::new(),
            first: 0,
            places: VecDeque::new(),
            local: BTreeMap::new(),
            mark: CommitMark::in_file(dir.join(MARK)),
            room: Vec::new(),
        };
        let names = names(dir)
            .map_err(|error| StoreError::Failed(format!("`{}`: {error}", dir.display())))?;
        for (number, path) in names {
            parts.read_part(number, &path)?;
        }
        parts.check()?;
        Ok(parts)
    }

    fn read_part(&mut self, number: u64, path: &Path) -> Result<(), StoreError> {
        let mut journal = Journal::of(path)?;
        let before = match self.files.back() {
            Some(last) => Some(last.lead_to(&mut journal)?),
            None => None,
        };
        let (mut expected, mut reach) = (before, self.next());
        journal.read(|record| {
            let changes = decode(record.bytes, path)?;
            if expected.replace(record.number + 1) != Some(record.number) {
                // Records are missing before this one. `check` decides whether they were needed.
                self.begin_with(&changes);
            }
            let place = RecordPlace { part: number, at: record.place };
            reach = reach.max(self.take_in(changes, place)?);
            Ok(())
        })?;
        if journal.is_empty()
            && let Some(next) = before
        {
            journal.begin_at(next);
        }
        self.files.push_back(LogPart { number, journal, reach });
        Ok(())
    }

    fn begin_with(&mut self, changes: &[LogChange]) {
        if let Some(LogChange::Begin(next)) = changes.first() {
            self.places.clear();
            self.first = *next;
        }
    }

    /// Checks that no record and no entry is missing.
    fn check(&self) -> Result<(), StoreError> {
        let shown = self.dir.join(format!("{}*{}", NAME.0, NAME.1));
        let rebuilt = format!(
            "restore it, or remove all of `{}` and start the node again, which rebuilds it from the \
             other nodes",
            self.dir.display()
        );
        let (held, made) = (self.next_record() - 1, self.mark.read());
        if held < made {
            return Err(StoreError::Damaged(format!(
                "`{}`: the log ends at record {held}, but {made} were written: the file was cut, \
                 changed or removed; {rebuilt}",
                shown.display()
            )));
        }
        let wanted = self.purged()?.map_or(0, |purged| purged.index + 1);
        if self.first > wanted {
            return Err(StoreError::Damaged(format!(
                "`{}`: entries {wanted} to {} of the log are missing; {rebuilt}",
                shown.display(),
                self.first - 1
            )));
        }
        Ok(())
    }

    /// The last purged entry.
    pub(crate) fn purged(&self) -> Result<Option<LogId>, StoreError> {
        self.kept(name::PURGED)
    }

    /// A named record.
    pub(crate) fn kept<T: for<'a> Deserialize<'a>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        let value = self.local.get(name).map(|bytes| postcard::from_bytes(bytes)).transpose();
        value.map_err(|error| {
            let dir = self.dir.display();
            StoreError::Damaged(format!("`{dir}`: the record `{name}` of the log: {error}"))
        })
    }

    pub(crate) fn local(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.local
    }

    /// The last entry, if there is one.
    pub(crate) fn last(&self) -> Result<Option<LogId>, StoreError> {
        let next = self.next();
        let last = self.read(next.saturating_sub(1), next)?;
        Ok(last.last().map(|entry| entry.log_id))
    }

    /// The index of the next entry.
    fn next(&self) -> u64 {
        self.first + self.places.len() as u64
    }

    fn next_record(&self) -> u64 {
        self.files.back().map_or(1, |part| part.journal.next())
    }

    /// Applies the changes of a record to the positions in memory. Returns the index after its last entry.
    fn take_in(&mut self, changes: Vec<LogChange>, place: RecordPlace) -> Result<u64, StoreError> {
        let mut reach = self.next();
        for change in changes {
            match change {
                LogChange::Begin(_) => {}
                LogChange::Keep(name, bytes) => drop(self.local.insert(name, bytes)),
                LogChange::Entries(entries) => {
                    for entry in &entries {
                        let (next, index) = (self.next(), entry.log_id.index);
                        if next != index {
                            let words = format!(
                                "entry {index} of the log stands where entry {next} is expected"
                            );
                            return Err(StoreError::Damaged(words));
                        }
                        self.places.push_back(place);
                    }
                    reach = reach.max(self.next());
                }
                LogChange::Cut(from) => {
                    self.places.truncate(from.saturating_sub(self.first) as usize);
                    // The entries before it may be in a file that was removed.
                    self.first = self.first.min(from);
                }
                LogChange::Purge(upto) => {
                    let first = self.first.max(upto.index + 1);
                    let gone = (first - self.first).min(self.places.len() as u64);
                    self.places.drain(..gone as usize);
                    self.first = first;
                    self.local.insert(name::PURGED.to_owned(), encode(&upto));
                }
            }
        }
        Ok(reach)
    }

    /// Writes one record. If `is_lasting`, it is synced when this returns.
    pub(crate) fn write(
        &mut self,
        mut changes: Vec<LogChange>,
        is_lasting: bool,
    ) -> Result<(), StoreError> {
        failpoint::pass("raft.commit.before");
        let full = |part: &LogPart| part.journal.size() > self.bytes_max;
        if self.files.back().is_none_or(full) {
            self.begin_part()?;
        }
        if self.files.back().is_some_and(|part| part.journal.is_empty()) {
            let kept = self.local.iter().map(|(name, bytes)| {
                // Newer values in `changes` come after these.
                LogChange::Keep(name.clone(), bytes.clone())
            });
            changes =
                [LogChange::Begin(self.next())].into_iter().chain(kept).chain(changes).collect();
        }
        let Some(part) = self.files.back_mut() else { return Err(StoreError::Closed) };
        let number = part.journal.next();
        let mut record = std::mem::take(&mut self.room);
        record.clear();
        record.push(FORMAT);
        let mut record = postcard::to_extend(&changes, record)
            .map_err(|error| StoreError::Failed(format!("a record of the log: {error}")))?;
        let place = RecordPlace { part: part.number, at: part.journal.append(&record)? };
        record.clear();
        record.shrink_to(BUFFER_BYTES);
        self.room = record;
        if is_lasting {
            part.journal.sync()?;
            self.mark.note(number);
            failpoint::pass("raft.sync.after");
        }
        failpoint::pass("raft.commit.after");
        let reach = self.take_in(changes, place)?;
        if let Some(part) = self.files.back_mut() {
            part.reach = part.reach.max(reach);
        }
        self.drop_parts()
    }

    fn begin_part(&mut self) -> Result<(), StoreError> {
        let number = self.files.back().map_or(1, |part| part.number + 1);
        let path = self.dir.join(format!("{}{number:06}{}", NAME.0, NAME.1));
        let mut journal = Journal::of(&path)?;
        if let Some(last) = self.files.back_mut() {
            // The next file must not survive a crash without this one.
            last.journal.sync()?;
            let next = last.lead_to(&mut journal)?;
            journal.begin_at(next);
        }
        failpoint::pass("raft.part.before");
        self.files.push_back(LogPart { number, journal, reach: self.next() });
        Ok(())
    }

    /// Removes parts without an entry that is still wanted.
    fn drop_parts(&mut self) -> Result<(), StoreError> {
        while self.files.len() > 1
            && self.files.front().is_some_and(|part| part.reach <= self.first)
        {
            let Some(part) = self.files.pop_front() else { break };
            failpoint::pass("raft.drop.before");
            let path = part.journal.path();
            std::fs::remove_file(path)
                .and_then(|()| sync_name(path))
                .map_err(|error| StoreError::Failed(format!("`{}`: {error}", path.display())))?;
            failpoint::pass("raft.drop.after");
        }
        Ok(())
    }

    /// Entries from one to before another.
    pub(crate) fn read(&self, from: u64, to: u64) -> Result<Vec<LogEntry>, StoreError> {
        let wanted = from.max(self.first)..to.min(self.next());
        let (mut at, mut record) = (None, Vec::new());
        wanted
            .map(|index| {
                let place = self.places[(index - self.first) as usize];
                if at.replace(place) != Some(place) {
                    record = self.read_record(place)?;
                }
                // Within a record, too, an entry may have come in place of another.
                let found = record.iter().rfind(|entry: &&LogEntry| entry.log_id.index == index);
                found.cloned().ok_or_else(|| {
                    let dir = self.dir.display();
                    StoreError::Damaged(format!("`{dir}`: entry {index} of the log is not there"))
                })
            })
            .collect()
    }

    fn read_record(&self, place: RecordPlace) -> Result<Vec<LogEntry>, StoreError> {
        let part = self.files.iter().find(|part| part.number == place.part);
        let Some(LogPart { journal, .. }) = part else { return Ok(Vec::new()) };
        let changes = decode(&journal.read_at(place.at)?, journal.path())?;
        let entries = changes.into_iter().filter_map(|change| match change {
            LogChange::Entries(entries) => Some(entries),
            _ => None,
        });
        Ok(entries.flatten().collect())
    }
}

#[cfg(test)]
mod tests;
