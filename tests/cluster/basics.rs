//! Undisturbed clusters: their rows are those of a single node.

use std::time::Duration;

use super::{PATIENT, QUICK, all_rows, rows_of, same_everywhere, slow_site, three, three_at_gate};
use crate::harness::needs::PROCESS_NAMESPACES;
use crate::harness::{TestCluster, wait_until};
use crate::kill::sets;

#[test]
fn three_nodes_write_what_one_writes_byte_for_byte() {
    for set in sets::all() {
        let mut settings = set.settings.clone();
        settings.extend(["output.order=canonical", "job.takeLimit=8", PATIENT]);
        let mut cluster = TestCluster::of(3, &set.defs, &settings);
        let code = if set.lost > 0 { 4 } else { 0 };
        let golden = cluster.solo(code);
        set.forget();
        cluster.start_all();
        cluster.all_end_with(code);
        assert!(
            same_everywhere(&cluster) == golden,
            "{}: the bytes differ from those of a single node",
            set.name
        );
        let good = set.answers().iter().filter(|answer| answer.good).count();
        assert_eq!(good, set.pages, "{}: a page was loaded twice", set.name);
        cluster.fsck();
        for node in cluster.seats() {
            let report = cluster.report(node);
            assert_eq!(report["finishReason"], "finished", "{}: {report}", set.name);
            assert_eq!(report["jobs"]["failed"], set.lost, "{}: {report}", set.name);
            assert_eq!(report["jobs"]["pending"], 0, "{}: {report}", set.name);
        }
    }
}

#[test]
fn in_order_of_arrival_all_voters_files_are_equal() {
    let (site, mut cluster, gate) = three_at_gate(60, 0, &[PATIENT]);
    cluster.start_all();
    wait_until("each node has asked for a page", || site.log().len() == 3);
    gate.open();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(60));
    assert_eq!(site.log().len(), 60, "a page was loaded twice");
    let shares: Vec<u64> = cluster.seats().map(|node| share_of(&cluster, node)).collect();
    assert_eq!(shares.iter().sum::<u64>(), 60, "{shares:?}");
    assert!(shares.iter().all(|jobs| *jobs > 0), "a node did no job: {shares:?}");
}

fn share_of(cluster: &TestCluster, node: usize) -> u64 {
    let report = cluster.report(node);
    report["share"]["jobs"].as_u64().unwrap_or_else(|| panic!("no share in {report}"))
}

#[test]
fn slow_pages_are_shared_by_idle_nodes() {
    let settings = ["loader.fetch.parallelism=2", PATIENT];
    let (site, mut cluster, gate) = three_at_gate(6, 0, &settings);
    cluster.start_all();
    wait_until("all pages are asked for at the same time", || site.max_parallel() == 6);
    gate.open();
    cluster.all_end_with(0);
    assert_eq!([1, 2, 3].map(|node| share_of(&cluster, node)), [2, 2, 2]);
    assert_eq!(site.log().len(), 6);
}

#[test]
fn five_nodes_work_as_one() {
    let (site, defs) = slow_site(80, Duration::from_millis(20));
    let settings: Vec<&str> =
        QUICK.iter().copied().chain(["output.order=canonical", PATIENT]).collect();
    let mut cluster = TestCluster::of(5, &defs, &settings);
    let golden = cluster.solo(0);
    cluster.start_all();
    cluster.all_end_with(0);
    assert!(same_everywhere(&cluster) == golden);
    assert_eq!(site.log().len(), 160, "a page was loaded twice");
}

#[test]
fn a_worker_joins_takes_jobs_and_leaves() {
    let (site, mut cluster, gate) = three_at_gate(90, 3, &["job.takeLimit=2", PATIENT]);
    cluster.start_all();
    cluster.done(3);
    cluster.start(9);
    wait_until("all four nodes wait for a page", || site.log().len() == 3 + 4);
    cluster.signal(9, "TERM");
    wait_until("the worker gives back the job that it has not begun", || {
        cluster.seen(9)["jobs"] == 1
    });
    gate.open();
    let ending = cluster.end(9);
    assert_eq!(ending.code, 143, "{ending:?}");
    assert!(
        !ending.stderr.contains("of this data directory"),
        "a worker continues no run: {ending:?}"
    );
    assert!(share_of(&cluster, 9) > 0, "the worker did no job");
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(90));
    assert_eq!(site.log().len(), 90, "the page that the worker had begun was loaded again");
}

