//! The tables of the ledger in an SQLite file. One thread writes them in large transactions.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};

use super::change_log::{self, ChangeLog};
use super::journal::sync_name;
use super::output_rows::{ALL_OUTPUT, NewestOutput, read_row, seal_output, unseal_output};
use super::seal::{seal, seal_bytes, unseal, unseal_bytes};
use super::seen::{self, SeenIndex, SeenKeys};
use super::sums::TableSums;
use super::{StoreError, TableFault};
use crate::ledger::{
    Core, FailedJob, Job, JobId, JobKey, Lane, LaneId, MemoryTables, OutputBlock, TableError,
    TableResult, Tables,
};

/// Format of the file. Files with another format are refused.
pub(crate) const FORMAT: i64 = 9;

const SCHEMA: &str = "
CREATE TABLE core (id INTEGER PRIMARY KEY CHECK (id = 1), record BLOB NOT NULL);
CREATE TABLE failed (id INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE output (seq INTEGER PRIMARY KEY, appender INTEGER NOT NULL, grp TEXT NOT NULL,
                     name TEXT NOT NULL, key BLOB NOT NULL, ordinal INTEGER NOT NULL,
                     data_def TEXT NOT NULL, count INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE blobs (hash BLOB PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE replica (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
";

/// Tables in an SQLite database. A transaction is open whenever there are changes.
#[derive(Debug)]
pub(crate) struct SqliteTables {
    pub(crate) connection: Connection,
    /// Path of the file until its creation is synced.
    unsynced: Option<PathBuf>,
    pub(crate) name: String,
    in_transaction: bool,
    pub(crate) recent: NewestOutput,
    /// Number of the last block in the table `ranking`, if that exists.
    pub(crate) ranked: Option<u64>,
    pub(crate) sums: TableSums,
    seen: SeenKeys,
    seen_memory: u64,
    changes: ChangeLog,
    /// Buffer for encoding.
    room: Vec<u8>,
    commits: u64,
    /// Id of the journal that continues after the last commit.
    pub(crate) journal: u64,
}

/// Facts stored beside the core with each commit: checksums and sizes of other tables.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct CommitRecord {
    pub(crate) sums: TableSums,
    pub(crate) index: SeenIndex,
    pub(crate) log_rows: u64,
    /// Number of the last commit in the file. One transaction may contain several commits.
    pub(crate) commits: u64,
    /// Id of the journal that continues after it; 0 if there is none.
    pub(crate) journal: u64,
}

/// The store that uses the file. This decides its durability and locking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableOwner {
    /// One machine: a commit survives a power failure, and the file is locked exclusively.
    Solo,
    /// A node of a cluster: after a power failure, lost commits are applied again from raft's log. Other
    /// connections copy the file while it is in use.
    Replica,
}

/// The small state and the lanes, from which a ledger is restored.
pub(crate) type StoredLedger = (Core, Vec<(LaneId, Lane)>);

impl SqliteTables {
    /// Opens or creates the file; `None` keeps everything in memory. The set of known keys uses at most
    /// `seen_memory` bytes.
    pub(crate) fn open(
        path: Option<&Path>,
        seen_memory: u64,
        owner: TableOwner,
    ) -> Result<Self, StoreError> {
        let name = path.map_or_else(|| "(memory)".to_owned(), |path| path.display().to_string());
        let failed = |error: rusqlite::Error| store_error(&name, &error);
        let connection = match path {
            Some(path) => Connection::open(path),
            None => Connection::open_in_memory(),
        }
        .map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(64);
        // The WAL is durable. A checkpoint at the end would cost two more syncs.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(failed)?;
        // Without this, SQLite may compile a statement again when its values change.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failed)?;
        let pragmas = match owner {
            TableOwner::Solo => {
                // The first commit syncs the created file.
                "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL;"
            }
            TableOwner::Replica => "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        };
        let sizes = "PRAGMA wal_autocheckpoint=16000; PRAGMA cache_size=-2048; \
                     PRAGMA busy_timeout=5000;";
        connection.execute_batch(&[pragmas, sizes].concat()).map_err(failed)?;
        let format: i64 =
            connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        if let Some(error) = StoreError::of_format(format, FORMAT, &name) {
            return Err(error);
        }
        if format == 0 {
            let schema = [SCHEMA, seen::SCHEMA, change_log::SCHEMA].concat();
            let make = format!("BEGIN; {schema} PRAGMA user_version={FORMAT}; COMMIT;");
            connection.execute_batch(&make).map_err(failed)?;
        }
        if owner == TableOwner::Solo {
            connection.execute_batch("PRAGMA synchronous=FULL;").map_err(failed)?;
        }
        let unsynced = path.filter(|_| owner == TableOwner::Solo);
        Ok(Self {
            unsynced: unsynced.map(Path::to_owned),
            connection,
            name,
            in_transaction: false,
            recent: NewestOutput::default(),
            ranked: None,
            sums: TableSums::default(),
            seen: SeenKeys::new(seen_memory),
            seen_memory,
            changes: ChangeLog::default(),
            room: Vec::new(),
            commits: 0,
            journal: 0,
        })
    }

    /// Reads the state of the last commit.
    pub(crate) fn restore(&mut self) -> TableResult<StoredLedger> {
        let record: Option<Vec<u8>> =
            self.one("SELECT record FROM core WHERE id = 1", [], |row| row.get(0))?;
        let (core, stored): (Core, CommitRecord) = match record {
            Some(record) => unseal(&record, &format!("the core record of `{}`", self.name))?,
            None => Default::default(),
        };
        let known = stored.index.keys();
        (self.sums, self.commits, self.journal) = (stored.sums, stored.commits, stored.journal);
        self.seen = SeenKeys::load(&self.connection, stored.index, self.seen_memory)
            .map_err(|fault| self.fault(&fault))?;
        self.begin()?;
        self.changes = ChangeLog::load(&self.connection, stored.log_rows, &mut self.sums)
            .map_err(|fault| self.fault(&fault))?;
        self.changes.set_places(core.run.as_ref().map_or(0, |run| run.pending));
        let rows = self.many("SELECT id, record FROM lanes ORDER BY id", [], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, Vec<u8>>(1)?))
        })?;
        let mut lanes = Vec::with_capacity(rows.len());
        for (id, record) in rows {
            let bytes = unseal_bytes(&record, &format!("lane {id} of `{}`", self.name))?;
            let lane = postcard::from_bytes(bytes)
                .map_err(|error| self.damaged(&format!("lane {id}: {error}")))?;
            lanes.push((LaneId(id), lane));
        }
        self.verify(&core, &lanes, known)?;
        Ok((core, lanes))
    }

    /// Commits the core and all changes of the tables. `commits` is the number of this commit.
    pub(crate) fn commit(&mut self, core: &Core, commits: u64) -> TableResult<()> {
        self.begin()?;
        if let Some(path) = self.unsynced.take() {
            let synced = File::open(&path).and_then(|file| file.sync_all());
            synced
                .and_then(|()| sync_name(&path))
                .map_err(|error| self.damaged(&error.to_string()))?;
        }
        let saved =
            self.seen.save(&self.connection).and_then(|()| self.changes.save(&self.connection));
        saved.map_err(|fault| self.fault(&fault))?;
        let index = self.seen.index().clone();
        let log_rows = self.changes.rows();
        let journal = self.journal;
        let stored = CommitRecord { sums: self.sums, index, log_rows, commits, journal };
        let record = seal(&(core, stored))?;
        self.run("INSERT OR REPLACE INTO core (id, record) VALUES (1, ?1)", params![record])?;
        self.connection.execute_batch("COMMIT").map_err(|error| self.error(&error))?;
        self.in_transaction = false;
        self.commits = commits;
        Ok(())
    }

    /// Number of the last commit in the file.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    /// A copy of all tables in memory, for checks. Known keys are replaced by as many other keys. The
    /// caller must not commit afterwards.
    pub(crate) fn in_memory(&mut self) -> TableResult<MemoryTables> {
        self.begin()?;
        let filed = self.seen.save(&self.connection);
        let filed = filed.and_then(|()| self.changes.file(&self.connection, &mut self.sums));
        filed.map_err(|fault| self.fault(&fault))?;
        let mut memory = MemoryTables::default();
        let number =
            |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|number| number as u64);
        let jobs = self.many("SELECT id, record FROM jobs", [], |row| {
            Ok((number(row, 0)?, row.get::<_, Vec<u8>>(1)?))
        })?;
        for (id, record) in jobs {
            memory
                .put_job(JobId(id), &unseal(&record, &format!("job {id} of `{}`", self.name))?)?;
        }
        let queue = self.many("SELECT lane, ready_at, id FROM queue", [], |row| {
            Ok((LaneId(row.get(0)?), number(row, 1)?, JobId(number(row, 2)?)))
        })?;
        for (lane, ready_at, id) in queue {
            memory.enqueue(lane, ready_at, id)?;
        }
        for (id, failed) in self.failed(None, i64::MAX as usize)? {
            memory.put_failed(id, &failed)?;
        }
        for output in self.many(&format!("{ALL_OUTPUT} ORDER BY seq"), [], read_row)? {
            memory.append_output(unseal_output(output, &self.name)?)?;
        }
        for key in 0..self.seen.index().keys() {
            memory.mark_seen(JobKey(u128::from(key).to_le_bytes()))?;
        }
        Ok(memory)
    }

    /// Moves the content of the WAL into the database file.
    pub(crate) fn checkpoint(&mut self) -> TableResult<()> {
        if self.in_transaction {
            return Ok(());
        }
        let busy: Option<bool> =
            self.one("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        match busy {
            Some(true) => {
                Err(self
                    .damaged("its WAL cannot be emptied, because another program reads the file"))
            }
            _ => Ok(()),
        }
    }

    /// Makes all commits survive a power failure. SQLite syncs the database file at each checkpoint, so
    /// only the WAL needs a sync. This opens the WAL and not the database file, because closing that would
    /// release the locks of SQLite.
    pub(crate) fn sync(&self) -> TableResult<()> {
        let Some(path) = self.connection.path().filter(|path| !path.is_empty()) else {
            return Ok(());
        };
        let log = PathBuf::from(format!("{path}-wal"));
        let synced = File::open(&log).and_then(|file| file.sync_all());
        synced.and_then(|()| sync_name(&log)).map_err(|error| self.damaged(&error.to_string()))
    }

    /// A record of the replica, which is not part of the ledger.
    pub(crate) fn replica(&self, name: &str) -> TableResult<Option<Vec<u8>>> {
        let sql = "SELECT record FROM replica WHERE name = ?1";
        self.unsealed(sql, params![name], &format!("record `{name}`"))
    }

    /// Stores a record of the replica with the next commit.
    pub(crate) fn put_replica(&mut self, name: &str, bytes: &[u8]) -> TableResult<()> {
        self.run(
            "INSERT OR REPLACE INTO replica (name, record) VALUES (?1, ?2)",
            params![name, seal_bytes(bytes)],
        )?;
        Ok(())
    }

    /// Removes a record of the replica with the next commit.
    pub(crate) fn drop_replica(&mut self, name: &str) -> TableResult<()> {
        self.run("DELETE FROM replica WHERE name = ?1", params![name])?;
        Ok(())
    }

    /// A published blob.
    pub(crate) fn blob(&mut self, hash: [u8; 32]) -> TableResult<Option<Vec<u8>>> {
        self.unsealed("SELECT bytes FROM blobs WHERE hash = ?1", params![hash], "a published blob")
    }

    /// Reads one sealed value.
    fn unsealed(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        what: &str,
    ) -> TableResult<Option<Vec<u8>>> {
        let sealed: Option<Vec<u8>> = self.one(sql, values, |row| row.get(0))?;
        let what = format!("{what} of `{}`", self.name);
        sealed.map(|sealed| unseal_bytes(&sealed, &what).map(<[u8]>::to_vec)).transpose()
    }

    pub(crate) fn begin(&mut self) -> TableResult<()> {
        if !self.in_transaction {
            self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| self.error(&error))?;
            self.in_transaction = true;
        }
        Ok(())
    }

    /// Writes the changes to their tables if there are many.
    fn make_room(&mut self) -> TableResult<()> {
        if self.changes.is_full() {
            self.begin()?;
            let filed = self.changes.file(&self.connection, &mut self.sums);
            filed.map_err(|fault| self.fault(&fault))?;
        }
        Ok(())
    }

    fn run(&mut self, sql: &str, values: impl rusqlite::Params) -> TableResult<usize> {
        self.begin()?;
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(|error| self.error(&error))
    }

    pub(crate) fn one<R>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<R>,
    ) -> TableResult<Option<R>> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(values, read).optional())
            .map_err(|error| self.error(&error))
    }

    pub(crate) fn many<R>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<R>,
    ) -> TableResult<Vec<R>> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map(values, read)?.collect())
            .map_err(|error| self.error(&error))
    }

    pub(crate) fn error(&self, error: &rusqlite::Error) -> TableError {
        let full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
        TableError { message: format!("`{}`: {error}", self.name), full }
    }

    fn fault(&self, fault: &TableFault) -> TableError {
        match fault {
            TableFault::Sql(error) => self.error(error),
            TableFault::Damaged(problem) => self.damaged(problem),
        }
    }
}

