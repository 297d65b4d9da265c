//! Copies of the whole ledger, for nodes that are far behind or whose disk is new: a copy of
//! `state.db`, named by what it holds and by its hash.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{AnyError, RaftSnapshotBuilder, StorageIOError};
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use crate::cluster::messages::{LogId, Membership, Replies, SnapshotMeta, StorageError, Types};
use crate::cluster::node::{Hub, Voter, locked};
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::apply::{MARK, ReplicaMark};
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest, STATE};
use crate::failpoint;
use crate::store::journal::sync_name;
use crate::store::sqlite::store_error;
use crate::store::{StoreError, seal};

/// Entries, or runs of them, that may be on their way to the machine of a node that does not lead.
const UNAWAITED_MAX: usize = 16;
/// The latest snapshot.
const CURRENT: &str = "snapshot.db";
/// One that is being made.
const MAKING: &str = "snapshot.part";
/// One that is being received.
const RECEIVED: &str = "snapshot.received";
/// Name of its description among this node's records.
const META: &str = "snapshot";

/// What raft sees of the machine.
#[derive(Clone)]
pub(in crate::cluster) struct StateMachine {
    machine: ReplicaHandle,
    log: RaftLog,
    /// Whether this node leads, as far as is known: then somebody waits for answers.
    leads: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Answers on their way that nobody waits for.
    unawaited: Arc<Mutex<VecDeque<Applied>>>,
}

type Applied = oneshot::Receiver<Result<Vec<Replies>, StoreError>>;

fn io_error(path: &Path, error: &io::Error) -> StoreError {
    let words = format!("`{}`: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull => StoreError::Full(words),
        _ => StoreError::Failed(words),
    }
}

fn hash_of(path: &Path) -> Result<String, StoreError> {
    let failed = |error: io::Error| io_error(path, &error);
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

fn mark_in(connection: &Connection, name: &str) -> Result<ReplicaMark, StoreError> {
    let record: Vec<u8> = connection
        .query_row("SELECT record FROM replica WHERE name = ?1", [MARK], |row| row.get(0))
        .map_err(|error| store_error(name, &error))?;
    let odd = |words: String| StoreError::Damaged(format!("`{name}`: {words}"));
    let bytes = seal::unseal_bytes(&record, "its mark").map_err(|error| odd(error.message))?;
    postcard::from_bytes(bytes).map_err(|error| odd(error.to_string()))
}

/// Copies the tables as of their last commit, while they are being written.
fn copy(dir: &Path) -> Result<SnapshotMeta, StoreError> {
    let (from, part, current) = (dir.join(STATE), dir.join(MAKING), dir.join(CURRENT));
    let name = part.display().to_string();
    let failed = |error: rusqlite::Error| store_error(&name, &error);
    remove(&part)?;
    failpoint::pass("snapshot.copy.before");
    let source = Connection::open_with_flags(&from, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let source = source.map_err(failed)?;
    let mut target = Connection::open(&part).map_err(failed)?;
    Backup::new(&source, &mut target).and_then(|backup| backup.step(-1)).map_err(failed)?;
    target.execute_batch("PRAGMA journal_mode=DELETE").map_err(failed)?;
    let ReplicaMark { applied, membership, .. } = mark_in(&target, &name)?;
    drop((source, target));
    let synced = File::open(&part).and_then(|file| file.sync_all());
    synced.map_err(|error| io_error(&part, &error))?;
    let hash = hash_of(&part)?;
    failpoint::pass("snapshot.rename.before");
    std::fs::rename(&part, &current).map_err(|error| io_error(&current, &error))?;
    sync_name(&current).map_err(|error| io_error(dir, &error))?;
    failpoint::pass("snapshot.rename.after");
    let index = applied.map_or(0, |applied| applied.index);
    let snapshot_id = format!("{index}-{hash}");
    Ok(SnapshotMeta { last_log_id: applied, last_membership: membership, snapshot_id })
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path, &error)),
        _ => Ok(()),
    }
}

