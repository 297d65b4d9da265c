//! What is said of saved pages that cannot be used. A run does without them, for no row is lost by
//! it; but nobody should find out by chance, and nothing is thrown away unasked.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::pages::mark::mark_of;
use crate::pages::packer::Packer;
use crate::pages::packs::Packs;
use crate::pages::records::{COLUMNS, Damage, Record, damaged_row};
use crate::pages::{FILE, FORMAT};
use crate::store::{StoreError, store_error};

/// Tells once that a file is damaged.
#[derive(Debug)]
pub(super) struct Alarm {
    name: String,
    told: Cell<bool>,
}

impl Alarm {
    pub(super) fn of(file: Option<&Path>) -> Self {
        let name = file.map_or_else(|| "(memory)".to_owned(), |file| file.display().to_string());
        Self { name, told: Cell::new(false) }
    }

    /// Says that a saved page is not what was written; the file is `pages.db` unless it is named.
    pub(super) fn ring(&self, file: Option<&str>, what: &str) {
        if !self.told.replace(true) {
            tracing::warn!(
                "`{}` is damaged: {what}; what cannot be read counts as not saved, and no row is \
                 lost by it: `spoonbill fsck` lists the damage, and removing `{FILE}` and all \
                 packs beside it ends it",
                file.unwrap_or(&self.name)
            );
        }
    }

    /// The value, or nothing; damage is told.
    pub(super) fn hear<T: Default>(&self, result: rusqlite::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.look_at(&error);
            T::default()
        })
    }

    pub(super) fn look_at(&self, error: &rusqlite::Error) {
        let code = error.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            self.ring(None, &error.to_string());
        }
    }
}

/// Why a file of such a format is left alone, if it is; 0 is a file not yet made.
pub(super) fn other_format(found: i64) -> Option<String> {
    (found != 0 && found != FORMAT).then(|| {
        format!(
            "another version has written it (format {found}, this is {FORMAT}), so it is left as \
             it is and no pages are kept in this run; move the file away to have them kept"
        )
    })
}

/// Says why nothing is kept in this run.
pub(super) fn tell_unusable(words: &str) {
    tracing::warn!("saved pages cannot be used, and no row is lost by it: {words}");
}

/// Everything that is wrong with the saved pages in a data directory.
pub(crate) fn examine(dir: &Path) -> Vec<String> {
    let path = dir.join(FILE);
    let name = path.display().to_string();
    if !path.exists() {
        let packs = Packs::open(Some(dir), u64::MAX).map_or(0, |packs| packs.numbers().len());
        let words = format!("`{name}` is gone, and with it all pages in the packs beside it");
        return if packs > 0 { vec![words] } else { Vec::new() };
    }
    let look = || -> Result<Vec<String>, String> {
        let words = |error: rusqlite::Error| error.to_string();
        let connection = Connection::open(&path).map_err(words)?;
        let mut found = crate::store::damage(&connection, &name).map_err(words)?;
        let format = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let packs = Packs::open(Some(dir), u64::MAX).map_or(0, |packs| packs.numbers().len());
        if format.map_err(words)? == 0 && packs == 0 {
            // Whoever made it was killed before it was made, and has saved nothing.
            return Ok(found);
        }
        found.extend(examine_pages(&connection, dir)?);
        let sql = "SELECT mark, data FROM parsed";
        let mut statement = connection.prepare(sql).map_err(words)?;
        let mut rows = statement.query([]).map_err(words)?;
        while let Some(row) = rows.next().map_err(words)? {
            let read = || Ok((row.get(0)?, row.get(1)?));
            let (mark, data): (Vec<u8>, Vec<u8>) = read().map_err(words)?;
            if mark_of(&[&data]) != mark[..] {
                found.push(format!("`{name}`: a record of `parsed` is damaged"));
            }
        }
        Ok(found)
    };
    look().unwrap_or_else(|error| vec![format!("`{name}`: {error}")])
}

/// Reads every page as a replay would. A pack that is gone is told once.
fn examine_pages(connection: &Connection, dir: &Path) -> Result<Vec<String>, String> {
    let packs = Packs::open(Some(dir), u64::MAX).map_err(|error| error.to_string())?;
    let packer = Packer::new().map_err(|error| error.to_string())?;
    let words = |error: rusqlite::Error| error.to_string();
    let mut gone: BTreeMap<u64, u64> = BTreeMap::new();
    let mut found = Vec::new();
    let sql = format!("SELECT {COLUMNS} FROM pages ORDER BY id");
    let mut statement = connection.prepare(&sql).map_err(words)?;
    let mut rows = statement.query([]).map_err(words)?;
    while let Some(row) = rows.next().map_err(words)? {
        let record = Record::read(row).map_err(|_| damaged_row(packs.path_beside(FILE), ""));
        match record.and_then(|record| record.load(&packs, &packer)) {
            Ok(_) => {}
            Err(Damage { missing: Some(pack), .. }) => *gone.entry(pack).or_default() += 1,
            Err(Damage { file, what, .. }) => found.push(format!("`{file}`: {what}")),
        }
    }
    let gone = gone.into_iter();
    found.extend(
        gone.map(|(pack, pages)| format!("`{}` is gone (pages: {pages})", packs.path_of(pack))),
    );
    Ok(found)
}

/// Sees that the saved pages of a data directory, if there are any, can be read at all.
pub(crate) fn vouch(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Ok(());
    }
    let name = path.display().to_string();
    let look = || -> rusqlite::Result<i64> {
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if format == FORMAT {
            connection.query_row(
                "SELECT count(*) FROM (SELECT 1 FROM pages LIMIT 1)",
                [],
                |_| Ok(()),
            )?;
        }
        Ok(format)
    };
    let format = look().map_err(|error| store_error(&name, &error))?;
    StoreError::of_format(format, FORMAT, &name).map_or(Ok(()), Err)
}
