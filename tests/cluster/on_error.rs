//! `job.onError` in a cluster: the effect of a failed page on other pages.

use std::collections::BTreeSet;

use super::{PATIENT, QUICK, rows_of, same_everywhere};
use crate::harness::{
    PageGate, SiteResponse, TITLE, TestCluster, TestSite, job, titled, wait_until,
};

const PAGES: usize = 8;

/// Sites of which the first one lacks page 2, and three nodes for them. With a pause and a parallelism
/// of 1, no two pages of a site are loaded at the same time.
fn broken(sites: usize, on_error: &str) -> (Vec<TestSite>, TestCluster) {
    let sites: Vec<TestSite> =
        (2..2 + sites).map(|n| TestSite::start_on(&format!("127.0.0.{n}"))).collect();
    for site in &sites {
        site.otherwise(|request, _| {
            SiteResponse::html(titled(&request.path.replace('/', "page ")))
        });
    }
    sites[0].answer("/2", SiteResponse::status(404));
    let pages = |place: usize, site: &TestSite| -> Vec<(String, String)> {
        (0..PAGES).map(|n| (format!("s{place}p{n}"), site.url(&format!("/{n}")))).collect()
    };
    let locators: Vec<(String, String)> =
        sites.iter().enumerate().flat_map(|(place, site)| pages(place, site)).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let on_error = format!("job.onError={on_error}");
    let own = [
        "loader.fetch.delay=60ms",
        "loader.fetch.parallelism=1",
        "output.order=canonical",
        PATIENT,
    ];
    let settings: Vec<&str> =
        QUICK.iter().chain(&own).copied().chain([on_error.as_str()]).collect();
    let cluster = TestCluster::of(3, &job(&locators, TITLE), &settings);
    (sites, cluster)
}

/// The number of requests to a site, none of them for the same page.
fn asked(site: &TestSite) -> usize {
    let paths: Vec<String> = site.log().into_iter().map(|hit| hit.path).collect();
    let distinct: BTreeSet<&String> = paths.iter().collect();
    assert_eq!(distinct.len(), paths.len(), "a page was loaded twice: {paths:?}");
    paths.len()
}

#[test]
fn a_failed_page_does_not_stop_other_pages_of_a_cluster() {
    let (sites, mut cluster) = broken(1, "fail");
    cluster.start_all();
    cluster.all_end_with(4);
    assert_eq!(asked(&sites[0]), PAGES);
    assert!(same_everywhere(&cluster) == cluster.solo(4));
    for node in cluster.seats() {
        assert_eq!(cluster.report(node)["jobs"]["failed"], 1, "node {node}");
    }
}

#[test]
fn no_node_asks_a_host_in_quarantine() {
    let (sites, mut cluster) = broken(3, "quarantine");
    cluster.start_all();
    cluster.all_end_with(4);
    assert_eq!(asked(&sites[0]), 3, "pages were loaded after the missing one");
    assert_eq!((asked(&sites[1]), asked(&sites[2])), (PAGES, PAGES));
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1).len(), 2 + 2 * PAGES);
    for node in cluster.seats() {
        let report = cluster.report(node);
        assert_eq!(report["finishReason"], "finished", "{report}");
        assert_eq!(report["jobs"]["failed"], PAGES - 2, "{report}");
        assert_eq!(report["pages"]["skipped"]["of hosts in quarantine"], PAGES - 3, "{report}");
        let reason = report["failures"][1]["reasons"][0].as_str().unwrap();
        assert!(reason.contains("is in quarantine since `s0p2` (g) failed: "), "{reason}");
    }
}

#[test]
fn halt_stops_all_nodes_and_the_same_command_continues() {
    let (sites, mut cluster) = broken(2, "halt");
    let gate = PageGate::at(2);
    let theirs = gate.clone();
    sites[1].otherwise(move |request, _| {
        let page = titled(&request.path.replace('/', "page "));
        SiteResponse::html(page).held_by(&theirs, request.path[1..].parse().unwrap_or(0))
    });
    cluster.start_all();
    wait_until("the cluster knows the failed page", || {
        cluster.seats().any(|node| {
            let status = cluster.status(node).unwrap_or_default();
            status["run"]["failed"].as_u64() > Some(0)
        })
    });
    gate.open();
    let ends = cluster.all_end_with(4);
    assert!(
        ends.iter().all(|ending| ending.stderr.contains("since `s0p2` (g) failed: ")),
        "{ends:?}"
    );
    let before = asked(&sites[0]) + asked(&sites[1]);
    assert!(asked(&sites[0]) == 3 && before < 2 * PAGES, "{before} pages were loaded");
    for node in cluster.seats() {
        let report = cluster.report(node);
        assert_eq!(report["finishReason"], "halted", "{report}");
        assert!(report["error"].as_str().unwrap().contains("404"), "{report}");
        // A node reports what it knew when it ended. Another node may have been loading a page.
        let pending = report["jobs"]["pending"].as_u64().unwrap() as usize;
        assert!((2 * PAGES - before..=2 * PAGES - 3).contains(&pending), "{report}");
    }
    cluster.start_all();
    cluster.all_end_with(4);
    // Pages that were loaded are not loaded again, and the failed page is not retried.
    assert_eq!((asked(&sites[0]), asked(&sites[1])), (PAGES, PAGES));
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1).len(), 2 * PAGES - 1);
    for node in cluster.seats() {
        assert_eq!(cluster.report(node)["finishReason"], "finished", "node {node}");
    }
    cluster.fsck();
}
