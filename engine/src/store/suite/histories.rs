//! Histories: clients of three nodes in this process claim, release, take and finish at the same time, while
//! one node after another is closed, the leader included. For each barricade and each job, a single ledger
//! must have been able to give the same answers at these times.
//!
//! `HISTORIES=200 OPERATIONS=10000 SEED=1 cargo test -p spoonbill-engine --lib histories -- --nocapture`
//! runs 200 histories of at least 10,000 operations each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::cluster::Cluster;
use super::wing_gong::{Asked, Claimed, Deed, Gate, Stands, is_linearizable, pass, work};
use super::*;
use crate::cluster::{ClusterHandle, ClusterStore};

/// Fewest jobs of a history. One job per operation is more than the clients can take.
const JOBS: u64 = 200;
/// Jobs seeded at once.
const SEEDED: u64 = 500;
const CLIENTS: u64 = 3;
const CLOSINGS: u64 = 10;
const HOUR_MS: u64 = 60 * 60 * 1000;

/// The state that all clients share.
struct Table {
    /// The open nodes.
    nodes: Mutex<Vec<Option<ClusterHandle>>>,
    clock: AtomicU64,
    gates: Mutex<BTreeMap<String, Vec<Asked<Gate>>>>,
    jobs: Mutex<BTreeMap<JobId, Vec<Asked<Deed>>>>,
    /// Grants of all clients; any client may finish them.
    grants: Mutex<Vec<Grant>>,
    over: AtomicBool,
    /// Commands, and those without an answer.
    asked: AtomicU64,
    unknown: AtomicU64,
}

impl Table {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Submits a command to an open node. `None` means that the outcome is unknown.
    fn ask(&self, dice: &mut Dice, command: Command) -> Option<Reply> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let handle = loop {
            let nodes = self.nodes.lock().unwrap();
            let place = dice.below(nodes.len() as u64) as usize;
            if let Some(handle) = &nodes[place] {
                break handle.clone();
            }
        };
        let reply = ClusterStore { handle }.submit_blocking(command).ok();
        self.unknown.fetch_add(u64::from(reply.is_none()), Ordering::Relaxed);
        reply
    }

    /// Submits a command until there is an answer.
    fn insist(&self, dice: &mut Dice, command: &Command) -> Reply {
        loop {
            if let Some(reply) = self.ask(dice, command.clone()) {
                return reply;
            }
        }
    }

    fn note_gate(&self, name: &str, what: Gate, from: u64, known: bool) {
        let asked = Asked { what, from, to: known.then(|| self.now()) };
        self.gates.lock().unwrap().entry(name.to_owned()).or_default().push(asked);
    }

    fn note_job(&self, job: JobId, what: Deed, from: u64, known: bool) {
        let asked = Asked { what, from, to: known.then(|| self.now()) };
        self.jobs.lock().unwrap().entry(job).or_default().push(asked);
    }
}

struct Client<'a> {
    table: &'a Table,
    session: SessionId,
    takes: u64,
    dice: Dice,
}

