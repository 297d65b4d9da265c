//! One node or all nodes are asked to stop. Their jobs go to other nodes, and no row is lost.

use std::time::Duration;

use super::{PATIENT, QUICK, all_rows, gated_site, rows_of, same_everywhere, three, three_at_gate};
use crate::harness::{PageGate, TestCluster, TestSite, wait_until};

/// Asks a node to leave in the middle of a run, which its peers finish. Returns that node.
fn leaves(
    which: impl Fn(&TestCluster) -> usize,
    signal: &str,
    code: i32,
) -> (TestSite, TestCluster, usize) {
    let settings = ["job.takeLimit=3", "cluster.quorum.size=3", PATIENT];
    let (site, mut cluster, gate) = three_at_gate(80, 5, &settings);
    cluster.start_all();
    cluster.done(5);
    let node = which(&cluster);
    cluster.signal(node, signal);
    cluster.wait_until_stopping(node);
    gate.open();
    let ending = cluster.end(node);
    assert_eq!(ending.code, code, "{ending:?}");
    assert!(ending.stderr.contains("this node has left after"), "{ending:?}");
    let stayed: Vec<usize> = cluster.seats().filter(|other| *other != node).collect();
    for other in &stayed {
        let ending = cluster.end(*other);
        assert_eq!(ending.code, 0, "node {other}: {ending:?}");
        let awaited = format!("waiting for node {node} to come back and write its files");
        assert!(ending.stderr.contains(&awaited), "{ending:?}");
        assert_eq!(rows_of(&cluster, *other), all_rows(80));
    }
    assert!(cluster.files(stayed[0]) == cluster.files(stayed[1]));
    assert_eq!(site.log().len(), 80, "a page was loaded twice");
    (site, cluster, node)
}

#[test]
fn a_follower_leaves_and_other_nodes_finish() {
    let (_site, mut cluster, node) = leaves(|cluster| 1 + cluster.led() % 3, "TERM", 143);
    // Started again, it completes its files of that run. A second node alone begins no other run.
    cluster.start(node);
    cluster.start(1 + node % 3);
    let ending = cluster.end(node);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stderr.contains("the last run ended without this node"), "{ending:?}");
    assert_eq!(rows_of(&cluster, node), all_rows(80));
}

#[test]
fn the_leader_leaves_and_other_nodes_finish() {
    leaves(TestCluster::led, "TERM", 143);
}

#[test]
fn the_leader_leaves_on_ctrl_c() {
    leaves(TestCluster::led, "INT", 130);
}

/// Another node leads while the leader that was asked to stop still finishes its page.
fn hands_over(votes: usize) {
    let gate = PageGate::at(10);
    let (_site, defs) = gated_site(60, Duration::from_millis(200), &gate);
    let settings: Vec<&str> = QUICK.iter().copied().chain(["job.takeLimit=2"]).collect();
    let mut cluster = TestCluster::of(votes, &defs, &settings);
    cluster.start_all();
    // A leader that has just been elected is not replaced at once.
    cluster.done(10);
    let leader = cluster.led();
    let others: Vec<usize> = cluster.seats().filter(|node| *node != leader).collect();
    cluster.wait_for_jobs(leader);
    cluster.signal(leader, "TERM");
    let another = |status: serde_json::Value| {
        let leads = status["leader"].as_u64();
        leads.is_some() && leads != Some(leader as u64)
    };
    let took = wait_until("another node leads", || cluster.status(others[0]).is_some_and(another));
    println!("{votes} votes: another leads after {took:?}");
    assert!(!cluster.has_ended(leader), "the leader had ended before");
    wait_until("the old leader knows that another node leads", || {
        cluster.status(leader).is_some_and(another)
    });
    let (code, _, why) = cluster.ask(leader, &["status", "--ready"]).expect("an answer");
    assert_eq!((code, why.as_str()), (1, "not ready: it is stopping\n"));
    gate.let_through(25);
    let ending = cluster.end(leader);
    assert_eq!(ending.code, 143, "{ending:?}");
    assert!(!others.iter().any(|node| cluster.has_ended(*node)), "another node ended, too");
}

