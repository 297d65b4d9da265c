//! The contract of every store: random commands get the same replies as from a ledger in memory, and the
//! same state can be read back. The store is closed and reopened at random.

mod cluster;
mod histories;
mod wing_gong;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Answer, OpenOptions, Question, SoloHandle, SoloStore, SoloThread, Store, StoreError};
use crate::ledger::{
    Block, Command, Core, Epoch, FailedJob, Grant, Harvest, JobId, JobKey, JoinRequest, Ledger,
    MemoryTables, NewJob, OpenMode, Outcome, OutputBlock, Policy, Position, Publication, Quota,
    Reply, RunPlan, Seat, SessionId, Stamp, Tables, Tally, Token,
};

/// `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

/// A store under test.
trait Subject {
    /// Opens a new store.
    fn open() -> Self;
    fn store(&self) -> Arc<dyn Store>;
    /// Closes the store, or one of its nodes, and opens it again.
    fn reopen(&mut self, dice: &mut Dice);
}

/// The store of one process.
struct Solo {
    dir: tempfile::TempDir,
    store: Option<(SoloHandle, SoloThread)>,
}

impl Subject for Solo {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Some(SoloHandle::open(&options(dir.path())).unwrap());
        Self { dir, store }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(SoloStore { handle: self.store.as_ref().unwrap().0.clone() })
    }

    fn reopen(&mut self, _dice: &mut Dice) {
        let (_, thread) = self.store.take().unwrap();
        thread.close();
        self.store = Some(SoloHandle::open(&options(self.dir.path())).unwrap());
    }
}

/// The store under test and the model beside it.
struct Pair<S> {
    subject: S,
    model: Ledger<MemoryTables>,
    sessions: Vec<SessionId>,
    epochs: Vec<Epoch>,
    grants: Vec<Grant>,
    dice: Dice,
    ms: u64,
}