impl Client<'_> {
    fn claim(&mut self, name: &str) -> Option<Claimed> {
        let (session, from) = (self.session, self.table.now());
        let claim = Command::Claim { session, name: name.to_owned() };
        let told = self.table.ask(&mut self.dice, claim).map(|reply| match reply {
            Reply::Cross(epoch) => Claimed::Cross(epoch.0),
            Reply::Wait => Claimed::Wait,
            Reply::Crossed(Ok(())) => Claimed::Crossed,
            other => panic!("claimed with {other:?}"),
        });
        let gate = Gate::Claim { who: session.0, told };
        self.table.note_gate(name, gate, from, told.is_some());
        told
    }

    fn release(&mut self, name: &str, epoch: u64) {
        let (session, from, result) = (self.session, self.table.now(), Ok(()));
        let (name, number) = (name.to_owned(), epoch);
        let release = Command::Release { session, name: name.clone(), epoch: Epoch(epoch), result };
        let told = self.table.ask(&mut self.dice, release).map(|reply| reply == Reply::Ok);
        let gate = Gate::Release { who: session.0, epoch: number, told };
        self.table.note_gate(&name, gate, from, told.is_some());
    }

    /// Crosses a barricade that other clients cross as well, with a limited number of claims.
    fn cross(&mut self, name: &str) {
        for _ in 0..8 {
            match self.claim(name) {
                Some(Claimed::Cross(epoch)) => self.release(name, epoch),
                Some(Claimed::Crossed) => return,
                Some(Claimed::Wait) | None => {}
            }
        }
    }

    fn take(&mut self) {
        self.takes += 1;
        let from = self.table.now();
        let take =
            Command::Take { session: self.session, number: self.takes, limit: 3, ahead: u32::MAX };
        let reply = self.table.insist(&mut self.dice, &take);
        let Reply::Granted { jobs, .. } = reply else { panic!("took {reply:?}") };
        for grant in &jobs {
            self.table.note_job(grant.id, Deed::Grant { token: grant.token.0 }, from, true);
        }
        self.table.grants.lock().unwrap().extend(jobs);
    }

    fn finish(&mut self) {
        let grants = self.table.grants.lock().unwrap();
        // The latest grants, so that several clients finish the same job.
        let back = self.dice.below(6.min(grants.len() as u64)) as usize;
        let Some(grant) = grants.iter().rev().nth(back).cloned() else { return };
        drop(grants);
        let retry = self.dice.below(3) == 0;
        let outcome = if retry {
            let (reason, tally) = ("later".to_owned(), Tally::default());
            Outcome::Retry { reason, pause_ms: 0, hold_lane_ms: None, tally }
        } else {
            Outcome::Done(Box::default())
        };
        let (session, from, job, token) = (self.session, self.table.now(), grant.id, grant.token);
        let finish = Command::Finish { session, job, token, since_start_ms: None, outcome };
        let told = self.table.ask(&mut self.dice, finish).map(|reply| reply == Reply::Ok);
        let deed = Deed::Finish { token: token.0, retry, told };
        self.table.note_job(job, deed, from, told.is_some());
    }

    /// Runs until the history is over. A client that fails ends the history.
    fn play(mut self) {
        let over = Over(&self.table.over);
        let mut gates = 0;
        while !self.table.over.load(Ordering::Relaxed) {
            match self.dice.below(12) {
                0 | 1 => {
                    self.cross(&format!("gate {gates}"));
                    gates += 1;
                }
                2..=5 => self.take(),
                _ => self.finish(),
            }
        }
        drop(over);
    }
}

/// Ends the history when it is dropped, also in a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn plan() -> RunPlan {
    RunPlan {
        identity: [1; 32],
        defs: [1; 32],
        config: [9; 32],
        date: String::new(),
        folder: String::new(),
        groups: vec!["g".to_owned()],
        appenders: 0,
        seats: vec![Seat(1)],
        by_level: false,
        sequence: BTreeMap::new(),
        // No session may expire here.
        policy: Policy {
            delay_ms: 0,
            slots: 5,
            attempts_max: 100,
            session_ttl_ms: HOUR_MS,
            doubt_ms: HOUR_MS,
            ..Policy::default()
        },
    }
}

fn new_job(number: u64) -> NewJob {
    NewJob {
        key: key(number),
        root: key(number),
        lane: "local".to_owned(),
        polite: false,
        name: number.to_string(),
        group: "g".to_owned(),
        url: String::new(),
        depth: 0,
        origin: None,
        quota: None,
    }
}

