//! The replicated ledger of one node: a thread that applies agreed entries to tables on disk and
//! answers questions. What it has not committed when the process dies is applied again from the log.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender as Bell;
use openraft::EntryPayload;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use super::log::Log;
use super::parcels::Parcels;
use super::snapshot;
use super::status::Roster;
use super::types::{Batch, Check, Item, LogId, Membership, Replies, SnapshotMeta, Types, encode};
use crate::checksum::sum;
use crate::failpoint;
use crate::ledger::{Command, Ledger, Position, Reply, Run, Seat, Stamp, Standing, TableError};
use crate::queue::{Receiver, Sender, queue};
use crate::store::answer::answer;
use crate::store::mark::JOURNAL;
use crate::store::solo::damaged_or_full;
use crate::store::sqlite::{Keeping, SqliteTables};
use crate::store::{Answer, Question, StoreError};

/// Requests that may wait for the thread.
const QUEUE: usize = 1024;
/// Longest time between a change and its commit: until then it is in raft's log.
const COMMIT_EVERY: Duration = Duration::from_secs(5);
/// Commands in one commit at most, and so to be applied again after a crash.
const COMMIT_MAX: usize = 4000;
/// Entries whose sums are kept for comparison.
const SUMS_KEPT: usize = 1 << 15;
/// The small state goes into the sum so often.
const CORE_SUMMED_EVERY: u64 = 1024;

/// How far the replica is, kept beside the tables in the same commit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The last applied entry.
    pub applied: Option<LogId>,
    /// The voters as of then.
    pub membership: Membership,
    /// A sum over everything applied, the same on every node.
    pub digest: u64,
}

/// Name of the mark among the replica's records.
pub(super) const MARK: &str = "mark";
/// Name of this node's own positions.
const POSITIONS: &str = "positions";
pub(super) const STATE: &str = "state.db";

/// How far this node's files are written, and of which run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Positions {
    run: u64,
    all: Vec<Position>,
}

type Respond<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;
type LogEntry = openraft::Entry<Types>;

pub(super) enum Request {
    Apply(Vec<LogEntry>, oneshot::Sender<Result<Vec<Replies>, StoreError>>),
    Ask {
        question: Question,
        index: u64,
        respond: Respond<Answer>,
    },
    Ack {
        appender: u32,
        position: Position,
        respond: Respond<Reply>,
    },
    /// From now on what is asked is answered with what is known: the rest may never come.
    MakeDo,
    Roster(oneshot::Sender<Roster>),
    State(oneshot::Sender<Mark>),
    /// Makes everything on disk whole, so that a copy can be taken; answers its size in bytes.
    Settle(oneshot::Sender<Result<u64, StoreError>>),
    Install(SnapshotMeta, PathBuf, oneshot::Sender<Result<(), StoreError>>),
    Close,
}

/// A running machine; cheap to clone.
#[derive(Clone)]
pub(super) struct Machine {
    pub requests: Sender<Request>,
    pub standing: watch::Receiver<Standing>,
    /// The last entry with commands that was applied, and the sum as of then.
    pub summed: watch::Receiver<Option<Check>>,
    /// How often the disk of each seat was new.
    pub incarnations: watch::Receiver<BTreeMap<Seat, u32>>,
    /// The name of the cluster, once it has one.
    pub cluster: watch::Receiver<Option<u128>>,
    pub bells: Arc<Mutex<Vec<Bell<()>>>>,
    pub dir: PathBuf,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Machine")
    }
}

/// The thread behind a [`Machine`].
#[derive(Debug)]
pub(super) struct MachineThread {
    requests: Sender<Request>,
    thread: JoinHandle<()>,
}

impl MachineThread {
    /// Ends the thread after everything is in the database file.
    pub(super) fn close(self) {
        drop(self.requests.send(Request::Close));
        drop(self.thread.join());
    }
}

