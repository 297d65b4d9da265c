//! The rules of every command, one small test each. After every command all invariants are checked.

mod barricades;
mod deaths;
mod doubts;
mod failing;
mod finishing;
mod levels;
mod model;
mod moving;
mod runs;
mod sequence;
mod sharing;
mod taking;
mod timeouts;

use super::*;

/// A ledger with a clock that the test sets. It checks all invariants after every command.
struct Bench {
    ledger: Ledger<MemoryTables>,
    ms: u64,
    /// The latest stamp.
    last: Stamp,
    leadership: u64,
    nonces: u64,
}

fn key(number: u64) -> JobKey {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    JobKey(key)
}

/// A job of a host. The lane `local` has no delay.
fn job(number: u64, host: &str) -> NewJob {
    NewJob {
        key: key(number),
        root: key(number),
        lane: host.to_owned(),
        polite: host != "local",
        name: format!("page {number}"),
        group: "g".to_owned(),
        url: format!("http://{host}/{number}"),
        depth: 0,
        origin: None,
        quota: None,
    }
}

fn block(ordinal: u32) -> Block {
    let bytes = format!("row {ordinal}\n").into_bytes();
    Block { appender: 0, data_def: "d".to_owned(), ordinal, rows: 1, bytes }
}

fn done(blocks: Vec<Block>, children: Vec<NewJob>) -> Outcome {
    Outcome::Done(Box::new(Harvest { blocks, children, ..Harvest::default() }))
}

fn again(pause_ms: u64, hold_lane_ms: Option<u64>) -> Outcome {
    Outcome::Retry {
        reason: "status 503".to_owned(),
        pause_ms,
        hold_lane_ms,
        tally: Tally::default(),
    }
}

fn plan(identity: u8, policy: Policy) -> RunPlan {
    RunPlan {
        identity: [identity; 32],
        defs: [identity; 32],
        config: [99; 32],
        date: "2020-07-01".to_owned(),
        folder: "folder".to_owned(),
        groups: vec!["g".to_owned()],
        appenders: 1,
        seats: vec![Seat(1)],
        by_level: false,
        sequence: BTreeMap::new(),
        policy,
    }
}

impl Bench {
    fn new() -> Self {
        let ledger = Ledger::new(Core::default(), [], MemoryTables::default());
        Self { ledger, ms: 0, last: Stamp { leadership: 1, ms: 0 }, leadership: 1, nonces: 0 }
    }

    /// A bench with one session and a run over these jobs.
    fn with(policy: Policy, jobs: Vec<NewJob>) -> (Self, SessionId) {
        let mut bench = Self::new();
        let session = bench.join(false);
        bench.open(session, plan(1, policy), OpenMode::Continue);
        bench.seed(session, jobs);
        (bench, session)
    }

    #[track_caller]
    fn apply(&mut self, command: Command) -> Reply {
        // One command advances ledger time by one second at most, so commands without effect fill
        // long waits.
        while self.last.leadership == self.leadership && self.ms > self.last.ms + 1000 {
            self.last.ms += 1000;
            self.send(Command::Ack { appender: u32::MAX, position: Position::default() });
        }
        self.last = Stamp { leadership: self.leadership, ms: self.ms };
        self.send(command)
    }

    #[track_caller]
    fn send(&mut self, command: Command) -> Reply {
        let reply = self.ledger.apply(self.last, command).unwrap();
        assert_eq!(violations(&self.ledger), Vec::<String>::new());
        reply
    }

    /// Sends a command twice and checks that the second time changes nothing.
    #[track_caller]
    fn twice(&mut self, command: Command) -> Reply {
        let first = self.apply(command.clone());
        let (core, tables) = (self.ledger.core().clone(), self.ledger.tables().clone());
        self.apply(command);
        assert_eq!(*self.ledger.core(), core);
        assert_eq!(self.ledger.tables().output, tables.output);
        assert_eq!(self.ledger.tables().queue, tables.queue);
        first
    }

