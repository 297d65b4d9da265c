//! Sends raft's messages to the peers. Two kinds of messages wait a little, because each message
//! costs as much as an entry:
//!
//! - *Entries up to this one are committed.* It waits for the next entries, which carry it along.
//! - *Entries for a node that is not needed for a majority* and holds no jobs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{AnyError, BasicNode, Vote};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::cluster::identity::NodeIdentity;
use crate::cluster::leader::connections::Connections;
use crate::cluster::locked;
use crate::cluster::messages::{LogId, PeerRequest, PeerResponse, RaftMessage, Types, seat_of};
use crate::cluster::peers::PeerClients;
use crate::ledger::Standing;
use crate::threads::pause::pause;
use crate::wire::{CallError, WireClient};

/// Pause before a node that cannot be reached is tried again.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(200);

/// How long a commit waits for the next entries while jobs are in flight: they come soon, and no node
/// waits for the commit.
const COMMIT_DELAY_BUSY: Duration = Duration::from_millis(10);
/// The same at other times, when nodes wait for one another.
const COMMIT_DELAY_IDLE: Duration = Duration::from_millis(3);
/// A node that has answered within this time counts as connected. Less than a heartbeat, so that the
/// others still notice a silent leader in time.
const RECENT_ANSWER: Duration = Duration::from_millis(50);

/// How long entries wait for more, if their node is not needed for a majority.
const SPARE_NODE_DELAY: Duration = Duration::from_millis(50);

/// Makes raft's connections to the peers.
#[derive(Clone)]
pub(crate) struct RaftPeers {
    identity: Arc<NodeIdentity>,
    peers: Arc<PeerClients>,
    connections: Arc<Connections>,
    standing: watch::Receiver<Standing>,
    majority: usize,
    answered: Answered,
}

/// When each disk has last confirmed everything it was sent.
type Answered = Arc<Mutex<BTreeMap<u64, Instant>>>;

impl RaftPeers {
    pub(crate) fn new(
        identity: Arc<NodeIdentity>,
        peers: Arc<PeerClients>,
        connections: Arc<Connections>,
        standing: watch::Receiver<Standing>,
        majority: usize,
    ) -> Self {
        Self { identity, peers, connections, standing, majority, answered: Answered::default() }
    }
}

impl RaftNetworkFactory<Types> for RaftPeers {
    type Network = RaftPeer;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> RaftPeer {
        let client = self.peers.client(seat_of(target)).cloned();
        let (own, all) = (self.identity.raft_id(), self.clone());
        RaftPeer { client, own, target, all, last_success: None, delayed: Arc::default() }
    }
}

/// The connection to the disk of one node.
pub(crate) struct RaftPeer {
    client: Option<WireClient>,
    own: u64,
    target: u64,
    all: RaftPeers,
    last_success: Option<LastSuccess>,
    delayed: Arc<DelayedCommit>,
}

/// The last success of a peer.
struct LastSuccess {
    vote: Vote<u64>,
    matching: Option<LogId>,
    at: Instant,
}

/// A commit that waits for the next entries.
#[derive(Default)]
struct DelayedCommit {
    message: Mutex<Option<(AppendEntriesRequest<Types>, Instant)>>,
    is_waiting: AtomicBool,
}

