//! Jobs: seeded or discovered, taken under a token, ended once.

use serde::{Deserialize, Serialize};

use super::command::{
    Epoch, Grant, Harvest, JobId, NewJob, Outcome, OutputBlock, Reply, RunPlan, SessionId, Tally,
    Token,
};
use super::lanes::ISOLATION;
use super::tables::{FailedJob, Job, LaneId};
use super::{Ledger, TableResult, Tables};

/// A grant that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Taken {
    /// Who holds it.
    pub session: SessionId,
    /// Proof of the grant.
    pub token: Token,
    /// Lane whose slot it fills.
    pub lane: LaneId,
}

impl<T: Tables> Ledger<T> {
    pub(super) fn seed(
        &mut self,
        session: SessionId,
        epoch: Epoch,
        group: String,
        jobs: Vec<NewJob>,
        last: bool,
    ) -> TableResult<Reply> {
        if !self.is_crossing(session, epoch) || self.core.run.is_none() {
            return Ok(Reply::Stale);
        }
        for job in jobs {
            self.add_job(job)?;
        }
        if let Some(run) = &mut self.core.run
            && last
            && run.plan.groups.contains(&group)
            && !run.seeded.contains(&group)
        {
            run.seeded.push(group);
        }
        Ok(Reply::Ok)
    }

    /// Adds a job unless its key is known; tells whether it was new.
    fn add_job(&mut self, new: NewJob) -> TableResult<bool> {
        if !self.tables.mark_seen(new.key)? {
            return Ok(false);
        }
        self.core.next_job += 1;
        let id = JobId(self.core.next_job);
        let lane = self.lanes.lane_of(&new);
        let job = Job {
            new,
            lane,
            ready_at: 0,
            tasks: Vec::new(),
            attempts: 0,
            deaths: 0,
            last_token: Token(0),
        };
        if let Some(run) = &mut self.core.run {
            run.known += 1;
        }
        self.queue(id, &job)?;
        Ok(true)
    }

    /// Stores a job and puts it into its lane's queue.
    fn queue(&mut self, id: JobId, job: &Job) -> TableResult<()> {
        self.tables.put_job(id, job)?;
        self.tables.enqueue(job.lane, job.ready_at, id)?;
        if let Some(run) = &mut self.core.run {
            run.pending += 1;
        }
        let policy = self.policy();
        self.lanes.change(job.lane, &policy, |lane| {
            lane.head_at =
                if lane.pending == 0 { job.ready_at } else { lane.head_at.min(job.ready_at) };
            lane.pending += 1;
        });
        Ok(())
    }

    /// Takes a queued job out of its lane's queue.
    fn unqueue(&mut self, id: JobId, lane: LaneId, ready_at: u64) -> TableResult<()> {
        self.tables.dequeue(lane, ready_at, id)?;
        let head = self.tables.first_in_lane(lane)?;
        if let Some(run) = &mut self.core.run {
            run.pending -= 1;
        }
        let policy = self.policy();
        self.lanes.change(lane, &policy, |lane| {
            lane.pending -= 1;
            lane.head_at = head.map_or(0, |(ready_at, _)| ready_at);
        });
        Ok(())
    }

    pub(super) fn take(
        &mut self,
        session: SessionId,
        number: u64,
        limit: u32,
    ) -> TableResult<Reply> {
        let Some(own) = self.core.sessions.get(&session) else {
            return Ok(Reply::Stale);
        };
        if number < own.last_take {
            return Ok(Reply::Stale);
        }
        if number == own.last_take {
            return self.repeat_grants(session, &own.last_grants.clone());
        }
        let mut jobs = Vec::new();
        while jobs.len() < limit as usize
            && !self.core.sessions.get(&session).is_some_and(|own| own.isolated)
        {
            let Some(lane) = self.lanes.next_due(self.core.clock) else {
                break;
            };
            match self.grant_first(session, lane)? {
                Some(grant) => jobs.push(grant),
                None => break,
            }
        }
        if jobs.is_empty() && limit > 0 && self.lanes.isolated() > 0 && self.holds(session) == 0 {
            jobs.extend(self.grant_first(session, ISOLATION)?);
        }
        if let Some(own) = self.core.sessions.get_mut(&session) {
            own.last_take = number;
            own.last_grants = jobs.iter().map(|grant| grant.id).collect();
        }
        let wait_ms = self.lanes.next_at().map(|at| at.saturating_sub(self.core.clock));
        Ok(Reply::Granted { jobs, wait_ms })
    }

