//! Which processes are connected to this node, and which were. A killed process closes its connections
//! at once, long before its session expires. That is a hint and no proof, so the leader only reports it
//! as a doubt: the ledger then gives away those jobs that two nodes may work on without harm.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::cluster::leader::placement::LeaderQueue;
use crate::cluster::locked;
use crate::cluster::replica::roster::Roster;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::ledger::{Command, Seat, SessionId};
use crate::wire::Hello;

/// Disconnected processes that are remembered.
const DISCONNECTED_MAX: usize = 256;
/// A node that has submitted nothing within this time has no work.
const QUIET_AFTER: Duration = Duration::from_millis(100);

/// A process: its node, and the number that it drew at its start.
pub(in crate::cluster) type Process = (Seat, u64);

/// The processes that have connected to this node.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Connections {
    /// Open connections of each process.
    open: Mutex<BTreeMap<Process, usize>>,
    /// When each node last submitted something.
    submitted: Mutex<BTreeMap<Seat, Instant>>,
}

impl Connections {
    pub(in crate::cluster) fn opened(&self, hello: &Hello) {
        *locked(&self.open).entry(process(hello)).or_default() += 1;
    }

    pub(in crate::cluster) fn closed(&self, hello: &Hello) {
        let mut open = locked(&self.open);
        if let Some(count) = open.get_mut(&process(hello)) {
            *count = count.saturating_sub(1);
        }
        let disconnected = without_connection(&open);
        let too_many = disconnected.len().saturating_sub(DISCONNECTED_MAX);
        for process in disconnected.iter().take(too_many) {
            open.remove(process);
        }
    }

    pub(in crate::cluster) fn note_submission(&self, seat: Seat) {
        locked(&self.submitted).insert(seat, Instant::now());
    }

    /// Whether a node has submitted nothing for a while.
    pub(in crate::cluster) fn is_quiet(&self, seat: Seat) -> bool {
        locked(&self.submitted).get(&seat).is_none_or(|at| at.elapsed() >= QUIET_AFTER)
    }

    /// The processes that were connected and are not any more.
    pub(in crate::cluster) fn disconnected(&self) -> Vec<Process> {
        without_connection(&locked(&self.open))
    }

    /// Forgets a process, unless it has connected again.
    fn forget(&self, process: Process) {
        let mut open = locked(&self.open);
        if open.get(&process) == Some(&0) {
            open.remove(&process);
        }
    }
}

fn without_connection(open: &BTreeMap<Process, usize>) -> Vec<Process> {
    open.iter().filter(|(_, count)| **count == 0).map(|(process, _)| *process).collect()
}

fn process(hello: &Hello) -> Process {
    (Seat(hello.seat), hello.life)
}

/// Puts the sessions of disconnected processes in doubt.
pub(in crate::cluster) async fn report_disconnected(
    replica: &ReplicaHandle,
    queue: &LeaderQueue,
    connections: &Connections,
    disconnected: Vec<Process>,
) {
    if disconnected.is_empty() {
        return;
    }
    let Ok(roster) = replica.ask(ReplicaRequest::Roster).await else { return };
    for process in disconnected {
        let is_reported = match session_of(&roster, process) {
            Some(session) => queue.propose_command(&Command::Doubt { session }).await,
            None => true,
        };
        if is_reported {
            connections.forget(process);
        }
    }
}

/// The session of a process. A process that started later on the same node has the session for itself.
fn session_of(roster: &Roster, (seat, life): Process) -> Option<SessionId> {
    roster.seats.get(&seat).filter(|record| record.life == life)?;
    let mut sessions = roster.sessions.iter();
    sessions.find(|(_, session)| session.seat == seat).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{SeatRecord, Session};
    use crate::wire::PeerRole;

    fn hello(seat: u32, life: u64) -> Hello {
        let (role, peers) = (PeerRole::Voter, String::new());
        Hello { version: 0, role, seat, raft_id: 0, cluster_id: None, life, peers }
    }

    #[test]
    fn a_process_is_disconnected_until_it_connects_again() {
        let connections = Connections::default();
        connections.opened(&hello(1, 7));
        connections.opened(&hello(1, 7));
        connections.closed(&hello(1, 7));
        assert_eq!(connections.disconnected(), []);
        connections.closed(&hello(1, 7));
        connections.opened(&hello(1, 8));
        assert_eq!(connections.disconnected(), [(Seat(1), 7)]);
        connections.forget((Seat(1), 8));
        connections.closed(&hello(1, 8));
        assert_eq!(connections.disconnected(), [(Seat(1), 7), (Seat(1), 8)]);
        connections.opened(&hello(1, 7));
        connections.forget((Seat(1), 8));
        assert_eq!(connections.disconnected(), []);
    }

    #[test]
    fn only_some_disconnected_processes_are_remembered() {
        let connections = Connections::default();
        for life in 0..1000 {
            connections.opened(&hello(1, life));
            connections.closed(&hello(1, life));
        }
        assert_eq!(connections.disconnected().len(), DISCONNECTED_MAX);
    }

    #[test]
    fn a_doubt_concerns_the_session_of_that_process_only() {
        let session = Session {
            nonce: 0,
            seat: Seat(2),
            votes: true,
            joined: 0,
            seen: 0,
            deadline: 0,
            doubted: None,
            last_take: 0,
            last_grants: Vec::new(),
        };
        let record = |life| SeatRecord { life, ..SeatRecord::default() };
        let roster = Roster {
            seats: [(Seat(2), record(7)), (Seat(3), record(9))].into(),
            sessions: [(SessionId(5), session)].into(),
            ..Roster::default()
        };
        for (name, process, session) in [
            ("the process that has the session", (Seat(2), 7), Some(SessionId(5))),
            ("one that ran before it", (Seat(2), 6), None),
            ("one without a session", (Seat(3), 9), None),
            ("one of an unknown node", (Seat(4), 7), None),
        ] {
            assert_eq!(session_of(&roster, process), session, "{name}");
        }
    }
}
