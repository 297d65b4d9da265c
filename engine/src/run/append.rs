//! The appender mediator: a thread for each appender, fed from committed output only, ended by an
//! end-of-stream mark.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, Sender, bounded, select};
use spoonbill_plugins::appender::{FileAppender, Mark};
use tokio::sync::watch;

use crate::failpoint;
use crate::ledger::{Command, OutputBlock, Position};
use crate::store::{Answer, Question, Store, StoreError};

/// Output is looked at so often at most: rows travel in company.
const BREATH: Duration = Duration::from_millis(50);
/// A position is made durable so often at most, but for the end.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Output read at once.
const READ_BYTES: usize = 4 << 20;

/// Folders above a file that a run may have made: two of its own, the output's, and where that lies.
const FOLDERS: usize = 4;

/// How appenders are brought to their end.
#[derive(Debug, Clone, Copy)]
enum Word {
    /// Read no more until it is known how far.
    Hold,
    /// The end-of-stream mark: that is the last of what was committed.
    End(u64),
}

/// One appender's end.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The file.
    pub path: PathBuf,
    /// Why not everything is in it; the rows stay in the store.
    pub error: Option<String>,
}

/// What one appender needs.
#[derive(Debug, Clone)]
pub(crate) struct AppendOrder {
    /// Its number.
    pub number: u32,
    /// Its file.
    pub path: PathBuf,
    /// What the file begins with.
    pub header: Vec<u8>,
    /// How far it had come.
    pub position: Position,
    /// Whether rows are sorted at the end instead of written as they come.
    pub canonical: bool,
    /// Whether a position vouches for the disk.
    pub durable: bool,
}

/// Appenders at work.
#[derive(Debug)]
pub(crate) struct AppenderMediator {
    broken: watch::Receiver<bool>,
    threads: Vec<(Sender<Word>, JoinHandle<Appended>)>,
}

impl AppenderMediator {
    /// Starts a thread for each appender.
    pub(crate) fn start(store: &Arc<dyn Store>, orders: Vec<AppendOrder>) -> io::Result<Self> {
        let mut threads = Vec::new();
        let (breaks, broken) = watch::channel(false);
        for order in orders {
            // Handed over, not left: whoever has said `Hold` knows that it was heard.
            let (end, ended) = bounded(0);
            let pen = Pen {
                store: Arc::clone(store),
                position: order.position,
                order,
                file: None,
                synced: Instant::now(),
                unsynced: false,
            };
            let bell = store.output_bell();
            let name = format!("append-{}", pen.order.number);
            let breaks = breaks.clone();
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                let appended = pen.write(&bell, &ended);
                if appended.error.is_some() {
                    breaks.send_replace(true);
                }
                appended
            })?;
            threads.push((end, thread));
        }
        Ok(Self { broken, threads })
    }

    /// Whether an appender has given up: its rows will not be written in this run.
    pub(crate) fn broken(&self) -> watch::Receiver<bool> {
        self.broken.clone()
    }

    /// Asks for the last of what is to be written while nobody writes, so that what is told of the run
    /// is what the files hold, whatever others commit meanwhile; and waits until it is written.
    pub(crate) fn close(self, last: impl FnOnce() -> u64) -> Vec<Appended> {
        for (word, _) in &self.threads {
            // A thread that has given up listens no more; its report says why.
            let _gone = word.send(Word::Hold).is_err();
        }
        let last = last();
        for (word, _) in &self.threads {
            let _gone = word.send(Word::End(last)).is_err();
        }
        self.threads.into_iter().filter_map(|(_, thread)| thread.join().ok()).collect()
    }
}

struct Pen {
    store: Arc<dyn Store>,
    order: AppendOrder,
    position: Position,
    file: Option<FileAppender>,
    synced: Instant,
    unsynced: bool,
}

