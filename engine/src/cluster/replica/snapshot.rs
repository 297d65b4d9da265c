//! Snapshots: copies of `state.db` for nodes that are far behind or whose disk is new. A snapshot is
//! named by its last entry and by its hash.
//!
//! | file | holds |
//! | --- | --- |
//! | `snapshot.db` | the latest snapshot |
//! | `snapshot.part` | one that is being made |
//! | `snapshot.received` | one that is being received |
//! | `state.new` | a copy of the snapshot that is about to replace `state.db` |
//!
//! Each file is synced and then renamed, so a crash leaves either the old or the new one.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::cluster::messages::SnapshotMeta;
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::mark::{MARK, ReplicaMark, STATE};
use crate::failpoint;
use crate::store::journal::sync_name;
use crate::store::sqlite::store_error;
use crate::store::{StoreError, seal};

pub(super) const CURRENT: &str = "snapshot.db";
const MAKING: &str = "snapshot.part";
pub(super) const RECEIVED: &str = "snapshot.received";
/// Record that describes `snapshot.db`.
pub(super) const META: &str = "snapshot";

pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
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

/// Copies the tables as of their last commit. The replica may write to them in the meantime.
pub(super) fn copy(dir: &Path) -> Result<SnapshotMeta, StoreError> {
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

/// Checks that a received snapshot has the hash in its description.
pub(in crate::cluster) fn verify(meta: &SnapshotMeta, path: &Path) -> Result<(), StoreError> {
    let hash = hash_of(path)?;
    if meta.snapshot_id.ends_with(&hash) {
        return Ok(());
    }
    Err(StoreError::Damaged(format!("`{}` is not the snapshot that was sent", path.display())))
}

/// Replaces the tables of this node, which are closed, by a copy of a snapshot.
pub(in crate::cluster) fn put_in_place(snapshot: &Path, state: &Path) -> Result<(), StoreError> {
    let fresh = state.with_extension("new");
    let failed = |error: io::Error| io_error(state, &error);
    std::fs::copy(snapshot, &fresh).map_err(failed)?;
    File::open(&fresh).and_then(|file| file.sync_all()).map_err(failed)?;
    // SQLite must not apply the write-ahead log of the old tables to the new ones. The caller has moved
    // what it held into the old file.
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

/// Replaces the tables of this node, which are closed, by the latest snapshot, if that is whole and
/// reaches entry `upto`.
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
