//! Saved pages and what was parsed from them, found again while they live.
//!
//! A thread of its own writes them in batches; a page is in the file before its job is finished.
//! Losing this file loses no row, only the saving of a fetch.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

use crate::store::StoreError;

/// Names a page: the hash of locator name, group and URL.
pub(crate) type Fingerprint = [u8; 16];

/// A page as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPage {
    /// Address it was asked for.
    pub url: String,
    /// Address after redirects; the one asked for where an older version saved the page.
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
    Keep(Fingerprint, Box<StoredPage>, oneshot::Sender<Result<(), String>>),
    KeepData(Fingerprint, Vec<(Vec<u8>, Vec<u8>)>, oneshot::Sender<Result<(), String>>),
    Close,
}

/// A handle on the saved pages.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    requests: Sender<Request>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Request")
    }
}

/// Requests that may wait.
const QUEUE: usize = 256;
/// Longest time a saved page waits for its commit, and how many share one.
const BATCH_TIME: Duration = Duration::from_millis(20);
const BATCH: usize = 256;
const LEVEL: i32 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS pages (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE,
    url TEXT NOT NULL, from_date TEXT NOT NULL, status INTEGER NOT NULL, content_type TEXT,
    headers TEXT NOT NULL, size INTEGER NOT NULL, mark BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS parsed (fingerprint BLOB NOT NULL, key BLOB NOT NULL,
    mark BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (fingerprint, key)) WITHOUT ROWID;
";

impl Documents {
    /// Saved pages in `pages.db` of the data directory, or in memory. The file is opened, or made,
    /// when the first page is looked for or saved: many runs never do.
    pub(crate) fn open(dir: Option<&Path>) -> Result<Self, StoreError> {
        let file = dir.map(|dir| dir.join("pages.db"));
        let (requests, inbox) = bounded(QUEUE);
        std::thread::Builder::new()
            .name("documents".to_owned())
            .spawn(move || keep(file.as_deref(), &inbox))
            .map_err(|error| StoreError::Failed(format!("no thread for saved pages: {error}")))?;
        Ok(Self { requests })
    }

    /// Looks a page up. A damaged one counts as not there: it will be fetched again.
    pub(crate) async fn find(&self, fingerprint: Fingerprint) -> Found {
        let (answer, found) = oneshot::channel();
        self.send(Request::Find(fingerprint, answer));
        found.await.unwrap_or_default()
    }

    /// Saves a page in place of an older one and of everything parsed from that.
    pub(crate) async fn keep(
        &self,
        fingerprint: Fingerprint,
        page: StoredPage,
    ) -> Result<(), String> {
        let (answer, kept) = oneshot::channel();
        self.send(Request::Keep(fingerprint, Box::new(page), answer));
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

    /// Ends the thread once everything before is saved.
    pub(crate) fn close(&self) {
        self.send(Request::Close);
    }

    fn send(&self, request: Request) {
        // A closed store drops the request, and with it the sender its caller waits on.
        drop(self.requests.send(request));
    }
}

/// Everything that is wrong with the saved pages in a data directory.
pub(crate) fn examine(dir: &Path) -> Vec<String> {
    let path = dir.join("pages.db");
    let name = path.display().to_string();
    if !path.exists() {
        return Vec::new();
    }
    let look = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open(&path)?;
        let mut found = crate::store::damage(&connection, &name)?;
        for (table, sql) in [
            ("pages", "SELECT mark, body, url FROM pages"),
            ("parsed", "SELECT mark, data, '' FROM parsed"),
        ] {
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (mark, bytes): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
                if mark_of(&bytes) != mark[..] {
                    let url: String = row.get(2)?;
                    found.push(format!("`{name}`: a record of `{table}` is damaged {url}"));
                }
            }
        }
        Ok(found)
    };
    look().unwrap_or_else(|error| vec![format!("`{name}`: {error}")])
}