type Failure<E> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl RaftPeer {
    async fn call<E: std::error::Error>(
        &self,
        message: RaftMessage,
        option: &RPCOption,
    ) -> Result<PeerResponse, Failure<E>> {
        let unreachable = |words: String| {
            let error = AnyError::error(words);
            RPCError::Unreachable(Unreachable::new(&error))
        };
        let Some(client) = &self.client else {
            return Err(unreachable(format!("node {} is not among the peers", self.target)));
        };
        let call = PeerRequest::Raft { from: self.own, to: self.target, message };
        match client.call(call.encode(), option.hard_ttl()).await {
            Ok(bytes) => match postcard::from_bytes(&bytes) {
                Ok(PeerResponse::Gone) => {
                    Err(unreachable(format!("node {} has another disk now", self.target)))
                }
                Ok(response) => Ok(response),
                Err(error) => Err(RPCError::Network(NetworkError::new(&AnyError::error(error)))),
            },
            Err(error @ (CallError::Unreachable { .. } | CallError::Refused { .. })) => {
                Err(unreachable(error.to_string()))
            }
            Err(error) => Err(RPCError::Network(NetworkError::new(&AnyError::error(error)))),
        }
    }

    /// Whether a message holds no entries, and the peer has just confirmed all before it.
    fn can_wait(&self, rpc: &AppendEntriesRequest<Types>) -> bool {
        rpc.entries.is_empty()
            && self.last_success.as_ref().is_some_and(|last| {
                last.vote == rpc.vote
                    && last.matching == rpc.prev_log_id
                    && last.at.elapsed() < RECENT_ANSWER
            })
    }

    /// Whether this node is not needed for a majority, has nothing to submit, and no job waits that it
    /// could get. It then receives several entries with one message and one sync.
    fn is_spare(&self, rpc: &AppendEntriesRequest<Types>) -> bool {
        let Standing { taken, pending, .. } = *self.all.standing.borrow();
        if rpc.entries.is_empty() || taken == 0 || pending > 0 {
            return false;
        }
        let works = |disk: u64| !self.all.connections.is_quiet(seat_of(disk));
        let rank = |disk: u64| (!works(disk), disk);
        let answered = locked(&self.all.answered);
        let before = answered
            .iter()
            .filter(|(disk, at)| rank(**disk) < rank(self.target) && at.elapsed() < RECENT_ANSWER);
        !works(self.target) && before.count() + 1 >= self.all.majority
    }

    /// Sends a commit after a while, unless a newer message is sent before.
    fn send_later(&self, rpc: AppendEntriesRequest<Types>) {
        let Some(client) = self.client.clone() else { return };
        let busy = self.all.standing.borrow().taken > 0;
        let due = Instant::now() + if busy { COMMIT_DELAY_BUSY } else { COMMIT_DELAY_IDLE };
        *locked(&self.delayed.message) = Some((rpc, due));
        if self.delayed.is_waiting.swap(true, Ordering::Relaxed) {
            return;
        }
        let (delayed, from, to) = (Arc::clone(&self.delayed), self.own, self.target);
        tokio::spawn(async move {
            loop {
                let due = locked(&delayed.message).as_ref().map(|(_, due)| *due);
                match due {
                    Some(due) if due > Instant::now() => sleep_until(due).await,
                    _ => break,
                }
            }
            delayed.is_waiting.store(false, Ordering::Relaxed);
            let message = locked(&delayed.message).take();
            if let Some((rpc, _)) = message {
                let call = PeerRequest::Raft { from, to, message: RaftMessage::Append(rpc) };
                // If it fails, raft learns so from its next heartbeat.
                drop(client.call(call.encode(), RECENT_ANSWER).await);
            }
        });
    }

    #[expect(clippy::result_large_err, reason = "raft defines the size of its errors")]
    fn unwrap<T, E: std::error::Error>(
        &self,
        answer: Option<Result<T, RaftError<u64, E>>>,
    ) -> Result<T, Failure<E>> {
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(self.target, error))),
            None => {
                Err(RPCError::Network(NetworkError::new(&AnyError::error("the node is not ready"))))
            }
        }
    }
}

impl RaftNetwork<Types> for RaftPeer {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RPCError<u64, BasicNode, RaftError<u64>>> {
        if self.can_wait(&rpc) {
            self.send_later(rpc);
            return Ok(AppendEntriesResponse::Success);
        }
        if self.is_spare(&rpc) {
            pause(SPARE_NODE_DELAY).await;
        }
        // The message that is sent now is newer.
        *locked(&self.delayed.message) = None;
        let last = rpc.entries.last().map(|entry| entry.log_id).or(rpc.prev_log_id);
        let success = LastSuccess { vote: rpc.vote, matching: last, at: Instant::now() };
        self.last_success = None;
        let answer = self.call(RaftMessage::Append(rpc), &option).await?;
        let answer = if let PeerResponse::Append(answer) = answer { Some(answer) } else { None };
        if matches!(answer, Some(Ok(AppendEntriesResponse::Success))) {
            self.last_success = Some(success);
            locked(&self.all.answered).insert(self.target, Instant::now());
        }
        self.unwrap(answer)
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<
        InstallSnapshotResponse<u64>,
        RPCError<u64, BasicNode, RaftError<u64, InstallSnapshotError>>,
    > {
        let answer = self.call(RaftMessage::Install(rpc), &option).await?;
        let answer = if let PeerResponse::Install(answer) = answer { Some(answer) } else { None };
        self.unwrap(answer)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, RPCError<u64, BasicNode, RaftError<u64>>> {
        let answer = self.call(RaftMessage::Vote(rpc), &option).await?;
        let answer = if let PeerResponse::Vote(answer) = answer { Some(answer) } else { None };
        self.unwrap(answer)
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(UNREACHABLE_PAUSE))
    }
}
