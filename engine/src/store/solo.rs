//! The store of one machine. A thread owns the ledger and applies commands in the order of arrival. A
//! commit writes many commands as one record of the journal.
//!
//! When the journal is full, the thread writes the tables to disk and starts the journal over. A later
//! process applies the commits of the journal that the tables do not have.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender as Bell, bounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use shaku::Component;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::answer::answer;
use super::journal::Journal;
use super::lock::DirLock;
use super::mark::CommitMark;
use super::restore::{RestoredLedger, encode_command};
use super::sqlite::{SqliteTables, TableOwner};
use super::{Answer, Question, Store, StoreError};
use crate::failpoint;
use crate::ledger::{Command, Ledger, Reply, SessionId, Stamp, Standing};
use crate::threads::ignore::ignore_closed;
use crate::threads::pool::answer_in_one_task;
use crate::threads::queue::{self, Sender, queue};

/// How a solo store is opened.
#[derive(Debug, Clone)]
pub(crate) struct OpenOptions {
    /// Data directory, which is created if necessary.
    pub dir: PathBuf,
    /// Keep everything in memory, for benchmarks.
    pub in_memory: bool,
    /// Longest time between a change and its commit.
    pub commit_interval: Duration,
    /// Most commands in one commit.
    pub commit_max: usize,
    /// Most commands in the queue.
    pub queue_max: usize,
    /// Memory for the set of known keys, in bytes.
    pub seen_memory: u64,
    /// Size of the journal in bytes beyond which the tables are written to disk.
    pub journal_max: u64,
}

/// Number of commits after which tables in memory apply their buffered changes.
const UNSETTLED_MAX: u64 = 4096;
/// Most bytes of the buffer that are kept for the next record.
const RECORD_ROOM: usize = 1 << 20;

/// How long a finished job waits for more jobs to share its commit. A sync takes longer on many disks,
/// and pages that were loaded together arrive within this time.
const GATHER_TIME: Duration = Duration::from_millis(1);

type SoloResponder<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;
/// The runtime of the task that waits for the reply; `None` for a blocked thread.
type CallerRuntime = Option<Handle>;

#[expect(
    clippy::large_enum_variant,
    reason = "commands are moved once; a box each would cost more"
)]
enum SoloRequest {
    Submit(Command, CallerRuntime, SoloResponder<Reply>),
    Ask(Question, CallerRuntime, SoloResponder<Answer>),
    Close,
}

/// A running store; cheap to clone.
#[derive(Clone)]
pub(crate) struct SoloHandle {
    requests: Sender<SoloRequest>,
    standing: watch::Receiver<Standing>,
    bells: Arc<Mutex<Vec<Bell<()>>>>,
    ending: Arc<OnceLock<u8>>,
}

impl std::fmt::Debug for SoloHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SoloHandle")
    }
}

/// The component that `SoloModule` binds to [`Store`].
#[derive(Debug, Component)]
#[shaku(interface = Store)]
pub(crate) struct SoloStore {
    pub(crate) handle: SoloHandle,
}

/// The thread behind a handle. Dropping it without [`SoloThread::close`] leaves the thread to end
/// with the process.
#[derive(Debug)]
pub(crate) struct SoloThread {
    handle: SoloHandle,
    thread: JoinHandle<()>,
}

impl SoloHandle {
    /// Opens the store and starts its thread.
    pub(crate) fn open(options: &OpenOptions) -> Result<(Self, SoloThread), StoreError> {
        let lock = if options.in_memory { None } else { Some(DirLock::take(&options.dir)?) };
        failpoint::pass("store.lock.after");
        let (ledger, files) = if options.in_memory {
            let mut tables = SqliteTables::open(None, options.seen_memory, TableOwner::Solo)?;
            let (core, lanes) = tables.restore()?;
            (Ledger::new(core, lanes, tables), None)
        } else {
            let RestoredLedger { ledger, journal, mark } =
                RestoredLedger::open(&options.dir, options.seen_memory)?;
            (ledger, Some((journal, mark)))
        };
        failpoint::pass("store.open.after");
        let (requests, inbox) = queue(options.queue_max);
        let (publish, standing) = watch::channel(ledger.standing());
        let bells = Arc::new(Mutex::new(Vec::new()));
        let ending = Arc::new(OnceLock::new());
        let (bell, end) = (Arc::clone(&bells), Arc::clone(&ending));
        let handle = Self { requests, standing, bells: bell, ending: end };
        let worker = SoloWorker {
            stamp: Stamp { leadership: leadership(), ms: 0 },
            ledger,
            inbox,
            publish,
            bells,
            interval: options.commit_interval,
            commit_max: options.commit_max.max(1),
            began: Instant::now(),
            held: Vec::new(),
            changed: false,
            last: false,
            ending,
            files,
            record: Vec::new(),
            unsynced: false,
            unsettled: 0,
            journal_max: options.journal_max,
            _lock: lock,
        };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| {
                StoreError::Failed(format!("cannot start the thread of the store: {error}"))
            })?;
        Ok((handle.clone(), SoloThread { handle, thread }))
    }

    fn send(&self, request: SoloRequest) {
        // A closed store drops the request with its responder, and the caller gets `Closed`.
        ignore_closed(self.requests.send(request));
    }
}

