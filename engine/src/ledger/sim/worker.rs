//! A simulated worker: it joins, sets up, seeds, takes jobs, works and finishes. It repeats requests
//! without a reply, and drops its session when that may have expired by the worker's clock.

use std::collections::BTreeMap;

use super::Bug;
use super::dice::Dice;
use super::site::Site;
use crate::ledger::{
    Command, Epoch, Grant, JoinRequest, OpenMode, Policy, Publication, Reply, RunPlan, Seat,
    SessionId,
};

pub(super) const TTL_MS: u64 = 400;
const RESEND_MS: u64 = 150;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Joining,
    ClaimSetup,
    Opening(Epoch),
    ReleaseSetup(Epoch),
    ClaimSeed,
    Seeding(Epoch, usize),
    ReleaseSeed(Epoch),
    Working,
    /// This node has written all output and waits for the remaining seats.
    Closing,
    /// The run is closed, and this node has reported the end.
    Leaving,
    Ended,
}

/// A request without a reply yet.
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) command: Command,
    /// Times of the first and the last send.
    first: u64,
    sent: u64,
}

struct Work {
    grant: Grant,
    /// Time of the `Take`.
    asked: u64,
    /// Earliest time of its request to the host.
    starts: u64,
    /// Time of its request to the host.
    started: Option<u64>,
    /// Duration of loading and processing its page.
    lasts: u64,
    /// Whether its tasks may run. An isolated job must send `Begin` first.
    begun: bool,
}

pub(super) struct Worker {
    /// Number of the current session or process. Replies to an earlier one are ignored.
    pub(super) life: u64,
    /// Number of the process, which may lose its session and join again.
    process: u64,
    /// The planted bug.
    bug: Bug,
    /// Whether it has a vote and writes files.
    pub(super) votes: bool,
    /// Speed of its clock, per mille.
    pub(super) rate: u64,
    /// Its messages are lost before this time.
    pub(super) mute_until: u64,
    /// Replies to it are lost before this time.
    pub(super) deaf_until: u64,
    pub(super) session: Option<SessionId>,
    stage: Stage,
    pub(super) calls: Vec<Call>,
    next_call: u64,
    takes: u64,
    works: Vec<Work>,
    /// Earliest time of the next request on each lane, by the worker's clock.
    pace: BTreeMap<String, u64>,
    /// The worker does nothing before this time, because it is dead or paused.
    pub(super) back_at: u64,
    deadline: u64,
    renew_at: u64,
    take_at: u64,
    seat: u64,
    solo: bool,
    limit: u32,
}

/// The run that all workers ask for.
#[derive(Clone)]
pub(super) struct RunRequest {
    pub(super) mode: OpenMode,
    pub(super) policy: Policy,
    pub(super) by_level: bool,
    pub(super) sequence: BTreeMap<String, u32>,
    /// The seats that write files.
    pub(super) seats: Vec<Seat>,
}

/// The run as a node sees it in its own copy of the ledger.
#[derive(Clone, Copy, Default)]
pub(super) struct NodeView {
    /// The work is over, and the file has all of the output.
    pub(super) written: bool,
    pub(super) closed: bool,
    /// This seat has not reported the end yet.
    pub(super) unreported: bool,
}

/// The actions of a worker in one step.
#[derive(Default)]
pub(super) struct WorkerActions {
    /// Requests to send: number, command, and whether it is a resend.
    pub(super) sends: Vec<(u64, Command, bool)>,
    pub(super) renews: bool,
    /// Polite lanes on which a request is sent.
    pub(super) starts: Vec<String>,
    pub(super) died: bool,
}

impl Work {
    fn is_loaded(&self, now: u64) -> bool {
        self.started.is_some_and(|at| at + self.lasts <= now)
    }
}

impl Worker {
    pub(super) fn new(seat: u64, solo: bool, limit: u32, bug: Bug) -> Self {
        Self {
            life: 0,
            process: 0,
            bug,
            votes: true,
            rate: 1000,
            mute_until: 0,
            deaf_until: 0,
            session: None,
            stage: Stage::Joining,
            calls: Vec::new(),
            next_call: 0,
            takes: 0,
            works: Vec::new(),
            pace: BTreeMap::new(),
            back_at: 0,
            deadline: u64::MAX,
            renew_at: 0,
            take_at: 0,
            seat,
            solo,
            limit,
        }
    }

