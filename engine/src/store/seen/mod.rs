//! The set of known keys: exact, and larger than memory. New keys are kept in memory and written
//! with the commit they belong to; many of them become a *run*, sorted and never changed, and runs
//! are merged bit by bit. All of it lies in tables of the one database, so a crash between two
//! commits takes the set back to the earlier one together with everything else.

mod filter;
mod run;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::Fault;
use super::seal::{seal_numbered, unseal_numbered};
use run::{BLOCK, Cursor, Run, RunRecord, RunWriter, drop_blocks};

/// Bytes of a key.
const KEY: usize = 16;
/// Runs of one tier that are merged into one of the next.
const FAN: usize = 8;
/// Bits of filter for a key, while there is memory: one look in eighty is in vain.
const FILTER_BITS: u64 = 10;
/// Keys lately found in a run, so that what every page links to is not looked up on disk each time.
const LATELY: usize = 1 << 14;
/// Blocks that are merged, or dropped, with a commit at least.
const STEP: usize = 64;

pub(super) const SCHEMA: &str = "
CREATE TABLE seen_recent (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE seen_runs (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);
";

/// What is stored of the set beside its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shelf {
    /// Rows of recent keys, numbered from 0.
    recent_rows: u64,
    /// Keys in them.
    recent_keys: u64,
    /// Runs, oldest first.
    runs: Vec<RunRecord>,
    next_run: u32,
    /// Runs that are being written or dropped: no key is looked for there.
    void: Vec<u32>,
}

impl Shelf {
    /// Keys in the set.
    pub(super) fn keys(&self) -> u64 {
        self.recent_keys + self.runs.iter().map(|run| run.keys).sum::<u64>()
    }
}

/// How much memory the set may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    recent_keys: usize,
    filter_bits: u64,
}

impl Bounds {
    /// A quarter for recent keys, at most; half for filters, of which a merge keeps two at a time.
    fn within(memory_bytes: u64) -> Self {
        let recent_keys = (memory_bytes / 160).max(1) as usize;
        Self { recent_keys, filter_bits: memory_bytes / 2 * 8 }
    }
}

/// The set.
#[derive(Debug)]
pub(super) struct Seen {
    bounds: Bounds,
    shelf: Shelf,
    recent: HashSet<u128>,
    /// Recent keys that are in no row yet.
    fresh: Vec<u8>,
    lately: Vec<u128>,
    runs: Vec<Run>,
    merge: Option<Merge>,
    /// Keys added since the last step of merging.
    added: usize,
}

/// Runs being merged into one.
#[derive(Debug)]
struct Merge {
    from: Vec<Cursor>,
    ids: Vec<u32>,
    to: RunWriter,
}

