//! Looks a data directory over, record by record, and tells everything that is wrong with it.

use std::path::Path;

use rusqlite::Connection;

use super::StoreError;
use super::seal::unseal_bytes;
use super::solo::lock;
use super::sqlite::SqliteTables;

/// Everything that is wrong with the ledger in `dir`; empty when all is well.
pub(crate) fn examine(dir: &Path) -> Result<Vec<String>, StoreError> {
    let _lock = lock(dir)?;
    let path = dir.join("state.db");
    let mut tables = match SqliteTables::open(Some(&path)) {
        Ok(tables) => tables,
        // Damage so deep that the file cannot be opened is a finding too.
        Err(StoreError::Damaged(words)) => return Ok(vec![words]),
        Err(other) => return Err(other),
    };
    let name = path.display().to_string();
    let walked = damage(&tables.connection, &name);
    let mut found = walked.unwrap_or_else(|error| vec![format!("`{name}`: {error}")]);
    if !found.is_empty() {
        return Ok(found);
    }
    if let Err(error) = tables.restore_up_to(u64::MAX) {
        found.push(error.message);
    }
    found.extend(damaged_records(&tables.connection, &name));
    let extent = extent(&tables.connection).unwrap_or_default();
    for appender in 0..extent.1 {
        let mut after = 0;
        loop {
            match tables.output(appender, after, 1 << 20, extent) {
                Ok(blocks) => match blocks.last() {
                    Some(last) => after = last.seq,
                    None => break,
                },
                Err(error) => {
                    found.push(error.message);
                    break;
                }
            }
        }
    }
    found.dedup();
    Ok(found)
}

/// The last block of output and the number of appenders, as the table has them.
fn extent(connection: &Connection) -> rusqlite::Result<(u64, u32)> {
    let sql = "SELECT coalesce(max(seq), 0), coalesce(max(appender) + 1, 0) FROM output";
    connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))
}

/// Opens every sealed record that a run opens only when it comes to it.
fn damaged_records(connection: &Connection, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in ["jobs", "failed", "blobs"] {
        let (id, record) = if table == "blobs" { ("0", "bytes") } else { ("id", "record") };
        let mut walk = || -> rusqlite::Result<()> {
            let mut statement =
                connection.prepare(&format!("SELECT {id}, {record} FROM {table}"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (id, record): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
                let what = format!("record {id} of table `{table}` in `{name}`");
                if let Err(error) = unseal_bytes(&record, &what) {
                    found.push(error.message);
                }
            }
            Ok(())
        };
        if let Err(error) = walk() {
            found.push(format!("`{name}`: {error}"));
        }
    }
    found
}

/// What SQLite itself finds wrong with a file.
pub(crate) fn damage(connection: &Connection, name: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let lines: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let bad = lines.into_iter().filter(|line| line != "ok");
    Ok(bad.map(|line| format!("`{name}`: {line}")).collect())
}