/// Why an appender stopped.
enum Broken {
    File(io::Error),
    Store(StoreError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Pen {
    fn write(mut self, bell: &Receiver<()>, ended: &Receiver<Word>) -> Appended {
        let result = if self.order.canonical {
            // Nothing to do before the end; a bell that nobody answers holds one ring only.
            let last = last_of(ended, ended.recv());
            self.write_sorted(last)
        } else {
            self.write_as_it_comes(bell, ended)
        };
        let result = result.and_then(|()| {
            let durable = self.order.durable;
            if durable { Ok(sync_folders(&self.order.path)?) } else { Ok(()) }
        });
        let error = result.err().map(|broken| match broken {
            Broken::File(error) => {
                self.cut_back();
                format!("`{}` could not be written: {error}", self.order.path.display())
            }
            Broken::Store(error) => error.to_string(),
        });
        Appended { path: self.order.path, error }
    }

    fn write_as_it_comes(
        &mut self,
        bell: &Receiver<()>,
        ended: &Receiver<Word>,
    ) -> Result<(), Broken> {
        self.file = Some(self.open()?);
        let last = loop {
            self.catch_up(u64::MAX)?;
            let wake = if self.unsynced { SYNC_EVERY } else { Duration::from_hours(1) };
            select! {
                recv(ended) -> word => break last_of(ended, word),
                recv(bell) -> _ => if let Ok(word) = ended.recv_timeout(BREATH) {
                    break last_of(ended, Ok(word));
                },
                default(wake) => {}
            }
            if self.unsynced && self.synced.elapsed() >= SYNC_EVERY {
                self.acknowledge()?;
            }
        };
        self.catch_up(last)?;
        self.acknowledge()?;
        if self.is_in_place() {
            return Ok(());
        }
        let path = self.order.path.display();
        tracing::warn!(%path, "output file was removed or changed meanwhile, writing it again");
        self.position = Position::default();
        self.file = Some(create(&self.order.path, &self.order.header)?);
        self.catch_up(last)?;
        self.acknowledge()
    }

    /// Whether what was written is what now goes by the file's name: nobody keeps others from
    /// removing it, and writing to a removed file goes well.
    fn is_in_place(&self) -> bool {
        match std::fs::metadata(&self.order.path) {
            Ok(data) => !data.is_file() || data.len() == self.position.length,
            Err(_) => false,
        }
    }

    /// The file at its stored position, or anew when it is not the one that was left.
    fn open(&mut self) -> Result<FileAppender, Broken> {
        let mark = Mark { length: self.position.length, tail: self.position.tail };
        if self.position.seq > 0 {
            if let Some(file) = FileAppender::resume(&self.order.path, mark)? {
                return Ok(file);
            }
            let path = self.order.path.display();
            tracing::warn!(%path, "output file is missing or changed, writing it again");
        }
        self.position = Position::default();
        create(&self.order.path, &self.order.header)
    }

    /// Leaves whole rows alone in a file that could not be written to its end; the ledger has the
    /// rest.
    fn cut_back(&mut self) {
        // What is still buffered goes to the file now or never.
        drop(self.file.take());
        let cut = if self.order.canonical {
            std::fs::remove_file(part_of(&self.order.path))
        } else {
            let file = std::fs::File::options().write(true).open(&self.order.path);
            file.and_then(|file| file.set_len(self.position.length))
        };
        if let Err(error) = cut {
            tracing::debug!(%error, "the unfinished file stays as it is");
        }
    }

    /// Writes what is committed, up to a last block.
    fn catch_up(&mut self, last: u64) -> Result<(), Broken> {
        loop {
            let mut blocks = self.read(Question::Output {
                appender: self.order.number,
                after: self.position.seq,
                bytes_max: READ_BYTES,
            })?;
            blocks.retain(|output| output.seq <= last);
            let Some(newest) = blocks.last() else {
                // Whoever follows the file sees rows as soon as they are committed.
                return self.file.as_mut().map_or(Ok(()), |file| Ok(file.flush()?));
            };
            failpoint::pass("append.write.before");
            self.position.seq = newest.seq;
            for output in &blocks {
                if let Some(file) = &mut self.file {
                    file.append(&output.block.bytes)?;
                }
            }
            failpoint::pass("append.write.after");
            self.unsynced = true;
            if self.synced.elapsed() >= SYNC_EVERY {
                self.acknowledge()?;
            }
        }
    }

    fn read(&self, question: Question) -> Result<Vec<OutputBlock>, StoreError> {
        match self.store.ask_blocking(question)? {
            Answer::Output(blocks) => Ok(blocks),
            other => Err(StoreError::Failed(format!("output was asked for, not {other:?}"))),
        }
    }

    /// File first, position second: a crash between the two writes the same bytes again.
    fn acknowledge(&mut self) -> Result<(), Broken> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        failpoint::pass("append.sync.before");
        let mark = file.sync(self.order.durable)?;
        failpoint::pass("append.sync.after");
        (self.position.length, self.position.tail) = (mark.length, mark.tail);
        let ack = Command::Ack { appender: self.order.number, position: self.position };
        self.store.submit_blocking(ack)?;
        failpoint::pass("append.ack.after");
        (self.synced, self.unsynced) = (Instant::now(), false);
        Ok(())
    }

    /// Writes everything up to a last block in canonical order beside the file, then puts it in its
    /// place.
    fn write_sorted(&mut self, last: u64) -> Result<(), Broken> {
        let part = part_of(&self.order.path);
        let mut file = create(&part, &self.order.header)?;
        let (mut count, mut seq) = (0, 0);
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
            failpoint::pass("append.write.before");
            count += blocks.len() as u64;
            for output in &blocks {
                seq = seq.max(output.seq);
                file.append(&output.block.bytes)?;
            }
            failpoint::pass("append.write.after");
        }
        self.position.seq = seq;
        self.file = Some(file);
        if let Some(file) = &mut self.file {
            file.sync(self.order.durable)?;
        }
        failpoint::pass("append.rename.before");
        std::fs::rename(&part, &self.order.path)?;
        failpoint::pass("append.rename.after");
        self.acknowledge()
    }
}

/// How far is to be written; waits until that is known. Who says nothing and goes wants everything.
fn last_of(ended: &Receiver<Word>, word: Result<Word, RecvError>) -> u64 {
    match word {
        Ok(Word::Hold) => last_of(ended, ended.recv()),
        Ok(Word::End(last)) => last,
        Err(RecvError) => u64::MAX,
    }
}

fn create(path: &Path, header: &[u8]) -> Result<FileAppender, Broken> {
    failpoint::pass("append.create.before");
    let file = FileAppender::create_with(path, header)?;
    failpoint::pass("append.create.after");
    Ok(file)
}

/// The names of a file and of its folders are as lasting as its bytes: a run that is closed has its
/// files after a power cut too.
fn sync_folders(path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1).take(FOLDERS) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // What may not be opened was not made by us.
        if let Ok(folder) = std::fs::File::open(folder) {
            folder.sync_all()?;
        }
    }
    Ok(())
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    path.with_file_name(name)
}
