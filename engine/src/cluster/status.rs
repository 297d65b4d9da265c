//! What a node can tell of itself and its cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::{BasicNode, RaftMetrics, ServerState};
use serde::{Deserialize, Serialize};

use crate::cluster::client;
use crate::cluster::election::LED_MS;
use crate::cluster::messages::{PeerRequest, PeerResponse, seat_of};
use crate::cluster::node::{Hub, Voter, locked};
use crate::cluster::replica::apply::ReplicaMark;
use crate::cluster::replica::thread::ReplicaRequest;
use crate::ledger::{Ledger, Seat, SeatRecord, Session, SessionId, Standing};
use crate::store::sqlite::SqliteTables;

/// Patience of a worker with whoever can tell it how the cluster is.
const ASKING: Duration = Duration::from_secs(2);
/// Patience with one node that is not connected.
const ASKING_ONE: Duration = Duration::from_millis(300);

/// NodeDescription is there, as of the last applied entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster {
    pub seats: BTreeMap<Seat, SeatRecord>,
    pub sessions: BTreeMap<SessionId, Session>,
    /// Jobs each session holds.
    pub held: BTreeMap<SessionId, u64>,
    pub standing: Standing,
    pub folder: Option<String>,
    /// Whether a node has written everything of a closed run and does not know that it is closed.
    pub owed: bool,
    pub index: u64,
    /// The number of the newest session there ever was.
    pub last_session: SessionId,
}

impl Roster {
    pub(crate) fn of(ledger: &Ledger<SqliteTables>, mark: &ReplicaMark) -> Self {
        let core = ledger.core();
        Self {
            seats: core.seats.clone(),
            sessions: core.sessions.clone(),
            held: core.held(),
            standing: ledger.standing(),
            folder: core.run.as_ref().map(|run| run.plan.folder.clone()),
            owed: core.run.as_ref().is_some_and(|run| {
                run.closed && run.written.difference(&run.end_reported).next().is_some()
            }),
            index: mark.applied.map_or(0, |applied| applied.index),
            last_session: core.last_session(),
        }
    }
}

/// How a node stands in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeState {
    /// It is there and has no session yet.
    Checking,
    /// It has a session.
    Running,
    /// Nothing is heard of it.
    Silent,
    /// It has to stay out until it is admitted.
    Fenced,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeStatus {
    pub id: u32,
    /// Its address; workers without a vote have none.
    pub address: Option<String>,
    /// `voter` or `worker`.
    pub role: String,
    pub state: NodeState,
    pub leader: bool,
    /// Jobs in hand.
    pub jobs: u64,
    /// Entries of the log it has not confirmed, as the leader knows; any other node knows only how
    /// far it is behind itself.
    pub lag: Option<u64>,
}

/// How far the run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunStatus {
    /// `running`, `cancelled`, `over` or `closed`.
    pub state: String,
    pub folder: String,
    pub pending: u64,
    pub taken: u64,
    pub done: u64,
    pub failed: u64,
    pub rows: u64,
}

/// A node's view of its cluster, or of itself when it is alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    /// NodeDescription tells this.
    pub node: u32,
    /// `solo` or `cluster`.
    pub mode: String,
    pub cluster: Option<String>,
    pub leader: Option<u32>,
    pub term: u64,
    /// Last applied entry of the log.
    pub index: u64,
    /// Milliseconds since the leader was last heard here; on the leader itself, since more than half
    /// have confirmed it. None while there is no leader, and for a node that is alone.
    pub heard_ms: Option<u64>,
    /// Whether its process was asked to stop.
    pub stopping: bool,
    pub nodes: Vec<NodeStatus>,
    pub run: Option<RunStatus>,
}

/// A leader is heard so often, unless there is none any more.
const HEARD_MAX_MS: u64 = 5000;
/// Entries that a node may be behind and still be said to keep up.
const LAG_MAX: u64 = 64;

impl ClusterStatus {
    /// Why the node that tells this does not take part yet, or not any more, if so.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.stopping {
            return Some("it is stopping".to_owned());
        }
        let own = self.nodes.iter().find(|node| node.id == self.node);
        let Some(own) = own.filter(|node| node.state == NodeState::Running) else {
            let fenced = own.is_some_and(|node| node.state == NodeState::Fenced);
            return Some(if fenced {
                format!("it is fenced, until `spoonbill admit {}`", self.node)
            } else {
                "it has not joined yet".to_owned()
            });
        };
        if self.mode == "solo" {
            return None;
        }
        match (self.heard_ms, own.lag) {
            (None, _) => Some("it hears no leader".to_owned()),
            (Some(ms), _) if ms > HEARD_MAX_MS => {
                Some(format!("it has heard no leader for {} s", ms / 1000))
            }
            (_, Some(lag)) if lag > LAG_MAX => Some(format!("it is {lag} changes behind")),
            (_, None) if own.role == "voter" => Some("the leader does not answer it".to_owned()),
            _ => None,
        }
    }
}

