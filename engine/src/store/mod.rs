//! Where the ledger is kept: in this process, or behind consensus. The rest of the engine knows
//! this contract only.

pub(crate) mod answer;
mod change_log;
mod fsck;
pub(crate) mod journal;
pub(crate) mod lock;
pub(crate) mod mark;
pub(crate) mod output;
mod output_rows;
pub(crate) mod restore;
pub(crate) mod seal;
mod seen;
pub(crate) mod solo;
pub(crate) mod sqlite;
#[cfg(test)]
mod suite;
mod sums;
mod verify;

use std::fmt;

use futures_util::future::BoxFuture;
use shaku::Interface;
use tokio::sync::watch;

use crate::ledger::{
    Command, FailedJob, JobId, OutputBlock, Reply, Run, SessionId, Standing, TableError,
};

pub(crate) use fsck::{LogCheck, damage, examine};
pub(crate) use solo::{OpenOptions, SoloHandle, SoloStore, SoloStoreParameters, SoloThread, leave};
pub(crate) use sqlite::store_error;

/// Where the ledger is kept.
pub trait Store: Interface {
    /// Applies `command` in the one agreed order. `Join`, `OpenRun`, `Begin`, `Finish` and
    /// `Close` are answered once they are durable, every other command as soon as it is applied.
    fn submit(&self, command: Command) -> BoxFuture<'static, Result<Reply, StoreError>>;

    /// [`Store::submit`] for several at a time: they travel together and are applied in this order.
    fn submit_all(
        &self,
        commands: Vec<Command>,
    ) -> Vec<BoxFuture<'static, Result<Reply, StoreError>>> {
        commands.into_iter().map(|command| self.submit(command)).collect()
    }

    /// Reads what has been applied; output only what is durable.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Answer, StoreError>>;

    /// [`Store::submit`] for threads.
    fn submit_blocking(&self, command: Command) -> Result<Reply, StoreError>;

    /// [`Store::ask`] for threads.
    fn ask_blocking(&self, question: Question) -> Result<Answer, StoreError>;

    /// Gives a sign of life of a session; answers once that is agreed on, and tells whether the
    /// session still lives.
    fn renew(&self, session: SessionId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// From now on a node answers itself from what it knows, older as that may be than what it was told
    /// before: its work has ended, and others that could tell it more may all be gone.
    fn make_do(&self) {}

    /// The process was asked to stop: what this node does for the others, another is to do from now
    /// on.
    fn step_aside(&self) {}

    /// The few numbers that are watched, after each commit.
    fn standing(&self) -> watch::Receiver<Standing>;

    /// Wakes its reader when there is new committed output; holds one wake-up at most.
    fn output_bell(&self) -> crossbeam_channel::Receiver<()>;
}

/// What can be read.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "the variants tell what their fields are for")]
pub enum Question {
    /// The current or last run.
    Run,
    /// A published blob.
    Blob([u8; 32]),
    /// Committed output of one appender after a position, at most so many bytes (but one block).
    Output { appender: u32, after: u64, bytes_max: usize },
    /// Committed output up to the block `last`, in canonical order; `after` is the number of blocks
    /// already read. What is committed meanwhile comes behind `last` and moves none of them.
    CanonicalOutput { appender: u32, after: u64, last: u64, bytes_max: usize },
    /// Failed jobs after one, at most so many.
    Failed { after: Option<JobId>, limit: usize },
    /// What came of the crossing of a barricade, if it concerns this session.
    Crossed { session: SessionId, name: String },
    /// Nothing; answered once everything before it is durable.
    Flush,
}

/// What was read.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum Answer {
    /// The run, if there is one.
    Run(Option<Box<Run>>),
    /// The blob, if it is there.
    Blob(Option<Vec<u8>>),
    /// Blocks of output.
    Output(Vec<OutputBlock>),
    /// Failed jobs.
    Failed(Vec<(JobId, FailedJob)>),
    /// What came of it, if it is over.
    Crossed(Option<Result<(), String>>),
    /// Everything is durable.
    Flushed,
}

/// Why the store did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process has the data directory.
    #[error("data directory `{0}` is in use by another process")]
    InUse(String),
    /// A newer version wrote it.
    #[error(
        "data directory `{path}` was written by a newer version (format {found}, this is {known})"
    )]
    Newer {
        /// Which.
        path: String,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// An older version wrote it.
    #[error(
        "data directory `{path}` was written by an older version (format {found}, this is \
         {known}): let that version finish its run, or name another directory with `data.dir`"
    )]
    Older {
        /// Which.
        path: String,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// What is on disk is not what was written.
    #[error("data directory is damaged: {0}")]
    Damaged(String),
    /// The disk is full.
    #[error("disk is full: {0}")]
    Full(String),
    /// Any other failure of the disk or the library.
    #[error("store failed: {0}")]
    Failed(String),
    /// The settings of a cluster make no sense together.
    #[error("{0}")]
    Unfit(String),
    /// Too few nodes are there to agree on anything.
    #[error("{0}")]
    NoQuorum(String),
    /// This node may not take part.
    #[error("{0}")]
    Excluded(String),
    /// The process before this one was killed when its run had ended everywhere, with this code.
    #[error("the run had ended before this node came; start it again for the next one")]
    Ended(u8),
    /// The store has ended.
    #[error("store is closed")]
    Closed,
}

/// Why a part of the database did not answer.
#[derive(Debug)]
enum TableFault {
    /// The database.
    Sql(rusqlite::Error),
    /// What is there is not what was written.
    Damaged(String),
}

impl From<rusqlite::Error> for TableFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl StoreError {
    /// Why a file of such a format cannot be used, if it cannot; 0 is a file not yet made.
    pub(crate) fn of_format(found: i64, known: i64, path: &str) -> Option<Self> {
        let path = path.to_owned();
        match found {
            0 => None,
            _ if found > known => Some(Self::Newer { path, found, known }),
            _ if found < known => Some(Self::Older { path, found, known }),
            _ => None,
        }
    }

    /// Whether space would help.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl From<TableError> for StoreError {
    fn from(TableError { message, full }: TableError) -> Self {
        if full { Self::Full(message) } else { Self::Damaged(message) }
    }
}

/// Whether a data directory has a ledger; one that has lost its ledger is damaged.
pub(crate) fn is_there(dir: &std::path::Path) -> Result<bool, StoreError> {
    mark::CommitMark::of(dir).is_ledger_there()
}

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}
