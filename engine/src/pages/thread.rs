//! The thread that owns the saved pages: it gathers requests and commits many of them together.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Params, params};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::frames::{FrameReader, FrameWriter};
use super::health::DamageAlarm;
use super::packs::PackFiles;
use super::records::{COLUMNS, PageRow, PagesError, UnsavedRow, connect, mark_of};
use super::{Fingerprint, FoundPage, PageRequest, QUEUE, StoredPage};
use crate::failpoint;
use crate::threads::ignore::ignore_closed;
use crate::threads::pool::answer_in_one_task;
use crate::threads::queue::Receiver;

/// How long a saved page waits for others to share its commit. The end of its job waits as long for
/// the ledger.
const BATCH_TIME: Duration = Duration::from_millis(5);
/// Most requests in one commit.
const BATCH: usize = 256;
/// The size is compared with `pages.max` each time this part of it has been saved.
const SHRINK_PART: u64 = 64;

/// Most runs save pages into a new file and look none up. Fingerprints arrive in random order, so
/// an index that grows with each page would cost one page write for each. It is made when it is
/// first needed.
const SORT: &str = "
DELETE FROM pages WHERE id NOT IN (SELECT max(id) FROM pages GROUP BY fingerprint);
CREATE UNIQUE INDEX IF NOT EXISTS pages_by_fingerprint ON pages (fingerprint);
";
const IS_SORTED: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND
    name = 'pages_by_fingerprint')";

type PagesResult<T> = Result<T, PagesError>;
type Answers = Vec<oneshot::Sender<Result<(), String>>>;

/// The saved pages, opened.
pub(super) struct PageThread<'a> {
    connection: Connection,
    packs: PackFiles,
    writer: FrameWriter,
    reader: FrameReader,
    /// Rows of the pages that the open frame has got since its last flush.
    unsaved: Vec<UnsavedRow>,
    /// Whether `parsed` may have rows. In most files it has none.
    has_data: bool,
    /// Whether each fingerprint occurs once and is indexed.
    is_sorted: bool,
    alarm: DamageAlarm,
    inbox: &'a Receiver<PageRequest>,
    /// Where the callers wait for their answers.
    runtime: Option<Handle>,
    /// `pages.max`.
    bytes_max: u64,
    /// Unpacked bytes saved since the size was last compared with `bytes_max`.
    grown: u64,
}

/// Runs the thread: waits for the first request, opens the files, and serves.
pub(super) fn run(
    file: Option<&Path>,
    bytes_max: u64,
    inbox: &Receiver<PageRequest>,
    runtime: Option<Handle>,
) {
    let Some(first) = inbox.recv() else { return };
    let name = file.map_or_else(|| "(memory)".to_owned(), |file| file.display().to_string());
    match PageThread::open(file, &name, bytes_max, (inbox, runtime)) {
        Ok(thread) => thread.serve(first),
        Err(error) => {
            let error = format!("`{name}`: {error}");
            tracing::warn!("saved pages cannot be used, and no row is lost: {error}");
            refuse(first, inbox, &error);
        }
    }
}

/// Answers all requests as if no page were saved. A run continues without saved pages.
fn refuse(first: PageRequest, inbox: &Receiver<PageRequest>, error: &str) {
    for request in std::iter::once(first).chain(std::iter::from_fn(|| inbox.recv())) {
        match request {
            PageRequest::Find(_, answer) => ignore_closed(answer.send(None)),
            PageRequest::Recall(_, _, answer) => ignore_closed(answer.send(None)),
            PageRequest::Keep(_, _, answer) | PageRequest::KeepData(_, _, answer) => {
                ignore_closed(answer.send(Err(error.to_owned())));
            }
        }
    }
}

impl<'a> PageThread<'a> {
    fn open(
        file: Option<&Path>,
        name: &str,
        bytes_max: u64,
        (inbox, runtime): (&'a Receiver<PageRequest>, Option<Handle>),
    ) -> PagesResult<Self> {
        let connection = connect(file)?;
        let is_so = |sql: &str| connection.query_row(sql, [], |row| row.get(0));
        let has_data = is_so("SELECT EXISTS (SELECT 1 FROM parsed)").unwrap_or(true);
        let has_pages = is_so("SELECT EXISTS (SELECT 1 FROM pages)").unwrap_or(true);
        let is_sorted = is_so(IS_SORTED).unwrap_or(false);
        let mut thread = Self {
            connection,
            packs: PackFiles::open(file.and_then(Path::parent), bytes_max)?,
            writer: FrameWriter::new()?,
            reader: FrameReader::new()?,
            unsaved: Vec::new(),
            has_data,
            is_sorted,
            alarm: DamageAlarm::of(name),
            inbox,
            runtime,
            bytes_max,
            grown: bytes_max,
        };
        // Pages of an earlier run are replaced by those of this one.
        if has_pages {
            thread.sort()?;
        }
        thread.remove_unused_packs()?;
        Ok(thread)
    }

    /// Removes packs without pages, and continues the last one if it is small.
    fn remove_unused_packs(&mut self) -> rusqlite::Result<()> {
        for pack in self.packs.numbers() {
            let used = "SELECT EXISTS (SELECT 1 FROM packs, pages WHERE packs.id = ?1
                AND pages.id >= packs.first AND pages.id <
                coalesce((SELECT min(first) FROM packs WHERE id > ?1), 9223372036854775807))";
            let used = self.connection.query_row(used, [pack as i64], |row| row.get(0))?;
            if used {
                continue;
            }
            self.connection.execute("DELETE FROM packs WHERE id = ?1", [pack as i64])?;
            self.packs.remove(pack);
        }
        if let last @ 1.. = self.last_pack()? {
            self.packs.resume(last);
        }
        Ok(())
    }