impl SoloThread {
    /// Makes the process exit with this code at the moment its run is closed.
    pub(crate) fn end_process_with(&self, code: u8) {
        self.handle.ending.get_or_init(|| code);
    }

    /// Ends the thread after all earlier commands are durable.
    pub(crate) fn close(self) {
        self.handle.send(SoloRequest::Close);
        drop(self.thread.join());
    }
}

/// Exits at once. If the process were killed later, it would look like the start of another run.
#[expect(
    clippy::exit,
    reason = "everything is stored and reported; a shutdown would only take time"
)]
pub(crate) fn leave(code: u8) -> ! {
    std::process::exit(code.into())
}

/// A number that no earlier process has used for the same data directory, so that ledger time never
/// mixes the clocks of two processes.
fn leadership() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64) ^ (u64::from(std::process::id()) << 48)
}

/// Whether the reply must wait for the commit, because the caller acts on it outside the store: it writes
/// files, or starts a job that the next process must know about after a crash.
fn needs_commit(command: &Command) -> bool {
    matches!(
        command,
        Command::Join(_)
            | Command::OpenRun { .. }
            | Command::Begin { .. }
            | Command::Finish { .. }
            | Command::Close { .. }
            | Command::Leave { .. }
    )
}

/// The state of the thread.
struct SoloWorker {
    ledger: Ledger<SqliteTables>,
    inbox: queue::Receiver<SoloRequest>,
    publish: watch::Sender<Standing>,
    bells: Arc<Mutex<Vec<Bell<()>>>>,
    interval: Duration,
    commit_max: usize,
    began: Instant,
    stamp: Stamp,
    /// Replies that wait for the commit.
    held: Vec<(CallerRuntime, SoloResponder<()>)>,
    /// Whether anything was applied since the last commit.
    changed: bool,
    /// Whether the next commit is the leave after the close of a run.
    last: bool,
    /// The exit code of the process for that case.
    ending: Arc<OnceLock<u8>>,
    /// Journal and mark, unless everything is in memory.
    files: Option<(Journal, CommitMark)>,
    /// The commands since the last commit.
    record: Vec<u8>,
    /// Whether there are records since the last sync.
    unsynced: bool,
    /// Number of commits that the tables on disk do not have.
    unsettled: u64,
    journal_max: u64,
    /// Locked until the thread ends.
    _lock: Option<DirLock>,
}

