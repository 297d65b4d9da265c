//! What is said of saved pages that cannot be used. A run does without them, for no row is lost by
//! it; but nobody should find out by chance, and nothing is thrown away unasked.

use std::cell::Cell;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{FILE, FORMAT, LABEL, mark_with};
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

    /// Says that a saved page is not what was written.
    pub(super) fn ring(&self, what: &str) {
        if !self.told.replace(true) {
            tracing::warn!(
                "`{}` is damaged: {what}; what cannot be read counts as not saved, and no row is \
                 lost by it: `spoonbill fsck` lists the damage, and removing the file ends it",
                self.name
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
            self.ring(&error.to_string());
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
        return Vec::new();
    }
    let look = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open(&path)?;
        let mut found = crate::store::damage(&connection, &name)?;
        for (table, sql) in [
            ("pages", format!("SELECT mark, body, url, {LABEL} FROM pages")),
            ("parsed", "SELECT mark, data, '', '' FROM parsed".to_owned()),
            ("models", "SELECT mark, body, '', '' FROM models".to_owned()),
        ] {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (mark, bytes): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
                if mark_with(&row.get::<_, String>(3)?, &bytes) != mark[..] {
                    let url: String = row.get(2)?;
                    found.push(format!("`{name}`: a record of `{table}` is damaged {url}"));
                }
            }
        }
        Ok(found)
    };
    look().unwrap_or_else(|error| vec![format!("`{name}`: {error}")])
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
