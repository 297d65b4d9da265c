//! `pages.db`: one row for each saved page, with its label and the position of its body.

use std::io;
use std::path::Path;

use bytes::Bytes;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Row, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::frames::{BodyPosition, FrameExtent, FrameReader};
use super::packs::PackFiles;
use super::{Fingerprint, PAGES_FILE, StoredPage};

/// Format of `pages.db` and of the packs. Files of another format are neither read nor changed.
pub(super) const FORMAT: i64 = 5;

/// `packs.first` is the id of the first page in the pack.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS pages (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL,
    url TEXT NOT NULL, base TEXT NOT NULL, from_date TEXT NOT NULL, status INTEGER NOT NULL,
    content_type TEXT, headers TEXT NOT NULL, pack INTEGER NOT NULL,
    frame_offset INTEGER NOT NULL, frame_length INTEGER NOT NULL, body_offset INTEGER NOT NULL,
    body_size INTEGER NOT NULL, body_mark BLOB NOT NULL, mark BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS packs (id INTEGER PRIMARY KEY, first INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parsed (fingerprint BLOB NOT NULL, key BLOB NOT NULL,
    mark BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (fingerprint, key)) WITHOUT ROWID;
";

/// The columns that [`PageRow::read`] expects, in its order.
pub(super) const COLUMNS: &str = "fingerprint, url, base, from_date, status, content_type, headers,
    pack, frame_offset, frame_length, body_offset, body_size, body_mark, mark";

/// Why saved pages cannot be opened, or pages cannot be saved.
#[derive(Debug, thiserror::Error)]
pub(super) enum PagesError {
    #[error("{0}")]
    Table(#[from] rusqlite::Error),
    #[error("{0}")]
    Pack(#[from] io::Error),
    #[error(
        "another version has written it (format {0}, this is {known}); it stays as it is, and this \
         run saves no pages; move the file away to save them",
        known = FORMAT
    )]
    OtherFormat(i64),
}

/// Opens `pages.db`, or creates it; in memory without a file.
pub(super) fn connect(file: Option<&Path>) -> Result<Connection, PagesError> {
    let connection = match file {
        Some(file) => Connection::open(file)?,
        None => Connection::open_in_memory()?,
    };
    let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if format != 0 && format != FORMAT {
        return Err(PagesError::OtherFormat(format));
    }
    // No checkpoint at the end: it would copy the whole log into the file, for no reader's benefit.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=8000; \
         PRAGMA cache_size=-1024;",
    )?;
    if format == 0 {
        // In one transaction: a file with a format and without tables counts as damaged.
        let create = format!("BEGIN; {SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;");
        connection.execute_batch(&create)?;
    } else {
        connection.execute_batch(SCHEMA)?;
    }
    Ok(connection)
}

/// A checksum over parts and their lengths, against accidental damage.
pub(super) fn mark_of(parts: &[&[u8]]) -> [u8; 8] {
    parts.iter().fold(0, |seed, part| xxh3_64_with_seed(part, seed)).to_le_bytes()
}

/// Why a saved page cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageDamage {
    /// The damaged file.
    pub(super) file: String,
    pub(super) what: String,
    /// The pack, if its file does not exist.
    pub(super) missing_pack: Option<u64>,
}

impl PageDamage {
    /// A row that is not what was written.
    pub(super) fn of_row(file: String, url: &str) -> Self {
        Self { file, what: format!("a record of `pages` is damaged {url}"), missing_pack: None }
    }
}

/// A row of `pages`.
pub(super) struct PageRow {
    fingerprint: Vec<u8>,
    /// The page without its body.
    page: StoredPage,
    position: BodyPosition,
    body_mark: Vec<u8>,
    mark: Vec<u8>,
}