pub(crate) fn store_error(name: &str, error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase};
    match error.sqlite_error_code() {
        Some(DiskFull) => StoreError::Full(format!("`{name}`: {error}")),
        Some(DatabaseCorrupt | NotADatabase) => StoreError::Damaged(format!("`{name}`: {error}")),
        Some(DatabaseBusy) => StoreError::InUse(name.to_owned()),
        _ => StoreError::Failed(format!("`{name}`: {error}")),
    }
}

impl Tables for SqliteTables {
    fn put_job(&mut self, id: JobId, job: &Job) -> TableResult<()> {
        self.make_room()?;
        let room = std::mem::take(&mut self.room);
        self.room = postcard::to_extend(job, room)
            .map_err(|error| self.damaged(&format!("cannot encode job {}: {error}", id.0)))?;
        self.changes.put(id, self.room.as_slice().to_vec());
        self.room.clear();
        Ok(())
    }

    fn job(&mut self, id: JobId) -> TableResult<Option<Job>> {
        self.begin()?;
        match self.changes.job(&self.connection, id) {
            Ok(None) => Ok(None),
            Ok(Some(record)) => postcard::from_bytes(record)
                .map(Some)
                .map_err(|error| self.damaged(&format!("cannot decode job {}: {error}", id.0))),
            Err(fault) => Err(self.fault(&fault)),
        }
    }

