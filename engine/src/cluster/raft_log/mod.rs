//! Raft's log and vote, and the records that a node keeps for itself, such as its raft number. One thread
//! writes and syncs them in the order of the requests.

mod parts;
mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, RaftLogReader, StorageIOError, Vote};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::cluster::messages::{LogEntry, LogId, StorageError, Types, encode};
use crate::failpoint;
use crate::store::StoreError;
use crate::threads::ignore::ignore_closed;
use crate::threads::queue::{Sender, queue};
use parts::LogParts;
pub(crate) use parts::is_there;
use writer::RaftLogWriter;
pub(crate) use writer::agreed_after;
pub(in crate::cluster) use writer::examine;

/// Bytes of the newest entries that are kept in memory for the followers.
const CACHE_BYTES: usize = 8 << 20;
/// Bytes that are sent to a follower at once. More would delay the next heartbeat.
const SEND_BYTES_MAX: usize = 1 << 20;
/// Requests that wait for the thread.
const REQUESTS_MAX: usize = 256;

type Responder<T> = oneshot::Sender<Result<T, StoreError>>;

/// Names of raft's own records.
mod name {
    pub(crate) const VOTE: &str = "vote";
    pub(crate) const COMMITTED: &str = "committed";
    pub(crate) const PURGED: &str = "purged";
}

enum LogRequest {
    Append(Vec<LogEntry>, LogFlushed<Types>),
    Read(u64, u64, Responder<Vec<LogEntry>>),
    Truncate(u64, Responder<()>),
    Purge(LogId, Responder<()>),
    /// Keeps a record under a name; answered once it is durable.
    Keep(&'static str, Vec<u8>, Responder<()>),
    Close,
}

/// Records that may be lost in a crash. They wait here for the next write and wake no thread.
type LazyRecords = Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>>;

/// The newest entries, and the ends of the log.
#[derive(Debug, Default)]
struct RecentEntries {
    entries: VecDeque<(LogEntry, usize)>,
    bytes: usize,
    purged: Option<LogId>,
    last: Option<LogId>,
}

impl RecentEntries {
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

/// The log; cheap to clone.
#[derive(Clone)]
pub(crate) struct RaftLog {
    requests: Sender<LogRequest>,
    recent: Arc<Mutex<RecentEntries>>,
    vote: Arc<Mutex<Option<Vote<u64>>>>,
    committed: Arc<Mutex<Option<LogId>>>,
    local: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    lazy: LazyRecords,
    bytes: Arc<AtomicU64>,
}

impl Debug for RaftLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

/// The thread behind a [`Log`].
#[derive(Debug)]
pub(crate) struct RaftLogThread {
    requests: Sender<LogRequest>,
    thread: JoinHandle<()>,
}

impl RaftLogThread {
    /// Ends the thread once all requests are durable.
    pub(crate) fn close(self) {
        ignore_closed(self.requests.send(LogRequest::Close));
        drop(self.thread.join());
    }
}

impl RaftLog {
    /// Opens the log in a data directory that is locked. `part_bytes` is the size of one file. A disk error
    /// goes to `fatal`, because nothing after it is certain.
    pub(crate) fn open(
        dir: &Path,
        part_bytes: u64,
        fatal: impl Fn(StoreError) + Send + 'static,
    ) -> Result<(Self, RaftLogThread), StoreError> {
        let parts = LogParts::open(dir, part_bytes)?;
        let purged = parts.purged()?;
        let last = parts.last()?.or(purged);
        let recent = RecentEntries { purged, last, ..RecentEntries::default() };
        let (vote, committed) = (parts.kept(name::VOTE)?, parts.kept(name::COMMITTED)?);
        let (local, lazy) = (parts.local().clone(), LazyRecords::default());
        let writer = RaftLogWriter::new(parts, LazyRecords::clone(&lazy));
        let (requests, inbox) = queue(REQUESTS_MAX);
        let log = Self {
            requests: requests.clone(),
            recent: Arc::new(Mutex::new(recent)),
            vote: Arc::new(Mutex::new(vote)),
            committed: Arc::new(Mutex::new(committed)),
            local: Arc::new(Mutex::new(local)),
            lazy,
            bytes: Arc::default(),
        };
        let thread = std::thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || writer.write(&inbox, fatal))
            .map_err(|error| StoreError::Failed(format!("no thread for the log: {error}")))?;
        Ok((log, RaftLogThread { requests, thread }))
    }

