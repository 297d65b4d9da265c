//! What a connection may ask for: nodes with a vote everything, those without it what concerns their
//! own sessions, an operator how things are and orders. What a process is, it has said in its hello.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::cluster::leader::connections::Process;
use crate::cluster::messages::{BatchItem, PeerRequest, PeerResponse};
use crate::cluster::node::{Hub, locked};
use crate::cluster::replica::thread::ReplicaRequest;
use crate::ledger::{Command, JoinRequest, Seat, SessionId};
use crate::wire::{Hello, PeerRole};

/// Sessions whose process is remembered.
const KNOWN_MAX: usize = 1024;

/// Whose sessions are whose.
#[derive(Debug, Default)]
pub(crate) struct Permissions {
    /// A session is never another process's, so what was found out once holds.
    known: Mutex<BTreeMap<SessionId, Process>>,
}

/// NodeDescription asks, as it has said in its hello.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub role: PeerRole,
    pub seat: Seat,
    life: u64,
}

impl Caller {
    pub(crate) fn of(hello: &Hello) -> Self {
        Self { role: hello.role, seat: Seat(hello.seat), life: hello.life }
    }
}

/// NodeDescription a session is acted for by, as far as this node has heard.
enum SessionOwner {
    Own,
    Other,
    /// It has ended, or never was: whatever is done in its name changes nothing but by a token.
    Nobody,
    /// It may be one that this node has not heard of yet.
    Unknown,
}

impl Permissions {
    /// Nothing, or the answer to one who may not ask for this.
    pub(crate) async fn refuse(
        &self,
        hub: &Hub,
        from: Caller,
        call: &PeerRequest,
    ) -> Option<PeerResponse> {
        let told = |words: &str| Some(PeerResponse::Refused(words.to_owned()));
        match from.role {
            PeerRole::Operator if matches!(call, PeerRequest::Status | PeerRequest::Order(_)) => {
                None
            }
            PeerRole::Operator => told("an operator may ask for the status and give orders"),
            PeerRole::Voter | PeerRole::Worker if matches!(call, PeerRequest::Order(_)) => {
                told("only an operator gives orders")
            }
            PeerRole::Voter => None,
            PeerRole::Worker => self.refuse_worker(hub, from, call).await,
        }
    }

    async fn refuse_worker(
        &self,
        hub: &Hub,
        from: Caller,
        call: &PeerRequest,
    ) -> Option<PeerResponse> {
        match call {
            PeerRequest::Describe
            | PeerRequest::Ask { .. }
            | PeerRequest::Watch(_)
            | PeerRequest::Status => None,
            PeerRequest::Renew(session) => self.refuse_session(hub, from, *session).await,
            PeerRequest::Submit(items) => {
                for item in items {
                    let refused = match session_of(from, item) {
                        Ok(Some(session)) => self.refuse_session(hub, from, session).await,
                        Ok(None) => None,
                        Err(words) => Some(PeerResponse::Refused(words)),
                    };
                    if refused.is_some() {
                        return refused;
                    }
                }
                None
            }
            PeerRequest::Raft { .. }
            | PeerRequest::MayLead(_)
            | PeerRequest::Stand
            | PeerRequest::Order(_) => Some(PeerResponse::Refused(beyond(from))),
        }
    }

    async fn refuse_session(
        &self,
        hub: &Hub,
        from: Caller,
        session: SessionId,
    ) -> Option<PeerResponse> {
        match self.owner(hub, (from.seat, from.life), session).await {
            SessionOwner::Own | SessionOwner::Nobody => None,
            SessionOwner::Other => {
                let words = format!("session {} is not node {}'s", session.0, from.seat.0);
                Some(PeerResponse::Refused(words))
            }
            SessionOwner::Unknown => Some(PeerResponse::Busy("not known yet".to_owned())),
        }
    }

    async fn owner(&self, hub: &Hub, process: Process, session: SessionId) -> SessionOwner {
        if let Some(known) = locked(&self.known).get(&session) {
            return if *known == process { SessionOwner::Own } else { SessionOwner::Other };
        }
        let Some(voter) = &hub.voter else { return SessionOwner::Unknown };
        let Ok(roster) = voter.machine.ask(ReplicaRequest::Roster).await else {
            return SessionOwner::Unknown;
        };
        let Some(seat) = roster.sessions.get(&session).map(|session| session.seat) else {
            let was = session <= roster.last_session;
            return if was { SessionOwner::Nobody } else { SessionOwner::Unknown };
        };
        let life = roster.seats.get(&seat).map_or(0, |record| record.life);
        let mut known = locked(&self.known);
        known.insert(session, (seat, life));
        if known.len() > KNOWN_MAX {
            known.pop_first();
        }
        if (seat, life) == process { SessionOwner::Own } else { SessionOwner::Other }
    }
}

/// The session that a worker's item acts for, or why a worker may not ask for it.
fn session_of(from: Caller, item: &BatchItem) -> Result<Option<SessionId>, String> {
    let bytes = match item {
        // Its parts are nothing before they are put together, and then they are this session's.
        BatchItem::Chunk { .. } => return Ok(None),
        BatchItem::Take { session, .. }
        | BatchItem::SessionEnd { session, leaves: true }
        | BatchItem::AllChunks { by: Some(session), .. } => return Ok(Some(*session)),
        BatchItem::SessionEnd { leaves: false, .. } | BatchItem::AllChunks { by: None, .. } => {
            return Err(beyond(from));
        }
        BatchItem::Command(bytes) => bytes,
    };
    let command = postcard::from_bytes(bytes).map_err(|_| "this is no command".to_owned())?;
    match command {
        Command::Join(JoinRequest { life, seat, votes: false, alone: false, .. })
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
