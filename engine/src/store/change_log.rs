//! Recent changes of the tables `jobs`, `queue` and `lanes`. Each commit writes them as one row of the
//! table `late`, a log. The tables themselves get them later, in large batches and in table order.
//!
//! A job that ends soon therefore never reaches its table, and any other job costs far fewer page writes.
//! The log is replayed when the file is opened.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::TableFault;
use super::seal::{seal_bytes, seal_numbered, unseal_numbered};
use super::sums::{TableSums, place};
use crate::ledger::{JobId, LaneId};

/// Number of changes that are written to the tables together: one for every
/// [`QUEUE_ROWS_PER_CHANGE`] rows of the queue, within these bounds. The larger a table, the fewer changes
/// fall on one page, and the cost is per page. The upper bound limits memory and the time of a batch.
const CHANGES_MIN: usize = 32_768;
const CHANGES_MAX: usize = 131_072;
const QUEUE_ROWS_PER_CHANGE: u64 = 8;
/// Average bytes of log per change, beyond which a batch is written earlier.
const LOG_BYTES_PER_CHANGE: usize = 256;
/// Rows of a lane's queue that are read at once, and most lanes for which they are kept.
const QUEUE_ROWS_AHEAD: usize = 16;
const LANES_MAX: usize = 50_000;
/// Most jobs that were read from the table and are kept in memory.
const JOBS_READ_MAX: usize = 4096;

