//! A kill at every named point, and then the same command again. The rows are those of an undisturbed
//! run, and a new run begins only if the killed one was closed.

use std::os::unix::process::ExitStatusExt;

use spoonbill_engine::failpoint::POINTS;

use super::shop::{self, SeededRandom, ShopDir, rows_in, sorted, words};

/// The number of lists in the shop. It is small because there are many runs.
const LISTS: usize = 3;
/// Points after the close of the run.
const CLOSED: [&str; 1] = ["run.close.after"];

/// Kills a run at each point, when it reaches the point for the `nth` time. Returns the points that
/// were reached.
fn at_every_point(canonical: bool, mut nth: impl FnMut(&str) -> u64) -> Vec<&'static str> {
    let site = shop::open_with(LISTS);
    let golden = shop::golden_with(&site, LISTS);
    let mut reached = Vec::new();
    for point in POINTS {
        let place = ShopDir::new(&site, canonical);
        let order = format!("{point}:{}", nth(point));
        let killed = place.run_with(&[("FAILPOINT", &order)]);
        if killed.status.signal() == Some(9) {
            reached.push(point);
            let again = place.run();
            assert_eq!(again.status.code(), Some(0), "{order}: {}", words(&again));
        } else {
            assert_eq!(killed.status.code(), Some(0), "{order}: {}", words(&killed));
        }
        let rows = place.rows();
        assert!(!canonical || rows == golden, "{order}: the bytes differ");
        assert!(sorted(&rows) == sorted(&golden), "{order}: the rows differ");
        let with_rows = place.folders().iter().filter(|folder| !rows_in(folder).is_empty()).count();
        let closed = reached.contains(&point) && CLOSED.contains(&point);
        assert_eq!(with_rows, 1 + usize::from(closed), "{order}: runs");
        let report = std::fs::read_to_string(place.path("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["finishReason"], "finished", "{order}");
    }
    println!("{} kills at named points", reached.len());
    reached
}

#[test]
fn after_a_kill_at_any_named_point_the_bytes_are_those_of_an_undisturbed_run() {
    let reached = at_every_point(true, |_| 1);
    let missed: Vec<_> = POINTS.iter().filter(|point| !reached.contains(point)).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

#[test]
fn after_a_kill_at_any_named_point_the_rows_in_order_of_arrival_are_the_same() {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(900);
    println!("seed {seed}");
    let mut dice = SeededRandom(seed);
    // Runs in this order reach the points of appending often, and other points up to 20 times.
    let nth = |point: &str| if point.starts_with("append") { 1 } else { 1 + dice.below(20) };
    let reached = at_every_point(false, nth);
    let append = |point: &&&str| point.starts_with("append");
    let missed: Vec<_> = POINTS.iter().filter(append).filter(|at| !reached.contains(at)).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
    assert!(reached.len() > POINTS.len() / 3, "only {reached:?}");
}
