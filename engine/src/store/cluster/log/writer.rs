//! The thread that writes the log: everything that has come meanwhile in one transaction, one sync.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

use super::{Done, Lazy, LogEntry, QUEUE, Request, locked, name};
use crate::failpoint;
use crate::queue::Receiver;
use crate::store::cluster::types::{LogId, encode};
use crate::store::seal::{seal_numbered, unseal_numbered};
use crate::store::sqlite::store_error;
use crate::store::{StoreError, seal};

/// Format of the file; any other is refused.
const FORMAT: i64 = 2;
const SCHEMA: &str = "
CREATE TABLE log (idx INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE local (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
";
/// How long what may be lost waits for company.
const LAZY: Duration = Duration::from_millis(300);

/// Everything that is wrong with a log; empty when all is well, or when there is none.
pub(in crate::store) fn examine(path: &Path) -> Result<Vec<String>, StoreError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let look = || -> Result<Vec<String>, StoreError> {
        let writer = Writer::open(path)?;
        let failed = |error: rusqlite::Error| store_error(&writer.name, &error);
        let found = crate::store::damage(&writer.connection, &writer.name).map_err(failed)?;
        if found.is_empty() {
            writer.local()?;
            writer.read(0, u64::MAX)?;
        }
        Ok(found)
    };
    match look() {
        // Damage so deep that it cannot be walked through is a finding too.
        Err(StoreError::Damaged(words)) => Ok(vec![words]),
        other => other,
    }
}

/// The thread's own state.
pub(super) struct Writer {
    connection: Connection,
    name: String,
    /// What may be lost, until it is written in company.
    lazy: Lazy,
    /// When that was written last.
    lazy_since: Instant,
}

type Told = Box<dyn FnOnce(Result<(), StoreError>)>;

impl Writer {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
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
        Ok(Self { connection, name, lazy: Lazy::default(), lazy_since: Instant::now() })
    }

    pub(super) fn lazy(&self) -> Lazy {
        Lazy::clone(&self.lazy)
    }

    pub(super) fn local(&self) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
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

    pub(super) fn last(&self) -> Result<Option<LogId>, StoreError> {
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
    pub(super) fn write(mut self, inbox: &Receiver<Request>, fatal: impl Fn(StoreError)) {
        let mut broken: Option<StoreError> = None;
        loop {
            let first = inbox.recv_in_company(1, Instant::now() + LAZY);
            match &first {
                None if inbox.has_ended() => return,
                None if locked(&self.lazy).is_empty() => continue,
                _ => {}
            }
            let mut requests = Vec::from_iter(first);
            requests.extend(std::iter::from_fn(|| inbox.try_recv()).take(QUEUE));
            let closes = requests.iter().any(|request| matches!(request, Request::Close));
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

    /// Does everything in one transaction, then answers everybody. What may be lost is written in
    /// company, or when there is nothing else to do.
    fn serve(&mut self, requests: Vec<Request>, idle: bool) -> Result<(), StoreError> {
        let waits = |request: &Request| !matches!(request, Request::Read(..) | Request::Close);
        let lazily = !locked(&self.lazy).is_empty() && (idle || self.lazy_since.elapsed() >= LAZY);
        let writes = requests.iter().any(waits) || lazily;
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
                Request::Keep(name, bytes, done) => {
                    after.push(told(done));
                    self.put(name, &bytes)
                }
                Request::Close => Ok(()),
            };
            result = result.and(work);
        }
        if writes {
            if lazily {
                self.lazy_since = Instant::now();
                let lazy = std::mem::take(&mut *locked(&self.lazy));
                for (name, bytes) in lazy {
                    result = result.and_then(|()| self.put(name, &bytes));
                }
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
            Request::Keep(_, _, done) => drop(done.send(Err(error.clone()))),
            Request::Close => {}
        }
    }
}
