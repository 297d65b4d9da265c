//! The thread that writes the log. All waiting requests become one record with one sync.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster::messages::{LogEntry, LogId};
use crate::cluster::raft_log::parts::{LogChange, LogParts};
use crate::cluster::raft_log::{LazyRecords, LogRequest, REQUESTS_MAX, Responder, locked, name};
use crate::store::StoreError;
use crate::threads::ignore::ignore_closed;
use crate::threads::queue::Receiver;

/// How long records that may be lost wait for another write.
const LAZY_WRITE_INTERVAL: Duration = Duration::from_millis(300);

/// The damage of the log in a directory; empty if it is intact or there is no log.
pub(in crate::cluster) fn examine(dir: &Path) -> Result<Vec<String>, StoreError> {
    match LogParts::open(dir, 0).and_then(|parts| parts.read(0, u64::MAX)) {
        Ok(_) => Ok(Vec::new()),
        Err(StoreError::Damaged(words)) => Ok(vec![words]),
        Err(error) => Err(error),
    }
}

/// The entries after `index` that a node which is down knows to be committed.
pub(crate) fn agreed_after(dir: &Path, index: u64) -> Result<Vec<LogEntry>, StoreError> {
    let parts = LogParts::open(dir, 0)?;
    let committed = parts.kept::<LogId>(name::COMMITTED)?.map_or(0, |committed| committed.index);
    if committed <= index {
        return Ok(Vec::new());
    }
    let entries = parts.read(index + 1, committed + 1)?;
    let first = entries.first().map_or(committed + 1, |entry| entry.log_id.index);
    if first > index + 1 {
        return Err(StoreError::Damaged(format!(
            "the tables in `{}` end with entry {index}, and the log begins with entry {first}; start the \
             node, and it rebuilds the tables from its snapshot or from the other nodes",
            dir.display()
        )));
    }
    Ok(entries)
}

/// The state of the thread.
pub(crate) struct RaftLogWriter {
    parts: LogParts,
    /// Records that may be lost, until they are written with others.
    lazy: LazyRecords,
    /// When they were written last.
    lazy_since: Instant,
}

type Completion = Box<dyn FnOnce(Result<(), StoreError>)>;

impl RaftLogWriter {
    pub(crate) fn new(parts: LogParts, lazy: LazyRecords) -> Self {
        Self { parts, lazy, lazy_since: Instant::now() }
    }

    /// Serves until it is closed, or until a write fails: then nothing more is written.
    pub(crate) fn write(mut self, inbox: &Receiver<LogRequest>, fatal: impl Fn(StoreError)) {
        let mut broken: Option<StoreError> = None;
        loop {
            let first = inbox.recv_batched(1, Instant::now() + LAZY_WRITE_INTERVAL);
            match &first {
                None if inbox.has_ended() => return,
                None if locked(&self.lazy).is_empty() => continue,
                _ => {}
            }
            let mut requests = Vec::from_iter(first);
            requests.extend(std::iter::from_fn(|| inbox.try_recv()).take(REQUESTS_MAX));
            let closes = requests.iter().any(|request| matches!(request, LogRequest::Close));
            let idle = requests.is_empty() || closes;
            if let Some(error) = &broken {
                refuse(requests, error);
            } else if let Err(error) = self.serve(requests, idle) {
                fatal(error.clone());
                broken = Some(error);
            }
            if closes {
                return;
            }
        }
    }

    /// Writes all requests in one record, then answers them. Records that may be lost are written along, or
    /// when the thread is idle, without a sync.
    fn serve(&mut self, requests: Vec<LogRequest>, idle: bool) -> Result<(), StoreError> {
        let (mut changes, mut after): (Vec<LogChange>, Vec<Completion>) = (Vec::new(), Vec::new());
        let mut reads = Vec::new();
        for request in requests {
            let told = |done: Responder<()>| -> Completion {
                Box::new(move |result| ignore_closed(done.send(result)))
            };
            match request {
                LogRequest::Append(entries, callback) => {
                    after.push(Box::new(move |result| {
                        let result = result.map_err(|error| io::Error::other(error.to_string()));
                        callback.log_io_completed(result);
                    }));
                    changes.push(LogChange::Entries(entries));
                }
                LogRequest::Read(from, to, done) => reads.push((from, to, done)),
                LogRequest::Truncate(from, done) => {
                    after.push(told(done));
                    changes.push(LogChange::Cut(from));
                }
                LogRequest::Purge(upto, done) => {
                    after.push(told(done));
                    changes.push(LogChange::Purge(upto));
                }
                LogRequest::Keep(name, bytes, done) => {
                    after.push(told(done));
                    changes.push(LogChange::Keep(name.to_owned(), bytes));
                }
                LogRequest::Close => {}
            }
        }
        let is_lasting = !changes.is_empty();
        if idle || is_lasting && self.lazy_since.elapsed() >= LAZY_WRITE_INTERVAL {
            self.lazy_since = Instant::now();
            let lazy = std::mem::take(&mut *locked(&self.lazy));
            let kept =
                lazy.into_iter().map(|(name, bytes)| LogChange::Keep(name.to_owned(), bytes));
            changes.extend(kept);
        }
        let result =
            if changes.is_empty() { Ok(()) } else { self.parts.write(changes, is_lasting) };
        for answer in after {
            answer(result.clone());
        }
        for (from, to, done) in reads {
            ignore_closed(done.send(self.parts.read(from, to)));
        }
        result
    }
}

fn refuse(requests: Vec<LogRequest>, error: &StoreError) {
    for request in requests {
        match request {
            LogRequest::Append(_, callback) => {
                callback.log_io_completed(Err(io::Error::other(error.to_string())));
            }
            LogRequest::Read(_, _, done) => ignore_closed(done.send(Err(error.clone()))),
            LogRequest::Truncate(_, done) | LogRequest::Purge(_, done) => {
                ignore_closed(done.send(Err(error.clone())));
            }
            LogRequest::Keep(_, _, done) => ignore_closed(done.send(Err(error.clone()))),
            LogRequest::Close => {}
        }
    }
}