pub(crate) const SCHEMA: &str = "
CREATE TABLE jobs (id INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE queue (lane INTEGER, ready_at INTEGER, id INTEGER,
                    PRIMARY KEY (lane, ready_at, id)) WITHOUT ROWID;
CREATE TABLE lanes (id INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE late (id INTEGER PRIMARY KEY, changes BLOB NOT NULL);
";

/// One change, as it is encoded in the log.
#[derive(Debug, Serialize, Deserialize)]
enum Change<'a> {
    Put(JobId, #[serde(borrow, with = "serde_bytes")] &'a [u8]),
    Drop(JobId),
    Enqueue(LaneId, u64, JobId),
    Dequeue(LaneId, u64, JobId),
    Lane(LaneId, #[serde(borrow, with = "serde_bytes")] &'a [u8]),
}

type QueueRow = (LaneId, u64, JobId);

/// The changes that the tables do not have yet.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    /// Jobs put; `None` for a dropped job that may be in the table.
    jobs: BTreeMap<JobId, Option<Vec<u8>>>,
    /// Queue rows to insert into the table, and rows to delete from it.
    added: BTreeSet<QueueRow>,
    left: BTreeSet<QueueRow>,
    lanes: BTreeMap<LaneId, Vec<u8>>,
    /// Encoded changes since the last commit.
    log: Vec<u8>,
    rows: u64,
    logged_bytes: usize,
    /// Largest job number in the table.
    last_filed: Option<JobId>,
    /// Approximate number of rows in the table `queue`.
    places: u64,
    heads: BTreeMap<LaneId, QueueAhead>,
    read: BTreeMap<JobId, Vec<u8>>,
}

/// The first queue rows of a lane in the table, which does not change until [`ChangeLog::file`].
#[derive(Debug)]
struct QueueAhead {
    ahead: VecDeque<(u64, JobId)>,
    after: Option<(u64, JobId)>,
    more: bool,
}

impl ChangeLog {
    /// Replays a log of `rows` rows into the tables. The next commit makes that durable.
    pub(crate) fn load(
        connection: &Connection,
        rows: u64,
        sums: &mut TableSums,
    ) -> Result<Self, TableFault> {
        let last: Option<i64> =
            connection.query_row("SELECT max(id) FROM jobs", [], |row| row.get(0))?;
        let mut changes = Self { last_filed: last.map(|id| JobId(id as u64)), ..Self::default() };
        let mut statement = connection.prepare("SELECT id, changes FROM late ORDER BY id")?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let id: i64 = row.get(0)?;
            let damaged = || TableFault::Damaged(format!("row {id} of the log `late` is damaged"));
            let sealed = row.get_ref(1)?.as_blob().map_err(|_| damaged())?;
            let bytes = unseal_numbered(id, sealed).ok_or_else(damaged)?;
            changes.replay(bytes).map_err(|_| damaged())?;
            changes.rows += 1;
        }
        if changes.rows != rows {
            return Err(TableFault::Damaged(format!(
                "the log `late` has {} rows instead of {rows}",
                changes.rows
            )));
        }
        drop(found);
        changes.file(connection, sums)?;
        Ok(changes)
    }

    fn replay(&mut self, mut bytes: &[u8]) -> Result<(), postcard::Error> {
        while !bytes.is_empty() {
            let (change, rest) = postcard::take_from_bytes(bytes)?;
            match change {
                Change::Put(id, record) => self.put(id, record.to_vec()),
                Change::Drop(id) => self.drop(id),
                Change::Enqueue(lane, ready_at, id) => self.enqueue((lane, ready_at, id)),
                Change::Dequeue(lane, ready_at, id) => self.dequeue((lane, ready_at, id)),
                Change::Lane(id, record) => self.put_lane(id, record),
            }
            bytes = rest;
        }
        self.log.clear();
        Ok(())
    }

    /// Sets the number of rows in the table `queue` after loading.
    pub(crate) fn set_places(&mut self, places: u64) {
        self.places = places;
    }

    /// Number of rows of the log, to be stored with each commit.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the changes should be written to the tables now, in an open transaction.
    pub(crate) fn is_full(&self) -> bool {
        let changes = self.jobs.len() + self.added.len() + self.left.len() + self.lanes.len();
        let most = (self.places / QUEUE_ROWS_PER_CHANGE) as usize;
        let most = most.clamp(CHANGES_MIN, CHANGES_MAX);
        changes >= most || self.logged_bytes + self.log.len() >= most * LOG_BYTES_PER_CHANGE
    }

    fn note(&mut self, change: &Change<'_>) {
        let log = std::mem::take(&mut self.log);
        // Writing to memory cannot fail.
        self.log = postcard::to_extend(change, log).unwrap_or_default();
    }

    pub(crate) fn put(&mut self, id: JobId, record: Vec<u8>) {
        self.note(&Change::Put(id, &record));
        self.read.remove(&id);
        self.jobs.insert(id, Some(record));
    }

    pub(crate) fn drop(&mut self, id: JobId) {
        self.note(&Change::Drop(id));
        self.read.remove(&id);
        if self.last_filed.is_some_and(|last| id <= last) {
            self.jobs.insert(id, None);
        } else {
            self.jobs.remove(&id);
        }
    }

    pub(crate) fn put_lane(&mut self, id: LaneId, record: &[u8]) {
        self.note(&Change::Lane(id, record));
        self.lanes.insert(id, record.to_vec());
    }

    pub(crate) fn enqueue(&mut self, place: QueueRow) {
        let (lane, ready_at, id) = place;
        self.note(&Change::Enqueue(lane, ready_at, id));
        if self.left.remove(&place) {
            // The row is still in the table and is valid again.
            self.heads.remove(&lane);
        } else {
            self.added.insert(place);
        }
    }

    pub(crate) fn dequeue(&mut self, place: QueueRow) {
        let (lane, ready_at, id) = place;
        self.note(&Change::Dequeue(lane, ready_at, id));
        if self.added.remove(&place) {
            return;
        }
        self.left.insert(place);
        if let Some(heads) = self.heads.get_mut(&lane) {
            heads.ahead.retain(|place| *place != (ready_at, id));
        }
    }

    /// The record of a job, from the changes or from the table.
    pub(crate) fn job(
        &mut self,
        connection: &Connection,
        id: JobId,
    ) -> Result<Option<&[u8]>, TableFault> {
        if let Some(change) = self.jobs.get(&id) {
            return Ok(change.as_deref());
        }
        if !self.read.contains_key(&id) {
            let mut statement =
                connection.prepare_cached("SELECT record FROM jobs WHERE id = ?1")?;
            let mut rows = statement.query(params![id.0 as i64])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let sealed = row.get_ref(0)?.as_blob().unwrap_or_default();
            let record = open_record(sealed, id)?.to_vec();
            if self.read.len() >= JOBS_READ_MAX {
                self.read.clear();
            }
            self.read.insert(id, record);
        }
        Ok(self.read.get(&id).map(Vec::as_slice))
    }

    /// The first queue row of a lane, from the changes or from the table.
    pub(crate) fn first(
        &mut self,
        connection: &Connection,
        lane: LaneId,
    ) -> Result<Option<(u64, JobId)>, TableFault> {
        let here = self.added.range((lane, 0, JobId(0))..).next();
        let here = here.filter(|(own, ..)| *own == lane).map(|(_, at, id)| (*at, *id));
        if self.heads.len() >= LANES_MAX && !self.heads.contains_key(&lane) {
            self.heads.clear();
        }
        let heads = self.heads.entry(lane).or_insert_with(QueueAhead::unread);
        while heads.ahead.is_empty() && heads.more {
            heads.read_on(connection, lane)?;
            let left = &self.left;
            heads.ahead.retain(|(ready_at, id)| !left.contains(&(lane, *ready_at, *id)));
        }
        Ok(heads.ahead.front().copied().into_iter().chain(here).min())
    }

    /// Writes the changes since the last commit to the log.
    pub(crate) fn save(&mut self, connection: &Connection) -> Result<(), TableFault> {
        if self.log.is_empty() {
            return Ok(());
        }
        let id = self.rows as i64;
        connection
            .prepare_cached("INSERT INTO late (id, changes) VALUES (?1, ?2)")?
            .execute(params![id, seal_numbered(id, &self.log)])?;
        self.rows += 1;
        self.logged_bytes += self.log.len();
        self.log.clear();
        Ok(())
    }

    /// Writes all changes to the tables and clears the log.
    pub(crate) fn file(
        &mut self,
        connection: &Connection,
        sums: &mut TableSums,
    ) -> Result<(), TableFault> {
        self.file_jobs(connection)?;
        self.file_queue(connection, sums)?;
        let mut put = connection
            .prepare_cached("INSERT OR REPLACE INTO lanes (id, record) VALUES (?1, ?2)")?;
        for (id, record) in std::mem::take(&mut self.lanes) {
            put.execute(params![id.0, seal_bytes(&record)])?;
        }
        connection.prepare_cached("DELETE FROM late")?.execute([])?;
        self.log.clear();
        (self.rows, self.logged_bytes) = (0, 0);
        Ok(())
    }

    fn file_jobs(&mut self, connection: &Connection) -> Result<(), TableFault> {
        let mut put = connection
            .prepare_cached("INSERT OR REPLACE INTO jobs (id, record) VALUES (?1, ?2)")?;
        let mut drop = connection.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
        for (id, record) in std::mem::take(&mut self.jobs) {
            match record {
                Some(record) => {
                    put.execute(params![id.0 as i64, seal_bytes(&record)])?;
                    self.last_filed = self.last_filed.max(Some(id));
                }
                None => {
                    drop.execute(params![id.0 as i64])?;
                }
            }
        }
        Ok(())
    }

    fn file_queue(
        &mut self,
        connection: &Connection,
        sums: &mut TableSums,
    ) -> Result<(), TableFault> {
        let mut enter = connection
            .prepare_cached("INSERT INTO queue (lane, ready_at, id) VALUES (?1, ?2, ?3)")?;
        let mut leave = connection
            .prepare_cached("DELETE FROM queue WHERE lane = ?1 AND ready_at = ?2 AND id = ?3")?;
        self.places += self.added.len() as u64;
        self.places = self.places.saturating_sub(self.left.len() as u64);
        for (lane, ready_at, id) in std::mem::take(&mut self.left) {
            if leave.execute(params![lane.0, ready_at as i64, id.0 as i64])? != 1 {
                return Err(TableFault::Damaged(format!(
                    "job {} is not at its position in the queue",
                    id.0
                )));
            }
            sums.queue.remove(&place(lane, ready_at, id));
        }
        for (lane, ready_at, id) in std::mem::take(&mut self.added) {
            enter.execute(params![lane.0, ready_at as i64, id.0 as i64])?;
            sums.queue.add(&place(lane, ready_at, id));
        }
        self.heads.clear();
        Ok(())
    }
}

fn open_record(sealed: &[u8], id: JobId) -> Result<&[u8], TableFault> {
    unseal_numbered(0, sealed)
        .ok_or_else(|| TableFault::Damaged(format!("job {} is damaged", id.0)))
}

impl QueueAhead {
    fn unread() -> Self {
        Self { ahead: VecDeque::new(), after: None, more: true }
    }

    fn read_on(&mut self, connection: &Connection, lane: LaneId) -> Result<(), TableFault> {
        let after = self.after.map_or((-1, -1), |(ready_at, id)| (ready_at as i64, id.0 as i64));
        let mut statement = connection.prepare_cached(
            "SELECT ready_at, id FROM queue WHERE lane = ?1 AND (ready_at, id) > (?2, ?3)
             ORDER BY ready_at, id LIMIT 16",
        )?;
        let mut rows = statement.query(params![lane.0, after.0, after.1])?;
        while let Some(row) = rows.next()? {
            let (ready_at, id) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
            self.ahead.push_back((ready_at, JobId(id)));
        }
        self.more = self.ahead.len() == QUEUE_ROWS_AHEAD;
        self.after = self.ahead.back().copied();
        Ok(())
    }
}
