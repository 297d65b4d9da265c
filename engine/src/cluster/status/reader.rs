//! Puts the status of a node together from raft, the ledger and the answers of its peers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::{BasicNode, RaftMetrics, ServerState};

use crate::cluster::client::ClusterClient;
use crate::cluster::election::{CONFIRMED_MAX_MS, Leadership};
use crate::cluster::identity::NodeIdentity;
use crate::cluster::messages::{PeerRequest, PeerResponse, seat_of};
use crate::cluster::peers::PeerClients;
use crate::cluster::replica::roster::Roster;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::cluster::status::{ClusterStatus, NodeState, NodeStatus, RunStatus};
use crate::ledger::Seat;
use crate::wire::WireClient;

/// How long a worker waits for any node with a vote.
const ANY_VOTER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one node may take to answer.
const ONE_NODE_TIMEOUT: Duration = Duration::from_millis(300);

/// Reads the status of this node and its cluster. Works also while the node waits for its peers.
pub(crate) struct StatusReader {
    pub identity: Arc<NodeIdentity>,
    pub peers: Arc<PeerClients>,
    pub leadership: Arc<Leadership>,
    pub client: ClusterClient,
    /// `None` for a node without a vote, which asks another node.
    pub replica: Option<ReplicaHandle>,
}

impl StatusReader {
    pub(crate) async fn read(&self) -> ClusterStatus {
        match &self.replica {
            Some(replica) => self.read_voter(replica).await,
            None => self.read_worker().await,
        }
    }

    async fn read_voter(&self, replica: &ReplicaHandle) -> ClusterStatus {
        // A replica that does not answer has ended, and so will the node.
        let roster = replica.ask(ReplicaRequest::Roster).await.unwrap_or_default();
        let lives = self.lives().await;
        let metrics = self.leadership.metrics();
        let leads = self.leadership.leads().is_some();
        let leader_sent = self.leadership.leader_sent();
        let leader = metrics
            .as_ref()
            .filter(|now| leads || leader_sent.is_some() && now.state != ServerState::Candidate)
            .filter(|now| is_confirmed(now))
            .and_then(|now| now.current_leader.map(seat_of));
        let heard_ms = match (&metrics, leads) {
            (Some(now), true) => now.millis_since_quorum_ack.filter(|_| leader.is_some()),
            _ => leader_sent.filter(|_| leader.is_some()).map(|at| at.elapsed().as_millis() as u64),
        };
        let mut nodes = Vec::new();
        for (seat, address) in &self.peers.peers {
            let fails = self.peers.client(*seat).is_some_and(WireClient::fails);
            let is_trusted = leader.is_some() && !fails;
            let mut node = node_of(&roster, *seat, lives.get(seat).copied(), is_trusted);
            node.address = Some(address.clone());
            node.leader = leader == Some(*seat);
            node.lag = metrics.as_ref().and_then(|now| lag_of(now, *seat));
            if *seat == self.identity.seat && !leads {
                node.lag = self.own_lag(leader, roster.index).await;
            }
            nodes.push(node);
        }
        let workers = roster.sessions.values().filter(|session| !session.votes);
        nodes.extend(workers.map(|one| node_of(&roster, one.seat, None, leader.is_some())));
        let cluster = *replica.cluster.borrow();
        ClusterStatus {
            node: self.identity.seat.0,
            mode: "cluster".to_owned(),
            cluster: cluster.map(|name| format!("{name:032x}")),
            leader: leader.map(|seat| seat.0),
            term: metrics.map_or(0, |now| now.current_term),
            index: roster.index,
            heard_ms,
            stopping: self.leadership.is_stopping(),
            nodes,
            run: RunStatus::of(roster.standing, roster.folder),
        }
    }

    async fn read_worker(&self) -> ClusterStatus {
        let asked = self.client.ask_any_voter(&PeerRequest::Status);
        let mut status = match tokio::time::timeout(ANY_VOTER_TIMEOUT, asked).await {
            Ok(Ok(PeerResponse::Status(status))) => *status,
            _ => self.read_alone().await,
        };
        status.node = self.identity.seat.0;
        status.stopping = self.leadership.is_stopping();
        if status.nodes.iter().all(|node| node.id != status.node) {
            let life = Some(self.identity.life);
            let mut own = node_of(&Roster::default(), self.identity.seat, life, false);
            "worker".clone_into(&mut own.role);
            status.nodes.push(own);
        }
        status
    }

