//! How a node leaves its cluster.
//!
//! A command needs the votes of a majority, and leaving the ledger is a command too. A process that
//! ends right after it has left could therefore take the majority away from the others. Each node
//! decides by the ledger, in which all departures have one order:
//!
//! | why the node ends | it waits for |
//! | --- | --- |
//! | it was asked to stop, and the others are a majority | nobody |
//! | it was asked to stop, and the others are too few without it | those that still answer |
//! | the run was closed or cancelled | all nodes that have a session |
//! | its own run failed | nobody |
//!
//! A node decides only once its own ledger holds its own departure: an older one shows nodes as
//! present that have left meanwhile. Then it hands the lead over if others go on without it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{interval, timeout};

use crate::cluster::messages::PeerRequest;
use crate::cluster::node::{Hub, Voter};
use crate::cluster::raft_log::RaftLogThread;
use crate::cluster::replica::thread::{ReplicaRequest, ReplicaThread};
use crate::cluster::start::{FAREWELL, HEARTBEAT};
use crate::cluster::status::Roster;
use crate::cluster::{client, election, operator};
use crate::ledger::Seat;
use crate::store::lock::DirLock;

/// After this time without a leader, a node no longer waits for the others to leave an ended run.
const NO_LEADER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a node waits for the others after a cancel: they finish the jobs in flight first.
const CANCELLED_RUN_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two looks at the sessions of the others.
const ROSTER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A node that does not answer within this time is taken for gone. A process that has ended refuses the
/// connection at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long raft may take to shut down.
const RAFT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The threads and tasks behind a [`ClusterHandle`](super::ClusterHandle).
pub(crate) struct ClusterThread {
    pub(super) hub: Arc<Hub>,
    pub(super) runtime: Handle,
    /// Dropping it ends the runtime and its thread.
    pub(super) end: oneshot::Sender<()>,
    pub(super) thread: JoinHandle<()>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) voter: Option<(RaftLogThread, ReplicaThread)>,
    pub(super) lock: DirLock,
}

impl ClusterThread {
    /// Ends the node: first its part in the cluster, then raft, then the threads that write files.
    pub(crate) fn close(self) {
        self.hub.ending.store(true, Ordering::Release);
        self.runtime.block_on(part(&self.hub));
        self.stop.send_replace(true);
        if let Some(raft) = self.hub.raft().cloned() {
            self.runtime.block_on(async {
                drop(tokio::time::timeout(RAFT_SHUTDOWN_TIMEOUT, raft.shutdown()).await);
            });
        }
        drop(self.end);
        drop(self.thread.join());
        operator::withdraw(&self.hub.options.dir);
        if let Some((log, machine)) = self.voter {
            machine.close();
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

/// What a node knows when it decides whether it may end.
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

fn cause(hub: &Hub, voter: &Voter) -> Cause {
    let standing = *voter.machine.standing.borrow();
    if standing.closed || standing.cancelled {
        Cause::RunEnded
    } else if hub.leaving.load(Ordering::Acquire) {
        Cause::Stopped
    } else {
        Cause::Failed
    }
}

/// Waits for the nodes that need this one, then hands the lead over to those that stay.
async fn part(hub: &Arc<Hub>) {
    let Some(voter) = &hub.voter else { return };
    let cause = cause(hub, voter);
    let standing = *voter.machine.standing.borrow();
    let patience = match cause {
        Cause::RunEnded if standing.closed => hub.options.end_wait.max(FAREWELL),
        Cause::RunEnded => CANCELLED_RUN_TIMEOUT,
        Cause::Stopped | Cause::Failed => FAREWELL,
    };
    drop(timeout(patience, wait_for_others(hub, voter, cause)).await);
    let Ok(roster) = voter.machine.ask(ReplicaRequest::Roster).await else { return };
    if departure(hub, &roster, cause).has_successors() {
        election::step_aside(hub).await;
    } else if hub.leads().is_some() {
        // The others hear with the next heartbeat that the last node has left, and end.
        let disconnected = async {
            for (_, link) in hub.others() {
                drop(link.peer().wait_for(Option::is_none).await);
            }
        };
        drop(timeout(2 * HEARTBEAT, disconnected).await);
    }
}

fn departure(hub: &Hub, roster: &Roster, cause: Cause) -> Departure {
    Departure {
        cause,
        is_caught_up: roster.index >= hub.index.load(Ordering::Acquire),
        sessions: roster.sessions.len(),
        has_undelivered_end: roster.owed,
        other_voters: other_voters(hub, roster).count(),
        majority: hub.options.majority(),
    }
}

fn other_voters(hub: &Hub, roster: &Roster) -> impl Iterator<Item = Seat> {
    let own = hub.options.seat;
    let voters = roster.sessions.values().filter(|session| session.votes);
    voters.map(|session| session.seat).filter(move |seat| *seat != own)
}

async fn wait_for_others(hub: &Arc<Hub>, voter: &Voter, cause: Cause) {
    let (mut tick, mut led_at) = (interval(ROSTER_POLL_INTERVAL), Instant::now());
    let mut changes = voter.machine.standing.clone();
    while let Ok(roster) = voter.machine.ask(ReplicaRequest::Roster).await {
        let departure = departure(hub, &roster, cause);
        // Another run may have begun since this one was closed.
        let is_other_run = cause == Cause::RunEnded && self::cause(hub, voter) != cause;
        if is_other_run || !departure.has_to_wait() || led_at.elapsed() >= NO_LEADER_TIMEOUT {
            return;
        }
        // Sessions outlive their processes for a while, so the ledger alone does not tell who needs us.
        if cause == Cause::Stopped
            && departure.strands_others()
            && !does_any_answer(hub, other_voters(hub, &roster)).await
        {
            return;
        }
        tokio::select! {
            _ = tick.tick() => {}
            Ok(()) = changes.changed() => {}
        }
        if hub.metrics().is_some_and(|metrics| metrics.current_leader.is_some()) {
            led_at = Instant::now();
        }
    }
}

async fn does_any_answer(hub: &Hub, seats: impl Iterator<Item = Seat>) -> bool {
    let asked = seats.map(|seat| client::ask(hub, seat, &PeerRequest::Describe, ANSWER_TIMEOUT));
    let mut answers: FuturesUnordered<_> = asked.collect();
    while let Some(answer) = answers.next().await {
        if answer.is_some() {
            return true;
        }
    }
    false
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
            ("the others are a majority", STOPPED, false),
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