/// Clients with sessions. The first one has opened a run with `jobs` jobs.
fn clients(table: &Table, seed: u64, jobs: u64) -> Vec<Client<'_>> {
    let mut dice = Dice(seed ^ 5);
    let clients = (0..CLIENTS).map(|number| {
        let seat = Seat(number as u32 + 1);
        let arrival = JoinRequest { nonce: number, life: number, seat, votes: true, alone: false };
        let reply = table.insist(&mut dice, &Command::Join(arrival));
        let Reply::Joined(session) = reply else { panic!("joined with {reply:?}") };
        Client { table, session, takes: 0, dice: Dice(seed * CLIENTS + number) }
    });
    let clients: Vec<_> = clients.collect();
    let session = clients[0].session;
    let claim = Command::Claim { session, name: "setup".to_owned() };
    let Reply::Cross(epoch) = table.insist(&mut dice, &claim) else { panic!() };
    let (publish, mode) = (Publication::default(), OpenMode::Continue);
    let open = Command::OpenRun { session, epoch, plan: plan(), publish, mode };
    assert!(matches!(table.insist(&mut dice, &open), Reply::Opened { .. }));
    // The run sets this limit, which is longer than the test.
    let renewals = clients.iter().map(|client| client.session).collect();
    table.insist(&mut dice, &Command::Beat { renewals });
    for first in (0..jobs).step_by(SEEDED as usize) {
        let (group, next) = ("g".to_owned(), (first + SEEDED).min(jobs));
        let (last, jobs) = (next == jobs, (first..next).map(new_job).collect());
        let seed = Command::Seed { session, epoch, group, jobs, last };
        assert_eq!(table.insist(&mut dice, &seed), Reply::Ok);
    }
    clients
}

/// One history of at least `operations` operations.
fn history(seed: u64, operations: u64) {
    let mut cluster = Cluster::<3>::open();
    let table = Table {
        nodes: Mutex::new(cluster.handles()),
        clock: AtomicU64::new(1),
        gates: Mutex::default(),
        jobs: Mutex::default(),
        grants: Mutex::default(),
        over: AtomicBool::new(false),
        asked: AtomicU64::new(0),
        unknown: AtomicU64::new(0),
    };
    let clients = clients(&table, seed, operations.max(JOBS));
    let mut leaders = 0;
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(move || client.play());
        }
        for round in 0..CLOSINGS {
            std::thread::sleep(Duration::from_millis(150));
            let due = operations * (round + 1) / CLOSINGS;
            let over = || table.over.load(Ordering::Relaxed);
            while table.asked.load(Ordering::Relaxed) < due && !over() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let leader = cluster.leader();
            leaders += u64::from(leader.is_some());
            let place = leader.unwrap_or(round as usize % 3);
            table.nodes.lock().unwrap()[place] = None;
            cluster.reopen_one(place);
            table.nodes.lock().unwrap()[place] = cluster.handles()[place].clone();
        }
        table.over.store(true, Ordering::Relaxed);
    });
    judge(&table, seed, leaders);
}

fn judge(table: &Table, seed: u64, leaders: u64) {
    let (gates, jobs) = (table.gates.lock().unwrap(), table.jobs.lock().unwrap());
    for (name, history) in gates.iter() {
        assert!(is_linearizable(history, Stands::Free, pass), "{seed}: {name}: {history:#?}");
    }
    for (id, history) in jobs.iter() {
        assert!(is_linearizable(history, (0, false, false), work), "{seed}: {id:?}: {history:#?}");
    }
    let count = jobs.values().map(Vec::len).sum::<usize>();
    let crossed = gates.values().map(Vec::len).sum::<usize>();
    let unknown = table.unknown.load(Ordering::Relaxed);
    println!(
        "seed {seed}: {crossed} at {} gates, {count} on {} jobs, {unknown} of {} unanswered, \
         {leaders} leaders closed",
        gates.len(),
        jobs.len(),
        table.asked.load(Ordering::Relaxed)
    );
    assert!(crossed > 20 && count > 100 && leaders > 2, "nothing was exercised");
}

#[test]
fn what_clients_are_told_while_leaders_change_fits_one_order() {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, runs) = (given("SEED").unwrap_or(0), given("HISTORIES").unwrap_or(1));
    for seed in first..first + runs {
        history(seed, given("OPERATIONS").unwrap_or(0));
    }
}
