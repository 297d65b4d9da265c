//! Seats: which process holds each one, and how a run ends on all of them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::command::{OpenMode, Reply, RunPlan, Seat, SessionId};
use super::{Barricade, Ledger, Run, TableResult, Tables};

/// The record of a seat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatRecord {
    /// Identifies the process that joined last.
    pub life: u64,
    /// Whether that process has renewed its session. A late join may come from a dead process.
    pub proven: bool,
    /// Earlier processes, the latest first. One of them may still run and must stop, or a message of it
    /// may still arrive.
    pub former_lives: VecDeque<u64>,
    /// Number of new disks that the seat has had.
    pub incarnation: u32,
    /// Nonce of the latest `Mint`.
    pub mint_nonce: Option<u64>,
    /// Whether the seat must stay out.
    pub fenced: bool,
}

/// How long the next run waits for a seat that was disconnected at the end of the last one.
const ABSENT_SEAT_WAIT_MS: u64 = 3000;
/// How long a node that has joined may take to claim the completion of its files of the last run.
const COMPLETION_DECISION_MS: u64 = 2000;

/// Name of the barricade that a node crosses while it completes its files of an ended run. No other run
/// begins meanwhile.
pub fn completion(seat: Seat) -> String {
    format!("completion {}", seat.0)
}

/// Most earlier processes of a seat that are remembered.
const LIVES_MAX: usize = 32;

impl SeatRecord {
    /// Records that another process holds the seat.
    pub(super) fn succeed(&mut self, life: u64) {
        let former = std::mem::replace(&mut self.life, life);
        self.proven = false;
        self.former_lives.retain(|one| *one != life);
        self.former_lives.push_front(former);
        self.former_lives.truncate(LIVES_MAX);
    }
}

impl<T: Tables> Ledger<T> {
    pub(super) fn found(&mut self, cluster: u128) -> Reply {
        self.core.cluster.get_or_insert(cluster);
        Reply::Ok
    }

    /// Gives a new disk on the seat a number. While a process on the seat is connected, the reply is to
    /// wait, so that the seat never has two votes.
    pub(super) fn mint(&mut self, seat: Seat, nonce: u64) -> Reply {
        let mut own = self.core.sessions.values().filter(|session| session.seat == seat);
        let lives = own.any(|session| session.doubted.is_none());
        let record = self.core.seats.entry(seat).or_default();
        if record.mint_nonce != Some(nonce) {
            if lives {
                return Reply::Wait;
            }
            record.incarnation += 1;
            record.mint_nonce = Some(nonce);
        }
        Reply::Minted(record.incarnation)
    }

    pub(super) fn fence(&mut self, seat: Seat) -> TableResult<Reply> {
        self.core.seats.entry(seat).or_default().fenced = true;
        for session in self.sessions_of(seat) {
            // The process does not know yet, and works until its own deadline.
            let deadline = self.core.sessions.get(&session).map_or(0, |session| session.deadline);
            self.end_working_until(session, true, deadline.max(self.core.clock))?;
        }
        Ok(Reply::Ok)
    }

    pub(super) fn admit(&mut self, seat: Seat) -> Reply {
        match self.core.seats.get_mut(&seat) {
            Some(record) => {
                record.fenced = false;
                self.forget_seat(seat);
                Reply::Ok
            }
            None => Reply::Stale,
        }
    }

    /// Removes the record of a worker without a session. Otherwise the records of all workers would
    /// accumulate.
    pub(super) fn forget_seat(&mut self, seat: Seat) {
        let fenced = self.core.seats.get(&seat).is_some_and(|record| record.fenced);
        if seat.is_drawn() && !fenced && self.sessions_of(seat).is_empty() {
            self.core.seats.remove(&seat);
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

    /// Records that a node has written all output.
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

    /// Closes the run once every seat has written all output, is fenced, or has been disconnected for
    /// longer than `end_wait_ms`.
    pub(super) fn close_when_written(&mut self) {
        if !self.over() {
            return;
        }
        let clock = self.core.clock;
        let Some(run) = self.core.run.as_mut().filter(|run| !run.closed) else { return };
        let waited = clock.saturating_sub(*run.over_since.get_or_insert(clock));
        let is_waiting = waited < run.plan.policy.end_wait_ms;
        let sessions = &self.core.sessions;
        let is_there = |seat: Seat| sessions.values().any(|session| session.seat == seat);
        let seats = &self.core.seats;
        let is_fenced = |seat: &Seat| seats.get(seat).is_some_and(|record| record.fenced);
        let is_awaited = |seat: &Seat| is_there(*seat) || is_waiting && !is_fenced(seat);
        let missing = |seat: &Seat| !run.written.contains(seat) && is_awaited(seat);
        if run.written.is_empty() || run.plan.seats.iter().any(missing) {
            return;
        }
        run.closed = true;
        // A process that joins now sets up the next run.
        self.core.barricades.clear();
    }

    /// Whether the process of a session must report the end of the last run, with the same definitions,
    /// before another run begins. The run may have been closed while its node was joining.
    pub(super) fn must_report_last_run(
        &self,
        session: SessionId,
        plan: &RunPlan,
        mode: OpenMode,
    ) -> bool {
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        let same = |run: &&Run| match mode {
            OpenMode::Continue | OpenMode::Complete => run.plan.identity == plan.identity,
            // A retry must report the end of a retry, not of the run whose failed jobs it retries.
            OpenMode::Retry => run.plan.identity == plan.identity && run.retried,
            OpenMode::Fresh => false,
        };
        let last = self.core.run.as_ref().filter(same);
        last.zip(seat).is_some_and(|(run, seat)| run.lacks_end_report(seat))
    }

    /// Whether the next run must wait, because it would discard output of the last run that another seat
    /// has not written. The seat counts while its node completes its files, for
    /// [`COMPLETION_DECISION_MS`] after the node has joined, and for [`ABSENT_SEAT_WAIT_MS`] if it is
    /// disconnected.
    pub(super) fn must_wait_for_last_run(&self, session: SessionId) -> bool {
        let last = self.core.run.as_ref().filter(|run| run.closed);
        let (Some(run), Some(own)) = (last, self.core.sessions.get(&session)) else {
            return false;
        };
        let within = |since: u64, most: u64| self.core.clock.saturating_sub(since) < most;
        let is_awaited = |seat: Seat| {
            let is_fenced = self.core.seats.get(&seat).is_some_and(|record| record.fenced);
            let theirs: Vec<SessionId> = self.sessions_of(seat);
            match theirs.last().and_then(|id| self.core.sessions.get(id)) {
                None => !is_fenced && within(own.joined, ABSENT_SEAT_WAIT_MS),
                Some(there) => within(there.joined, COMPLETION_DECISION_MS) || self.completes(seat),
            }
        };
        let mut unreported = run.plan.seats.iter().filter(|seat| run.lacks_end_report(**seat));
        unreported.any(|seat| *seat != own.seat && !run.written.contains(seat) && is_awaited(*seat))
    }

    /// Whether the node on that seat is completing its files.
    fn completes(&self, seat: Seat) -> bool {
        let gate = self.core.barricades.get(&completion(seat));
        matches!(gate, Some(Barricade::Crossing { .. }))
    }

    /// Records that a leaving node reports the end of the run, if it has written all output.
    pub(super) fn note_end_reported(&mut self, session: SessionId) {
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        if let (Some(seat), Some(run)) = (seat, self.core.run.as_mut())
            && run.written.contains(&seat)
        {
            run.end_reported.insert(seat);
        }
    }
}
