//! Seats: the places of nodes, who holds them, and how a run ends on all of them.

use serde::{Deserialize, Serialize};

use super::command::{Reply, Seat, SessionId};
use super::{Ledger, TableResult, Tables};

/// What is known of a seat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatRecord {
    /// The life of the process that joined last.
    pub life: u64,
    /// The one before it: it may still run somewhere, and has to go.
    pub former_life: Option<u64>,
    /// How often its disk was new.
    pub incarnation: u32,
    /// What its latest number was asked for with.
    pub mint_nonce: Option<u64>,
    /// Whether it has to stay out.
    pub fenced: bool,
}

impl<T: Tables> Ledger<T> {
    pub(super) fn found(&mut self, cluster: u128) -> Reply {
        self.core.cluster.get_or_insert(cluster);
        Reply::Ok
    }

    pub(super) fn mint(&mut self, seat: Seat, nonce: u64) -> Reply {
        let record = self.core.seats.entry(seat).or_default();
        if record.mint_nonce != Some(nonce) {
            record.incarnation += 1;
            record.mint_nonce = Some(nonce);
        }
        Reply::Minted(record.incarnation)
    }

    pub(super) fn fence(&mut self, seat: Seat) -> TableResult<Reply> {
        self.core.seats.entry(seat).or_default().fenced = true;
        for session in self.sessions_of(seat) {
            // It does not know, and works until its own clock stops it.
            let deadline = self.core.sessions.get(&session).map_or(0, |session| session.deadline);
            self.end_working_until(session, true, deadline.max(self.core.clock))?;
        }
        Ok(Reply::Ok)
    }

    pub(super) fn admit(&mut self, seat: Seat) -> Reply {
        match self.core.seats.get_mut(&seat) {
            Some(record) => {
                record.fenced = false;
                Reply::Ok
            }
            None => Reply::Stale,
        }
    }

    pub(super) fn sessions_of(&self, seat: Seat) -> Vec<SessionId> {
        let own = self.core.sessions.iter().filter(|(_, session)| session.seat == seat);
        own.map(|(id, _)| *id).collect()
    }

    pub(super) fn cancel(&mut self) -> Reply {
        match &mut self.core.run {
            Some(run) if !run.closed => {
                run.cancelled = true;
                Reply::Ok
            }
            _ => Reply::Stale,
        }
    }

    /// A node has written everything.
    pub(super) fn close(&mut self, session: SessionId) -> Reply {
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        let (Some(seat), true) = (seat, self.over()) else {
            return Reply::Stale;
        };
        let Some(run) = &mut self.core.run else { return Reply::Stale };
        if run.plan.seats.contains(&seat) {
            run.written.insert(seat);
        }
        self.close_when_written();
        Reply::Ok
    }

    /// Closes the run once every seat has written everything, or has been away for so long that the
    /// others need not wait for it.
    pub(super) fn close_when_written(&mut self) {
        if !self.over() {
            return;
        }
        let clock = self.core.clock;
        let Some(run) = self.core.run.as_mut().filter(|run| !run.closed) else { return };
        let waited = clock.saturating_sub(*run.over_at.get_or_insert(clock));
        let patient = waited < run.plan.policy.end_wait_ms;
        let sessions = &self.core.sessions;
        let is_there = |seat: Seat| sessions.values().any(|session| session.seat == seat);
        let missing = |seat: &Seat| !run.written.contains(seat) && (patient || is_there(*seat));
        if run.written.is_empty() || run.plan.seats.iter().any(missing) {
            return;
        }
        run.closed = true;
        // Who comes from now on sets up the next run.
        self.core.barricades.clear();
    }

    /// Whoever leaves a closed run has told its end.
    pub(super) fn note_told(&mut self, session: SessionId) {
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        if let (Some(seat), Some(run)) = (seat, &mut self.core.run)
            && run.closed
        {
            run.told.insert(seat);
        }
    }
}
