//! The server of a node with a vote: it answers peers, workers and operators.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use openraft::raft::AppendEntriesResponse;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cluster::client::ClusterClient;
use crate::cluster::election::{self, Leadership};
use crate::cluster::identity::{DISK, FOUNDERS, NodeIdentity};
use crate::cluster::leader::batch::Refusal;
use crate::cluster::leader::connections::Connections;
use crate::cluster::messages::{
    BatchItem, NodeDescription, OperatorOrder, PeerRequest, PeerResponse, RaftMessage, encode,
    raft_id, seat_of,
};
use crate::cluster::operator;
use crate::cluster::peers::{self, PeerClients};
use crate::cluster::permissions::{Caller, Permissions};
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::cluster::status::reader::StatusReader;
use crate::ledger::{Seat, Standing};
use crate::store::{Answer, Question, StoreError};
use crate::threads::ignore::ignore_closed;
use crate::threads::pause::wait_at_most;
use crate::wire::{Hello, PeerRole, RequestHandler};

/// How long a question waits for its entry, and a worker for news.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the leader may take to answer what this node relays. Less than the client waits.
const RELAY_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes of output that one answer holds.
const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Answers requests; cheap to clone.
#[derive(Clone)]
pub(crate) struct ClusterServer {
    pub identity: Arc<NodeIdentity>,
    pub peers: Arc<PeerClients>,
    pub leadership: Arc<Leadership>,
    pub client: ClusterClient,
    pub log: RaftLog,
    pub replica: ReplicaHandle,
    pub connections: Arc<Connections>,
    pub permissions: Arc<Permissions>,
    pub status: Arc<StatusReader>,
}

impl RequestHandler for ClusterServer {
    fn call(&self, from: &Hello, request: Vec<u8>) -> BoxFuture<'static, Vec<u8>> {
        let relay_to = self.leader_unknown_to(from);
        let (server, from) = (self.clone(), Caller::of(from));
        async move {
            let Ok(request) = postcard::from_bytes::<PeerRequest>(&request) else {
                return encode(&PeerResponse::Busy("the request cannot be read".to_owned()));
            };
            if let Some(refusal) = server.permissions.refuse(&server.replica, from, &request).await
            {
                return encode(&refusal);
            }
            let is_for_leader = matches!(request, PeerRequest::Submit(_) | PeerRequest::Renew(_));
            encode(&match relay_to.filter(|_| is_for_leader) {
                Some(leader) => {
                    let answer = server.peers.ask(leader, &request, RELAY_TIMEOUT).await;
                    answer.unwrap_or_else(|| server.not_leader())
                }
                None => server.answer(from, request).await,
            })
        }
        .boxed()
    }

    fn admit(&self, hello: &Hello) -> Result<(), String> {
        let own = self.identity.hello();
        if hello.version != own.version {
            return Err(format!(
                "it speaks version {} between nodes, this cluster {}",
                hello.version, own.version
            ));
        }
        if let (Some(theirs), Some(ours)) = (hello.cluster_id, own.cluster_id)
            && theirs != ours
        {
            return Err("its data directory belongs to another cluster".to_owned());
        }
        if hello.role == PeerRole::Voter && !self.peers.peers.contains_key(&Seat(hello.seat)) {
            return Err(format!("node {} is not among the peers", hello.seat));
        }
        peers::compare(hello, &self.peers.peers)?;
        self.connections.opened(hello);
        Ok(())
    }

    fn gone(&self, hello: &Hello) {
        self.connections.closed(hello);
    }
}

impl ClusterServer {
    /// The leader, if a worker does not have it on its list. This node then relays what the worker sends
    /// to the leader.
    fn leader_unknown_to(&self, worker: &Hello) -> Option<Seat> {
        if worker.role != PeerRole::Worker || self.leadership.leads().is_some() {
            return None;
        }
        self.leadership.leader().filter(|leader| !peers::knows(worker, *leader))
    }

    /// Whether raft may listen to this disk: to the present disk of its node and to no other. A node
    /// may have a newer disk than this node has heard of, but never an older one.
    fn is_present_disk(&self, caller: Caller, disk: u64) -> bool {
        let incarnations = self.replica.incarnations.borrow();
        let incarnation = incarnations.get(&caller.seat).copied().unwrap_or(0);
        caller.role == PeerRole::Voter
            && seat_of(disk) == caller.seat
            && disk >= raft_id(caller.seat, incarnation)
    }

