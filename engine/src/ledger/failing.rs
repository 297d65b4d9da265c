//! The consequence of a failed job: none, quarantine for its host, or the end of the run.

use super::command::{JobId, OnError};
use super::tables::{FailedJob, ISOLATION, Job};
use super::{Ledger, TableResult, Tables};

/// Most jobs of quarantined lanes that one `Take` fails. There may be millions of them.
const SWEEP_MAX: usize = 100;
/// Reason in the report for a job of a quarantined lane.
const IN_QUARANTINE: &str = "of hosts in quarantine";

impl<T: Tables> Ledger<T> {
    /// Ends a job without some or all of its rows and applies the policy for failed jobs.
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

    /// Ends the run: no more jobs are granted. The report names the first failure.
    fn halt(&mut self, words: String) {
        if let Some(run) = &mut self.core.run {
            run.halted.get_or_insert(words);
            run.cancelled = true;
        }
    }

    /// Closes the lane of the job's host. [`Ledger::sweep`] fails its queued jobs in portions.
    fn quarantine(&mut self, job: &Job, words: &str) {
        let (policy, lane) = (self.policy(), self.lanes.lane_of(&job.new));
        let host = &job.new.lane;
        self.lanes.change(lane, &policy, |lane| {
            lane.closed.get_or_insert_with(|| format!("`{host}` is in quarantine since {words}"));
        });
    }

    /// Fails some of the jobs that are queued in quarantined lanes.
    pub(super) fn sweep(&mut self) -> TableResult<()> {
        for _ in 0..SWEEP_MAX {
            let Some((lane, why)) = self.lanes.first_closed() else { break };
            let (place, id) = self.first_queued(lane)?;
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
        self.count_skipped(IN_QUARANTINE, 1);
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