/// The thread: waits for the first request, opens the file, and serves.
fn keep(file: Option<&Path>, inbox: &Receiver<Request>) {
    let Ok(first) = inbox.recv() else { return };
    if matches!(first, Request::Close) {
        return;
    }
    match connect(file) {
        Ok(connection) => Keeper { connection, inbox }.keep(first),
        Err(error) => refuse(first, inbox, &error),
    }
}

fn connect(file: Option<&Path>) -> Result<Connection, String> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = match file {
            Some(file) => Connection::open(file)?,
            None => Connection::open_in_memory()?,
        };
        connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")?;
        connection.execute_batch(SCHEMA)?;
        let known = "SELECT 1 FROM pragma_table_info('pages') WHERE name = 'base'";
        if connection.query_row(known, [], |_| Ok(())).optional()?.is_none() {
            connection.execute_batch("ALTER TABLE pages ADD COLUMN base TEXT")?;
        }
        Ok(connection)
    };
    let name = file.map_or("(memory)".to_owned(), |file| file.display().to_string());
    open().map_err(|error| format!("`{name}`: {error}"))
}

/// Without a file nothing is found and nothing is saved; a run can do without.
fn refuse(first: Request, inbox: &Receiver<Request>, error: &str) {
    for request in std::iter::once(first).chain(inbox) {
        match request {
            Request::Find(_, answer) => drop(answer.send(None)),
            Request::Keep(_, _, answer) | Request::KeepData(_, _, answer) => {
                drop(answer.send(Err(error.to_owned())));
            }
            Request::Close => return,
        }
    }
}

struct Keeper<'a> {
    connection: Connection,
    inbox: &'a Receiver<Request>,
}

type Waiting = Vec<(oneshot::Sender<Result<(), String>>, Result<(), String>)>;

impl Keeper<'_> {
    fn keep(self, first: Request) {
        for request in std::iter::once(first).chain(self.inbox) {
            let mut waiting = Waiting::new();
            let opened = self.connection.execute_batch("BEGIN");
            let open = self.batch(request, &mut waiting);
            let committed = opened
                .and_then(|()| self.connection.execute_batch("COMMIT"))
                .map_err(|error| format!("saved pages: {error}"));
            for (answer, result) in waiting {
                // A caller that no longer waits needs no answer.
                drop(answer.send(result.and_then(|()| committed.clone())));
            }
            if !open {
                return;
            }
        }
    }

    fn batch(&self, first: Request, waiting: &mut Waiting) -> bool {
        let deadline = Instant::now() + BATCH_TIME;
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(request) = next.take() else { break };
            match request {
                Request::Find(fingerprint, answer) => {
                    let found = self.find(&fingerprint).unwrap_or_default();
                    drop(answer.send(found));
                }
                Request::Keep(fingerprint, page, answer) => {
                    waiting.push((answer, words(self.put(&fingerprint, &page))));
                }
                Request::KeepData(fingerprint, data, answer) => {
                    waiting.push((answer, words(self.put_data(&fingerprint, &data))));
                }
                Request::Close => return false,
            }
            if Instant::now() >= deadline {
                break;
            }
            next = self.inbox.try_recv().ok();
        }
        true
    }

    fn find(&self, fingerprint: &Fingerprint) -> rusqlite::Result<Found> {
        let read = |row: &rusqlite::Row<'_>| {
            let size: i64 = row.get(5)?;
            let mark: Vec<u8> = row.get(6)?;
            let packed: Vec<u8> = row.get(7)?;
            let (url, base): (String, Option<String>) = (row.get(0)?, row.get(8)?);
            let page = StoredPage {
                base: base.unwrap_or_else(|| url.clone()),
                url,
                from_date: row.get(1)?,
                status: row.get(2)?,
                content_type: row.get(3)?,
                headers: row.get(4)?,
                body: Bytes::new(),
            };
            Ok((page, size, mark, packed))
        };
        let row = self
            .connection
            .prepare_cached(
                "SELECT url, from_date, status, content_type, headers, size, mark, body, base
                 FROM pages WHERE fingerprint = ?1",
            )?
            .query_row(params![fingerprint], read)
            .optional()?;
        let Some((mut page, size, mark, packed)) = row else {
            return Ok(None);
        };
        let Some(body) = unpack(&packed, size as usize, &mark) else {
            return Ok(None);
        };
        page.body = Bytes::from(body);
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

    fn put(&self, fingerprint: &Fingerprint, page: &StoredPage) -> rusqlite::Result<()> {
        let packed = zstd::bulk::compress(&page.body, LEVEL)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        self.connection
            .prepare_cached("DELETE FROM parsed WHERE fingerprint = ?1")?
            .execute(params![fingerprint])?;
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO pages
                 (fingerprint, url, from_date, status, content_type, headers, size, mark, body,
                  base)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                fingerprint,
                page.url,
                page.from_date,
                page.status,
                page.content_type,
                page.headers,
                page.body.len() as i64,
                mark_of(&packed),
                packed,
                page.base
            ])?;
        Ok(())
    }

    fn put_data(
        &self,
        fingerprint: &Fingerprint,
        data: &[(Vec<u8>, Vec<u8>)],
    ) -> rusqlite::Result<()> {
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
}

