//! Damaged files of one node. With other nodes it is rebuilt, and the damaged files are kept. Alone it
//! ends with an error that names the file.

use std::path::PathBuf;
use std::time::Duration;

use super::{QUICK, all_rows, gated_site, rows_of, same_everywhere, three};
use crate::harness::{PageGate, TestCluster, TestSite};
use crate::kill::shop::SeededRandom;

const PAGES: usize = 90;

/// A cluster in the middle of a run, with one node killed.
fn one_killed() -> (TestSite, TestCluster, usize) {
    let settings = ["job.takeLimit=2", "cluster.quorum.timeout=20s"];
    let gate = PageGate::at(12);
    let (site, defs) = gated_site(PAGES, Duration::from_millis(150), &gate);
    let settings: Vec<&str> = QUICK.iter().copied().chain(settings).collect();
    let mut cluster = TestCluster::of(3, &defs, &settings);
    cluster.start_all();
    cluster.done(12);
    let leader = cluster.led();
    let victim = cluster.seats().find(|node| *node != leader).unwrap();
    assert!(cluster.kill(victim));
    gate.open();
    (site, cluster, victim)
}

/// The first bytes of a file name its format. If they were changed, the file would count as one of
/// another version, not as damaged.
const HEAD: u64 = 128;

fn flip(file: &PathBuf, dice: &mut SeededRandom, places: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    // A journal has zeros behind its records.
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    for _ in 0..places {
        bytes[(HEAD + dice.below(used * 2 / 3 - HEAD)) as usize] ^= 1 << dice.below(8);
    }
    std::fs::write(file, bytes).unwrap();
}

/// Damages the tables of a node after moving them from the WAL into their file.
fn damage_tables(cluster: &TestCluster, node: usize) {
    let file = cluster.work.path(&format!("d{node}/state.db"));
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    flip(&file, &mut SeededRandom(11), 400);
}

fn damage_log(cluster: &TestCluster, node: usize) {
    let data = format!("d{node}");
    let parts = cluster.work.list(&data).into_iter().filter(|name| name.starts_with("raft-"));
    flip(&cluster.work.path(&data).join(parts.max().unwrap()), &mut SeededRandom(12), 1);
}

fn is_rebuilt_after(damage: impl Fn(&TestCluster, usize), named: &str) {
    let (_site, mut cluster, victim) = one_killed();
    damage(&cluster, victim);
    cluster.start(victim);
    let ends = cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(PAGES));
    let said = &ends[victim - 1].stderr;
    for words in ["is damaged", named, &format!("`d{victim}/damaged-1`")] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let kept = cluster.work.list(&format!("d{victim}/damaged-1"));
    for file in ["raft-000001.journal", "state.db"] {
        assert!(kept.iter().any(|name| name == file), "{kept:?}");
    }
    cluster.fsck();
    // From now on it votes like any other node.
    cluster.start_all();
    let ends = cluster.all_end_with(0);
    assert!(ends.iter().all(|ending| !ending.stderr.contains("damaged")), "{ends:?}");
}

#[test]
fn a_node_with_damaged_tables_is_rebuilt() {
    is_rebuilt_after(damage_tables, "state.db");
}

#[test]
fn a_node_with_a_damaged_log_is_rebuilt() {
    is_rebuilt_after(damage_log, "raft-");
}

#[test]
fn a_damaged_node_that_is_alone_names_the_file_and_moves_nothing() {
    let (_site, mut cluster, victim) = one_killed();
    for node in cluster.seats().filter(|node| *node != victim) {
        cluster.kill(node);
    }
    damage_log(&cluster, victim);
    let found = cluster.work.spoonbill(&["fsck", "--data-dir", &format!("d{victim}")]);
    assert_eq!((found.code, found.stdout.lines().count()), (1, 1), "{found:?}");
    let before = cluster.work.list(&format!("d{victim}"));
    cluster.start(victim);
    let ending = cluster.end(victim);
    assert_eq!(ending.code, 1, "{ending:?}");
    assert!(ending.stderr.contains(&format!("d{victim}/raft-")), "{}", ending.stderr);
    assert_eq!(cluster.work.list(&format!("d{victim}")), before);
    // With other nodes it is rebuilt, and the run continues.
    cluster.start_all();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(PAGES));
}

#[test]
fn a_node_whose_ledger_diverges_stops_and_keeps_its_files() {
    let (_site, mut cluster) = three(240, Duration::from_millis(150), &["job.takeLimit=1"]);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = cluster.seats().find(|node| *node != leader).unwrap();
    cluster.kill(victim);
    cluster.start_with_env(victim, &[("FAILPOINT_ASTRAY", "20")]);
    let ending = cluster.end(victim);
    assert_eq!(ending.code, 1, "{ending:?}");
    assert!(ending.stderr.contains("this node's ledger is not the cluster's"), "{ending:?}");
    // The data stays until an operator has examined it.
    let data = cluster.work.path(&format!("d{victim}"));
    assert!(data.join("state.db").exists(), "the data is gone");
    std::fs::rename(&data, cluster.work.path("evidence")).unwrap();
    cluster.start(victim);
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(240));
}