impl SoloWorker {
    fn run(mut self) {
        while let Some(request) = self.inbox.recv() {
            match self.batch(request) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail_all(&error),
            }
        }
    }

    /// Serves requests until the queue is empty or a limit is reached, then commits.
    fn batch(&mut self, first: SoloRequest) -> Result<bool, StoreError> {
        let deadline = Instant::now() + self.interval;
        let (mut next, mut count, mut open) = (Some(first), 0, true);
        while let Some(request) = next.take() {
            open = self.serve(request)?;
            count += 1;
            if !open || count >= self.commit_max || Instant::now() >= deadline {
                break;
            }
            // While a reply waits for the commit, more requests are awaited only if jobs are in flight
            // that may end soon, and for a short time.
            let (wanted, limit) = match self.ledger.core().taken_count() as usize {
                _ if self.held.is_empty() => (1, self.interval),
                in_flight => (in_flight, GATHER_TIME.min(self.interval)),
            };
            let wait = || self.inbox.recv_batched(wanted, Instant::now() + limit);
            next = self.inbox.try_recv().or_else(wait);
        }
        self.commit()?;
        if !open {
            self.sync()?;
        }
        Ok(open)
    }

    fn serve(&mut self, request: SoloRequest) -> Result<bool, StoreError> {
        match request {
            SoloRequest::Submit(command, caller, respond) => {
                let wait = needs_commit(&command);
                let released = matches!(command, Command::Release { .. });
                // A process that leaves a closed run has reported the end and is finished.
                let ends =
                    matches!(command, Command::Leave { .. }) && self.ledger.standing().closed;
                if ends && let Err(error) = self.commit() {
                    respond(Err(error.clone()));
                    return Err(error);
                }
                // A later command in the same batch makes it an ordinary commit.
                self.last = ends;
                self.changed = true;
                self.stamp.ms = self.began.elapsed().as_millis() as u64;
                if self.files.is_some() {
                    encode_command(&mut self.record, self.stamp, &command)?;
                }
                failpoint::pass("store.apply.before");
                let reply = self.ledger.apply(self.stamp, command);
                failpoint::pass("store.apply.after");
                match or_respond(reply.map_err(StoreError::from), respond)? {
                    (reply, respond) if wait => {
                        let held =
                            Box::new(|durable: Result<_, _>| respond(durable.map(|()| reply)));
                        self.held.push((caller, held));
                    }
                    (reply, respond) => {
                        // The caller waits for the next barricade until the release is published.
                        if released {
                            self.commit()?;
                        }
                        respond(Ok(reply));
                    }
                }
                Ok(true)
            }
            SoloRequest::Ask(Question::Flush, caller, respond) => {
                let held = |durable: Result<_, _>| respond(durable.map(|()| Answer::Flushed));
                self.held.push((caller, Box::new(held)));
                Ok(true)
            }
            SoloRequest::Ask(question, _, respond) => {
                let answer = self.read(&question);
                let (answer, respond) = or_respond(answer, respond)?;
                respond(Ok(answer));
                Ok(true)
            }
            SoloRequest::Close => Ok(false),
        }
    }

    fn read(&mut self, question: &Question) -> Result<Answer, StoreError> {
        if matches!(question, Question::Output { .. } | Question::CanonicalOutput { .. }) {
            self.commit()?;
        }
        Ok(answer(&mut self.ledger, question)?)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if self.changed {
            self.changed = false;
            self.write()?;
        }
        if !self.held.is_empty() {
            self.sync()?;
        }
        let standing = self.ledger.standing();
        let grown = standing.output_seq != self.publish.borrow().output_seq;
        self.publish.send_if_modified(|known| std::mem::replace(known, standing) != standing);
        if grown && let Ok(bells) = self.bells.lock() {
            for bell in bells.iter() {
                // A full channel already holds a wake-up.
                ignore_closed(bell.try_send(()));
            }
        }
        // The figures are published before the replies.
        self.answer_held();
        failpoint::pass("store.answer.after");
        Ok(())
    }

    /// Sends the replies that wait for the commit.
    fn answer_held(&mut self) {
        let (tasks, threads): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|(caller, _)| caller.is_some());
        for (_, respond) in threads {
            respond(Ok(()));
        }
        let Some((Some(runtime), _)) = tasks.first() else { return };
        answer_in_one_task(Some(&runtime.clone()), move || {
            for (_, respond) in tasks {
                respond(Ok(()));
            }
        });
    }

    /// Writes a record that survives the death of the process.
    ///
    /// After the leave that follows the close of a run, the process exits here, without a sync and without
    /// a reply. Once that record is written, a killed process would look like one that was asked for
    /// another run. If a power failure loses the record, the next process finds the run closed and reports
    /// its end.
    fn write(&mut self) -> Result<(), StoreError> {
        let last = std::mem::take(&mut self.last);
        self.unsettled += 1;
        let Some((journal, _)) = &mut self.files else {
            return if self.unsettled < UNSETTLED_MAX { Ok(()) } else { self.settle() };
        };
        failpoint::pass("store.commit.before");
        journal.append(&self.record)?;
        self.unsynced = true;
        self.record.clear();
        self.record.shrink_to(RECORD_ROOM);
        if last {
            failpoint::pass("run.close.after");
            if let Some(code) = self.ending.get() {
                leave(*code);
            }
        }
        if journal.size() < self.journal_max {
            return Ok(());
        }
        self.settle()
    }

    /// Syncs the journal if there are new records. Commits that no caller waits for are synced later.
    fn sync(&mut self) -> Result<(), StoreError> {
        if let Some((journal, mark)) = &mut self.files
            && self.unsynced
        {
            journal.sync()?;
            failpoint::pass("store.commit.after");
            mark.note(journal.next() - 1);
        }
        self.unsynced = false;
        Ok(())
    }

    /// Writes the tables to disk, so that the journal can start over.
    fn settle(&mut self) -> Result<(), StoreError> {
        failpoint::pass("store.settle.before");
        self.ledger.save_lanes()?;
        let (core, tables) = self.ledger.parts();
        let commits = match &self.files {
            Some((journal, _)) => journal.next() - 1,
            None => tables.commits() + 1,
        };
        tables.commit(core, commits)?;
        failpoint::pass("store.settle.after");
        if let Some((journal, mark)) = &mut self.files {
            journal.begin_at(journal.next());
            mark.note(journal.next() - 1);
        }
        (self.unsettled, self.unsynced) = (0, false);
        Ok(())
    }

    /// After a failed write the state is undefined: every caller gets the error, now and later. The thread
    /// keeps receiving until the store is closed, because requests left in the queue would wait forever.
    fn fail_all(mut self, error: &StoreError) {
        for (_, respond) in self.held.drain(..) {
            respond(Err(error.clone()));
        }
        drop(self.publish);
        while let Some(request) = self.inbox.recv() {
            match request {
                SoloRequest::Submit(_, _, respond) => respond(Err(error.clone())),
                SoloRequest::Ask(_, _, respond) => respond(Err(error.clone())),
                SoloRequest::Close => return,
            }
        }
    }
}

