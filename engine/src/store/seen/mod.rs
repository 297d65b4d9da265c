//! The set of known keys: exact, and larger than memory. It is a log-structured merge tree.
//!
//! New keys are kept in memory, and each commit writes those that are new to the table `seen_recent`.
//! When memory is full they become a *run*: sorted blocks in the table `seen_runs` that never change.
//! Runs of the same tier are merged in small steps, some with each commit. All of this is in the
//! database of the ledger, so a crash takes the set back to the last commit together with it.

mod bloom;
mod run;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::TableFault;
use super::seal::{seal_numbered, unseal_numbered};
use run::{BLOCK, KeyCursor, KeyRun, KeyRunRecord, KeyRunWriter, drop_blocks};

/// Size of a key in bytes.
const KEY: usize = 16;
/// Number of runs of one tier that are merged into one of the next.
const RUNS_PER_MERGE: usize = 8;
/// Bits of filter per key while memory lasts: one lookup in eighty finds nothing.
const FILTER_BITS: u64 = 10;
/// Most keys recently found in a run. They spare lookups on disk for pages that every page links to.
const HITS_MAX: usize = 1 << 14;
/// Fewest blocks that a commit merges or deletes.
const BLOCKS_PER_COMMIT_MIN: usize = 64;

pub(super) const SCHEMA: &str = "
CREATE TABLE seen_recent (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE seen_runs (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);
";

/// The facts about the set that are stored with each commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenIndex {
    /// Number of rows in `seen_recent`.
    recent_rows: u64,
    /// Keys in them.
    recent_keys: u64,
    /// Runs, oldest first.
    runs: Vec<KeyRunRecord>,
    next_run: u32,
    /// Runs that are being written or deleted. Lookups skip them.
    inactive: Vec<u32>,
}

impl SeenIndex {
    /// Number of keys in the set.
    pub(super) fn keys(&self) -> u64 {
        self.recent_keys + self.runs.iter().map(|run| run.keys).sum::<u64>()
    }
}

/// The memory limits of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeenMemory {
    recent_keys: usize,
    filter_bits: u64,
}

impl SeenMemory {
    /// At most a quarter is for recent keys, and half for filters. A merge keeps two filters at a time.
    fn within(memory_bytes: u64) -> Self {
        let recent_keys = (memory_bytes / 160).max(1) as usize;
        Self { recent_keys, filter_bits: memory_bytes / 2 * 8 }
    }
}

/// The set of known keys.
#[derive(Debug)]
pub(super) struct SeenKeys {
    bounds: SeenMemory,
    index: SeenIndex,
    recent: HashSet<u128>,
    /// Recent keys that are in no row yet.
    unsaved: Vec<u8>,
    recent_hits: Vec<u128>,
    runs: Vec<KeyRun>,
    merge: Option<RunMerge>,
    /// Number of keys added since the last step of a merge.
    added: usize,
}

/// Runs being merged into one.
#[derive(Debug)]
struct RunMerge {
    from: Vec<KeyCursor>,
    ids: Vec<u32>,
    to: KeyRunWriter,
}

