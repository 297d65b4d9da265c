//! Compares the ledger in memory with a queue and a set of the standard library, by
//! `cargo bench -p spoonbill-engine`. `spoonbill bench frontier` measures the ledger with its disk.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic, missing_docs, unreachable_pub)]

use std::collections::{BTreeMap, HashSet, VecDeque};

use spoonbill_engine::ledger::{
    Command, Core, Harvest, JobKey, JoinRequest, Ledger, MemoryTables, NewJob, OpenMode, Outcome,
    Policy, Publication, Reply, RunPlan, Seat, SessionId, Stamp,
};

mod measure;

use measure::compare;

/// Jobs of one round.
const JOBS: u64 = 2_000;
/// Hosts that the jobs are spread over.
const HOSTS: u64 = 100;
/// Jobs granted by one command.
const GRANTED_MAX: u32 = 64;

fn job(number: u64) -> NewJob {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    NewJob {
        key: JobKey(key),
        root: JobKey(key),
        lane: format!("host{}", number % HOSTS),
        polite: true,
        name: String::new(),
        group: "g".to_owned(),
        url: format!("http://host{}/page/{number}", number % HOSTS),
        depth: 0,
        origin: None,
        quota: None,
    }
}

struct LedgerClient {
    ledger: Ledger<MemoryTables>,
    session: SessionId,
}

impl LedgerClient {
    fn apply(&mut self, command: Command) -> Reply {
        self.ledger.apply(Stamp { leadership: 1, ms: 0 }, command).unwrap()
    }

    /// Opens a run and seeds it with `jobs`.
    fn open(jobs: Vec<NewJob>) -> Self {
        let ledger = Ledger::new(Core::default(), [], MemoryTables::default());
        let mut client = Self { ledger, session: SessionId(0) };
        let (seat, votes, alone) = (Seat(1), true, true);
        let arrival = JoinRequest { nonce: 1, life: 1, seat, votes, alone };
        let Reply::Joined(session) = client.apply(Command::Join(arrival)) else {
            panic!("not joined");
        };
        client.session = session;
        let claim = Command::Claim { session, name: "setup".to_owned() };
        let Reply::Cross(epoch) = client.apply(claim) else { panic!("not crossed") };
        let plan = RunPlan {
            identity: [1; 32],
            defs: [1; 32],
            config: [2; 32],
            date: String::new(),
            folder: String::new(),
            groups: vec!["g".to_owned()],
            appenders: 1,
            seats: vec![Seat(1)],
            sequence: BTreeMap::new(),
            by_level: false,
            policy: Policy { delay_ms: 0, slots: GRANTED_MAX, ..Policy::default() },
        };
        let publish = Publication { defs: Vec::new(), config: Vec::new() };
        let mode = OpenMode::Fresh;
        client.apply(Command::OpenRun { session, epoch, plan, publish, mode });
        client.apply(Command::Seed { session, epoch, group: "g".to_owned(), jobs, last: true });
        client
    }

    /// Takes and finishes all jobs, and returns their number.
    fn work(&mut self) -> u64 {
        let (session, mut ended) = (self.session, 0);
        for number in 1.. {
            let take = Command::Take { session, number, limit: GRANTED_MAX, ahead: u32::MAX };
            let Reply::Granted { jobs, .. } = self.apply(take) else { panic!("not granted") };
            if jobs.is_empty() {
                break;
            }
            for grant in jobs {
                let (job, token) = (grant.id, grant.token);
                let outcome = Outcome::Done(Box::<Harvest>::default());
                self.apply(Command::Finish { session, job, token, since_start_ms: None, outcome });
                ended += 1;
            }
        }
        ended
    }
}

fn main() {
    let jobs: Vec<NewJob> = (0..JOBS).map(job).collect();
    let through_ledger = || {
        let ended = LedgerClient::open(jobs.clone()).work();
        assert_eq!(ended, JOBS);
        ended
    };
    let through_queue = || {
        let (mut seen, mut queue) = (HashSet::new(), VecDeque::new());
        for job in jobs.clone() {
            if seen.insert(job.key.0) {
                queue.push_back(job);
            }
        }
        std::iter::from_fn(|| queue.pop_front()).count()
    };
    compare("2,000 jobs through the ledger (a queue)", through_ledger, through_queue);
}