impl Machine {
    /// Opens the tables in a data directory that is locked.
    pub(super) fn open(
        dir: &Path,
        seen_memory: u64,
        log: Log,
        fatal: impl Fn(StoreError) + Send + 'static,
    ) -> Result<(Self, MachineThread), StoreError> {
        let (ledger, mark) = restore(dir, seen_memory)?;
        let (requests, inbox) = queue(QUEUE);
        let bells = Arc::new(Mutex::new(Vec::new()));
        let positions = log.local(POSITIONS).unwrap_or_default();
        let mut keeper = Keeper {
            dir: dir.to_owned(),
            seen_memory,
            ledger,
            mark,
            sums: VecDeque::new(),
            positions,
            log,
            publish: watch::Sender::new(Standing::default()),
            summed: watch::Sender::new(None),
            incarnations: watch::Sender::default(),
            cluster: watch::Sender::default(),
            bells: Arc::clone(&bells),
            waiting: Vec::new(),
            makes_do: false,
            committed: Instant::now(),
            uncommitted: 0,
            encoded: Vec::new(),
        };
        keeper.publish();
        let machine = Self {
            requests: requests.clone(),
            standing: keeper.publish.subscribe(),
            summed: keeper.summed.subscribe(),
            incarnations: keeper.incarnations.subscribe(),
            cluster: keeper.cluster.subscribe(),
            bells,
            dir: dir.to_owned(),
        };
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || keeper.keep(&inbox, fatal))
            .map_err(|error| StoreError::Failed(format!("no thread for the ledger: {error}")))?;
        Ok((machine, MachineThread { requests, thread }))
    }

    /// Sends a request and awaits its answer.
    pub(super) async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, StoreError> {
        let (answer, question) = oneshot::channel();
        drop(self.requests.send(request(answer)));
        question.await.map_err(|_| StoreError::Closed)
    }
}

type Tables = Ledger<SqliteTables>;

fn restore(dir: &Path, seen_memory: u64) -> Result<(Tables, Mark), StoreError> {
    let odd = |error: TableError| damaged_or_full(&error);
    let path = dir.join(STATE);
    let mut tables = SqliteTables::open(Some(&path), seen_memory, Keeping::Replica)?;
    let (core, lanes) = tables.restore().map_err(odd)?;
    let mark = match tables.replica(MARK).map_err(odd)? {
        Some(bytes) => postcard::from_bytes(&bytes).map_err(|error| {
            StoreError::Damaged(format!("`{}`: its mark: {error}", path.display()))
        })?,
        None if core == crate::ledger::Core::default() && !dir.join(JOURNAL).exists() => {
            Mark::default()
        }
        None => {
            return Err(StoreError::Excluded(format!(
                "`{}` holds the run of a node that was alone: a cluster needs a data directory of \
                 its own (`--data-dir`)",
                dir.display()
            )));
        }
    };
    Ok((Ledger::new(core, lanes, tables), mark))
}

struct Waiting {
    index: u64,
    question: Question,
    respond: Respond<Answer>,
}

/// The thread's own state.
struct Keeper {
    dir: PathBuf,
    seen_memory: u64,
    ledger: Tables,
    mark: Mark,
    sums: VecDeque<Check>,
    positions: Positions,
    log: Log,
    publish: watch::Sender<Standing>,
    summed: watch::Sender<Option<Check>>,
    incarnations: watch::Sender<BTreeMap<Seat, u32>>,
    cluster: watch::Sender<Option<u128>>,
    bells: Arc<Mutex<Vec<Bell<()>>>>,
    /// Questions about what is not applied yet.
    waiting: Vec<Waiting>,
    /// Whether nobody waits for that any more.
    makes_do: bool,
    committed: Instant,
    /// Commands applied since the last commit.
    uncommitted: usize,
    /// Room to put replies together.
    encoded: Vec<u8>,
}

