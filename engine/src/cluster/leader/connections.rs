//! Whose connections have gone: a process that is killed closes them at once, long before its session
//! runs out. It is a hint and no proof, and the ledger takes it for no more.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::cluster::leader::batch::propose_one;
use crate::cluster::node::{Voter, locked};
use crate::cluster::replica::thread::ReplicaRequest;
use crate::ledger::{Command, Seat};
use crate::wire::Hello;

/// Processes that are remembered as gone.
const GONE_MAX: usize = 256;

/// NodeDescription has said nothing for so long has no work.
const QUIET: Duration = Duration::from_millis(100);

/// A process: its seat and its life.
pub(in crate::cluster) type Process = (Seat, u64);

/// NodeDescription is connected with this node, and who was.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Connections {
    /// Connections that each has open.
    open: Mutex<BTreeMap<Process, usize>>,
    /// When each seat last had something to say.
    spoke: Mutex<BTreeMap<Seat, Instant>>,
}

impl Connections {
    /// A process has one connection more.
    pub(in crate::cluster) fn came(&self, hello: &Hello) {
        *locked(&self.open).entry(process(hello)).or_default() += 1;
    }

    /// It has one less.
    pub(in crate::cluster) fn went(&self, hello: &Hello) {
        let mut open = locked(&self.open);
        if let Some(own) = open.get_mut(&process(hello)) {
            *own = own.saturating_sub(1);
        }
        let gone = without_any(&open);
        for process in gone.iter().take(gone.len().saturating_sub(GONE_MAX)) {
            open.remove(process);
        }
    }

    /// A seat has something to say.
    pub(in crate::cluster) fn speaks(&self, seat: Seat) {
        locked(&self.spoke).insert(seat, Instant::now());
    }

    /// Whether it has had nothing to say for a while.
    pub(in crate::cluster) fn is_quiet(&self, seat: Seat) -> bool {
        locked(&self.spoke).get(&seat).is_none_or(|at| at.elapsed() >= QUIET)
    }

    /// NodeDescription was connected and is not any more.
    pub(in crate::cluster) fn gone(&self) -> Vec<Process> {
        without_any(&locked(&self.open))
    }

    /// Nothing more is to be said of it, unless it comes back.
    fn forget(&self, process: Process) {
        let mut open = locked(&self.open);
        if open.get(&process) == Some(&0) {
            open.remove(&process);
        }
    }
}

fn without_any(open: &BTreeMap<Process, usize>) -> Vec<Process> {
    open.iter().filter(|(_, own)| **own == 0).map(|(process, _)| *process).collect()
}

fn process(hello: &Hello) -> Process {
    (Seat(hello.seat), hello.life)
}

/// Tells the ledger whose connections are gone, as far as they have a session.
pub(in crate::cluster) async fn doubt(voter: &Voter, gone: Vec<Process>) {
    if gone.is_empty() {
        return;
    }
    let Ok(roster) = voter.machine.ask(ReplicaRequest::Roster).await else { return };
    for (seat, life) in gone {
        let present = roster.seats.get(&seat).is_some_and(|record| record.life == life);
        let own = roster.sessions.iter().find(|(_, session)| present && session.seat == seat);
        let told = match own {
            Some((session, _)) => propose_one(voter, &Command::Doubt { session: *session }).await,
            None => true,
        };
        if told {
            voter.guests.forget((seat, life));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PeerRole;

    fn hello(seat: u32, life: u64) -> Hello {
        let (role, peers) = (PeerRole::Voter, String::new());
        Hello { version: 0, role, seat, raft_id: 0, cluster_id: None, life, peers }
    }

    #[test]
    fn who_has_no_connection_left_is_gone_until_it_comes_back() {
        let guests = Connections::default();
        guests.came(&hello(1, 7));
        guests.came(&hello(1, 7));
        guests.went(&hello(1, 7));
        assert_eq!(guests.gone(), []);
        guests.went(&hello(1, 7));
        guests.came(&hello(1, 8));
        assert_eq!(guests.gone(), [(Seat(1), 7)]);
        guests.forget((Seat(1), 8));
        guests.went(&hello(1, 8));
        assert_eq!(guests.gone(), [(Seat(1), 7), (Seat(1), 8)]);
        guests.came(&hello(1, 7));
        guests.forget((Seat(1), 8));
        assert_eq!(guests.gone(), []);
    }

    #[test]
    fn not_all_that_are_gone_are_remembered() {
        let guests = Connections::default();
        for life in 0..1000 {
            guests.came(&hello(1, life));
            guests.went(&hello(1, life));
        }
        assert_eq!(guests.gone().len(), GONE_MAX);
    }
}