    /// The status of a worker that no node answers.
    async fn read_alone(&self) -> ClusterStatus {
        let lives = self.lives().await;
        let nodes = self.peers.peers.iter().map(|(seat, address)| NodeStatus {
            address: Some(address.clone()),
            ..node_of(&Roster::default(), *seat, lives.get(seat).copied(), false)
        });
        ClusterStatus {
            node: self.identity.seat.0,
            mode: "cluster".to_owned(),
            cluster: None,
            leader: None,
            term: 0,
            index: 0,
            heard_ms: None,
            stopping: false,
            nodes: nodes.collect(),
            run: None,
        }
    }

    /// The processes that answer, this one included. Two nodes that have had nothing to send to each other
    /// are not connected, so a disconnected node is asked. If the last connection failed, the answer is
    /// not awaited.
    async fn lives(&self) -> BTreeMap<Seat, u64> {
        let others = self.peers.others().map(|(seat, client)| async move {
            let peer = client.peer();
            if peer.borrow().is_none() {
                let peers = Arc::clone(&self.peers);
                let asked = tokio::spawn(async move {
                    peers.ask(seat, &PeerRequest::Describe, ONE_NODE_TIMEOUT).await
                });
                if !client.fails() {
                    drop(asked.await);
                }
            }
            let life = peer.borrow().as_ref().map(|hello| hello.life);
            life.map(|life| (seat, life))
        });
        let others = futures_util::future::join_all(others).await;
        let own = self.replica.as_ref().map(|_| (self.identity.seat, self.identity.life));
        others.into_iter().flatten().chain(own).collect()
    }

    /// Entries that the leader has applied and this node has not.
    async fn own_lag(&self, leader: Option<Seat>, index: u64) -> Option<u64> {
        let leader = leader.filter(|seat| self.peers.is_connected(*seat))?;
        match self.peers.ask(leader, &PeerRequest::Describe, ONE_NODE_TIMEOUT).await {
            Some(PeerResponse::Description(leader)) => Some(leader.agreed.saturating_sub(index)),
            _ => None,
        }
    }
}

/// A leader that a majority has not confirmed for a while may have a successor.
fn is_confirmed(metrics: &RaftMetrics<u64, BasicNode>) -> bool {
    metrics.state != ServerState::Leader
        || metrics.millis_since_quorum_ack.is_some_and(|ms| ms < CONFIRMED_MAX_MS)
}

/// Entries of the log that a node has not confirmed; only the leader knows.
fn lag_of(metrics: &RaftMetrics<u64, BasicNode>, seat: Seat) -> Option<u64> {
    let all = metrics.replication.as_ref()?;
    let own = all.iter().filter(|(id, _)| seat_of(**id) == seat);
    let confirmed = own.filter_map(|(_, at)| at.map(|at| at.index)).max().unwrap_or(0);
    Some(metrics.last_log_index.unwrap_or(0).saturating_sub(confirmed))
}

/// `life` is set if a process answers as that node. Otherwise its session counts only if `is_trusted`:
/// without a leader or a connection, the process may have ended long ago.
fn node_of(roster: &Roster, seat: Seat, life: Option<u64>, is_trusted: bool) -> NodeStatus {
    let session = roster.sessions.iter().find(|(_, session)| session.seat == seat);
    let record = roster.seats.get(&seat);
    let own = |life| record.is_some_and(|record| record.life == life);
    let state = match (session, life) {
        _ if record.is_some_and(|record| record.fenced) => NodeState::Fenced,
        (Some(_), Some(life)) if own(life) => NodeState::Running,
        (Some(_), None) if is_trusted => NodeState::Running,
        (_, Some(_)) => NodeState::Checking,
        (_, None) => NodeState::Silent,
    };
    let votes = session.is_none_or(|(_, session)| session.votes);
    NodeStatus {
        id: seat.0,
        address: None,
        role: if votes { "voter" } else { "worker" }.to_owned(),
        state,
        leader: false,
        jobs: session.and_then(|(id, _)| roster.held.get(id).copied()).unwrap_or(0),
        lag: None,
    }
}
