//! Reads output back from the tables. Every checksum is verified, and a missing block is an error.

use rusqlite::params;

use super::output_rows::{read_row, unseal_output};
use super::sqlite::SqliteTables;
use crate::ledger::{OutputBlock, TableResult, Tables};

/// Number of the last block, and the number of appenders.
type OutputBounds = (u64, u32);

impl SqliteTables {
    /// Output of one appender after a position.
    pub(crate) fn output(
        &mut self,
        appender: u32,
        after: u64,
        bytes_max: usize,
        (last, appenders): OutputBounds,
    ) -> TableResult<Vec<OutputBlock>> {
        if let Some(blocks) = self.recent.after(appender, after, bytes_max) {
            return Ok(blocks);
        }
        if after > last {
            // The position belongs to an earlier run.
            return Ok(Vec::new());
        }
        let lost = |seq: u64| self.damaged(&format!("output block {seq} is missing"));
        let failed = |error| self.error(&error);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT seq, appender, grp, name, key, ordinal, data_def, count, bytes
                 FROM output WHERE seq > ?1 ORDER BY seq",
            )
            .map_err(failed)?;
        let mut rows = statement.query(params![after as i64]).map_err(failed)?;
        let (mut blocks, mut size, mut seen) = (Vec::new(), 0, after);
        while size < bytes_max.max(1) {
            let Some(row) = rows.next().map_err(failed)? else {
                return if seen == last { Ok(blocks) } else { Err(lost(seen + 1)) };
            };
            let seq = row.get::<_, i64>(0).map_err(failed)? as u64;
            let owner: u32 = row.get(1).map_err(failed)?;
            seen += 1;
            if seq != seen || owner >= appenders {
                return Err(lost(seen));
            }
            if owner == appender {
                let output = unseal_output(read_row(row).map_err(failed)?, &self.name)?;
                size += output.block.bytes.len() + 1;
                blocks.push(output);
            }
        }
        Ok(blocks)
    }

    /// Output of one appender up to the block `last` in canonical order, without the first `after` blocks.
    pub(crate) fn canonical_output(
        &mut self,
        appender: u32,
        (after, last): (u64, u64),
        bytes_max: usize,
        extent: OutputBounds,
    ) -> TableResult<Vec<OutputBlock>> {
        let last = last.min(extent.0);
        if self.ranked != Some(last) {
            // Built on demand, because most runs never ask for this order.
            self.begin()?;
            self.rank(last, extent)?;
            self.ranked = Some(last);
        }
        let failed = |error| self.error(&error);
        // The outer join returns an empty row for a missing block, which is an error.
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT o.seq, o.appender, o.grp, o.name, o.key, o.ordinal, o.data_def, o.count,
                        o.bytes
                 FROM temp.ranking r LEFT JOIN output o ON o.seq = r.seq
                 WHERE r.appender = ?1 AND r.rank > ?2 ORDER BY r.rank",
            )
            .map_err(failed)?;
        let mut rows = statement.query(params![appender, after as i64]).map_err(failed)?;
        let (mut blocks, mut size) = (Vec::new(), 0);
        while size < bytes_max.max(1)
            && let Some(row) = rows.next().map_err(failed)?
        {
            let output = unseal_output(read_row(row).map_err(failed)?, &self.name)?;
            size += output.block.bytes.len() + 1;
            blocks.push(output);
        }
        Ok(blocks)
    }

    fn rank(&self, up_to: u64, (last, appenders): OutputBounds) -> TableResult<()> {
        let found = self.one(
            "SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM output
             WHERE appender >= 0 AND appender < ?1",
            params![appenders],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        if found != Some((last as i64, 1_i64, last as i64)) {
            return Err(self.damaged(&format!("some of the {last} blocks of output are missing")));
        }
        self.connection
            .execute_batch(&format!(
                "DROP TABLE IF EXISTS temp.ranking;
                 CREATE TEMP TABLE ranking AS
                   SELECT appender, seq,
                          row_number() OVER (PARTITION BY appender
                                             ORDER BY grp, name, key, ordinal, seq) AS rank
                   FROM output WHERE seq <= {up_to};
                 CREATE INDEX temp.by_rank ON ranking (appender, rank);",
            ))
            .map_err(|error| self.error(&error))
    }
}