#[test]
fn a_stopping_leader_hands_over_before_it_ends() {
    hands_over(3);
    hands_over(5);
}

#[test]
fn a_node_that_left_joins_again_and_has_all_rows() {
    let (site, mut cluster, gate) = three_at_gate(90, 5, &["job.takeLimit=2", PATIENT]);
    cluster.start_all();
    cluster.done(5);
    cluster.signal(2, "TERM");
    cluster.wait_until_stopping(2);
    gate.let_through(30);
    assert_eq!(cluster.end(2).code, 143);
    cluster.start(2);
    cluster.wait_for_state(2, "running");
    gate.open();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 2), all_rows(90));
    assert_eq!(site.log().len(), 90, "a page was loaded twice");
}

#[test]
fn all_nodes_are_stopped_and_continue_the_run_later() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(5);
    for node in cluster.seats() {
        cluster.signal(node, "TERM");
    }
    for node in cluster.seats() {
        cluster.wait_until_stopping(node);
    }
    gate.open();
    cluster.all_end_with(143);
    cluster.start_all();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(60));
}

#[test]
fn the_end_does_not_wait_for_a_node_that_stopped_after_writing_everything() {
    let (_site, mut cluster) = three(30, Duration::from_millis(60), &["cluster.end.wait=60s"]);
    cluster.start_all();
    cluster.done(5);
    let leader = cluster.led();
    let others: Vec<usize> = cluster.seats().filter(|node| *node != leader).collect();
    cluster.signal(others[0], "STOP");
    wait_until("all jobs are done", || {
        cluster.status(others[1]).is_some_and(|status| status["run"]["state"] == "over")
    });
    wait_until("a node has written everything", || {
        cluster.node(others[1]).stderr().contains("everything is written here; waiting for node")
    });
    cluster.signal(others[1], "TERM");
    assert_eq!(cluster.end(others[1]).code, 0, "the stopped node had written everything");
    cluster.signal(others[0], "CONT");
    for node in [others[0], leader] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "{ending:?}");
        assert!(!ending.stderr.contains(&format!("waiting for node {}", others[1])), "{ending:?}");
    }
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(30));
}

