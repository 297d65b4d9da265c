//! Jobs: added by seeding or by links, granted with a token, ended once.

use serde::{Deserialize, Serialize};

use super::command::{
    Epoch, Grant, Harvest, JobId, NewJob, Outcome, OutputBlock, Policy, Reply, SessionId, Tally,
    Token,
};
use super::levels::{READY_MAX, parts};
use super::tables::{ISOLATION, Job, LaneId};
use super::{Ledger, TableResult, Tables};

/// Reason in the report for a link whose page is known.
pub const ALREADY_KNOWN: &str = "already known";
/// Reason in the report for a link beyond the limit of its rule.
const BEYOND_MAX_PAGES: &str = "links beyond maxPages";

/// Stands for no token: grants count from 1.
pub(super) const NO_TOKEN: Token = Token(0);

/// The result of adding a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddOutcome {
    /// The job is queued.
    New,
    /// Its key was known.
    Known,
    /// Its rule has reached its limit.
    OverQuota,
}

/// A job in flight: a grant that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenGrant {
    /// The session that holds the job.
    pub session: SessionId,
    /// Proof of the grant.
    pub token: Token,
    /// Lane whose slot it occupies.
    pub lane: LaneId,
    /// Whether its worker holds nothing else, because the job was isolated.
    pub alone: bool,
    /// Whether its tasks have begun. In isolation, a death after that counts against the job.
    pub begun: bool,
    /// Number of the grant.
    pub grant: u64,
    /// Ledger time from which its timeout counts: the grant, or the last beat at which the session held an
    /// older job of the same lane.
    pub since: u64,
    /// Value of the lane's `next_at` before this grant.
    pub start_before: u64,
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
        if !self.is_crossing(session, epoch) {
            return Ok(Reply::Stale);
        }
        match &self.core.run {
            Some(run) if run.seeded.contains(&group) => return Ok(Reply::Ok),
            Some(run) if run.plan.groups.contains(&group) => {}
            _ => return Ok(Reply::Stale),
        }
        for job in jobs {
            self.add_job(job)?;
        }
        if let Some(run) = &mut self.core.run
            && last
        {
            run.seeded.push(group);
        }
        Ok(Reply::Ok)
    }

    /// Adds a job unless its key is known or its rule has reached its limit.
    pub(super) fn add_job(&mut self, new: NewJob) -> TableResult<AddOutcome> {
        if let (Some(quota), Some(run)) = (new.quota, &self.core.run)
            && run.added.get(&quota.rule).copied().unwrap_or(0) >= quota.max
        {
            let known = self.tables.is_seen(new.key)?;
            return Ok(if known { AddOutcome::Known } else { AddOutcome::OverQuota });
        }
        if !self.tables.mark_seen(new.key)? {
            return Ok(AddOutcome::Known);
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
            lone_deaths: 0,
            last_token: NO_TOKEN,
            redirect: None,
        };
        if let Some(run) = &mut self.core.run {
            run.known += 1;
            if let Some(quota) = job.new.quota {
                *run.added.entry(quota.rule).or_default() += 1;
            }
        }
        self.enter_level(&job);
        self.queue(id, &job)?;
        Ok(AddOutcome::New)
    }

    /// Stores a job and puts it into its lane's queue.
    pub(super) fn queue(&mut self, id: JobId, job: &Job) -> TableResult<()> {
        self.tables.put_job(id, job)?;
        let place = self.core.place_of(job);
        self.tables.enqueue(job.lane, place, id)?;
        if let Some(run) = &mut self.core.run {
            run.pending += 1;
        }
        let policy = self.policy();
        self.lanes.change(job.lane, &policy, |lane| {
            let (head, own) = ((lane.head_level, lane.head_at), parts(place));
            (lane.head_level, lane.head_at) = if lane.pending == 0 { own } else { head.min(own) };
            lane.pending += 1;
        });
        Ok(())
    }

    /// Removes a job from its lane's queue.
    pub(super) fn unqueue(&mut self, id: JobId, lane: LaneId, place: u64) -> TableResult<()> {
        self.tables.dequeue(lane, place, id)?;
        let head = self.tables.first_in_lane(lane)?;
        if let Some(run) = &mut self.core.run {
            run.pending -= 1;
        }
        let policy = self.policy();
        self.lanes.change(lane, &policy, |lane| {
            lane.pending -= 1;
            (lane.head_level, lane.head_at) = head.map_or((0, 0), |(place, _)| parts(place));
        });
        Ok(())
    }

    pub(super) fn take(
        &mut self,
        session: SessionId,
        number: u64,
        limit: u32,
        ahead: u32,
    ) -> TableResult<Reply> {
        let mut policy = self.policy();
        policy.ahead = policy.ahead.min(ahead);
        let Some(own) = self.core.sessions.get(&session) else {
            return Ok(Reply::Stale);
        };
        if number < own.last_take {
            return Ok(Reply::Stale);
        }
        if number == own.last_take {
            return self.repeat_grants(session, &own.last_grants.clone(), &policy);
        }
        let mut jobs = Vec::new();
        let (holds, alone) = self.held_by(session);
        let limit = if self.core.run.as_ref().is_some_and(|run| run.cancelled) { 0 } else { limit };
        let (clock, mut passed) = (self.core.clock, (0, ISOLATION));
        while jobs.len() < limit as usize && !alone {
            let Some(lane) = self.lanes.next_due(session, clock, &policy, &mut passed) else {
                break;
            };
            let (place, id) = self.first_queued(lane)?;
            jobs.push(self.grant_queued(session, id, lane, place)?);
        }
        if jobs.is_empty() && limit > 0 && holds == 0 {
            jobs.extend(self.grant_isolated(session)?);
        }
        if limit > 0 {
            self.sweep()?;
        }
        if let Some(own) = self.core.sessions.get_mut(&session) {
            own.seen = clock;
            own.last_take = number;
            own.last_grants = jobs.iter().map(|grant| grant.id).collect();
        }
        let wait_ms = self.wait_ms(session, &policy)?;
        Ok(Reply::Granted { jobs, wait_ms })
    }

    /// Number of jobs that a session holds, and whether one of them is isolated.
    fn held_by(&self, session: SessionId) -> (usize, bool) {
        let held = self.core.taken.values().filter(|taken| taken.session == session);
        held.fold((0, false), |(count, alone), taken| (count + 1, alone || taken.alone))
    }

    /// Time until a job may be due for a session.
    fn wait_ms(&mut self, session: SessionId, policy: &Policy) -> TableResult<Option<u64>> {
        if self.lanes.first_closed().is_some() {
            return Ok(Some(0));
        }
        let isolated = match self.first_isolated()? {
            Some((_, job, lane, _)) => self.lanes.start_at(session, lane, job.ready_at, policy),
            None => None,
        };
        let next = self.lanes.next_at(session, policy).into_iter().chain(isolated).min();
        Ok(next.map(|at| at.saturating_sub(self.core.clock)))
    }

    fn repeat_grants(
        &mut self,
        session: SessionId,
        ids: &[JobId],
        policy: &Policy,
    ) -> TableResult<Reply> {
        let mut jobs = Vec::new();
        for id in ids {
            if let Some(taken) = self.core.taken.get(id).copied()
                && taken.session == session
                && let Some(job) = self.tables.job(*id)?
            {
                jobs.push(grant(*id, taken, job));
            }
        }
        let wait_ms = self.wait_ms(session, policy)?;
        Ok(Reply::Granted { jobs, wait_ms })
    }

    /// The first isolated job if its level is open, with the lane of its host and its queue position.
    pub(super) fn first_isolated(&mut self) -> TableResult<Option<(JobId, Job, LaneId, u64)>> {
        if self.lanes.isolated() == 0 {
            return Ok(None);
        }
        let (place, id) = self.first_queued(ISOLATION)?;
        if !self.lanes.is_open(parts(place).0) {
            return Ok(None);
        }
        let job = self.known_job(id)?;
        let lane = self.lanes.lane_of(&job.new);
        Ok(Some((id, job, lane, place)))
    }

    /// Grants the first isolated job if the lane of its host allows a start.
    fn grant_isolated(&mut self, session: SessionId) -> TableResult<Option<Grant>> {
        let Some((id, job, lane, place)) = self.first_isolated()? else {
            return Ok(None);
        };
        let start = self.lanes.start_at(session, lane, job.ready_at, &self.policy());
        if start.is_none_or(|start| start > self.core.clock) {
            return Ok(None);
        }
        self.unqueue(id, ISOLATION, place)?;
        Ok(Some(self.grant_job(session, id, job, lane, true)))
    }

    fn grant_queued(
        &mut self,
        session: SessionId,
        id: JobId,
        lane: LaneId,
        place: u64,
    ) -> TableResult<Grant> {
        let job = self.known_job(id)?;
        if (job.lane, self.core.place_of(&job)) != (lane, place) {
            return Err(self
                .tables
                .damaged(&format!("job {} is not at its position in the queue", id.0)));
        }
        self.unqueue(id, lane, place)?;
        Ok(self.grant_job(session, id, job, lane, false))
    }

    /// Queue position and number of the first job of a lane that counts queued jobs.
    pub(super) fn first_queued(&mut self, lane: LaneId) -> TableResult<(u64, JobId)> {
        let first = self.tables.first_in_lane(lane)?;
        first
            .ok_or_else(|| self.tables.damaged(&format!("the queue of lane {} is missing", lane.0)))
    }

    pub(super) fn known_job(&mut self, id: JobId) -> TableResult<Job> {
        let job = self.tables.job(id)?;
        job.ok_or_else(|| {
            self.tables
                .damaged(&format!("job {} is queued or in flight, but its record is missing", id.0))
        })
    }

    fn grant_job(
        &mut self,
        session: SessionId,
        id: JobId,
        job: Job,
        lane: LaneId,
        alone: bool,
    ) -> Grant {
        self.core.next_token += 1;
        self.core.grants += 1;
        let token = Token(self.core.next_token);
        let (policy, clock, grants) = (self.policy(), self.core.clock, self.core.grants);
        let mut start_before = 0;
        self.lanes.grant(lane, session, &policy, |lane| {
            start_before = lane.next_at;
            lane.last_grant = grants;
            if lane.polite {
                // The worker starts later, after the reply has reached it. `note_start` adds the
                // missing time when the job ends.
                lane.next_at = clock + policy.delay_ms;
            }
        });
        let taken = OpenGrant {
            session,
            token,
            lane,
            alone,
            begun: false,
            grant: grants,
            since: clock,
            start_before,
        };
        self.core.taken.insert(id, taken);
        grant(id, taken, job)
    }

    pub(super) fn begin(&mut self, id: JobId, token: Token) -> Reply {
        match self.core.taken.get_mut(&id) {
            Some(taken) if taken.token == token => {
                taken.begun = true;
                Reply::Ok
            }
            _ => Reply::Stale,
        }
    }

    pub(super) fn finish(
        &mut self,
        id: JobId,
        token: Token,
        since_start_ms: Option<u64>,
        outcome: Outcome,
    ) -> TableResult<Reply> {
        let Some(mut job) = self.tables.job(id)? else {
            return Ok(Reply::Stale);
        };
        match self.core.taken.get(&id).copied() {
            Some(taken) if taken.token == token => {
                self.note_start(taken.lane, since_start_ms);
                if matches!(&outcome, Outcome::Done(harvest) if harvest.tally.stored > 0) {
                    self.give_start_back(taken);
                }
                self.free_slot(id, taken);
            }
            // The session has expired, but no other session got the job: the result counts.
            None if job.last_token == token && token != NO_TOKEN => {
                let lane = self.lanes.lane_of(&job.new);
                self.note_start(lane, since_start_ms);
                self.unqueue(id, job.lane, self.core.place_of(&job))?;
            }
            _ => return Ok(Reply::Stale),
        }
        match outcome {
            Outcome::Done(harvest) => self.commit_harvest(id, job, *harvest)?,
            Outcome::Retry { reason, pause_ms, hold_lane_ms, mut tally } => {
                if let Some(hold) = hold_lane_ms {
                    self.hold_lane(&job.new, hold);
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
            Outcome::Moved { url, lane, polite, redirects, tally } => {
                self.count(&tally);
                job.redirect_to(url, lane, polite, redirects);
                self.requeue_moved(id, job)?;
            }
        }
        Ok(Reply::Ok)
    }

    fn requeue(&mut self, id: JobId, mut job: Job, pause_ms: u64) -> TableResult<()> {
        job.attempts += 1;
        job.ready_at = self.core.clock.saturating_add(pause_ms).min(READY_MAX);
        job.last_token = NO_TOKEN;
        self.queue(id, &job)
    }

    /// Commits rows, links and the end of a job atomically.
    fn commit_harvest(&mut self, id: JobId, mut job: Job, harvest: Harvest) -> TableResult<()> {
        for block in harvest.blocks {
            let Some(run) = &mut self.core.run else { break };
            run.output_seq += 1;
            if let Some(bytes) = run.output_bytes.get_mut(block.appender as usize) {
                *bytes += block.bytes.len() as u64;
            }
            *run.tally.rows.entry(block.data_def.clone()).or_default() += u64::from(block.rows);
            self.tables.append_output(OutputBlock {
                seq: run.output_seq,
                group: job.new.group.clone(),
                name: job.new.name.clone(),
                key: job.new.key,
                block,
            })?;
        }
        self.count(&harvest.tally);
        let (mut known, mut over_quota) = (0, 0);
        for child in harvest.children {
            match self.add_job(child)? {
                AddOutcome::New => {}
                AddOutcome::Known => known += 1,
                AddOutcome::OverQuota => over_quota += 1,
            }
        }
        self.count_skipped(ALREADY_KNOWN, known);
        self.count_skipped(BEYOND_MAX_PAGES, over_quota);
        if harvest.failures.is_empty() {
            self.leave_level(&job);
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

    pub(super) fn count(&mut self, tally: &Tally) {
        if let Some(run) = &mut self.core.run {
            run.tally.add(tally);
        }
    }

    pub(super) fn count_skipped(&mut self, reason: &str, count: u64) {
        if count > 0 {
            let skipped = [(reason.to_owned(), count)].into();
            self.count(&Tally { skipped, ..Tally::default() });
        }
    }

    pub(super) fn free_slot(&mut self, id: JobId, taken: OpenGrant) {
        self.core.taken.remove(&id);
        let policy = self.policy();
        self.lanes.free_slot(taken.lane, taken.session, &policy);
    }
}

fn grant(id: JobId, taken: OpenGrant, job: Job) -> Grant {
    let OpenGrant { token, alone, .. } = taken;
    let (at, redirects) = job.redirect.map(|redirect| (redirect.at, redirect.redirects)).unzip();
    let redirects = redirects.unwrap_or_default();
    Grant {
        id,
        token,
        job: job.new,
        tasks: job.tasks,
        attempts: job.attempts,
        at,
        redirects,
        alone,
    }
}
