//! Pages small and quick: pages of one kind are packed against the first of them, their model.
//!
//! Most of a page is the same on every page of its site. Against a model it packs in half the time
//! to a third of the size.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use zstd::bulk::{Compressor, Decompressor};

use super::mark_of;

const LEVEL: i32 = 1;
/// Shorter pages are packed alone.
const MODEL_MIN: usize = 256;
/// More of a page than this makes no better model.
const MODEL_MAX: usize = 128 * 1024;
/// Models of one process: each takes about a megabyte.
const MODELS_MAX: usize = 16;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, mark BLOB NOT NULL, body BLOB NOT NULL);
";

/// A packed page: its bytes, and the model that is needed to read them.
pub(super) type Packed = (Vec<u8>, Option<i64>);

/// Packs and unpacks pages.
pub(super) struct Packer {
    plain: Compressor<'static>,
    /// By kind of page: the model's number, and what packs against it.
    models: HashMap<String, (i64, Compressor<'static>)>,
    /// The model that was read last.
    last_read: RefCell<Option<(i64, Vec<u8>)>>,
}

impl Packer {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            plain: Compressor::new(LEVEL)?,
            models: HashMap::new(),
            last_read: RefCell::default(),
        })
    }

    /// Packs a page. The first of its kind becomes the model of those that follow.
    pub(super) fn pack(
        &mut self,
        connection: &Connection,
        kind: &str,
        body: &[u8],
    ) -> rusqlite::Result<Packed> {
        let wrap = |error: std::io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        if let Some((model, packer)) = self.models.get_mut(kind) {
            return Ok((packer.compress(body).map_err(wrap)?, Some(*model)));
        }
        let packed = self.plain.compress(body).map_err(wrap)?;
        if body.len() >= MODEL_MIN && self.models.len() < MODELS_MAX {
            let model = &body[..body.len().min(MODEL_MAX)];
            connection
                .prepare_cached("INSERT INTO models (mark, body) VALUES (?1, ?2)")?
                .execute(params![mark_of(model), model])?;
            let packer = Compressor::with_dictionary(LEVEL, model).map_err(wrap)?;
            self.models.insert(kind.to_owned(), (connection.last_insert_rowid(), packer));
        }
        Ok((packed, None))
    }

    /// The page again; nothing if it or its model is damaged.
    pub(super) fn unpack(
        &self,
        connection: &Connection,
        (packed, model): &Packed,
        size: usize,
    ) -> rusqlite::Result<Option<Vec<u8>>> {
        let Some(model) = model else {
            return Ok(zstd::bulk::decompress(packed, size).ok());
        };
        let mut last = self.last_read.borrow_mut();
        if last.as_ref().is_none_or(|(known, _)| known != model) {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let found: Option<(Vec<u8>, Vec<u8>)> = connection
                .prepare_cached("SELECT mark, body FROM models WHERE id = ?1")?
                .query_row(params![model], read)
                .optional()?;
            let whole = found.filter(|(mark, body)| mark_of(body) == mark[..]);
            *last = whole.map(|(_, body)| (*model, body));
        }
        let Some((_, body)) = &*last else {
            return Ok(None);
        };
        let page = Decompressor::with_dictionary(body)
            .and_then(|mut reader| reader.decompress(packed, size));
        Ok(page.ok())
    }
}
