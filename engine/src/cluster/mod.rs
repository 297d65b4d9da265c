//! The ledger of several nodes, replicated by raft, so that any minority of them may fail. Callers see
//! a [`Store`](crate::store::Store) like any other.
//!
//! A command travels like this:
//!
//! 1. [`node`] puts it into the queue of [`client`].
//! 2. [`client`] sends it to the leader, in one request with others, until there is an answer.
//! 3. On the leader, [`server`] checks the sender's permissions, and [`leader`] puts it into a batch.
//! 4. Raft writes the batch as one entry to [`raft_log`] on a majority of the nodes.
//! 5. Each node applies the entry to its [`replica`]. The leader returns the replies.

mod client;
mod damaged;
mod election;
mod identity;
mod leader;
mod messages;
mod node;
mod operator;
mod peers;
mod permissions;
mod raft_log;
mod raft_network;
mod replica;
mod server;
mod start;
mod status;
mod stop;
mod watchdogs;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::config::Placement;
use crate::ledger::Seat;
use crate::store::{LogCheck, StoreError};
use crate::wire;
use peers::Peers;

pub(crate) use node::{ClusterHandle, ClusterStore, ClusterStoreParameters};
pub(crate) use operator::{
    NodeAddress, OperatorTarget, SoloControl, serve as serve_control, withdraw as withdraw_control,
};
pub(crate) use raft_log::is_there as has_log;
pub(crate) use replica::read_only::{ReadOnlyReplica, ReadOnlyStore, ReadOnlyStoreParameters};
pub(crate) use status::{ClusterStatus, NodeState};
pub(crate) use stop::ClusterThread;

/// How `fsck` checks the log of a node.
pub(crate) const LOG_CHECK: LogCheck =
    LogCheck { exists: has_log, examine: raft_log::examine, replay: replica::apply::look };

/// Largest command in bytes that is sent in one piece. A larger one is sent in chunks of this size.
const COMMAND_BYTES_MAX: usize = 192 << 10;

/// The settings of a node in a cluster.
#[derive(Clone)]
pub(crate) struct ClusterOptions {
    /// Data directory; created if missing.
    pub dir: PathBuf,
    /// This node's number.
    pub seat: Seat,
    /// Whether it keeps the ledger and votes.
    pub votes: bool,
    /// Address it listens on; empty for a worker.
    pub listen: String,
    /// Addresses of the nodes with a vote, the same on all nodes.
    pub peers: Peers,
    /// `cluster.name`, the same on all nodes.
    pub name: String,
    /// The secret that the nodes prove to each other; `None` on loopback or with `cluster.insecure`.
    pub secret: Option<Vec<u8>>,
    /// How long to wait for a majority at the start.
    pub quorum_timeout: Duration,
    /// How long a running node waits for a majority before it gives up.
    pub loss_exit: Duration,
    /// How long the end of a run waits for nodes that are disconnected.
    pub end_wait: Duration,
    /// Bytes of the log after which a snapshot replaces it.
    pub snapshot_bytes: u64,
    /// Memory for the set of known keys, in bytes.
    pub seen_memory: u64,
    /// Which node gets jobs first.
    pub placement: Placement,
    /// Time between two beats of the leader.
    pub beat: Duration,
}

impl ClusterOptions {
    fn credentials(&self) -> wire::Credentials {
        wire::Credentials::new(self.secret.as_deref(), self.name.as_bytes())
    }

    /// Votes that are needed to agree.
    fn majority(&self) -> usize {
        self.peers.len() / 2 + 1
    }
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterOptions(node {})", self.seat.0)
    }
}

/// The error that ends this node; the first one counts.
#[derive(Clone)]
struct Failure(Arc<watch::Sender<Option<StoreError>>>);

impl Failure {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    fn set(&self, error: StoreError) {
        self.0.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(error);
            }
            is_first
        });
    }

    fn get(&self) -> Option<StoreError> {
        self.0.borrow().clone()
    }

    /// The error for a caller whose request was dropped.
    fn or_closed(&self) -> StoreError {
        self.get().unwrap_or(StoreError::Closed)
    }

    async fn happened(&self) {
        let mut changes = self.0.subscribe();
        if changes.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that nobody can predict.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos()));
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// A random duration within a range.
fn random_between((least, most): (Duration, Duration)) -> Duration {
    let span = most.saturating_sub(least).as_micros().max(1) as u64;
    least + Duration::from_micros(random() % span)
}
