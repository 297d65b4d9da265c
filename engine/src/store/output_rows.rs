//! How one block of output is stored as a row, and the newest blocks in memory.

use std::collections::VecDeque;

use rusqlite::Row;

use super::seal::{seal_beside, unseal_beside};
use crate::ledger::{Block, JobKey, OutputBlock, TableResult};

/// Bytes of the newest blocks that are kept.
const RECENT_BYTES: usize = 256 << 10;

/// The newest blocks, for appenders that keep up: to read them back costs as much as to store them.
#[derive(Debug, Default)]
pub(crate) struct NewestOutput {
    blocks: VecDeque<OutputBlock>,
    bytes: usize,
}

impl NewestOutput {
    pub(crate) fn push(&mut self, output: OutputBlock) {
        self.bytes += weight(&output);
        self.blocks.push_back(output);
        while self.bytes > RECENT_BYTES
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.bytes -= weight(&oldest);
        }
    }

    /// Blocks of an appender after a position, if all that follow it are here.
    pub(crate) fn after(
        &self,
        appender: u32,
        after: u64,
        bytes_max: usize,
    ) -> Option<Vec<OutputBlock>> {
        let passed = (after + 1).checked_sub(self.blocks.front()?.seq)?;
        let mut size = 0;
        let own =
            self.blocks.iter().skip(passed as usize).filter(|one| one.block.appender == appender);
        let own = own.take_while(|output| {
            let fits = size < bytes_max.max(1);
            size += output.block.bytes.len() + 1;
            fits
        });
        Some(own.cloned().collect())
    }
}

/// About the bytes of memory that a block takes.
fn weight(output: &OutputBlock) -> usize {
    size_of::<OutputBlock>() + output.group.len() + output.name.len() + output.block.bytes.len()
}

/// The bytes of a block behind a mark that covers its whole row.
pub(crate) fn seal_output(output: &OutputBlock) -> Vec<u8> {
    beside(output, |beside| seal_beside(beside, &output.block.bytes))
}

fn beside<R>(output: &OutputBlock, with: impl FnOnce(&[&[u8]]) -> R) -> R {
    let block = &output.block;
    let numbers = [output.seq, block.appender.into(), block.ordinal.into(), block.rows.into()];
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    with(&[
        &numbers,
        output.group.as_bytes(),
        output.name.as_bytes(),
        &output.key.0,
        block.data_def.as_bytes(),
    ])
}

/// A row of `seq, appender, grp, name, key, ordinal, data_def, count, bytes`; the bytes are sealed.
pub(crate) fn read_row(row: &Row<'_>) -> rusqlite::Result<OutputBlock> {
    let block = Block {
        appender: row.get(1)?,
        data_def: row.get(6)?,
        ordinal: row.get(5)?,
        rows: row.get(7)?,
        bytes: row.get(8)?,
    };
    Ok(OutputBlock {
        seq: row.get::<_, i64>(0)? as u64,
        group: row.get(2)?,
        name: row.get(3)?,
        key: JobKey(row.get(4)?),
        block,
    })
}

/// All rows, as [`read_row`] wants them.
pub(crate) const ALL_OUTPUT: &str =
    "SELECT seq, appender, grp, name, key, ordinal, data_def, count, bytes FROM output";

/// The block with its bytes unsealed, if its row in the file `name` is what was written.
pub(crate) fn unseal_output(mut output: OutputBlock, name: &str) -> TableResult<OutputBlock> {
    let what = || format!("output block {} of `{name}`", output.seq);
    let bytes = beside(&output, |beside| {
        unseal_beside(&output.block.bytes, beside, what).map(<[u8]>::to_vec)
    })?;
    output.block.bytes = bytes;
    Ok(output)
}
