//! How jobs return to their queues: paused lanes, returned grants, dead workers, redirects, and the retry
//! of failed jobs.

use super::command::{Epoch, JobId, NewJob, Publication, Reply, RunPlan, SessionId, Token};
use super::jobs::{NO_TOKEN, OpenGrant};
use super::levels::READY_MAX;
use super::tables::{ISOLATION, Job, JobRedirect, LaneId};
use super::{Ledger, TableResult, Tables};

impl Job {
    /// Redirects the job to another host. Rows and scripts still get the job's own address.
    pub(super) fn redirect_to(&mut self, at: String, lane: String, polite: bool, redirects: u32) {
        let came_from = std::mem::replace(&mut self.new.lane, lane);
        let was_polite = std::mem::replace(&mut self.new.polite, polite);
        let (home, home_polite) = match self.redirect.take() {
            Some(before) => (before.home, before.home_polite),
            None => (came_from, was_polite),
        };
        self.redirect = Some(JobRedirect { at, redirects, home, home_polite });
    }

    /// Drops earlier redirects, so that a retry follows them again.
    fn reset_redirect(&mut self) {
        if let Some(redirect) = self.redirect.take() {
            (self.new.lane, self.new.polite) = (redirect.home, redirect.home_polite);
        }
    }
}

impl<T: Tables> Ledger<T> {
    /// Allows no start on the lane of `job` for `hold_ms`.
    pub(super) fn hold_lane(&mut self, job: &NewJob, hold_ms: u64) {
        let (policy, until) = (self.policy(), self.core.clock.saturating_add(hold_ms));
        // The lane of the host, even if the job is queued in isolation.
        let lane = self.lanes.lane_of(job);
        self.lanes.change(lane, &policy, |lane| lane.hold_until(until));
    }

    /// Delays the next start on a lane after a start `since_start_ms` ago. The time that the command
    /// needed on its way makes the start look later than it was, never earlier.
    pub(super) fn note_start(&mut self, lane: LaneId, since_start_ms: Option<u64>) {
        let (policy, clock) = (self.policy(), self.core.clock);
        if let Some(since) = since_start_ms.filter(|since| *since < policy.delay_ms) {
            let until = clock.saturating_add(policy.delay_ms - since);
            self.lanes.change(lane, &policy, |lane| {
                if lane.polite {
                    lane.hold_until(until);
                }
            });
        }
    }

    /// Undoes the pause of a grant whose page came from the store, because its host got no request. A
    /// later grant or a held lane keeps its pause.
    pub(super) fn give_start_back(&mut self, taken: OpenGrant) {
        let policy = self.policy();
        self.lanes.change(taken.lane, &policy, |lane| {
            if lane.polite && lane.last_grant == taken.grant {
                lane.next_at = taken.start_before.max(lane.floor);
            }
        });
    }

    pub(super) fn give_back(
        &mut self,
        session: SessionId,
        jobs: &[(JobId, Token)],
    ) -> TableResult<Reply> {
        for (id, token) in jobs {
            let held = self.core.taken.get(id);
            if held.is_some_and(|taken| taken.session == session && taken.token == *token) {
                self.put_back(*id, false, self.core.clock)?;
            }
        }
        Ok(Reply::Ok)
    }

    /// Queues a job in flight again. `until` is the latest time at which its worker may start it.
    pub(super) fn put_back(&mut self, id: JobId, died: bool, until: u64) -> TableResult<()> {
        let Some(taken) = self.core.taken.get(&id).copied() else {
            return Ok(());
        };
        self.free_slot(id, taken);
        self.pause_lane_from(taken, until);
        let mut job = self.known_job(id)?;
        job.last_token = taken.token;
        job.ready_at = 0;
        if died && self.count_death(&mut job, taken) {
            let deaths = job.lone_deaths;
            let reason =
                format!("its worker died or hung {deaths} times while it held no other job");
            return self.fail(id, job, vec![reason]);
        }
        self.queue(id, &job)
    }

    /// Queues a redirected job on the lane of its new host, in the order of discovery.
    pub(super) fn requeue_moved(&mut self, id: JobId, mut job: Job) -> TableResult<()> {
        // An isolated job stays isolated on every host.
        if job.lane != ISOLATION {
            job.lane = self.lanes.lane_of(&job.new);
        }
        job.ready_at = 0;
        job.last_token = NO_TOKEN;
        self.queue(id, &job)
    }

    /// Counts the death of a worker against a job it held. Returns whether the job has reached the limit.
    ///
    /// A worker that held several jobs may have died of any of them, so such a death leads to isolation
    /// at most. In isolation, a death counts only after the job's tasks have begun, because loading a
    /// page kills no worker. A harmless job therefore survives any number of killed workers.
    fn count_death(&mut self, job: &mut Job, taken: OpenGrant) -> bool {
        let policy = self.policy();
        // The job goes to the end of the queue, so that the next worker does not take it first.
        job.ready_at = self.core.clock.min(READY_MAX);
        if taken.alone {
            job.lone_deaths += u32::from(taken.begun);
            return job.lone_deaths >= policy.poison_max;
        }
        job.deaths += 1;
        if job.deaths >= policy.deaths_before_isolation {
            job.lane = ISOLATION;
        }
        false
    }

    /// Pauses the lane of a lost job from `from` on, the latest time at which its worker may have started.
    fn pause_lane_from(&mut self, taken: OpenGrant, from: u64) {
        let policy = self.policy();
        if policy.delay_ms == 0 {
            return;
        }
        let until = from + policy.delay_ms + policy.delay_ms / 20;
        self.lanes.change(taken.lane, &policy, |lane| {
            if lane.polite {
                lane.hold_until(until);
            }
        });
    }

    /// Queues every failed job of the last, closed run again, and nothing else. The definitions may have
    /// changed, provided that the number of appenders is the same.
    pub(super) fn retry_failed(
        &mut self,
        epoch: Epoch,
        plan: RunPlan,
        publish: &Publication,
    ) -> TableResult<Reply> {
        let Some(run) = &mut self.core.run else {
            return Ok(Reply::NothingToRetry);
        };
        if run.failed == 0 {
            return Ok(Reply::NothingToRetry);
        }
        if run.plan.appenders != plan.appenders {
            return Ok(Reply::Unfinished { defs: run.plan.defs, config: run.plan.config });
        }
        run.failed = 0;
        run.tally.failed = 0;
        // No job is queued or in flight, so the order of the queues may change.
        run.plan.by_level = plan.by_level;
        run.plan.sequence.clone_from(&plan.sequence);
        run.retried = true;
        run.closed = false;
        run.over_since = None;
        run.written.clear();
        run.end_reported.clear();
        self.lanes.reopen();
        let mut after = None;
        loop {
            let batch = self.tables.failed(after, 500)?;
            let Some((last, _)) = batch.last() else { break };
            after = Some(*last);
            for (id, failed) in batch {
                let mut job = failed.job;
                (job.attempts, job.deaths, job.lone_deaths, job.ready_at) = (0, 0, 0, 0);
                job.last_token = NO_TOKEN;
                job.reset_redirect();
                job.lane = self.lanes.lane_of(&job.new);
                self.tables.drop_failed(id)?;
                self.enter_level(&job);
                self.queue(id, &job)?;
            }
        }
        self.adopt(epoch, plan, publish)?;
        Ok(Reply::Opened { continued: true })
    }
}
