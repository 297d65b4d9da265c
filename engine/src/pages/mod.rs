//! Saved pages and what was parsed from them, found again while they live.
//!
//! A thread of its own writes them in batches; a page is saved before its job is finished. Bodies go
//! to pack files, what is known of them to `pages.db`: first the bodies, then the rows that name
//! them. Losing any of it loses no row, only the saving of a fetch.

mod health;
mod keeper;
mod letters;
mod likeness;
mod mark;
mod packer;
mod packs;
mod records;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use health::Alarm;
pub(crate) use health::{examine, vouch};
use keeper::Keeper;
use packer::Packer;
use packs::Packs;

use crate::store::StoreError;
use crate::threads::queue::{Guest, Receiver, Sender, queue};

/// Names a page: the hash of locator name, group and URL.
pub(crate) type Fingerprint = [u8; 16];

/// A page as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPage {
    /// Address it was asked for.
    pub url: String,
    /// Address after redirects.
    pub base: String,
    /// Date-time of the run that fetched it, as text with its zone.
    pub from_date: String,
    /// HTTP status; 200 for files.
    pub status: u16,
    /// `Content-Type` as sent.
    pub content_type: Option<String>,
    /// Headers as sent, one a line.
    pub headers: String,
    /// The body, decoded.
    pub body: Bytes,
}

/// What was found for a page: itself, and data parsed from it, by key.
pub(crate) type Found = Option<(StoredPage, BTreeMap<Vec<u8>, Vec<u8>>)>;

enum Request {
    Find(Fingerprint, oneshot::Sender<Found>),
    Recall(Fingerprint, String, oneshot::Sender<Option<StoredPage>>),
    Keep(Fingerprint, String, Box<StoredPage>, oneshot::Sender<Result<(), String>>),
    KeepData(Fingerprint, Vec<(Vec<u8>, Vec<u8>)>, oneshot::Sender<Result<(), String>>),
}

/// A handle on the saved pages. Their thread ends with the last handle: while somebody can ask,
/// somebody answers.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    requests: Sender<Request>,
}

/// A page that is awaited.
pub(crate) struct Expected {
    _guest: Guest<Request>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Request")
    }
}

/// Requests that may wait.
const QUEUE: usize = 256;
/// Layout of the file. What another version has saved is left alone.
const FORMAT: i64 = 3;
/// The file in a data directory.
pub(crate) const FILE: &str = "pages.db";

impl Documents {
    /// Saved pages in `pages.db` of the data directory, or in memory; beyond `bytes_max` the oldest
    /// go. The file is opened, or made, when the first page is looked for or saved: many runs never
    /// do.
    pub(crate) fn open(dir: Option<&Path>, bytes_max: u64) -> Result<Self, StoreError> {
        let file = dir.map(|dir| dir.join(FILE));
        let (requests, inbox) = queue(QUEUE);
        let runtime = Handle::try_current().ok();
        std::thread::Builder::new()
            .name("documents".to_owned())
            .spawn(move || keep(file.as_deref(), bytes_max, &inbox, runtime))
            .map_err(|error| StoreError::Failed(format!("no thread for saved pages: {error}")))?;
        Ok(Self { requests })
    }

    /// Looks a page up. A damaged one counts as not there: it will be fetched again.
    pub(crate) async fn find(&self, fingerprint: Fingerprint) -> Found {
        let (answer, found) = oneshot::channel();
        self.send(Request::Find(fingerprint, answer));
        found.await.unwrap_or_default()
    }

    /// Looks a page up for a replay: under its own name, or the newest that any other locator has
    /// saved from the same address.
    pub(crate) async fn recall(&self, fingerprint: Fingerprint, url: &str) -> Option<StoredPage> {
        let (answer, found) = oneshot::channel();
        self.send(Request::Recall(fingerprint, url.to_owned(), answer));
        found.await.unwrap_or_default()
    }

    /// Announces a page that may soon have to be saved: others wait for it, so that they share a
    /// commit.
    pub(crate) fn expect(&self) -> Expected {
        Expected { _guest: self.requests.guest() }
    }

