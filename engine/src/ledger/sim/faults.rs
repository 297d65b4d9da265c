//! What goes wrong: kills, pauses, cuts, restarts.

use super::world::{SimMessage, World};
use crate::ledger::Command;

impl World {
    pub(super) fn harm(&mut self) -> Result<(), String> {
        let seat = self.dice.below(self.workers.len() as u64) as usize;
        let dice = self.dice.below(1000);
        match dice {
            0..=14 | 45..=64 if self.may_harm(seat) && (self.solo || dice < 15) => {
                self.note("worker killed");
                self.kill(seat)
            }
            15..=18 if !self.solo => {
                self.note("ledger restarted");
                self.restart_ledger()
            }
            19..=27 if !self.solo => self.elect(),
            28..=31 | 80..=87 if !self.solo && self.may_harm(seat) => {
                self.cut_off(seat);
                Ok(())
            }
            32..=34 if !self.solo && self.may_harm(seat) => self.fence(seat),
            88..=147 if !self.solo => self.hint(seat),
            45..=79 if !self.solo && self.may_harm(seat) => {
                self.note("worker paused");
                self.workers[seat].back_at = self.now + self.dice.between(100, 1200);
                Ok(())
            }
            35..=38 if !self.solo && self.nobody_is_alone() => {
                self.note("network cut");
                self.cut_until = self.now + self.dice.between(500, 2500);
                Ok(())
            }
            40..=44 if !self.store.live.standing().over => {
                if let Some(session) = self.workers[seat].session {
                    self.note("worker left");
                    self.workers[seat].die(self.now + 10);
                    self.post(SimMessage::Request {
                        from: seat,
                        life: u64::MAX,
                        id: 0,
                        command: Command::Leave { session },
                    });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Between everybody and the ledger: a job that works alone may lose its session by it.
    fn nobody_is_alone(&self) -> bool {
        self.store.live.core().taken.values().all(|taken| !taken.begun)
    }

    /// An innocent job that worked alone is not to be failed by our own kills: deaths there are
    /// its own by rule T7.
    pub(super) fn may_harm(&self, seat: usize) -> bool {
        // A process that has told the end does not come back to begin another run.
        if self.workers[seat].is_leaving() {
            return false;
        }
        let core = self.store.live.core();
        let tables = self.store.live.tables();
        !core.taken.iter().any(|(id, taken)| {
            taken.begun
                && (self.solo || self.workers[seat].session == Some(taken.session))
                && tables.jobs.get(id).is_some_and(|job| {
                    let page = usize::from(job.new.key.0[0]);
                    !self.site.is_deadly(page)
                })
        })
    }

    pub(super) fn kill(&mut self, seat: usize) -> Result<(), String> {
        let back = self.now + self.dice.between(5, 2000);
        self.workers[seat].die(back);
        if self.solo {
            self.note("process killed");
            self.restart_ledger()?;
        }
        Ok(())
    }

    /// What was not committed is gone, with every answer that waited for it.
    pub(super) fn restart_ledger(&mut self) -> Result<(), String> {
        if self.solo {
            let innocent = !self.may_harm(0);
            if innocent && self.workers[0].session.is_some() {
                return Ok(());
            }
            self.workers[0].die(self.now + 20);
            self.wire.clear();
        }
        self.held.clear();
        self.renewals.clear();
        self.appender.crash(&mut self.dice);
        self.store.restart(self.now)
    }
}