    fn repeat_grants(&mut self, session: SessionId, ids: &[JobId]) -> TableResult<Reply> {
        let mut jobs = Vec::new();
        for id in ids {
            if let Some(taken) = self.core.taken.get(id).copied()
                && taken.session == session
                && let Some(job) = self.tables.job(*id)?
            {
                jobs.push(grant(*id, taken.token, job));
            }
        }
        Ok(Reply::Granted { jobs, wait_ms: None })
    }

    fn grant_first(&mut self, session: SessionId, lane: LaneId) -> TableResult<Option<Grant>> {
        let Some((ready_at, id)) = self.tables.first_in_lane(lane)? else {
            return Ok(None);
        };
        let Some(job) = self.tables.job(id)? else {
            return Ok(None);
        };
        self.unqueue(id, lane, ready_at)?;
        self.core.next_token += 1;
        self.core.grants += 1;
        let token = Token(self.core.next_token);
        self.core.taken.insert(id, Taken { session, token, lane });
        let (policy, clock, grants) = (self.policy(), self.core.clock, self.core.grants);
        self.lanes.change(lane, &policy, |lane| {
            lane.held += 1;
            lane.last_grant = grants;
            if lane.polite {
                lane.next_at = clock + policy.delay_ms;
            }
        });
        if lane == ISOLATION
            && let Some(own) = self.core.sessions.get_mut(&session)
        {
            own.isolated = true;
        }
        Ok(Some(grant(id, token, job)))
    }

    fn holds(&self, session: SessionId) -> usize {
        self.core.taken.values().filter(|taken| taken.session == session).count()
    }

    pub(super) fn finish(
        &mut self,
        session: SessionId,
        id: JobId,
        token: Token,
        outcome: Outcome,
    ) -> TableResult<Reply> {
        let Some(job) = self.tables.job(id)? else {
            return Ok(Reply::Stale);
        };
        match self.core.taken.get(&id).copied() {
            Some(taken) if taken.token == token => self.let_go(id, taken),
            // Its session expired, but nobody else got the job: the work counts.
            None if job.last_token == token => self.unqueue(id, job.lane, job.ready_at)?,
            _ => return Ok(Reply::Stale),
        }
        if let Some(own) = self.core.sessions.get_mut(&session) {
            own.isolated = false;
        }
        match outcome {
            Outcome::Done(harvest) => self.reap(id, job, *harvest)?,
            Outcome::Retry { reason, pause_ms, hold_lane_ms, mut tally } => {
                if let Some(hold) = hold_lane_ms {
                    self.hold_lane(job.lane, hold);
                }
                if job.attempts + 1 < self.policy().attempts_max {
                    tally.retries += 1;
                    self.count(&tally);
                    self.requeue(id, job, pause_ms)?;
                } else {
                    tally.failed += 1;
                    self.count(&tally);
                    let reason = format!("{reason} (tried {} times)", job.attempts + 1);
                    self.fail(id, job, vec![reason])?;
                }
            }
            Outcome::Failed { reason, mut tally } => {
                tally.failed += 1;
                self.count(&tally);
                self.fail(id, job, vec![reason])?;
            }
        }
        Ok(Reply::Ok)
    }

    fn requeue(&mut self, id: JobId, mut job: Job, pause_ms: u64) -> TableResult<()> {
        job.attempts += 1;
        job.ready_at = self.core.clock + pause_ms;
        job.last_token = Token(0);
        self.queue(id, &job)
    }

