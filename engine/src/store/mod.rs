//! The contract of a store, and the store of one machine. The rest of the engine knows only the trait
//! [`Store`]; `cluster` implements it for several nodes.
//!
//! The *journal* (`state.journal`) makes commands durable. Each commit appends the commands since the
//! last one as one record and syncs it. A reply that must survive a crash waits for that sync.
//!
//! The *tables* (`state.db`, SQLite) hold the large state. Changes of jobs and queues are buffered in a
//! change log (`change_log.rs`), and known keys in a merge tree (`seen/`), because both would cost random
//! page writes otherwise.
//!
//! A *commit of the tables* happens when the journal is full. It writes the buffered changes and the core
//! record in one SQLite transaction, and the journal starts over. Every record has a checksum
//! (`seal.rs`), and `state.mark` holds the number of a commit that is certainly on disk.
//!
//! A *restore* loads the tables, verifies them, and applies the newer commits of the journal. A ledger
//! that ends before its mark is refused. `fsck.rs` checks everything record by record.

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

/// A ledger behind a queue of commands and questions.
pub trait Store: Interface {
    /// Applies `command` in the agreed order. The reply to `Join`, `OpenRun`, `Begin`, `Finish`, `Close`
    /// and `Leave` comes after the command is durable, every other reply after it is applied.
    fn submit(&self, command: Command) -> BoxFuture<'static, Result<Reply, StoreError>>;

    /// [`Store::submit`] for a batch, which is sent together and applied in this order.
    fn submit_all(
        &self,
        commands: Vec<Command>,
    ) -> Vec<BoxFuture<'static, Result<Reply, StoreError>>> {
        commands.into_iter().map(|command| self.submit(command)).collect()
    }

    /// Reads the applied state. Output is returned only after it is durable.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Answer, StoreError>>;

    /// [`Store::submit`] for threads.
    fn submit_blocking(&self, command: Command) -> Result<Reply, StoreError>;

    /// [`Store::ask`] for threads.
    fn ask_blocking(&self, question: Question) -> Result<Answer, StoreError>;

    /// Renews a session. Returns, after the renewal is committed, whether the session still exists.
    fn renew(&self, session: SessionId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Makes the node answer questions from its own copy of the ledger, even if that is older than replies
    /// it has had. Called when its work has ended, because no other node may be left to ask.
    fn make_do(&self) {}

    /// Hands the leadership to another node, because this process was asked to stop.
    fn step_aside(&self) {}

    /// Figures of the ledger, updated after each commit.
    fn standing(&self) -> watch::Receiver<Standing>;

    /// Receives a wake-up when there is new committed output. The channel holds at most one.
    fn output_bell(&self) -> crossbeam_channel::Receiver<()>;
}

/// A question to the store.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Question {
    /// The current or last run.
    Run,
    /// A published blob.
    Blob([u8; 32]),
    /// Committed output of one appender after a position: at most `bytes_max` bytes, but at least one block.
    Output { appender: u32, after: u64, bytes_max: usize },
    /// Committed output up to the block `last`, in canonical order. `after` is the number of blocks already
    /// read. Blocks committed in the meantime come after `last` and do not change the order.
    CanonicalOutput { appender: u32, after: u64, last: u64, bytes_max: usize },
    /// At most `limit` failed jobs after a job.
    Failed { after: Option<JobId>, limit: usize },
    /// The result of crossing a barricade, if this session may read it.
    Crossed { session: SessionId, name: String },
    /// Nothing. The answer comes after all earlier commands are durable.
    Flush,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum Answer {
    /// The run, if there is one.
    Run(Option<Box<Run>>),
    /// The blob, if it exists.
    Blob(Option<Vec<u8>>),
    /// Blocks of output.
    Output(Vec<OutputBlock>),
    /// Failed jobs.
    Failed(Vec<(JobId, FailedJob)>),
    /// The result, if the crossing has ended.
    Crossed(Option<Result<(), String>>),
    /// All earlier commands are durable.
    Flushed,
}

/// Why the store did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process uses the data directory.
    #[error("data directory `{0}` is in use by another process")]
    InUse(String),
    /// A newer version wrote it.
    #[error(
        "data directory `{path}` was written by a newer version (format {found}, this is {known})"
    )]
    Newer {
        /// The data directory.
        path: String,
        /// The format of the file.
        found: i64,
        /// The format of this version.
        known: i64,
    },
    /// An older version wrote it.
    #[error(
        "data directory `{path}` was written by an older version (format {found}, this is \
         {known}): let that version finish its run, or name another directory with `data.dir`"
    )]
    Older {
        /// The data directory.
        path: String,
        /// The format of the file.
        found: i64,
        /// The format of this version.
        known: i64,
    },
    /// A file is damaged or missing.
    #[error("data directory is damaged: {0}")]
    Damaged(String),
    /// The disk is full.
    #[error("disk is full: {0}")]
    Full(String),
    /// Any other failure of a disk or a library.
    #[error("store failed: {0}")]
    Failed(String),
    /// The settings of the cluster contradict each other.
    #[error("{0}")]
    Unfit(String),
    /// Too few nodes are connected for a quorum.
    #[error("{0}")]
    NoQuorum(String),
    /// This node may not take part.
    #[error("{0}")]
    Excluded(String),
    /// The previous process was killed after its run had ended on all nodes. The code is that of the run.
    #[error("the run ended before this node joined; start the node again for the next run")]
    Ended(u8),
    /// The store was closed.
    #[error("store is closed")]
    Closed,
}

/// A failure inside a part of the tables, which does not know the name of its file.
#[derive(Debug, thiserror::Error)]
enum TableFault {
    /// SQLite failed.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// A record is damaged or missing.
    #[error("{0}")]
    Damaged(String),
}

impl StoreError {
    /// The error for a file with another format. A new file has format 0.
    pub(crate) fn of_format(found: i64, known: i64, path: &str) -> Option<Self> {
        let path = path.to_owned();
        match found {
            0 => None,
            _ if found > known => Some(Self::Newer { path, found, known }),
            _ if found < known => Some(Self::Older { path, found, known }),
            _ => None,
        }
    }

    /// Whether free space on the disk would help.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl From<TableError> for StoreError {
    fn from(TableError { message, full }: TableError) -> Self {
        if full { Self::Full(message) } else { Self::Damaged(message) }
    }
}

/// Whether a data directory has a ledger. It is an error if the ledger is missing beside files of a run.
pub(crate) fn is_there(dir: &std::path::Path) -> Result<bool, StoreError> {
    mark::CommitMark::of(dir).is_ledger_there()
}

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}