    async fn answer(&self, from: Caller, request: PeerRequest) -> PeerResponse {
        let own_disk = self.identity.raft_id();
        match request {
            PeerRequest::Describe => PeerResponse::Description(self.describe()),
            PeerRequest::Raft { to, .. } if to != own_disk => PeerResponse::Gone,
            PeerRequest::Raft { from: disk, .. } if !self.is_present_disk(from, disk) => {
                PeerResponse::Busy("this node has a newer disk".to_owned())
            }
            PeerRequest::Raft { message, .. } => self.raft(message).await,
            PeerRequest::MayLead(last) => {
                let votes = election::would_vote(&self.leadership, &self.log, last);
                PeerResponse::MayLead(votes.then_some(own_disk))
            }
            PeerRequest::Stand => {
                let stands = election::stand(&self.leadership, from.seat).await;
                PeerResponse::MayLead(stands.then_some(own_disk))
            }
            PeerRequest::Submit(items) => self.submit(from, items).await,
            PeerRequest::Renew(session) => match self.client.renew_here(session).await {
                Some(lives) if self.leadership.leads().is_some() => PeerResponse::Renewed(lives),
                _ => self.not_leader(),
            },
            PeerRequest::Ask { question, index } => self.ask(question, index).await,
            PeerRequest::Watch(known) => self.watch(known).await,
            PeerRequest::Status => PeerResponse::Status(Box::new(self.status.read().await)),
            PeerRequest::Order(order) => PeerResponse::Ordered(self.order(order).await),
        }
    }

    fn not_leader(&self) -> PeerResponse {
        PeerResponse::NotLeader(self.leadership.leader().map(|seat| seat.0))
    }

    /// A disk that creates a cluster counts as new until there is a leader: before, nothing was agreed.
    fn describe(&self) -> NodeDescription {
        let metrics = self.leadership.metrics();
        let has_leader = metrics.as_ref().is_some_and(|now| now.current_leader.is_some());
        let established = has_leader || self.replica.cluster.borrow().is_some();
        let disk = self.log.local(DISK).unwrap_or(0);
        let own = self.identity.raft_id();
        let is_first = own <= raft_id(self.identity.seat, 0);
        NodeDescription {
            fresh: is_first && !established && disk != 0,
            established,
            raft_id: own,
            disk,
            founders: self.log.local(FOUNDERS).unwrap_or_default(),
            agreed: metrics.and_then(|now| now.last_applied).map_or(0, |at| at.index),
        }
    }

    async fn raft(&self, message: RaftMessage) -> PeerResponse {
        let leadership = &self.leadership;
        let Some(raft) = leadership.raft() else {
            return PeerResponse::Busy("the node is starting".to_owned());
        };
        match message {
            RaftMessage::Append(request) => {
                // Noted before and after: a leader is not silent while the disk here is slow.
                if request.vote >= raft.metrics().borrow().vote {
                    leadership.note_leader();
                }
                let answer = raft.append_entries(request).await;
                if !matches!(answer, Ok(AppendEntriesResponse::HigherVote(_))) {
                    leadership.note_leader();
                }
                PeerResponse::Append(answer)
            }
            RaftMessage::Vote(request) => {
                let answer = raft.vote(request).await;
                if answer.as_ref().is_ok_and(|answer| answer.vote_granted) {
                    leadership.note_contact();
                }
                PeerResponse::Vote(answer)
            }
            RaftMessage::Install(request) => {
                leadership.note_leader();
                let answer = raft.install_snapshot(request).await;
                leadership.note_leader();
                PeerResponse::Install(answer)
            }
        }
    }

    async fn submit(&self, from: Caller, items: Vec<BatchItem>) -> PeerResponse {
        if self.leadership.leads().is_none() {
            return self.not_leader();
        }
        self.connections.note_submission(from.seat);
        match self.client.propose_here(items).await {
            Ok((replies, index)) => PeerResponse::Submitted { replies, index },
            Err(Refusal::NotLeader(leader)) => PeerResponse::NotLeader(leader.map(|seat| seat.0)),
            Err(Refusal::Closing) => PeerResponse::Busy("the node is ending".to_owned()),
        }
    }

    async fn ask(&self, mut question: Question, index: u64) -> PeerResponse {
        if let Question::Output { bytes_max, .. } | Question::CanonicalOutput { bytes_max, .. } =
            &mut question
        {
            *bytes_max = (*bytes_max).min(OUTPUT_BYTES_MAX);
        }
        let (sender, answer) = oneshot::channel::<Result<Answer, StoreError>>();
        let respond = Box::new(move |answer| ignore_closed(sender.send(answer)));
        ignore_closed(self.replica.requests.send(ReplicaRequest::Ask { question, index, respond }));
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(Ok(answer))) => PeerResponse::Answer(answer),
            _ => PeerResponse::Busy("this node does not have the entry yet".to_owned()),
        }
    }

    async fn watch(&self, known: Standing) -> PeerResponse {
        let mut standing = self.replica.standing.clone();
        wait_at_most(ANSWER_TIMEOUT, standing.wait_for(|now| *now != known)).await;
        let now = *self.replica.standing.borrow();
        PeerResponse::Standing(now)
    }

    /// Carries out an order; any node with a vote passes it to the leader.
    async fn order(&self, order: OperatorOrder) -> Result<(), String> {
        if let OperatorOrder::Fence(seat) | OperatorOrder::Admit(seat) = order
            && !self.is_known(seat).await
        {
            return Err(format!("there is no node {}", seat.0));
        }
        operator::carry_out(&self.client, order).await
    }

    /// Whether a node is among the peers or has worked here.
    async fn is_known(&self, seat: Seat) -> bool {
        if self.peers.peers.contains_key(&seat) {
            return true;
        }
        let roster = self.replica.ask(ReplicaRequest::Roster).await;
        roster.is_ok_and(|roster| roster.seats.contains_key(&seat))
    }
}
