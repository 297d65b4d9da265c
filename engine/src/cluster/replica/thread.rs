//! The thread that owns the ledger of a node. It applies committed entries to the tables on disk and answers
//! questions. Entries that were not committed to SQLite when the process died are applied again from
//! the log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender as Bell;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use crate::cluster::messages::{DigestCheck, LogEntry, Replies, SnapshotMeta};
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::apply::Replica;
use crate::cluster::replica::mark::{ReplicaMark, STATE};
use crate::cluster::replica::restore::{restore, restore_behind};
use crate::cluster::replica::roster::Roster;
use crate::cluster::replica::snapshot;
use crate::failpoint;
use crate::ledger::{Ledger, Position, Reply, Run, Seat, Standing, TableError};
use crate::store::answer::answer;
use crate::store::sqlite::{SqliteTables, TableOwner};
use crate::store::{Answer, Question, StoreError};
use crate::threads::ignore::ignore_closed;
use crate::threads::queue::{Receiver, Sender, queue};

/// Requests that wait for the thread.
const REQUESTS_MAX: usize = 1024;
/// Longest time between a change and its commit to SQLite. Until then the log has it.
const COMMIT_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between two publications of counters.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(10);
/// Commands of one commit. After a crash this many are applied again.
const COMMIT_COMMANDS_MAX: usize = 4000;
/// Record of how far this node has written its own files.
const POSITIONS: &str = "positions";

/// How far this node has written its files of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct FilePositions {
    run: u64,
    all: Vec<Position>,
}

type Respond<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;

pub(in crate::cluster) enum ReplicaRequest {
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
    /// From now on questions are answered at once, even if they name a later entry, which may never come.
    AnswerAtOnce,
    Roster(oneshot::Sender<Roster>),
    State(oneshot::Sender<ReplicaMark>),
    /// Commits everything, so that a copy can be made. The answer is the size of the tables in bytes.
    Settle(oneshot::Sender<Result<u64, StoreError>>),
    /// Syncs everything, so that the log can be purged up to the last applied entry.
    Sync(oneshot::Sender<Result<(), StoreError>>),
    Install(SnapshotMeta, PathBuf, oneshot::Sender<Result<(), StoreError>>),
    Close,
}

/// The way to the thread; cheap to clone.
#[derive(Clone)]
pub(in crate::cluster) struct ReplicaHandle {
    pub requests: Sender<ReplicaRequest>,
    pub standing: watch::Receiver<Standing>,
    /// The digest after the last applied entry with commands.
    pub summed: watch::Receiver<Option<DigestCheck>>,
    /// How often each node has had a new disk.
    pub incarnations: watch::Receiver<BTreeMap<Seat, u32>>,
    /// The name of the cluster; `None` until the first entry.
    pub cluster: watch::Receiver<Option<u128>>,
    pub bells: Arc<Mutex<Vec<Bell<()>>>>,
    pub dir: PathBuf,
}

impl std::fmt::Debug for ReplicaHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Machine")
    }
}

/// The thread behind a [`ReplicaHandle`].
#[derive(Debug)]
pub(in crate::cluster) struct ReplicaThread {
    requests: Sender<ReplicaRequest>,
    thread: JoinHandle<()>,
}

impl ReplicaThread {
    /// Ends the thread. Uncommitted changes are in the log.
    pub(in crate::cluster) fn close(self) {
        ignore_closed(self.requests.send(ReplicaRequest::Close));
        drop(self.thread.join());
    }
}

impl ReplicaHandle {
    /// Opens the tables in a data directory that is locked.
    pub(in crate::cluster) fn open(
        dir: &Path,
        seen_memory: u64,
        log: RaftLog,
        fatal: impl Fn(StoreError) + Send + 'static,
    ) -> Result<(Self, ReplicaThread), StoreError> {
        let (ledger, mark) = restore_behind(dir, seen_memory, &log)?;
        failpoint::pass("replica.open.after");
        let (requests, inbox) = queue(REQUESTS_MAX);
        let bells = Arc::new(Mutex::new(Vec::new()));
        let positions = log.local(POSITIONS).unwrap_or_default();
        let mut keeper = ReplicaWorker {
            dir: dir.to_owned(),
            seen_memory,
            replica: Replica::new(dir, ledger, mark),
            positions,
            log,
            publish: watch::Sender::new(Standing::default()),
            summed: watch::Sender::new(None),
            incarnations: watch::Sender::default(),
            cluster: watch::Sender::default(),
            bells: Arc::clone(&bells),
            waiting: Vec::new(),
            answers_at_once: false,
            committed: Instant::now(),
            published: Instant::now(),
            is_unpublished: false,
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
        Ok((machine, ReplicaThread { requests, thread }))
    }

    /// The last run in the ledger as it is now.
    pub(in crate::cluster) async fn last_run(&self) -> Result<Option<Run>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let respond = Box::new(move |run| ignore_closed(answer.send(run)));
        let request = ReplicaRequest::Ask { question: Question::Run, index: 0, respond };
        ignore_closed(self.requests.send(request));
        match answered.await.map_err(|_| StoreError::Closed)?? {
            Answer::Run(run) => Ok(run.map(|run| *run)),
            other => Err(StoreError::Failed(format!("the run was requested, not {other:?}"))),
        }
    }