impl RunStatus {
    pub(crate) fn of(standing: Standing, folder: Option<String>) -> Option<Self> {
        let state = match standing {
            Standing { closed: true, .. } => "closed",
            Standing { over: true, .. } => "over",
            Standing { cancelled: true, .. } => "cancelled",
            _ => "running",
        };
        Some(Self {
            state: state.to_owned(),
            folder: folder?,
            pending: standing.pending,
            taken: standing.taken,
            done: standing.done,
            failed: standing.failed,
            rows: standing.rows,
        })
    }
}

/// What this node knows, also while it waits for the others.
pub(crate) async fn of(hub: &Arc<Hub>) -> ClusterStatus {
    match &hub.voter {
        Some(voter) => of_voter(hub, voter).await,
        None => of_worker(hub).await,
    }
}

async fn of_voter(hub: &Arc<Hub>, voter: &Voter) -> ClusterStatus {
    // A ledger that cannot be asked has ended, and the node is about to.
    let roster = voter.machine.ask(ReplicaRequest::Roster).await.unwrap_or_default();
    let lives = lives(hub).await;
    let metrics = hub.metrics();
    let leads = hub.leads().is_some();
    let spoke = *locked(&voter.spoke);
    let leader = metrics
        .as_ref()
        .filter(|metrics| leads || spoke.is_some() && metrics.state != ServerState::Candidate)
        .filter(|metrics| is_confirmed(metrics))
        .and_then(|metrics| metrics.current_leader.map(seat_of));
    let heard_ms = match (&metrics, leads) {
        (Some(metrics), true) => metrics.millis_since_quorum_ack.filter(|_| leader.is_some()),
        _ => spoke.filter(|_| leader.is_some()).map(|at| at.elapsed().as_millis() as u64),
    };
    let mut nodes = Vec::new();
    for (seat, address) in hub.peers() {
        let fails = hub.link(*seat).is_some_and(|link| link.fails());
        let believed = leader.is_some() && !fails;
        let mut node = node_of(&roster, *seat, lives.get(seat).copied(), believed);
        node.address = Some(address.clone());
        node.leader = leader == Some(*seat);
        node.lag = metrics.as_ref().and_then(|metrics| lag_of(metrics, *seat));
        if *seat == hub.options.seat && !leads {
            node.lag = own_lag(hub, leader, roster.index).await;
        }
        nodes.push(node);
    }
    let workers = roster.sessions.values().filter(|session| !session.votes);
    nodes.extend(workers.map(|one| node_of(&roster, one.seat, None, leader.is_some())));
    let cluster = *voter.machine.cluster.borrow();
    ClusterStatus {
        node: hub.options.seat.0,
        mode: "cluster".to_owned(),
        cluster: cluster.map(|name| format!("{name:032x}")),
        leader: leader.map(|seat| seat.0),
        term: metrics.map_or(0, |metrics| metrics.current_term),
        index: roster.index,
        heard_ms,
        stopping: hub.leaving.load(Ordering::Acquire),
        nodes,
        run: RunStatus::of(roster.standing, roster.folder),
    }
}

/// A node without a vote knows what one that has a vote tells it.
async fn of_worker(hub: &Arc<Hub>) -> ClusterStatus {
    let asked = tokio::time::timeout(ASKING, client::ask_anyone(hub, &PeerRequest::Status)).await;
    let mut status = match asked {
        Ok(Ok(PeerResponse::Status(status))) => *status,
        _ => of_nobody(hub).await,
    };
    status.node = hub.options.seat.0;
    status.stopping = hub.leaving.load(Ordering::Acquire);
    if status.nodes.iter().all(|node| node.id != status.node) {
        let mut own = node_of(&Roster::default(), hub.options.seat, Some(hub.life), false);
        "worker".clone_into(&mut own.role);
        status.nodes.push(own);
    }
    status
}