impl PageRow {
    /// Reads a row of [`COLUMNS`].
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let number = |column: usize| row.get::<_, i64>(column).map(|number| number as u64);
        Ok(Self {
            fingerprint: row.get(0)?,
            page: StoredPage {
                url: row.get(1)?,
                base: row.get(2)?,
                from_date: row.get(3)?,
                status: row.get(4)?,
                content_type: row.get(5)?,
                headers: row.get(6)?,
                body: Bytes::new(),
            },
            position: BodyPosition {
                frame: FrameExtent { pack: number(7)?, offset: number(8)?, length: number(9)? },
                offset: number(10)?,
                size: number(11)?,
            },
            body_mark: row.get(12)?,
            mark: row.get(13)?,
        })
    }

    /// The page, if the row and the body are what was written.
    pub(super) fn load(
        self,
        packs: &PackFiles,
        frames: &mut FrameReader,
    ) -> Result<StoredPage, PageDamage> {
        let Self { fingerprint, page, position, mark, body_mark } = self;
        if row_mark(&fingerprint, &page, position, &body_mark) != mark[..] {
            return Err(PageDamage::of_row(packs.path_beside(PAGES_FILE), &page.url));
        }
        let pack = position.frame.pack;
        let damage = |what: &str, missing_pack| PageDamage {
            file: packs.path_of(pack),
            what: format!("{what} {}", page.url),
            missing_pack,
        };
        if !packs.has(pack) {
            return Err(damage("the file is gone, and with it", Some(pack)));
        }
        let body = frames
            .read(packs, position)
            .filter(|body| mark_of(&[body]) == body_mark[..])
            .ok_or_else(|| damage("a saved page is not what was written:", None))?;
        Ok(StoredPage { body, ..page })
    }
}

/// A page whose body is packed and whose row is still to be written.
pub(super) struct UnsavedRow {
    pub(super) fingerprint: Fingerprint,
    /// The page without its body.
    pub(super) page: StoredPage,
    /// Offset of the body in the unpacked frame.
    pub(super) body_offset: u64,
    pub(super) body_size: u64,
    pub(super) body_mark: [u8; 8],
}

impl UnsavedRow {
    /// Writes the row. `frame` is the frame of the body, flushed after it.
    pub(super) fn insert(
        self,
        connection: &Connection,
        frame: FrameExtent,
    ) -> rusqlite::Result<()> {
        let Self { fingerprint, page, body_offset: offset, body_size: size, body_mark } = self;
        let position = BodyPosition { frame, offset, size };
        let [pack, frame_offset, frame_length, offset, size] = numbers(position);
        let mark = row_mark(&fingerprint, &page, position, &body_mark);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO pages (fingerprint, url, base, from_date, status,
                 content_type, headers, pack, frame_offset, frame_length, body_offset, body_size,
                 body_mark, mark)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                fingerprint,
                page.url,
                page.base,
                page.from_date,
                page.status,
                page.content_type,
                page.headers,
                pack,
                frame_offset,
                frame_length,
                offset,
                size,
                body_mark,
                mark
            ])?;
        Ok(())
    }
}

/// SQLite has signed numbers only.
fn numbers(position: BodyPosition) -> [i64; 5] {
    let BodyPosition { frame: FrameExtent { pack, offset, length }, .. } = position;
    [pack, offset, length, position.offset, position.size].map(|number| number as i64)
}

/// A mark over everything in a row, and through `body_mark` over the body.
fn row_mark(
    fingerprint: &[u8],
    page: &StoredPage,
    position: BodyPosition,
    body_mark: &[u8],
) -> [u8; 8] {
    let StoredPage { url, base, from_date, status, content_type, headers, .. } = page;
    let sent = [u8::from(content_type.is_some())];
    let content_type = content_type.as_deref().unwrap_or_default();
    let texts = [url, base, from_date, content_type, headers].map(str::as_bytes);
    let [url, base, from_date, content_type, headers] = texts;
    mark_of(&[
        fingerprint,
        url,
        base,
        from_date,
        &status.to_le_bytes(),
        &sent,
        content_type,
        headers,
        numbers(position).map(i64::to_le_bytes).as_flattened(),
        body_mark,
    ])
}
