//! The actions of the model, and the checks after each one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::{Bench, again, block, done, job, plan};
use super::Bug;
use crate::ledger::{
    Command, Grant, JobId, JobKey, JoinRequest, Ledger, MemoryTables, OnError, OpenMode, Outcome,
    Policy, Reply, Seat, SessionId, Stamp, Token, violations,
};

/// The step of the clock; all settings are multiples of it.
pub(super) const TICK_MS: u64 = 1000;
/// Most jobs of one `Take`.
const LIMIT: u32 = 2;

/// One action. The numbers are indexes of a node and of a job that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Begin,
    /// A node asks for a session, in a new process if it was down, and drops its jobs.
    Join(usize),
    Take(usize),
    /// The reply to a Take is lost.
    TakeUnheard(usize),
    /// The node repeats the Take and gets the reply.
    TakeAgain(usize),
    /// The tasks of an isolated job begin.
    Start(usize, usize),
    Finish(usize, usize),
    Retry(usize, usize),
    Return(usize, usize),
    Leave(usize),
    /// A node dies. One of its results may still arrive.
    Crash(usize, Option<usize>),
    /// The renewals of a node are lost until its session has expired. The node does not notice.
    Silence(usize),
    /// The leader finds the connections of a node closed. The node may be alive or dead.
    Doubt(usize),
    /// The clock advances, and every node that is heard renews its session.
    Beat,
    /// The last join or result of a node arrives a second time, or late.
    Again(usize),
}

/// A job that a node believes it holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct HeldJob {
    pub(super) job: JobId,
    pub(super) token: Token,
    /// Whether its tasks may run.
    pub(super) begun: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Node {
    /// Number of its process; `None` if it is down.
    pub(super) life: Option<u64>,
    pub(super) session: Option<SessionId>,
    pub(super) held: Vec<HeldJob>,
    /// Number of the latest Take, and whether its reply is missing.
    pub(super) takes: u64,
    pub(super) unheard: bool,
    pub(super) silent: bool,
    /// The last join or result that it sent.
    pub(super) last_sent: Option<Command>,
}

#[derive(Clone)]
pub(super) struct State {
    pub(super) ledger: Ledger<MemoryTables>,
    pub(super) ms: u64,
    pub(super) nodes: [Node; 2],
    /// Deaths and other faults that may still happen.
    pub(super) crashes: u32,
    pub(super) faults: u32,
    /// The last number drawn for a join or a process.
    pub(super) drawn: u64,
    /// The newest token of each job, until a result has used it.
    pub(super) newest: BTreeMap<JobId, Token>,
    bug: Bug,
}

fn policy() -> Policy {
    Policy {
        delay_ms: 1,
        slots: 1,
        attempts_max: 2,
        session_ttl_ms: 2 * TICK_MS,
        doubt_ms: TICK_MS,
        deaths_before_isolation: 1,
        poison_max: 1,
        on_error: OnError::Fail,
        ..Policy::default()
    }
}

/// The result of a page: one block of rows. Page 1 also links to page 3.
fn harvest(id: JobId) -> Outcome {
    let children = if id == JobId(1) { vec![job(3, "local"), job(2, "a")] } else { Vec::new() };
    done(vec![block(0)], children)
}

