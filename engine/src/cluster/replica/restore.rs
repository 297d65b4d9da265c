//! Opens the tables of a replica. If they end before the log begins, the latest snapshot replaces them, and
//! the log has the rest.

use std::path::Path;

use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::mark::{MARK, ReplicaMark, STATE};
use crate::cluster::replica::snapshot;
use crate::ledger::{Core, Ledger};
use crate::store::StoreError;
use crate::store::mark::JOURNAL;
use crate::store::sqlite::{SqliteTables, TableOwner};

pub(in crate::cluster) type Tables = Ledger<SqliteTables>;

/// Opens the tables, or creates them.
pub(in crate::cluster) fn restore(
    dir: &Path,
    seen_memory: u64,
) -> Result<(Tables, ReplicaMark), StoreError> {
    let path = dir.join(STATE);
    let mut tables = SqliteTables::open(Some(&path), seen_memory, TableOwner::Replica)?;
    let (core, lanes) = tables.restore()?;
    let mark = match tables.replica(MARK)? {
        Some(bytes) => postcard::from_bytes(&bytes).map_err(|error| {
            StoreError::Damaged(format!("`{}`: its mark: {error}", path.display()))
        })?,
        None if core == Core::default() && !dir.join(JOURNAL).exists() => ReplicaMark::default(),
        None => {
            return Err(StoreError::Excluded(format!(
                "`{}` holds a run without a cluster: name another data directory for the cluster \
                 (`--data-dir`)",
                dir.display()
            )));
        }
    };
    Ok((Ledger::new(core, lanes, tables), mark))
}

/// Opens the tables that belong to a log. Tables are synced before the log is purged. A disk that lost synced
/// data may still have older tables; then the snapshot takes their place.
pub(in crate::cluster) fn restore_behind(
    dir: &Path,
    seen_memory: u64,
    log: &RaftLog,
) -> Result<(Tables, ReplicaMark), StoreError> {
    let (ledger, mark) = restore(dir, seen_memory)?;
    let applied = mark.applied.map(|applied| applied.index);
    let purged = log.purged().map(|purged| purged.index);
    if applied >= purged {
        return Ok((ledger, mark));
    }
    drop(ledger);
    if !snapshot::stand_in(dir, log, purged)? {
        return Err(StoreError::Damaged(format!(
            "`{}` is as of entry {} of the log, which begins after entry {}, and no snapshot is \
             there; remove all of `{}` and start again, and the node is rebuilt from the others",
            dir.join(STATE).display(),
            applied.unwrap_or(0),
            purged.unwrap_or(0),
            dir.display()
        )));
    }
    restore(dir, seen_memory)
}
