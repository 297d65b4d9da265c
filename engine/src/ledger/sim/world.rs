//! The simulated world: workers, network, store and appender, and the checks at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::appender::SimAppender;
use super::dice::Dice;
use super::leaders::StaleLeader;
use super::site::{Expected, PageBehavior, Site};
use super::store::SimStore;
use super::worker::{NodeView, RunRequest, TTL_MS, Worker};
use super::{Bug, Coverage};
use crate::ledger::{Command, Epoch, JoinRequest, OpenMode, Policy, Reply, Run, Seat, SessionId};

/// A message in transit.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "most are the large one")]
pub(super) enum SimMessage {
    Request { from: usize, life: u64, id: u64, command: Command },
    Reply { to: usize, life: u64, id: u64, reply: Reply },
    Renewal { from: usize, life: u64, session: SessionId, sent: u64 },
    Renewed { to: usize, life: u64, sent: u64 },
}

pub(super) struct World {
    pub(super) dice: Dice,
    pub(super) now: u64,
    bug: Bug,
    /// Whether workers and ledger are one process, which dies as a whole.
    pub(super) solo: bool,
    faults: bool,
    pub(super) site: Site,
    order: RunRequest,
    pub(super) store: SimStore,
    pub(super) workers: Vec<Worker>,
    pub(super) appender: SimAppender,
    pub(super) wire: BTreeMap<(u64, u64), SimMessage>,
    messages: u64,
    pub(super) renewals: Vec<(SessionId, SimMessage)>,
    pub(super) held: Vec<SimMessage>,
    beat_at: u64,
    /// Probability of a commit in one step, per mille.
    commit_chance: u64,
    /// No message arrives before this time.
    pub(super) cut_until: u64,
    /// There is no leader before this time.
    pub(super) leaderless_until: u64,
    /// A deposed leader that does not know it yet.
    pub(super) stale: Option<StaleLeader>,
    /// The voter that is disconnected at the end of the run.
    pub(super) away: Option<usize>,
    /// Crossings before this round.
    round_epoch: Epoch,
    /// Latest request on each polite lane.
    starts: BTreeMap<String, u64>,
    trace: u64,
    coverage: Coverage,
}

impl World {
    pub(super) fn new(seed: u64, bug: Bug) -> Self {
        let mut dice = Dice::new(seed);
        let solo = dice.chance(400);
        let site = Site::new(&mut dice);
        let delay_ms =
            if solo { dice.pick(&[0, 30, 200, 200]) } else { dice.pick(&[0, 0, 40, 150]) };
        let deadly = site.pages.iter().any(|page| page.nature == PageBehavior::Deadly);
        let policy = Policy {
            delay_ms,
            slots: dice.between(1, 4) as u32,
            lane_share_max: dice.pick(&[2, 32]),
            attempts_max: 4,
            session_ttl_ms: TTL_MS,
            doubt_ms: TTL_MS / 20,
            task_timeout_ms: dice.pick(&[300, 2000, 60_000]),
            deaths_before_isolation: dice.between(1, 3) as u32,
            poison_max: if deadly { dice.between(1, 3) as u32 } else { u32::MAX },
            end_wait_ms: 1500,
            auto_fence: !solo && dice.chance(100),
            ..Policy::default()
        };
        let voters = if solo { 1 } else { dice.between(2, 3) };
        let seats = voters + if solo { 0 } else { dice.below(3).saturating_sub(1) + dice.below(2) };
        let limit = dice.between(1, 6) as u32;
        let commit_chance = dice.pick(if solo { &[80, 120, 400] } else { &[120, 400, 900] });
        let workers = (0..seats).map(|seat| {
            let mut worker = Worker::new(seat, solo, limit, bug);
            worker.votes = seat < voters;
            worker.rate = if solo { 1000 } else { dice.between(980, 1020) };
            worker
        });
        let workers = workers.collect();
        Self {
            dice,
            now: 0,
            bug,
            solo,
            faults: true,
            order: RunRequest {
                mode: OpenMode::Continue,
                policy,
                by_level: site.depth_max.is_some(),
                sequence: site.sequence(),
                seats: (0..voters as u32).map(Seat).collect(),
            },
            site,
            store: SimStore::new(bug),
            workers,
            appender: SimAppender::default(),
            wire: BTreeMap::new(),
            messages: 0,
            renewals: Vec::new(),
            held: Vec::new(),
            beat_at: 0,
            commit_chance,
            cut_until: 0,
            leaderless_until: 0,
            stale: None,
            away: None,
            round_epoch: Epoch(0),
            starts: BTreeMap::new(),
            trace: 0,
            coverage: Coverage::new(),
        }
    }

    pub(super) fn end(self) -> (u64, Coverage) {
        (self.trace, self.coverage)
    }

