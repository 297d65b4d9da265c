//! How one block of output is stored as a row, and the newest blocks in memory.

use std::collections::VecDeque;

use rusqlite::Row;

use super::seal::{number_of, seal_numbered, unseal_numbered};
use crate::ledger::{Block, JobKey, OutputBlock, TableError, TableResult};

/// Most bytes of new blocks that stay in memory.
const RECENT_BYTES: usize = 256 << 10;

/// The newest blocks, for appenders that keep up: reading a block back costs as much as storing it.
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

    /// Blocks of an appender after a position, if all blocks after it are in memory.
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

/// The approximate memory of a block in bytes.
fn weight(output: &OutputBlock) -> usize {
    size_of::<OutputBlock>() + output.group.len() + output.name.len() + output.block.bytes.len()
}

/// The bytes of a block behind a checksum that covers the whole row.
pub(crate) fn seal_output(output: &OutputBlock) -> Vec<u8> {
    seal_numbered(row_number(output), &output.block.bytes)
}

fn row_number(output: &OutputBlock) -> i64 {
    let block = &output.block;
    let numbers = [output.seq, block.appender.into(), block.ordinal.into(), block.rows.into()];
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    number_of(&[
        &numbers,
        output.group.as_bytes(),
        output.name.as_bytes(),
        &output.key.0,
        block.data_def.as_bytes(),
    ])
}

/// Reads a row with the columns of [`ALL_OUTPUT`]. The bytes stay sealed.
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

/// Reads all rows of the output.
pub(crate) const ALL_OUTPUT: &str =
    "SELECT seq, appender, grp, name, key, ordinal, data_def, count, bytes FROM output";

/// Unseals the bytes of a block from the file `name`, if the checksum of its row matches.
pub(crate) fn unseal_output(mut output: OutputBlock, name: &str) -> TableResult<OutputBlock> {
    let bytes = unseal_numbered(row_number(&output), &output.block.bytes);
    output.block.bytes = bytes
        .ok_or_else(|| {
            TableError::new(format!("output block {} of `{name}` is damaged", output.seq))
        })?
        .to_vec();
    Ok(output)
}
