//! Sums over the tables whose rows carry no mark of their own: a row lost, added or changed on disk
//! changes the sum. Kept with the core, looked at when the file is opened.

use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use super::sqlite::SqliteTables;
use crate::ledger::{Core, JobId, Lane, LaneId, TableResult};

/// Rows up to which a table is verified when the file is opened. Beyond, it would delay the start:
/// what is wrong is found when a job is taken, or by `spoonbill fsck`.
const VERIFIED_MAX: u64 = 1_000_000;

/// The sum of a set of rows, in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum(u64);

impl Sum {
    pub(crate) fn add(&mut self, row: &[u8]) {
        self.0 = self.0.wrapping_add(hash(row));
    }

    pub(crate) fn remove(&mut self, row: &[u8]) {
        self.0 = self.0.wrapping_sub(hash(row));
    }
}

/// FNV-1a with a last mix: against accidents, not against malice.
fn hash(row: &[u8]) -> u64 {
    let hash = row.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 29)
}

/// The sums of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums {
    pub(crate) queue: Sum,
}

impl Sums {
    /// The sums of the tables as they are.
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let mut sums = Self::default();
        each(connection, "SELECT lane, ready_at, id FROM queue", |row| {
            let (ready_at, id) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
            sums.queue.add(&place(LaneId(row.get(0)?), ready_at, JobId(id)));
            Ok(())
        })?;
        Ok(sums)
    }
}

fn each(
    connection: &Connection,
    sql: &str,
    mut look: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        look(row)?;
    }
    Ok(())
}

/// A row of the queue.
pub(crate) fn place(lane: LaneId, ready_at: u64, id: JobId) -> [u8; 20] {
    let mut place = [0; 20];
    place[..4].copy_from_slice(&lane.0.to_le_bytes());
    place[4..12].copy_from_slice(&ready_at.to_le_bytes());
    place[12..].copy_from_slice(&id.0.to_le_bytes());
    place
}

impl SqliteTables {
    /// Sees that the tables hold what the core says; of keys, `known` are there.
    pub(crate) fn verify(
        &mut self,
        core: &Core,
        lanes: &[(LaneId, Lane)],
        known: u64,
    ) -> TableResult<()> {
        let run = core.run.as_ref();
        let pending = run.map_or(0, |run| run.pending);
        let (failed, output) = run.map_or((0, 0), |run| (run.failed, run.output_seq));
        let taken = core.taken_count();
        self.expect("lanes", lanes.iter().map(|(_, lane)| lane.pending).sum(), pending)?;
        self.expect("lanes", lanes.iter().map(|(_, lane)| u64::from(lane.held)).sum(), taken)?;
        self.expect("seen", known, run.map_or(0, |run| run.known))?;
        let expected =
            [("failed", failed), ("output", output), ("jobs", pending + taken), ("queue", pending)];
        for (table, wanted) in expected.into_iter().filter(|(_, rows)| *rows <= VERIFIED_MAX) {
            self.expect(table, self.count(table)?, wanted)?;
        }
        if pending <= VERIFIED_MAX
            && Sums::of(&self.connection).map_err(|error| self.error(&error))? != self.sums
        {
            return Err(self.odd("a row of `queue` has changed"));
        }
        Ok(())
    }

    fn count(&self, table: &str) -> TableResult<u64> {
        let count = self.one(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        Ok(count.map_or(0, |count: i64| count as u64))
    }

    fn expect(&self, table: &str, found: u64, wanted: u64) -> TableResult<()> {
        if found == wanted {
            return Ok(());
        }
        Err(self.odd(&format!("table `{table}` holds {found}, not {wanted}, entries")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_knows_its_rows_in_any_order() {
        let (mut one, mut other) = (Sum::default(), Sum::default());
        (0_u8..9).for_each(|row| one.add(&[row; 16]));
        (0_u8..10).rev().for_each(|row| other.add(&[row; 16]));
        assert_ne!(one, other);
        other.remove(&[9; 16]);
        assert_eq!(one, other);
        other.remove(&[3; 16]);
        other.add(&[2; 16]);
        assert_ne!(one, other);
    }
}