impl Keeper {
    fn keep(mut self, inbox: &Receiver<Request>, fatal: impl Fn(StoreError)) {
        let error = loop {
            let patience = if self.uncommitted > 0 { COMMIT_EVERY } else { Duration::from_mins(1) };
            let served = match inbox.recv_in_company(1, Instant::now() + patience) {
                Some(Request::Close) => {
                    if let Err(error) = self.commit() {
                        tracing::warn!(error = %error.message, "the ledger could not be closed");
                    }
                    return;
                }
                Some(request) => self.serve(request),
                None if inbox.has_ended() => return,
                None => self.commit(),
            };
            if let Err(error) = served.and_then(|()| self.commit_if_due()) {
                break damaged_or_full(&error);
            }
        };
        fatal(error.clone());
        drop(self.publish);
        for waiting in self.waiting {
            (waiting.respond)(Err(error.clone()));
        }
        while let Some(request) = inbox.recv() {
            match request {
                Request::Apply(_, respond) => drop(respond.send(Err(error.clone()))),
                Request::Ask { respond, .. } => respond(Err(error.clone())),
                Request::Ack { respond, .. } => respond(Err(error.clone())),
                Request::Settle(respond) => drop(respond.send(Err(error.clone()))),
                Request::Install(_, _, respond) => drop(respond.send(Err(error.clone()))),
                Request::Roster(_) | Request::State(_) | Request::MakeDo => {}
                Request::Close => return,
            }
        }
    }

    fn serve(&mut self, request: Request) -> Result<(), TableError> {
        match request {
            Request::Apply(entries, respond) => {
                let replies = entries.into_iter().map(|entry| self.apply(entry));
                let replies = replies.collect::<Result<Vec<_>, TableError>>();
                match replies {
                    Ok(replies) => {
                        self.publish();
                        drop(respond.send(Ok(replies)));
                        self.answer_waiting()
                    }
                    Err(error) => {
                        drop(respond.send(Err(damaged_or_full(&error))));
                        Err(error)
                    }
                }
            }
            Request::Ask { question, index, respond } => {
                if index > self.index() && !self.makes_do {
                    self.waiting.push(Waiting { index, question, respond });
                    return Ok(());
                }
                self.answer(&question, respond)
            }
            Request::Ack { appender, position, respond } => {
                let reply = self.ack(appender, position);
                self.publish();
                respond(Ok(reply));
                Ok(())
            }
            Request::MakeDo => {
                self.makes_do = true;
                self.answer_waiting()
            }
            Request::Roster(respond) => {
                drop(respond.send(Roster::of(&self.ledger, &self.mark)));
                Ok(())
            }
            Request::State(respond) => {
                drop(respond.send(self.mark.clone()));
                Ok(())
            }
            Request::Settle(respond) => {
                let settled = self.commit();
                let size = std::fs::metadata(self.dir.join(STATE)).map_or(0, |file| file.len());
                let told = settled.as_ref().map(|()| size).map_err(damaged_or_full);
                drop(respond.send(told));
                settled
            }
            Request::Install(meta, path, respond) => {
                let installed = self.install(&meta, &path);
                drop(respond.send(installed.clone()));
                installed.map_err(|error| TableError { message: error.to_string(), full: false })
            }
            Request::Close => Ok(()),
        }
    }

    fn index(&self) -> u64 {
        self.mark.applied.map_or(0, |applied| applied.index)
    }

    fn apply(&mut self, entry: LogEntry) -> Result<Replies, TableError> {
        failpoint::pass("raft.apply.before");
        let index = entry.log_id.index;
        let replies = match entry.payload {
            EntryPayload::Blank => Replies::default(),
            EntryPayload::Membership(membership) => {
                self.mark.membership = Membership::new(Some(entry.log_id), membership);
                Replies::default()
            }
            EntryPayload::Normal(batch) => {
                let replies = self.apply_batch(index, &batch.0)?;
                self.sum_up(index, &batch.0, &replies);
                replies
            }
        };
        self.mark.applied = Some(entry.log_id);
        self.uncommitted += 1;
        failpoint::pass("raft.apply.after");
        Ok(replies)
    }