/// Copies the files of a ledger, as a kill would leave them.
fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    for name in ["state.db", "state.db-wal", "state.journal"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

fn options(dir: &std::path::Path) -> OpenOptions {
    OpenOptions {
        dir: dir.to_path_buf(),
        in_memory: false,
        commit_interval: Duration::from_millis(1),
        commit_max: 50,
        queue_max: 16,
        seen_memory: SEEN_MEMORY,
        journal_max: 16 << 10,
    }
}

/// Memory for eight keys, so that runs are written and merged often.
const SEEN_MEMORY: u64 = 8 * 160;

/// The join of a new process on one of a few seats.
fn join(nonce: u64, alone: bool) -> Command {
    let seat = Seat(1 + (nonce % 4) as u32);
    Command::Join(JoinRequest { nonce, life: nonce, seat, votes: true, alone })
}

fn key(number: u64) -> JobKey {
    let mut key = [7; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    JobKey(key)
}

impl Pair<Solo> {
    /// Checks that a copy of the files of the open store has no damage and can be opened.
    fn image(&mut self) {
        self.store().ask_blocking(Question::Flush).unwrap();
        let copy = tempfile::tempdir().unwrap();
        copy_files(self.subject.dir.path(), copy.path());
        assert_eq!(
            super::examine(copy.path(), &crate::cluster::LOG_CHECK).unwrap(),
            Vec::<String>::new()
        );
        let (handle, thread) = SoloHandle::open(&options(copy.path())).unwrap();
        let standing = *self.store().standing().borrow();
        let store = SoloStore { handle };
        assert_eq!(*store.standing().borrow(), standing);
        drop(store);
        thread.close();
    }
}

impl<S: Subject> Pair<S> {
    fn new(seed: u64) -> Self {
        let model = Ledger::new(Core::default(), [], MemoryTables::default());
        let (sessions, epochs, grants) = (Vec::new(), Vec::new(), Vec::new());
        Self { subject: S::open(), model, sessions, epochs, grants, dice: Dice(seed), ms: 0 }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.subject.store()
    }

    fn reopen(&mut self) {
        self.subject.reopen(&mut self.dice);
    }

    /// Opens a run, so that random commands have an effect.
    fn begin(&mut self) {
        self.both(join(1000, true));
        let session = SessionId(1);
        self.sessions.push(session);
        self.both(Command::Claim { session, name: "gate 0".to_owned() });
        self.epochs.push(Epoch(1));
        let open = self.open(session, Epoch(1));
        self.both(open);
    }

    /// Sends a command to both and compares the replies. The store uses real time and the model counts,
    /// so no policy here has a delay. Commands that set a time get their own tick on both.
    #[expect(clippy::needless_pass_by_value, reason = "a sent command is consumed")]
    fn both(&mut self, command: Command) -> Reply {
        let dated = match &command {
            Command::Join(_)
            | Command::Claim { .. }
            | Command::Release { .. }
            | Command::Beat { .. } => true,
            Command::Finish { outcome, .. } => matches!(outcome, Outcome::Retry { .. }),
            _ => false,
        };
        if dated {
            std::thread::sleep(Duration::from_millis(2));
            self.ms += 1;
        }
        let stamp = Stamp { leadership: 0, ms: self.ms };
        let expected = self.model.apply(stamp, command.clone()).unwrap();
        let found = self.store().submit_blocking(command.clone()).unwrap();
        assert_eq!(without_wait(found), without_wait(expected.clone()), "{command:?}");
        expected
    }

    fn new_job(&mut self) -> NewJob {
        let number = self.dice.below(60);
        let lane = if number.is_multiple_of(3) { "local" } else { "host" };
        NewJob {
            key: key(number),
            root: key(0),
            lane: lane.to_owned(),
            polite: lane == "host",
            name: format!("name {}", number % 7),
            group: format!("group {}", number % 2),
            url: format!("http://host/{number}"),
            depth: number as u32,
            origin: None,
            quota: number.is_multiple_of(4).then_some(Quota { rule: 1, max: 6 }),
        }
    }

    fn outcome(&mut self, grant: &Grant) -> Outcome {
        let tally =
            || Tally { fetched: 1, bytes: 7, statuses: [(200, 1)].into(), ..Tally::default() };
        let reason = || "because".to_owned();
        match self.dice.below(8) {
            0 => {
                Outcome::Retry { reason: reason(), pause_ms: 0, hold_lane_ms: None, tally: tally() }
            }
            1 => Outcome::Failed { reason: reason(), tally: tally() },
            two => {
                let blocks = (0..3).map(|ordinal| Block {
                    appender: ordinal % 2,
                    data_def: format!("data {ordinal}"),
                    // A retried job runs other tasks than the first time.
                    ordinal: ordinal + 10 * u32::from(!grant.tasks.is_empty()),
                    rows: ordinal,
                    bytes: format!("{:?} {ordinal}\n", grant.job.key).into_bytes(),
                });
                let blocks = blocks.collect();
                let children = (0..self.dice.below(4)).map(|_| self.new_job()).collect();
                let failures =
                    if two == 2 { vec![("task".to_owned(), reason())] } else { Vec::new() };
                Outcome::Done(Box::new(Harvest { blocks, children, failures, tally: tally() }))
            }
        }
    }

    fn session(&mut self) -> SessionId {
        let place = self.dice.below(self.sessions.len() as u64) as usize;
        self.sessions.get(place).copied().unwrap_or(SessionId(999))
    }

    fn any_grant(&mut self) -> Option<Grant> {
        let place = self.dice.below(self.grants.len() as u64) as usize;
        self.grants.get(place).cloned()
    }

    /// Sends one random command, valid or not, and sometimes the same again.
    fn step(&mut self) {
        let session = self.session();
        let epoch = self.epochs.last().copied().unwrap_or(Epoch(0));
        let number = self.dice.below(50);
        let command = match self.dice.below(40) {
            0 => join(number, number.is_multiple_of(8)),
            1 => Command::Leave { session },
            2 => Command::Beat { renewals: self.sessions.clone() },
            3..=5 => Command::Claim { session, name: format!("gate {}", number % 3) },
            6 => {
                let result = if number < 40 { Ok(()) } else { Err("no".to_owned()) };
                Command::Release { session, name: format!("gate {}", number % 3), epoch, result }
            }
            7 => self.open(session, epoch),
            8..=11 => {
                let jobs = (0..3).map(|_| self.new_job()).collect();
                let group = format!("group {}", number % 3);
                Command::Seed { session, epoch, group, jobs, last: number.is_multiple_of(5) }
            }
            12..=21 => Command::Take { session, number: 1 + number / 4, limit: 3, ahead: u32::MAX },
            22 => match self.any_grant() {
                Some(Grant { id: job, token, .. }) => Command::Begin { session, job, token },
                None => return,
            },
            23..=36 => match self.any_grant() {
                Some(grant) => {
                    let outcome = self.outcome(&grant);
                    let token = if number == 0 { Token(0) } else { grant.token };
                    Command::Finish { session, job: grant.id, token, since_start_ms: None, outcome }
                }
                None => return,
            },
            37 => {
                let grants = self.grants.iter().rev().take(2);
                let jobs = grants.map(|grant| (grant.id, grant.token)).collect();
                Command::Return { session, jobs }
            }
            38 => {
                let position =
                    Position { seq: number, bytes: number * 9, mark: vec![number as u8; 3] };
                Command::Ack { appender: (number % 3) as u32, position }
            }
            _ => Command::Close { session },
        };
        let reply = self.both(command.clone());
        match reply {
            Reply::Joined(session) => self.sessions.push(session),
            Reply::Cross(epoch) => self.epochs.push(epoch),
            Reply::Granted { jobs, .. } => self.grants.extend(jobs),
            _ => {}
        }
        if number < 10 {
            self.both(command);
        }
    }

    fn open(&mut self, session: SessionId, epoch: Epoch) -> Command {
        let identity = self.dice.below(2) as u8;
        let plan = RunPlan {
            identity: [identity; 32],
            defs: [identity; 32],
            config: [9; 32],
            date: "2020-07-01".to_owned(),
            folder: "folder".to_owned(),
            groups: vec!["group 0".to_owned(), "group 1".to_owned()],
            appenders: 2,
            seats: vec![Seat(1)],
            by_level: false,
            sequence: BTreeMap::new(),
            policy: Policy { delay_ms: 0, slots: 5, ..Policy::default() },
        };
        let publish = Publication { defs: vec![identity; 100], config: b"settings".to_vec() };
        let modes = [OpenMode::Continue, OpenMode::Continue, OpenMode::Retry, OpenMode::Fresh];
        let mode = modes[self.dice.below(4) as usize];
        Command::OpenRun { session, epoch, plan, publish, mode }
    }

    /// Checks that every question gets the answer of the model.
    fn compare(&mut self) {
        let Answer::Run(run) = self.store().ask_blocking(Question::Run).unwrap() else { panic!() };
        assert_eq!(run.map(|run| *run), self.model.core().run);
        let blobs = self.model.tables().blobs.clone();
        for hash in [[0; 32], [1; 32], [9; 32]] {
            let found = self.store().ask_blocking(Question::Blob(hash)).unwrap();
            let Answer::Blob(found) = found else { panic!() };
            assert_eq!(found, blobs.get(&hash).cloned());
        }
        let failed = self.store().ask_blocking(Question::Failed { after: None, limit: 3 }).unwrap();
        let Answer::Failed(failed) = failed else { panic!() };
        let timeless = |mut failed: Vec<(JobId, FailedJob)>| {
            for (_, failed) in &mut failed {
                failed.job.ready_at = 0;
            }
            failed
        };
        let expected = self.model.tables_mut().failed(None, 3).unwrap();
        assert_eq!(timeless(failed), timeless(expected));
        for appender in 0..2 {
            let output = self.model.tables().output.clone().into_iter();
            let mut expected: Vec<_> =
                output.filter(|output| output.block.appender == appender).collect();
            assert_eq!(self.read(appender, None), expected);
            expected.sort_by_key(|one| {
                (one.group.clone(), one.name.clone(), one.key, one.block.ordinal, one.seq)
            });
            assert_eq!(self.read(appender, Some(u64::MAX)), expected);
            let last = self.dice.below(1 + expected.len() as u64);
            expected.retain(|one| one.seq <= last);
            assert_eq!(self.read(appender, Some(last)), expected);
        }
    }

    /// Reads the output in order of arrival, or up to a block in canonical order.
    fn read(&mut self, appender: u32, canonical: Option<u64>) -> Vec<OutputBlock> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let bytes_max = self.dice.below(200) as usize;
            let question = match canonical {
                Some(last) => Question::CanonicalOutput { appender, after, last, bytes_max },
                None => Question::Output { appender, after, bytes_max },
            };
            let Answer::Output(blocks) = self.store().ask_blocking(question).unwrap() else {
                panic!()
            };
            let Some(last) = blocks.last() else { return all };
            after = if canonical.is_some() { after + blocks.len() as u64 } else { last.seq };
            all.extend(blocks);
        }
    }
}