/// Returns a value with its responder, or sends the error to the caller.
fn or_respond<T>(
    result: Result<T, StoreError>,
    respond: SoloResponder<T>,
) -> Result<(T, SoloResponder<T>), StoreError> {
    match result {
        Ok(value) => Ok((value, respond)),
        Err(error) => {
            respond(Err(error.clone()));
            Err(error)
        }
    }
}

impl SoloHandle {
    fn await_answer<T: Send + 'static>(
        &self,
        request: impl FnOnce(CallerRuntime, SoloResponder<T>) -> SoloRequest,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (answer, question) = oneshot::channel();
        // The caller may have stopped waiting.
        let respond = Box::new(move |result| ignore_closed(answer.send(result)));
        self.send(request(Handle::try_current().ok(), respond));
        question.map(|result| result.unwrap_or(Err(StoreError::Closed))).boxed()
    }

    fn block_on_answer<T: Send + 'static>(
        &self,
        request: impl FnOnce(CallerRuntime, SoloResponder<T>) -> SoloRequest,
    ) -> Result<T, StoreError> {
        let (answer, question) = bounded(1);
        self.send(request(None, Box::new(move |result| ignore_closed(answer.send(result)))));
        question.recv().unwrap_or(Err(StoreError::Closed))
    }
}

impl Store for SoloStore {
    fn submit(&self, command: Command) -> BoxFuture<'static, Result<Reply, StoreError>> {
        self.handle.await_answer(|caller, respond| SoloRequest::Submit(command, caller, respond))
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Answer, StoreError>> {
        self.handle.await_answer(|caller, respond| SoloRequest::Ask(question, caller, respond))
    }

    fn submit_blocking(&self, command: Command) -> Result<Reply, StoreError> {
        self.handle.block_on_answer(|caller, respond| SoloRequest::Submit(command, caller, respond))
    }

    fn ask_blocking(&self, question: Question) -> Result<Answer, StoreError> {
        self.handle.block_on_answer(|caller, respond| SoloRequest::Ask(question, caller, respond))
    }

    fn renew(&self, _session: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        // Only this process can end its session.
        futures_util::future::ready(Ok(true)).boxed()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.handle.standing.clone()
    }

    fn output_bell(&self) -> Receiver<()> {
        let (ring, bell) = bounded(1);
        if let Ok(mut bells) = self.handle.bells.lock() {
            bells.push(ring);
        }
        bell
    }
}
