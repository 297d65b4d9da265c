//! The simulated store: applies at once, commits in batches, and loses uncommitted entries when it dies.

use std::collections::BTreeMap;

use super::Bug;
use crate::ledger::jobs::OpenGrant;
use crate::ledger::lanes::Lanes;
use crate::ledger::{
    Command, Core, JobId, Lane, LaneId, Ledger, MemoryTables, NewJob, OpenMode, Outcome, Reply,
    Stamp, Token, violations,
};

/// One entry of the log.
#[expect(clippy::large_enum_variant, reason = "most are the large one")]
enum Entry {
    Command(Stamp, Command),
    /// Only a planted bug commits links separately from their page.
    Children(Vec<NewJob>),
}

pub(super) struct SimStore {
    pub(super) live: Ledger<MemoryTables>,
    /// The state after a restart: the same entries, applied again at each commit.
    pub(super) base: Ledger<MemoryTables>,
    tail: Vec<Entry>,
    bug: Bug,
    leadership: u64,
    began: u64,
    /// Speed of the leader's clock, per mille.
    rate: u64,
    stray: Vec<NewJob>,
    /// Latest start on each lane, in ledger time: now and as of the commit.
    starts: [BTreeMap<LaneId, u64>; 2],
    /// Latest token of a polite lane, likewise.
    tokens: [u64; 2],
    /// Latest token of each job, likewise.
    latest: [BTreeMap<JobId, Token>; 2],
    was_over: bool,
    unchecked: bool,
}

impl SimStore {
    pub(super) fn new(bug: Bug) -> Self {
        let empty = || Ledger::new(Core::default(), [], MemoryTables::default());
        Self {
            live: empty(),
            base: empty(),
            tail: Vec::new(),
            bug,
            leadership: 1,
            began: 0,
            rate: 1000,
            stray: Vec::new(),
            starts: [BTreeMap::new(), BTreeMap::new()],
            tokens: [0; 2],
            latest: [BTreeMap::new(), BTreeMap::new()],
            was_over: false,
            unchecked: false,
        }
    }

    pub(super) fn apply(&mut self, now: u64, command: Command) -> Result<Reply, String> {
        let stamp = self.stamp(now);
        let command = self.spoil(command);
        let opens = matches!(&command, Command::OpenRun { mode: OpenMode::Continue, .. });
        let before = self.live.core().run.as_ref().filter(|run| run.closed);
        let before =
            before.map(|run| (run.number, run.plan.seats.iter().any(|s| run.lacks_end_report(*s))));
        let finish = match &command {
            Command::Finish { job, token, .. } => Some((*job, *token)),
            _ => None,
        };
        let last = self.live.core().next_token;
        let reply = apply(&mut self.live, stamp, command.clone(), self.bug)?;
        self.tail.push(Entry::Command(stamp, command));
        if let (true, Some((number, true)), Some(run)) = (opens, before, &self.live.core().run)
            && run.number != number
        {
            return Err(String::from(
                "a run began before a seat had reported the end of the last one",
            ));
        }
        if let (Some((job, token)), Reply::Ok) = (finish, &reply)
            && self.latest[0].get(&job).is_some_and(|latest| token < *latest)
        {
            return Err(String::from("I4: a result with an older token counted"));
        }
        if let Reply::Granted { jobs, .. } = &reply {
            self.latest[0].extend(jobs.iter().map(|grant| (grant.id, grant.token)));
            let fresh = jobs.iter().map(|grant| (grant.id, grant.token));
            for (id, token) in fresh.collect::<Vec<_>>() {
                self.check_start(id, token)?;
            }
            // A resend may arrive after a link has opened an earlier level.
            let (core, tables) = (self.live.core(), self.live.tables());
            let levels = jobs.iter().filter(|grant| grant.token.0 > last);
            let levels = levels.filter_map(|grant| tables.jobs.get(&grant.id));
            if levels.map(|job| core.level_of(job)).any(|level| Some(level) != core.level())
                && core.level().is_some()
            {
                return Err(String::from("C2: a job started before those of smaller levels"));
            }
        }
        self.unchecked = true;
        Ok(reply)
    }