    /// Sends a request and awaits its answer.
    pub(in crate::cluster) async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> ReplicaRequest,
    ) -> Result<T, StoreError> {
        let (answer, question) = oneshot::channel();
        ignore_closed(self.requests.send(request(answer)));
        question.await.map_err(|_| StoreError::Closed)
    }
}

struct WaitingQuestion {
    index: u64,
    question: Question,
    respond: Respond<Answer>,
}

/// The state of the thread.
struct ReplicaWorker {
    dir: PathBuf,
    seen_memory: u64,
    replica: Replica,
    positions: FilePositions,
    log: RaftLog,
    publish: watch::Sender<Standing>,
    summed: watch::Sender<Option<DigestCheck>>,
    incarnations: watch::Sender<BTreeMap<Seat, u32>>,
    cluster: watch::Sender<Option<u128>>,
    bells: Arc<Mutex<Vec<Bell<()>>>>,
    /// Questions that name an entry which is not applied yet.
    waiting: Vec<WaitingQuestion>,
    /// Whether such questions are answered at once.
    answers_at_once: bool,
    committed: Instant,
    published: Instant,
    /// Whether something has changed since the last publication.
    is_unpublished: bool,
}

impl ReplicaWorker {
    fn keep(mut self, inbox: &Receiver<ReplicaRequest>, fatal: impl Fn(StoreError)) {
        let error = loop {
            let patience = match (self.is_unpublished, self.replica.uncommitted) {
                (true, _) => PUBLISH_INTERVAL,
                (false, 0) => Duration::from_mins(1),
                (false, _) => COMMIT_INTERVAL,
            };
            let served = match inbox.recv_batched(1, Instant::now() + patience) {
                Some(ReplicaRequest::Close) => return,
                Some(request) => self.serve(request),
                None if inbox.has_ended() => return,
                None if self.is_unpublished => {
                    self.publish();
                    Ok(())
                }
                None => self.commit(),
            };
            if let Err(error) = served.and_then(|()| self.commit_if_due()) {
                break StoreError::from(error);
            }
        };
        fatal(error.clone());
        drop(self.publish);
        for waiting in self.waiting {
            (waiting.respond)(Err(error.clone()));
        }
        while let Some(request) = inbox.recv() {
            match request {
                ReplicaRequest::Apply(_, respond) => {
                    ignore_closed(respond.send(Err(error.clone())));
                }
                ReplicaRequest::Ask { respond, .. } => respond(Err(error.clone())),
                ReplicaRequest::Ack { respond, .. } => respond(Err(error.clone())),
                ReplicaRequest::Settle(respond) => ignore_closed(respond.send(Err(error.clone()))),
                ReplicaRequest::Sync(respond) | ReplicaRequest::Install(_, _, respond) => {
                    ignore_closed(respond.send(Err(error.clone())));
                }
                ReplicaRequest::Roster(_)
                | ReplicaRequest::State(_)
                | ReplicaRequest::AnswerAtOnce => {}
                ReplicaRequest::Close => return,
            }
        }
    }

    fn serve(&mut self, request: ReplicaRequest) -> Result<(), TableError> {
        match request {
            ReplicaRequest::Apply(entries, respond) => {
                let replies = entries.into_iter().map(|entry| self.replica.apply(entry));
                let replies = replies.collect::<Result<Vec<_>, TableError>>();
                match replies {
                    Ok(replies) => {
                        self.summed.send_replace(self.replica.sums.back().copied());
                        self.publish_if_due();
                        ignore_closed(respond.send(Ok(replies)));
                        self.answer_waiting()
                    }
                    Err(error) => {
                        ignore_closed(respond.send(Err(error.clone().into())));
                        Err(error)
                    }
                }
            }
            ReplicaRequest::Ask { question, index, respond } => {
                if self.is_unpublished {
                    self.publish();
                }
                if index > self.replica.index() && !self.answers_at_once {
                    self.waiting.push(WaitingQuestion { index, question, respond });
                    return Ok(());
                }
                self.answer(&question, respond)
            }
            ReplicaRequest::Ack { appender, position, respond } => {
                let reply = self.ack(appender, position);
                self.publish();
                respond(Ok(reply));
                Ok(())
            }
            ReplicaRequest::AnswerAtOnce => {
                self.answers_at_once = true;
                self.answer_waiting()
            }
            ReplicaRequest::Roster(respond) => {
                ignore_closed(respond.send(Roster::of(&self.replica.ledger, &self.replica.mark)));
                Ok(())
            }
            ReplicaRequest::State(respond) => {
                ignore_closed(respond.send(self.replica.mark.clone()));
                Ok(())
            }
            ReplicaRequest::Settle(respond) => {
                let settled = self.commit();
                let size = std::fs::metadata(self.dir.join(STATE)).map_or(0, |file| file.len());
                let told = settled.clone().map(|()| size).map_err(StoreError::from);
                ignore_closed(respond.send(told));
                settled
            }
            ReplicaRequest::Sync(respond) => {
                let synced = self.sync();
                ignore_closed(respond.send(synced.clone().map_err(StoreError::from)));
                synced
            }
            ReplicaRequest::Install(meta, path, respond) => {
                let installed = self.install(&meta, &path);
                ignore_closed(respond.send(installed.clone()));
                installed.map_err(|error| TableError { message: error.to_string(), full: false })
            }
            ReplicaRequest::Close => Ok(()),
        }
    }

