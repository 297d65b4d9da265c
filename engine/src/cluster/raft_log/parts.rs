//! The files of raft's log: journals that follow each other. What is asked for together is one record
//! and one sync. A part begins with everything that is kept by name, so those before it can go as
//! soon as their entries are not wanted any more.

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

/// Format of the records, which each of them begins with; any other is refused.
const FORMAT: u8 = 3;
/// What the names of parts begin and end with, around their number.
const NAME: (&str, &str) = ("raft-", ".journal");
/// Knows how many records there were, whatever the parts say.
const MARK: &str = "raft.mark";
/// Memory that is kept for the next record.
const ROOM: usize = 256 << 10;
/// The log as it was before there were parts.
const OLD: &str = "raft.db";

/// One thing that a record has done to the log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LogChange {
    /// Begins a part: the index of the next entry.
    Begin(u64),
    /// Kept by name until something else is.
    Keep(String, #[serde(with = "serde_bytes")] Vec<u8>),
    Entries(Vec<LogEntry>),
    /// Entries from this one on are gone.
    Cut(u64),
    /// Entries up to this one are gone.
    Purge(LogId),
}

/// Where an entry is: among others in a record of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordPlace {
    part: u64,
    at: u64,
}

#[derive(Debug)]
struct LogPart {
    number: u64,
    journal: Journal,
    /// The index after the last entry it ever held.
    reach: u64,
}

impl LogPart {
    /// Sees that a journal is of the same log; gives the number of its first record.
    fn lead_to(&self, journal: &mut Journal) -> Result<u64, StoreError> {
        let name = format!("{}{:06}{}", NAME.0, self.number, NAME.1);
        journal.belong_to(self.journal.id(), &name)?;
        Ok(self.journal.next())
    }
}

/// What a record says.
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

/// All parts of a log, oldest first.
#[derive(Debug)]
pub(crate) struct LogParts {
    dir: PathBuf,
    /// Bytes of a part, beyond which another is begun.
    bytes_max: u64,
    files: VecDeque<LogPart>,
    /// Index of the first entry, and where it and those after it are.
    first: u64,
    places: VecDeque<RecordPlace>,
    local: BTreeMap<String, Vec<u8>>,
    mark: CommitMark,
    /// Room to put a record together.
    room: Vec<u8>,
}

/// The parts in a directory, by number.
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

/// Whether a directory is that of a node with a vote.
pub(crate) fn is_there(dir: &Path) -> bool {
    let has_parts = || names(dir).is_ok_and(|names| !names.is_empty());
    [MARK, OLD].iter().any(|name| dir.join(name).exists()) || has_parts()
}

impl LogParts {
    /// Reads the log in a directory; nothing is made or changed before something is written.
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
        parts.vouch()?;
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
                // What is missing before it may be wanted no more; else it is told in the end.
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

    /// Whether everything is there that must be.
    fn vouch(&self) -> Result<(), StoreError> {
        let shown = self.dir.join(format!("{}*{}", NAME.0, NAME.1));
        let rebuilt = format!(
            "put it back, or remove all of `{}` and start again, and the node is rebuilt from the \
             others",
            self.dir.display()
        );
        let (held, made) = (self.next_record() - 1, self.mark.read());
        if held < made {
            return Err(StoreError::Damaged(format!(
                "`{}`: the log ends at record {held}, but {made} were written: it is cut, changed \
                 or gone; {rebuilt}",
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

    /// The entry that everything up to is gone with.
    pub(crate) fn purged(&self) -> Result<Option<LogId>, StoreError> {
        self.kept(name::PURGED)
    }

    /// What is kept under a name.
    pub(crate) fn kept<T: for<'a> Deserialize<'a>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        let value = self.local.get(name).map(|bytes| postcard::from_bytes(bytes)).transpose();
        value.map_err(|error| {
            let dir = self.dir.display();
            StoreError::Damaged(format!("`{dir}`: what the log keeps as `{name}`: {error}"))
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

    /// What a record has done, read or just written; tells the index after the last entry in it.
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
                            let words =
                                format!("entry {index} of the log comes in place of {next}");
                            return Err(StoreError::Damaged(words));
                        }
                        self.places.push_back(place);
                    }
                    reach = reach.max(self.next());
                }
                LogChange::Cut(from) => {
                    self.places.truncate(from.saturating_sub(self.first) as usize);
                    // What was there before may be in a part that is gone.
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

    /// Writes one record; what must not be lost is on the disk when it returns.
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
                // What is kept now may be newer; it comes behind.
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
        record.shrink_to(ROOM);
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
            // What follows must not be there without it.
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
