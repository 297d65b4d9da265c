//! Several nodes share a run: the rows are those of one node alone, whoever dies, whoever listens in.

mod afterwards;
mod all_stopped;
mod basics;
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

use crate::harness::{Cluster, Response, Site, TITLE, job, titled};

/// Settings of most tests here: quick, and nobody waits long for a node that stays away.
const QUICK: [&str; 5] = [
    "loader.fetch.delay=0",
    "loader.retry.backoff=20ms",
    "runDateTimeText=2020-07-01T10:20:05.000+0000",
    "cluster.end.wait=10s",
    "job.takeLimit=6",
];

/// A site of so many pages that each take a while, and definitions of them all.
fn slow_site(pages: usize, delay: Duration) -> (Site, String) {
    let site = Site::start();
    site.otherwise(move |request, _| {
        Response::html(titled(&request.path.replace('/', "page "))).delay(delay)
    });
    let locators: Vec<(String, String)> =
        (0..pages).map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    (site, job(&locators, TITLE))
}

/// Three nodes for a site of slow pages.
fn three(pages: usize, delay: Duration, settings: &[&str]) -> (Site, Cluster) {
    let (site, defs) = slow_site(pages, delay);
    let settings: Vec<&str> = QUICK.iter().chain(settings).copied().collect();
    (site, Cluster::of(3, &defs, &settings))
}

/// The rows of [`slow_site`], sorted.
fn all_rows(pages: usize) -> Vec<String> {
    (0..pages).map(|n| format!("n{n:03}|g|title|page {n:03}")).collect()
}

/// Rows of a node's file, sorted.
fn rows_of(cluster: &Cluster, node: usize) -> Vec<String> {
    let files = cluster.files(node);
    let text = files.get("data.txt").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut rows: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// All voters have the same bytes; those are given.
fn same_everywhere(cluster: &Cluster) -> crate::harness::Files {
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
