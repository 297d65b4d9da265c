//! Compares two sets of rows, page by page. A row that only the last run has is removed, one that only
//! the replay has is added. A removed and an added row of one page count as one changed row.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, params};

use crate::bootstrap::Node;
use crate::error::RunError;
use crate::ledger::{OutputBlock, Run};
use crate::run::report::RowChanges;
use crate::store::{Answer, Question, StoreError};

/// Bytes of output in one read.
const READ_BYTES: usize = 4 << 20;

/// The changes of each data definition that has rows.
pub(super) fn compare(
    scratch: &Path,
    last: &Run,
    before: &Node,
    after: &Node,
) -> Result<BTreeMap<String, RowChanges>, RunError> {
    let table = Table::make(&scratch.join("compare.db"))?;
    each_block(before, last, |block| table.count(block, Side::Before))?;
    let Answer::Run(Some(now)) = after.store.ask_blocking(Question::Run)? else {
        return Err(RunError::Internal("the ledger of the replay has no run".to_owned()));
    };
    each_block(after, &now, |block| table.count(block, Side::After))?;
    Ok(table.changes()?)
}

fn each_block(
    node: &Node,
    run: &Run,
    take: impl Fn(&OutputBlock) -> rusqlite::Result<()>,
) -> Result<(), RunError> {
    for appender in 0..run.plan.appenders {
        let mut after = 0;
        loop {
            let question = Question::Output { appender, after, bytes_max: READ_BYTES };
            let Answer::Output(blocks) = node.store.ask_blocking(question)? else { break };
            let Some(last) = blocks.last() else { break };
            after = last.seq;
            for block in &blocks {
                take(block)?;
            }
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Before,
    After,
}

/// How often each row of each page occurs, before and after. It is on disk, because rows may be many.
struct Table {
    connection: Connection,
}

impl Table {
    fn make(file: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;
             CREATE TABLE rows (data_def TEXT, page BLOB, row BLOB, before INTEGER, after INTEGER,
                                PRIMARY KEY (data_def, page, row)) WITHOUT ROWID;",
        )?;
        Ok(Self { connection })
    }

    fn count(&self, output: &OutputBlock, side: Side) -> rusqlite::Result<()> {
        let block = &output.block;
        if block.rows == 0 {
            // The block repeats rows for another file.
            return Ok(());
        }
        let (before, after) = match side {
            Side::Before => (1, 0),
            Side::After => (0, 1),
        };
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO rows VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE
             SET before = before + excluded.before, after = after + excluded.after",
        )?;
        for row in rows(&block.bytes) {
            let hash = blake3::hash(row);
            let hash = &hash.as_bytes()[..16];
            statement.execute(params![block.data_def, output.key.0, hash, before, after])?;
        }
        Ok(())
    }

    fn changes(&self) -> rusqlite::Result<BTreeMap<String, RowChanges>> {
        let mut statement = self.connection.prepare(
            "SELECT data_def, sum(added - min(added, removed)), sum(removed - min(added, removed)),
                    sum(min(added, removed)), sum(same)
             FROM (SELECT data_def, page, sum(max(after - before, 0)) AS added,
                          sum(max(before - after, 0)) AS removed, sum(min(before, after)) AS same
                   FROM rows GROUP BY data_def, page)
             GROUP BY data_def",
        )?;
        let number = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|count| count as u64);
        let changes = statement.query_map([], |row| {
            let change = RowChanges {
                added: number(row, 1)?,
                removed: number(row, 2)?,
                changed: number(row, 3)?,
                same: number(row, 4)?,
            };
            Ok((row.get(0)?, change))
        })?;
        changes.collect()
    }
}

/// The rows of a block: line ends inside quotes do not end a row.
fn rows(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let rows = bytes.split_inclusive(move |byte| {
        quoted ^= *byte == b'"';
        *byte == b'\n' && !quoted
    });
    rows.filter(|row| !row.is_empty())
}

impl From<rusqlite::Error> for RunError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full(error.to_string()),
            _ => StoreError::Failed(format!("rows could not be compared: {error}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Block, JobKey};

    fn output(page: u8, bytes: &str) -> OutputBlock {
        let block = Block {
            appender: 0,
            data_def: "price".to_owned(),
            ordinal: 0,
            rows: 1,
            bytes: bytes.as_bytes().to_vec(),
        };
        let (group, name) = (String::new(), String::new());
        OutputBlock { seq: 1, group, name, key: JobKey([page; 16]), block }
    }

    #[test]
    fn removed_and_added_rows_of_a_page_count_as_changed_in_pairs() {
        let dir = tempfile::tempdir().unwrap();
        let table = Table::make(&dir.path().join("compare.db")).unwrap();
        for (page, before, after) in [
            (1, "a\nb\nc\n", "c\na\nb\n"),
            (2, "a\nb\n", "a\nx\ny\n"),
            (3, "a\na\n", "a\n"),
            (4, "\"one\ntwo\"\n", "\"one\nthree\"\n"),
        ] {
            table.count(&output(page, before), Side::Before).unwrap();
            table.count(&output(page, after), Side::After).unwrap();
        }
        let change = table.changes().unwrap()["price"];
        assert_eq!(change, RowChanges { added: 1, removed: 1, changed: 2, same: 5 });
    }
}