    /// A record that this node keeps for itself.
    pub(crate) fn local<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let local = locked(&self.local);
        local.get(name).and_then(|bytes| postcard::from_bytes(bytes).ok())
    }

    /// Keeps a record; returns once it is durable.
    pub(crate) async fn keep<T: Serialize>(
        &self,
        name: &'static str,
        value: &T,
    ) -> Result<(), StoreError> {
        let bytes = encode(value);
        locked(&self.local).insert(name.to_owned(), bytes.clone());
        self.ask(|done| LogRequest::Keep(name, bytes, done)).await
    }

    /// Keeps a record that may be lost in a crash.
    pub(crate) fn keep_lightly<T: Serialize>(&self, name: &'static str, value: &T) {
        let bytes = encode(value);
        locked(&self.local).insert(name.to_owned(), bytes.clone());
        locked(&self.lazy).insert(name, bytes);
    }

    /// Bytes appended since the last snapshot was begun.
    pub(crate) fn bytes_since_snapshot(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A snapshot is being made.
    pub(crate) fn reset_bytes_since_snapshot(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<LogId> {
        locked(&self.recent).last
    }

    /// The last entry that was purged.
    pub(crate) fn purged(&self) -> Option<LogId> {
        locked(&self.recent).purged
    }

    /// Whether raft has ever written anything here.
    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.recent).last.is_none() && locked(&self.vote).is_none()
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(Responder<T>) -> LogRequest,
    ) -> Result<T, StoreError> {
        let (done, answer) = oneshot::channel();
        ignore_closed(self.requests.send(request(done)));
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Entries from memory, if it holds all of them.
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

impl RaftLogReader<Types> for RaftLog {
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
                .ask(|done| LogRequest::Read(from, to, done))
                .await
                .map_err(|error| read_error(&error)),
        }
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<LogEntry>, StorageError> {
        if let Some(entries) = self.recall(start, end, SEND_BYTES_MAX) {
            return Ok(entries);
        }
        let mut entries = self.try_get_log_entries(start..end.min(start + 64)).await?;
        let mut bytes = 0;
        let fits = entries.iter().take_while(|entry| {
            bytes += size_of(entry);
            bytes <= SEND_BYTES_MAX
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

impl RaftLogStorage<Types> for RaftLog {
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
        let kept = self.ask(|done| LogRequest::Keep(name::VOTE, bytes, done)).await;
        failpoint::pass("raft.vote.after");
        kept.map_err(|error| StorageIOError::write_vote(openraft::AnyError::error(&error)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<u64>>, StorageError> {
        Ok(*locked(&self.vote))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        *locked(&self.committed) = committed;
        if let Some(committed) = committed {
            // It may be lost: after a restart the leader sends it again.
            locked(&self.lazy).insert(name::COMMITTED, encode(&committed));
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
        ignore_closed(self.requests.send(LogRequest::Append(entries, callback)));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        locked(&self.recent).truncate(log_id.index);
        failpoint::pass("raft.truncate.before");
        self.ask(|done| LogRequest::Truncate(log_id.index, done))
            .await
            .map_err(|error| write_error(&error))?;
        failpoint::pass("raft.truncate.after");
        // The entry before the cut is the new end. It may be older than the entries in memory.
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
        let purged = self.ask(|done| LogRequest::Purge(log_id, done)).await;
        failpoint::pass("raft.purge.after");
        purged.map_err(|error| write_error(&error))
    }
}