impl SeenKeys {
    /// An empty set.
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self {
            bounds: SeenMemory::within(memory_bytes),
            index: SeenIndex::default(),
            recent: HashSet::new(),
            unsaved: Vec::new(),
            recent_hits: Vec::new(),
            runs: Vec::new(),
            merge: None,
            added: 0,
        }
    }

    /// Loads the set and verifies all of its blocks.
    pub(super) fn load(
        connection: &Connection,
        index: SeenIndex,
        memory_bytes: u64,
    ) -> Result<Self, TableFault> {
        let mut seen = Self::new(memory_bytes);
        seen.load_recent(connection, &index)?;
        for record in &index.runs {
            let bits = seen.filter_bits(record.keys, index.keys());
            seen.runs.push(KeyRun::load(connection, *record, bits)?);
        }
        seen.index = index;
        Ok(seen)
    }

    fn load_recent(
        &mut self,
        connection: &Connection,
        index: &SeenIndex,
    ) -> Result<(), TableFault> {
        let mut statement =
            connection.prepare_cached("SELECT id, keys FROM seen_recent ORDER BY id")?;
        let mut rows = statement.query([])?;
        let mut count = 0_u64;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let damaged = || TableFault::Damaged(format!("row {id} of `seen_recent` is damaged"));
            let sealed = row.get_ref(1)?.as_blob().map_err(|_| damaged())?;
            self.recent.extend(keys_in(unseal_numbered(id, sealed).ok_or_else(damaged)?));
            count += 1;
        }
        if (count, self.recent.len() as u64) != (index.recent_rows, index.recent_keys) {
            let (found, wanted) = (self.recent.len(), index.recent_keys);
            return Err(TableFault::Damaged(format!(
                "table `seen_recent` has {found} keys instead of {wanted}"
            )));
        }
        Ok(())
    }

    /// The facts to store, after [`SeenKeys::save`] has written the keys.
    pub(super) fn index(&self) -> &SeenIndex {
        &self.index
    }

    /// Whether the next new key makes a run.
    pub(super) fn is_full(&self) -> bool {
        self.recent.len() >= self.bounds.recent_keys
    }

    /// Whether a key is in the set.
    pub(super) fn knows(
        &mut self,
        connection: &Connection,
        key: [u8; KEY],
    ) -> Result<bool, TableFault> {
        let key = u128::from_be_bytes(key);
        if self.recent.contains(&key) || self.is_recent_hit(key) {
            return Ok(true);
        }
        for run in self.runs.iter().rev() {
            if run.holds(connection, key)? {
                self.recent_hits.resize(HITS_MAX, 0);
                self.recent_hits[place(key)] = key;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a key; `false` if it was known.
    pub(super) fn mark(
        &mut self,
        connection: &Connection,
        key: [u8; KEY],
    ) -> Result<bool, TableFault> {
        if self.knows(connection, key)? {
            return Ok(false);
        }
        if self.is_full() {
            self.make_run(connection)?;
        }
        self.recent.insert(u128::from_be_bytes(key));
        self.unsaved.extend_from_slice(&key);
        self.added += 1;
        Ok(true)
    }

    fn is_recent_hit(&self, key: u128) -> bool {
        // An empty slot is 0, which is the key of no page.
        key != 0 && self.recent_hits.get(place(key)) == Some(&key)
    }

    /// Writes the keys since the last commit, and takes a step of the merge.
    pub(super) fn save(&mut self, connection: &Connection) -> Result<(), TableFault> {
        if !self.unsaved.is_empty() {
            let id = self.index.recent_rows as i64;
            connection
                .prepare_cached("INSERT INTO seen_recent (id, keys) VALUES (?1, ?2)")?
                .execute(params![id, seal_numbered(id, &self.unsaved)])?;
            self.index.recent_rows += 1;
            self.index.recent_keys = self.recent.len() as u64;
            self.unsaved.clear();
        }
        // Each key is moved once per tier, so four moves per new key keep up.
        let blocks = BLOCKS_PER_COMMIT_MIN.max(4 * self.added / BLOCK);
        self.added = 0;
        self.sweep(connection, blocks)?;
        self.advance_merge(connection, blocks * BLOCK)
    }

    /// Turns all recent keys into a run.
    fn make_run(&mut self, connection: &Connection) -> Result<(), TableFault> {
        let mut keys: Vec<u128> = self.recent.drain().collect();
        keys.sort_unstable();
        let mut to = self.writer(0, keys.len() as u64);
        for key in keys {
            to.push(connection, key)?;
        }
        connection.prepare_cached("DELETE FROM seen_recent")?.execute([])?;
        (self.index.recent_rows, self.index.recent_keys) = (0, 0);
        self.unsaved.clear();
        let run = to.finish(connection)?;
        self.index.inactive.retain(|id| *id != run.record.id);
        self.index.runs.push(run.record);
        self.runs.push(run);
        Ok(())
    }

    /// A writer for a run of `keys` keys. Lookups skip the run until it is finished.
    fn writer(&mut self, tier: u32, keys: u64) -> KeyRunWriter {
        let id = self.index.next_run;
        self.index.next_run += 1;
        self.index.inactive.push(id);
        KeyRunWriter::new(id, tier, self.filter_bits(keys, self.index.keys().max(keys)))
    }

    /// Bits of filter for `keys` keys out of `of` keys.
    fn filter_bits(&self, keys: u64, of: u64) -> u64 {
        let share = self.bounds.filter_bits / of.max(1);
        keys * share.min(FILTER_BITS)
    }

    /// Deletes some blocks of merged runs.
    fn sweep(&mut self, connection: &Connection, mut blocks: usize) -> Result<(), TableFault> {
        let building = self.merge.as_ref().map(|merge| merge.to.id());
        while let Some(place) = self.index.inactive.iter().position(|id| Some(*id) != building) {
            let dropped = drop_blocks(connection, self.index.inactive[place], blocks)?;
            if dropped == blocks {
                break;
            }
            blocks -= dropped;
            self.index.inactive.remove(place);
        }
        Ok(())
    }

    fn advance_merge(&mut self, connection: &Connection, keys: usize) -> Result<(), TableFault> {
        let Some(mut merge) = self.merge.take().or_else(|| self.begin_merge()) else {
            return Ok(());
        };
        for _ in 0..keys {
            if !merge.step(connection)? {
                return self.end_merge(connection, merge);
            }
        }
        self.merge = Some(merge);
        Ok(())
    }

    fn begin_merge(&mut self) -> Option<RunMerge> {
        let of_tier = |tier: u32| self.index.runs.iter().filter(move |run| run.tier == tier);
        let tiers = self.index.runs.iter().map(|run| run.tier);
        let tier = tiers.filter(|tier| of_tier(*tier).count() >= RUNS_PER_MERGE).min()?;
        let from: Vec<KeyRunRecord> = of_tier(tier).take(RUNS_PER_MERGE).copied().collect();
        let keys = from.iter().map(|run| run.keys).sum();
        let ids = from.iter().map(|run| run.id).collect();
        let to = self.writer(tier + 1, keys);
        Some(RunMerge { from: from.into_iter().map(KeyCursor::new).collect(), ids, to })
    }

    /// Replaces the merged runs by the new one.
    fn end_merge(&mut self, connection: &Connection, merge: RunMerge) -> Result<(), TableFault> {
        let RunMerge { ids, to, .. } = merge;
        let run = to.finish(connection)?;
        let place = self.runs.iter().position(|run| ids.contains(&run.record.id)).unwrap_or(0);
        self.runs.retain(|run| !ids.contains(&run.record.id));
        self.index.inactive.retain(|id| *id != run.record.id);
        self.index.inactive.extend(ids);
        self.runs.insert(place, run);
        self.index.runs = self.runs.iter().map(|run| run.record).collect();
        Ok(())
    }
}

impl RunMerge {
    /// Moves the smallest key; `false` if none is left.
    fn step(&mut self, connection: &Connection) -> Result<bool, TableFault> {
        let mut least: Option<(u128, usize)> = None;
        for (place, cursor) in self.from.iter_mut().enumerate() {
            if let Some(key) = cursor.key(connection)?
                && least.is_none_or(|(least, _)| key < least)
            {
                least = Some((key, place));
            }
        }
        let Some((key, place)) = least else {
            return Ok(false);
        };
        self.from[place].step();
        self.to.push(connection, key)?;
        Ok(true)
    }
}

fn place(key: u128) -> usize {
    key as usize % HITS_MAX
}

fn keys_in(bytes: &[u8]) -> impl Iterator<Item = u128> {
    bytes.as_chunks::<KEY>().0.iter().map(|key| u128::from_be_bytes(*key))
}