#[test]
fn a_worker_ends_with_the_run() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.start(9);
    cluster.wait_for_jobs(9);
    gate.open();
    cluster.all_end_with(0);
    let ending = cluster.end(9);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(rows_of(&cluster, 1), all_rows(60));
}

#[test]
fn a_worker_that_knows_one_follower_gets_jobs() {
    let (_site, mut cluster, gate) = three_at_gate(120, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let follower = 1 + cluster.led() % 3;
    let known = format!("{follower}={}", cluster.address(follower));
    cluster.give(9, &["--peers", &known]);
    cluster.start(9);
    cluster.wait_for_jobs(9);
    gate.open();
    cluster.all_end_with(0);
    let ending = cluster.end(9);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(share_of(&cluster, 9) > 0, "the worker did no job");
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(120));
}

#[test]
fn workers_with_equal_process_ids_keep_separate_sessions() {
    if !PROCESS_NAMESPACES.are_there() {
        return;
    }
    let own = ["unshare", "--pid", "--fork", "--kill-child"];
    let (_site, mut cluster, gate) = three_at_gate(80, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(1);
    for worker in [8, 9] {
        cluster.put_behind(worker, &own);
        cluster.start(worker);
    }
    let at_work = |cluster: &TestCluster| {
        let status = cluster.status(1).unwrap_or_default();
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().filter(|node| node["role"] == "worker" && node["jobs"] != 0).count()
    };
    wait_until("both workers hold jobs", || at_work(&cluster) == 2);
    gate.open();
    cluster.all_end_with(0);
    for worker in [8, 9] {
        let ending = cluster.end(worker);
        assert_eq!(ending.code, 0, "{ending:?}");
        assert!(share_of(&cluster, worker) > 0, "worker {worker} did no job");
    }
    assert_eq!(rows_of(&cluster, 1), all_rows(80));
}

#[test]
fn nodes_may_share_an_output_directory() {
    let (_site, mut cluster) = three(40, Duration::from_millis(20), &[]);
    for node in cluster.seats() {
        cluster.give(node, &["--output", "together"]);
    }
    cluster.start_all();
    cluster.all_end_with(0);
    let mut rows = Vec::new();
    for folder in cluster.work.list("together") {
        let file = format!("together/{folder}/data.txt");
        if folder != "latest" && cluster.work.exists(&file) {
            rows.push(cluster.work.read(&file));
        }
    }
    assert_eq!(rows.len(), 3, "each node needs its own folder");
    assert!(rows.iter().all(|text| *text == rows[0]), "the files differ");
    let mut sorted: Vec<&str> = rows[0].lines().collect();
    sorted.sort_unstable();
    assert_eq!(sorted, all_rows(40));
    let marks: Vec<String> = cluster.work.list("together");
    assert!(marks.iter().all(|name| !name.starts_with('.')), "files were left behind: {marks:?}");
}

#[test]
fn a_second_run_loads_all_pages_again() {
    let (site, mut cluster) = three(20, Duration::from_millis(5), &[PATIENT]);
    for runs in 1..=3 {
        cluster.start_all();
        cluster.all_end_with(0);
        same_everywhere(&cluster);
        assert_eq!(rows_of(&cluster, 1), all_rows(20));
        assert_eq!(site.log().len(), 20 * runs);
    }
    cluster.fsck();
}

#[test]
fn a_node_that_joins_late_takes_jobs_and_has_all_rows() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start(1);
    cluster.start(3);
    cluster.done(5);
    cluster.start(2);
    cluster.wait_for_jobs(2);
    gate.open();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 2), all_rows(60));
    assert!(share_of(&cluster, 2) > 0, "the late node did no job");
}

#[test]
fn a_node_that_loses_its_disk_right_after_the_start_is_rebuilt() {
    for victim in [1, 2, 3] {
        let (_site, mut cluster, gate) = three_at_gate(20, 0, &[]);
        cluster.start_all();
        cluster.led();
        cluster.kill(victim);
        std::fs::remove_dir_all(cluster.work.path(&format!("d{victim}"))).unwrap();
        cluster.start(victim);
        cluster.wait_for_state(victim, "running");
        gate.open();
        cluster.all_end_with(0);
        same_everywhere(&cluster);
        assert_eq!(rows_of(&cluster, victim), all_rows(20));
    }
}
