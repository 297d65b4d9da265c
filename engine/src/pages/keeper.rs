//! The thread of saved pages: gathers requests, and commits many of them together.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Params, params};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::failpoint;
use crate::pages::health::Alarm;
use crate::pages::mark::mark_of;
use crate::pages::packer::Packer;
use crate::pages::packs::Packs;
use crate::pages::records::{self, COLUMNS, Record};
use crate::pages::{Fingerprint, Found, QUEUE, Request, StoredPage};
use crate::threads::pool::answer_together;
use crate::threads::queue::Receiver;

/// How long a saved page waits for others to share its commit, and how many share one. The job
/// itself waits as long for the ledger.
const BATCH_TIME: Duration = Duration::from_millis(5);
const BATCH: usize = 256;
/// The bound is looked at again after one part in so many of it.
const LOOKS: u64 = 64;

/// Most runs save pages into a new file and look for none: fingerprints come in no order, and to
/// keep them sorted would cost a place of its own for each page.
const SORT: &str = "
DELETE FROM pages WHERE id NOT IN (SELECT max(id) FROM pages GROUP BY fingerprint);
CREATE UNIQUE INDEX IF NOT EXISTS pages_by_fingerprint ON pages (fingerprint);
";
const IS_SORTED: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND
    (name = 'pages_by_fingerprint' OR name LIKE 'sqlite_autoindex_pages%'))";

pub(super) struct Keeper<'a> {
    connection: Connection,
    /// Whether anything may have been parsed from the pages; most files hold nothing of that kind.
    has_data: Cell<bool>,
    /// Whether pages are sorted by their fingerprints, and each is there once.
    is_sorted: Cell<bool>,
    packs: RefCell<Packs>,
    packer: RefCell<Packer>,
    alarm: Alarm,
    inbox: &'a Receiver<Request>,
    /// Where those who ask wait for their answers.
    runtime: Option<Handle>,
    bytes_max: u64,
    /// Bytes since the bound was looked at.
    grown: Cell<u64>,
}

type Waiting = Vec<(oneshot::Sender<Result<(), String>>, Result<(), String>)>;

impl<'a> Keeper<'a> {
    /// A keeper of opened files. Pages of an earlier run give way to those of this one.
    pub(super) fn new(
        (connection, packs, packer): (Connection, Packs, Packer),
        alarm: Alarm,
        (inbox, runtime): (&'a Receiver<Request>, Option<Handle>),
        bytes_max: u64,
    ) -> rusqlite::Result<Self> {
        let is_so = |sql: &str| connection.query_row(sql, [], |row| row.get(0));
        let has_data = is_so("SELECT EXISTS (SELECT 1 FROM parsed)").unwrap_or(true);
        let has_pages = is_so("SELECT EXISTS (SELECT 1 FROM pages)").unwrap_or(true);
        let is_sorted = is_so(IS_SORTED).unwrap_or(false);
        let keeper = Self {
            connection,
            has_data: Cell::new(has_data),
            is_sorted: Cell::new(is_sorted),
            packs: RefCell::new(packs),
            packer: RefCell::new(packer),
            alarm,
            inbox,
            runtime,
            bytes_max,
            grown: Cell::new(bytes_max),
        };
        if has_pages {
            keeper.sort()?;
        }
        keeper.sweep()?;
        Ok(keeper)
    }

    /// Removes packs that no page is in, and goes on with the last if it is small.
    fn sweep(&self) -> rusqlite::Result<()> {
        let mut packs = self.packs.borrow_mut();
        for pack in packs.numbers() {
            let used = "SELECT EXISTS (SELECT 1 FROM packs, pages WHERE packs.id = ?1
                AND pages.id >= packs.first AND pages.id <
                coalesce((SELECT min(first) FROM packs WHERE id > ?1), 9223372036854775807))";
            let used = self.connection.query_row(used, [pack as i64], |row| row.get(0))?;
            if used {
                continue;
            }
            self.connection.execute("DELETE FROM packs WHERE id = ?1", [pack as i64])?;
            packs.remove(pack);
        }
        let last = "SELECT max(id) FROM packs";
        let last: Option<i64> = self.connection.query_row(last, [], |row| row.get(0))?;
        if let Some(last) = last {
            packs.resume(last as u64);
        }
        Ok(())
    }

    pub(super) fn keep(self, first: Request) {
        for request in std::iter::once(first).chain(std::iter::from_fn(|| self.inbox.recv())) {
            let mut waiting = Waiting::new();
            let opened = self.connection.execute_batch("BEGIN");
            self.batch(request, &mut waiting);
            let committed = self.commit(opened, !waiting.is_empty());
            failpoint::pass("pages.commit.after");
            if committed.is_err() {
                self.begin_anew();
            }
            if waiting.is_empty() {
                continue;
            }
            answer_together(self.runtime.as_ref(), move || {
                for (answer, result) in waiting {
                    // A caller that no longer waits needs no answer.
                    drop(answer.send(result.and_then(|()| committed.clone())));
                }
            });
        }
    }

