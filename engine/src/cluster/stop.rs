//! How a node leaves its cluster.
//!
//! A command needs the votes of a majority, and leaving the ledger is a command too. A process that
//! ends right after it has left could therefore take the majority away from those that stay. Each node
//! decides by the ledger, in which all departures have one order:
//!
//! | why the node ends | it waits for |
//! | --- | --- |
//! | it was asked to stop, and a majority stays | nobody |
//! | it was asked to stop, and too few nodes stay | those that still answer |
//! | the run was closed or cancelled | all nodes that have a session |
//! | its own run failed | nobody |
//!
//! A node decides only once its own ledger holds its own departure: an older one shows nodes as
//! present that have left meanwhile. Then it hands the lead over if other nodes stay.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::interval;

use crate::cluster::client::ClusterClient;
use crate::cluster::election::{self, Leadership};
use crate::cluster::messages::PeerRequest;
use crate::cluster::operator;
use crate::cluster::peers::PeerClients;
use crate::cluster::raft_log::RaftLogThread;
use crate::cluster::replica::roster::Roster;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest, ReplicaThread};
use crate::ledger::Seat;
use crate::store::lock::DirLock;
use crate::threads::pause::wait_at_most;

/// How long a node that was asked to stop waits for those that need it, and the shortest time that nodes
/// wait for each other after a closed run.
pub(super) const DEPARTURE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last node waits for its peers to disconnect: two heartbeats.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(300);
/// After this time without a leader, a node no longer waits for its peers to leave an ended run.
const NO_LEADER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a node waits for its peers after a cancel: they finish the jobs in flight first.
const CANCELLED_RUN_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two checks of the sessions.
const ROSTER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A node that does not answer within this time is taken for gone. A process that has ended refuses the
/// connection at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long raft may take to shut down.
const RAFT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The threads and tasks behind a [`ClusterHandle`](super::ClusterHandle).
pub(crate) struct ClusterThread {
    /// `None` for a node without a vote.
    pub(super) departing: Option<Departing>,
    pub(super) runtime: Handle,
    /// Dropping it ends the runtime and its thread.
    pub(super) end: oneshot::Sender<()>,
    pub(super) thread: JoinHandle<()>,
    /// Ends the listeners.
    pub(super) stop: watch::Sender<bool>,
    pub(super) threads: Option<(RaftLogThread, ReplicaThread)>,
    pub(super) dir: PathBuf,
    pub(super) lock: DirLock,
}

impl ClusterThread {
    /// Ends the node: first its part in the cluster, then raft, then the threads that write files.
    pub(crate) fn close(self) {
        let raft = self.departing.as_ref().and_then(|node| node.leadership.raft().cloned());
        if let Some(departing) = &self.departing {
            departing.leadership.set_ending();
            self.runtime.block_on(departing.part());
        }
        self.stop.send_replace(true);
        if let Some(raft) = raft {
            self.runtime.block_on(wait_at_most(RAFT_SHUTDOWN_TIMEOUT, raft.shutdown()));
        }
        drop(self.departing);
        drop(self.end);
        drop(self.thread.join());
        operator::withdraw(&self.dir);
        if let Some((log, replica)) = self.threads {
            replica.close();
            log.close();
        }
        // Only now may another process open the data directory.
        drop(self.lock);
    }
}

/// Why a node ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The run was closed or cancelled: all nodes end.
    RunEnded,
    /// Its process was asked to stop.
    Stopped,
    /// Its own run failed.
    Failed,
}

/// The facts that decide whether a node may end.
#[derive(Debug, Clone, Copy)]
struct Departure {
    cause: Cause,
    /// The ledger here is as new as every answer this node was given.
    is_caught_up: bool,
    /// Sessions of all nodes, workers and this node included.
    sessions: usize,
    /// A node has written its files but has not heard that the run is closed.
    has_undelivered_end: bool,
    /// Other nodes with a vote that have a session.
    other_voters: usize,
    /// Votes that are needed to agree.
    majority: usize,
}

impl Departure {
    /// Whether other nodes would be left without what they need if this one ended now.
    fn has_to_wait(self) -> bool {
        match self.cause {
            Cause::Failed => false,
            Cause::RunEnded => self.sessions > 0 || self.has_undelivered_end,
            Cause::Stopped => !self.is_caught_up || self.strands_others(),
        }
    }

    fn strands_others(self) -> bool {
        (1..self.majority).contains(&self.other_voters)
    }

    /// Whether others stay that need a leader.
    fn has_successors(self) -> bool {
        self.cause != Cause::RunEnded && (self.other_voters > 0 || !self.is_caught_up)
    }
}

/// The parts that a node with a vote uses to leave its cluster.
pub(super) struct Departing {
    pub seat: Seat,
    pub end_wait: Duration,
    pub majority: usize,
    pub replica: ReplicaHandle,
    pub peers: Arc<PeerClients>,
    pub leadership: Arc<Leadership>,
    pub client: ClusterClient,
}