/// Whether a received snapshot is what its description says.
pub(in crate::cluster) fn verify(meta: &SnapshotMeta, path: &Path) -> Result<(), StoreError> {
    let hash = hash_of(path)?;
    if meta.snapshot_id.ends_with(&hash) {
        return Ok(());
    }
    Err(StoreError::Damaged(format!("`{}` is not the snapshot that was sent", path.display())))
}

/// Makes a copy of a snapshot the tables of this node. Nobody has them open.
pub(in crate::cluster) fn put_in_place(snapshot: &Path, state: &Path) -> Result<(), StoreError> {
    let fresh = state.with_extension("new");
    let failed = |error: io::Error| io_error(state, &error);
    std::fs::copy(snapshot, &fresh).map_err(failed)?;
    File::open(&fresh).and_then(|file| file.sync_all()).map_err(failed)?;
    // The log of the old tables must never meet the new ones; all that counts is in the old file.
    for side in ["-wal", "-shm"] {
        let mut name = state.as_os_str().to_owned();
        name.push(side);
        remove(Path::new(&name))?;
    }
    sync_name(state).map_err(failed)?;
    failpoint::pass("snapshot.install.middle");
    std::fs::rename(&fresh, state).map_err(failed)?;
    sync_name(state).map_err(failed)
}

/// Makes the latest snapshot the tables of this node, if it is whole and reaches that far. Nobody has
/// them open.
pub(in crate::cluster) fn stand_in(
    dir: &Path,
    log: &RaftLog,
    upto: Option<u64>,
) -> Result<bool, StoreError> {
    let path = dir.join(CURRENT);
    let meta = log.local::<SnapshotMeta>(META).filter(|meta| {
        meta.last_log_id.map(|last| last.index) >= upto && verify(meta, &path).is_ok()
    });
    if meta.is_some() {
        put_in_place(&path, &dir.join(STATE))?;
    }
    Ok(meta.is_some())
}

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
    pub(in crate::cluster) fn new(hub: &Arc<Hub>, voter: &Voter) -> Self {
        let hub = Arc::downgrade(hub);
        Self {
            machine: voter.machine.clone(),
            log: voter.log.clone(),
            leads: Arc::new(move || hub.upgrade().is_some_and(|hub| hub.leads().is_some())),
            unawaited: Arc::default(),
        }
    }

    /// Puts answers to those that nobody waits for; gives the oldest if they are too many.
    fn set_aside(&self, applied: Applied) -> Option<Applied> {
        let mut unawaited = locked(&self.unawaited);
        unawaited.push_back(applied);
        if unawaited.len() > UNAWAITED_MAX { unawaited.pop_front() } else { None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.machine.dir.join(name)
    }

    async fn current(&self) -> Result<Option<Snapshot<Types>>, StoreError> {
        let Some(meta) = self.log.local::<SnapshotMeta>(META) else { return Ok(None) };
        let path = self.path(CURRENT);
        let file = match tokio::fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&path, &error)),
        };
        // A crash between the file and its description: the next one will be right.
        let known = meta.clone();
        if blocking(move || verify(&known, &path)).await.is_err() {
            return Ok(None);
        }
        Ok(Some(Snapshot { meta, snapshot: Box::new(file) }))
    }

    async fn build(&self) -> Result<Snapshot<Types>, StoreError> {
        self.machine.ask(ReplicaRequest::Settle).await??;
        let dir = self.machine.dir.clone();
        let meta = blocking(move || copy(&dir)).await?;
        // The log may go up to the copy: by then the tables have to be on the disk.
        self.machine.ask(ReplicaRequest::Sync).await??;
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
        self.machine.ask(|done| ReplicaRequest::Install(meta_sent, path, done)).await??;
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
            self.machine.ask(ReplicaRequest::State).await.map_err(|error| storage_error(&error))?;
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
        drop(self.machine.requests.send(ReplicaRequest::Apply(entries, done)));
        if (self.leads)() {
            return answers(applied).await;
        }
        // They are applied in order whether raft hears of it or not, and to tell it costs a wake.
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
