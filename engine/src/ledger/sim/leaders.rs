//! Events of clusters only: changes of the leader, one-way network failures, fences, and an end that every
//! seat must report.

use std::collections::BTreeSet;

use super::Bug;
use super::world::{SimMessage, World};
use crate::ledger::{Command, Ledger, MemoryTables, Reply, Seat, Stamp};

/// A deposed leader that does not know it yet. It can commit nothing, so it sends no replies to the
/// workers that still reach it.
pub(super) struct StaleLeader {
    ledger: Ledger<MemoryTables>,
    stamp: Stamp,
    since: u64,
    until: u64,
    followers: BTreeSet<usize>,
}

impl StaleLeader {
    pub(super) fn leads(&self, seat: usize, now: u64) -> bool {
        now < self.until && self.followers.contains(&seat)
    }

    /// Replies from its own ledger if that bug is planted.
    pub(super) fn answer(
        &mut self,
        now: u64,
        command: &Command,
        bug: Bug,
    ) -> Result<Option<Reply>, String> {
        if bug != Bug::StaleLeaderAck {
            return Ok(None);
        }
        let stamp = Stamp { ms: self.stamp.ms + now - self.since, ..self.stamp };
        let reply = self.ledger.apply(stamp, command.clone()).map_err(|error| error.message)?;
        Ok(Some(reply))
    }
}

impl World {
    /// Another node becomes leader. It has some of the entries that the old leader had not committed.
    pub(super) fn elect(&mut self) -> Result<(), String> {
        self.note("leader changed");
        let uncommitted = self.store.uncommitted();
        let survive = self.dice.below(uncommitted as u64 + 1) as usize;
        if survive < uncommitted {
            self.note("tail lost");
        }
        if self.dice.chance(400) {
            self.note("leader stale");
            let seats = 0..self.workers.len();
            let followers = seats.filter(|_| self.dice.chance(500)).collect();
            let until = self.now + self.dice.between(100, 900);
            let (ledger, stamp) = (self.store.fork(), self.store.stamp(self.now));
            self.stale = Some(StaleLeader { ledger, stamp, since: self.now, until, followers });
        }
        self.leaderless_until = self.now + self.dice.below(300);
        self.held.clear();
        self.renewals.clear();
        self.appender.crash(&mut self.dice);
        let rate = self.dice.between(980, 1020);
        self.store.elect(self.now, survive, rate)
    }

    /// Whether a message is lost because the network is cut in its direction.
    pub(super) fn is_cut(&self, message: &SimMessage) -> bool {
        match message {
            SimMessage::Request { from, .. } | SimMessage::Renewal { from, .. } => {
                self.now < self.workers[*from].mute_until
            }
            SimMessage::Reply { to, .. } | SimMessage::Renewed { to, .. } => {
                self.now < self.workers[*to].deaf_until
            }
        }
    }

    /// Cuts the network of one worker: its messages, its replies, or both.
    pub(super) fn cut_off(&mut self, seat: usize) {
        let until = self.now + self.dice.between(200, 1500);
        let ways = self.dice.below(3);
        let worker = &mut self.workers[seat];
        if ways != 1 {
            worker.mute_until = until;
        }
        if ways != 0 {
            worker.deaf_until = until;
        }
        self.note(if ways == 2 { "worker cut off" } else { "worker cut one way" });
    }

    pub(super) fn fence(&mut self, seat: usize) -> Result<(), String> {
        let seat = Seat(seat as u32);
        let fenced = self.store.live.core().seats.get(&seat).is_some_and(|one| one.fenced);
        self.note(if fenced { "seat admitted" } else { "seat fenced" });
        let command = if fenced { Command::Admit { seat } } else { Command::Fence { seat } };
        self.store.apply(self.now, command).map(drop)
    }

    /// The leader finds the connections of a seat closed. Its process may be dead or alive.
    pub(super) fn hint(&mut self, seat: usize) -> Result<(), String> {
        let sessions = self.store.live.core().sessions.iter();
        let own = sessions.filter(|(_, session)| session.seat == Seat(seat as u32));
        let Some(session) = own.map(|(id, _)| *id).next() else { return Ok(()) };
        let lives = self.workers[seat].relies_on(session, self.now);
        self.note(if lives { "hint without reason" } else { "hint with reason" });
        self.store.apply(self.now, Command::Doubt { session })?;
        if lives && !self.store.live.core().sessions.contains_key(&session) {
            return Err(String::from("T6: a hint ended a session while its worker relied on it"));
        }
        Ok(())
    }

    /// After the faults: the operator admits fenced seats, and the disconnected voter returns once the
    /// run is closed without it.
    pub(super) fn let_in(&mut self) -> Result<(), String> {
        let seats = self.store.live.core().seats.iter();
        let fenced = seats.filter(|(_, record)| record.fenced).map(|(seat, _)| *seat);
        for seat in fenced.collect::<Vec<_>>() {
            self.note("seat admitted");
            self.store.apply(self.now, Command::Admit { seat })?;
        }
        if self.run_of_round().is_some_and(|run| run.closed)
            && let Some(seat) = self.away.take()
        {
            self.note("away at the end");
            self.workers[seat].back_at = self.now + 20;
        }
        Ok(())
    }

    /// Checks that every seat has reported the end.
    pub(super) fn check_end(&mut self) -> Result<(), String> {
        let Some(run) = self.run_of_round() else { return Err(String::from("there is no run")) };
        if let Some(seat) = run.plan.seats.iter().find(|seat| run.lacks_end_report(**seat)) {
            return Err(format!("seat {} has not reported the end", seat.0));
        }
        self.note("ended on every seat");
        self.wire.clear();
        self.held.clear();
        self.renewals.clear();
        for worker in &mut self.workers {
            worker.die(self.now + 1);
        }
        Ok(())
    }
}
