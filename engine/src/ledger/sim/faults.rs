//! The faults: kills, pauses, network cuts and restarts.

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
            35..=38 if !self.solo && self.no_isolated_job_has_begun() => {
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

    /// Whether no isolated job has begun. A network cut could end its session and count as its death.
    fn no_isolated_job_has_begun(&self) -> bool {
        self.store.live.core().taken.values().all(|taken| !taken.begun)
    }

    /// Whether a fault on this seat is allowed. A fault must not count as a death of a harmless isolated
    /// job, which rule T7 would count against that job.
    pub(super) fn may_harm(&self, seat: usize) -> bool {
        // A process that has reported the end does not return to begin another run.
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

    /// Restarts the ledger. Uncommitted entries are lost, with every reply that waited for them.
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
