//! Sessions: one life of one process, kept alive by beats, ended by leaving or by silence.

use serde::{Deserialize, Serialize};

use super::command::{JobId, Reply, SessionId};
use super::{Ledger, TableResult, Tables};

/// One life of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Chosen by the process, so that a resent join finds its session.
    pub nonce: u64,
    /// Ledger time at which it expires without a beat.
    pub deadline: u64,
    /// Number of its latest take.
    pub last_take: u64,
    /// What that take was given.
    pub last_grants: Vec<JobId>,
}

impl<T: Tables> Ledger<T> {
    pub(super) fn join(&mut self, nonce: u64, alone: bool) -> TableResult<Reply> {
        let same = self.core.sessions.iter().find(|(_, session)| session.nonce == nonce);
        if let Some((id, _)) = same {
            return Ok(Reply::Joined(*id));
        }
        if alone && !self.core.sessions.is_empty() {
            for id in self.core.sessions.keys().copied().collect::<Vec<_>>() {
                self.expire(id)?;
            }
            // The dead process may have started what it could not make durable any more.
            self.core.gap_from = Some(self.core.clock);
            let policy = self.policy();
            self.lanes.leave_gaps(self.core.clock, &policy);
        }
        if self.core.sessions.is_empty() {
            // Nobody is left who could rely on a crossing of an earlier life.
            self.core.barricades.clear();
        }
        self.core.next_session += 1;
        let id = SessionId(self.core.next_session);
        let session = Session {
            nonce,
            deadline: self.core.clock + self.policy().session_ttl_ms,
            last_take: 0,
            last_grants: Vec::new(),
        };
        self.core.sessions.insert(id, session);
        Ok(Reply::Joined(id))
    }

    pub(super) fn beat(&mut self, renewals: &[SessionId]) -> TableResult<Reply> {
        let deadline = self.core.clock + self.policy().session_ttl_ms;
        for id in renewals {
            if let Some(session) = self.core.sessions.get_mut(id) {
                session.deadline = deadline;
            }
        }
        let clock = self.core.clock;
        let due: Vec<SessionId> = self
            .core
            .sessions
            .iter()
            .filter(|(_, session)| session.deadline <= clock)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.expire(id)?;
        }
        Ok(Reply::Ok)
    }

    pub(super) fn leave(&mut self, session: SessionId) -> TableResult<Reply> {
        if !self.core.sessions.contains_key(&session) {
            return Ok(Reply::Stale);
        }
        self.end(session, false)?;
        Ok(Reply::Ok)
    }

    fn expire(&mut self, session: SessionId) -> TableResult<()> {
        self.end(session, true)
    }

    /// Ends a session; `died` counts against the jobs it held, leaving in order does not.
    fn end(&mut self, session: SessionId, died: bool) -> TableResult<()> {
        let held: Vec<JobId> = self
            .core
            .taken
            .iter()
            .filter(|(_, taken)| taken.session == session)
            .map(|(id, _)| *id)
            .collect();
        for id in held {
            self.put_back(id, died)?;
        }
        self.abandon_crossings(session);
        self.core.sessions.remove(&session);
        Ok(())
    }
}
