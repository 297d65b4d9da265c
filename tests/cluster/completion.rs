//! A node that missed the end of a run completes its files, and no other run begins.

use std::time::Duration;

use super::afterwards::wait_until_run_is_written;
use super::{all_rows, rows_of, same_everywhere, three};
use crate::harness::{TestCluster, TestSite, wait_until};

const PAGES: usize = 40;

/// A run that node 1 has missed: node 1 is killed in the middle, and nodes 2 and 3 end the run.
fn missed_by_the_first(settings: &[&str]) -> (TestSite, TestCluster) {
    missed_after(settings, Duration::from_millis(60), |cluster| cluster.done(5))
}

/// The same. The test kills node 1 when `wait` returns.
fn missed_after(
    settings: &[&str],
    page_time: Duration,
    wait: impl FnOnce(&mut TestCluster),
) -> (TestSite, TestCluster) {
    let own = ["cluster.end.wait=0s", "job.takeLimit=2"];
    let settings: Vec<&str> = own.iter().chain(settings).copied().collect();
    let (site, mut cluster) = three(PAGES, page_time, &settings);
    cluster.start_all();
    wait(&mut cluster);
    assert!(cluster.kill(1), "it had ended");
    for node in [2, 3] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "node {node}: {ending:?}");
    }
    assert!(cluster.files(1) != cluster.files(2), "it was connected at the end");
    (site, cluster)
}

#[test]
fn complete_writes_the_missing_files_and_begins_no_other_run() {
    let (site, mut cluster) = missed_by_the_first(&[]);
    let asked = site.log().len();
    let folders = |cluster: &TestCluster| -> Vec<Vec<String>> {
        cluster.seats().map(|node| cluster.work.list(&format!("o{node}"))).collect()
    };
    for node in cluster.seats() {
        cluster.give(node, &["--complete"]);
    }
    cluster.start_all();
    let ends = cluster.all_end_with(0);
    assert!(ends[0].stderr.contains("it completes the files of that run now"), "{ends:?}");
    for ending in &ends[1..] {
        assert!(ending.stderr.contains("nothing to complete"), "{ends:?}");
    }
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(PAGES));
    // Once more there is nothing left to do.
    cluster.start_all();
    for ending in cluster.all_end_with(0) {
        assert!(ending.stderr.contains("nothing to complete"), "{ending:?}");
    }
    assert_eq!(site.log().len(), asked, "a page was loaded again");
    for names in folders(&cluster) {
        assert_eq!(names, ["2020Jul01-102005", "latest"], "another run has begun, or a mark stays");
    }
    cluster.fsck();
}

#[test]
fn complete_continues_an_unfinished_run() {
    let (site, mut cluster) = three(PAGES, Duration::from_millis(60), &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(5);
    for node in cluster.seats() {
        cluster.kill(node);
        cluster.give(node, &["--complete"]);
    }
    cluster.start_all();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(PAGES));
    assert!(site.log().len() < 2 * PAGES, "all pages were loaded again");
}

#[test]
fn a_node_alone_says_what_it_needs_while_it_waits() {
    // Slow pages keep the run open until node 1 has the run on its disk.
    let page_time = Duration::from_millis(250);
    let (_site, mut cluster) = missed_after(&["cluster.quorum.timeout=1h"], page_time, |cluster| {
        cluster.done(2);
        wait_until_run_is_written(cluster, 1);
    });
    cluster.start(1);
    wait_until("the node says what it needs", || {
        let said = cluster.node(1).stderr();
        said.contains("no answer from node 2") && said.contains("spoonbill run --complete")
    });
    assert!(!cluster.node(1).stderr().contains("continuing the unfinished run"));
    cluster.signal(1, "TERM");
    let ending = cluster.end(1);
    assert_eq!(ending.code, 143, "{ending:?}");
}

#[test]
fn a_node_with_all_files_gives_up_if_the_other_one_does_not_come() {
    let (_site, mut cluster) = missed_by_the_first(&["cluster.quorum.timeout=4s"]);
    for node in [2, 3] {
        cluster.give(node, &["--complete"]);
        cluster.start(node);
    }
    for node in [2, 3] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 75, "node {node}: {ending:?}");
        assert!(ending.stderr.contains("node 1 did not come within 4 s"), "{ending:?}");
    }
}

#[test]
fn a_cancelled_run_leaves_no_marks_beside_its_folders() {
    let (_site, mut cluster) = three(PAGES, Duration::from_millis(60), &["job.takeLimit=2"]);
    for node in cluster.seats() {
        // All nodes write to the same place.
        cluster.give(node, &["--output", "shared"]);
    }
    let hidden = |cluster: &TestCluster| {
        let names = cluster.work.list("shared").into_iter();
        names.filter(|name| name.starts_with('.')).collect::<Vec<_>>()
    };
    cluster.start_all();
    cluster.done(5);
    wait_until("a node has claimed its folder", || !hidden(&cluster).is_empty());
    assert_eq!(cluster.ask(1, &["cancel"]).map(|(code, ..)| code), Some(0));
    cluster.all_end_with(130);
    assert_eq!(hidden(&cluster), Vec::<String>::new());
    let folders = cluster.work.list("shared");
    cluster.start_all();
    cluster.all_end_with(0);
    assert_eq!(cluster.work.list("shared"), folders, "a node has changed its folder");
    assert_eq!(hidden(&cluster), Vec::<String>::new());
    for folder in folders.iter().filter(|name| *name != "latest") {
        let mut rows = cluster.work.lines(&format!("shared/{folder}/data.txt"));
        rows.sort();
        assert_eq!(rows, all_rows(PAGES), "{folder}");
    }
}
