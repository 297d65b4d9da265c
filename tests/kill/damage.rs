//! Files that are damaged after a kill. The next run writes the right rows or ends with an error that
//! names the file. It never writes wrong rows and never panics.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use super::shop::{self, SeededRandom, ShopDir, sorted, words};
use super::site::TestSite;
use crate::harness::wait_until;

/// A journal with more bytes than this has records behind its head.
const BEGUN: usize = 1024;

/// Whether the run has written something that damage could destroy.
fn has_begun(place: &ShopDir) -> bool {
    let journal = std::fs::read(place.data().join("state.journal")).unwrap_or_default();
    place.data().join("state.db").exists()
        && journal.iter().rposition(|byte| *byte != 0) > Some(BEGUN)
}

/// A working directory after a kill in the middle of the run.
fn killed(site: &TestSite, dice: &mut SeededRandom) -> ShopDir {
    loop {
        let place = ShopDir::new(site, true);
        let mut child: Child = place.start();
        wait_until("a run begins", || has_begun(&place) || child.try_wait().unwrap().is_some());
        std::thread::sleep(Duration::from_millis(dice.below(350)));
        let ended = child.try_wait().unwrap().is_some();
        child.kill().ok();
        child.wait().unwrap();
        if !ended && has_begun(&place) {
            return place;
        }
    }
}

/// Moves everything from the WAL into the database, as SQLite does in a longer run.
fn settle(place: &ShopDir) {
    let connection = rusqlite::Connection::open(place.data().join("state.db")).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

#[derive(Debug, Clone, Copy)]
enum DamageKind {
    Flip,
    Zero,
    Cut,
}

/// Damages a file at a random offset and returns the offset.
fn damage_file(file: &Path, kind: DamageKind, dice: &mut SeededRandom) -> Option<usize> {
    let mut bytes = std::fs::read(file).ok().filter(|bytes| !bytes.is_empty())?;
    // A journal has zeros behind its records.
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
    let at = dice.below(used as u64) as usize;
    match kind {
        DamageKind::Flip => bytes[at] ^= 1 << dice.below(8),
        DamageKind::Zero => {
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
        }
        DamageKind::Cut => bytes.truncate(at),
    }
    std::fs::write(file, bytes).unwrap();
    Some(at)
}

#[derive(Debug, Default)]
struct DamageOutcomes {
    right: usize,
    refused: usize,
    wrong: Vec<String>,
}

fn damage(file: &str, seeds: std::ops::Range<u64>) -> DamageOutcomes {
    let site = shop::open();
    let golden = shop::golden(&site);
    let mut dice = SeededRandom(seeds.start);
    let mut outcomes = DamageOutcomes::default();
    let mut left = killed(&site, &mut dice);
    for seed in seeds {
        let mut dice = SeededRandom(seed);
        if seed % 8 == 0 {
            left = killed(&site, &mut dice);
        }
        let place = left.copy();
        if file == "state.db" {
            settle(&place);
        }
        let kind = [DamageKind::Flip, DamageKind::Flip, DamageKind::Zero, DamageKind::Cut]
            [dice.below(4) as usize];
        let Some(at) = damage_file(&place.data().join(file), kind, &mut dice) else { continue };
        let output = place.run();
        let said = words(&output);
        let same = output.status.code() == Some(0) && sorted(&place.rows()) == sorted(&golden);
        if same {
            outcomes.right += 1;
        } else if output.status.code() == Some(1)
            && said.contains("data/state.")
            && !said.contains("panicked")
        {
            outcomes.refused += 1;
        } else {
            let code = output.status.code();
            println!("WRONG seed {seed}: {kind:?} at {at}: exit {code:?}: {said}");
            outcomes.wrong.push(format!("seed {seed}: {kind:?} at {at}: exit {code:?}: {said}"));
        }
    }
    println!("{file}: {} right, {} refused", outcomes.right, outcomes.refused);
    outcomes
}

fn seeds(from: u64) -> std::ops::Range<u64> {
    let count = std::env::var("DAMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    from..from + count
}

#[test]
fn a_damaged_database_gives_the_right_rows_or_is_refused_by_name() {
    let outcomes = damage("state.db", seeds(1000));
    assert!(outcomes.wrong.is_empty(), "{:#?}", outcomes.wrong);
}

#[test]
fn a_damaged_log_gives_the_right_rows_or_is_refused_by_name() {
    let outcomes = damage("state.db-wal", seeds(2000));
    assert!(outcomes.wrong.is_empty(), "{:#?}", outcomes.wrong);
}

#[test]
fn a_damaged_journal_gives_the_right_rows_or_is_refused_by_name() {
    let outcomes = damage("state.journal", seeds(4000));
    assert!(outcomes.wrong.is_empty(), "{:#?}", outcomes.wrong);
    assert!(outcomes.refused > 0, "no damage was ever found");
}
