//! The appender mediator: one writer thread for each appender. A writer reads committed output only,
//! appends it, and then stores its position in the ledger: a crash in between appends the same blocks
//! again. It ends at the last block of the run.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, Sender, bounded, select};
use spoonbill_plugins::appender::{Appender, AppenderMark, OpenedAt, RunOutput};
use tokio::sync::watch;

use crate::config::{Durability, OutputOrder};
use crate::failpoint;
use crate::ledger::{Command, OutputBlock, Position, Run};
use crate::plan::prepare::{AppenderSpec, Plan};
use crate::store::{Answer, Question, Store, StoreError};
use crate::threads::ignore::ignore_closed;

/// Shortest pause between two reads of committed output, so that rows are written in batches.
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time for which appended rows are not durable.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Output of one read.
const READ_BYTES: usize = 4 << 20;
/// A writer without unsynced rows wakes this often, although nothing asks it to.
const IDLE_WAKE: Duration = Duration::from_hours(1);

/// A message to a writer about the end of the run.
#[derive(Debug, Clone, Copy)]
enum WriterMessage {
    /// Read no more until `End` says how far.
    Hold,
    /// This is the last block.
    End(u64),
}

/// How one appender ended.
#[derive(Debug)]
pub(crate) struct AppendResult {
    /// The target.
    pub target: String,
    /// Why rows are missing from the target. The store keeps them.
    pub error: Option<String>,
}

/// The order to write one output.
pub(crate) struct AppendOrder {
    /// The number of the appender.
    pub number: u32,
    /// The name of the target in messages.
    pub target: String,
    /// Writes to the target.
    pub appender: Box<dyn Appender>,
    /// Where an earlier process stopped.
    pub position: Position,
    /// Whether rows are sorted at the end instead of written as they come.
    pub is_canonical: bool,
}

/// The orders for all appenders of a run.
pub(crate) fn orders(plan: &Plan, run: &Run, folder: &str) -> Vec<AppendOrder> {
    let is_canonical = plan.config.output.order == OutputOrder::Canonical;
    let output = RunOutput {
        dir: &plan.config.output.dir,
        folder,
        is_whole: is_canonical,
        is_durable: plan.config.store.durability == Durability::Strict,
    };
    let order = |(number, (spec, position)): (u32, (&AppenderSpec, &Position))| AppendOrder {
        number,
        target: spec.target.name_in(output),
        appender: spec.target.appender(output, &spec.header),
        position: position.clone(),
        is_canonical,
    };
    (0..).zip(plan.appenders.iter().zip(&run.positions)).map(order).collect()
}

/// The running writers.
#[derive(Debug)]
pub(crate) struct AppenderMediator {
    failed: watch::Receiver<bool>,
    writers: Vec<(Sender<WriterMessage>, JoinHandle<AppendResult>)>,
}

impl AppenderMediator {
    /// Starts a thread for each appender.
    pub(crate) fn start(store: &Arc<dyn Store>, orders: Vec<AppendOrder>) -> io::Result<Self> {
        let mut writers = Vec::new();
        let (fails, failed) = watch::channel(false);
        for order in orders {
            // Without a buffer, a sent message is a received message.
            let (send, messages) = bounded(0);
            let (new_output, fails) = (store.output_bell(), fails.clone());
            let writer = Writer {
                store: Arc::clone(store),
                order,
                synced: Instant::now(),
                has_unsynced: false,
            };
            let name = format!("append-{}", writer.order.number);
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                let result = writer.write(&new_output, &messages);
                if result.error.is_some() {
                    fails.send_replace(true);
                }
                result
            })?;
            writers.push((send, thread));
        }
        Ok(Self { failed, writers })
    }

    /// Whether a writer has given up, so that its rows are not written in this run.
    pub(crate) fn broken(&self) -> watch::Receiver<bool> {
        self.failed.clone()
    }

    /// Ends the writers and waits for them. `last` reads the last block to write while all writers hold,
    /// so that the report describes what the targets contain.
    pub(crate) fn close(self, last: impl FnOnce() -> u64) -> Vec<AppendResult> {
        // A writer that has given up receives nothing; its result says why.
        for (send, _) in &self.writers {
            ignore_closed(send.send(WriterMessage::Hold));
        }
        let last = last();
        for (send, _) in &self.writers {
            ignore_closed(send.send(WriterMessage::End(last)));
        }
        self.writers.into_iter().filter_map(|(_, thread)| thread.join().ok()).collect()
    }
}

struct Writer {
    store: Arc<dyn Store>,
    order: AppendOrder,
    synced: Instant,
    has_unsynced: bool,
}