    fn answer_waiting(&mut self) -> Result<(), TableError> {
        let index = if self.answers_at_once { u64::MAX } else { self.replica.index() };
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
        match answer(&mut self.replica.ledger, question) {
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
                respond(Err(error.clone().into()));
                Err(error)
            }
        }
    }

    /// How far this node has written its own files.
    fn positions_of(&self, run: &Run) -> Vec<Position> {
        if self.positions.run == run.number && self.positions.all.len() == run.positions.len() {
            return self.positions.all.clone();
        }
        vec![Position::default(); run.positions.len()]
    }

    fn ack(&mut self, appender: u32, position: Position) -> Reply {
        let Some(run) = &self.replica.ledger.core().run else { return Reply::Stale };
        let mut all = self.positions_of(run);
        match all.get_mut(appender as usize) {
            Some(known) if known.seq <= position.seq && position.seq <= run.output_seq => {
                *known = position;
            }
            _ => return Reply::Stale,
        }
        self.positions = FilePositions { run: run.number, all };
        self.log.keep_lightly(POSITIONS, &self.positions);
        Reply::Ok
    }

    /// Publishes counters now and then, because each publication wakes threads. Changes of the state of the
    /// run or of the nodes are published at once.
    fn publish_if_due(&mut self) {
        let state = |now: &Standing| {
            (now.over, now.closed, now.cancelled, now.voters, now.workers, now.crossings)
        };
        let (now, known) = (self.replica.ledger.standing(), *self.publish.borrow());
        let is_named = *self.cluster.borrow() == self.replica.ledger.core().cluster;
        self.is_unpublished =
            is_named && state(&now) == state(&known) && self.published.elapsed() < PUBLISH_INTERVAL;
        if !self.is_unpublished {
            self.publish();
        }
    }

    fn publish(&mut self) {
        (self.is_unpublished, self.published) = (false, Instant::now());
        let mut standing = self.replica.ledger.standing();
        if let Some(run) = &self.replica.ledger.core().run {
            standing.lag_bytes = run.lag_bytes(&self.positions_of(run));
        }
        let grown = standing.output_seq != self.publish.borrow().output_seq;
        self.publish.send_if_modified(|known| std::mem::replace(known, standing) != standing);
        let core = self.replica.ledger.core();
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
                // A full bell has already woken its reader.
                ignore_closed(bell.try_send(()));
            }
        }
    }

    fn commit_if_due(&mut self) -> Result<(), TableError> {
        let many = self.replica.uncommitted >= COMMIT_COMMANDS_MAX;
        if many || self.replica.uncommitted > 0 && self.committed.elapsed() >= COMMIT_INTERVAL {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), TableError> {
        self.committed = Instant::now();
        self.replica.commit()
    }

    fn sync(&mut self) -> Result<(), TableError> {
        self.commit()?;
        self.replica.ledger.tables_mut().sync()?;
        failpoint::pass("replica.sync.after");
        Ok(())
    }

    /// Writes everything to the database file.
    fn settle(&mut self) -> Result<(), TableError> {
        self.commit()?;
        self.replica.ledger.tables_mut().checkpoint()?;
        failpoint::pass("replica.sync.after");
        Ok(())
    }

    /// Replaces the tables by a snapshot. The old tables stay complete until the new ones are in place, so a
    /// crash leaves either the old or the new ones.
    fn install(&mut self, meta: &SnapshotMeta, path: &Path) -> Result<(), StoreError> {
        snapshot::verify(meta, path)?;
        self.settle().map_err(StoreError::from)?;
        let empty = SqliteTables::open(None, self.seen_memory, TableOwner::Replica)?;
        // Closes the old tables.
        self.replica.ledger = Ledger::new(crate::ledger::Core::default(), [], empty);
        failpoint::pass("snapshot.install.before");
        snapshot::put_in_place(path, &self.dir.join(STATE))?;
        failpoint::pass("snapshot.install.after");
        let (ledger, mark) = restore(&self.dir, self.seen_memory)?;
        (self.replica, self.committed) = (Replica::new(&self.dir, ledger, mark), Instant::now());
        self.publish();
        Ok(self.answer_waiting()?)
    }
}

#[cfg(test)]
mod tests;