impl Departing {
    /// Waits for the nodes that need this one, then hands the lead over to those that stay.
    async fn part(&self) {
        let cause = self.cause();
        let limit = match cause {
            Cause::RunEnded if self.replica.standing.borrow().closed => {
                self.end_wait.max(DEPARTURE_TIMEOUT)
            }
            Cause::RunEnded => CANCELLED_RUN_TIMEOUT,
            Cause::Stopped | Cause::Failed => DEPARTURE_TIMEOUT,
        };
        wait_at_most(limit, self.wait_for_others(cause)).await;
        let Ok(roster) = self.replica.ask(ReplicaRequest::Roster).await else { return };
        if self.departure(&roster, cause).has_successors() {
            election::step_aside(&self.leadership, &self.peers).await;
        } else if self.leadership.leads().is_some() {
            // The others hear with the next heartbeat that the last node has left, and end.
            let disconnected = async {
                for (_, client) in self.peers.others() {
                    drop(client.peer().wait_for(Option::is_none).await);
                }
            };
            wait_at_most(DISCONNECT_TIMEOUT, disconnected).await;
        }
    }

    fn cause(&self) -> Cause {
        let standing = *self.replica.standing.borrow();
        if standing.closed || standing.cancelled {
            Cause::RunEnded
        } else if self.leadership.is_stopping() {
            Cause::Stopped
        } else {
            Cause::Failed
        }
    }

    fn departure(&self, roster: &Roster, cause: Cause) -> Departure {
        Departure {
            cause,
            is_caught_up: roster.index >= self.client.last_index(),
            sessions: roster.sessions.len(),
            has_undelivered_end: roster.owed,
            other_voters: self.other_voters(roster).count(),
            majority: self.majority,
        }
    }

    fn other_voters(&self, roster: &Roster) -> impl Iterator<Item = Seat> {
        let voters = roster.sessions.values().filter(|session| session.votes);
        voters.map(|session| session.seat).filter(|seat| *seat != self.seat)
    }

    async fn wait_for_others(&self, cause: Cause) {
        let (mut tick, mut led_at) = (interval(ROSTER_POLL_INTERVAL), Instant::now());
        let mut changes = self.replica.standing.clone();
        while let Ok(roster) = self.replica.ask(ReplicaRequest::Roster).await {
            let departure = self.departure(&roster, cause);
            // Another run may have begun since this one was closed.
            let is_other_run = cause == Cause::RunEnded && self.cause() != cause;
            if is_other_run || !departure.has_to_wait() || led_at.elapsed() >= NO_LEADER_TIMEOUT {
                return;
            }
            // A session outlives its process for a while, so the ledger alone does not tell who needs
            // this node.
            if cause == Cause::Stopped
                && departure.strands_others()
                && !self.does_any_answer(self.other_voters(&roster)).await
            {
                return;
            }
            tokio::select! {
                _ = tick.tick() => {}
                Ok(()) = changes.changed() => {}
            }
            if self.leadership.metrics().is_some_and(|now| now.current_leader.is_some()) {
                led_at = Instant::now();
            }
        }
    }

    async fn does_any_answer(&self, seats: impl Iterator<Item = Seat>) -> bool {
        let asked = seats.map(|seat| self.peers.ask(seat, &PeerRequest::Describe, ANSWER_TIMEOUT));
        let mut answers: FuturesUnordered<_> = asked.collect();
        while let Some(answer) = answers.next().await {
            if answer.is_some() {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three nodes, of which this one was asked to stop and has left the ledger.
    const STOPPED: Departure = Departure {
        cause: Cause::Stopped,
        is_caught_up: true,
        sessions: 2,
        has_undelivered_end: false,
        other_voters: 2,
        majority: 2,
    };

    #[test]
    fn a_node_waits_only_for_others_that_need_it() {
        let ended = Departure { cause: Cause::RunEnded, ..STOPPED };
        for (name, departure, waits) in [
            ("a majority stays", STOPPED, false),
            ("one other is left", Departure { other_voters: 1, ..STOPPED }, true),
            ("this node is the last", Departure { other_voters: 0, ..STOPPED }, false),
            ("the ledger here is old", Departure { is_caught_up: false, ..STOPPED }, true),
            ("two of five are left", Departure { majority: 3, ..STOPPED }, true),
            ("the run ended and sessions are left", ended, true),
            ("the run ended and all have left", Departure { sessions: 0, ..ended }, false),
            (
                "the run ended and a node has not heard of it",
                Departure { sessions: 0, has_undelivered_end: true, ..ended },
                true,
            ),
            (
                "the run of this node failed",
                Departure { cause: Cause::Failed, other_voters: 1, ..STOPPED },
                false,
            ),
        ] {
            assert_eq!(departure.has_to_wait(), waits, "{name}");
        }
    }

    #[test]
    fn the_lead_is_handed_over_only_to_nodes_that_stay() {
        assert!(STOPPED.has_successors());
        assert!(!Departure { other_voters: 0, ..STOPPED }.has_successors());
        assert!(!Departure { cause: Cause::RunEnded, ..STOPPED }.has_successors());
        assert!(Departure { cause: Cause::Failed, ..STOPPED }.has_successors());
    }
}
