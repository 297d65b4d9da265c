//! A run: sorted keys in sealed blocks that never change.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::bloom::BloomFilter;
use super::{KEY, keys_in};
use crate::store::TableFault;
use crate::store::seal::{CHECKSUM_BYTES, seal_numbered, unseal_numbered};

/// Keys per block. A sealed block just fits on a page of the database.
pub(super) const BLOCK: usize = 250;

/// The facts about a run that are stored beside its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyRunRecord {
    /// Its number.
    pub id: u32,
    /// Number of merges that its keys have gone through.
    pub tier: u32,
    /// Number of keys.
    pub keys: u64,
    /// Number of blocks.
    pub blocks: u32,
}

/// A run, with the part that is kept in memory.
#[derive(Debug)]
pub(super) struct KeyRun {
    pub(super) record: KeyRunRecord,
    /// First key of each block.
    fences: Vec<u128>,
    pub(super) filter: BloomFilter,
}

impl KeyRun {
    /// Reads a run and verifies that every block exists, has its checksum and is sorted.
    pub(super) fn load(
        connection: &Connection,
        record: KeyRunRecord,
        filter_bits: u64,
    ) -> Result<Self, TableFault> {
        let mut run = Self { record, fences: Vec::new(), filter: BloomFilter::new(filter_bits) };
        let (mut count, mut last) = (0_u64, None);
        let mut statement = connection.prepare_cached(
            "SELECT id, keys FROM seen_runs WHERE id >= ?1 AND id < ?2 ORDER BY id",
        )?;
        let mut rows = statement.query(params![row_id(record.id, 0), row_id(record.id + 1, 0)])?;
        while let Some(row) = rows.next()? {
            let (id, number) = (row.get::<_, i64>(0)?, run.fences.len() as u32);
            let sealed = row.get_ref(1)?.as_blob().map_err(|_| damaged(record.id, number))?;
            if id != row_id(record.id, number) {
                return Err(damaged(record.id, number));
            }
            for (place, key) in open(sealed, record.id, number)?.enumerate() {
                if last.is_some_and(|last| last >= key) {
                    return Err(damaged(record.id, number));
                }
                if place == 0 {
                    run.fences.push(key);
                }
                run.filter.add(key);
                last = Some(key);
                count += 1;
            }
        }
        if (count, run.fences.len()) != (record.keys, record.blocks as usize) {
            return Err(TableFault::Damaged(format!(
                "run {} of `seen` has {count} keys instead of {}",
                record.id, record.keys
            )));
        }
        Ok(run)
    }

    pub(super) fn holds(&self, connection: &Connection, key: u128) -> Result<bool, TableFault> {
        if !self.filter.may_hold(key) {
            return Ok(false);
        }
        let Some(number) = self.fences.partition_point(|first| *first <= key).checked_sub(1) else {
            return Ok(false);
        };
        let fence = self.fences[number].to_be_bytes();
        block(connection, self.record.id, number as u32, |sealed| {
            // The checksum is verified when the run is loaded or merged. Millions of lookups compare the
            // first key only.
            match sealed_keys(sealed) {
                Some(keys) if keys.first() == Some(&fence) => {
                    Ok(keys.binary_search(&key.to_be_bytes()).is_ok())
                }
                _ => Err(damaged(self.record.id, number as u32)),
            }
        })
    }
}

/// Writes a run from sorted keys.
#[derive(Debug)]
pub(super) struct KeyRunWriter {
    run: KeyRun,
    buffer: Vec<u8>,
}

impl KeyRunWriter {
    pub(super) fn new(id: u32, tier: u32, filter_bits: u64) -> Self {
        let record = KeyRunRecord { id, tier, keys: 0, blocks: 0 };
        let run = KeyRun { record, fences: Vec::new(), filter: BloomFilter::new(filter_bits) };
        Self { run, buffer: Vec::with_capacity(BLOCK * KEY) }
    }

