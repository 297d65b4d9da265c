//! Nodes that are killed just before or after the end of a run. The run ends once on every node.

use std::time::Duration;

use super::{all_rows, rows_of, same_everywhere, three};
use crate::harness::{TestCluster, wait_until};
use crate::kill::shop::SeededRandom;

const PAGES: usize = 12;

/// Whether a node was killed after its last step: it has reported and removed its mark, so its peers
/// end without it.
fn was_too_late(cluster: &mut TestCluster, node: usize) -> bool {
    let has_reported = !cluster.work.read(&format!("r{node}.json")).is_empty();
    if !has_reported || cluster.work.exists(&format!("d{node}/ended")) {
        return false;
    }
    let others: Vec<usize> = cluster.seats().filter(|other| *other != node).collect();
    wait_until("all peers end", || others.iter().all(|other| cluster.has_ended(*other)));
    true
}

/// Kills nodes at the end of a run. Returns how many of them had not finished.
fn kill_at_the_end(dice: &mut SeededRandom, victims: usize) -> usize {
    let (site, mut cluster) = three(PAGES, Duration::from_millis(5), &[]);
    cluster.start_all();
    let first = dice.below(3) as usize;
    let victims: Vec<usize> = (0..victims).map(|more| 1 + (first + more) % 3).collect();
    let report = format!("r{}.json", victims[0]);
    wait_until("a node has written its report", || !cluster.work.read(&report).is_empty());
    std::thread::sleep(Duration::from_micros(dice.below(25_000)));
    let (mut killed, mut late) = (0, Vec::new());
    for node in victims {
        if !cluster.kill(node) {
            continue;
        }
        if was_too_late(&mut cluster, node) {
            late.push(node);
            continue;
        }
        killed += 1;
        cluster.start(node);
    }
    for (ending, node) in cluster.ends().into_iter().zip(1..) {
        let code = if late.contains(&node) { 137 } else { 0 };
        assert_eq!(ending.code, code, "node {node}: {ending:?}");
    }
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(PAGES));
    assert_eq!(site.log().len(), PAGES, "another run began");
    killed
}

#[test]
fn a_node_killed_at_the_end_of_a_run_completes_it() {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, rounds) = (given("SEED").unwrap_or(40), given("ROUNDS").unwrap_or(8));
    println!("seed {seed}");
    let mut dice = SeededRandom(seed);
    let mut killed = 0;
    for round in 0..rounds {
        killed += kill_at_the_end(&mut dice, 1 + round as usize % 2);
    }
    println!("{killed} kills in {rounds} rounds");
    assert!(killed > 0, "all kills came too late");
}
