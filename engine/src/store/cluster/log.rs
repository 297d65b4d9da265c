//! Raft's log and vote in `raft.db`, and what this node alone knows: its number, the cluster's name,
//! how far its files are written. One thread writes, in the order it is asked, and syncs.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, RaftLogReader, StorageIOError, Vote};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::types::{LogId, StorageError, Types, encode};
use crate::failpoint;
use crate::store::seal::{seal_numbered, unseal_numbered};
use crate::store::sqlite::store_error;
use crate::store::{StoreError, seal};

/// Format of the file; any other is refused.
const FORMAT: i64 = 1;
const SCHEMA: &str = "
CREATE TABLE log (idx INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE local (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
";
/// Bytes of the newest entries that are kept in memory, for followers that keep up.
const CACHE_BYTES: usize = 8 << 20;
/// Bytes sent to a follower at once: more would not pass between two heartbeats.
const SEND_BYTES: usize = 1 << 20;
/// How long what may be lost waits for company.
const LAZY: Duration = Duration::from_millis(300);
/// Requests that may wait for the thread.
const QUEUE: usize = 256;

type LogEntry = openraft::Entry<Types>;
type Done<T> = oneshot::Sender<Result<T, StoreError>>;

/// Names of what is kept beside the log.
mod name {
    pub(super) const VOTE: &str = "vote";
    pub(super) const COMMITTED: &str = "committed";
    pub(super) const PURGED: &str = "purged";
}

enum Request {
    Append(Vec<LogEntry>, LogFlushed<Types>),
    Read(u64, u64, Done<Vec<LogEntry>>),
    Truncate(u64, Done<()>),
    Purge(LogId, Done<()>),
    /// Kept under a name; answered once it is durable, if anybody waits.
    Keep(&'static str, Vec<u8>, Option<Done<()>>),
    Close,
}

/// The newest entries, and where the log begins and ends.
#[derive(Debug, Default)]
struct Recent {
    entries: VecDeque<(LogEntry, usize)>,
    bytes: usize,
    purged: Option<LogId>,
    last: Option<LogId>,
}

impl Recent {
    fn push(&mut self, entry: LogEntry, size: usize) {
        self.last = Some(entry.log_id);
        self.bytes += size;
        self.entries.push_back((entry, size));
        while self.bytes > CACHE_BYTES && self.entries.len() > 1 {
            if let Some((_, size)) = self.entries.pop_front() {
                self.bytes -= size;
            }
        }
    }

    fn first(&self) -> Option<u64> {
        self.entries.front().map(|(entry, _)| entry.log_id.index)
    }

    fn truncate(&mut self, from: u64) {
        while self.entries.back().is_some_and(|(entry, _)| entry.log_id.index >= from) {
            if let Some((_, size)) = self.entries.pop_back() {
                self.bytes -= size;
            }
        }
    }
}

/// The log, shared by raft and its readers; cheap to clone.
#[derive(Clone)]
pub(super) struct Log {
    requests: Sender<Request>,
    recent: Arc<Mutex<Recent>>,
    vote: Arc<Mutex<Option<Vote<u64>>>>,
    committed: Arc<Mutex<Option<LogId>>>,
    local: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    bytes: Arc<AtomicU64>,
}

impl Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

/// The thread behind a [`Log`].
#[derive(Debug)]
pub(super) struct LogThread {
    requests: Sender<Request>,
    thread: JoinHandle<()>,
}

impl LogThread {
    /// Ends the thread after everything before is durable.
    pub(super) fn close(self) {
        drop(self.requests.send(Request::Close));
        drop(self.thread.join());
    }
}

impl Log {
    /// Opens or makes the file in a data directory that is locked. An error of the disk goes to
    /// `fatal`: nothing after it is certain.
    pub(super) fn open(
        path: &Path,
        fatal: impl Fn(StoreError) + Send + 'static,
    ) -> Result<(Self, LogThread), StoreError> {
        let writer = Writer::open(path)?;
        let local = writer.local()?;
        let read = |name: &str| local.get(name);
        let odd = |_| StoreError::Damaged(format!("`{}`: its records", path.display()));
        let decode = |name: &str| read(name).map(|bytes| postcard::from_bytes(bytes)).transpose();
        let purged: Option<LogId> = decode(name::PURGED).map_err(odd)?;
        let committed: Option<LogId> = decode(name::COMMITTED).map_err(odd)?;
        let vote = read(name::VOTE).map(|bytes| postcard::from_bytes(bytes)).transpose();
        let vote: Option<Vote<u64>> = vote.map_err(odd)?;
        let last = writer.last()?.or(purged);
        let recent = Recent { purged, last, ..Recent::default() };
        let (requests, inbox) = bounded(QUEUE);
        let log = Self {
            requests: requests.clone(),
            recent: Arc::new(Mutex::new(recent)),
            vote: Arc::new(Mutex::new(vote)),
            committed: Arc::new(Mutex::new(committed)),
            local: Arc::new(Mutex::new(local)),
            bytes: Arc::default(),
        };
        let thread = std::thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || writer.write(&inbox, fatal))
            .map_err(|error| StoreError::Failed(format!("no thread for the log: {error}")))?;
        Ok((log, LogThread { requests, thread }))
    }

    /// Something this node keeps for itself.
    pub(super) fn local<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let local = locked(&self.local);
        local.get(name).and_then(|bytes| postcard::from_bytes(bytes).ok())
    }

    /// Keeps something durably before it returns.
    pub(super) async fn keep<T: Serialize>(
        &self,
        name: &'static str,
        value: &T,
    ) -> Result<(), StoreError> {
        let bytes = encode(value);
        locked(&self.local).insert(name.to_owned(), bytes.clone());
        self.ask(|done| Request::Keep(name, bytes, Some(done))).await
    }

    /// Keeps something that may be lost in a crash.
    pub(super) fn keep_lightly<T: Serialize>(&self, name: &'static str, value: &T) {
        let bytes = encode(value);
        locked(&self.local).insert(name.to_owned(), bytes.clone());
        drop(self.requests.send(Request::Keep(name, bytes, None)));
    }

    /// Bytes appended since the last look at a snapshot.
    pub(super) fn bytes_since_snapshot(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A snapshot is being made: what is appended from now on counts.
    pub(super) fn weigh_anew(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Whether raft has ever written anything here.
    pub(super) fn is_empty(&self) -> bool {
        locked(&self.recent).last.is_none() && locked(&self.vote).is_none()
    }

    async fn ask<T>(&self, request: impl FnOnce(Done<T>) -> Request) -> Result<T, StoreError> {
        let (done, answer) = oneshot::channel();
        drop(self.requests.send(request(done)));
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Entries from memory, if all of them are there.
    fn recall(&self, from: u64, to: u64, bytes_max: usize) -> Option<Vec<LogEntry>> {
        let recent = locked(&self.recent);
        let last = recent.last.map_or(0, |last| last.index + 1);
        let first = recent.first()?;
        if from < first || from >= last {
            return None;
        }
        let mut bytes = 0;
        let wanted = recent.entries.iter().skip((from - first) as usize);
        let wanted = wanted.take((to.saturating_sub(from)) as usize).take_while(|(_, size)| {
            bytes += size;
            bytes <= bytes_max || bytes == *size
        });
        Some(wanted.map(|(entry, _)| entry.clone()).collect())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_error(error: &StoreError) -> StorageError {
    StorageIOError::read_logs(openraft::AnyError::error(error)).into()
}

fn write_error(error: &StoreError) -> StorageError {
    StorageIOError::write_logs(openraft::AnyError::error(error)).into()
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<LogEntry>, StorageError> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(to) => *to,
            Bound::Unbounded => i64::MAX as u64,
        };
        match self.recall(from, to, usize::MAX) {
            Some(entries) => Ok(entries),
            None => self
                .ask(|done| Request::Read(from, to, done))
                .await
                .map_err(|error| read_error(&error)),
        }
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<LogEntry>, StorageError> {
        if let Some(entries) = self.recall(start, end, SEND_BYTES) {
            return Ok(entries);
        }
        let mut entries = self.try_get_log_entries(start..end.min(start + 64)).await?;
        let mut bytes = 0;
        let fits = entries.iter().take_while(|entry| {
            bytes += size_of(entry);
            bytes <= SEND_BYTES
        });
        let fits = fits.count().max(1);
        entries.truncate(fits);
        Ok(entries)
    }
}

fn size_of(entry: &LogEntry) -> usize {
    match &entry.payload {
        openraft::EntryPayload::Normal(batch) => batch.0.len() + 64,
        _ => 256,
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let recent = locked(&self.recent);
        Ok(LogState { last_purged_log_id: recent.purged, last_log_id: recent.last })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Result<(), StorageError> {
        *locked(&self.vote) = Some(*vote);
        let bytes = encode(vote);
        failpoint::pass("raft.vote.before");
        let kept = self.ask(|done| Request::Keep(name::VOTE, bytes, Some(done))).await;
        failpoint::pass("raft.vote.after");
        kept.map_err(|error| StorageIOError::write_vote(openraft::AnyError::error(&error)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<u64>>, StorageError> {
        Ok(*locked(&self.vote))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        *locked(&self.committed) = committed;
        if let Some(committed) = committed {
            // May be lost: it only saves waiting for the leader's word after a restart.
            drop(self.requests.send(Request::Keep(name::COMMITTED, encode(&committed), None)));
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(*locked(&self.committed))
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = LogEntry> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<LogEntry> = entries.into_iter().collect();
        {
            let mut recent = locked(&self.recent);
            for entry in &entries {
                recent.push(entry.clone(), size_of(entry));
                self.bytes.fetch_add(size_of(entry) as u64, Ordering::Relaxed);
            }
        }
        failpoint::pass("raft.append.before");
        drop(self.requests.send(Request::Append(entries, callback)));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        locked(&self.recent).truncate(log_id.index);
        failpoint::pass("raft.truncate.before");
        self.ask(|done| Request::Truncate(log_id.index, done))
            .await
            .map_err(|error| write_error(&error))?;
        failpoint::pass("raft.truncate.after");
        // What was before the cut is the new end; it may be older than what memory holds.
        let last = self.try_get_log_entries(log_id.index.saturating_sub(1)..log_id.index).await?;
        let mut recent = locked(&self.recent);
        recent.last = last.last().map(|entry| entry.log_id).or(recent.purged);
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        {
            let mut recent = locked(&self.recent);
            recent.purged = Some(log_id);
            recent.last = recent.last.max(Some(log_id));
            while recent.first().is_some_and(|first| first <= log_id.index) {
                if let Some((_, size)) = recent.entries.pop_front() {
                    recent.bytes -= size;
                }
            }
        }
        failpoint::pass("raft.purge.before");
        let purged = self.ask(|done| Request::Purge(log_id, done)).await;
        failpoint::pass("raft.purge.after");
        purged.map_err(|error| write_error(&error))
    }
}

/// The thread's own state.
struct Writer {
    connection: Connection,
    name: String,
    /// What may be lost, until it is written in company.
    lazy: BTreeMap<&'static str, Vec<u8>>,
}

type Told = Box<dyn FnOnce(Result<(), StoreError>)>;

impl Writer {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let name = path.display().to_string();
        let failed = |error: rusqlite::Error| store_error(&name, &error);
        let connection = Connection::open(path).map_err(failed)?;
        connection
            .execute_batch(
                "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
                 PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-8192;",
            )
            .map_err(failed)?;
        let format: i64 =
            connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        if let Some(error) = StoreError::of_format(format, FORMAT, &name) {
            return Err(error);
        }
        if format == 0 {
            let make = format!("BEGIN; {SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;");
            connection.execute_batch(&make).map_err(failed)?;
        }
        Ok(Self { connection, name, lazy: BTreeMap::new() })
    }

    fn local(&self) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        let failed = |error: rusqlite::Error| store_error(&self.name, &error);
        let mut statement =
            self.connection.prepare("SELECT name, record FROM local").map_err(failed)?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(failed)?;
        let unseal = |(name, record): (String, Vec<u8>)| {
            let what = format!("`{name}` of `{}`", self.name);
            let bytes = seal::unseal_bytes(&record, &what).map(<[u8]>::to_vec);
            bytes.map(|bytes| (name, bytes)).map_err(|error| StoreError::Damaged(error.message))
        };
        rows.into_iter().map(unseal).collect()
    }

    fn last(&self) -> Result<Option<LogId>, StoreError> {
        let last: Option<i64> = self
            .connection
            .query_row("SELECT max(idx) FROM log", [], |row| row.get(0))
            .optional()
            .map_err(|error| store_error(&self.name, &error))?
            .flatten();
        let Some(last) = last else { return Ok(None) };
        let entries = self.read(last as u64, last as u64 + 1)?;
        Ok(entries.last().map(|entry| entry.log_id))
    }

    /// Serves until it is closed, or until a write fails: then nothing more is written.
    fn write(mut self, inbox: &Receiver<Request>, fatal: impl Fn(StoreError)) {
        let mut broken: Option<StoreError> = None;
        loop {
            let first = match inbox.recv_timeout(LAZY) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) if self.lazy.is_empty() => continue,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut requests = Vec::from_iter(first);
            requests.extend(inbox.try_iter().take(QUEUE));
            let closes = requests.iter().any(|request| matches!(request, Request::Close));
            match &broken {
                Some(error) => refuse(requests, error),
                None => {
                    let idle = requests.is_empty() || closes;
                    if let Err(error) = self.serve(requests, idle) {
                        fatal(error.clone());
                        broken = Some(error);
                    }
                }
            }
            if closes {
                return;
            }
        }
    }

    /// Does everything in one transaction, then answers everybody. What may be lost is written in
    /// company, or when there is nothing else to do.
    fn serve(&mut self, requests: Vec<Request>, idle: bool) -> Result<(), StoreError> {
        let waits = |request: &Request| {
            !matches!(request, Request::Read(..) | Request::Keep(_, _, None) | Request::Close)
        };
        let writes = requests.iter().any(waits) || idle && !self.lazy.is_empty();
        let mut after: Vec<Told> = Vec::new();
        let mut result = if writes { self.execute("BEGIN IMMEDIATE") } else { Ok(()) };
        for request in requests {
            let told = |done: Done<()>| -> Told { Box::new(move |result| drop(done.send(result))) };
            let work = match request {
                Request::Append(entries, callback) => {
                    after.push(Box::new(move |result| {
                        let result = result.map_err(|error| io::Error::other(error.to_string()));
                        callback.log_io_completed(result);
                    }));
                    self.insert(&entries)
                }
                Request::Read(from, to, done) => {
                    drop(done.send(self.read(from, to)));
                    Ok(())
                }
                Request::Truncate(from, done) => {
                    after.push(told(done));
                    self.run("DELETE FROM log WHERE idx >= ?1", params![from as i64])
                }
                Request::Purge(upto, done) => {
                    after.push(told(done));
                    self.run("DELETE FROM log WHERE idx <= ?1", params![upto.index as i64])
                        .and_then(|()| self.put(name::PURGED, &encode(&upto)))
                }
                Request::Keep(name, bytes, Some(done)) => {
                    after.push(told(done));
                    self.lazy.remove(name);
                    self.put(name, &bytes)
                }
                Request::Keep(name, bytes, None) => {
                    self.lazy.insert(name, bytes);
                    Ok(())
                }
                Request::Close => Ok(()),
            };
            result = result.and(work);
        }
        if writes {
            for (name, bytes) in std::mem::take(&mut self.lazy) {
                result = result.and_then(|()| self.put(name, &bytes));
            }
            failpoint::pass("raft.commit.before");
            result = result.and_then(|()| self.execute("COMMIT"));
            failpoint::pass("raft.commit.after");
        }
        for answer in after {
            answer(result.clone());
        }
        result
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(sql).map_err(|error| store_error(&self.name, &error))
    }

    fn insert(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        for entry in entries {
            let number = entry.log_id.index as i64;
            let record = seal_numbered(number, &encode(entry));
            self.run(
                "INSERT OR REPLACE INTO log (idx, record) VALUES (?1, ?2)",
                params![number, record],
            )?;
        }
        Ok(())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(
            "INSERT OR REPLACE INTO local (name, record) VALUES (?1, ?2)",
            params![name, seal::seal_bytes(bytes)],
        )
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map(drop)
            .map_err(|error| store_error(&self.name, &error))
    }

    fn read(&self, from: u64, to: u64) -> Result<Vec<LogEntry>, StoreError> {
        let failed = |error: rusqlite::Error| store_error(&self.name, &error);
        let to = to.min(i64::MAX as u64);
        let mut statement = self
            .connection
            .prepare_cached("SELECT idx, record FROM log WHERE idx >= ?1 AND idx < ?2 ORDER BY idx")
            .map_err(failed)?;
        let rows = statement
            .query_map(params![from as i64, to as i64], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(failed)?;
        rows.into_iter()
            .map(|(number, record)| {
                let entry = unseal_numbered(number, &record)
                    .and_then(|bytes| postcard::from_bytes::<LogEntry>(bytes).ok());
                entry.ok_or_else(|| {
                    StoreError::Damaged(format!(
                        "`{}`: entry {number} of the log is not what was written",
                        self.name
                    ))
                })
            })
            .collect()
    }
}

fn refuse(requests: Vec<Request>, error: &StoreError) {
    for request in requests {
        match request {
            Request::Append(_, callback) => {
                callback.log_io_completed(Err(io::Error::other(error.to_string())));
            }
            Request::Read(_, _, done) => drop(done.send(Err(error.clone()))),
            Request::Truncate(_, done) | Request::Purge(_, done) => {
                drop(done.send(Err(error.clone())));
            }
            Request::Keep(_, _, Some(done)) => drop(done.send(Err(error.clone()))),
            Request::Keep(_, _, None) | Request::Close => {}
        }
    }
}