/// The report of a node counts the rows of its file.
fn reports_what_it_wrote(cluster: &TestCluster, node: usize) {
    let report = cluster.report(node);
    let told: u64 = report["rows"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(told, rows_of(cluster, node).len() as u64, "node {node}: {report}");
    let jobs = &report["jobs"];
    let sum: u64 = ["done", "failed", "pending"].iter().map(|k| jobs[k].as_u64().unwrap()).sum();
    assert_eq!((sum, jobs["done"].as_u64()), (900, Some(told)), "node {node}: {report}");
}

#[test]
fn a_node_that_is_stopped_reports_what_its_file_holds() {
    for order in ["arrival", "canonical"] {
        let order = format!("output.order={order}");
        let settings = ["job.takeLimit=8", "loader.fetch.parallelism=8", order.as_str()];
        let (_site, mut cluster, gate) = three_at_gate(900, 300, &settings);
        cluster.start_all();
        cluster.done(20);
        // While node 1 stops, it still receives the results of its peers.
        cluster.signal(1, "TERM");
        cluster.wait_until_stopping(1);
        gate.let_through(600);
        assert_eq!(cluster.end(1).code, 143);
        reports_what_it_wrote(&cluster, 1);
        let (code, _, stderr) = cluster.ask(2, &["cancel"]).expect("an answer");
        assert_eq!(code, 0, "{stderr}");
        gate.open();
        for node in [2, 3] {
            assert_eq!(cluster.end(node).code, 130);
            reports_what_it_wrote(&cluster, node);
        }
    }
}

#[test]
fn cancel_ends_all_nodes_and_the_same_command_continues() {
    let (site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2", PATIENT]);
    cluster.start_all();
    cluster.done(5);
    let (code, _, stderr) = cluster.ask(2, &["cancel"]).expect("an answer");
    assert_eq!(code, 0, "{stderr}");
    gate.open();
    let ends = cluster.all_end_with(130);
    assert!(ends.iter().all(|ending| ending.stderr.contains("cancelled")), "{ends:?}");
    let before = site.log().len();
    assert!(before < 60, "the run ended before the cancel");
    cluster.start_all();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(60));
    assert_eq!(site.log().len(), 60, "a page was loaded twice");
}

#[test]
fn a_node_that_waits_for_a_quorum_can_be_stopped() {
    let (_site, mut cluster) = three(1, Duration::ZERO, &[]);
    cluster.start(1);
    wait_until("the node has opened its log", || cluster.work.exists("d1/raft-000001.journal"));
    cluster.signal(1, "TERM");
    let ending = cluster.end(1);
    assert_eq!(ending.code, 143, "{ending:?}");
}

#[test]
fn a_worker_that_finds_no_node_gives_up_and_can_be_stopped() {
    let (_site, mut cluster) = three(1, Duration::ZERO, &["cluster.quorum.timeout=4s"]);
    cluster.start(9);
    let ending = cluster.end(9);
    assert_eq!(ending.code, 75, "{ending:?}");
    assert!(ending.stderr.contains("not formed within 4 s: no answer from node 1"), "{ending:?}");
    cluster.give(9, &["--set", "cluster.quorum.timeout=10m"]);
    cluster.start(9);
    wait_until("the worker answers", || {
        cluster.work.spoonbill(&["status", "--data-dir", "d9"]).code == 0
    });
    cluster.signal(9, "TERM");
    let ending = cluster.end(9);
    assert_eq!(ending.code, 143, "{ending:?}");
}

#[test]
fn a_node_that_is_left_alone_can_be_stopped() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    cluster.kill(1);
    cluster.kill(2);
    cluster.signal(3, "TERM");
    gate.open();
    let ending = cluster.end(3);
    assert_eq!(ending.code, 143, "{ending:?}");
    cluster.start_all();
    cluster.all_end_with(0);
    assert_eq!(rows_of(&cluster, 3), all_rows(60));
}

#[test]
fn a_worker_can_be_stopped_when_the_only_node_has_lost_its_data() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.start(9);
    cluster.done(3);
    cluster.wait_for_jobs(9);
    for node in cluster.seats() {
        cluster.kill(node);
    }
    gate.open();
    std::fs::remove_dir_all(cluster.work.path("d3")).unwrap();
    cluster.start(3);
    wait_until("node 3 answers", || cluster.status(3).is_some());
    cluster.signal(9, "TERM");
    let ending = cluster.end(9);
    assert_eq!(ending.code, 143, "{ending:?}");
    cluster.start(1);
    cluster.start(2);
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 3), all_rows(60));
}

#[test]
fn nodes_without_a_quorum_give_up_after_the_loss_exit() {
    let settings = ["job.takeLimit=2", "cluster.quorum.lossExit=6s"];
    let (_site, mut cluster, gate) = three_at_gate(80, 5, &settings);
    cluster.start_all();
    cluster.start(9);
    cluster.done(3);
    cluster.wait_for_state(9, "running");
    cluster.kill(1);
    cluster.kill(2);
    gate.open();
    let ending = cluster.end(3);
    assert_eq!(ending.code, 75, "{ending:?}");
    assert!(
        ending.stderr.contains("too few nodes are connected to agree on anything"),
        "{ending:?}"
    );
    let ending = cluster.end(9);
    assert_eq!(ending.code, 75, "the worker: {ending:?}");
    cluster.start_all();
    cluster.all_end_with(0);
    assert_eq!(rows_of(&cluster, 3), all_rows(80));
}