    fn drop_job(&mut self, id: JobId) -> TableResult<()> {
        self.changes.drop(id);
        Ok(())
    }

    fn mark_seen(&mut self, key: JobKey) -> TableResult<bool> {
        self.begin()?;
        self.seen.mark(&self.connection, key.0).map_err(|fault| self.fault(&fault))
    }

    fn is_seen(&mut self, key: JobKey) -> TableResult<bool> {
        self.seen.knows(&self.connection, key.0).map_err(|fault| self.fault(&fault))
    }

    fn enqueue(&mut self, lane: LaneId, ready_at: u64, id: JobId) -> TableResult<()> {
        self.changes.enqueue((lane, ready_at, id));
        Ok(())
    }

    fn dequeue(&mut self, lane: LaneId, ready_at: u64, id: JobId) -> TableResult<()> {
        self.make_room()?;
        self.changes.dequeue((lane, ready_at, id));
        Ok(())
    }

    fn first_in_lane(&mut self, lane: LaneId) -> TableResult<Option<(u64, JobId)>> {
        self.begin()?;
        self.changes.first(&self.connection, lane).map_err(|fault| self.fault(&fault))
    }

    fn put_failed(&mut self, id: JobId, failed: &FailedJob) -> TableResult<()> {
        let record = seal(failed)?;
        self.run(
            "INSERT OR REPLACE INTO failed (id, record) VALUES (?1, ?2)",
            params![id.0 as i64, record],
        )?;
        Ok(())
    }

