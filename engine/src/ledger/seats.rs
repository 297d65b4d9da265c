//! Seats: the places of nodes, who holds them, and how a run ends on all of them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::command::{OpenMode, Reply, RunPlan, Seat, SessionId};
use super::{Barricade, Ledger, Run, TableResult, Tables};

/// What is known of a seat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatRecord {
    /// The life of the process that joined last.
    pub life: u64,
    /// Whether it has renewed a session since: a join may come late, of a process that is dead.
    pub proven: bool,
    /// Those before it, the latest first: one of them may still run somewhere and has to go, or a
    /// word of it may still be on its way.
    pub former_lives: VecDeque<u64>,
    /// How often its disk was new.
    pub incarnation: u32,
    /// What its latest number was asked for with.
    pub mint_nonce: Option<u64>,
    /// Whether it has to stay out.
    pub fenced: bool,
}

/// How long the next run waits for a seat that was away at the end of the last one.
const ABSENT_SEAT_WAIT_MS: u64 = 3000;
/// How long a node that has come may take to say whether it completes the files of the last run.
const COMPLETION_DECISION_MS: u64 = 2000;

/// Name of the barricade that a node crosses while it completes its files of a run that has ended: no
/// other run begins meanwhile.
pub fn completion(seat: Seat) -> String {
    format!("completion {}", seat.0)
}

/// Processes of a seat that are remembered.
const LIVES_MAX: usize = 32;

impl SeatRecord {
    /// Another process has the seat from now on.
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

    /// A seat whose process gives signs of life keeps its vote: whoever asks for another number is
    /// told to wait until that process is gone, or seems to be.
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
                self.forget_seat(seat);
                Reply::Ok
            }
            None => Reply::Stale,
        }
    }

    /// A worker that is gone has left nothing to be known by: else the seats of all that ever came
    /// would be kept.
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

    /// Closes the run once every seat has written everything, or is kept out, or has been away for so
    /// long that the others need not wait for it.
    pub(super) fn close_when_written(&mut self) {
        if !self.over() {
            return;
        }
        let clock = self.core.clock;
        let Some(run) = self.core.run.as_mut().filter(|run| !run.closed) else { return };
        let waited = clock.saturating_sub(*run.over_since.get_or_insert(clock));
        let patient = waited < run.plan.policy.end_wait_ms;
        let sessions = &self.core.sessions;
        let is_there = |seat: Seat| sessions.values().any(|session| session.seat == seat);
        let seats = &self.core.seats;
        let is_fenced = |seat: &Seat| seats.get(seat).is_some_and(|record| record.fenced);
        let is_awaited = |seat: &Seat| is_there(*seat) || patient && !is_fenced(seat);
        let missing = |seat: &Seat| !run.written.contains(seat) && is_awaited(seat);
        if run.written.is_empty() || run.plan.seats.iter().any(missing) {
            return;
        }
        run.closed = true;
        // Who comes from now on sets up the next run.
        self.core.barricades.clear();
    }

    /// Whether the last run has ended, with the same definitions, and its end is still to be told on
    /// the seat of that session: it may have been closed while its node was on the way to it.
    pub(super) fn must_report_last_run(
        &self,
        session: SessionId,
        plan: &RunPlan,
        mode: OpenMode,
    ) -> bool {
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        let same = |run: &&Run| match mode {
            OpenMode::Continue | OpenMode::Complete => run.plan.identity == plan.identity,
            // The end of a retry is owed, that of what is to be tried again is not.
            OpenMode::Retry => run.plan.identity == plan.identity && run.retried,
            OpenMode::Fresh => false,
        };
        let last = self.core.run.as_ref().filter(same);
        last.zip(seat).is_some_and(|(run, seat)| run.lacks_end_report(seat))
    }

    /// Whether what the last run has written is still on its way to a seat: then the next one, which
    /// takes its output away, has to wait. A node that says so is waited for; one that has just come
    /// may be about to, and one that is away may be on its way.
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
        let mut owed = run.plan.seats.iter().filter(|seat| run.lacks_end_report(**seat));
        owed.any(|seat| *seat != own.seat && !run.written.contains(seat) && is_awaited(*seat))
    }

    /// Whether a node on that seat is inside its crossing to complete its files.
    fn completes(&self, seat: Seat) -> bool {
        let gate = self.core.barricades.get(&completion(seat));
        matches!(gate, Some(Barricade::Crossing { .. }))
    }

    /// Whoever leaves when it has written everything has told the end of the run, or will.
    pub(super) fn note_end_reported(&mut self, session: SessionId) {
        let seat = self.core.sessions.get(&session).map(|session| session.seat);
        if let (Some(seat), Some(run)) = (seat, self.core.run.as_mut())
            && run.written.contains(&seat)
        {
            run.end_reported.insert(seat);
        }
    }
}
