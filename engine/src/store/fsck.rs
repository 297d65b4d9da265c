//! Checks a data directory record by record and lists all damage.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::change_log::ChangeLog;
use super::lock::DirLock;
use super::mark::{CommitMark, LEDGER, TRACES};
use super::output_rows::{ALL_OUTPUT, read_row, unseal_output};
use super::restore::RestoredLedger;
use super::seal::{unseal, unseal_bytes};
use super::seen::SeenKeys;
use super::sqlite::{CommitRecord, FORMAT, SqliteTables, store_error};
use super::sums::TableSums;
use super::{StoreError, TableFault};
use crate::ledger::{Core, FailedJob, Job, Lane, Ledger, Run, TableResult, violations};

/// Most jobs and output blocks of a ledger whose invariants are checked in memory.
const IN_MEMORY_MAX: u64 = 1_000_000;
/// Memory for the set of known keys during the check, in bytes.
const SEEN_MEMORY: u64 = 1 << 20;

/// Functions that check the log of a cluster node. The tables may lack the last entries of that log.
pub(crate) struct LogCheck {
    /// Whether the directory has a log.
    pub exists: fn(&Path) -> bool,
    /// Lists all damage of the log.
    pub examine: fn(&Path) -> Result<Vec<String>, StoreError>,
    /// The tables with the log applied. The number limits the memory for known keys, in bytes.
    pub replay: fn(&Path, u64) -> Result<Ledger<SqliteTables>, StoreError>,
}

/// All damage of the ledger in `dir`; empty if there is none.
pub(crate) fn examine(dir: &Path, log: &LogCheck) -> Result<Vec<String>, StoreError> {
    let _lock = DirLock::take(dir)?;
    let mut found = (log.examine)(dir)?;
    let has_bad_log = !found.is_empty();
    found.extend(examine_ledger(dir, has_bad_log, log)?);
    Ok(found)
}

/// All damage of the tables, and of the state after the log or journal was applied. The second part is
/// skipped if the log or the tables are damaged.
fn examine_ledger(
    dir: &Path,
    has_bad_log: bool,
    log: &LogCheck,
) -> Result<Vec<String>, StoreError> {
    if let Err(StoreError::Damaged(words)) = CommitMark::of(dir).is_ledger_there() {
        return Ok(vec![words]);
    }
    let tables = examine_tables(&dir.join(LEDGER))?;
    let (has_tables, found) = (tables.is_some(), tables.unwrap_or_default());
    let has_log = (log.exists)(dir);
    let is_known = has_bad_log || !found.is_empty();
    if is_known || !has_log && !TRACES.iter().any(|name| dir.join(name).exists()) {
        return Ok(found);
    }
    let ledger = if has_log {
        (log.replay)(dir, SEEN_MEMORY)
    } else {
        RestoredLedger::look(dir, has_tables, SEEN_MEMORY).map(|restored| restored.ledger)
    };
    match ledger.and_then(|mut ledger| Ok(broken(&mut ledger)?)) {
        Ok(broken) => Ok(broken),
        Err(StoreError::Damaged(words)) => Ok(vec![words]),
        Err(error) => Err(error),
    }
}

/// The invariants that a ledger with its journal applied violates. A ledger too large for memory is
/// checked by its records and counts alone.
fn broken(ledger: &mut Ledger<SqliteTables>) -> TableResult<Vec<String>> {
    let sizes = ledger.core().run.as_ref().map_or(0, |run| run.known + run.output_seq);
    if sizes > IN_MEMORY_MAX {
        return Ok(Vec::new());
    }
    ledger.save_lanes()?;
    let (core, tables) = ledger.parts();
    let (core, name, memory) = (core.clone(), tables.name.clone(), tables.in_memory()?);
    let lanes: Vec<_> = ledger.lanes().map(|(id, lane)| (id, lane.clone())).collect();
    let broken = violations(&Ledger::new(core, lanes, memory));
    Ok(broken.into_iter().map(|words| format!("`{name}`: violated: {words}")).collect())
}

/// All damage of the tables in the database; `None` if there are no tables.
fn examine_tables(path: &Path) -> Result<Option<Vec<String>>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let name = path.display().to_string();
    let look = || -> rusqlite::Result<Result<Option<Vec<String>>, StoreError>> {
        let connection = Connection::open(path)?;
        let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if let Some(error) = StoreError::of_format(format, FORMAT, &name) {
            return Ok(Err(error));
        }
        if format == 0 {
            return Ok(Ok(None));
        }
        let mut found = damage(&connection, &name)?;
        if found.is_empty() {
            let mut examiner = Examiner { connection: &connection, name: &name, found: Vec::new() };
            // Changes in the log are written to the tables for the check, then rolled back.
            connection.execute_batch("BEGIN")?;
            examiner.records()?;
            found = examiner.found;
            connection.execute_batch("ROLLBACK")?;
        }
        Ok(Ok(Some(found)))
    };
    match look() {
        Ok(found) => found,
        Err(error) => match store_error(&name, &error) {
            // A database that cannot be read at all is damaged, too.
            StoreError::Damaged(words) => Ok(Some(vec![words])),
            other => Err(other),
        },
    }
}

/// The damage that SQLite finds in a file.
pub(crate) fn damage(connection: &Connection, name: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let lines: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let bad = lines.into_iter().filter(|line| line != "ok");
    Ok(bad.map(|line| format!("`{name}`: {line}")).collect())
}