    pub(super) fn note(&mut self, what: &'static str) {
        *self.coverage.entry(what).or_default() += 1;
        for byte in what.bytes().chain(self.now.to_le_bytes()) {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Plays faults, recovery and the final checks; then the same for a retry of the failed jobs.
    pub(super) fn play(&mut self) -> Result<(), String> {
        self.round()?;
        let failed = self.store.base.standing().failed;
        // In a run with levels, a retry may find a page at a smaller depth than before.
        if failed > 0 && self.site.depth_max.is_none() && self.dice.chance(600) {
            self.note("failed jobs retried");
            self.site.mended = true;
            self.order.mode = OpenMode::Retry;
            self.round()?;
        }
        Ok(())
    }

    fn round(&mut self) -> Result<(), String> {
        self.faults = true;
        let run = self.store.base.core().run.as_ref();
        (self.round_epoch, self.away) = (run.map_or(Epoch(0), |run| run.opened.0), None);
        for _ in 0..self.dice.between(60, 160) {
            self.step()?;
        }
        self.faults = false;
        for worker in &mut self.workers {
            worker.back_at = worker.back_at.min(self.now + 50);
            (worker.mute_until, worker.deaf_until) = (0, 0);
        }
        self.stale = None;
        if !self.solo && self.dice.chance(250) {
            let seat = self.dice.below(self.order.seats.len() as u64) as usize;
            if self.may_harm(seat) {
                self.workers[seat].die(u64::MAX);
                self.away = Some(seat);
            }
        }
        let mut steps = 0;
        while !self.is_settled() {
            self.step()?;
            self.let_in()?;
            steps += 1;
            if steps > 6000 {
                let workers: Vec<_> = self.workers.iter().map(Worker::words).collect();
                let standing = self.store.live.standing();
                return Err(format!("did not recover: {standing:?}, {workers:?}"));
            }
        }
        self.judge()?;
        self.close()
    }

    /// The run, if it was opened in this round.
    pub(super) fn run_of_round(&self) -> Option<&Run> {
        let run = self.store.base.core().run.as_ref();
        run.filter(|run| run.opened.0 > self.round_epoch)
    }

    /// The run as the node on a seat sees it.
    fn view(&self, seat: usize) -> NodeView {
        let Some(run) = self.run_of_round() else { return NodeView::default() };
        let standing = self.store.base.standing();
        NodeView {
            written: standing.over && self.appender.is_at(standing.output_seq, &run.positions[0]),
            closed: run.closed,
            unreported: run.lacks_end_report(Seat(seat as u32)),
        }
    }

    fn is_settled(&self) -> bool {
        if !self.solo {
            let closed = self.run_of_round().is_some_and(|run| run.closed);
            return closed && self.workers.iter().all(Worker::has_ended) && !self.store.is_dirty();
        }
        let standing = self.store.base.standing();
        let Some(run) = &self.store.base.core().run else { return false };
        standing.over
            && !run.closed
            && self.workers.iter().all(Worker::is_idle)
            && !self.store.is_dirty()
            && self.appender.is_at(standing.output_seq, &run.positions[0])
    }

    fn step(&mut self) -> Result<(), String> {
        // Messages within one process are fast.
        self.now += self.dice.between(1, if self.solo { 8 } else { 30 });
        while let Some(entry) = self.wire.first_entry().filter(|one| one.key().0 <= self.now) {
            let message = entry.remove();
            self.deliver(message)?;
        }
        for seat in 0..self.workers.len() {
            let view = self.view(seat);
            let (dice, site) = (&mut self.dice, &mut self.site);
            let actions = self.workers[seat].step(self.now, dice, site, &self.order, view);
            self.check_starts(&actions.starts)?;
            let life = self.workers[seat].life;
            for (id, command, again) in actions.sends {
                if again {
                    self.note("request resent");
                }
                self.post(SimMessage::Request { from: seat, life, id, command });
            }
            if let (true, Some(session)) = (actions.renews, self.workers[seat].session) {
                let sent = self.workers[seat].clock(self.now);
                self.post(SimMessage::Renewal { from: seat, life, session, sent });
            }
            if actions.died {
                self.note("killed by a page");
                self.kill(seat)?;
            }
        }
        self.keep()?;
        self.write()?;
        if self.faults { self.harm() } else { Ok(()) }
    }

    /// Sends beats, adds strays and commits.
    fn keep(&mut self) -> Result<(), String> {
        if !self.solo && self.now >= self.beat_at && self.now >= self.leaderless_until {
            self.beat_at = self.now + TTL_MS / 10;
            let due = std::mem::take(&mut self.renewals);
            let renewals = due.iter().map(|(session, _)| *session).collect();
            let before: Vec<_> = self.store.live.core().sessions.keys().copied().collect();
            let held = self.store.live.core().held();
            let mut sessions = self.store.live.core().sessions.values();
            let doubted = sessions.any(|session| session.doubted.is_some());
            self.store.apply(self.now, Command::Beat { renewals })?;
            let (now, core) = (self.store.live.core().held(), self.store.live.core());
            let fewer = |(id, count): (&SessionId, &u64)| {
                core.sessions.contains_key(id) && now.get(id).is_none_or(|now| now < count)
            };
            if held.iter().any(fewer) {
                self.note(if doubted { "jobs returned on a hint" } else { "job taken away" });
            }
            for session in before {
                if self.store.live.core().sessions.contains_key(&session) {
                    continue;
                }
                self.note("session expired");
                let now = self.now;
                if self.workers.iter().any(|worker| worker.relies_on(session, now)) {
                    return Err(String::from(
                        "T2: a session expired while its worker relied on it",
                    ));
                }
            }
            self.held.extend(due.into_iter().map(|(_, answer)| answer));
        }
        if self.bug == Bug::ReplyBeforeCommit {
            self.answer();
        }
        if self.store.is_dirty() && self.dice.chance(self.commit_chance) {
            self.store.commit()?;
            self.answer();
        }
        if self.dice.chance(300) {
            self.store.add_strays()?;
        }
        self.store.check()
    }

    fn answer(&mut self) {
        for message in std::mem::take(&mut self.held) {
            self.post(message);
        }
    }

    fn write(&mut self) -> Result<(), String> {
        let base = &self.store.base;
        let Some(run) = &base.core().run else { return Ok(()) };
        let position = &run.positions[0];
        if let Some(ack) = self.appender.step(&mut self.dice, position, base.tables(), self.bug)? {
            self.store.apply(self.now, ack)?;
        }
        if self.faults && self.dice.chance(10) {
            self.note("appender crashed");
            // The process of the ledger dies with it.
            self.restart_ledger()?;
        }
        Ok(())
    }

    #[expect(clippy::needless_pass_by_value, reason = "a sent message is consumed")]
    pub(super) fn post(&mut self, message: SimMessage) {
        let (mut copies, mut delay_max) = (1, 3);
        if !self.solo && self.faults {
            delay_max = if self.dice.chance(100) { 300 } else { 25 };
            if self.now < self.cut_until || self.is_cut(&message) || self.dice.chance(60) {
                self.note("message lost");
                copies = 0;
            } else if self.dice.chance(60) {
                self.note("message repeated");
                copies = 2;
            }
        }
        for _ in 0..copies {
            self.messages += 1;
            let at = self.now + self.dice.below(delay_max);
            self.wire.insert((at, self.messages), message.clone());
        }
    }

    fn deliver(&mut self, message: SimMessage) -> Result<(), String> {
        match message {
            SimMessage::Request { from, life, id, command } => {
                if let Some(stale) = self.stale.as_mut().filter(|one| one.leads(from, self.now)) {
                    let reply = stale.answer(self.now, &command, self.bug)?;
                    let answer = reply.map(|reply| SimMessage::Reply { to: from, life, id, reply });
                    if let Some(message) = answer {
                        self.post(message);
                    }
                    self.note("stale leader asked");
                    return Ok(());
                }
                if self.now < self.leaderless_until {
                    return Ok(());
                }
                self.request(from, life, id, command)
            }
            SimMessage::Reply { to, life, id, reply } => {
                let worker = &mut self.workers[to];
                let finishes = matches!(reply, Reply::Ok | Reply::Stale);
                if self.now < worker.back_at || (worker.life != life && !finishes) {
                    return Ok(());
                }
                if let Some(call) = worker.calls.iter().find(|call| call.id == id)
                    && !self.solo
                {
                    self.store.check_answer(&call.command, &reply)?;
                }
                worker.hear(self.now, id, reply, &mut self.dice);
                Ok(())
            }
            SimMessage::Renewal { from, life, session, sent } => {
                let answer = SimMessage::Renewed { to: from, life, sent };
                if self.stale.as_ref().is_some_and(|one| one.leads(from, self.now)) {
                    if self.bug == Bug::StaleLeaderAck {
                        self.post(answer);
                    }
                } else if self.now >= self.leaderless_until
                    && self.store.live.core().sessions.contains_key(&session)
                {
                    self.renewals.push((session, answer));
                }
                Ok(())
            }
            SimMessage::Renewed { to, life, sent } => {
                let worker = &mut self.workers[to];
                if worker.life == life && self.now >= worker.back_at {
                    worker.renewed(worker.clock(self.now), sent);
                }
                Ok(())
            }
        }
    }

    fn request(&mut self, from: usize, life: u64, id: u64, command: Command) -> Result<(), String> {
        let finish = match &command {
            Command::Finish { job, .. } => Some(!self.store.live.core().taken.contains_key(job)),
            _ => None,
        };
        let at_once = self.solo
            && !matches!(
                command,
                Command::Join(_)
                    | Command::OpenRun { .. }
                    | Command::Begin { .. }
                    | Command::Finish { .. }
                    | Command::Close { .. }
            );
        let (joins, before) =
            (matches!(command, Command::Join(_)), self.store.live.core().sessions.clone());
        let reply = self.store.apply(self.now, command)?;
        let sessions = &self.store.live.core().sessions;
        if joins && before.keys().any(|session| !sessions.contains_key(session)) {
            self.note("session replaced");
        }
        match (finish, &reply) {
            (Some(true), Reply::Ok) => self.note("late finish accepted"),
            (Some(_), Reply::Stale) => self.note("late finish refused"),
            (Some(false), _) => self.note("finish"),
            _ => self.note("command"),
        }
        let reply = SimMessage::Reply { to: from, life, id, reply };
        if at_once {
            self.post(reply);
        } else {
            self.held.push(reply);
        }
        Ok(())
    }

    /// Checks the delay between requests by real time, across deaths and nodes.
    fn check_starts(&mut self, started: &[String]) -> Result<(), String> {
        // Each of two clocks may be off by 2 %, and both round.
        let delay = self.order.policy.delay_ms;
        let delay = if self.solo { delay } else { (delay * 96 / 100).saturating_sub(2) };
        for lane in started {
            let last = self.starts.insert(lane.clone(), self.now);
            if let Some(gap) = last.map(|last| self.now - last)
                && gap < delay
            {
                return Err(format!("lane {lane} started after {gap} ms"));
            }
        }
        Ok(())
    }

    /// Checks that every job ended as its page determines, every block exists once, and the file is equal
    /// to the output.
    fn judge(&mut self) -> Result<(), String> {
        let tables = self.store.base.tables();
        let blocks = tables.output.iter().map(|one| (usize::from(one.key.0[0]), one.block.ordinal));
        let failed = tables.failed.values().map(|one| usize::from(one.job.new.key.0[0]));
        let known = tables.seen.iter().map(|key| usize::from(key.0[0]));
        let found = Expected {
            blocks: blocks.collect::<BTreeSet<_>>(),
            failed: failed.collect(),
            known: known.collect(),
        };
        // By rule T7 a death in isolation counts against the job, even if the network caused it.
        let scapegoats: BTreeSet<usize> = tables
            .failed
            .values()
            .filter(|one| one.job.lone_deaths >= self.order.policy.poison_max)
            .map(|one| usize::from(one.job.new.key.0[0]))
            .collect();
        let expected = self.site.expected(&scapegoats, &found.known);
        if found != expected {
            return Err(format!("found {found:?}, expected {expected:?}"));
        }
        if tables.output.len() != expected.blocks.len() {
            return Err(String::from("a block was committed twice"));
        }
        let written: Vec<u8> =
            tables.output.iter().flat_map(|one| one.block.bytes.iter().copied()).collect();
        if written != self.appender.file() {
            return Err(String::from("the file differs from the output"));
        }
        let full = self.site.quota == Some((expected.known.len() - self.site.roots.len()) as u64);
        let run = self.store.base.core().run.as_ref();
        let levels = run.is_some_and(|run| run.plan.by_level);
        let ordered = run.is_some_and(|run| !run.plan.sequence.is_empty());
        let jobs = tables.failed.values();
        let isolated = jobs.clone().filter(|one| one.job.deaths > 0).count();
        let poisoned = jobs.filter(|one| one.job.lone_deaths > 0).count();
        let innocent = scapegoats.iter().filter(|page| !self.site.is_deadly(**page)).count();
        if full {
            self.note("quota reached");
        }
        if levels {
            self.note("levels kept");
        }
        if ordered {
            self.note("groups in order");
        }
        (0..innocent).for_each(|_| self.note("innocent poisoned"));
        (0..isolated).for_each(|_| self.note("job isolated"));
        (0..poisoned).for_each(|_| self.note("job poisoned"));
        Ok(())
    }

    /// Closes the run after all workers have left. In a cluster the workers have done that themselves.
    fn close(&mut self) -> Result<(), String> {
        if !self.solo {
            return self.check_end();
        }
        self.wire.clear();
        self.held.clear();
        self.renewals.clear();
        let nonce = 999_999 + self.now;
        let arrival = JoinRequest { nonce, life: nonce, seat: Seat(0), votes: true, alone: true };
        let Reply::Joined(session) = self.store.apply(self.now, Command::Join(arrival))? else {
            return Err(String::from("the last session could not join"));
        };
        if self.store.apply(self.now, Command::Close { session })? != Reply::Ok {
            return Err(String::from("the run could not be closed"));
        }
        self.store.apply(self.now, Command::Leave { session })?;
        for worker in &mut self.workers {
            worker.die(self.now + 1);
        }
        self.store.commit()
    }
}
