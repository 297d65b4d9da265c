//! How jobs come back: held lanes, returned grants, dead workers, and the retry of failed jobs.

use super::command::{JobId, NewJob, Reply, RunPlan, SessionId, Token};
use super::jobs::{NEVER, Taken};
use super::lanes::ISOLATION;
use super::tables::Job;
use super::{Ledger, TableResult, Tables};

impl<T: Tables> Ledger<T> {
    /// No start on the lane of `job` for so long.
    pub(super) fn hold_lane(&mut self, job: &NewJob, hold_ms: u64) {
        let (policy, until) = (self.policy(), self.core.clock.saturating_add(hold_ms));
        // Not the lane it stands in: a job in isolation still goes to its own host.
        let lane = self.lanes.lane_of(job);
        self.lanes.change(lane, &policy, |lane| lane.next_at = lane.next_at.max(until));
    }

    pub(super) fn give_back(
        &mut self,
        session: SessionId,
        jobs: &[(JobId, Token)],
    ) -> TableResult<Reply> {
        for (id, token) in jobs {
            let held = self.core.taken.get(id);
            if held.is_some_and(|taken| taken.session == session && taken.token == *token) {
                self.put_back(*id, false)?;
            }
        }
        Ok(Reply::Ok)
    }

    /// Queues a taken job again.
    pub(super) fn put_back(&mut self, id: JobId, died: bool) -> TableResult<()> {
        let Some(taken) = self.core.taken.get(&id).copied() else {
            return Ok(());
        };
        self.let_go(id, taken);
        let mut job = self.known_job(id)?;
        job.last_token = taken.token;
        job.ready_at = 0;
        if died {
            self.leave_gap(taken);
            if self.mourn(&mut job, taken) {
                let reason = format!(
                    "its worker died {} times while it worked on nothing else",
                    job.lone_deaths
                );
                return self.fail(id, job, vec![reason]);
            }
        }
        self.queue(id, &job)
    }

    /// Counts a death against a job that was in hand; tells whether it was one too many. In a
    /// full house nobody knows who killed the worker, so those deaths only lead to isolation, and
    /// only deaths there, alone, are the job's own.
    fn mourn(&mut self, job: &mut Job, taken: Taken) -> bool {
        let policy = self.policy();
        // Behind all others: what killed a worker is not the first thing the next one takes.
        job.ready_at = self.core.clock;
        if taken.alone {
            job.lone_deaths += 1;
            return job.lone_deaths >= policy.poison_max;
        }
        job.deaths += 1;
        if job.deaths >= policy.deaths_before_isolation {
            job.lane = ISOLATION;
        }
        false
    }

    /// The dead worker may have started as late as now: its lane pauses from now on.
    fn leave_gap(&mut self, taken: Taken) {
        let policy = self.policy();
        let until = self.core.clock + policy.delay_ms + policy.delay_ms / 20;
        self.lanes.change(taken.lane, &policy, |lane| {
            if lane.polite {
                lane.next_at = lane.next_at.max(until);
            }
        });
    }

    /// Puts every failed job of the last, closed run back; nothing else runs again.
    pub(super) fn retry_failed(&mut self, plan: &RunPlan) -> TableResult<Reply> {
        let Some(run) = &mut self.core.run else {
            return Ok(Reply::NothingToRetry);
        };
        if run.failed == 0 {
            return Ok(Reply::NothingToRetry);
        }
        if run.plan.identity != plan.identity {
            return Ok(Reply::Unfinished { defs: run.plan.defs, config: run.plan.config });
        }
        run.failed = 0;
        run.closed = false;
        let mut after = None;
        loop {
            let batch = self.tables.failed(after, 500)?;
            let Some((last, _)) = batch.last() else { break };
            after = Some(*last);
            for (id, failed) in batch {
                let mut job = failed.job;
                (job.attempts, job.deaths, job.lone_deaths, job.ready_at) = (0, 0, 0, 0);
                job.last_token = NEVER;
                job.lane = self.lanes.lane_of(&job.new);
                self.tables.drop_failed(id)?;
                self.queue(id, &job)?;
            }
        }
        self.adopt_policy(plan.policy);
        Ok(Reply::Opened { continued: true })
    }
}