fn words(result: rusqlite::Result<()>) -> Result<(), String> {
    result.map_err(|error| format!("page could not be saved: {error}"))
}

fn mark_of(bytes: &[u8]) -> [u8; 8] {
    let mut mark = [0; 8];
    mark.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    mark
}

fn unpack(packed: &[u8], size: usize, mark: &[u8]) -> Option<Vec<u8>> {
    if mark_of(packed) != mark {
        return None;
    }
    zstd::bulk::decompress(packed, size).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> StoredPage {
        StoredPage {
            url: "http://a/".to_owned(),
            base: "http://a/moved".to_owned(),
            from_date: "2020-07-01T10:00:00+00:00[UTC]".to_owned(),
            status: 200,
            content_type: Some("text/html".to_owned()),
            headers: "content-type: text/html".to_owned(),
            body: Bytes::from(body.to_owned()),
        }
    }

    #[tokio::test]
    async fn a_page_is_found_again_and_a_newer_one_drops_what_was_parsed() {
        let dir = tempfile::tempdir().unwrap();
        let documents = Documents::open(Some(dir.path())).unwrap();
        assert_eq!(documents.find([1; 16]).await, None);
        documents.keep([1; 16], page("one")).await.unwrap();
        documents.keep_data([1; 16], vec![(b"key".to_vec(), b"data".to_vec())]).await.unwrap();
        let (found, parsed) = documents.find([1; 16]).await.unwrap();
        assert_eq!(found, page("one"));
        assert_eq!(parsed[&b"key"[..]], b"data");
        documents.keep([1; 16], page("two")).await.unwrap();
        let (found, parsed) = documents.find([1; 16]).await.unwrap();
        assert_eq!((found, parsed.len()), (page("two"), 0));
    }

    #[tokio::test]
    async fn a_file_of_an_older_version_is_read_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let documents = Documents::open(Some(dir.path())).unwrap();
        documents.keep([3; 16], page("old")).await.unwrap();
        documents.close();
        let other = Connection::open(dir.path().join("pages.db")).unwrap();
        other.execute_batch("ALTER TABLE pages DROP COLUMN base").unwrap();
        let documents = Documents::open(Some(dir.path())).unwrap();
        let (found, _) = documents.find([3; 16]).await.unwrap();
        assert_eq!(found, StoredPage { base: "http://a/".to_owned(), ..page("old") });
        documents.keep([3; 16], page("new")).await.unwrap();
        assert_eq!(documents.find([3; 16]).await.unwrap().0, page("new"));
    }

    #[tokio::test]
    async fn a_damaged_page_counts_as_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let documents = Documents::open(Some(dir.path())).unwrap();
        documents.keep([2; 16], page("whole")).await.unwrap();
        let other = Connection::open(dir.path().join("pages.db")).unwrap();
        other.execute("UPDATE pages SET body = zeroblob(20)", []).unwrap();
        assert_eq!(documents.find([2; 16]).await, None);
    }
}