    /// Restarts the process. Only the seat stays.
    pub(super) fn die(&mut self, back_at: u64) {
        let Self { seat, solo, limit, bug, votes, rate, mute_until, deaf_until, .. } = *self;
        let (life, process) = (self.life + 1, self.process + 1);
        let fresh = Self::new(seat, solo, limit, bug);
        *self = Self { life, process, votes, rate, mute_until, deaf_until, back_at, ..fresh };
    }

    /// Whether the worker would still use that session at this time.
    pub(super) fn relies_on(&self, session: SessionId, now: u64) -> bool {
        self.session == Some(session) && self.clock(now) < self.deadline
    }

    /// The time by the worker's clock.
    pub(super) fn clock(&self, now: u64) -> u64 {
        now * self.rate / 1000
    }

    /// Drops the session. Results that are ready are still sent.
    fn abandon(&mut self) {
        (self.session, self.stage, self.deadline) = (None, Stage::Joining, u64::MAX);
        self.life += 1;
        (self.takes, self.take_at) = (0, 0);
        self.works.clear();
        self.calls.retain(|call| matches!(call.command, Command::Finish { .. }));
    }

    pub(super) fn is_idle(&self) -> bool {
        self.works.is_empty() && self.calls.iter().all(|call| !is_finish(&call.command))
    }

    /// Its state as text, for a failure message.
    pub(super) fn words(&self) -> String {
        let calls = self.calls.iter().map(|call| &call.command).collect::<Vec<_>>();
        format!("{:?} {:?} from {}: {calls:?}", self.session, self.stage, self.back_at)
    }

