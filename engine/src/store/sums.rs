//! Checksums of tables whose rows have none: a row that is lost, added or changed on disk changes the
//! sum. The sums are stored with the core and verified when the file is opened.

use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use crate::ledger::{JobId, LaneId};

/// The checksum of a set of rows, independent of their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowSum(u64);

impl RowSum {
    pub(crate) fn add(&mut self, row: &[u8]) {
        self.0 = self.0.wrapping_add(hash(row));
    }

    pub(crate) fn remove(&mut self, row: &[u8]) {
        self.0 = self.0.wrapping_sub(hash(row));
    }
}

/// FNV-1a with a final mix. It detects accidental damage only.
fn hash(row: &[u8]) -> u64 {
    let hash = row.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 29)
}

/// The checksums of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableSums {
    pub(crate) queue: RowSum,
}

impl TableSums {
    /// Computes the checksums of the tables.
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

/// The bytes of a row of the queue.
pub(crate) fn place(lane: LaneId, ready_at: u64, id: JobId) -> [u8; 20] {
    let mut place = [0; 20];
    place[..4].copy_from_slice(&lane.0.to_le_bytes());
    place[4..12].copy_from_slice(&ready_at.to_le_bytes());
    place[12..].copy_from_slice(&id.0.to_le_bytes());
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_depends_on_its_rows_but_not_on_their_order() {
        let (mut one, mut other) = (RowSum::default(), RowSum::default());
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
