//! Finds saved pages that cannot be used, and reports them. A run continues without them, and
//! nothing is removed unless the user does it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::PAGES_FILE;
use super::frames::FrameReader;
use super::packs::PackFiles;
use super::records::{COLUMNS, FORMAT, PageDamage, PageRow, mark_of};
use crate::store::{StoreError, damage, store_error};

/// Warns of damage, once in a run.
#[derive(Debug)]
pub(super) struct DamageAlarm {
    /// Path of `pages.db`.
    file: String,
    is_raised: Cell<bool>,
}

impl DamageAlarm {
    pub(super) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), is_raised: Cell::new(false) }
    }

    /// Warns that a file is damaged; `None` is `pages.db`.
    pub(super) fn raise(&self, file: Option<&str>, what: &str) {
        if !self.is_raised.replace(true) {
            tracing::warn!(
                "`{}` is damaged: {what}; damaged pages count as not saved, and no row is lost; \
                 `spoonbill fsck` lists all damage; remove `{PAGES_FILE}` and the packs beside it \
                 to begin with none",
                file.unwrap_or(&self.file)
            );
        }
    }

    /// The value, or the default after an error; an error from damage raises the alarm.
    pub(super) fn default_of<T: Default>(&self, result: rusqlite::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.look_at(&error);
            T::default()
        })
    }

    /// Raises the alarm if an error comes from damage.
    pub(super) fn look_at(&self, error: &rusqlite::Error) {
        let code = error.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            self.raise(None, &error.to_string());
        }
    }
}

/// Lists the damage of the saved pages in a data directory.
pub(crate) fn examine(dir: &Path) -> Vec<String> {
    let path = dir.join(PAGES_FILE);
    let name = path.display().to_string();
    let has_packs = PackFiles::open(Some(dir), u64::MAX).is_ok_and(|packs| packs.bytes() > 0);
    if !path.exists() {
        let words = format!("`{name}` is gone, and with it all pages in the packs beside it");
        return if has_packs { vec![words] } else { Vec::new() };
    }
    examine_files(&path, &name, has_packs)
        .unwrap_or_else(|error| vec![format!("`{name}`: {error}")])
}

fn examine_files(path: &Path, name: &str, has_packs: bool) -> Result<Vec<String>, String> {
    let words = |error: rusqlite::Error| error.to_string();
    let connection = Connection::open(path).map_err(words)?;
    let mut found = damage(&connection, name).map_err(words)?;
    let format = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    let format = format.map_err(words)?;
    if format == 0 && !has_packs {
        // The process that created it was killed before it had saved anything.
        return Ok(found);
    }
    if let Some(error) = StoreError::of_format(format, FORMAT, name) {
        found.push(error.to_string());
        return Ok(found);
    }
    found.extend(examine_pages(&connection, path.parent())?);
    let mut statement = connection.prepare("SELECT mark, data FROM parsed").map_err(words)?;
    let mut rows = statement.query([]).map_err(words)?;
    while let Some(row) = rows.next().map_err(words)? {
        let read = || Ok((row.get(0)?, row.get(1)?));
        let (mark, data): (Vec<u8>, Vec<u8>) = read().map_err(words)?;
        if mark_of(&[&data]) != mark[..] {
            found.push(format!("`{name}`: a record of `parsed` is damaged"));
        }
    }
    Ok(found)
}

/// Reads every page as a replay would. A pack that is gone is listed once.
fn examine_pages(connection: &Connection, dir: Option<&Path>) -> Result<Vec<String>, String> {
    let words = |error: rusqlite::Error| error.to_string();
    let packs = PackFiles::open(dir, u64::MAX).map_err(|error| error.to_string())?;
    let mut frames = FrameReader::new().map_err(|error| error.to_string())?;
    let mut gone: BTreeMap<u64, u64> = BTreeMap::new();
    let mut found = Vec::new();
    let sql = format!("SELECT {COLUMNS} FROM pages ORDER BY id");
    let mut statement = connection.prepare(&sql).map_err(words)?;
    let mut rows = statement.query([]).map_err(words)?;
    while let Some(row) = rows.next().map_err(words)? {
        let page = PageRow::read(row)
            .map_err(|_| PageDamage::of_row(packs.path_beside(PAGES_FILE), ""))
            .and_then(|row| row.load(&packs, &mut frames));
        match page {
            Ok(_) => {}
            Err(PageDamage { missing_pack: Some(pack), .. }) => *gone.entry(pack).or_default() += 1,
            Err(PageDamage { file, what, .. }) => found.push(format!("`{file}`: {what}")),
        }
    }
    let gone = gone.into_iter();
    found.extend(
        gone.map(|(pack, pages)| format!("`{}` is gone (pages: {pages})", packs.path_of(pack))),
    );
    Ok(found)
}

/// Fails if a data directory has saved pages and `pages.db` cannot be used.
pub(crate) fn check_usable(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(PAGES_FILE);
    if !path.exists() {
        return Ok(());
    }
    let name = path.display().to_string();
    let look = || -> rusqlite::Result<i64> {
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if format == FORMAT {
            let first = "SELECT count(*) FROM (SELECT 1 FROM pages LIMIT 1)";
            connection.query_row(first, [], |_| Ok(()))?;
        }
        Ok(format)
    };
    let format = look().map_err(|error| store_error(&name, &error))?;
    StoreError::of_format(format, FORMAT, &name).map_or(Ok(()), Err)
}