    /// Whether its leave is sent.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving | Stage::Ended)
    }

    /// Whether it has reported the end of the run.
    pub(super) fn has_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    pub(super) fn step(
        &mut self,
        now: u64,
        dice: &mut Dice,
        site: &mut Site,
        order: &RunRequest,
        view: NodeView,
    ) -> WorkerActions {
        let mut actions = WorkerActions::default();
        if now < self.back_at || self.has_ended() {
            return actions;
        }
        let now = self.clock(now);
        if !self.solo {
            self.look(view);
        }
        self.end_works(now, site, &mut actions);
        if actions.died {
            return actions;
        }
        if now >= self.deadline && self.bug == Bug::RevivedSession {
            self.works.clear();
            self.deadline = u64::MAX;
        } else if now >= self.deadline {
            self.abandon();
        }
        if !self.solo && self.bug != Bug::LateStart {
            // Another node may have got these jobs.
            let timeout = order.policy.task_timeout_ms / 2;
            self.works.retain(|work| work.started.is_some() || now < work.asked + timeout);
        }
        self.start_works(now, order.policy.delay_ms, &mut actions);
        if self.session.is_some() && !self.solo && now >= self.renew_at {
            self.renew_at = now + TTL_MS / 4;
            actions.renews = true;
        }
        for call in self.calls.iter_mut().filter(|call| now >= call.sent + RESEND_MS) {
            call.sent = now;
            actions.sends.push((call.id, call.command.clone(), true));
        }
        if self.calls.iter().all(|call| is_finish(&call.command))
            && let Some(command) = self.next_command(now, dice, site, order)
        {
            self.call(now, command, &mut actions);
        }
        actions
    }

    fn call(&mut self, now: u64, command: Command, actions: &mut WorkerActions) {
        self.next_call += 1;
        let id = self.next_call;
        actions.sends.push((id, command.clone(), false));
        self.calls.push(Call { id, command, first: now, sent: now });
    }

    /// Moves on towards the end when no work is left.
    fn look(&mut self, view: NodeView) {
        let reported = view.closed && !(view.unreported && self.votes);
        match self.stage {
            // It had reported the end before it died.
            Stage::Joining if reported && self.is_idle() => self.stage = Stage::Ended,
            Stage::ClaimSetup | Stage::ClaimSeed if reported => self.stage = Stage::Leaving,
            Stage::Working if reported && self.is_idle() => self.stage = Stage::Leaving,
            Stage::Working if self.votes && view.written && self.is_idle() => {
                self.stage = Stage::Closing;
            }
            Stage::Closing if view.closed => self.stage = Stage::Leaving,
            _ => {}
        }
    }

    /// Sends requests, each in the turn of its lane.
    fn start_works(&mut self, now: u64, delay_ms: u64, actions: &mut WorkerActions) {
        for work in self.works.iter_mut().filter(|work| work.started.is_none()) {
            let job = &work.grant.job;
            let turn = self.pace.get(&job.lane).copied().unwrap_or(0).max(work.starts);
            if job.polite && now < turn {
                continue;
            }
            work.started = Some(now);
            if job.polite {
                self.pace.insert(job.lane.clone(), now + delay_ms);
                actions.starts.push(job.lane.clone());
            }
        }
    }

    fn end_works(&mut self, now: u64, site: &mut Site, actions: &mut WorkerActions) {
        let waits = |work: &Work| work.is_loaded(now) && !work.begun;
        if let Some(work) = self.works.iter().find(|work| waits(work))
            && let Some(session) = self.session
            && !self.calls.iter().any(|call| matches!(call.command, Command::Begin { .. }))
        {
            let (job, token) = (work.grant.id, work.grant.token);
            self.call(now, Command::Begin { session, job, token }, actions);
        }
        let ready = |work: &Work| work.is_loaded(now) && work.begun;
        while let Some(place) = self.works.iter().position(ready) {
            let Work { grant, started, .. } = self.works.remove(place);
            let page = usize::from(grant.job.key.0[0]);
            let (Some(session), Some(outcome)) =
                (self.session, site.visit(page, &grant.tasks, grant.job.depth))
            else {
                actions.died = true;
                return;
            };
            let (job, token, since_start_ms) = (grant.id, grant.token, started.map(|at| now - at));
            self.call(
                now,
                Command::Finish { session, job, token, since_start_ms, outcome },
                actions,
            );
        }
    }

    fn next_command(
        &mut self,
        now: u64,
        dice: &mut Dice,
        site: &Site,
        order: &RunRequest,
    ) -> Option<Command> {
        let claim = |session, name: &str| Command::Claim { session, name: name.to_owned() };
        let release = |session, name: &str, epoch| {
            let name = name.to_owned();
            Command::Release { session, name, epoch, result: Ok(()) }
        };
        if self.stage == Stage::Joining {
            if now < self.take_at {
                return None;
            }
            // Each join has its own nonce, because the lease must not count from an earlier join.
            let nonce = self.life * 1_000_000 + self.next_call * 100 + self.seat;
            let (life, seat) = (self.process * 1000 + self.seat, Seat(self.seat as u32));
            let (votes, alone) = (self.votes, self.solo);
            return Some(Command::Join(JoinRequest { nonce, life, seat, votes, alone }));
        }
        let session = self.session?;
        Some(match self.stage {
            Stage::Joining | Stage::Ended => return None,
            Stage::ClaimSetup => claim(session, "setup"),
            Stage::Opening(epoch) => open(session, epoch, order),
            Stage::ReleaseSetup(epoch) => release(session, "setup", epoch),
            Stage::ClaimSeed => claim(session, "seed"),
            Stage::Seeding(epoch, from) => {
                let to = site.roots.len().min(from + 2);
                let jobs = site.roots[from..to].iter().map(|page| site.job(*page, 0)).collect();
                let last = to == site.roots.len();
                Command::Seed { session, epoch, group: String::new(), jobs, last }
            }
            Stage::ReleaseSeed(epoch) => release(session, "seed", epoch),
            Stage::Working => return self.work(now, dice, session),
            Stage::Closing if now < self.take_at => return None,
            Stage::Closing => Command::Close { session },
            Stage::Leaving => Command::Leave { session },
        })
    }

    fn work(&mut self, now: u64, dice: &mut Dice, session: SessionId) -> Option<Command> {
        if !self.works.is_empty() && dice.chance(10) {
            let work = self.works.swap_remove(0);
            return Some(Command::Return {
                session,
                jobs: vec![(work.grant.id, work.grant.token)],
            });
        }
        let free = self.limit.saturating_sub(self.works.len() as u32);
        if free == 0 || now < self.take_at {
            return None;
        }
        self.takes += 1;
        Some(Command::Take { session, number: self.takes, limit: free, ahead: u32::MAX })
    }

    /// Handles a reply.
    pub(super) fn hear(&mut self, now: u64, id: u64, reply: Reply, dice: &mut Dice) {
        let now = self.clock(now);
        let Some(place) = self.calls.iter().position(|call| call.id == id) else { return };
        let call = self.calls.remove(place);
        match (call.command, reply) {
            (Command::Finish { .. } | Command::Return { .. }, _) => {}
            (Command::Leave { .. }, Reply::Ok) => self.stage = Stage::Ended,
            // The worker asks again later.
            (Command::Close { .. }, Reply::Ok)
            | (_, Reply::Fenced)
            | (Command::Join(_), Reply::Wait) => self.take_at = now + 100,
            (_, Reply::Joined(session)) => {
                (self.session, self.stage) = (Some(session), Stage::ClaimSetup);
                self.take_at = 0;
                self.renewed(now, call.first);
            }
            (_, Reply::Stale) => self.abandon(),
            (Command::Begin { job, .. }, _) => {
                for work in self.works.iter_mut().filter(|work| work.grant.id == job) {
                    work.begun = true;
                }
            }
            (Command::Claim { name, .. }, Reply::Cross(epoch)) => {
                let setup = name == "setup";
                self.stage = if setup { Stage::Opening(epoch) } else { Stage::Seeding(epoch, 0) };
            }
            (Command::OpenRun { .. }, Reply::Wait) => {}
            (Command::OpenRun { epoch, .. }, _) => self.stage = Stage::ReleaseSetup(epoch),
            (Command::Seed { epoch, last, .. }, _) => {
                let Stage::Seeding(_, from) = self.stage else { return };
                self.stage =
                    if last { Stage::ReleaseSeed(epoch) } else { Stage::Seeding(epoch, from + 2) };
            }
            (Command::Claim { name, .. }, Reply::Crossed(_))
            | (Command::Release { name, .. }, _) => {
                self.stage = if name == "setup" { Stage::ClaimSeed } else { Stage::Working };
            }
            (_, Reply::Granted { jobs, wait_ms }) => {
                self.take_at = now + wait_ms.unwrap_or(100).min(100);
                self.accept(now, call.first, jobs, dice);
            }
            _ => {}
        }
    }

    fn accept(&mut self, now: u64, asked: u64, jobs: Vec<Grant>, dice: &mut Dice) {
        for grant in jobs {
            // Most jobs are fast. Some take longer than their session lives.
            let slow = dice.chance(30);
            let lasts = if slow { dice.between(500, 2500) } else { dice.between(5, 120) };
            let lag = dice.pick(&[0, 0, 0, 0, 150, 150, 600]);
            let starts = now + dice.between(0, lag);
            let begun = !grant.alone;
            self.works.push(Work { grant, asked, starts, started: None, lasts, begun });
        }
    }

    /// The renewal that was sent at `sent`, by the worker's clock, is committed.
    pub(super) fn renewed(&mut self, now: u64, sent: u64) {
        if !self.solo {
            let sent = if self.bug == Bug::AckTimeLease { now } else { sent };
            let deadline = sent + TTL_MS - TTL_MS / 10;
            let known = if self.deadline == u64::MAX { 0 } else { self.deadline };
            self.deadline = known.max(deadline);
        }
    }
}

fn is_finish(command: &Command) -> bool {
    matches!(command, Command::Finish { .. })
}

fn open(session: SessionId, epoch: Epoch, order: &RunRequest) -> Command {
    let plan = RunPlan {
        identity: [1; 32],
        defs: [2; 32],
        config: [3; 32],
        date: String::new(),
        folder: String::new(),
        groups: vec![String::new()],
        appenders: 1,
        seats: order.seats.clone(),
        by_level: order.by_level,
        sequence: order.sequence.clone(),
        policy: order.policy,
    };
    let publish = Publication::default();
    Command::OpenRun { session, epoch, plan, publish, mode: order.mode }
}