    fn failed(
        &mut self,
        after: Option<JobId>,
        limit: usize,
    ) -> TableResult<Vec<(JobId, FailedJob)>> {
        let after = after.map_or(-1, |id| id.0 as i64);
        let rows = self.many(
            "SELECT id, record FROM failed WHERE id > ?1 ORDER BY id LIMIT ?2",
            params![after, limit as i64],
            |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(1)?)),
        )?;
        rows.into_iter()
            .map(|(id, record)| {
                let what = format!("failed job {id} of `{}`", self.name);
                Ok((JobId(id), unseal(&record, &what)?))
            })
            .collect()
    }

    fn drop_failed(&mut self, id: JobId) -> TableResult<()> {
        self.run("DELETE FROM failed WHERE id = ?1", params![id.0 as i64])?;
        Ok(())
    }

    fn append_output(&mut self, output: OutputBlock) -> TableResult<()> {
        let block = &output.block;
        self.run(
            "INSERT INTO output (seq, appender, grp, name, key, ordinal, data_def, count, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                output.seq as i64,
                block.appender,
                output.group,
                output.name,
                output.key.0,
                block.ordinal,
                block.data_def,
                block.rows,
                seal_output(&output)
            ],
        )?;
        self.recent.push(output);
        Ok(())
    }

    fn put_blob(&mut self, hash: [u8; 32], bytes: &[u8]) -> TableResult<()> {
        self.run(
            "INSERT OR REPLACE INTO blobs (hash, bytes) VALUES (?1, ?2)",
            params![hash, seal_bytes(bytes)],
        )?;
        Ok(())
    }

    fn put_lane(&mut self, id: LaneId, bytes: &[u8]) -> TableResult<()> {
        self.make_room()?;
        self.changes.put_lane(id, bytes);
        Ok(())
    }

    fn clear(&mut self) -> TableResult<()> {
        (self.recent, self.ranked) = (NewestOutput::default(), None);
        self.sums = TableSums::default();
        self.seen = SeenKeys::new(self.seen_memory);
        self.changes = ChangeLog::default();
        for table in [
            "jobs",
            "queue",
            "late",
            "seen_recent",
            "seen_runs",
            "lanes",
            "failed",
            "output",
            "blobs",
        ] {
            self.run(&format!("DELETE FROM {table}"), [])?;
        }
        Ok(())
    }

    fn damaged(&self, message: &str) -> TableError {
        TableError::new(format!("`{}`: {message}", self.name))
    }
}
