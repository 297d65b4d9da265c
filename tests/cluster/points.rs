//! Kills nodes at every named point of the program and starts them again with the same command.

use std::time::Duration;

use spoonbill_engine::failpoint::{CLUSTER_POINTS, POINTS};

use super::{QUICK, all_rows, rows_of, same_everywhere, slow_site};
use crate::harness::{TestCluster, wait_until};
use crate::kill::shop::SeededRandom;

const PAGES: usize = 30;

/// Prefixes of the points that only a longer run reaches.
const LATE: [&str; 5] = ["replica.c", "replica.s", "raft.p", "raft.d", "snapshot"];

/// The result of the kills at one point.
#[derive(Debug, Default)]
struct PointOutcome {
    /// Nodes that were killed at the point.
    killed: usize,
    /// Nodes that had finished by then, and found no other node for the next run.
    alone: usize,
}

/// The data directory of a killed node can be read, wherever it was killed.
fn data_is_readable(cluster: &TestCluster, node: usize, order: &str) {
    for command in ["failed", "fsck"] {
        let ending = cluster.work.spoonbill(&[command, "--data-dir", &format!("d{node}")]);
        let early = ending.code == 1 && ending.stderr.contains("holds no run");
        assert!(ending.code == 0 || early, "{order}: {command} of node {node}: {ending:?}");
    }
}

/// Kills each of the nodes when it reaches the point for the `nth` time, and starts it again at once.
fn die_at(point: &str, nth: u64, nodes: &[usize]) -> PointOutcome {
    // Tables are synced at most once a second, so only a longer run reaches some points.
    let is_late = LATE.iter().any(|name| point.starts_with(name));
    let (delay, limit) = if is_late { (200, "job.takeLimit=1") } else { (10, "job.takeLimit=6") };
    let (_site, defs) = slow_site(PAGES, Duration::from_millis(delay));
    let own = ["cluster.snapshot.bytes=1KiB", "cluster.quorum.timeout=20s", limit];
    let settings: Vec<&str> = QUICK.iter().copied().chain(own).collect();
    let mut cluster = TestCluster::of(3, &defs, &settings);
    let order = format!("{point}:{nth}");
    for node in cluster.seats() {
        let env = [("FAILPOINT", order.as_str())];
        cluster.start_with_env(node, if nodes.contains(&node) { &env } else { &[] });
    }
    let mut met = PointOutcome::default();
    let mut open: Vec<usize> = cluster.seats().collect();
    let took = wait_until(&format!("{order}: all nodes end"), || {
        for node in open.clone() {
            if !cluster.has_ended(node) {
                continue;
            }
            let code = cluster.node(node).code();
            match code {
                Some(137) => {
                    met.killed += 1;
                    data_is_readable(&cluster, node, &order);
                    cluster.start(node);
                    continue;
                }
                Some(0) => {}
                Some(75) if rows_of(&cluster, node) == all_rows(PAGES) => met.alone += 1,
                _ => panic!("{order}: node {node}: {code:?}: {}", cluster.node(node).stderr()),
            }
            open.retain(|other| *other != node);
        }
        open.is_empty()
    });
    assert_eq!(rows_of(&cluster, 1), all_rows(PAGES), "{order}");
    same_everywhere(&cluster);
    cluster.fsck();
    println!("{order}: {met:?}, {took:.1?}");
    met
}

fn die_everywhere(points: impl Iterator<Item = &'static str>, seed: u64) -> usize {
    println!("seed {seed}");
    let mut dice = SeededRandom(seed);
    let mut reached = 0;
    for point in points {
        // Points that are passed often kill early or in the middle. One, two or all nodes are killed.
        let often = ["raft.a", "raft.c", "replica", "job", "page", "append.w", "append.s"];
        let often = often.iter().any(|name| point.starts_with(name));
        let late = LATE.iter().any(|name| point.starts_with(name));
        let nth = if often && !late && dice.below(2) == 0 { 1 + dice.below(12) } else { 1 };
        let first = 1 + dice.below(3) as usize;
        let nodes: Vec<usize> =
            (0..=dice.below(3) as usize).map(|more| 1 + (first + more) % 3).collect();
        reached += usize::from(die_at(point, nth, &nodes).killed > 0);
    }
    reached
}

fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// All points but those of the store of a single node.
fn all() -> impl Iterator<Item = &'static str> {
    let common = POINTS.into_iter().filter(|point| !point.starts_with("store."));
    CLUSTER_POINTS.into_iter().chain(common)
}

#[test]
fn kills_at_the_main_points_of_a_cluster_lose_no_row() {
    let points = [
        "raft.vote.after",
        "raft.commit.before",
        "replica.commit.before",
        "raft.apply.after",
        "run.open.after",
        "job.finish.before",
        "run.close.before",
        "run.close.after",
    ];
    assert!(die_everywhere(points.into_iter(), seed()) > 4);
}

#[test]
#[ignore = "takes minutes: run it by name, with SEED"]
fn kills_at_every_named_point_of_a_cluster_lose_no_row() {
    let reached = die_everywhere(all(), seed());
    println!("{reached} of {} points were reached", all().count());
    assert!(reached * 2 > all().count());
}
