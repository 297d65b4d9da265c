//! Rows of `pages.db`: what is known of a saved page, and where its body is.

use bytes::Bytes;
use rusqlite::{Connection, Row, params};

use crate::pages::mark::{MARK, mark_of};
use crate::pages::packer::{Packed, Packer};
use crate::pages::packs::Packs;
use crate::pages::{FILE, Fingerprint, StoredPage};

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS pages (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL,
    url TEXT NOT NULL, base TEXT NOT NULL, from_date TEXT NOT NULL, status INTEGER NOT NULL,
    content_type TEXT, headers TEXT NOT NULL, size INTEGER NOT NULL, pack INTEGER NOT NULL,
    place INTEGER NOT NULL, length INTEGER NOT NULL, model INTEGER, mark BLOB NOT NULL,
    body_mark BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS packs (id INTEGER PRIMARY KEY, first INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parsed (fingerprint BLOB NOT NULL, key BLOB NOT NULL,
    mark BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (fingerprint, key)) WITHOUT ROWID;
";

/// The columns of a [`Record`], in its order.
pub(super) const COLUMNS: &str = "fingerprint, url, base, from_date, status, content_type, headers,
    size, pack, place, length, model, mark, body_mark";

/// Why a saved page cannot be read, and the file to blame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) file: String,
    pub(super) what: String,
    /// The pack that is not there at all.
    pub(super) missing: Option<u64>,
}

/// A row.
pub(super) struct Record {
    fingerprint: Vec<u8>,
    /// Without its body.
    page: StoredPage,
    size: i64,
    pack: i64,
    place: i64,
    length: i64,
    model: Option<i64>,
    mark: Vec<u8>,
    body_mark: Vec<u8>,
}

impl Record {
    /// Reads a row of [`COLUMNS`].
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
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
            size: row.get(7)?,
            pack: row.get(8)?,
            place: row.get(9)?,
            length: row.get(10)?,
            model: row.get(11)?,
            mark: row.get(12)?,
            body_mark: row.get(13)?,
        })
    }

    /// The page, if this row, its body and its model are what was written.
    pub(super) fn load(self, packs: &Packs, packer: &Packer) -> Result<StoredPage, Damage> {
        let Self { fingerprint, page, size, pack, place, length, model, mark, body_mark } = self;
        let numbers = [size, pack, place, length, model.unwrap_or(-1)];
        if label_mark(&fingerprint, &page, numbers, &body_mark) != mark[..] {
            return Err(damaged_row(packs.path_beside(FILE), &page.url));
        }
        let [size, pack, place, length] = [size, pack, place, length].map(|number| number as u64);
        let blame = |what: &str, missing| Damage {
            file: packs.path_of(pack),
            what: format!("{what} {}", page.url),
            missing,
        };
        if !packs.has(pack) {
            return Err(blame("it is gone, and with it", Some(pack)));
        }
        let packed = packs
            .read(pack, place, length)
            .filter(|packed| mark_of(&[packed]) == body_mark[..])
            .ok_or_else(|| blame("a saved page is not what was written:", None))?;
        let model = model.map(|model| model as u64);
        let body = packer
            .unpack(packs, (pack, model), &packed, size as usize)
            .ok_or_else(|| blame("what a saved page needs is not what was written:", None))?;
        Ok(StoredPage { body: Bytes::from(body), ..page })
    }
}

/// What is said of a row that is damaged itself.
pub(super) fn damaged_row(file: String, url: &str) -> Damage {
    Damage { file, what: format!("a record of `pages` is damaged {url}"), missing: None }
}

/// Writes the row of a page whose body is packed.
pub(super) fn insert(
    connection: &Connection,
    fingerprint: &Fingerprint,
    page: &StoredPage,
    pack: u64,
    packed: &Packed,
) -> rusqlite::Result<()> {
    let [size, pack, place, length] =
        [page.body.len() as u64, pack, packed.place, packed.length].map(|number| number as i64);
    let model = packed.model.map(|model| model as i64);
    let numbers = [size, pack, place, length, model.unwrap_or(-1)];
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO pages (fingerprint, url, base, from_date, status, content_type,
             headers, size, pack, place, length, model, mark, body_mark)
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
            size,
            pack,
            place,
            length,
            model,
            label_mark(fingerprint, page, numbers, &packed.mark),
            packed.mark
        ])?;
    Ok(())
}

/// A mark over everything in a row, and so over the body too.
fn label_mark(
    fingerprint: &[u8],
    page: &StoredPage,
    numbers: [i64; 5],
    body_mark: &[u8],
) -> [u8; MARK] {
    let StoredPage { url, base, from_date, status, content_type, headers, .. } = page;
    let sent = [u8::from(content_type.is_some())];
    let content_type = content_type.as_deref().unwrap_or_default();
    let numbers = numbers.map(i64::to_le_bytes);
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
        numbers.as_flattened(),
        body_mark,
    ])
}