impl State {
    /// Two nodes, a run, one job on a lane without a delay and one on a polite lane.
    pub(super) fn begin(bug: Bug, crashes: u32, faults: u32) -> Self {
        let mut bench = Bench::new();
        let sessions = [bench.join(false), bench.join(false)];
        bench.open(sessions[0], plan(1, policy()), OpenMode::Continue);
        bench.seed(sessions[0], vec![job(1, "local"), job(2, "a")]);
        let nodes = [1, 2].map(|seat| Node {
            life: Some(seat),
            session: Some(sessions[seat as usize - 1]),
            ..Node::default()
        });
        Self {
            ledger: bench.ledger,
            ms: bench.ms,
            nodes,
            crashes,
            faults,
            drawn: 2,
            newest: BTreeMap::new(),
            bug,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.ledger.standing().over
    }

    fn lives(&self, node: usize) -> bool {
        let own = self.nodes[node].session;
        own.is_some_and(|session| self.ledger.core().sessions.contains_key(&session))
    }

    /// All possible actions.
    pub(super) fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::Beat];
        for (number, node) in self.nodes.iter().enumerate() {
            let mut add = |action| actions.push(action);
            let held = 0..node.held.len();
            if node.last_sent.is_some() {
                add(Action::Again(number));
            }
            add(Action::Join(number));
            if node.life.is_some() {
                add(Action::Crash(number, None));
                held.clone().for_each(|at| add(Action::Crash(number, Some(at))));
            }
            if node.session.is_none() {
                continue;
            }
            if self.lives(number) && !node.silent {
                add(Action::Silence(number));
            }
            if self.lives(number) {
                add(Action::Doubt(number));
            }
            add(Action::Leave(number));
            if node.unheard {
                add(Action::TakeAgain(number));
                continue;
            }
            add(Action::Take(number));
            add(Action::TakeUnheard(number));
            for at in held {
                add(Action::Return(number, at));
                if !node.held[at].begun {
                    add(Action::Start(number, at));
                    continue;
                }
                add(Action::Finish(number, at));
                add(Action::Retry(number, at));
            }
        }
        actions.retain(|action| match action {
            // The nodes are interchangeable, so only the first one dies.
            Action::Crash(node, _) => *node == 0 && self.crashes > 0,
            action => self.faults > 0 || self.is_good(*action),
        });
        actions
    }

    /// Whether the action is no fault.
    pub(super) fn is_good(&self, action: Action) -> bool {
        match action {
            Action::Join(node) => !self.lives(node),
            Action::Take(_)
            | Action::TakeAgain(_)
            | Action::Start(..)
            | Action::Finish(..)
            | Action::Beat
            | Action::Begin => true,
            _ => false,
        }
    }

    /// The state after an action, or the violation.
    pub(super) fn step(&self, action: Action) -> Result<Self, String> {
        let mut next = self.clone();
        match action {
            Action::Crash(..) => next.crashes -= 1,
            action => next.faults -= u32::from(!self.is_good(action)),
        }
        next.act(action)?;
        if self.is_over() && !next.is_over() {
            return Err(String::from("I10: a run that was over is not"));
        }
        if !self.ended().is_subset(&next.ended()) {
            return Err(String::from("a job that had ended is open again"));
        }
        Ok(next)
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Begin => {}
            Action::Join(node) => self.join(node)?,
            Action::Take(node) | Action::TakeUnheard(node) => {
                self.nodes[node].takes += 1;
                self.nodes[node].unheard = true;
                let reply = self.take(node)?;
                if action == Action::Take(node) {
                    self.hear(node, reply);
                }
            }
            Action::TakeAgain(node) => {
                let reply = self.take(node)?;
                self.hear(node, reply);
            }
            Action::Start(node, at) => self.start(node, at)?,
            Action::Finish(node, at) => {
                let job = self.nodes[node].held[at].job;
                self.finish(node, at, harvest(job))?;
            }
            Action::Retry(node, at) => self.finish(node, at, again(TICK_MS, None))?,
            Action::Return(node, at) => {
                let held_job = self.nodes[node].held.remove(at);
                let (session, jobs) = (self.session(node), vec![(held_job.job, held_job.token)]);
                self.send(node, Command::Return { session, jobs })?;
            }
            Action::Leave(node) => {
                let session = self.session(node);
                self.send(node, Command::Leave { session })?;
                let last_sent = self.nodes[node].last_sent.take();
                self.nodes[node] = Node { last_sent, ..Node::default() };
            }
            Action::Crash(node, last_word) => {
                let mut last_sent = self.nodes[node].last_sent.take();
                if let Some(at) = last_word {
                    let HeldJob { job, token, .. } = self.nodes[node].held[at];
                    last_sent = Some(self.result(node, job, token, harvest(job)));
                }
                self.nodes[node] = Node { last_sent, ..Node::default() };
            }
            Action::Silence(node) => self.nodes[node].silent = true,
            Action::Doubt(node) => {
                let session = self.session(node);
                self.apply(Command::Doubt { session })?;
            }
            Action::Beat => self.beat()?,
            Action::Again(node) => {
                if let Some(last_sent) = self.nodes[node].last_sent.clone() {
                    self.apply(last_sent)?;
                }
            }
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), String> {
        self.ms += TICK_MS;
        let heard = self.nodes.iter().filter(|node| !node.silent);
        let renewals = heard.filter_map(|node| node.session).collect();
        self.apply(Command::Beat { renewals })?;
        for node in 0..2 {
            self.nodes[node].silent &= self.lives(node);
        }
        Ok(())
    }

    fn session(&self, node: usize) -> SessionId {
        self.nodes[node].session.unwrap_or(SessionId(u64::MAX))
    }

    fn join(&mut self, node: usize) -> Result<(), String> {
        if self.bug == Bug::RevivedSession && self.lives(node) {
            self.nodes[node].held.clear();
            return Ok(());
        }
        self.drawn += 1;
        let (nonce, seat) = (self.drawn, Seat(node as u32 + 1));
        let life = self.nodes[node].life.unwrap_or(nonce);
        let arrival = JoinRequest { nonce, life, seat, votes: true, alone: false };
        let reply = self.send(node, Command::Join(arrival))?;
        let session = if let Reply::Joined(session) = reply { Some(session) } else { None };
        let last_sent = self.nodes[node].last_sent.take();
        self.nodes[node] = Node { life: Some(life), session, last_sent, ..Node::default() };
        Ok(())
    }

    fn take(&mut self, node: usize) -> Result<Reply, String> {
        let (session, number) = (self.session(node), self.nodes[node].takes);
        self.send(node, Command::Take { session, number, limit: LIMIT, ahead: u32::MAX })
    }

    fn hear(&mut self, node: usize, reply: Reply) {
        let node = &mut self.nodes[node];
        node.unheard = false;
        if let Reply::Granted { jobs, .. } = reply {
            node.held.extend(jobs.iter().map(held_job));
        } else {
            // Its session has ended.
            (node.session, node.held) = (None, Vec::new());
        }
    }

    fn start(&mut self, node: usize, at: usize) -> Result<(), String> {
        let (session, held_job) = (self.session(node), self.nodes[node].held[at].clone());
        let begin = Command::Begin { session, job: held_job.job, token: held_job.token };
        match self.send(node, begin)? {
            Reply::Ok => self.nodes[node].held[at].begun = true,
            _ => drop(self.nodes[node].held.remove(at)),
        }
        Ok(())
    }

    fn result(&self, node: usize, job: JobId, token: Token, outcome: Outcome) -> Command {
        let session = self.session(node);
        Command::Finish { session, job, token, since_start_ms: None, outcome }
    }

    fn finish(&mut self, node: usize, at: usize, outcome: Outcome) -> Result<(), String> {
        let HeldJob { job, token, .. } = self.nodes[node].held.remove(at);
        let finish = self.result(node, job, token, outcome);
        self.send(node, finish).map(drop)
    }

    fn send(&mut self, node: usize, command: Command) -> Result<Reply, String> {
        if matches!(command, Command::Join(_) | Command::Finish { .. }) {
            self.nodes[node].last_sent = Some(command.clone());
        }
        self.apply(command)
    }

    /// Applies a command twice and checks that the second time changes nothing.
    fn apply(&mut self, command: Command) -> Result<Reply, String> {
        let wanted = match &command {
            Command::Finish { job, token, .. } => Some((*job, self.counts(*job, *token))),
            _ => None,
        };
        let reply = self.apply_once(command.clone())?;
        match (wanted, &reply) {
            (Some((_, false)), Reply::Ok) => return Err(String::from("I4: an old token counted")),
            (Some((_, true)), Reply::Stale) => {
                return Err(String::from("a result was refused while no other node has the job"));
            }
            (Some((job, _)), Reply::Ok) => drop(self.newest.remove(&job)),
            _ => {}
        }
        if let Reply::Granted { jobs, .. } = &reply {
            self.newest.extend(jobs.iter().map(|grant| (grant.id, grant.token)));
        }
        let (core, tables) = (self.ledger.core().clone(), self.ledger.tables().clone());
        self.apply_once(command)?;
        let now = self.ledger.tables();
        let same = *self.ledger.core() == core
            && (&now.jobs, &now.queue, &now.failed)
                == (&tables.jobs, &tables.queue, &tables.failed)
            && now.output == tables.output;
        if same {
            Ok(reply)
        } else {
            Err(String::from("a command changed something the second time"))
        }
    }

    fn apply_once(&mut self, mut command: Command) -> Result<Reply, String> {
        match (&mut command, self.bug) {
            (Command::Finish { job, token, .. }, Bug::NoTokenCheck) => {
                if let Some(taken) = self.ledger.core.taken.get(job) {
                    *token = taken.token;
                }
            }
            (Command::Take { session, number, .. }, Bug::TakeAnew) => {
                if let Some(own) = self.ledger.core.sessions.get_mut(session) {
                    own.last_take = own.last_take.min(*number - 1);
                }
            }
            _ => {}
        }
        let stamp = Stamp { leadership: 1, ms: self.ms };
        let taken: Vec<JobId> = self.ledger.core.taken.keys().copied().collect();
        let reply = self.ledger.apply(stamp, command).map_err(|error| error.message)?;
        if matches!(self.bug, Bug::LostWithItsWorker | Bug::LastTokenForgotten) {
            self.spoil(&taken);
        }
        Ok(reply)
    }

    /// Applies a planted bug to jobs that were queued again.
    fn spoil(&mut self, taken: &[JobId]) {
        let Ledger { core, tables, .. } = &mut self.ledger;
        for id in taken.iter().filter(|id| !core.taken.contains_key(id)) {
            let Some(job) = tables.jobs.get_mut(id).filter(|job| job.deaths > 0) else { continue };
            if self.bug == Bug::LastTokenForgotten {
                job.last_token = Token(0);
            } else {
                tables.jobs.remove(id);
                tables.queue.retain(|(.., queued)| queued != id);
            }
        }
    }

    /// Whether a result must count: its token is the newest of its job and unused.
    fn counts(&self, job: JobId, token: Token) -> bool {
        let open = self.ledger.tables().jobs.contains_key(&job);
        open && self.newest.get(&job) == Some(&token)
    }

    /// Checks the invariants of every state.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(words) = violations(&self.ledger).first() {
            return Err(words.clone());
        }
        let tables = self.ledger.tables();
        let failed = tables.failed.values().map(|failed| failed.job.new.key);
        let done: Vec<JobKey> = self.ended().difference(&failed.collect()).copied().collect();
        let mut rows: Vec<JobKey> = tables.output.iter().map(|output| output.key).collect();
        rows.sort_unstable();
        if rows != done {
            return Err(String::from("I1: a job has its rows once if it is done, else none"));
        }
        Ok(())
    }

    fn ended(&self) -> BTreeSet<JobKey> {
        let tables = self.ledger.tables();
        let open: BTreeSet<JobKey> = tables.jobs.values().map(|job| job.new.key).collect();
        tables.seen.difference(&open).copied().collect()
    }
}

fn held_job(grant: &Grant) -> HeldJob {
    HeldJob { job: grant.id, token: grant.token, begun: !grant.alone }
}
