//! Several nodes share a run. The rows are those of a single node, whatever happens to the nodes.

mod afterwards;
mod all_stopped;
mod basics;
mod completion;
mod damage;
mod full_disk;
mod hammer;
mod last_moments;
mod on_error;
mod operator;
mod partitions;
mod placement;
mod points;
mod poison;
mod power;
mod refusals;
mod rolling;
mod schedule;
mod stopping;
mod stranger;
mod takeover;

use std::time::Duration;

use crate::harness::{PageGate, SiteResponse, TITLE, TestCluster, TestSite, job, titled};

/// Settings of most tests here: no pauses, and a short wait for nodes that do not come back.
const QUICK: [&str; 5] = [
    "loader.fetch.delay=0",
    "loader.retry.backoff=20ms",
    "runDateTimeText=2020-07-01T10:20:05.000+0000",
    "cluster.end.wait=10s",
    "job.takeLimit=6",
];

/// For runs in which no node dies: a node that gets no CPU time for a while keeps its jobs.
const PATIENT: &str = "cluster.session.ttl=60s";

/// A site with `pages` pages that each take `delay`, and definitions for all of them.
fn slow_site(pages: usize, delay: Duration) -> (TestSite, String) {
    gated_site(pages, delay, &PageGate::at(usize::MAX))
}

/// Like [`slow_site`], with a gate that may hold pages back.
fn gated_site(pages: usize, delay: Duration, gate: &PageGate) -> (TestSite, String) {
    let (site, gate) = (TestSite::start(), gate.clone());
    site.otherwise(move |request, _| {
        let page = SiteResponse::html(titled(&request.path.replace('/', "page "))).delay(delay);
        page.held_by(&gate, request.path[1..].parse().unwrap_or(0))
    });
    let locators: Vec<(String, String)> =
        (0..pages).map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    (site, job(&locators, TITLE))
}

/// Three nodes for a [`slow_site`].
fn three(pages: usize, delay: Duration, settings: &[&str]) -> (TestSite, TestCluster) {
    let (site, defs) = slow_site(pages, delay);
    let settings: Vec<&str> = QUICK.iter().chain(settings).copied().collect();
    (site, TestCluster::of(3, &defs, &settings))
}

/// Three nodes for a site whose gate lets the first `free` pages through.
fn three_at_gate(
    pages: usize,
    free: usize,
    settings: &[&str],
) -> (TestSite, TestCluster, PageGate) {
    let gate = PageGate::at(free);
    let (site, defs) = gated_site(pages, Duration::from_millis(20), &gate);
    let settings: Vec<&str> = QUICK.iter().chain(settings).copied().collect();
    (site, TestCluster::of(3, &defs, &settings), gate)
}

/// The rows of [`slow_site`], sorted.
fn all_rows(pages: usize) -> Vec<String> {
    (0..pages).map(|n| format!("n{n:03}|g|title|page {n:03}")).collect()
}

/// The rows in the file of a node, sorted.
fn rows_of(cluster: &TestCluster, node: usize) -> Vec<String> {
    let files = cluster.files(node);
    let text = files.get("data.txt").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut rows: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Checks that all voters have the same files, and returns those.
fn same_everywhere(cluster: &TestCluster) -> crate::harness::RunFiles {
    let first = cluster.files(1);
    assert!(!first.is_empty(), "node 1 has no files");
    for node in cluster.seats() {
        let differs: Vec<String> = cluster
            .files(node)
            .iter()
            .filter(|(name, bytes)| first.get(*name) != Some(*bytes))
            .map(|(name, bytes)| format!("{name}: {} bytes", bytes.len()))
            .collect();
        assert!(
            cluster.files(node) == first,
            "node {node} differs from node 1: {differs:?} of {:?}",
            first.iter().map(|(name, bytes)| (name, bytes.len())).collect::<Vec<_>>()
        );
    }
    first
}
