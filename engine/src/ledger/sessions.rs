//! Sessions: one life of one process, kept alive by beats, ended by leaving or by silence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::{JobId, JoinRequest, Reply, Seat, SessionId};
use super::{Ledger, TableResult, Tables};

/// One life of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Chosen by the process, so that a resent join finds its session.
    pub nonce: u64,
    /// The node's place.
    pub seat: Seat,
    /// Whether it has a vote.
    pub votes: bool,
    /// Ledger time at which it began.
    pub joined: u64,
    /// Ledger time of its latest sign of life.
    pub seen: u64,
    /// Ledger time at which it expires without a beat.
    pub deadline: u64,
    /// Since when its process seems to be gone; a beat of its own proves the contrary.
    pub doubted: Option<u64>,
    /// Number of its latest take.
    pub last_take: u64,
    /// What that take was given.
    pub last_grants: Vec<JobId>,
}

impl<T: Tables> Ledger<T> {
    pub(super) fn join(&mut self, arrival: JoinRequest) -> TableResult<Reply> {
        let JoinRequest { nonce, life, seat, votes, alone } = arrival;
        let same = self.core.sessions.iter().find(|(_, session)| session.nonce == nonce);
        if let Some((id, _)) = same {
            return Ok(Reply::Joined(*id));
        }
        if !votes && self.is_closed_without_voters() {
            return Ok(Reply::Wait);
        }
        let record = self.core.seats.entry(seat).or_default();
        if record.fenced {
            return Ok(Reply::Fenced);
        }
        if record.former_lives.contains(&life) {
            if record.proven {
                return Ok(Reply::Replaced);
            }
            if self.core.sessions.values().any(|session| session.seat == seat) {
                return Ok(Reply::Wait);
            }
            // Who took its place has never been seen: it is the one that is gone.
        }
        let (newcomer, crowded) = (record.life != life, !self.core.sessions.is_empty());
        if newcomer {
            record.succeed(life);
        }
        // A process that starts over has lost its session, not its life.
        for session in self.sessions_of(seat) {
            self.end(session, newcomer)?;
        }
        if alone && newcomer && crowded {
            for id in self.core.sessions.keys().copied().collect::<Vec<_>>() {
                self.end(id, true)?;
            }
            // The dead process may have started what it could not make durable any more.
            self.core.gap_from = Some(self.core.clock);
            let policy = self.policy();
            self.lanes.pause_all_from(self.core.clock, &policy);
        }
        self.core.next_session += 1;
        let id = SessionId(self.core.next_session);
        let clock = self.core.clock;
        let session = Session {
            nonce,
            seat,
            votes,
            joined: clock,
            seen: clock,
            deadline: clock + self.policy().session_ttl_ms,
            doubted: None,
            last_take: 0,
            last_grants: Vec::new(),
        };
        self.core.sessions.insert(id, session);
        Ok(Reply::Joined(id))
    }

    /// Whether the run has ended and those with a vote have left it, or are not back yet for the next
    /// one: who came to work would only keep them.
    fn is_closed_without_voters(&self) -> bool {
        self.core.run.as_ref().is_some_and(|run| run.closed)
            && !self.core.sessions.values().any(|session| session.votes)
    }

    pub(super) fn beat(&mut self, renewals: &[SessionId]) -> TableResult<Reply> {
        let clock = self.core.clock;
        let policy = self.policy();
        for id in renewals {
            if let Some(session) = self.core.sessions.get_mut(id) {
                session.deadline = clock + policy.session_ttl_ms;
                session.seen = clock;
                session.doubted = None;
                self.core.seats.entry(session.seat).or_default().proven = true;
            }
        }
        let due: Vec<(SessionId, Seat)> = self
            .core
            .sessions
            .iter()
            .filter(|(_, session)| session.deadline <= clock)
            .map(|(id, session)| (*id, session.seat))
            .collect();
        for (id, seat) in due {
            self.end(id, true)?;
            if policy.auto_fence {
                self.core.seats.entry(seat).or_default().fenced = true;
            }
            self.forget_seat(seat);
        }
        self.return_doubted_jobs()?;
        self.return_overdue_jobs()?;
        self.close_when_written();
        Ok(Reply::Ok)
    }

    pub(super) fn doubt(&mut self, session: SessionId) -> Reply {
        match self.core.sessions.get_mut(&session) {
            Some(session) => {
                session.doubted.get_or_insert(self.core.clock);
                Reply::Ok
            }
            None => Reply::Stale,
        }
    }

    /// Jobs of sessions that have been in doubt for a while go to others, where two may work on one
    /// by mistake: tokens see to it that one result counts. A lane with a pause, and a job that has
    /// to be alone, wait for proof.
    fn return_doubted_jobs(&mut self) -> TableResult<()> {
        let (policy, clock) = (self.policy(), self.core.clock);
        let sessions = &self.core.sessions;
        let in_doubt = |id| {
            let since = sessions.get(id).and_then(|session: &Session| session.doubted);
            since.is_some_and(|since| since + policy.doubt_ms <= clock)
        };
        if !sessions.keys().any(in_doubt) {
            return Ok(());
        }
        let held = self.core.taken.iter().filter(|(_, taken)| {
            in_doubt(&taken.session) && !taken.alone && self.lanes.is_shared(taken.lane, &policy)
        });
        for id in held.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.put_back(id, true, clock)?;
        }
        Ok(())
    }

    /// A job that its node has had for too long goes to another, for what works on it may be stuck.
    /// The node goes on with all others. Only the oldest that a session has of a lane is timed: the
    /// others may be waiting for it, and have their time when it is gone.
    fn return_overdue_jobs(&mut self) -> TableResult<()> {
        let (patience, clock) = (self.policy().task_timeout_ms, self.core.clock);
        let mut oldest = BTreeMap::new();
        for taken in self.core.taken.values() {
            let grant = oldest.entry((taken.session, taken.lane)).or_insert(taken.grant);
            *grant = taken.grant.min(*grant);
        }
        let mut late = Vec::new();
        for (id, taken) in &mut self.core.taken {
            if oldest.get(&(taken.session, taken.lane)) != Some(&taken.grant) {
                taken.since = clock;
            } else if taken.since.saturating_add(patience) <= clock {
                late.push(*id);
            }
        }
        late.into_iter().try_for_each(|id| self.put_back(id, true, clock))
    }

    pub(super) fn leave(&mut self, session: SessionId) -> TableResult<Reply> {
        if !self.core.sessions.contains_key(&session) {
            return Ok(Reply::Stale);
        }
        self.note_end_reported(session);
        self.share_crossings(session);
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        self.end(session, false)?;
        if let Some(seat) = seat {
            self.forget_seat(seat);
        }
        Ok(Reply::Ok)
    }

    /// Ends a session; `died` counts against the jobs it held, leaving in order does not.
    pub(super) fn end(&mut self, session: SessionId, died: bool) -> TableResult<()> {
        self.end_working_until(session, died, self.core.clock)
    }

    /// Ends a session whose process may work on what it held until that time.
    pub(super) fn end_working_until(
        &mut self,
        session: SessionId,
        died: bool,
        until: u64,
    ) -> TableResult<()> {
        let held: Vec<JobId> = self
            .core
            .taken
            .iter()
            .filter(|(_, taken)| taken.session == session)
            .map(|(id, _)| *id)
            .collect();
        for id in held {
            self.put_back(id, died, until)?;
        }
        self.core.sessions.remove(&session);
        self.drop_crossings(session);
        Ok(())
    }
}
