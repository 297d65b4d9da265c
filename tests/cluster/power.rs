//! Power cuts that hit all nodes of a cluster at once. Each sector that was not synced may or may not be
//! on the disk afterwards. This includes logs that were cut behind a snapshot.

use std::path::Path;
use std::time::Duration;

use super::{QUICK, all_rows, rows_of, same_everywhere, slow_site};
use crate::harness::{TestCluster, wait_until};
use crate::kill::power::{cut_tail, differing, tear};
use crate::kill::shop::SeededRandom;

/// Enough pages that logs are cut: raft keeps the last 500 entries.
const PAGES: usize = 1500;

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

fn is_part(name: &str) -> bool {
    name.starts_with("raft-")
}

/// Whether the program syncs the file. Copies have another name until they are synced.
fn is_synced(name: &str) -> bool {
    is_part(name) || ["state.db", "state.db-wal"].contains(&name)
}

/// Changes the files of a node as a power cut could, and counts what remains as synced. Returns how
/// many bytes had not been synced.
fn cut_power(data: &Path, images: &Path, dice: &mut SeededRandom) -> usize {
    let mut doubt = 0;
    for name in names(data).iter().filter(|name| is_synced(name)) {
        let copying = if is_part(name) { "copying-raft-" } else { "copying-state.db" };
        if images.join(copying).exists() || name == "state.db" && !images.join(name).exists() {
            // Killed between the sync and the copy: the whole file is synced.
            continue;
        }
        let read = |dir: &Path| std::fs::read(dir.join(name)).unwrap_or_default();
        let (synced, written) = (read(images), read(data));
        doubt += differing(&synced, &written);
        let torn = tear(&synced, &written, dice);
        if torn.is_empty() {
            std::fs::remove_file(data.join(name)).unwrap();
        } else {
            std::fs::write(data.join(name), torn).unwrap();
        }
    }
    std::fs::remove_file(data.join("state.db-shm")).ok();
    std::fs::remove_dir_all(images).unwrap();
    std::fs::create_dir(images).unwrap();
    for name in names(data).iter().filter(|name| is_synced(name)) {
        std::fs::copy(data.join(name), images.join(name)).unwrap();
    }
    doubt
}

/// Starts all nodes. When the first one reaches the point, all are killed. Returns false if they ended
/// before that.
fn run_until(cluster: &mut TestCluster, point: Option<&str>) -> bool {
    for node in cluster.seats() {
        let image = format!("d{node}/state.db:images{node}");
        let order = ("FAILPOINT", point.unwrap_or_default());
        let env = [("FAILPOINT_IMAGE", image.as_str()), order];
        cluster.start_with_env(node, if point.is_some() { &env } else { &env[..1] });
    }
    let mut ended = None;
    wait_until("a node has ended", || {
        ended = cluster.seats().find(|node| cluster.has_ended(*node));
        ended.is_some()
    });
    let first = cluster.node(ended.unwrap()).code();
    if first != Some(137) {
        assert_eq!(first, Some(0), "{}", cluster.node(ended.unwrap()).stderr());
        return false;
    }
    for node in cluster.seats() {
        cluster.kill(node);
    }
    true
}

fn cut_power_of_all(seed: u64) -> usize {
    let mut dice = SeededRandom(seed);
    let (_site, defs) = slow_site(PAGES, Duration::from_millis(6));
    let own = ["cluster.snapshot.bytes=1KiB", "job.takeLimit=1", "cluster.quorum.timeout=40s"];
    let settings: Vec<&str> = QUICK.iter().copied().chain(own).collect();
    let mut cluster = TestCluster::of(3, &defs, &settings);
    for node in cluster.seats() {
        std::fs::create_dir(cluster.work.path(&format!("images{node}"))).unwrap();
    }
    let (mut cuts, mut doubt) = (0, 0);
    // After `raft.apply` there are always committed bytes that are not synced yet.
    let points = [
        "raft.purge.after",
        "replica.commit.after",
        "raft.drop.after",
        "snapshot.kept.after",
        "raft.apply.after",
    ];
    let mut ended = false;
    while cuts < 4 {
        let point = points[(seed + cuts) as usize % points.len()];
        let often =
            if point == "raft.apply.after" { 100 + dice.below(900) } else { 1 + dice.below(2) };
        if !run_until(&mut cluster, Some(&format!("{point}:{often}"))) {
            ended = true;
            break;
        }
        cuts += 1;
        println!("seed {seed}: power cut at {point}:{often}");
        for node in cluster.seats() {
            let path = |name: &str| cluster.work.path(&format!("{name}{node}"));
            let lost = cut_power(&path("d"), &path("images"), &mut dice);
            doubt += usize::from(lost > 0);
            if dice.below(2) == 0 {
                // Without the snapshot, only the tables have what was cut from the log.
                std::fs::remove_file(path("d").join("snapshot.db")).ok();
            }
            cut_tail(&path("o").join("latest/data.txt"), &mut dice);
        }
    }
    if !ended {
        cluster.start_all();
    }
    cluster.all_end_with(0);
    let mut rows = all_rows(PAGES);
    rows.sort();
    assert!(rows_of(&cluster, 1) == rows, "seed {seed}: the rows differ");
    same_everywhere(&cluster);
    cluster.fsck();
    doubt
}

#[test]
fn a_power_cut_of_all_nodes_loses_no_row() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, rounds) = (number("SEED").unwrap_or(7000), number("ROUNDS").unwrap_or(2));
    let doubt: usize = (first..first + rounds).map(cut_power_of_all).sum();
    assert!(doubt > 0, "no power cut lost a byte");
}