struct Examiner<'a> {
    connection: &'a Connection,
    name: &'a str,
    found: Vec<String>,
}

impl Examiner<'_> {
    /// Verifies every sealed record, then the counts of the run.
    fn records(&mut self) -> rusqlite::Result<()> {
        let name = self.name;
        let what = |table: &str, id: i64| format!("record {id} of table `{table}` in `{name}`");
        let mut core = None;
        self.each("SELECT id, record FROM core", |id, record| {
            core = Some(unseal::<(Core, CommitRecord)>(record, &what("core", id))?);
            Ok(())
        })?;
        if let Some((_, stored)) = &mut core {
            let log = ChangeLog::load(self.connection, stored.log_rows, &mut stored.sums);
            self.note(log.map(drop))?;
        }
        self.each("SELECT id, record FROM jobs", |id, record| {
            unseal::<Job>(record, &what("jobs", id)).map(drop)
        })?;
        self.each("SELECT id, record FROM failed", |id, record| {
            unseal::<FailedJob>(record, &what("failed", id)).map(drop)
        })?;
        self.each("SELECT id, record FROM lanes", |id, record| {
            unseal::<Lane>(record, &what("lanes", id)).map(drop)
        })?;
        self.output()?;
        self.each("SELECT 0, bytes FROM blobs", |id, record| {
            unseal_bytes(record, &what("blobs", id)).map(drop)
        })?;
        if let Some((core, stored)) = core {
            self.tables(&core, stored)?;
        }
        Ok(())
    }

    /// Verifies counts, checksums and known keys.
    fn tables(&mut self, core: &Core, stored: CommitRecord) -> rusqlite::Result<()> {
        if let Some(run) = &core.run {
            self.counts(core, run, stored.index.keys())?;
        }
        if TableSums::of(self.connection)? != stored.sums {
            self.found.push(format!("`{}`: a row of `queue` has changed", self.name));
        }
        // No memory for filters: this reads every key and looks up none.
        let seen = SeenKeys::load(self.connection, stored.index, 0);
        self.note(seen.map(drop))
    }

    fn note(&mut self, looked: Result<(), TableFault>) -> rusqlite::Result<()> {
        match looked {
            Ok(()) => Ok(()),
            Err(TableFault::Sql(error)) => Err(error),
            Err(TableFault::Damaged(words)) => {
                self.found.push(format!("`{}`: {words}", self.name));
                Ok(())
            }
        }
    }

    fn output(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(ALL_OUTPUT)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Err(error) = unseal_output(read_row(row)?, self.name) {
                self.found.push(error.message);
            }
        }
        Ok(())
    }

    fn each(
        &mut self,
        sql: &str,
        mut open: impl FnMut(i64, &[u8]) -> Result<(), crate::ledger::TableError>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, record) = id_and_record(row)?;
            if let Err(error) = open(id, &record) {
                self.found.push(error.message);
            }
        }
        Ok(())
    }

    fn counts(&mut self, core: &Core, run: &Run, known: u64) -> rusqlite::Result<()> {
        let count = |sql: &str| -> rusqlite::Result<u64> {
            self.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|count| count as u64)
        };
        let taken = core.taken.len() as u64;
        let expected = [
            ("jobs queued", run.pending, count("SELECT count(*) FROM queue")?),
            ("jobs not ended", run.pending + taken, count("SELECT count(*) FROM jobs")?),
            ("failed jobs", run.failed, count("SELECT count(*) FROM failed")?),
            ("known keys", run.known, known),
            ("output blocks", run.output_seq, count("SELECT count(*) FROM output")?),
            (
                "last output block",
                run.output_seq,
                count("SELECT coalesce(max(seq), 0) FROM output")?,
            ),
            ("jobs ever", run.known, run.pending + taken + run.done + run.failed),
        ];
        for (what, wanted, there) in expected {
            if wanted != there {
                let name = self.name;
                self.found
                    .push(format!("`{name}`: {what}: {wanted} by the ledger, {there} by count"));
            }
        }
        let blobs: u64 = count("SELECT count(*) FROM blobs")?;
        if blobs < 2 {
            self.found.push(format!("`{}`: the definitions of the run are missing", self.name));
        }
        Ok(())
    }
}

fn id_and_record(row: &Row<'_>) -> rusqlite::Result<(i64, Vec<u8>)> {
    Ok((row.get(0)?, row.get(1)?))
}

#[cfg(test)]
mod tests {
    use super::super::sqlite::TableOwner;
    use super::*;
    use crate::ledger::{JobId, LaneId, Tables};

    #[test]
    fn violated_invariants_are_listed() {
        let mut tables = SqliteTables::open(None, SEEN_MEMORY, TableOwner::Solo).unwrap();
        let (core, lanes) = tables.restore().unwrap();
        let mut ledger = Ledger::new(core, lanes, tables);
        assert_eq!(broken(&mut ledger).unwrap(), Vec::<String>::new());
        ledger.tables_mut().enqueue(LaneId(1), 0, JobId(1)).unwrap();
        let found = broken(&mut ledger).unwrap().join("\n");
        assert!(found.contains("a job that has not ended is queued or in flight"), "{found}");
        assert!(found.contains("every lane in use exists"), "{found}");
    }
}