/// What a node knows to which nobody tells anything.
async fn of_nobody(hub: &Arc<Hub>) -> ClusterStatus {
    let lives = lives(hub).await;
    let nodes = hub.peers().iter().map(|(seat, address)| NodeStatus {
        address: Some(address.clone()),
        ..node_of(&Roster::default(), *seat, lives.get(seat).copied(), false)
    });
    ClusterStatus {
        node: hub.options.seat.0,
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

/// The processes that answer, this one included. NodeDescription is not connected is asked: nodes may have had
/// nothing to say to each other. Where the last try was in vain, nobody waits for the next.
async fn lives(hub: &Arc<Hub>) -> BTreeMap<Seat, u64> {
    let others = hub.others().map(|(seat, link)| async move {
        let peer = link.peer();
        if peer.borrow().is_none() {
            let asking = Arc::clone(hub);
            let ask =
                async move { client::ask(&asking, seat, &PeerRequest::Describe, ASKING_ONE).await };
            let asked = tokio::spawn(ask);
            if !link.fails() {
                drop(asked.await);
            }
        }
        let life = peer.borrow().as_ref().map(|hello| hello.life);
        life.map(|life| (seat, life))
    });
    let others = futures_util::future::join_all(others).await;
    let own = hub.voter.as_ref().map(|_| (hub.options.seat, hub.life));
    others.into_iter().flatten().chain(own).collect()
}

/// A leader that has heard nothing of more than half for a while may have a successor.
fn is_confirmed(metrics: &RaftMetrics<u64, BasicNode>) -> bool {
    metrics.state != ServerState::Leader
        || metrics.millis_since_quorum_ack.is_some_and(|ms| ms < LED_MS)
}

/// Entries of the log that a seat has not confirmed, as the leader knows.
fn lag_of(metrics: &RaftMetrics<u64, BasicNode>, seat: Seat) -> Option<u64> {
    let all = metrics.replication.as_ref()?;
    let own = all.iter().filter(|(id, _)| seat_of(**id) == seat);
    let confirmed = own.filter_map(|(_, at)| at.map(|at| at.index)).max().unwrap_or(0);
    Some(metrics.last_log_index.unwrap_or(0).saturating_sub(confirmed))
}

/// Entries that the leader has applied and this node has not.
async fn own_lag(hub: &Hub, leader: Option<Seat>, index: u64) -> Option<u64> {
    let leader =
        leader.filter(|seat| hub.link(*seat).is_some_and(|link| link.peer().borrow().is_some()))?;
    match client::ask(hub, leader, &PeerRequest::Describe, ASKING_ONE).await {
        Some(PeerResponse::Description(who)) => Some(who.agreed.saturating_sub(index)),
        _ => None,
    }
}

/// `life` is that of the process that answers on the seat, if one does. A session alone is `believed`
/// or not: without a leader, or where nobody can be reached, it may be that of a process long gone.
fn node_of(roster: &Roster, seat: Seat, life: Option<u64>, believed: bool) -> NodeStatus {
    let session = roster.sessions.iter().find(|(_, session)| session.seat == seat);
    let record = roster.seats.get(&seat);
    let own = |life| record.is_some_and(|record| record.life == life);
    let state = match (session, life) {
        _ if record.is_some_and(|record| record.fenced) => NodeState::Fenced,
        (Some(_), Some(life)) if own(life) => NodeState::Running,
        (Some(_), None) if believed => NodeState::Running,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_ready_that_has_joined_and_keeps_up() {
        let ready = |state, heard_ms, lag| {
            let life = matches!(state, NodeState::Running).then_some(0);
            let own = NodeStatus { state, lag, ..node_of(&Roster::default(), Seat(2), life, true) };
            let status = ClusterStatus {
                node: 2,
                mode: "cluster".to_owned(),
                cluster: None,
                leader: Some(1),
                term: 1,
                index: 9,
                heard_ms,
                stopping: false,
                nodes: vec![own],
                run: None,
            };
            status.unready().unwrap_or_default()
        };
        assert_eq!(ready(NodeState::Running, Some(100), Some(3)), "");
        assert_eq!(ready(NodeState::Checking, Some(100), Some(3)), "it has not joined yet");
        assert!(ready(NodeState::Fenced, Some(100), Some(3)).contains("`spoonbill admit 2`"));
        assert_eq!(ready(NodeState::Running, None, None), "it hears no leader");
        assert!(ready(NodeState::Running, Some(7100), Some(3)).contains("for 7 s"));
        assert_eq!(ready(NodeState::Running, Some(100), Some(65)), "it is 65 changes behind");
        assert_eq!(ready(NodeState::Running, Some(1), None), "the leader does not answer it");
    }
}