impl Seen {
    /// An empty set that keeps to so much memory.
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self {
            bounds: Bounds::within(memory_bytes),
            shelf: Shelf::default(),
            recent: HashSet::new(),
            fresh: Vec::new(),
            lately: Vec::new(),
            runs: Vec::new(),
            merge: None,
            added: 0,
        }
    }

    /// Reads the set and sees that every key of it is there.
    pub(super) fn load(
        connection: &Connection,
        shelf: Shelf,
        memory_bytes: u64,
    ) -> Result<Self, Fault> {
        let mut seen = Self::new(memory_bytes);
        seen.load_recent(connection, &shelf)?;
        for record in &shelf.runs {
            let bits = seen.filter_bits(record.keys, shelf.keys());
            seen.runs.push(Run::load(connection, *record, bits)?);
        }
        seen.shelf = shelf;
        Ok(seen)
    }

    fn load_recent(&mut self, connection: &Connection, shelf: &Shelf) -> Result<(), Fault> {
        let mut statement =
            connection.prepare_cached("SELECT id, keys FROM seen_recent ORDER BY id")?;
        let mut rows = statement.query([])?;
        let mut count = 0_u64;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let odd = || Fault::Odd(format!("row {id} of `seen_recent` is not what was written"));
            let sealed = row.get_ref(1)?.as_blob().map_err(|_| odd())?;
            self.recent.extend(keys_in(unseal_numbered(id, sealed).ok_or_else(odd)?));
            count += 1;
        }
        if (count, self.recent.len() as u64) != (shelf.recent_rows, shelf.recent_keys) {
            let words = format!("holds {}, not {}, keys", self.recent.len(), shelf.recent_keys);
            return Err(Fault::Odd(format!("table `seen_recent` {words}")));
        }
        Ok(())
    }

    /// What is to be stored of it, once [`Seen::save`] has written the keys.
    pub(super) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Whether the next new key makes a run, for which a transaction must be open.
    pub(super) fn is_full(&self) -> bool {
        self.recent.len() >= self.bounds.recent_keys
    }

    /// Whether a key is in the set.
    pub(super) fn knows(&mut self, connection: &Connection, key: [u8; KEY]) -> Result<bool, Fault> {
        let key = u128::from_be_bytes(key);
        if self.recent.contains(&key) || self.was_found_lately(key) {
            return Ok(true);
        }
        for run in self.runs.iter().rev() {
            if run.holds(connection, key)? {
                self.lately.resize(LATELY, 0);
                self.lately[place(key)] = key;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a key; `false` if it was known.
    pub(super) fn mark(&mut self, connection: &Connection, key: [u8; KEY]) -> Result<bool, Fault> {
        if self.knows(connection, key)? {
            return Ok(false);
        }
        if self.is_full() {
            self.make_run(connection)?;
        }
        self.recent.insert(u128::from_be_bytes(key));
        self.fresh.extend_from_slice(&key);
        self.added += 1;
        Ok(true)
    }

    fn was_found_lately(&self, key: u128) -> bool {
        // An empty place holds 0, which is nobody's key before it was found.
        key != 0 && self.lately.get(place(key)) == Some(&key)
    }

    /// Writes what has come since the last commit, and merges for as long as that took.
    pub(super) fn save(&mut self, connection: &Connection) -> Result<(), Fault> {
        if !self.fresh.is_empty() {
            let id = self.shelf.recent_rows as i64;
            connection
                .prepare_cached("INSERT INTO seen_recent (id, keys) VALUES (?1, ?2)")?
                .execute(params![id, seal_numbered(id, &self.fresh)])?;
            self.shelf.recent_rows += 1;
            self.shelf.recent_keys = self.recent.len() as u64;
            self.fresh.clear();
        }
        // Each key moves once a tier: four times as fast as they come is fast enough for ever.
        let blocks = STEP.max(4 * self.added / BLOCK);
        self.added = 0;
        self.sweep(connection, blocks)?;
        self.advance_merge(connection, blocks * BLOCK)
    }

    /// All recent keys become a run.
    fn make_run(&mut self, connection: &Connection) -> Result<(), Fault> {
        let mut keys: Vec<u128> = self.recent.drain().collect();
        keys.sort_unstable();
        let mut to = self.writer(0, keys.len() as u64);
        for key in keys {
            to.push(connection, key)?;
        }
        connection.prepare_cached("DELETE FROM seen_recent")?.execute([])?;
        (self.shelf.recent_rows, self.shelf.recent_keys) = (0, 0);
        self.fresh.clear();
        let run = to.finish(connection)?;
        self.shelf.void.retain(|id| *id != run.record.id);
        self.shelf.runs.push(run.record);
        self.runs.push(run);
        Ok(())
    }

    /// A writer for a run of so many keys; nothing is looked up there until it is done.
    fn writer(&mut self, tier: u32, keys: u64) -> RunWriter {
        let id = self.shelf.next_run;
        self.shelf.next_run += 1;
        self.shelf.void.push(id);
        RunWriter::new(id, tier, self.filter_bits(keys, self.shelf.keys().max(keys)))
    }

    /// Bits of filter for so many keys of so many in all.
    fn filter_bits(&self, keys: u64, of: u64) -> u64 {
        let share = self.bounds.filter_bits / of.max(1);
        keys * share.min(FILTER_BITS)
    }

    /// Drops some blocks of runs that are no longer needed.
    fn sweep(&mut self, connection: &Connection, mut blocks: usize) -> Result<(), Fault> {
        let building = self.merge.as_ref().map(|merge| merge.to.id());
        while let Some(place) = self.shelf.void.iter().position(|id| Some(*id) != building) {
            let dropped = drop_blocks(connection, self.shelf.void[place], blocks)?;
            if dropped == blocks {
                break;
            }
            blocks -= dropped;
            self.shelf.void.remove(place);
        }
        Ok(())
    }

    fn advance_merge(&mut self, connection: &Connection, keys: usize) -> Result<(), Fault> {
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

    fn begin_merge(&mut self) -> Option<Merge> {
        let of_tier = |tier: u32| self.shelf.runs.iter().filter(move |run| run.tier == tier);
        let tiers = self.shelf.runs.iter().map(|run| run.tier);
        let tier = tiers.filter(|tier| of_tier(*tier).count() >= FAN).min()?;
        let from: Vec<RunRecord> = of_tier(tier).take(FAN).copied().collect();
        let keys = from.iter().map(|run| run.keys).sum();
        let ids = from.iter().map(|run| run.id).collect();
        let to = self.writer(tier + 1, keys);
        Some(Merge { from: from.into_iter().map(Cursor::new).collect(), ids, to })
    }

    /// The merged run takes the place of those it was made from.
    fn end_merge(&mut self, connection: &Connection, merge: Merge) -> Result<(), Fault> {
        let Merge { ids, to, .. } = merge;
        let run = to.finish(connection)?;
        let place = self.runs.iter().position(|run| ids.contains(&run.record.id)).unwrap_or(0);
        self.runs.retain(|run| !ids.contains(&run.record.id));
        self.shelf.void.retain(|id| *id != run.record.id);
        self.shelf.void.extend(ids);
        self.runs.insert(place, run);
        self.shelf.runs = self.runs.iter().map(|run| run.record).collect();
        Ok(())
    }
}

impl Merge {
    /// Moves the least key; `false` when there is none left.
    fn step(&mut self, connection: &Connection) -> Result<bool, Fault> {
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
    key as usize % LATELY
}

fn keys_in(bytes: &[u8]) -> impl Iterator<Item = u128> {
    bytes.as_chunks::<KEY>().0.iter().map(|key| u128::from_be_bytes(*key))
}