    pub(super) fn id(&self) -> u32 {
        self.run.record.id
    }

    pub(super) fn push(&mut self, connection: &Connection, key: u128) -> Result<(), TableFault> {
        if self.buffer.is_empty() {
            self.run.fences.push(key);
        }
        self.run.filter.add(key);
        self.run.record.keys += 1;
        self.buffer.extend_from_slice(&key.to_be_bytes());
        if self.buffer.len() == BLOCK * KEY { self.flush(connection) } else { Ok(()) }
    }

    pub(super) fn finish(mut self, connection: &Connection) -> Result<KeyRun, TableFault> {
        if !self.buffer.is_empty() {
            self.flush(connection)?;
        }
        Ok(self.run)
    }

    fn flush(&mut self, connection: &Connection) -> Result<(), TableFault> {
        let id = row_id(self.run.record.id, self.run.record.blocks);
        connection
            .prepare_cached("INSERT INTO seen_runs (id, keys) VALUES (?1, ?2)")?
            .execute(params![id, seal_numbered(id, &self.buffer)])?;
        self.run.record.blocks += 1;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads the keys of a run, block by block.
#[derive(Debug)]
pub(super) struct KeyCursor {
    record: KeyRunRecord,
    next: u32,
    keys: Vec<u128>,
    at: usize,
}

impl KeyCursor {
    pub(super) fn new(record: KeyRunRecord) -> Self {
        Self { record, next: 0, keys: Vec::new(), at: 0 }
    }

    /// The current key; `None` at the end.
    pub(super) fn key(&mut self, connection: &Connection) -> Result<Option<u128>, TableFault> {
        if self.at == self.keys.len() && self.next < self.record.blocks {
            let (id, number) = (self.record.id, self.next);
            let keys = &mut self.keys;
            block(connection, id, number, |sealed| {
                keys.clear();
                keys.extend(open(sealed, id, number)?);
                Ok(())
            })?;
            (self.next, self.at) = (number + 1, 0);
        }
        Ok(self.keys.get(self.at).copied())
    }

    pub(super) fn step(&mut self) {
        self.at += 1;
    }
}

/// Deletes up to `count` blocks of a run. Returns how many there were.
pub(super) fn drop_blocks(
    connection: &Connection,
    run: u32,
    count: usize,
) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM seen_runs WHERE id IN
               (SELECT id FROM seen_runs WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)",
        )?
        .execute(params![row_id(run, 0), row_id(run + 1, 0), count as i64])
}

fn row_id(run: u32, block: u32) -> i64 {
    (i64::from(run) << 32) | i64::from(block)
}

fn block<R>(
    connection: &Connection,
    run: u32,
    number: u32,
    read: impl FnOnce(&[u8]) -> Result<R, TableFault>,
) -> Result<R, TableFault> {
    let mut statement = connection.prepare_cached("SELECT keys FROM seen_runs WHERE id = ?1")?;
    let found = statement
        .query_row(params![row_id(run, number)], |row| Ok(row.get_ref(0)?.as_blob().map(read)))
        .optional()?;
    match found {
        Some(Ok(read)) => read,
        _ => Err(damaged(run, number)),
    }
}

fn open(sealed: &[u8], run: u32, number: u32) -> Result<impl Iterator<Item = u128>, TableFault> {
    let bytes = unseal_numbered(row_id(run, number), sealed).ok_or_else(|| damaged(run, number));
    bytes.map(keys_in)
}

/// The keys behind a checksum that is not verified here.
fn sealed_keys(sealed: &[u8]) -> Option<&[[u8; KEY]]> {
    sealed.get(CHECKSUM_BYTES..).map(|bytes| bytes.as_chunks::<KEY>().0)
}

fn damaged(run: u32, number: u32) -> TableFault {
    TableFault::Damaged(format!("block {number} of run {run} of `seen` is damaged"))
}
