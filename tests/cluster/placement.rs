//! `cluster.quorum.size` and `cluster.placement`: when jobs are given out, and to which node.

use std::time::Duration;

use super::{PATIENT, QUICK, all_rows, rows_of, same_everywhere, three};
use crate::harness::{SiteResponse, TITLE, TestCluster, TestSite, job, titled, wait_until};

#[test]
fn no_page_is_loaded_before_the_quorum_has_joined() {
    let (site, mut cluster) = three(20, Duration::from_millis(20), &[]);
    for node in cluster.seats() {
        cluster.give(node, &["--quorum", "3"]);
    }
    cluster.start(1);
    cluster.start(2);
    cluster.led();
    // Two nodes have elected a leader, and without the setting they would have begun.
    for _ in 0..30 {
        assert!(cluster.status(1).is_some() && cluster.status(2).is_some());
    }
    assert_eq!(site.log().len(), 0, "a page was loaded without the third");
    assert!(!cluster.has_ended(1) && !cluster.has_ended(2));
    cluster.start(3);
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(20));
    assert_eq!(site.log().len(), 20);
}

#[test]
fn nodes_below_the_quorum_give_up_and_name_the_missing_node() {
    let (site, mut cluster) = three(20, Duration::from_millis(20), &["cluster.quorum.timeout=6s"]);
    for node in cluster.seats() {
        cluster.give(node, &["--quorum", "3"]);
    }
    cluster.start(1);
    cluster.start(2);
    let ends = [cluster.end(1), cluster.end(2)];
    for ending in &ends {
        assert_eq!(ending.code, 75, "{ends:?}");
        // The node that gives up last misses both peers.
        for words in ["not formed within 6 s", "no answer from", "node 3 at"] {
            assert!(ending.stderr.contains(words), "no `{words}`: {ends:?}");
        }
    }
    let first = ends.iter().any(|ending| ending.stderr.contains("no answer from node 3"));
    assert!(first, "no node reports that only node 3 is missing: {ends:?}");
    assert_eq!(site.log().len(), 0, "a page was loaded without a quorum");
    // Later all three nodes form the cluster.
    cluster.start_all();
    cluster.all_end_with(0);
    assert_eq!(rows_of(&cluster, 3), all_rows(20));
}

#[test]
fn two_of_three_nodes_are_enough_with_a_short_quorum_timeout() {
    let own = ["cluster.quorum.timeout=2s", "cluster.end.wait=0s"];
    let (_site, mut cluster) = three(20, Duration::from_millis(20), &own);
    cluster.start(1);
    cluster.start(3);
    for node in [1, 3] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "node {node}: {ending:?}");
        assert_eq!(rows_of(&cluster, node), all_rows(20));
    }
}

/// Runs three nodes on `hosts` hosts that want a pause, with `pages` pages each. Returns how many jobs
/// each node did.
fn shares(hosts: usize, pages: usize, placement: &str) -> Vec<u64> {
    let sites: Vec<TestSite> =
        (2..2 + hosts).map(|n| TestSite::start_on(&format!("127.0.0.{n}"))).collect();
    for site in &sites {
        site.otherwise(|_, _| SiteResponse::html(titled("x")).delay(Duration::from_millis(20)));
    }
    let locators: Vec<(String, String)> = sites
        .iter()
        .enumerate()
        .flat_map(|(place, site)| {
            (0..pages).map(move |n| (format!("s{place}p{n}"), site.url(&format!("/{n}"))))
        })
        .collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let placement = format!("cluster.placement={placement}");
    let own = [
        &placement,
        "loader.fetch.delay=120ms",
        "loader.fetch.parallelism=1",
        "job.takeLimit=2",
        PATIENT,
    ];
    let settings: Vec<&str> = QUICK.iter().copied().chain(own).collect();
    let mut cluster = TestCluster::of(3, &job(&locators, TITLE), &settings);
    // No job is given out before all nodes have joined.
    for node in cluster.seats() {
        cluster.give(node, &["--quorum", "3"]);
    }
    cluster.start_all();
    wait_until("the run begins", || !sites[0].log().is_empty());
    cluster.all_end_with(0);
    let jobs = |node| cluster.report(node)["share"]["jobs"].as_u64().unwrap();
    let shares: Vec<u64> = cluster.seats().map(jobs).collect();
    println!("{placement}: {shares:?}");
    assert_eq!(shares.iter().sum::<u64>() as usize, hosts * pages);
    shares
}

/// Placement decides between nodes that ask within a few milliseconds. On a busy machine they may ask
/// at different times, so this repeats the run until the shares are as expected. Without placement
/// they would hardly ever be.
fn in_one_of_some_runs(expected: impl Fn(&[u64]) -> bool, run: impl Fn() -> Vec<u64>) {
    const RUNS: usize = 10;
    assert!(
        (0..RUNS).any(|_| expected(&run())),
        "the shares were never as expected in {RUNS} runs"
    );
}

#[test]
fn placement_listed_prefers_the_first_peer() {
    in_one_of_some_runs(|jobs| jobs[0] >= 15, || shares(1, 20, "listed"));
}

#[test]
fn placement_least_loaded_shares_the_hosts() {
    in_one_of_some_runs(|jobs| jobs.iter().all(|jobs| *jobs >= 8), || shares(6, 8, "leastLoaded"));
}
