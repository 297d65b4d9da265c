//! SIGKILLs at random times.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::shop::{self, PAGES, SeededRandom, ShopDir, TAKE_LIMIT, rows_in, sorted, words};
use super::site::TestSite;
use crate::harness::wait_until;

/// The pages that a run begins with.
const ROOTS: [&str; 2] = ["/0/list/0", "/1/list/0"];

/// Counts of one round of kills.
#[derive(Debug, Default)]
struct KillTally {
    kills: usize,
    starts: usize,
    /// Requests beyond the first one of each page.
    again: usize,
    /// The largest number of them in the life of one process.
    again_most: usize,
    /// Kills after the run was closed.
    closed: usize,
}

/// Kills processes until one finishes the run.
fn round(
    site: &TestSite,
    place: &ShopDir,
    golden: &[u8],
    dice: &mut SeededRandom,
    longest_ms: u64,
) -> KillTally {
    let mut tally = KillTally::default();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        let from = site.log().len();
        let mut child = place.start();
        tally.starts += 1;
        assert!(tally.starts < 400, "the run does not end");
        // On a slow machine the start alone may take longer than the window, so it grows.
        let window_ms = longest_ms + 2 * tally.starts as u64;
        std::thread::sleep(Duration::from_millis(10 + dice.below(window_ms)));
        let ended = child.try_wait().unwrap().is_some();
        if !ended {
            child.kill().unwrap();
            tally.kills += 1;
        }
        let output = child.wait_with_output().unwrap();
        site.settle();
        let mut life: BTreeMap<String, usize> = BTreeMap::new();
        for hit in &site.log()[from..] {
            *life.entry(hit.path.clone()).or_default() += 1;
        }
        assert!(life.values().all(|times| *times == 1), "a process loaded a page twice");
        if known.len() == PAGES && ROOTS.iter().all(|root| life.contains_key(*root)) {
            // The previous process was killed between the close of its run and its end. That run
            // was complete, and this process began another one.
            let complete = |folder: &PathBuf| sorted(&rows_in(folder)) == sorted(golden);
            assert!(place.folders().iter().any(complete), "a run was left unfinished");
            known.clear();
            tally.closed += 1;
        }
        let again = life.keys().filter(|path| known.contains_key(*path)).count();
        tally.again += again;
        tally.again_most = tally.again_most.max(again);
        for (path, times) in life {
            *known.entry(path).or_default() += times;
        }
        if ended {
            assert_eq!(output.status.code(), Some(0), "{}", words(&output));
            assert_eq!(known.len(), PAGES);
            return tally;
        }
    }
}

fn hammer(canonical: bool, kills_least: usize, seeds: u64) {
    let site = shop::open();
    let golden = shop::golden(&site);
    let mut total = KillTally::default();
    let mut seed = seeds;
    while total.kills < kills_least {
        let place = ShopDir::new(&site, canonical);
        let mut dice = SeededRandom(seed);
        let longest_ms = 60 + dice.below(600);
        println!("seed {seed}, kills within {longest_ms} ms");
        let tally = round(&site, &place, &golden, &mut dice, longest_ms);
        println!("  {tally:?}");
        let rows = place.rows();
        if canonical {
            assert!(rows == golden, "seed {seed}: the bytes differ");
        }
        assert!(sorted(&rows) == sorted(&golden), "seed {seed}: the rows differ");
        assert!(tally.again <= tally.kills * TAKE_LIMIT, "seed {seed}: {tally:?}");
        total.kills += tally.kills;
        total.again += tally.again;
        total.again_most = total.again_most.max(tally.again_most);
        seed += 1;
        assert!(seed < seeds + 60, "too many kills come after the end of the run");
    }
    println!(
        "{} rounds: {} kills, {} pages fetched again, at most {} in one life",
        seed - seeds,
        total.kills,
        total.again,
        total.again_most
    );
}

#[test]
fn after_repeated_kills_the_bytes_are_those_of_an_undisturbed_run() {
    let kills = std::env::var("KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    hammer(true, kills, 100);
}

#[test]
fn after_repeated_kills_the_rows_in_order_of_arrival_are_the_same() {
    hammer(false, 15, 500);
}

#[test]
fn a_second_process_on_the_same_data_directory_is_refused() {
    let site = shop::open();
    let place = ShopDir::new(&site, true);
    let mut first = place.start();
    wait_until("the run begins", || place.data().join("state.db").exists());
    let second = place.run();
    assert_eq!(second.status.code(), Some(10), "{}", words(&second));
    assert!(words(&second).contains("in use by another process"), "{}", words(&second));
    assert_eq!(first.wait().unwrap().code(), Some(0));
}
