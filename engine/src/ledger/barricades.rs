//! Barricades: one node crosses and does the work, the others wait for its result.

use serde::{Deserialize, Serialize};

use super::command::{Epoch, Reply, SessionId};
use super::{Ledger, Tables};

/// One barricade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Barricade {
    /// A node is crossing.
    Crossing {
        /// Which.
        owner: SessionId,
        /// Its crossing.
        epoch: Epoch,
    },
    /// A node has crossed; a failed crossing is *not* an open gate.
    Crossed(Result<(), String>),
}

impl<T: Tables> Ledger<T> {
    pub(super) fn claim(&mut self, session: SessionId, name: &str) -> Reply {
        if !self.core.sessions.contains_key(&session) {
            return Reply::Stale;
        }
        match self.core.barricades.get(name) {
            Some(Barricade::Crossed(result)) => Reply::Crossed(result.clone()),
            Some(Barricade::Crossing { owner, epoch }) if *owner == session => Reply::Cross(*epoch),
            Some(Barricade::Crossing { .. }) => Reply::Wait,
            None => {
                self.core.next_epoch += 1;
                let epoch = Epoch(self.core.next_epoch);
                let crossing = Barricade::Crossing { owner: session, epoch };
                self.core.barricades.insert(name.to_owned(), crossing);
                Reply::Cross(epoch)
            }
        }
    }

    pub(super) fn release(
        &mut self,
        session: SessionId,
        name: &str,
        epoch: Epoch,
        result: Result<(), String>,
    ) -> Reply {
        match self.core.barricades.get_mut(name) {
            Some(gate) if *gate == (Barricade::Crossing { owner: session, epoch }) => {
                *gate = Barricade::Crossed(result);
                Reply::Ok
            }
            _ => Reply::Stale,
        }
    }

    /// Whether `session` is inside the crossing `epoch` of any barricade.
    pub(super) fn is_crossing(&self, session: SessionId, epoch: Epoch) -> bool {
        let crossing = Barricade::Crossing { owner: session, epoch };
        self.core.barricades.values().any(|gate| *gate == crossing)
    }

    /// Frees what a lost session was crossing, for the next node.
    pub(super) fn abandon_crossings(&mut self, session: SessionId) {
        self.core.barricades.retain(
            |_, gate| !matches!(gate, Barricade::Crossing { owner, .. } if *owner == session),
        );
    }
}
