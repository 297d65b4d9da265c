//! What a node can tell of itself and its cluster.

use std::collections::BTreeMap;

use openraft::ServerState;
use serde::{Deserialize, Serialize};

use super::hub::Hub;
use super::machine::{Mark, Request};
use super::types::seat_of;
use crate::ledger::{Ledger, Seat, SeatRecord, Session, SessionId, Standing};
use crate::store::sqlite::SqliteTables;

/// Who is there, as of the last applied entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Roster {
    pub seats: BTreeMap<Seat, SeatRecord>,
    pub sessions: BTreeMap<SessionId, Session>,
    /// Jobs each session holds.
    pub held: BTreeMap<SessionId, u64>,
    pub standing: Standing,
    pub folder: Option<String>,
    /// Whether a node has written everything of a closed run and does not know that it is closed.
    pub owed: bool,
    pub index: u64,
}

impl Roster {
    pub(super) fn of(ledger: &Ledger<SqliteTables>, mark: &Mark) -> Self {
        let core = ledger.core();
        Self {
            seats: core.seats.clone(),
            sessions: core.sessions.clone(),
            held: core.held(),
            standing: ledger.standing(),
            folder: core.run.as_ref().map(|run| run.plan.folder.clone()),
            owed: core.run.as_ref().is_some_and(|run| {
                run.closed && run.written.difference(&run.told).next().is_some()
            }),
            index: mark.applied.map_or(0, |applied| applied.index),
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
    /// Entries of the log it has not confirmed; known to the leader alone.
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
    /// Who tells this.
    pub node: u32,
    /// `solo` or `cluster`.
    pub mode: String,
    pub cluster: Option<String>,
    pub leader: Option<u32>,
    pub term: u64,
    /// Last applied entry of the log.
    pub index: u64,
    pub nodes: Vec<NodeStatus>,
    pub run: Option<RunStatus>,
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

/// What this node can tell.
pub(super) async fn of(hub: &Hub) -> Option<ClusterStatus> {
    let voter = hub.voter.as_ref()?;
    let roster = voter.machine.ask(Request::Roster).await.ok()?;
    let metrics = hub.metrics()?;
    let leader = metrics.current_leader.map(seat_of);
    let mut nodes = Vec::new();
    for (seat, address) in hub.peers() {
        let reachable = *seat == hub.options.seat
            || hub.link(*seat).is_some_and(|link| link.peer().borrow().is_some());
        let mut node = node_of(&roster, *seat, reachable);
        node.address = Some(address.clone());
        node.leader = leader == Some(*seat);
        node.lag = metrics.replication.as_ref().map(|all| {
            let own = all.iter().filter(|(id, _)| seat_of(**id) == *seat);
            let confirmed = own.filter_map(|(_, at)| at.map(|at| at.index)).max().unwrap_or(0);
            metrics.last_log_index.unwrap_or(0).saturating_sub(confirmed)
        });
        nodes.push(node);
    }
    let workers = roster.sessions.values().filter(|session| !session.votes);
    nodes.extend(workers.map(|session| node_of(&roster, session.seat, true)));
    let cluster = *voter.machine.cluster.borrow();
    Some(ClusterStatus {
        node: hub.options.seat.0,
        mode: "cluster".to_owned(),
        cluster: cluster.map(|name| format!("{name:032x}")),
        leader: leader.filter(|_| metrics.state != ServerState::Candidate).map(|seat| seat.0),
        term: metrics.current_term,
        index: roster.index,
        nodes,
        run: RunStatus::of(roster.standing, roster.folder),
    })
}

fn node_of(roster: &Roster, seat: Seat, reachable: bool) -> NodeStatus {
    let session = roster.sessions.iter().find(|(_, session)| session.seat == seat);
    let fenced = roster.seats.get(&seat).is_some_and(|seat| seat.fenced);
    let state = match (fenced, session.is_some(), reachable) {
        (true, _, _) => NodeState::Fenced,
        (_, true, _) => NodeState::Running,
        (_, false, true) => NodeState::Checking,
        (_, false, false) => NodeState::Silent,
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
