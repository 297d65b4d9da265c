//! The disk of one node is full. That node ends with a clear message and its peers continue. With
//! space it gets the same files.

use std::time::Duration;

use super::{all_rows, rows_of, same_everywhere, three};
use crate::harness::needs::SMALL_DISKS;
use crate::harness::nodes::files_below;
use crate::kill::full_disk::Tmpfs;

const PAGES: usize = 400;

#[test]
fn a_node_with_a_full_disk_ends_with_9_and_joins_again_with_space() {
    if !SMALL_DISKS.are_there() {
        return;
    }
    let small = Tmpfs::mount(400);
    let (_site, mut cluster) = three(PAGES, Duration::from_millis(100), &["job.takeLimit=1"]);
    let data = small.path().join("data").display().to_string();
    cluster.give(3, &["--data-dir", &data]);
    cluster.start_all();
    let ending = cluster.end(3);
    assert_eq!(ending.code, 9, "{ending:?}");
    assert!(ending.stderr.contains("disk is full"), "{}", ending.stderr);
    assert!(cluster.work.exists("o3"), "the node ended before it had begun");
    let ended = [1, 2].map(|node| cluster.has_ended(node));
    assert_eq!(ended, [false, false], "another node ended, too");
    small.resize(200_000);
    cluster.start(3);
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 3), all_rows(PAGES));
}

#[test]
fn a_node_whose_output_disk_was_full_completes_its_files_in_the_next_run() {
    if !SMALL_DISKS.are_there() {
        return;
    }
    let small = Tmpfs::mount(4);
    let own = ["cluster.end.wait=0s", "output.order=canonical", "loader.fetch.parallelism=8"];
    let (_site, mut cluster) = three(PAGES, Duration::from_millis(5), &own);
    let output = small.path().join("out");
    cluster.give(1, &["--output", &output.display().to_string()]);
    cluster.start_all();
    for (node, code) in [(1, 8), (2, 0), (3, 0)] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, code, "node {node}: {ending:?}");
    }
    let last = cluster.files(2);
    // The next run fails on that node as well. It must get the files of both runs later.
    cluster.start_all();
    for (node, code) in [(1, 8), (2, 0), (3, 0)] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, code, "node {node}, again: {ending:?}");
    }
    small.resize(200_000);
    cluster.start_all();
    cluster.all_end_with(0);
    assert!(files_below(&output.join("latest")) == last, "its files differ");
}
