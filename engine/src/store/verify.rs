//! Checks, when the file is opened, that the tables hold what the core record says.

use super::sqlite::SqliteTables;
use super::sums::TableSums;
use crate::ledger::{Core, Lane, LaneId, TableResult, Tables};

/// Largest table that is verified when the file is opened. Reading a larger one would delay the start.
/// Its damage is found when a job is taken, or by `spoonbill fsck`.
const VERIFIED_MAX: u64 = 1_000_000;

impl SqliteTables {
    /// Checks the tables against the core; `known` is the number of stored keys.
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
            && TableSums::of(&self.connection).map_err(|error| self.error(&error))? != self.sums
        {
            return Err(self.damaged("a row of `queue` has changed"));
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
        Err(self.damaged(&format!(
            "table `{table}` has {found} entries, but the core record says {wanted}"
        )))
    }
}
