//! The ledger's large state: ordered tables that need not fit in memory.
//!
//! The ledger decides; tables only keep. [`MemoryTables`] is the model that tests and the
//! simulation run on; the embedded store implements the same trait on disk.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::command::{JobId, JobKey, NewJob, OutputBlock, Token};

/// A lane's number; 0 is the isolation lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneId(pub u32);

/// The isolation lane: jobs that keep killing their workers. It is served last, one job at a time.
pub(super) const ISOLATION: LaneId = LaneId(0);

/// A job that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What to do.
    pub new: NewJob,
    /// Queue it stands in, or stood in before it was taken.
    pub lane: LaneId,
    /// When it may be taken; its place in the queue.
    pub ready_at: u64,
    /// Tasks still to run; empty means all.
    pub tasks: Vec<String>,
    /// Tries that ended in a retry.
    pub attempts: u32,
    /// Workers that died holding it among other jobs.
    pub deaths: u32,
    /// Workers that died of its tasks, holding nothing else.
    pub lone_deaths: u32,
    /// Token of its latest grant.
    pub last_token: Token,
    /// Where redirects have led it, if to another host; `new` then names that host's lane.
    pub redirect: Option<JobRedirect>,
}

/// A job's way beyond its own host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRedirect {
    /// Address to load next.
    pub at: String,
    /// Redirects followed to get there.
    pub redirects: u32,
    /// Lane of the job's own address, where a new run of it begins.
    pub home: String,
    /// Whether that lane is held to the policy's delay and slots.
    pub home_polite: bool,
}

/// A job that ended without (all of) its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedJob {
    /// The job as it was; its `tasks` are those that failed.
    pub job: Job,
    /// Why, in words; one entry for each failed task, or one for the page.
    pub reasons: Vec<String>,
}

/// Something the tables could not do; the process must end, since nothing after it is certain.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TableError {
    /// What happened, with the file's name.
    pub message: String,
    /// Whether the disk is full.
    pub full: bool,
}

/// Result of a table operation.
pub type TableResult<T> = Result<T, TableError>;

/// Ordered state that may live on disk.
pub trait Tables {
    /// Stores a job.
    fn put_job(&mut self, id: JobId, job: &Job) -> TableResult<()>;
    /// Reads a job.
    fn job(&mut self, id: JobId) -> TableResult<Option<Job>>;
    /// Forgets a job.
    fn drop_job(&mut self, id: JobId) -> TableResult<()>;
    /// Remembers a key; `false` if it was known.
    fn mark_seen(&mut self, key: JobKey) -> TableResult<bool>;
    /// Whether a key is remembered.
    fn is_seen(&mut self, key: JobKey) -> TableResult<bool>;
    /// Puts a job into a lane's queue.
    fn enqueue(&mut self, lane: LaneId, place: u64, id: JobId) -> TableResult<()>;
    /// Takes a job out of a lane's queue.
    fn dequeue(&mut self, lane: LaneId, place: u64, id: JobId) -> TableResult<()>;
    /// The first job of a lane's queue, and its place there.
    fn first_in_lane(&mut self, lane: LaneId) -> TableResult<Option<(u64, JobId)>>;
    /// Stores a failed job.
    fn put_failed(&mut self, id: JobId, failed: &FailedJob) -> TableResult<()>;
    /// Failed jobs after `after`, in order, at most `limit`.
    fn failed(
        &mut self,
        after: Option<JobId>,
        limit: usize,
    ) -> TableResult<Vec<(JobId, FailedJob)>>;
    /// Forgets a failed job.
    fn drop_failed(&mut self, id: JobId) -> TableResult<()>;
    /// Appends to the output.
    fn append_output(&mut self, block: OutputBlock) -> TableResult<()>;
    /// Stores a blob under its hash.
    fn put_blob(&mut self, hash: [u8; 32], bytes: &[u8]) -> TableResult<()>;
    /// Stores the small state of a lane.
    fn put_lane(&mut self, id: LaneId, bytes: &[u8]) -> TableResult<()>;
    /// Forgets jobs, queues, lanes, keys, failures, output and blobs: a new run begins.
    fn clear(&mut self) -> TableResult<()>;
    /// The words for tables that contradict themselves, with the file's name if there is one.
    fn damaged(&self, message: &str) -> TableError {
        TableError { message: message.to_owned(), full: false }
    }
}

/// Tables in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryTables {
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) seen: BTreeSet<JobKey>,
    pub(crate) queue: BTreeSet<(LaneId, u64, JobId)>,
    pub(crate) failed: BTreeMap<JobId, FailedJob>,
    pub(crate) output: Vec<OutputBlock>,
    pub(crate) blobs: BTreeMap<[u8; 32], Vec<u8>>,
    pub(crate) lanes: BTreeMap<LaneId, Vec<u8>>,
}

impl Tables for MemoryTables {
    fn put_job(&mut self, id: JobId, job: &Job) -> TableResult<()> {
        self.jobs.insert(id, job.clone());
        Ok(())
    }

    fn job(&mut self, id: JobId) -> TableResult<Option<Job>> {
        Ok(self.jobs.get(&id).cloned())
    }

    fn drop_job(&mut self, id: JobId) -> TableResult<()> {
        self.jobs.remove(&id);
        Ok(())
    }

    fn mark_seen(&mut self, key: JobKey) -> TableResult<bool> {
        Ok(self.seen.insert(key))
    }

    fn is_seen(&mut self, key: JobKey) -> TableResult<bool> {
        Ok(self.seen.contains(&key))
    }

    fn enqueue(&mut self, lane: LaneId, ready_at: u64, id: JobId) -> TableResult<()> {
        self.queue.insert((lane, ready_at, id));
        Ok(())
    }

    fn dequeue(&mut self, lane: LaneId, ready_at: u64, id: JobId) -> TableResult<()> {
        self.queue.remove(&(lane, ready_at, id));
        Ok(())
    }

    fn first_in_lane(&mut self, lane: LaneId) -> TableResult<Option<(u64, JobId)>> {
        let from = (lane, 0, JobId(0));
        let first = self.queue.range(from..).next().filter(|(own, ..)| *own == lane);
        Ok(first.map(|(_, ready_at, id)| (*ready_at, *id)))
    }

    fn put_failed(&mut self, id: JobId, failed: &FailedJob) -> TableResult<()> {
        self.failed.insert(id, failed.clone());
        Ok(())
    }

    fn failed(
        &mut self,
        after: Option<JobId>,
        limit: usize,
    ) -> TableResult<Vec<(JobId, FailedJob)>> {
        let later = self.failed.iter().filter(|(id, _)| after.is_none_or(|after| **id > after));
        Ok(later.take(limit).map(|(id, failed)| (*id, failed.clone())).collect())
    }

    fn drop_failed(&mut self, id: JobId) -> TableResult<()> {
        self.failed.remove(&id);
        Ok(())
    }

    fn append_output(&mut self, block: OutputBlock) -> TableResult<()> {
        self.output.push(block.clone());
        Ok(())
    }

    fn put_blob(&mut self, hash: [u8; 32], bytes: &[u8]) -> TableResult<()> {
        self.blobs.insert(hash, bytes.to_vec());
        Ok(())
    }

    fn put_lane(&mut self, id: LaneId, bytes: &[u8]) -> TableResult<()> {
        self.lanes.insert(id, bytes.to_vec());
        Ok(())
    }

    fn clear(&mut self) -> TableResult<()> {
        *self = Self::default();
        Ok(())
    }
}
