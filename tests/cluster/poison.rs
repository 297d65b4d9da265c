//! A page that crashes every process that parses it. Only its own rows are lost.

use std::time::Duration;

use super::{QUICK, same_everywhere};
use crate::harness::{SiteResponse, TITLE, TestCluster, TestSite, job, titled, wait_until};

const PAGES: usize = 40;
/// Aborts the process when it parses a page with this text.
const DEADLY: [(&str, &str); 1] = [("FAILPOINT_PAGE", "page 013")];
/// The exit code of an aborted process.
const ABORTED: i32 = 134;

#[test]
fn a_page_that_kills_its_worker_fails_alone() {
    let site = TestSite::start();
    site.otherwise(|request, _| {
        let page = titled(&request.path.replace('/', "page "));
        SiteResponse::html(page).delay(Duration::from_millis(20))
    });
    // Without the page, a run gives the expected rows.
    let list = |without: Option<usize>| {
        let pages = (0..PAGES).filter(|n| Some(*n) != without);
        let locators: Vec<(String, String)> =
            pages.map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
        let locators: Vec<(&str, &str)> =
            locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
        job(&locators, TITLE)
    };
    let own = ["output.order=canonical", "cluster.quorum.timeout=20s"];
    let settings: Vec<&str> = QUICK.iter().chain(&own).copied().collect();
    let golden = TestCluster::of(3, &list(Some(13)), &settings).solo(0);
    let mut cluster = TestCluster::of(3, &list(None), &settings);
    for node in cluster.seats() {
        cluster.start_with_env(node, &DEADLY);
    }
    let mut deaths = 0;
    let mut open: Vec<usize> = cluster.seats().collect();
    let took = wait_until("all nodes end", || {
        for node in
            open.clone().into_iter().filter(|node| cluster.has_ended(*node)).collect::<Vec<_>>()
        {
            match cluster.node(node).code() {
                Some(ABORTED) => {
                    deaths += 1;
                    cluster.start_with_env(node, &DEADLY);
                }
                Some(4) => open.retain(|other| *other != node),
                code => panic!("node {node}: {code:?}: {}", cluster.node(node).stderr()),
            }
        }
        open.is_empty()
    });
    println!("{deaths} deaths, {took:.1?}");
    // Three crashes while other jobs were in flight, then five while it was the only one.
    assert_eq!(deaths, 8);
    assert!(same_everywhere(&cluster) == golden, "the rows differ from those of a single node");
    for node in cluster.seats() {
        let report = cluster.report(node);
        assert_eq!(report["jobs"]["failed"], 1, "{report}");
        assert_eq!(report["failures"][0]["name"], "n013", "{report}");
        let ending = cluster.work.spoonbill(&["failed", "--data-dir", &format!("d{node}")]);
        assert_eq!(ending.stdout.lines().count(), 1, "{ending:?}");
        let told = "its worker died or hung 5 times while it held no other job";
        assert!(ending.stdout.contains("\"n013\"") && ending.stdout.contains(told), "{ending:?}");
    }
    cluster.fsck();
}