/// Why a writer gave up.
enum WriteError {
    Target(io::Error),
    Store(StoreError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Target(error)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Writer {
    fn write(
        mut self,
        new_output: &Receiver<()>,
        messages: &Receiver<WriterMessage>,
    ) -> AppendResult {
        let result = if self.order.is_canonical {
            self.write_sorted(await_last(messages, messages.recv()))
        } else {
            self.write_as_it_comes(new_output, messages)
        };
        let error = result.err().map(|error| match error {
            WriteError::Target(error) => {
                let kept = self.kept_mark();
                if let Err(error) = self.order.appender.abandon(kept.as_ref()) {
                    tracing::debug!(%error, "the unfinished target stays as it is");
                }
                format!("`{}` could not be written: {error}", self.order.target)
            }
            WriteError::Store(error) => error.to_string(),
        });
        AppendResult { target: self.order.target, error }
    }

    /// The mark that the ledger has, if rows were written before.
    fn kept_mark(&self) -> Option<AppenderMark> {
        let Position { seq, mark, .. } = &self.order.position;
        (*seq > 0).then(|| AppenderMark(mark.clone()))
    }

    fn write_as_it_comes(
        &mut self,
        new_output: &Receiver<()>,
        messages: &Receiver<WriterMessage>,
    ) -> Result<(), WriteError> {
        let mark = self.kept_mark();
        self.open(mark.as_ref())?;
        let last = loop {
            self.append_committed(u64::MAX)?;
            let wake = if self.has_unsynced { SYNC_INTERVAL } else { IDLE_WAKE };
            select! {
                recv(messages) -> message => break await_last(messages, message),
                recv(new_output) -> _ => {
                    if let Ok(message) = messages.recv_timeout(OUTPUT_POLL_INTERVAL) {
                        break await_last(messages, Ok(message));
                    }
                }
                default(wake) => {}
            }
            if self.has_unsynced && self.synced.elapsed() >= SYNC_INTERVAL {
                self.sync()?;
                self.acknowledge()?;
            }
        };
        self.append_committed(last)?;
        self.sync()?;
        if !self.order.appender.is_intact() {
            let target = &self.order.target;
            tracing::warn!(%target, "the output was removed or changed meanwhile; writing it again");
            self.open(None)?;
            self.append_committed(last)?;
            self.sync()?;
        }
        self.finish()
    }

    /// Writes all blocks up to `last` in canonical order.
    fn write_sorted(&mut self, last: u64) -> Result<(), WriteError> {
        self.open(None)?;
        let (mut count, mut newest) = (0, 0);
        loop {
            let blocks = self.read(Question::CanonicalOutput {
                appender: self.order.number,
                after: count,
                last,
                bytes_max: READ_BYTES,
            })?;
            if blocks.is_empty() {
                break;
            }
            count += blocks.len() as u64;
            newest = blocks.iter().map(|output| output.seq).fold(newest, u64::max);
            self.append(&blocks)?;
        }
        self.order.position.seq = newest;
        self.sync()?;
        self.finish()
    }

    /// Opens the target at a mark, or without rows if there is none or if the target has changed.
    fn open(&mut self, mark: Option<&AppenderMark>) -> Result<(), WriteError> {
        failpoint::pass("append.create.before");
        let opened = self.order.appender.open(mark)?;
        failpoint::pass("append.create.after");
        if opened == OpenedAt::Start {
            if mark.is_some() {
                let target = &self.order.target;
                tracing::warn!(%target, "the output is missing or changed; writing it again");
            }
            self.order.position = Position::default();
        }
        Ok(())
    }

    /// Appends committed blocks after the position, up to `last`.
    fn append_committed(&mut self, last: u64) -> Result<(), WriteError> {
        loop {
            let mut blocks = self.read(Question::Output {
                appender: self.order.number,
                after: self.order.position.seq,
                bytes_max: READ_BYTES,
            })?;
            blocks.retain(|output| output.seq <= last);
            let Some(newest) = blocks.last() else {
                return Ok(self.order.appender.flush()?);
            };
            self.order.position.seq = newest.seq;
            self.append(&blocks)?;
            if self.synced.elapsed() >= SYNC_INTERVAL {
                self.sync()?;
                self.acknowledge()?;
            }
        }
    }

    fn append(&mut self, blocks: &[OutputBlock]) -> io::Result<()> {
        failpoint::pass("append.write.before");
        for OutputBlock { block, .. } in blocks {
            self.order.appender.append(&block.bytes)?;
            self.order.position.bytes += block.bytes.len() as u64;
        }
        failpoint::pass("append.write.after");
        self.has_unsynced = true;
        Ok(())
    }

    fn read(&self, question: Question) -> Result<Vec<OutputBlock>, StoreError> {
        match self.store.ask_blocking(question)? {
            Answer::Output(blocks) => Ok(blocks),
            other => Err(StoreError::Failed(format!("output was requested, not {other:?}"))),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        failpoint::pass("append.sync.before");
        self.order.position.mark = self.order.appender.sync()?.0;
        failpoint::pass("append.sync.after");
        (self.synced, self.has_unsynced) = (Instant::now(), false);
        Ok(())
    }

    /// Completes the target, then stores the position.
    fn finish(&mut self) -> Result<(), WriteError> {
        failpoint::pass("append.finish.before");
        self.order.appender.finish()?;
        failpoint::pass("append.finish.after");
        Ok(self.acknowledge()?)
    }

    /// Stores the position of the last `sync` in the ledger.
    fn acknowledge(&mut self) -> Result<(), StoreError> {
        let position = self.order.position.clone();
        self.store.submit_blocking(Command::Ack { appender: self.order.number, position })?;
        failpoint::pass("append.ack.after");
        Ok(())
    }
}

/// Waits for the last block to write. A dropped sender means all blocks.
fn await_last(
    messages: &Receiver<WriterMessage>,
    message: Result<WriterMessage, RecvError>,
) -> u64 {
    match message {
        Ok(WriterMessage::Hold) => await_last(messages, messages.recv()),
        Ok(WriterMessage::End(last)) => last,
        Err(RecvError) => u64::MAX,
    }
}
