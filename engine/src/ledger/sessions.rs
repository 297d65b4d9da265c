//! Sessions: each belongs to one process, lives while it is renewed, and ends when the process leaves or
//! its deadline passes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::{JobId, JoinRequest, Reply, Seat, SessionId};
use super::{Ledger, TableResult, Tables};

/// A session of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Chosen by the process. A resent join with the same nonce finds its session.
    pub nonce: u64,
    /// The node's seat.
    pub seat: Seat,
    /// Whether it has a vote.
    pub votes: bool,
    /// Ledger time at which it began.
    pub joined: u64,
    /// Ledger time at which the session was last heard.
    pub seen: u64,
    /// Ledger time at which it expires unless it is renewed.
    pub deadline: u64,
    /// Ledger time since when its process seems to be dead. A renewal ends the doubt.
    pub doubted: Option<u64>,
    /// Number of its latest `Take`.
    pub last_take: u64,
    /// Jobs that this `Take` granted.
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
            // The process that replaced this one has never renewed a session, so it is the dead one.
        }
        let (newcomer, crowded) = (record.life != life, !self.core.sessions.is_empty());
        if newcomer {
            record.succeed(life);
        }
        // A known process that joins again has lost its session, but it is alive.
        for session in self.sessions_of(seat) {
            self.end(session, newcomer)?;
        }
        if alone && newcomer && crowded {
            for id in self.core.sessions.keys().copied().collect::<Vec<_>>() {
                self.end(id, true)?;
            }
            // The dead process may have started jobs without making that durable.
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

    /// Whether the run is closed and no node with a vote has a session. A worker that joined now would
    /// keep those nodes from leaving.
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

    /// Queues the jobs of sessions in doubt again after `doubt_ms`. Two nodes may then work on the same
    /// job, and its token decides whose result counts. Jobs of exclusive lanes and isolated jobs wait
    /// until the session has ended.
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

    /// Queues jobs again whose node has held them longer than `task_timeout_ms`, because their tasks may
    /// hang. The node keeps its remaining jobs. Only the oldest job that a session holds of a lane is
    /// timed, because the later ones may be waiting for it.
    fn return_overdue_jobs(&mut self) -> TableResult<()> {
        let (timeout, clock) = (self.policy().task_timeout_ms, self.core.clock);
        let mut oldest = BTreeMap::new();
        for taken in self.core.taken.values() {
            let grant = oldest.entry((taken.session, taken.lane)).or_insert(taken.grant);
            *grant = taken.grant.min(*grant);
        }
        let mut overdue = Vec::new();
        for (id, taken) in &mut self.core.taken {
            if oldest.get(&(taken.session, taken.lane)) != Some(&taken.grant) {
                taken.since = clock;
            } else if taken.since.saturating_add(timeout) <= clock {
                overdue.push(*id);
            }
        }
        overdue.into_iter().try_for_each(|id| self.put_back(id, true, clock))
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

    /// Ends a session. `died` counts the end against the jobs it held.
    pub(super) fn end(&mut self, session: SessionId, died: bool) -> TableResult<()> {
        self.end_working_until(session, died, self.core.clock)
    }

    /// Ends a session whose process may start the jobs it held until the time `until`.
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