    /// Writes bodies, then commits the rows that name them, then removes packs nobody names.
    fn commit(&self, opened: rusqlite::Result<()>, saved: bool) -> Result<(), String> {
        let words = |error: rusqlite::Error| format!("saved pages: {error}");
        opened.map_err(words)?;
        let flushed = self.packs.borrow_mut().flush();
        flushed.map_err(|error| format!("saved pages: {error}"))?;
        let dropped = if saved { self.shrink().map_err(words)? } else { Vec::new() };
        failpoint::pass("pages.commit.before");
        self.connection.execute_batch("COMMIT").map_err(words)?;
        for pack in dropped {
            self.packs.borrow_mut().remove(pack);
            self.packer.borrow().forget_pack(pack);
        }
        Ok(())
    }

    /// After a commit that failed: nothing of it counts, and its pack is left.
    fn begin_anew(&self) {
        if !self.connection.is_autocommit() {
            self.alarm.hear(self.connection.execute_batch("ROLLBACK"));
        }
        self.packs.borrow_mut().leave();
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

    /// Drops the oldest packs, their pages and what was parsed from those until the rest is within
    /// its bound. The files go when this is committed.
    fn shrink(&self) -> rusqlite::Result<Vec<u64>> {
        let mut dropped = Vec::new();
        if self.grown.get() < self.bytes_max / LOOKS {
            return Ok(dropped);
        }
        self.grown.set(0);
        let number = |name: &str| -> rusqlite::Result<u64> {
            let sql = format!("PRAGMA {name}");
            let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            Ok(self.connection.prepare_cached(&sql)?.query_row([], read)? as u64)
        };
        let size = number("page_size")?;
        let packs = self.packs.borrow();
        let mut left = packs.bytes();
        for pack in packs.numbers() {
            if left + (number("page_count")? - number("freelist_count")?) * size <= self.bytes_max {
                break;
            }
            self.drop_rows(pack)?;
            left -= packs.bytes_of(pack);
            dropped.push(pack);
        }
        Ok(dropped)
    }

    /// Drops the rows of a pack and of those before it.
    fn drop_rows(&self, pack: u64) -> rusqlite::Result<()> {
        let next = "SELECT min(first) FROM packs WHERE id > ?1";
        let next = self.connection.query_row(next, [pack as i64], |row| row.get(0));
        let next: i64 = next.map(|next: Option<i64>| next.unwrap_or(i64::MAX))?;
        for (sql, value) in [
            (
                "DELETE FROM parsed WHERE fingerprint IN
                 (SELECT fingerprint FROM pages WHERE id < ?1)",
                next,
            ),
            ("DELETE FROM pages WHERE id < ?1", next),
            ("DELETE FROM packs WHERE id <= ?1", pack as i64),
        ] {
            self.connection.prepare_cached(sql)?.execute([value])?;
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
            if mark_of(&[&data]) == mark[..] {
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
    fn page(&self, which: &str, values: impl Params) -> rusqlite::Result<Option<StoredPage>> {
        let sql = format!("SELECT {COLUMNS} FROM pages WHERE {which}");
        let read = |row: &rusqlite::Row<'_>| Ok(Record::read(row));
        let found = self.connection.prepare_cached(&sql)?.query_row(values, read).optional()?;
        let Some(record) = found else { return Ok(None) };
        // What this batch has saved may not be written yet; if that fails, all of it fails.
        let mut packs = self.packs.borrow_mut();
        packs.write();
        match record.map(|record| record.load(&packs, &self.packer.borrow())) {
            Ok(Ok(page)) => Ok(Some(page)),
            Ok(Err(damage)) => {
                self.alarm.ring(Some(&damage.file), &damage.what);
                Ok(None)
            }
            Err(error) => {
                self.alarm.ring(None, &error.to_string());
                Ok(None)
            }
        }
    }

    fn put(
        &self,
        fingerprint: &Fingerprint,
        kind: &str,
        page: &StoredPage,
    ) -> rusqlite::Result<()> {
        let wrap = |error: std::io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        let mut packs = self.packs.borrow_mut();
        let mut packer = self.packer.borrow_mut();
        let pack = if let Some(pack) = packs.current() {
            pack
        } else {
            packer.forget();
            let last = "SELECT coalesce(max(id), 0) FROM packs";
            let last: i64 = self.connection.query_row(last, [], |row| row.get(0))?;
            let pack = packs.begin(last as u64).map_err(wrap)?;
            let begun = "INSERT INTO packs (id, first)
                VALUES (?1, (SELECT coalesce(max(id), 0) + 1 FROM pages))";
            let noted = self.connection.execute(begun, [pack as i64]);
            noted.inspect_err(|_| packs.leave())?;
            pack
        };
        let before = packs.end();
        let packed = packer.pack(&mut packs, kind, &page.body).map_err(wrap)?;
        if self.has_data.get() {
            self.connection
                .prepare_cached("DELETE FROM parsed WHERE fingerprint = ?1")?
                .execute(params![fingerprint])?;
        }
        let label = page.url.len() + page.base.len() + page.headers.len();
        self.grow(packs.end() - before + label as u64);
        records::insert(&self.connection, fingerprint, page, pack, &packed)
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
                .execute(params![fingerprint, key, mark_of(&[data]), data])?;
            self.grow((key.len() + data.len()) as u64);
        }
        Ok(())
    }

    fn grow(&self, bytes: u64) {
        self.grown.set(self.grown.get().saturating_add(bytes));
    }

    fn words(&self, result: rusqlite::Result<()>) -> Result<(), String> {
        result.map_err(|error| {
            self.alarm.look_at(&error);
            format!("page could not be saved: {error}")
        })
    }
}
