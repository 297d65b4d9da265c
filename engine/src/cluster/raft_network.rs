//! Raft's messages over the links between nodes.

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
use tokio::time::{Instant, sleep_until};

use crate::cluster::messages::{LogId, PeerRequest, PeerResponse, RaftMessage, Types, seat_of};
use crate::cluster::node::{Hub, locked};
use crate::ledger::Standing;
use crate::wire::{CallError, WireClient};

/// Pause before a node that cannot be reached is tried again.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(200);

/// How long the word that entries are committed waits for the next entries: while jobs are out they
/// come anyway, and nobody waits for it.
const LATER: Duration = Duration::from_millis(10);
/// The same at other times: nodes agree on one thing after the other then, and the next is near.
const SOON: Duration = Duration::from_millis(3);
/// A node that was heard within this time need not hear from us at once: less than a heartbeat, so
/// that a silent leader is still noticed in time.
const FRESH: Duration = Duration::from_millis(50);

/// How long entries for a node that is not needed to agree on them may wait for company.
const COMPANY: Duration = Duration::from_millis(50);

/// Makes the ways to other nodes.
pub(crate) struct RaftPeers {
    hub: Arc<Hub>,
    answered: Answered,
}

/// When each disk has last answered with all it was sent.
type Answered = Arc<Mutex<BTreeMap<u64, Instant>>>;

impl RaftPeers {
    pub(crate) fn new(hub: &Arc<Hub>) -> Self {
        Self { hub: Arc::clone(hub), answered: Answered::default() }
    }
}

impl RaftNetworkFactory<Types> for RaftPeers {
    type Network = RaftPeer;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> RaftPeer {
        let own = self.hub.raft_id();
        let hub = Arc::clone(&self.hub);
        let link = hub.link(seat_of(target));
        let answered = Arc::clone(&self.answered);
        RaftPeer { link, own, target, hub, heard: None, late: Arc::default(), answered }
    }
}

/// The way to one node.
pub(crate) struct RaftPeer {
    link: Option<WireClient>,
    own: u64,
    target: u64,
    hub: Arc<Hub>,
    heard: Option<LastSuccess>,
    late: Arc<DelayedCommit>,
    answered: Answered,
}

/// What the other node has last agreed to.
struct LastSuccess {
    vote: Vote<u64>,
    matching: Option<LogId>,
    at: Instant,
}

/// How far entries are committed, to be told along with the next ones or, if none come, a little
/// later: each message of its own costs as much as an entry.
#[derive(Default)]
struct DelayedCommit {
    word: Mutex<Option<(AppendEntriesRequest<Types>, Instant)>>,
    under_way: AtomicBool,
}

type Failure<E> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl RaftPeer {
    async fn call<E: std::error::Error>(
        &self,
        message: RaftMessage,
        option: &RPCOption,
    ) -> Result<PeerResponse, Failure<E>> {
        let away = |words: String| {
            let error = AnyError::error(words);
            RPCError::Unreachable(Unreachable::new(&error))
        };
        let Some(link) = &self.link else {
            return Err(away(format!("node {} is not among the peers", self.target)));
        };
        let call = PeerRequest::Raft { from: self.own, to: self.target, message };
        match link.call(call.encode(), option.hard_ttl()).await {
            Ok(bytes) => match postcard::from_bytes(&bytes) {
                Ok(PeerResponse::Gone) => {
                    Err(away(format!("node {} is not there any more", self.target)))
                }
                Ok(response) => Ok(response),
                Err(error) => Err(RPCError::Network(NetworkError::new(&AnyError::error(error)))),
            },
            Err(error @ (CallError::Unreachable { .. } | CallError::Refused { .. })) => {
                Err(away(error.to_string()))
            }
            Err(error) => Err(RPCError::Network(NetworkError::new(&AnyError::error(error)))),
        }
    }

    /// Whether a message brings no entries, and the other node has just agreed to all before it.
    fn can_wait(&self, rpc: &AppendEntriesRequest<Types>) -> bool {
        rpc.entries.is_empty()
            && self.heard.as_ref().is_some_and(|heard| {
                heard.vote == rpc.vote
                    && heard.matching == rpc.prev_log_id
                    && heard.at.elapsed() < FRESH
            })
    }

    /// Whether enough others agree without this node, which has no work of its own to tell, and there is
    /// none for it: then entries reach it several at a time. Each costs it a message and a sync
    /// otherwise.
    fn is_spare(&self, rpc: &AppendEntriesRequest<Types>) -> bool {
        let Some(voter) = &self.hub.voter else { return false };
        let Standing { taken, pending, .. } = *voter.machine.standing.borrow();
        if rpc.entries.is_empty() || taken == 0 || pending > 0 {
            return false;
        }
        let talks = |disk: u64| !voter.guests.is_quiet(seat_of(disk));
        let rank = |disk: u64| (!talks(disk), disk);
        let answered = locked(&self.answered);
        let before = answered
            .iter()
            .filter(|(disk, at)| rank(**disk) < rank(self.target) && at.elapsed() < FRESH);
        !talks(self.target) && before.count() + 1 >= self.hub.options.majority()
    }

    /// Says it after a while, unless something newer is said before.
    fn tell_later(&self, rpc: AppendEntriesRequest<Types>) {
        let Some(link) = self.link.clone() else { return };
        let voter = self.hub.voter.as_ref();
        let busy = voter.is_some_and(|voter| voter.machine.standing.borrow().taken > 0);
        let due = Instant::now() + if busy { LATER } else { SOON };
        *locked(&self.late.word) = Some((rpc, due));
        if self.late.under_way.swap(true, Ordering::Relaxed) {
            return;
        }
        let (late, from, to) = (Arc::clone(&self.late), self.own, self.target);
        tokio::spawn(async move {
            loop {
                let due = locked(&late.word).as_ref().map(|(_, due)| *due);
                match due {
                    Some(due) if due > Instant::now() => sleep_until(due).await,
                    _ => break,
                }
            }
            late.under_way.store(false, Ordering::Relaxed);
            let word = locked(&late.word).take();
            if let Some((rpc, _)) = word {
                let call = PeerRequest::Raft { from, to, message: RaftMessage::Append(rpc) };
                // Raft hears of whatever is wrong with its next heartbeat.
                drop(link.call(call.encode(), FRESH).await);
            }
        });
    }

    #[expect(clippy::result_large_err, reason = "the size of the errors is raft's")]
    fn unwrap<T, E: std::error::Error>(
        &self,
        answer: Option<Result<T, RaftError<u64, E>>>,
    ) -> Result<T, Failure<E>> {
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(self.target, error))),
            None => Err(RPCError::Network(NetworkError::new(&AnyError::error(
                "the other node is not ready",
            )))),
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
            self.tell_later(rpc);
            return Ok(AppendEntriesResponse::Success);
        }
        if self.is_spare(&rpc) {
            sleep_until(Instant::now() + COMPANY).await;
        }
        // What is said now is newer.
        *locked(&self.late.word) = None;
        let last = rpc.entries.last().map(|entry| entry.log_id).or(rpc.prev_log_id);
        let heard = LastSuccess { vote: rpc.vote, matching: last, at: Instant::now() };
        self.heard = None;
        let answer = self.call(RaftMessage::Append(rpc), &option).await?;
        let answer = if let PeerResponse::Append(answer) = answer { Some(answer) } else { None };
        if matches!(answer, Some(Ok(AppendEntriesResponse::Success))) {
            self.heard = Some(heard);
            locked(&self.answered).insert(self.target, Instant::now());
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
