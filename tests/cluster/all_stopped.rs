//! All nodes are asked to stop at the same time, as a scheduler does with the pods of a job. Every node
//! needs the vote of another one to leave, so the last two must not end too early.

use std::time::{Duration, Instant};

use super::QUICK;
use crate::harness::{SiteResponse, TITLE, TestCluster, TestSite, job, titled, wait_until};

/// The requirement itself: a pod is killed 30 s after it was asked to stop.
const ALL_ENDED_WITHIN: Duration = Duration::from_secs(4);
const PAGES: usize = 300;

/// Pages that answer after 100 to 900 ms, so that the nodes end their last jobs at different times.
fn uneven_site() -> (TestSite, String) {
    let site = TestSite::start();
    site.otherwise(|request, _| {
        let page: u64 = request.path.trim_start_matches('/').parse().unwrap_or(0);
        SiteResponse::html(titled("page")).delay(Duration::from_millis(100 + page * 37 % 9 * 100))
    });
    let locators: Vec<(String, String)> =
        (0..PAGES).map(|n| (format!("n{n:03}"), site.url(&format!("/{n}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    (site, job(&locators, TITLE))
}

/// Stops three nodes at once; the time until the last process has ended.
fn stop_all_at_once(round: usize) -> Duration {
    let (site, defs) = uneven_site();
    let mut cluster = TestCluster::of(3, &defs, &QUICK);
    cluster.start_all();
    wait_until("all nodes have jobs in flight", || site.log().len() >= 12 + round % 7);
    let asked = Instant::now();
    for node in cluster.seats() {
        cluster.signal(node, "TERM");
    }
    let ends = cluster.all_end_with(143);
    let took = asked.elapsed();
    assert!(took < ALL_ENDED_WITHIN, "round {round}: the last node ended after {took:?}: {ends:?}");
    took
}

fn stop_in_each_of(rounds: usize) {
    let mut times: Vec<Duration> = (0..rounds).map(stop_all_at_once).collect();
    times.sort();
    println!("{rounds} rounds: median {:?}, max {:?}", times[rounds / 2], times[rounds - 1]);
}

#[test]
fn three_nodes_that_are_stopped_at_once_end_within_four_seconds() {
    stop_in_each_of(3);
}

#[test]
#[ignore = "50 rounds take some minutes"]
fn three_nodes_that_are_stopped_at_once_end_within_four_seconds_in_50_rounds() {
    stop_in_each_of(50);
}
