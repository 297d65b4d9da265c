//! Barricades: one node crosses and does the work, and every other node waits for its result.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::command::{Epoch, Reply, SessionId};
use super::{Ledger, Tables};

/// One barricade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Barricade {
    /// A node is crossing.
    Crossing {
        /// The session that crosses.
        owner: SessionId,
        /// Number of the crossing.
        epoch: Epoch,
    },
    /// A node has crossed, with or without success.
    Crossed {
        /// The result.
        result: Result<(), String>,
        /// The sessions that may read the result: those that existed then, and those that have claimed
        /// since. When the last of them ends, the barricade is removed and can be crossed again.
        by: BTreeSet<SessionId>,
    },
}

impl<T: Tables> Ledger<T> {
    pub(super) fn claim(&mut self, session: SessionId, name: &str) -> Reply {
        let clock = self.core.clock;
        let Some(own) = self.core.sessions.get_mut(&session) else {
            return Reply::Stale;
        };
        own.seen = clock;
        let (joined, votes) = (own.joined, own.votes);
        match self.core.barricades.get_mut(name) {
            Some(Barricade::Crossed { result, by }) => {
                // A session may belong to a dead process until it expires. It vouches for the result
                // only if it was heard after the new session joined.
                let sessions = &self.core.sessions;
                let lives =
                    |id: &SessionId| sessions.get(id).is_some_and(|session| session.seen > joined);
                if by.contains(&session) || by.iter().any(lives) {
                    by.insert(session);
                    return Reply::Crossed(result.clone());
                }
                Reply::Wait
            }
            Some(Barricade::Crossing { owner, epoch }) if *owner == session => Reply::Cross(*epoch),
            None if votes => {
                self.core.next_epoch += 1;
                let epoch = Epoch(self.core.next_epoch);
                let crossing = Barricade::Crossing { owner: session, epoch };
                self.core.barricades.insert(name.to_owned(), crossing);
                Reply::Cross(epoch)
            }
            Some(Barricade::Crossing { .. }) | None => Reply::Wait,
        }
    }

    pub(super) fn release(
        &mut self,
        session: SessionId,
        name: &str,
        epoch: Epoch,
        result: Result<(), String>,
    ) -> Reply {
        let clock = self.core.clock;
        match self.core.barricades.get_mut(name) {
            Some(gate) if *gate == (Barricade::Crossing { owner: session, epoch }) => {
                if let Some(own) = self.core.sessions.get_mut(&session) {
                    own.seen = clock;
                }
                // Every current session can read the result from its own copy of the ledger.
                let by = self.core.sessions.keys().copied().chain([session]).collect();
                *gate = Barricade::Crossed { result, by };
                Reply::Ok
            }
            _ => Reply::Stale,
        }
    }

    /// The result of a crossing that this session may read.
    pub(crate) fn crossed(&self, session: SessionId, name: &str) -> Option<Result<(), String>> {
        match self.core.barricades.get(name) {
            Some(Barricade::Crossed { result, by }) if by.contains(&session) => {
                Some(result.clone())
            }
            _ => None,
        }
    }

    /// Whether `session` is inside the crossing `epoch` of any barricade.
    pub(super) fn is_crossing(&self, session: SessionId, epoch: Epoch) -> bool {
        let crossing = Barricade::Crossing { owner: session, epoch };
        self.core.barricades.values().any(|gate| *gate == crossing)
    }

    /// How many barricades are being crossed.
    pub(super) fn crossings(&self) -> u32 {
        let gates = self.core.barricades.values();
        gates.filter(|gate| matches!(gate, Barricade::Crossing { .. })).count() as u32
    }

    /// Passes results that only a leaving session may read to all sessions that stay. They may be about
    /// to claim, and the failure of a crossing or the end of a run applies to them too.
    pub(super) fn share_crossings(&mut self, session: SessionId) {
        let others: BTreeSet<SessionId> =
            self.core.sessions.keys().copied().filter(|other| *other != session).collect();
        for gate in self.core.barricades.values_mut() {
            if let Barricade::Crossed { by, .. } = gate
                && by.contains(&session)
                && by.len() == 1
            {
                by.extend(&others);
            }
        }
    }

    /// Removes the crossings of a session, and the results that only it could read.
    pub(super) fn drop_crossings(&mut self, session: SessionId) {
        self.core.barricades.retain(|_, gate| match gate {
            Barricade::Crossing { owner, .. } => *owner != session,
            Barricade::Crossed { by, .. } => {
                by.remove(&session);
                !by.is_empty()
            }
        });
    }
}
