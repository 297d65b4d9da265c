//! Saved pages and what was parsed from them, found again while they live.
//!
//! A thread of its own writes them in batches; a page is in the file before its job is finished.
//! Losing this file loses no row, only the saving of a fetch.

mod health;
mod packer;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

use health::Alarm;
pub(crate) use health::{examine, vouch};
use packer::Packer;

use crate::failpoint;
use crate::queue::{Guest, Receiver, Sender, queue};
use crate::store::StoreError;

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
/// How long a saved page waits for others to share its commit, and how many share one. The job
/// itself waits as long for the ledger.
const BATCH_TIME: Duration = Duration::from_millis(5);
const BATCH: usize = 256;
/// Pages that go together when there are too many.
const DROPPED_AT_ONCE: u32 = 16;
/// Layout of the file. What another version has saved is left alone.
const FORMAT: i64 = 2;
/// What stands beside a body, as one text: the mark covers it too.
const LABEL: &str = "url || char(10) || base || char(10) || from_date || char(10) || status ||
    char(10) || coalesce(content_type, '') || char(10) || headers || char(10) || size ||
    char(10) || coalesce(model, 0)";
/// The file in a data directory.
pub(crate) const FILE: &str = "pages.db";

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS pages (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL,
    url TEXT NOT NULL, from_date TEXT NOT NULL, status INTEGER NOT NULL, content_type TEXT,
    headers TEXT NOT NULL, size INTEGER NOT NULL, base TEXT NOT NULL, model INTEGER,
    mark BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS parsed (fingerprint BLOB NOT NULL, key BLOB NOT NULL,
    mark BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (fingerprint, key)) WITHOUT ROWID;
";

/// Most runs save pages into a new file and look for none: fingerprints come in no order, and to
/// keep them sorted would cost a place of its own for each page.
const SORT: &str = "
DELETE FROM pages WHERE id NOT IN (SELECT max(id) FROM pages GROUP BY fingerprint);
CREATE UNIQUE INDEX pages_by_fingerprint ON pages (fingerprint);
";
const IS_SORTED: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND
    (name = 'pages_by_fingerprint' OR name LIKE 'sqlite_autoindex_pages%'))";