    /// Saves a page in place of an older one and of everything parsed from that. Pages of one kind
    /// are likely to look alike.
    pub(crate) fn keep(
        &self,
        fingerprint: Fingerprint,
        kind: String,
        page: StoredPage,
        expected: Option<Expected>,
    ) -> impl Future<Output = Result<(), String>> + use<> {
        let (answer, kept) = oneshot::channel();
        self.send(Request::Keep(fingerprint, kind, Box::new(page), answer));
        drop(expected);
        async { kept.await.unwrap_or_else(|_| Err("saved pages are closed".to_owned())) }
    }

    /// Saves data parsed from a page.
    pub(crate) async fn keep_data(
        &self,
        fingerprint: Fingerprint,
        data: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(), String> {
        let (answer, kept) = oneshot::channel();
        self.send(Request::KeepData(fingerprint, data, answer));
        kept.await.unwrap_or_else(|_| Err("saved pages are closed".to_owned()))
    }

    fn send(&self, request: Request) {
        // A thread that is gone drops the request, and with it the sender its caller waits on.
        drop(self.requests.send(request));
    }
}

/// The thread: waits for the first request, opens the file, and serves.
fn keep(file: Option<&Path>, bytes_max: u64, inbox: &Receiver<Request>, runtime: Option<Handle>) {
    let Some(first) = inbox.recv() else { return };
    let opened = open_files(file, bytes_max).and_then(|files| {
        Keeper::new(files, Alarm::of(file), (inbox, runtime), bytes_max)
            .map_err(|error| format!("`{}`: {error}", name_of(file)))
    });
    match opened {
        Ok(keeper) => keeper.keep(first),
        Err(error) => {
            health::tell_unusable(&error);
            refuse(first, inbox, &error);
        }
    }
}

fn name_of(file: Option<&Path>) -> String {
    file.map_or("(memory)".to_owned(), |file| file.display().to_string())
}

fn open_files(file: Option<&Path>, bytes_max: u64) -> Result<(Connection, Packs, Packer), String> {
    let name = name_of(file);
    let connected = connect(file).unwrap_or_else(|error| Err(error.to_string()));
    let connection = connected.map_err(|words| format!("`{name}`: {words}"))?;
    let dir = file.and_then(Path::parent);
    let packs = Packs::open(dir, bytes_max).map_err(|error| format!("`{name}`: {error}"))?;
    let packer = Packer::new().map_err(|error| format!("zstd: {error}"))?;
    Ok((connection, packs, packer))
}

fn connect(file: Option<&Path>) -> rusqlite::Result<Result<Connection, String>> {
    let connection = match file {
        Some(file) => Connection::open(file)?,
        None => Connection::open_in_memory()?,
    };
    let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if let Some(words) = health::other_format(format) {
        return Ok(Err(words));
    }
    // The log is good as it is: moving it into the file is work for a run that fills it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=8000; \
         PRAGMA cache_size=-1024;",
    )?;
    let schema = records::SCHEMA;
    if format == 0 {
        // In one stroke: a format without its tables would be damage to whoever looks.
        let make = format!("BEGIN; {schema} PRAGMA user_version={FORMAT}; COMMIT;");
        connection.execute_batch(&make)?;
    } else {
        connection.execute_batch(schema)?;
    }
    Ok(Ok(connection))
}

/// Without a file nothing is found and nothing is saved; a run can do without.
fn refuse(first: Request, inbox: &Receiver<Request>, error: &str) {
    for request in std::iter::once(first).chain(std::iter::from_fn(|| inbox.recv())) {
        match request {
            Request::Find(_, answer) => drop(answer.send(None)),
            Request::Recall(_, _, answer) => drop(answer.send(None)),
            Request::Keep(_, _, _, answer) | Request::KeepData(_, _, answer) => {
                drop(answer.send(Err(error.to_owned())));
            }
        }
    }
}

#[cfg(test)]
mod tests;