    fn join(&mut self, alone: bool) -> SessionId {
        self.nonces += 1;
        let (nonce, seat) = (self.nonces, if alone { 1 } else { self.nonces as u32 });
        let arrival = JoinRequest { nonce, life: nonce, seat: Seat(seat), votes: true, alone };
        match self.apply(Command::Join(arrival)) {
            Reply::Joined(session) => session,
            other => panic!("joined with {other:?}"),
        }
    }

    fn cross(&mut self, session: SessionId, name: &str) -> Epoch {
        match self.apply(Command::Claim { session, name: name.to_owned() }) {
            Reply::Cross(epoch) => epoch,
            other => panic!("crossed with {other:?}"),
        }
    }

    /// Opens a run inside the barricade `setup`, which only a later process can cross again.
    fn open(&mut self, session: SessionId, plan: RunPlan, mode: OpenMode) -> Reply {
        let epoch = self.cross(session, "setup");
        let publish = Publication { defs: b"defs".to_vec(), config: b"config".to_vec() };
        let reply = self.apply(Command::OpenRun { session, epoch, plan, publish, mode });
        let name = "setup".to_owned();
        self.apply(Command::Release { session, name, epoch, result: Ok(()) });
        reply
    }

    fn seed(&mut self, session: SessionId, jobs: Vec<NewJob>) {
        let epoch = self.cross(session, "seed");
        let group = "g".to_owned();
        self.apply(Command::Seed { session, epoch, group, jobs, last: true });
        let name = "seed".to_owned();
        self.apply(Command::Release { session, name, epoch, result: Ok(()) });
    }

    fn next_number(&self, session: SessionId) -> u64 {
        self.ledger.core().sessions.get(&session).map_or(1, |own| own.last_take + 1)
    }

    #[track_caller]
    fn take(&mut self, session: SessionId, limit: u32) -> Vec<Grant> {
        let number = self.next_number(session);
        match self.apply(Command::Take { session, number, limit, ahead: u32::MAX }) {
            Reply::Granted { jobs, .. } => jobs,
            other => panic!("took {other:?}"),
        }
    }

    fn wait_ms(&mut self, session: SessionId) -> Option<u64> {
        let number = self.next_number(session);
        match self.apply(Command::Take { session, number, limit: 1, ahead: u32::MAX }) {
            Reply::Granted { jobs, wait_ms } => {
                assert_eq!(jobs, []);
                wait_ms
            }
            other => panic!("took {other:?}"),
        }
    }

    #[track_caller]
    fn finish(&mut self, session: SessionId, grant: &Grant, outcome: Outcome) -> Reply {
        self.apply(Command::Finish {
            session,
            job: grant.id,
            token: grant.token,
            since_start_ms: None,
            outcome,
        })
    }

    #[track_caller]
    fn begin(&mut self, session: SessionId, grant: &Grant) {
        let begin = Command::Begin { session, job: grant.id, token: grant.token };
        assert_eq!(self.apply(begin), Reply::Ok);
    }

    fn beat(&mut self, renewals: &[SessionId]) {
        self.apply(Command::Beat { renewals: renewals.to_vec() });
    }

    /// The process dies and another opens the same data directory.
    fn restart(&mut self) -> SessionId {
        self.leadership += 1;
        self.join(true)
    }

    /// A worker dies and its session expires, while the sessions in `living` are renewed.
    fn expire(&mut self, living: &[SessionId]) {
        self.ms += Policy::default().session_ttl_ms;
        self.beat(living);
    }
}

fn numbers(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.job.name.trim_start_matches("page ")).collect()
}

fn unhurried() -> Policy {
    Policy { delay_ms: 0, slots: 100, ..Policy::default() }
}

fn locals(count: u64) -> Vec<NewJob> {
    (1..=count).map(|number| job(number, "local")).collect()
}
