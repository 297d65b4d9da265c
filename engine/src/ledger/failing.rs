//! What a failed job means for the others: nothing, the end of its host, or the end of the run.

use super::command::{JobId, OnError, Tally};
use super::tables::{FailedJob, ISOLATION, Job};
use super::{Ledger, TableResult, Tables};

/// Jobs of closed lanes that one take fails.
const SWEEP_MAX: usize = 100;
/// Why a job of a closed lane is not loaded.
const IN_QUARANTINE: &str = "of hosts in quarantine";

impl<T: Tables> Ledger<T> {
    /// Ends a job without (all of) its rows, and does what the policy says about it.
    pub(super) fn fail(&mut self, id: JobId, job: Job, reasons: Vec<String>) -> TableResult<()> {
        let on_error = self.policy().on_error;
        if on_error != OnError::Fail {
            let shown = if job.new.name.is_empty() { &job.new.url } else { &job.new.name };
            let words = format!("`{shown}` ({}) failed: {}", job.new.group, reasons.join("; "));
            match on_error {
                OnError::Halt => self.halt(words),
                _ => self.quarantine(&job, &words),
            }
        }
        self.record_failure(id, job, reasons)
    }

    /// No more jobs are granted; the first failure is what is told.
    fn halt(&mut self, words: String) {
        if let Some(run) = &mut self.core.run {
            run.halted.get_or_insert(words);
            run.cancelled = true;
        }
    }

    /// The host of a job gets no more of them; those that wait are failed bit by bit.
    fn quarantine(&mut self, job: &Job, words: &str) {
        let (policy, lane) = (self.policy(), self.lanes.lane_of(&job.new));
        let host = &job.new.lane;
        self.lanes.change(lane, &policy, |lane| {
            lane.closed.get_or_insert_with(|| format!("`{host}` is in quarantine since {words}"));
        });
    }

    /// Fails some of the jobs that wait in closed lanes: they may be millions.
    pub(super) fn sweep(&mut self) -> TableResult<()> {
        for _ in 0..SWEEP_MAX {
            let Some((lane, why)) = self.lanes.first_closed() else { break };
            let Some((place, id)) = self.tables.first_in_lane(lane)? else {
                return Err(self.tables.damaged(&format!("lane {} has lost its queue", lane.0)));
            };
            let job = self.known_job(id)?;
            self.unqueue(id, lane, place)?;
            self.skip(id, job, why)?;
        }
        if let Some((id, job, lane, place)) = self.first_isolated()?
            && let Some(why) = self.lanes.why_closed(lane)
        {
            self.unqueue(id, ISOLATION, place)?;
            self.skip(id, job, why)?;
        }
        Ok(())
    }

    fn skip(&mut self, id: JobId, job: Job, why: String) -> TableResult<()> {
        let skipped = [(IN_QUARANTINE.to_owned(), 1)].into();
        self.count(&Tally { skipped, ..Tally::default() });
        self.record_failure(id, job, vec![why])
    }

    fn record_failure(&mut self, id: JobId, job: Job, reasons: Vec<String>) -> TableResult<()> {
        if let Some(run) = &mut self.core.run {
            run.failed += 1;
        }
        self.leave_level(&job);
        self.tables.drop_job(id)?;
        self.tables.put_failed(id, &FailedJob { job, reasons })
    }
}
