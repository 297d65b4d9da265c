//! The status of a node and its cluster, as `spoonbill status` shows it.

pub(crate) mod reader;

use serde::{Deserialize, Serialize};

use crate::ledger::Standing;

/// The state of a node in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeState {
    /// The process runs and has no session yet.
    Checking,
    /// It has a session.
    Running,
    /// It does not answer.
    Silent,
    /// It may not join until an operator admits it.
    Fenced,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeStatus {
    pub id: u32,
    /// Its address; `None` for a worker.
    pub address: Option<String>,
    /// `voter` or `worker`.
    pub role: String,
    pub state: NodeState,
    pub leader: bool,
    /// Jobs in flight.
    pub jobs: u64,
    /// Entries of the log that it has not confirmed. The leader knows it of all nodes, any other node only
    /// of itself.
    pub lag: Option<u64>,
}

/// The progress of the run.
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

/// A node's view of its cluster, or of itself if it runs alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    /// The node that answers.
    pub node: u32,
    /// `solo` or `cluster`.
    pub mode: String,
    pub cluster: Option<String>,
    pub leader: Option<u32>,
    pub term: u64,
    /// Last applied entry of the log.
    pub index: u64,
    /// Milliseconds since this node heard the leader, or since a majority confirmed it as the leader.
    /// `None` without a leader, and for a node that runs alone.
    pub heard_ms: Option<u64>,
    /// Whether its process was asked to stop.
    pub stopping: bool,
    pub nodes: Vec<NodeStatus>,
    pub run: Option<RunStatus>,
}

/// After this time without a word from the leader, in milliseconds, a node is not ready.
const HEARD_MAX_MS: u64 = 5000;
/// Entries that a node may be behind and still be ready.
const LAG_MAX: u64 = 64;

impl ClusterStatus {
    /// Why the node is not ready; `None` if it is.
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
            (_, None) if own.role == "voter" => Some("the leader does not answer".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_ready_once_it_has_joined_and_keeps_up() {
        let ready = |state, heard_ms, lag| {
            let role = "voter".to_owned();
            let own = NodeStatus { id: 2, address: None, role, state, leader: false, jobs: 0, lag };
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
        assert_eq!(ready(NodeState::Running, Some(1), None), "the leader does not answer");
    }
}