    fn apply_batch(&mut self, index: u64, bytes: &[u8]) -> Result<Replies, TableError> {
        let odd = |what: &str| TableError {
            message: format!("entry {index} of the log cannot be read: {what}"),
            full: false,
        };
        let batch: Batch = postcard::from_bytes(bytes).map_err(|error| odd(&error.to_string()))?;
        if let Some(check) = batch.check {
            self.compare(check)?;
        }
        let mut replies = Vec::with_capacity(batch.items.len());
        for item in batch.items {
            self.uncommitted += 1;
            replies.push(match item {
                Item::Command(bytes) => {
                    let command =
                        postcard::from_bytes(&bytes).map_err(|error| odd(&error.to_string()))?;
                    self.ledger.apply(batch.stamp, command)?
                }
                Item::Take { session, number, limit } => {
                    self.ledger.apply(batch.stamp, Command::Take { session, number, limit })?
                }
                Item::Part { parcel, number, bytes } => {
                    Parcels::of(self.ledger.tables_mut())?.put(parcel, number, &bytes)?;
                    Reply::Ok
                }
                Item::Parcel { parcel, parts } => self.unpack(batch.stamp, parcel, parts)?,
            });
        }
        Ok(Replies(replies))
    }

    /// Applies a command that came in parts; asked again, repeats the answer.
    fn unpack(&mut self, stamp: Stamp, parcel: u64, parts: u32) -> Result<Reply, TableError> {
        let mut parcels = Parcels::of(self.ledger.tables_mut())?;
        if let Some(reply) = parcels.answered(parcel) {
            return Ok(reply);
        }
        let Some(bytes) = parcels.open(parcel, parts)? else { return Ok(Reply::Stale) };
        let reply = match postcard::from_bytes::<Command>(&bytes) {
            Ok(command) => self.ledger.apply(stamp, command)?,
            // Not a command of ours, whatever it is: nothing of it counts.
            Err(_) => Reply::Stale,
        };
        Parcels::of(self.ledger.tables_mut())?.answer(parcel, &reply)?;
        Ok(reply)
    }

    fn sum_up(&mut self, index: u64, batch: &[u8], replies: &Replies) {
        let mut digest = sum(self.mark.digest ^ index, batch);
        self.encoded.clear();
        let encoded = postcard::to_extend(replies, std::mem::take(&mut self.encoded));
        self.encoded = encoded.unwrap_or_default();
        digest = sum(digest, &self.encoded);
        if index.is_multiple_of(CORE_SUMMED_EVERY) {
            digest = sum(digest, &encode(self.ledger.core()));
        }
        self.mark.digest = digest;
        self.sums.push_back(Check { index, digest: self.mark.digest });
        if self.sums.len() > SUMS_KEPT {
            self.sums.pop_front();
        }
    }

    /// A node whose ledger is another than the leader's stops before it does harm.
    fn compare(&self, check: Check) -> Result<(), TableError> {
        let own = self.sums.iter().rev().find(|own| own.index == check.index);
        if own.is_none_or(|own| own.digest == check.digest) {
            return Ok(());
        }
        Err(TableError {
            message: format!(
                "this node's ledger is not the cluster's, at entry {}: `{}` is kept as it is; move \
                 it away and start again, and the node is rebuilt from the others",
                check.index,
                self.dir.display()
            ),
            full: false,
        })
    }

