//! Compares logs that are written, cut, purged, damaged and opened again with a plain map.

use openraft::{CommittedLeaderId, EntryPayload};

use super::*;
use crate::cluster::messages::EncodedBatch;

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

fn id(term: u64, index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(term, 1), index)
}

fn entry(term: u64, index: u64, size: usize) -> LogEntry {
    let body = vec![index as u8 ^ term as u8; size];
    LogEntry { log_id: id(term, index), payload: EntryPayload::Normal(EncodedBatch(body.into())) }
}

/// The expected content of a log.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    purged: Option<LogId>,
    entries: BTreeMap<u64, LogEntry>,
    kept: BTreeMap<String, Vec<u8>>,
}

impl Model {
    fn of(parts: &LogParts) -> Result<Self, StoreError> {
        let entries = parts.read(0, u64::MAX)?;
        let mut kept = parts.local().clone();
        kept.remove(name::PURGED);
        Ok(Self {
            purged: parts.purged()?,
            entries: entries.into_iter().map(|entry| (entry.log_id.index, entry)).collect(),
            kept,
        })
    }

    fn next(&self) -> u64 {
        let after = |index: u64| index + 1;
        let last = self.entries.keys().next_back().copied().map(after);
        last.or(self.purged.map(|purged| after(purged.index))).unwrap_or(0)
    }

    /// Draws a change, applies it here and returns it.
    fn change(&mut self, dice: &mut Dice, term: &mut u64) -> LogChange {
        let next = self.next();
        let first = self.entries.keys().next().copied().unwrap_or(next);
        match dice.below(12) {
            0 => {
                let from = first + dice.below(next - first + 1);
                *term += 1;
                self.entries.split_off(&from);
                LogChange::Cut(from)
            }
            1 if next > first => {
                // A snapshot may be ahead of the log.
                let upto = first + dice.below(next - first + 3);
                let upto = self.entries.get(&upto).map_or(id(*term, upto), |entry| entry.log_id);
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.purged = Some(upto);
                LogChange::Purge(upto)
            }
            2 | 3 => {
                let (name, value) = (format!("n{}", dice.below(3)), vec![dice.below(200) as u8; 9]);
                self.kept.insert(name.clone(), value.clone());
                LogChange::Keep(name, value)
            }
            _ => {
                let count = 1 + dice.below(4);
                let entries: Vec<_> = (next..next + count)
                    .map(|index| entry(*term, index, dice.below(900) as usize))
                    .collect();
                self.entries.extend(entries.iter().map(|one| (one.log_id.index, one.clone())));
                LogChange::Entries(entries)
            }
        }
    }
}

/// A log after some records, and its expected content.
fn written(dir: &Path, seed: u64, records: usize) -> (LogParts, Model) {
    let (mut dice, mut term, mut model) = (Dice(seed), 1, Model::default());
    let mut parts = LogParts::open(dir, 4 << 10).unwrap();
    for _ in 0..records {
        let changes = (0..=dice.below(3)).map(|_| model.change(&mut dice, &mut term)).collect();
        parts.write(changes, true).unwrap();
        if dice.below(10) == 0 {
            drop(parts);
            parts = LogParts::open(dir, 4 << 10).unwrap();
        }
    }
    (parts, model)
}

#[test]
fn a_log_is_read_back_after_cuts_and_purges() {
    let mut dropped = 0;
    for seed in 1..60 {
        let dir = tempfile::tempdir().unwrap();
        let (parts, model) = written(dir.path(), seed, 80);
        assert_eq!(Model::of(&parts).unwrap(), model, "seed {seed}");
        let last = model.entries.values().next_back().map(|entry| entry.log_id);
        assert_eq!(parts.last().unwrap(), last, "seed {seed}");
        drop(parts);
        let again = LogParts::open(dir.path(), 4 << 10).unwrap();
        assert_eq!(Model::of(&again).unwrap(), model, "seed {seed}");
        dropped += usize::from(!dir.path().join("raft-000001.journal").exists());
    }
    assert!(dropped > 30, "old parts went in {dropped} of 59 logs");
}

#[test]
fn a_part_of_the_range_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = LogParts::open(dir.path(), 1 << 20).unwrap();
    assert!(!is_there(dir.path()), "looking makes nothing");
    let entries = |range: std::ops::Range<u64>, term| range.map(|n| entry(term, n, 5)).collect();
    parts.write(vec![LogChange::Entries(entries(0..9, 1))], true).unwrap();
    parts.write(vec![LogChange::Cut(6), LogChange::Entries(entries(6..12, 2))], true).unwrap();
    assert!(is_there(dir.path()));
    let read = |from, to| {
        let read = parts.read(from, to).unwrap().into_iter();
        read.map(|one| (one.log_id.leader_id.term, one.log_id.index)).collect::<Vec<_>>()
    };
    assert_eq!(read(4, 8), [(1, 4), (1, 5), (2, 6), (2, 7)]);
    assert_eq!(read(11, 99), [(2, 11)]);
    assert_eq!(read(12, 99), []);
}

#[test]
fn damage_is_reported_and_never_returned() {
    let mut told = 0;
    for seed in 1..250 {
        let dir = tempfile::tempdir().unwrap();
        let (parts, model) = written(dir.path(), seed, 40);
        let ends: BTreeMap<u64, u64> =
            parts.files.iter().map(|part| (part.number, part.journal.size())).collect();
        drop(parts);
        let mut dice = Dice(seed);
        let names = names(dir.path()).unwrap();
        let (number, path) = names.iter().nth(dice.below(names.len() as u64) as usize).unwrap();
        let mut bytes = std::fs::read(path).unwrap();
        match dice.below(3) {
            0 => std::fs::remove_file(path).unwrap(),
            1 => {
                bytes.truncate(dice.below(ends[number]) as usize);
                std::fs::write(path, &bytes).unwrap();
            }
            _ => {
                bytes[dice.below(ends[number]) as usize] ^= 1 << dice.below(8);
                std::fs::write(path, &bytes).unwrap();
            }
        }
        match LogParts::open(dir.path(), 4 << 10).and_then(|parts| Model::of(&parts)) {
            // The damage is in a file that is not needed any more.
            Ok(found) => assert_eq!(found, model, "seed {seed}"),
            Err(_) => told += 1,
        }
    }
    assert!(told > 150, "{told} of 249 damages were reported");
}

#[test]
fn unsynced_records_may_be_lost_without_damage() {
    for seed in 1..60 {
        let dir = tempfile::tempdir().unwrap();
        let (mut parts, model) = written(dir.path(), seed, 30);
        parts.write(vec![LogChange::Keep("light".to_owned(), vec![7; 50])], false).unwrap();
        let (path, end) = parts
            .files
            .back()
            .map(|part| (part.journal.path().to_owned(), part.journal.size()))
            .unwrap();
        drop(parts);
        // Cut in the middle, as after a power cut.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[end as usize - 20..].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        let mut parts = LogParts::open(dir.path(), 4 << 10).unwrap();
        assert_eq!(Model::of(&parts).unwrap(), model, "seed {seed}");
        parts.write(vec![LogChange::Keep("light".to_owned(), vec![8])], true).unwrap();
        drop(parts);
        let parts = LogParts::open(dir.path(), 4 << 10).unwrap();
        assert_eq!(parts.local().get("light"), Some(&vec![8]), "seed {seed}");
    }
}
