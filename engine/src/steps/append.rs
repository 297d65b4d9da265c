//! From data to encoded rows: one block for each appender of the step.

use spoonbill_plugins::data::Data;
use spoonbill_plugins::encoder::PageTags;

use crate::ledger::Block;
use crate::plan::prepare::{ReadyTask, Sink};

/// Encodes the data for every sink; a sink without rows has no block.
pub(super) fn encode<'a>(
    data: &'a Data,
    sinks: &'a [Sink],
    task: &'a ReadyTask,
    page: u32,
) -> impl Iterator<Item = Block> + 'a {
    sinks.iter().enumerate().filter_map(move |(place, sink)| {
        let mut bytes = Vec::new();
        let rows = sink.encoder.encode(data, PageTags { page }, &mut bytes);
        (rows > 0).then(|| Block {
            appender: sink.appender,
            data_def: task.data_def.clone(),
            ordinal: task.number * 256 + place as u32,
            // The report counts a row once, even if several outputs get it.
            rows: if place == 0 { rows as u32 } else { 0 },
            bytes,
        })
    })
}