    fn answer_waiting(&mut self) -> Result<(), TableError> {
        let index = if self.makes_do { u64::MAX } else { self.index() };
        if self.waiting.iter().all(|waiting| waiting.index > index) {
            return Ok(());
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.index > index {
                self.waiting.push(waiting);
            } else {
                self.answer(&waiting.question, waiting.respond)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, question: &Question, respond: Respond<Answer>) -> Result<(), TableError> {
        match answer(&mut self.ledger, question) {
            Ok(Answer::Run(Some(mut run))) => {
                run.positions = self.positions_of(&run);
                respond(Ok(Answer::Run(Some(run))));
                Ok(())
            }
            Ok(answer) => {
                respond(Ok(answer));
                Ok(())
            }
            Err(error) => {
                respond(Err(damaged_or_full(&error)));
                Err(error)
            }
        }
    }

    /// How far this node's own files are written.
    fn positions_of(&self, run: &Run) -> Vec<Position> {
        if self.positions.run == run.number && self.positions.all.len() == run.positions.len() {
            return self.positions.all.clone();
        }
        vec![Position::default(); run.positions.len()]
    }

    fn ack(&mut self, appender: u32, position: Position) -> Reply {
        let Some(run) = &self.ledger.core().run else { return Reply::Stale };
        let mut all = self.positions_of(run);
        match all.get_mut(appender as usize) {
            Some(known) if known.seq <= position.seq && position.seq <= run.output_seq => {
                *known = position;
            }
            _ => return Reply::Stale,
        }
        self.positions = Positions { run: run.number, all };
        self.log.keep_lightly(POSITIONS, &self.positions);
        Reply::Ok
    }

    fn publish(&mut self) {
        let mut standing = self.ledger.standing();
        if let Some(run) = &self.ledger.core().run {
            standing.lag_bytes = run.lag_bytes(&self.positions_of(run));
        }
        let grown = standing.output_seq != self.publish.borrow().output_seq;
        self.publish.send_if_modified(|known| std::mem::replace(known, standing) != standing);
        self.summed.send_replace(self.sums.back().copied());
        let core = self.ledger.core();
        let seats = core.seats.iter().filter(|(_, seat)| seat.incarnation > 0);
        let seats: BTreeMap<_, _> = seats.map(|(seat, one)| (*seat, one.incarnation)).collect();
        self.incarnations.send_if_modified(|known| {
            *known != seats && {
                *known = seats;
                true
            }
        });
        let cluster = core.cluster;
        self.cluster.send_if_modified(|known| std::mem::replace(known, cluster) != cluster);
        if grown && let Ok(bells) = self.bells.lock() {
            for bell in bells.iter() {
                // A full bell has rung already.
                let _rang = bell.try_send(()).is_ok();
            }
        }
    }

    fn commit_if_due(&mut self) -> Result<(), TableError> {
        let many = self.uncommitted >= COMMIT_MAX;
        if many || self.uncommitted > 0 && self.committed.elapsed() >= COMMIT_EVERY {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), TableError> {
        self.committed = Instant::now();
        if std::mem::take(&mut self.uncommitted) == 0 {
            return Ok(());
        }
        self.ledger.save_lanes()?;
        let mark = encode(&self.mark);
        let (core, tables) = self.ledger.parts();
        tables.put_replica(MARK, &mark)?;
        failpoint::pass("replica.commit.before");
        let commits = tables.commits() + 1;
        tables.commit(core, commits)?;
        failpoint::pass("replica.commit.after");
        Ok(())
    }

    /// Brings everything into the database file.
    fn settle(&mut self) -> Result<(), TableError> {
        self.commit()?;
        self.ledger.tables_mut().checkpoint()
    }

    /// Becomes what a snapshot says. The tables of before are whole until the new ones are in their
    /// place, so a crash at any step leaves the one or the other.
    fn install(&mut self, meta: &SnapshotMeta, path: &Path) -> Result<(), StoreError> {
        snapshot::verify(meta, path)?;
        self.settle().map_err(|error| damaged_or_full(&error))?;
        let empty = SqliteTables::open(None, self.seen_memory, Keeping::Replica)?;
        // Closes the tables of before.
        self.ledger = Ledger::new(crate::ledger::Core::default(), [], empty);
        failpoint::pass("snapshot.install.before");
        snapshot::put_in_place(path, &self.dir.join(STATE))?;
        failpoint::pass("snapshot.install.after");
        (self.ledger, self.mark) = restore(&self.dir, self.seen_memory)?;
        (self.uncommitted, self.committed) = (0, Instant::now());
        self.sums.clear();
        self.publish();
        self.answer_waiting().map_err(|error| damaged_or_full(&error))
    }
}