    /// Checks all invariants if anything was applied since the last check.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.unchecked) {
            return Ok(());
        }
        match violations(&self.live).first() {
            Some(words) => Err(words.clone()),
            None => Ok(()),
        }
    }

    /// Separates links from their page if that bug is planted.
    fn spoil(&mut self, mut command: Command) -> Command {
        if self.bug == Bug::SplitCommit
            && let Command::Finish { outcome: Outcome::Done(harvest), .. } = &mut command
        {
            self.stray.append(&mut harvest.children);
        }
        command
    }

    /// Checks the delay by ledger time, and the slots.
    fn check_start(&mut self, id: JobId, token: Token) -> Result<(), String> {
        let (core, policy) = (self.live.core(), self.live.policy());
        let Some(taken) = core.taken.get(&id).filter(|taken| taken.token == token) else {
            return Ok(());
        };
        let lane = taken.lane;
        if !self.live.lanes().any(|(id, own)| id == lane && own.polite) {
            return Ok(());
        }
        let (holder, exclusive) = (taken.session, policy.delay_ms > 0);
        let counts =
            |taken: &&OpenGrant| taken.lane == lane && (exclusive || taken.session == holder);
        let flying = core.taken.values().filter(counts).count();
        if flying > policy.slots as usize {
            return Err(format!("lane {} has {flying} in flight", lane.0));
        }
        if token.0 <= self.tokens[0] {
            return Ok(()); // A resend.
        }
        self.tokens[0] = token.0;
        let last = self.starts[0].insert(lane, core.clock);
        match last {
            Some(last) if core.clock < last + policy.delay_ms => {
                Err(format!("lane {} started {} ms after its last", lane.0, core.clock - last))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_dirty(&self) -> bool {
        !self.tail.is_empty()
    }

    pub(super) fn add_strays(&mut self) -> Result<(), String> {
        if !self.stray.is_empty() {
            let children = std::mem::take(&mut self.stray);
            add(&mut self.live, children.clone())?;
            self.tail.push(Entry::Children(children));
        }
        Ok(())
    }

    /// Commits the first `count` entries.
    fn commit_some(&mut self, count: usize) -> Result<(), String> {
        for entry in self.tail.drain(..count).collect::<Vec<_>>() {
            match entry {
                Entry::Command(stamp, command) => {
                    let reply = apply(&mut self.base, stamp, command, self.bug)?;
                    self.remember_grants(&reply);
                }
                Entry::Children(children) => add(&mut self.base, children)?,
            }
        }
        Ok(())
    }

    fn remember_grants(&mut self, reply: &Reply) {
        let Reply::Granted { jobs, .. } = reply else { return };
        for grant in jobs {
            self.latest[1].insert(grant.id, grant.token);
            let taken = self.base.core().taken.get(&grant.id);
            if let Some(lane) = taken.filter(|_| grant.job.polite).map(|taken| taken.lane)
                && grant.token.0 > self.tokens[1]
            {
                self.tokens[1] = grant.token.0;
                self.starts[1].insert(lane, self.base.core().clock);
            }
        }
    }

    /// Commits all entries and checks that they lead to the same state.
    pub(super) fn commit(&mut self) -> Result<(), String> {
        self.commit_some(self.tail.len())?;
        if self.base.core() != self.live.core() {
            return Err(String::from("I8: the same commands led to another state"));
        }
        let over = self.base.standing().over;
        if self.was_over && !over {
            return Err(String::from("I10: a run that was over is not over any more"));
        }
        // A closed run may be opened again to retry its failed jobs.
        self.was_over = over && self.base.core().run.as_ref().is_some_and(|run| !run.closed);
        Ok(())
    }

    /// Number of uncommitted entries.
    pub(super) fn uncommitted(&self) -> usize {
        self.tail.len()
    }

    /// Another node becomes leader. It has the first `survive` uncommitted entries; the rest is lost.
    pub(super) fn elect(&mut self, now: u64, survive: usize, rate: u64) -> Result<(), String> {
        self.commit_some(survive)?;
        self.rate = rate;
        self.restart(now)
    }

    /// The ledger of the old leader: with the lost entries, and without later ones.
    pub(super) fn fork(&self) -> Ledger<MemoryTables> {
        let lanes: Vec<_> = self.live.lanes().map(|(id, lane)| (id, lane.clone())).collect();
        Ledger::new(self.live.core().clone(), lanes, self.live.tables().clone())
    }

    /// The stamp of the current leader for a command.
    pub(super) fn stamp(&self, now: u64) -> Stamp {
        Stamp { leadership: self.leadership, ms: (now - self.began) * self.rate / 1000 }
    }

    /// Checks that what a reply to a worker confirmed is committed.
    pub(super) fn check_answer(&self, asked: &Command, reply: &Reply) -> Result<(), String> {
        let core = self.base.core();
        let kept = match (asked, reply) {
            (Command::Finish { job, token, .. }, Reply::Ok) => {
                core.taken.get(job).is_none_or(|taken| taken.token != *token)
            }
            (Command::Join(_), Reply::Joined(session)) => session.0 <= core.next_session,
            (Command::Close { .. } | Command::Begin { .. }, Reply::Ok) => core.run.is_some(),
            (Command::Take { .. }, Reply::Granted { jobs, .. }) => {
                jobs.iter().all(|grant| grant.token.0 <= core.next_token)
            }
            _ => true,
        };
        if kept { Ok(()) } else { Err(format!("{reply:?} was sent and is lost")) }
    }

    /// The process dies, and another loads the committed state.
    pub(super) fn restart(&mut self, now: u64) -> Result<(), String> {
        self.tail.clear();
        self.stray.clear();
        self.leadership += 1;
        self.began = now;
        self.starts[0] = self.starts[1].clone();
        self.tokens[0] = self.tokens[1];
        self.latest[0] = self.latest[1].clone();
        self.base.save_lanes().map_err(|error| error.message)?;
        let core = postcard::to_stdvec(self.base.core()).map_err(|error| error.to_string())?;
        let core: Core = postcard::from_bytes(&core).map_err(|error| error.to_string())?;
        let tables = self.base.tables().clone();
        let lanes = tables.lanes.iter().map(|(id, bytes)| {
            let lane: Result<Lane, _> = postcard::from_bytes(bytes);
            lane.map(|lane| (*id, lane)).map_err(|error| error.to_string())
        });
        let mut lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        if self.bug == Bug::LanesNotStored {
            lanes.clear();
        }
        self.live = Ledger::new(core, lanes, tables);
        if self.bug == Bug::QuotaForgotten {
            for run in self.live.core.run.iter_mut().chain(&mut self.base.core.run) {
                run.added.clear();
            }
        }
        if self.live.standing() != self.base.standing() {
            return Err(String::from("a restart changed the standing"));
        }
        match violations(&self.live).first() {
            Some(words) => Err(format!("after a restart: {words}")),
            None => Ok(()),
        }
    }
}

fn add(ledger: &mut Ledger<MemoryTables>, children: Vec<NewJob>) -> Result<(), String> {
    for child in children {
        ledger.add_job(child).map_err(|error| error.message)?;
    }
    Ok(())
}

/// Applies a command, with the planted mistake if there is one.
fn apply(
    ledger: &mut Ledger<MemoryTables>,
    stamp: Stamp,
    mut command: Command,
    bug: Bug,
) -> Result<Reply, String> {
    match (&mut command, bug) {
        (Command::Finish { job, token, .. }, Bug::NoTokenCheck) => {
            if let Some(taken) = ledger.core.taken.get(job) {
                *token = taken.token;
            }
        }
        (Command::Finish { outcome: Outcome::Done(harvest), .. }, Bug::NoDedupe) => {
            for child in &harvest.children {
                ledger.tables.seen.remove(&child.key);
            }
        }
        (Command::Take { session, number, .. }, Bug::TakeAnew) => {
            if let Some(own) = ledger.core.sessions.get_mut(session) {
                own.last_take = own.last_take.min(*number - 1);
            }
        }
        (Command::Finish { since_start_ms, .. }, Bug::GapFromGrant) => *since_start_ms = None,
        (Command::OpenRun { .. }, Bug::EndForgotten) => {
            if let Some(run) = &mut ledger.core.run {
                run.end_reported.extend(run.plan.seats.clone());
            }
        }
        (Command::Doubt { session }, Bug::DoubtIsProof) => {
            ledger.end(*session, true).map_err(|error| error.message)?;
        }
        (Command::Take { .. }, Bug::AnyLevel) => {
            let policy = ledger.policy();
            ledger.lanes.open_level(None);
            ledger.lanes.arrange_all(&policy);
        }
        _ => {}
    }
    let pauses = |ledger: &Ledger<MemoryTables>| -> Vec<_> {
        ledger.lanes().map(|(id, lane)| (id, lane.clone())).collect()
    };
    let hands_over = !matches!(command, Command::Take { .. } | Command::Finish { .. });
    let before = if bug == Bug::NoHandOverGap { pauses(ledger) } else { Vec::new() };
    if let (Command::Take { session, .. }, Bug::NoExclusiveLanes) = (&command, bug) {
        let taken = ledger.core.taken.clone();
        for taken in ledger.core.taken.values_mut() {
            taken.session = *session;
        }
        rearrange(ledger, pauses(ledger));
        ledger.core.taken = taken;
    }
    let reply = ledger.apply(stamp, command).map_err(|error| error.message)?;
    match bug {
        Bug::NoGap => {
            ledger.core.gap_from = None;
            rearrange(ledger, pauses(ledger));
        }
        Bug::NoDelay => {
            let mut lanes = pauses(ledger);
            for (_, lane) in &mut lanes {
                (lane.next_at, lane.floor) = (0, 0);
            }
            rearrange(ledger, lanes);
        }
        Bug::NoHandOverGap if hands_over => {
            let mut lanes = pauses(ledger);
            for ((_, lane), (_, old)) in lanes.iter_mut().zip(before) {
                (lane.next_at, lane.floor) = (old.next_at, old.floor);
            }
            rearrange(ledger, lanes);
        }
        Bug::NoExclusiveLanes => rearrange(ledger, pauses(ledger)),
        _ => {}
    }
    Ok(reply)
}

/// Rebuilds the lanes from their stored form and the jobs in flight.
fn rearrange(ledger: &mut Ledger<MemoryTables>, lanes: Vec<(LaneId, Lane)>) {
    let policy = ledger.policy();
    ledger.lanes = Lanes::restore(lanes, &ledger.core.taken, ledger.core.gap_from);
    ledger.lanes.open_level(ledger.core.level());
    ledger.lanes.arrange_all(&policy);
    // All of them are written again.
    for id in ledger.lanes().map(|(id, _)| id).collect::<Vec<_>>() {
        ledger.lanes.change(id, &policy, |_| {});
    }
}