impl Documents {
    /// Saved pages in `pages.db` of the data directory, or in memory; beyond `bytes_max` the oldest
    /// go. The file is opened, or made, when the first page is looked for or saved: many runs never
    /// do.
    pub(crate) fn open(dir: Option<&Path>, bytes_max: u64) -> Result<Self, StoreError> {
        let file = dir.map(|dir| dir.join(FILE));
        let (requests, inbox) = queue(QUEUE);
        std::thread::Builder::new()
            .name("documents".to_owned())
            .spawn(move || keep(file.as_deref(), bytes_max, &inbox))
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
    pub(crate) async fn keep(
        &self,
        fingerprint: Fingerprint,
        kind: String,
        page: StoredPage,
        expected: Option<Expected>,
    ) -> Result<(), String> {
        let (answer, kept) = oneshot::channel();
        self.send(Request::Keep(fingerprint, kind, Box::new(page), answer));
        drop(expected);
        kept.await.unwrap_or_else(|_| Err("saved pages are closed".to_owned()))
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
fn keep(file: Option<&Path>, bytes_max: u64, inbox: &Receiver<Request>) {
    let Some(first) = inbox.recv() else { return };
    match connect(file) {
        Ok((connection, packer)) => {
            let is_so = |sql: &str| connection.query_row(sql, [], |row| row.get(0));
            let has_data = is_so("SELECT EXISTS (SELECT 1 FROM parsed)").unwrap_or(true);
            let has_pages = is_so("SELECT EXISTS (SELECT 1 FROM pages)").unwrap_or(true);
            let is_sorted = Cell::new(is_so(IS_SORTED).unwrap_or(false));
            let (packer, has_data) = (RefCell::new(packer), Cell::new(has_data));
            let alarm = Alarm::of(file);
            let keeper =
                Keeper { connection, has_data, is_sorted, packer, alarm, inbox, bytes_max };
            // Pages of an earlier run give way to those of this one.
            match if has_pages { keeper.sort() } else { Ok(()) } {
                Ok(()) => keeper.keep(first),
                Err(error) => refuse(first, inbox, &format!("saved pages: {error}")),
            }
        }
        Err(error) => {
            health::tell_unusable(&error);
            refuse(first, inbox, &error);
        }
    }
}

fn connect(file: Option<&Path>) -> Result<(Connection, Packer), String> {
    let open = || -> rusqlite::Result<Result<Connection, String>> {
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
        // A packed page is some kilobytes, and each page of the file is written by itself.
        connection.execute_batch(
            "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
             PRAGMA wal_autocheckpoint=4000;",
        )?;
        if format == 0 {
            connection.execute_batch(&format!("PRAGMA user_version={FORMAT};"))?;
        }
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(packer::SCHEMA)?;
        Ok(Ok(connection))
    };
    let name = file.map_or("(memory)".to_owned(), |file| file.display().to_string());
    let opened = open().unwrap_or_else(|error| Err(error.to_string()));
    let connection = opened.map_err(|words| format!("`{name}`: {words}"))?;
    let packer = Packer::new().map_err(|error| format!("zstd: {error}"))?;
    Ok((connection, packer))
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

struct Keeper<'a> {
    connection: Connection,
    /// Whether anything may have been parsed from the pages; most files hold nothing of that kind.
    has_data: Cell<bool>,
    /// Whether pages are sorted by their fingerprints, and each is there once.
    is_sorted: Cell<bool>,
    packer: RefCell<Packer>,
    alarm: Alarm,
    inbox: &'a Receiver<Request>,
    bytes_max: u64,
}

type Waiting = Vec<(oneshot::Sender<Result<(), String>>, Result<(), String>)>;

impl Keeper<'_> {
    fn keep(self, first: Request) {
        for request in std::iter::once(first).chain(std::iter::from_fn(|| self.inbox.recv())) {
            let mut waiting = Waiting::new();
            let opened = self.connection.execute_batch("BEGIN");
            self.batch(request, &mut waiting);
            let committed = opened
                .and_then(|()| if waiting.is_empty() { Ok(()) } else { self.shrink() })
                .and_then(|()| {
                    failpoint::pass("pages.commit.before");
                    self.connection.execute_batch("COMMIT")
                })
                .map_err(|error| format!("saved pages: {error}"));
            failpoint::pass("pages.commit.after");
            for (answer, result) in waiting {
                // A caller that no longer waits needs no answer.
                drop(answer.send(result.and_then(|()| committed.clone())));
            }
        }
    }

    fn batch(&self, first: Request, waiting: &mut Waiting) {
        let deadline = Instant::now() + BATCH_TIME;
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(request) = next.take() else { break };
            match request {
                Request::Find(fingerprint, answer) => {
                    drop(answer.send(self.alarm.hear(self.find(&fingerprint))));
                }
                Request::Recall(fingerprint, url, answer) => {
                    drop(answer.send(self.alarm.hear(self.recall(&fingerprint, &url))));
                }
                Request::Keep(fingerprint, kind, page, answer) => {
                    waiting.push((answer, self.words(self.put(&fingerprint, &kind, &page))));
                }
                Request::KeepData(fingerprint, data, answer) => {
                    waiting.push((answer, self.words(self.put_data(&fingerprint, &data))));
                }
            }
            // Only what is saved gains by company; who asks wants an answer.
            next = match waiting.len() {
                0 => self.inbox.try_recv(),
                _ => self.inbox.recv_in_company(QUEUE / 2, deadline),
            };
        }
    }

    /// Drops the oldest pages and what was parsed from them until the rest is within its bound.
    fn shrink(&self) -> rusqlite::Result<()> {
        let number = |name: &str| -> rusqlite::Result<u64> {
            let sql = format!("PRAGMA {name}");
            let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            Ok(self.connection.prepare_cached(&sql)?.query_row([], read)? as u64)
        };
        let size = number("page_size")?;
        while (number("page_count")? - number("freelist_count")?) * size > self.bytes_max {
            let parsed = "DELETE FROM parsed WHERE fingerprint IN
                (SELECT fingerprint FROM pages ORDER BY id LIMIT ?1)";
            self.connection.prepare_cached(parsed)?.execute(params![DROPPED_AT_ONCE])?;
            let pages = "DELETE FROM pages WHERE id IN (SELECT id FROM pages ORDER BY id LIMIT ?1)";
            if self.connection.prepare_cached(pages)?.execute(params![DROPPED_AT_ONCE])? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Sorts the pages, from here on for good.
    fn sort(&self) -> rusqlite::Result<()> {
        if !self.is_sorted.get() {
            self.connection.execute_batch(SORT)?;
            self.is_sorted.set(true);
        }
        Ok(())
    }

    fn find(&self, fingerprint: &Fingerprint) -> rusqlite::Result<Found> {
        self.sort()?;
        let Some(page) = self.page("fingerprint = ?1", params![fingerprint])? else {
            return Ok(None);
        };
        let mut parsed = BTreeMap::new();
        let mut statement = self
            .connection
            .prepare_cached("SELECT key, mark, data FROM parsed WHERE fingerprint = ?1")?;
        let mut rows = statement.query(params![fingerprint])?;
        while let Some(row) = rows.next()? {
            let (key, mark, data): (Vec<u8>, Vec<u8>, Vec<u8>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            if mark_of(&data) == mark[..] {
                parsed.insert(key, data);
            }
        }
        Ok(Some((page, parsed)))
    }

    fn recall(&self, own: &Fingerprint, url: &str) -> rusqlite::Result<Option<StoredPage>> {
        self.sort()?;
        if let Some(page) = self.page("fingerprint = ?1", params![own])? {
            return Ok(Some(page));
        }
        // Only a replay looks for addresses, so only a replay pays for their order.
        let index = "CREATE INDEX IF NOT EXISTS pages_by_url ON pages (url)";
        self.connection.execute_batch(index)?;
        self.page("url = ?1 ORDER BY id DESC LIMIT 1", params![url])
    }

    /// The page that fits, if it is whole.
    fn page(
        &self,
        which: &str,
        values: impl rusqlite::Params,
    ) -> rusqlite::Result<Option<StoredPage>> {
        let read = |row: &rusqlite::Row<'_>| {
            let size: i64 = row.get(5)?;
            let mark: Vec<u8> = row.get(6)?;
            let packed: Vec<u8> = row.get(7)?;
            let page = StoredPage {
                url: row.get(0)?,
                base: row.get(8)?,
                from_date: row.get(1)?,
                status: row.get(2)?,
                content_type: row.get(3)?,
                headers: row.get(4)?,
                body: Bytes::new(),
            };
            let label: String = row.get(10)?;
            let body = if mark_with(&label, &packed) == mark[..] {
                let packed = (packed, row.get(9)?);
                self.packer.borrow().unpack(&self.connection, &packed, size as usize)?
            } else {
                None
            };
            Ok(body.map(|body| StoredPage { body: Bytes::from(body), ..page }))
        };
        let sql = format!(
            "SELECT url, from_date, status, content_type, headers, size, mark, body, base, model,
             {LABEL} FROM pages WHERE {which}"
        );
        let found = self.connection.prepare_cached(&sql)?.query_row(values, read).optional()?;
        if matches!(found, Some(None)) {
            self.alarm.ring("a saved page is not what was written");
        }
        Ok(found.flatten())
    }

    fn put(
        &self,
        fingerprint: &Fingerprint,
        kind: &str,
        page: &StoredPage,
    ) -> rusqlite::Result<()> {
        let (packed, model) = self.packer.borrow_mut().pack(&self.connection, kind, &page.body)?;
        if self.has_data.get() {
            self.connection
                .prepare_cached("DELETE FROM parsed WHERE fingerprint = ?1")?
                .execute(params![fingerprint])?;
        }
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO pages
                 (fingerprint, url, from_date, status, content_type, headers, size, mark, body,
                  base, model)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                fingerprint,
                page.url,
                page.from_date,
                page.status,
                page.content_type,
                page.headers,
                page.body.len() as i64,
                mark_with(&label(page, model), &packed),
                packed,
                page.base,
                model
            ])?;
        Ok(())
    }

    fn put_data(
        &self,
        fingerprint: &Fingerprint,
        data: &[(Vec<u8>, Vec<u8>)],
    ) -> rusqlite::Result<()> {
        self.has_data.set(true);
        for (key, data) in data {
            self.connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO parsed (fingerprint, key, mark, data)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![fingerprint, key, mark_of(data), data])?;
        }
        Ok(())
    }

    fn words(&self, result: rusqlite::Result<()>) -> Result<(), String> {
        result.map_err(|error| {
            self.alarm.look_at(&error);
            format!("page could not be saved: {error}")
        })
    }
}

/// The same text as [`LABEL`].
fn label(page: &StoredPage, model: Option<i64>) -> String {
    let StoredPage { url, base, from_date, status, content_type, headers, body } = page;
    let (kind, size, model) =
        (content_type.as_deref().unwrap_or_default(), body.len(), model.unwrap_or(0));
    format!("{url}\n{base}\n{from_date}\n{status}\n{kind}\n{headers}\n{size}\n{model}")
}

fn mark_of(bytes: &[u8]) -> [u8; 8] {
    mark_with("", bytes)
}

/// A mark over bytes and what stands beside them.
fn mark_with(label: &str, bytes: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(label.as_bytes());
    hasher.update(bytes);
    let mut mark = [0; 8];
    mark.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    mark
}

#[cfg(test)]
mod tests;
