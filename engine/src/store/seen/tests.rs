//! Compares the set with a set in memory, over random keys, commits and crashes.

use std::collections::BTreeSet;

use super::*;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The set and the model, now and as of the last commit.
struct Pair {
    connection: Connection,
    memory: u64,
    seen: SeenKeys,
    model: BTreeSet<u128>,
    index: SeenIndex,
    committed: BTreeSet<u128>,
}

impl Pair {
    fn new(memory: u64) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        Self {
            connection,
            memory,
            seen: SeenKeys::new(memory),
            model: BTreeSet::new(),
            index: SeenIndex::default(),
            committed: BTreeSet::new(),
        }
    }

    fn mark(&mut self, key: u128) {
        let new = self.seen.mark(&self.connection, key.to_be_bytes()).unwrap();
        assert_eq!(new, self.model.insert(key), "{key:x}");
    }

    fn commit(&mut self) {
        self.seen.save(&self.connection).unwrap();
        self.connection.execute_batch("COMMIT; BEGIN").unwrap();
        self.index = self.seen.index().clone();
        self.committed = self.model.clone();
        assert_eq!(self.index.keys(), self.model.len() as u64);
    }

    /// Loses uncommitted keys, as a kill does.
    fn crash(&mut self) {
        self.connection.execute_batch("ROLLBACK; BEGIN").unwrap();
        self.model = self.committed.clone();
        self.reload().unwrap();
    }

    fn reload(&mut self) -> Result<(), TableFault> {
        self.seen = SeenKeys::load(&self.connection, self.index.clone(), self.memory)?;
        Ok(())
    }

    fn tiers(&self) -> u32 {
        self.index.runs.iter().map(|run| run.tier + 1).max().unwrap_or(0)
    }
}

/// Small and large keys, close together and far apart, so that some repeat.
fn key(dice: &mut Dice) -> u128 {
    let number = dice.below(6000);
    match number % 3 {
        0 => u128::from(number),
        1 => u128::MAX - u128::from(number),
        _ => u128::from(Dice(number).next()) << 64 | u128::from(Dice(!number).next()),
    }
}

#[test]
fn the_set_equals_the_model_after_commits_and_crashes() {
    let mut tiers = 0;
    for seed in 0..12 {
        let mut dice = Dice(seed);
        // Memory from one key without a filter to a hundred keys with filters.
        let mut pair = Pair::new(160 * (1 + dice.below(100)));
        for _ in 0..6000 {
            match dice.below(100) {
                0..4 => pair.commit(),
                4 if dice.below(8) == 0 => pair.crash(),
                _ => pair.mark(key(&mut dice)),
            }
        }
        pair.commit();
        for key in pair.model.clone() {
            pair.mark(key);
        }
        tiers = tiers.max(pair.tiers());
    }
    assert!(tiers >= 3, "only {tiers} tiers were made");
}

#[test]
fn runs_stay_few_and_merged_runs_are_deleted() {
    let mut pair = Pair::new(160 * 50);
    for number in 0..40_000_u64 {
        pair.mark(u128::from(Dice(number).next()) << 64 | u128::from(number));
        if number % 40 == 0 {
            pair.commit();
        }
    }
    // Six commits without a new key finish the merge.
    (0..200).for_each(|_| pair.commit());
    assert!(pair.index.runs.len() < RUNS_PER_MERGE * 4, "{} runs", pair.index.runs.len());
    assert!(pair.index.inactive.is_empty());
    let count = |sql: &str| pair.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let blocks: i64 = pair.index.runs.iter().map(|run| i64::from(run.blocks)).sum();
    assert_eq!(count("SELECT count(*) FROM seen_runs"), blocks);
}

#[test]
fn a_filter_spares_most_lookups_and_denies_no_key() {
    let key = |number: u64| {
        u128::from(Dice(number).next()) << 64 | u128::from(Dice(number ^ 0x5555).next())
    };
    let mut filter = bloom::BloomFilter::new(10_000 * FILTER_BITS);
    (0..10_000).for_each(|number| filter.add(key(number)));
    assert!((0..10_000).all(|number| filter.may_hold(key(number))));
    let useless = (10_000..20_000).filter(|number| filter.may_hold(key(*number))).count();
    assert!(useless < 300, "{useless} of 10000 lookups found nothing");
    assert!(bloom::BloomFilter::new(0).may_hold(7), "a filter without bits denies no key");
}

#[test]
fn damage_is_found_when_the_set_is_loaded() {
    let mut pair = Pair::new(160 * 300);
    for number in 0..1000_u64 {
        pair.mark(u128::from(Dice(number).next()));
    }
    pair.commit();
    let tampers = [
        "UPDATE seen_runs SET keys = zeroblob(length(keys)) WHERE id = 0",
        "UPDATE seen_runs SET id = id + 1000 WHERE id = 1",
        "DELETE FROM seen_runs WHERE id = (SELECT max(id) FROM seen_runs)",
        "UPDATE seen_runs SET keys = 'text' WHERE id = 0",
        "UPDATE seen_runs SET keys = (SELECT keys FROM seen_runs WHERE id = 1) WHERE id = 0",
        "UPDATE seen_recent SET keys = substr(keys, 1, length(keys) - 16)",
        "DELETE FROM seen_recent",
    ];
    for tamper in tampers {
        pair.connection.execute_batch("SAVEPOINT whole").unwrap();
        assert!(pair.connection.execute(tamper, []).unwrap() > 0, "{tamper}");
        assert!(matches!(pair.reload(), Err(TableFault::Damaged(_))), "{tamper}");
        pair.connection.execute_batch("ROLLBACK TO whole").unwrap();
    }
    // Damage that happens while the set is open is found by a lookup.
    pair.reload().unwrap();
    pair.connection.execute("UPDATE seen_runs SET keys = zeroblob(4008)", []).unwrap();
    let known = pair.seen.runs[0].record;
    assert!(KeyCursor::new(known).key(&pair.connection).is_err());
    let first = *pair.model.iter().next().unwrap();
    let mark = pair.seen.mark(&pair.connection, first.to_be_bytes());
    assert!(mark.is_err() || pair.seen.recent.contains(&first));
}
