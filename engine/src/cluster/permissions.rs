//! Permissions of a connection. A process says in its hello which role it has:
//!
//! | role | may ask for |
//! | --- | --- |
//! | voter | everything but orders |
//! | worker | questions, and what concerns its own sessions |
//! | operator | the status, and orders |

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::cluster::leader::connections::Process;
use crate::cluster::locked;
use crate::cluster::messages::{BatchItem, PeerRequest, PeerResponse};
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::ledger::{Command, JoinRequest, Seat, SessionId};
use crate::wire::{Hello, PeerRole};

/// Sessions whose process is remembered.
const KNOWN_MAX: usize = 1024;

/// Checks requests, and remembers which process has which session.
#[derive(Debug, Default)]
pub(crate) struct Permissions {
    /// A session never changes its process.
    known: Mutex<BTreeMap<SessionId, Process>>,
}

/// The caller of a request, according to its hello.
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

/// The owner of a session, seen from this node.
enum SessionOwner {
    Own,
    Other,
    /// The session has ended. Its commands have no effect, except for a job with a valid token.
    Nobody,
    /// The session may be newer than the ledger on this node.
    Unknown,
}

impl Permissions {
    /// The answer to a caller that may not ask for this; `None` if it may.
    pub(crate) async fn refuse(
        &self,
        replica: &ReplicaHandle,
        from: Caller,
        call: &PeerRequest,
    ) -> Option<PeerResponse> {
        let refused = |words: &str| Some(PeerResponse::Refused(words.to_owned()));
        match from.role {
            PeerRole::Operator if matches!(call, PeerRequest::Status | PeerRequest::Order(_)) => {
                None
            }
            PeerRole::Operator => refused("an operator may ask for the status and give orders"),
            PeerRole::Voter | PeerRole::Worker if matches!(call, PeerRequest::Order(_)) => {
                refused("only an operator gives orders")
            }
            PeerRole::Voter => None,
            PeerRole::Worker => self.refuse_worker(replica, from, call).await,
        }
    }

    async fn refuse_worker(
        &self,
        replica: &ReplicaHandle,
        from: Caller,
        call: &PeerRequest,
    ) -> Option<PeerResponse> {
        match call {
            PeerRequest::Describe
            | PeerRequest::Ask { .. }
            | PeerRequest::Watch(_)
            | PeerRequest::Status => None,
            PeerRequest::Renew(session) => self.refuse_session(replica, from, *session).await,
            PeerRequest::Submit(items) => {
                for item in items {
                    let refused = match session_of(from, item) {
                        Ok(Some(session)) => self.refuse_session(replica, from, session).await,
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
        replica: &ReplicaHandle,
        from: Caller,
        session: SessionId,
    ) -> Option<PeerResponse> {
        match self.owner(replica, (from.seat, from.life), session).await {
            SessionOwner::Own | SessionOwner::Nobody => None,
            SessionOwner::Other => {
                let words =
                    format!("session {} does not belong to node {}", session.0, from.seat.0);
                Some(PeerResponse::Refused(words))
            }
            SessionOwner::Unknown => {
                Some(PeerResponse::Busy("this node does not know the session yet".to_owned()))
            }
        }
    }

    async fn owner(
        &self,
        replica: &ReplicaHandle,
        process: Process,
        session: SessionId,
    ) -> SessionOwner {
        if let Some(known) = locked(&self.known).get(&session) {
            return if *known == process { SessionOwner::Own } else { SessionOwner::Other };
        }
        let Ok(roster) = replica.ask(ReplicaRequest::Roster).await else {
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

/// The session that an item of a worker acts for, or why a worker may not submit the item.
fn session_of(from: Caller, item: &BatchItem) -> Result<Option<SessionId>, String> {
    let bytes = match item {
        // A chunk has no effect before all have arrived, and then the command names its session.
        BatchItem::Chunk { .. } => return Ok(None),
        BatchItem::Take { session, .. }
        | BatchItem::SessionEnd { session, leaves: true }
        | BatchItem::AllChunks { by: Some(session), .. } => return Ok(Some(*session)),
        BatchItem::SessionEnd { leaves: false, .. } | BatchItem::AllChunks { by: None, .. } => {
            return Err(beyond(from));
        }
        BatchItem::Command(bytes) => bytes,
    };
    let command =
        postcard::from_bytes(bytes).map_err(|_| "the command cannot be read".to_owned())?;
    match command {
        Command::Join(JoinRequest { life, seat, votes: false, alone: false, .. })
            if (seat, life) == (from.seat, from.life) =>
        {
            Ok(None)
        }
        Command::Join(_) => Err(format!("node {} may join only as itself", from.seat.0)),
        // A worker claims a barricade to learn the result; the ledger never lets it cross.
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
    format!("node {} has no vote, and only nodes with a vote may ask for this", from.seat.0)
}

#[cfg(test)]
mod tests;
