//! The ledger of one process: a thread that owns the tables, applies commands in the order they
//! come and makes many of them durable with one record of a journal. The tables themselves are
//! brought to the disk when the journal is full; a process that comes later applies what it has
//! beyond them.

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
    /// Data directory; made when it is not there.
    pub dir: PathBuf,
    /// Keep everything in memory: for measuring.
    pub in_memory: bool,
    /// Longest time between a change and its commit.
    pub commit_interval: Duration,
    /// Commands in one commit at most.
    pub commit_max: usize,
    /// Commands waiting at most.
    pub queue_max: usize,
    /// Memory for the set of known keys, in bytes.
    pub seen_memory: u64,
    /// Bytes of the journal, beyond which its commands are brought to the tables' file.
    pub journal_max: u64,
}

/// Commits after which tables in memory are told of them.
const UNSETTLED_MAX: u64 = 4096;
/// Memory that is kept for the next record.
const RECORD_ROOM: usize = 1 << 20;

/// How long the end of a job waits for others to share its commit: less than a sync takes on
/// many disks, and enough for pages that were loaded together.
const GATHER_TIME: Duration = Duration::from_millis(1);

type SoloResponder<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;
/// Who asks: a task of a runtime, or a thread that can do nothing else meanwhile.
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
            .map_err(|error| StoreError::Failed(format!("no thread for the store: {error}")))?;
        Ok((handle.clone(), SoloThread { handle, thread }))
    }

    fn send(&self, request: SoloRequest) {
        // A closed store drops the request, and with it the responder: the caller sees `Closed`.
        ignore_closed(self.requests.send(request));
    }
}

impl SoloThread {
    /// Has the process end, with this exit code, in the moment its run is closed.
    pub(crate) fn end_process_with(&self, code: u8) {
        self.handle.ending.get_or_init(|| code);
    }

    /// Ends the thread after everything before is durable.
    pub(crate) fn close(self) {
        self.handle.send(SoloRequest::Close);
        drop(self.thread.join());
    }
}

/// Ends the process now: killed later, it would seem to have been asked for another run.
#[expect(clippy::exit, reason = "all is stored and told; what is left would only take time")]
pub(crate) fn leave(code: u8) -> ! {
    std::process::exit(code.into())
}

/// A number no earlier process used for the same data directory, so that ledger time never adds
/// the clock of one process to that of another.
fn leadership() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64) ^ (u64::from(std::process::id()) << 48)
}

/// Whether something outside the store follows from the answer, which must not be undone by a
/// crash: rows are counted on, files are made for a run, and after a crash the next process must
/// know that one was at work, and on what.
fn is_relied_on(command: &Command) -> bool {
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

/// The thread's own state.
struct SoloWorker {
    ledger: Ledger<SqliteTables>,
    inbox: queue::Receiver<SoloRequest>,
    publish: watch::Sender<Standing>,
    bells: Arc<Mutex<Vec<Bell<()>>>>,
    interval: Duration,
    commit_max: usize,
    began: Instant,
    stamp: Stamp,
    /// Answers that wait for the disk.
    held: Vec<(CallerRuntime, SoloResponder<()>)>,
    /// Whether anything was applied since the last commit.
    changed: bool,
    /// Whether the next commit is the last act of a run that is durable already.
    last: bool,
    /// The exit code with which the process is to end then.
    ending: Arc<OnceLock<u8>>,
    /// Where commits go, unless everything is kept in memory.
    files: Option<(Journal, CommitMark)>,
    /// The commands since the last commit.
    record: Vec<u8>,
    /// Whether anything was written since the last sync.
    unsynced: bool,
    /// Commits that the tables' file does not have yet.
    unsettled: u64,
    journal_max: u64,
    /// SoloResponder<()> as long as the thread lives.
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

    /// Serves requests until there is a pause, or a bound is reached, then commits.
    fn batch(&mut self, first: SoloRequest) -> Result<bool, StoreError> {
        let deadline = Instant::now() + self.interval;
        let (mut next, mut count, mut open) = (Some(first), 0, true);
        while let Some(request) = next.take() {
            open = self.serve(request)?;
            count += 1;
            if !open || count >= self.commit_max || Instant::now() >= deadline {
                break;
            }
            // An answer that somebody waits for is kept back for company only while jobs are out
            // that may end any moment, and not for long.
            let (wanted, patience) = match self.ledger.core().taken_count() as usize {
                _ if self.held.is_empty() => (1, self.interval),
                out => (out, GATHER_TIME.min(self.interval)),
            };
            let wait = || self.inbox.recv_batched(wanted, Instant::now() + patience);
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
                let wait = is_relied_on(&command);
                let released = matches!(command, Command::Release { .. });
                // Whoever leaves a closed run has told its end: nothing is left to do.
                let ends =
                    matches!(command, Command::Leave { .. }) && self.ledger.standing().closed;
                if ends && let Err(error) = self.commit() {
                    respond(Err(error.clone()));
                    return Err(error);
                }
                // With others in its company it is a commit like any other.
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
                        // The next barricade is waited for until this one is seen to be free.
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
                // A full bell has rung already.
                ignore_closed(bell.try_send(()));
            }
        }
        // Who waits for a commit finds it published.
        self.answer_held();
        failpoint::pass("store.answer.after");
        Ok(())
    }

    /// Tells everybody who waits for the commit.
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

    /// Writes what has changed: it outlives the process. The leave after the close of a run is the one
    /// thing that nobody may wait for: from the moment it is written a kill would have the next
    /// process begin another run. So there is no sync, and no other thread is told: the process ends
    /// here. If the power goes before it is on the disk, the next process finds the run closed, and
    /// tells its end.
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

    /// Waits until what was written is on the disk; where nobody relies on it, it goes there with what
    /// comes later.
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

    /// Brings the tables to the disk, so that the journal can begin anew.
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

    /// Nothing after a failed write is certain: everybody is told, those too who ask later. A
    /// channel keeps what is sent to it while its receiver goes, and who sent that would wait for
    /// ever.
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

/// Passes a result on with its responder, or tells the caller why there is none.
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
        // A caller that no longer waits needs no answer.
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
        // Nobody but this process could end its session.
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