fn without_wait(reply: Reply) -> Reply {
    match reply {
        Reply::Granted { jobs, .. } => Reply::Granted { jobs, wait_ms: None },
        other => other,
    }
}

#[test]
fn the_store_answers_like_the_ledger_in_memory() {
    let seeds = std::env::var("SUITE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    let (mut jobs, mut blocks) = (0, 0);
    for seed in 0..seeds {
        let mut pair = Pair::<Solo>::new(seed);
        pair.begin();
        for _ in 0..300 {
            pair.step();
            match pair.dice.below(60) {
                0 => pair.reopen(),
                1 => pair.compare(),
                2 => pair.image(),
                _ => {}
            }
        }
        pair.reopen();
        pair.compare();
        jobs += pair.model.core().run.as_ref().map_or(0, |run| run.done);
        blocks += pair.model.tables().output.len();
    }
    println!("{seeds} seeds: {jobs} jobs done, {blocks} blocks at the end");
    assert!(jobs > seeds && blocks > seeds as usize, "too few commands had an effect");
}

#[test]
fn commands_reported_as_durable_are_in_a_copy_of_the_files() {
    // A copy of the files of an open store has what a power failure would leave.
    let mut pair = Pair::<Solo>::new(3);
    pair.both(join(1, true));
    let session = SessionId(1);
    pair.both(Command::Claim { session, name: "gate 0".to_owned() });
    let open = pair.open(session, Epoch(1));
    pair.both(open);
    let jobs = (0..9).map(|_| pair.new_job()).collect();
    let group = "group 0".to_owned();
    pair.both(Command::Seed { session, epoch: Epoch(1), group, jobs, last: true });
    let Reply::Granted { jobs, .. } =
        pair.both(Command::Take { session, number: 1, limit: 1, ahead: u32::MAX })
    else {
        panic!()
    };
    let harvest = Harvest { blocks: vec![], children: vec![], ..Harvest::default() };
    let outcome = Outcome::Done(Box::new(harvest));
    pair.both(Command::Finish {
        session,
        job: jobs[0].id,
        token: jobs[0].token,
        since_start_ms: None,
        outcome,
    });
    let copy = tempfile::tempdir().unwrap();
    copy_files(pair.subject.dir.path(), copy.path());
    let (handle, thread) = SoloHandle::open(&options(copy.path())).unwrap();
    let store = SoloStore { handle };
    assert_eq!(store.standing().borrow().done, 1);
    drop(store);
    thread.close();
}

#[test]
fn a_released_barricade_is_published_before_the_reply() {
    // Otherwise each run would wait for a commit before its next barricade.
    let mut pair = Pair::<Solo>::new(5);
    pair.both(join(1, true));
    let session = SessionId(1);
    for epoch in (1..=20).map(Epoch) {
        let name = format!("gate {}", epoch.0);
        pair.both(Command::Claim { session, name: name.clone() });
        pair.both(Command::Release { session, name, epoch, result: Ok(()) });
        assert_eq!(pair.store().standing().borrow().crossings, 0);
    }
}

#[test]
fn a_second_store_on_the_same_directory_is_refused() {
    let pair = Pair::<Solo>::new(0);
    let second = SoloHandle::open(&options(pair.subject.dir.path()));
    assert!(matches!(second, Err(StoreError::InUse(_))));
}

#[test]
fn a_job_id_is_never_used_again_by_a_later_run() {
    let mut pair = Pair::<Solo>::new(1);
    pair.both(join(1, true));
    let session = SessionId(1);
    let mut ids: Vec<JobId> = Vec::new();
    for number in 1..=3 {
        pair.both(Command::Claim { session, name: format!("gate {number}") });
        let open = pair.open(session, Epoch(number));
        let Command::OpenRun { session, epoch, plan, publish, .. } = open else { panic!() };
        pair.both(Command::OpenRun { session, epoch, plan, publish, mode: OpenMode::Fresh });
        let job = pair.new_job();
        let group = "group 0".to_owned();
        pair.both(Command::Seed { session, epoch, group, jobs: vec![job], last: true });
        let take = Command::Take { session, number, limit: 1, ahead: u32::MAX };
        let Reply::Granted { jobs, .. } = pair.both(take) else { panic!() };
        ids.push(jobs[0].id);
        pair.reopen();
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}