    /// Rows, links and the end of the job: one stroke.
    fn reap(&mut self, id: JobId, mut job: Job, harvest: Harvest) -> TableResult<()> {
        for block in harvest.blocks {
            let Some(run) = &mut self.core.run else { break };
            run.output_seq += 1;
            *run.tally.rows.entry(block.data_def.clone()).or_default() += u64::from(block.rows);
            self.tables.append_output(&OutputBlock {
                seq: run.output_seq,
                group: job.new.group.clone(),
                name: job.new.name.clone(),
                key: job.new.key,
                block,
            })?;
        }
        self.count(&harvest.tally);
        for child in harvest.children {
            if !self.add_job(child)? {
                let again = Tally {
                    skipped: [(String::from("already known"), 1)].into(),
                    ..Tally::default()
                };
                self.count(&again);
            }
        }
        if harvest.failures.is_empty() {
            if let Some(run) = &mut self.core.run {
                run.done += 1;
            }
            return self.tables.drop_job(id);
        }
        let reasons =
            harvest.failures.iter().map(|(task, reason)| format!("task `{task}`: {reason}"));
        let reasons = reasons.collect();
        job.tasks = harvest.failures.into_iter().map(|(task, _)| task).collect();
        self.fail(id, job, reasons)
    }

    fn fail(&mut self, id: JobId, job: Job, reasons: Vec<String>) -> TableResult<()> {
        if let Some(run) = &mut self.core.run {
            run.failed += 1;
        }
        self.tables.drop_job(id)?;
        self.tables.put_failed(id, &FailedJob { job, reasons })
    }

    fn count(&mut self, tally: &Tally) {
        if let Some(run) = &mut self.core.run {
            run.tally.add(tally);
        }
    }

    fn let_go(&mut self, id: JobId, taken: Taken) {
        self.core.taken.remove(&id);
        let policy = self.policy();
        self.lanes.change(taken.lane, &policy, |lane| lane.held -= 1);
    }

    fn hold_lane(&mut self, lane: LaneId, hold_ms: u64) {
        let (policy, until) = (self.policy(), self.core.clock + hold_ms);
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
        if let Some(own) = self.core.sessions.get_mut(&session) {
            own.isolated = false;
        }
        Ok(Reply::Ok)
    }

    /// Queues a taken job again; one that keeps killing its workers goes into isolation and, in
    /// the end, fails, while an innocent one survives any number of kills around it.
    pub(super) fn put_back(&mut self, id: JobId, died: bool) -> TableResult<()> {
        let Some(taken) = self.core.taken.get(&id).copied() else {
            return Ok(());
        };
        self.let_go(id, taken);
        let Some(mut job) = self.tables.job(id)? else {
            return Ok(());
        };
        job.last_token = taken.token;
        job.ready_at = 0;
        if died {
            let policy = self.policy();
            // In a full house nobody knows who killed the worker: only a death alone counts on.
            job.deaths += 1;
            if job.deaths >= policy.deaths_before_isolation + policy.poison_max {
                let reason = format!("its worker died {} times while working on it", job.deaths);
                return self.fail(id, job, vec![reason]);
            }
            if job.deaths >= policy.deaths_before_isolation {
                job.lane = ISOLATION;
            }
        }
        self.queue(id, &job)
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
                (job.attempts, job.deaths, job.ready_at) = (0, 0, 0);
                job.last_token = Token(0);
                job.lane = self.lanes.lane_of(&job.new);
                self.tables.drop_failed(id)?;
                self.queue(id, &job)?;
            }
        }
        self.adopt_policy(plan.policy);
        Ok(Reply::Opened { continued: true })
    }
}

fn grant(id: JobId, token: Token, job: Job) -> Grant {
    Grant { id, token, job: job.new, tasks: job.tasks, attempts: job.attempts }
}
