//! What a connection may ask for: nodes with a vote everything, those without it what concerns their
//! own sessions, an operator how things are and orders. What a process is, it has said in its hello.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::cluster::leader::connections::Process;
use crate::cluster::messages::{Call, Item, Response};
use crate::cluster::node::{Hub, locked};
use crate::cluster::replica::thread::Request;
use crate::ledger::{Arrival, Command, Seat, SessionId};
use crate::wire::{Hello, Role};

/// Sessions whose process is remembered.
const KNOWN_MAX: usize = 1024;

/// Whose sessions are whose.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    /// A session is never another process's, so what was found out once holds.
    known: Mutex<BTreeMap<SessionId, Process>>,
}

/// Who asks, as it has said in its hello.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub role: Role,
    pub seat: Seat,
    life: u64,
}

impl Caller {
    pub(crate) fn of(hello: &Hello) -> Self {
        Self { role: hello.role, seat: Seat(hello.seat), life: hello.life }
    }
}

/// Who a session is acted for by, as far as this node has heard.
enum Owner {
    Own,
    Other,
    /// It has ended, or never was: whatever is done in its name changes nothing but by a token.
    Nobody,
    /// It may be one that this node has not heard of yet.
    Unknown,
}

impl Rights {
    /// Nothing, or the answer to one who may not ask for this.
    pub(crate) async fn refuse(&self, hub: &Hub, from: Caller, call: &Call) -> Option<Response> {
        let told = |words: &str| Some(Response::Refused(words.to_owned()));
        match from.role {
            Role::Operator if matches!(call, Call::Status | Call::Order(_)) => None,
            Role::Operator => told("an operator may ask for the status and give orders"),
            Role::Voter | Role::Worker if matches!(call, Call::Order(_)) => {
                told("only an operator gives orders")
            }
            Role::Voter => None,
            Role::Worker => self.refuse_worker(hub, from, call).await,
        }
    }

    async fn refuse_worker(&self, hub: &Hub, from: Caller, call: &Call) -> Option<Response> {
        match call {
            Call::Who | Call::Ask { .. } | Call::Watch(_) | Call::Status => None,
            Call::Renew(session) => self.refuse_session(hub, from, *session).await,
            Call::Submit(items) => {
                for item in items {
                    let refused = match session_of(from, item) {
                        Ok(Some(session)) => self.refuse_session(hub, from, session).await,
                        Ok(None) => None,
                        Err(words) => Some(Response::Refused(words)),
                    };
                    if refused.is_some() {
                        return refused;
                    }
                }
                None
            }
            Call::Raft { .. } | Call::MayLead(_) | Call::Stand | Call::Order(_) => {
                Some(Response::Refused(beyond(from)))
            }
        }
    }

    async fn refuse_session(
        &self,
        hub: &Hub,
        from: Caller,
        session: SessionId,
    ) -> Option<Response> {
        match self.owner(hub, (from.seat, from.life), session).await {
            Owner::Own | Owner::Nobody => None,
            Owner::Other => {
                let words = format!("session {} is not node {}'s", session.0, from.seat.0);
                Some(Response::Refused(words))
            }
            Owner::Unknown => Some(Response::Busy("not known yet".to_owned())),
        }
    }

    async fn owner(&self, hub: &Hub, process: Process, session: SessionId) -> Owner {
        if let Some(known) = locked(&self.known).get(&session) {
            return if *known == process { Owner::Own } else { Owner::Other };
        }
        let Some(voter) = &hub.voter else { return Owner::Unknown };
        let Ok(roster) = voter.machine.ask(Request::Roster).await else { return Owner::Unknown };
        let Some(seat) = roster.sessions.get(&session).map(|session| session.seat) else {
            let was = session <= roster.last_session;
            return if was { Owner::Nobody } else { Owner::Unknown };
        };
        let life = roster.seats.get(&seat).map_or(0, |record| record.life);
        let mut known = locked(&self.known);
        known.insert(session, (seat, life));
        if known.len() > KNOWN_MAX {
            known.pop_first();
        }
        if (seat, life) == process { Owner::Own } else { Owner::Other }
    }
}

/// The session that a worker's item acts for, or why a worker may not ask for it.
fn session_of(from: Caller, item: &Item) -> Result<Option<SessionId>, String> {
    let bytes = match item {
        // Its parts are nothing before they are put together, and then they are this session's.
        Item::Part { .. } => return Ok(None),
        Item::Take { session, .. }
        | Item::Farewell { session, leaves: true }
        | Item::Parcel { by: Some(session), .. } => return Ok(Some(*session)),
        Item::Farewell { leaves: false, .. } | Item::Parcel { by: None, .. } => {
            return Err(beyond(from));
        }
        Item::Command(bytes) => bytes,
    };
    let command = postcard::from_bytes(bytes).map_err(|_| "this is no command".to_owned())?;
    match command {
        Command::Join(Arrival { life, seat, votes: false, alone: false, .. })
            if (seat, life) == (from.seat, from.life) =>
        {
            Ok(None)
        }
        Command::Join(_) => Err(format!("node {} may join as itself alone", from.seat.0)),
        // Asking at a barricade is how it hears what came of it; the ledger lets no worker cross.
        Command::Leave { session }
        | Command::Claim { session, .. }
        | Command::Take { session, .. }
        | Command::Begin { session, .. }
        | Command::Finish { session, .. }
        | Command::Return { session, .. } => Ok(Some(session)),
        Command::Found { .. }
        | Command::Beat { .. }
        | Command::Release { .. }
        | Command::OpenRun { .. }
        | Command::Seed { .. }
        | Command::Ack { .. }
        | Command::Close { .. }
        | Command::Cancel
        | Command::Mint { .. }
        | Command::Fence { .. }
        | Command::Admit { .. }
        | Command::Doubt { .. } => Err(beyond(from)),
    }
}

fn beyond(from: Caller) -> String {
    format!("node {} has no vote, and this is for those who have one", from.seat.0)
}

#[cfg(test)]
mod tests;