    /// Number of the last pack that `pages.db` knows, or 0.
    fn last_pack(&self) -> rusqlite::Result<u64> {
        let last = "SELECT coalesce(max(id), 0) FROM packs";
        self.connection.query_row(last, [], |row| row.get::<_, i64>(0)).map(|last| last as u64)
    }

    /// Serves requests until the last sender is dropped.
    pub(super) fn serve(mut self, first: PageRequest) {
        for request in std::iter::once(first).chain(std::iter::from_fn(|| self.inbox.recv())) {
            let mut answers = Answers::new();
            let saved = self.batch(request, &mut answers);
            let saved = saved.and_then(|()| self.commit(!answers.is_empty()));
            failpoint::pass("pages.commit.after");
            let saved = saved.map_err(|error| self.roll_back(&error));
            if answers.is_empty() {
                continue;
            }
            answer_in_one_task(self.runtime.as_ref(), move || {
                for answer in answers {
                    // A caller that no longer waits needs no answer.
                    ignore_closed(answer.send(saved.clone()));
                }
            });
        }
    }

    /// Serves a request and those that arrive meanwhile, in one transaction. After an error nothing
    /// more is saved in it, but requests are still taken and pages are still looked up.
    fn batch(&mut self, first: PageRequest, answers: &mut Answers) -> PagesResult<()> {
        let mut saved = self.connection.execute_batch("BEGIN").map_err(PagesError::from);
        let deadline = Instant::now() + BATCH_TIME;
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(request) = next.take() else { break };
            if saved.is_ok() {
                saved = match &request {
                    PageRequest::Find(..) | PageRequest::Recall(..) => self.flush(),
                    PageRequest::Keep(..) | PageRequest::KeepData(..) => Ok(()),
                };
            }
            match request {
                PageRequest::Find(fingerprint, answer) => {
                    let found = self.find(&fingerprint);
                    ignore_closed(answer.send(self.alarm.default_of(found)));
                }
                PageRequest::Recall(fingerprint, url, answer) => {
                    let found = self.recall(&fingerprint, &url);
                    ignore_closed(answer.send(self.alarm.default_of(found)));
                }
                PageRequest::Keep(fingerprint, page, answer) => {
                    answers.push(answer);
                    saved = saved.and_then(|()| self.put(fingerprint, *page));
                }
                PageRequest::KeepData(fingerprint, data, answer) => {
                    answers.push(answer);
                    saved = saved.and_then(|()| Ok(self.put_data(&fingerprint, &data)?));
                }
            }
            // A caller that looks a page up waits for it, so a batch without pages to save ends soon.
            next = match answers.len() {
                0 => self.inbox.try_recv(),
                _ => self.inbox.recv_batched(QUEUE / 2, deadline),
            };
        }
        saved
    }

    /// Writes the bodies, then commits the rows that name them, then removes packs without rows.
    fn commit(&mut self, has_saved: bool) -> PagesResult<()> {
        self.flush()?;
        let dropped = if has_saved { self.shrink()? } else { Vec::new() };
        failpoint::pass("pages.commit.before");
        self.connection.execute_batch("COMMIT")?;
        for pack in dropped {
            self.packs.remove(pack);
            self.reader.forget_pack(pack);
        }
        Ok(())
    }

    /// Drops everything of a batch that failed. Its pack is left, because it may end anywhere.
    fn roll_back(&mut self, error: &PagesError) -> String {
        if let PagesError::Table(error) = error {
            self.alarm.look_at(error);
        }
        if !self.connection.is_autocommit() {
            let rolled_back = self.connection.execute_batch("ROLLBACK");
            self.alarm.default_of(rolled_back);
        }
        self.unsaved.clear();
        self.is_sorted = false;
        self.writer.end();
        self.packs.leave();
        format!("page could not be saved: {error}")
    }

    /// Writes what the open frame has got since the last flush, and the rows of these pages.
    fn flush(&mut self) -> PagesResult<()> {
        if !self.unsaved.is_empty() {
            let frame = self.writer.flush(&mut self.packs)?;
            for row in self.unsaved.drain(..) {
                row.insert(&self.connection, frame)?;
            }
        }
        Ok(self.packs.flush()?)
    }

    /// Drops the rows of the oldest packs, their pages and what was parsed from those, until the
    /// rest is within `pages.max`. The files are removed when this is committed.
    fn shrink(&mut self) -> rusqlite::Result<Vec<u64>> {
        let mut dropped = Vec::new();
        if self.grown < self.bytes_max / SHRINK_PART {
            return Ok(dropped);
        }
        self.grown = 0;
        let number = |name: &str| -> rusqlite::Result<u64> {
            let sql = format!("PRAGMA {name}");
            let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            Ok(self.connection.prepare_cached(&sql)?.query_row([], read)? as u64)
        };
        let size = number("page_size")?;
        let mut left = self.packs.bytes();
        for pack in self.packs.numbers() {
            if left + (number("page_count")? - number("freelist_count")?) * size <= self.bytes_max {
                break;
            }
            self.drop_rows(pack)?;
            left -= self.packs.bytes_of(pack);
            dropped.push(pack);
        }
        Ok(dropped)
    }

    /// Drops the rows of a pack and of all older ones.
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

    /// Makes the index of fingerprints, which stays.
    fn sort(&mut self) -> rusqlite::Result<()> {
        if !self.is_sorted {
            self.connection.execute_batch(SORT)?;
            self.is_sorted = true;
        }
        Ok(())
    }

    fn find(&mut self, fingerprint: &Fingerprint) -> rusqlite::Result<FoundPage> {
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

    fn recall(&mut self, own: &Fingerprint, url: &str) -> rusqlite::Result<Option<StoredPage>> {
        self.sort()?;
        if let Some(page) = self.page("fingerprint = ?1", params![own])? {
            return Ok(Some(page));
        }
        // Only a replay looks addresses up, so other runs do without this index.
        let index = "CREATE INDEX IF NOT EXISTS pages_by_url ON pages (url)";
        self.connection.execute_batch(index)?;
        self.page("url = ?1 ORDER BY id DESC LIMIT 1", params![url])
    }

    /// The page with a row that matches, unless it is damaged.
    fn page(&mut self, which: &str, values: impl Params) -> rusqlite::Result<Option<StoredPage>> {
        let sql = format!("SELECT {COLUMNS} FROM pages WHERE {which}");
        let read = |row: &rusqlite::Row<'_>| Ok(PageRow::read(row));
        let found = self.connection.prepare_cached(&sql)?.query_row(values, read).optional()?;
        let Some(row) = found else { return Ok(None) };
        match row.map(|row| row.load(&self.packs, &mut self.reader)) {
            Ok(Ok(page)) => return Ok(Some(page)),
            Ok(Err(damage)) => self.alarm.raise(Some(&damage.file), &damage.what),
            Err(error) => self.alarm.raise(None, &error.to_string()),
        }
        Ok(None)
    }

    fn put(&mut self, fingerprint: Fingerprint, mut page: StoredPage) -> PagesResult<()> {
        let body = std::mem::take(&mut page.body);
        if !self.packs.has_room() || !self.writer.has_room(body.len()) {
            self.flush()?;
            self.writer.end();
        }
        if !self.packs.has_room() {
            let pack = self.packs.begin(self.last_pack()?)?;
            let begun = "INSERT INTO packs (id, first)
                VALUES (?1, (SELECT coalesce(max(id), 0) + 1 FROM pages))";
            self.connection.execute(begun, [pack as i64])?;
        }
        if self.has_data {
            self.connection
                .prepare_cached("DELETE FROM parsed WHERE fingerprint = ?1")?
                .execute(params![fingerprint])?;
        }
        let body_offset = self.writer.add(&mut self.packs, &body)?;
        let body_size = body.len() as u64;
        self.grow(page.url.len() + page.base.len() + page.headers.len() + body.len());
        let body_mark = mark_of(&[&body]);
        self.unsaved.push(UnsavedRow { fingerprint, page, body_offset, body_size, body_mark });
        Ok(())
    }

    fn put_data(
        &mut self,
        fingerprint: &Fingerprint,
        data: &[(Vec<u8>, Vec<u8>)],
    ) -> rusqlite::Result<()> {
        self.has_data = true;
        for (key, data) in data {
            self.connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO parsed (fingerprint, key, mark, data)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![fingerprint, key, mark_of(&[data]), data])?;
            self.grow(key.len() + data.len());
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize) {
        self.grown = self.grown.saturating_add(bytes as u64);
    }
}
