//! The replica as raft's state machine: raft applies entries to it, and builds and installs snapshots.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{AnyError, RaftSnapshotBuilder, StorageIOError};
use tokio::sync::oneshot;

use crate::cluster::election::Leadership;
use crate::cluster::locked;
use crate::cluster::messages::{LogId, Membership, Replies, SnapshotMeta, StorageError, Types};
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::snapshot::{CURRENT, META, RECEIVED, copy, io_error, verify};
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::failpoint;
use crate::store::StoreError;
use crate::store::journal::sync_name;
use crate::threads::ignore::ignore_closed;

/// Calls of `apply` on a follower whose replies are not awaited.
const UNAWAITED_MAX: usize = 16;

/// The replica, as raft uses it.
#[derive(Clone)]
pub(in crate::cluster) struct StateMachine {
    replica: ReplicaHandle,
    log: RaftLog,
    /// Weak, because raft owns this and the leadership owns raft.
    leadership: Weak<Leadership>,
    /// Entries that are being applied and whose replies nobody awaits.
    unawaited: Arc<Mutex<VecDeque<Applied>>>,
}

type Applied = oneshot::Receiver<Result<Vec<Replies>, StoreError>>;

fn storage_error(error: &StoreError) -> StorageError {
    StorageIOError::write_snapshot(None, AnyError::error(error)).into()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Failed(format!("snapshot: {error}"))))
}

async fn answers(applied: Applied) -> Result<Vec<Replies>, StorageError> {
    let answers = applied.await.unwrap_or(Err(StoreError::Closed));
    answers.map_err(|error| StorageIOError::write_state_machine(AnyError::error(&error)).into())
}

impl StateMachine {
    pub(in crate::cluster) fn new(
        replica: ReplicaHandle,
        log: RaftLog,
        leadership: Weak<Leadership>,
    ) -> Self {
        Self { replica, log, leadership, unawaited: Arc::default() }
    }

    /// Adds replies that nobody awaits. Returns the oldest ones if there are too many.
    fn set_aside(&self, applied: Applied) -> Option<Applied> {
        let mut unawaited = locked(&self.unawaited);
        unawaited.push_back(applied);
        if unawaited.len() > UNAWAITED_MAX { unawaited.pop_front() } else { None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.replica.dir.join(name)
    }

    async fn current(&self) -> Result<Option<Snapshot<Types>>, StoreError> {
        let Some(meta) = self.log.local::<SnapshotMeta>(META) else { return Ok(None) };
        let path = self.path(CURRENT);
        let file = match tokio::fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&path, &error)),
        };
        // The process was killed between the file and its description. The next snapshot will be right.
        let known = meta.clone();
        if blocking(move || verify(&known, &path)).await.is_err() {
            return Ok(None);
        }
        Ok(Some(Snapshot { meta, snapshot: Box::new(file) }))
    }

    async fn build(&self) -> Result<Snapshot<Types>, StoreError> {
        self.replica.ask(ReplicaRequest::Settle).await??;
        let dir = self.replica.dir.clone();
        let meta = blocking(move || copy(&dir)).await?;
        // Raft may now purge the log up to the snapshot, so the tables have to be durable.
        self.replica.ask(ReplicaRequest::Sync).await??;
        self.log.keep(META, &meta).await?;
        failpoint::pass("snapshot.kept.after");
        let path = self.path(CURRENT);
        let file = tokio::fs::File::open(&path).await.map_err(|error| io_error(&path, &error))?;
        Ok(Snapshot { meta, snapshot: Box::new(file) })
    }

    async fn install(
        &self,
        meta: &SnapshotMeta,
        file: Box<tokio::fs::File>,
    ) -> Result<(), StoreError> {
        let (received, current) = (self.path(RECEIVED), self.path(CURRENT));
        let failed = |error: io::Error| io_error(&received, &error);
        file.sync_all().await.map_err(failed)?;
        drop(file);
        let (meta_sent, path) = (meta.clone(), received.clone());
        self.replica.ask(|done| ReplicaRequest::Install(meta_sent, path, done)).await??;
        tokio::fs::rename(&received, &current).await.map_err(failed)?;
        blocking(move || sync_name(&current).map_err(|error| io_error(&current, &error))).await?;
        self.log.keep(META, meta).await
    }
}

impl RaftSnapshotBuilder<Types> for StateMachine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        self.build().await.map_err(|error| storage_error(&error))
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        let mark =
            self.replica.ask(ReplicaRequest::State).await.map_err(|error| storage_error(&error))?;
        Ok((mark.applied, mark.membership))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Replies>, StorageError>
    where
        I: IntoIterator<Item = openraft::Entry<Types>> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<_> = entries.into_iter().collect();
        let count = entries.len();
        let (done, applied) = oneshot::channel();
        ignore_closed(self.replica.requests.send(ReplicaRequest::Apply(entries, done)));
        if self.leadership.upgrade().is_some_and(|leadership| leadership.leads().is_some()) {
            return answers(applied).await;
        }
        // A follower applies entries in order whether raft awaits them or not, and waking raft costs time.
        if let Some(oldest) = self.set_aside(applied) {
            answers(oldest).await?;
        }
        Ok(vec![Replies::default(); count])
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<tokio::fs::File>, StorageError> {
        let path = self.path(RECEIVED);
        let opened = tokio::fs::File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)
            .await;
        opened.map(Box::new).map_err(|error| storage_error(&io_error(&path, &error)))
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        received: Box<tokio::fs::File>,
    ) -> Result<(), StorageError> {
        self.install(meta, received).await.map_err(|error| storage_error(&error))
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        self.current().await.map_err(|error| storage_error(&error))
    }
}
