//! Nodes and commands that a cluster refuses, and the messages.

use std::time::Duration;

use super::{QUICK, all_rows, rows_of, same_everywhere, slow_site, three, three_at_gate};
use crate::harness::TestCluster;

#[test]
fn two_voters_are_refused() {
    let (_site, defs) = slow_site(1, Duration::ZERO);
    let mut cluster = TestCluster::of(2, &defs, &QUICK);
    cluster.start(1);
    let ending = cluster.end(1);
    assert_eq!(ending.code, 2, "{ending:?}");
    assert!(ending.stderr.contains("two nodes with a vote"), "{}", ending.stderr);
}

#[test]
fn listening_beyond_loopback_needs_a_secret() {
    let (_site, mut cluster) = three(1, Duration::ZERO, &[]);
    cluster.give(1, &["--listen", "0.0.0.0:0"]);
    cluster.start(1);
    let ending = cluster.end(1);
    assert_eq!(ending.code, 2, "{ending:?}");
    assert!(ending.stderr.contains("cluster.secretFile"), "{}", ending.stderr);
    assert!(!cluster.work.exists("d1/raft-000001.journal"), "the node has written a log");
}

#[test]
fn nodes_without_a_secret_report_it() {
    let (_site, defs) = slow_site(10, Duration::ZERO);
    let settings: Vec<&str> = QUICK.iter().copied().chain(["cluster.insecure=true"]).collect();
    // The test holds the first of four ports on all addresses, and the nodes use the next three. The
    // system chooses only larger ports for connections.
    let held = (20_000..30_000).step_by(4).find_map(|port| {
        let held = std::net::TcpListener::bind(("0.0.0.0", port)).ok()?;
        Some((held, port))
    });
    let (_held, first) = held.expect("a free port");
    let peers = (1..=3).map(|node| format!("127.0.0.1:{}", first + node)).collect();
    let mut cluster = TestCluster::at(peers, &defs, &settings);
    // Two nodes listen on all addresses, the third one only on loopback.
    for node in [1, 2] {
        let (_, port) = cluster.address(node).rsplit_once(':').unwrap();
        let listen = format!("0.0.0.0:{port}");
        cluster.give(node, &["--listen", &listen]);
    }
    cluster.start_all();
    let ends = cluster.all_end_with(0);
    for (node, insecure) in [(1, true), (2, true), (3, false)] {
        let said = &ends[node - 1].stderr;
        assert_eq!(said.contains("insecure  without a secret"), insecure, "node {node}: {said}");
        assert_eq!(cluster.report(node)["insecure"] == true, insecure, "node {node}");
    }
}

#[test]
fn a_secret_that_is_too_short_is_refused() {
    let (_site, mut cluster) = three(1, Duration::ZERO, &["cluster.secretFile=secret"]);
    cluster.work.write("secret", "short");
    cluster.start(1);
    let ending = cluster.end(1);
    assert_eq!(ending.code, 2, "{ending:?}");
}

#[test]
fn a_node_with_another_secret_cannot_join() {
    let (_site, mut cluster) = three(40, Duration::from_millis(20), &[]);
    cluster.work.write("secret", [b'a'; 40]);
    cluster.work.write("other", [b'b'; 40]);
    for node in cluster.seats() {
        let file = if node == 3 { "other" } else { "secret" };
        let setting = format!("cluster.secretFile={file}");
        cluster.give(node, &["--set", &setting, "--set", "cluster.quorum.timeout=8s"]);
    }
    cluster.start_all();
    let ending = cluster.end(3);
    assert_eq!(ending.code, 75, "{ending:?}");
    assert!(ending.stderr.contains("secret"), "{}", ending.stderr);
    for node in [1, 2] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "{ending:?}");
        assert_eq!(rows_of(&cluster, node), all_rows(40));
    }
    assert!(!cluster.work.exists("o3/latest"), "the refused node has rows");
}

#[test]
fn a_node_with_another_list_of_peers_prints_the_difference() {
    let (_site, mut cluster) = three(30, Duration::from_millis(40), &["cluster.quorum.timeout=6s"]);
    let own = cluster.peers();
    let other = own.replace(cluster.address(2), "127.0.0.1:9");
    assert_ne!(own, other);
    cluster.give(3, &["--peers", &other]);
    // A worker may know only some of the peers.
    let some = format!("1={},2={}", cluster.address(1), cluster.address(2));
    cluster.give(9, &["--peers", &some]);
    cluster.start_all();
    cluster.start(9);
    let ending = cluster.end(3);
    assert_eq!(ending.code, 75, "{ending:?}");
    let words = format!(
        "node 1 at `{}` refuses this node: its list of peers differs from the cluster's: \
         it has `2=127.0.0.1:9`, the cluster `2={}`",
        cluster.address(1),
        cluster.address(2)
    );
    assert!(
        ending.stderr.contains(&format!("WARN {words}")),
        "the warning is missing: {}",
        ending.stderr
    );
    assert!(ending.stderr.contains("not formed within 6 s"), "{}", ending.stderr);
    assert_eq!(
        ending.stderr.matches(&words).count(),
        2,
        "the error at the end is missing: {}",
        ending.stderr
    );
    for node in [1, 2] {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "{ending:?}");
        assert_eq!(rows_of(&cluster, node), all_rows(30));
    }
    assert_eq!(cluster.end(9).code, 0);
    assert!(!cluster.work.exists("o3/latest"), "the refused node has rows");
}

#[test]
fn a_node_without_a_quorum_names_the_missing_nodes() {
    let (site, mut cluster) = three(1, Duration::ZERO, &["cluster.quorum.timeout=4s"]);
    cluster.start(2);
    let ending = cluster.end(2);
    assert_eq!(ending.code, 75, "{ending:?}");
    for node in [1, 3] {
        let named = format!("node {node} at {}", cluster.address(node));
        assert!(ending.stderr.contains(&named), "{}", ending.stderr);
    }
    assert!(site.log().is_empty());
}

#[test]
fn a_second_process_on_a_nodes_data_is_refused() {
    let (_site, mut cluster, gate) = three_at_gate(40, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(1);
    let ending = cluster.start_beside(2).end();
    assert_eq!(ending.code, 10, "{ending:?}");
    assert!(ending.stderr.contains("in use by another process"), "{}", ending.stderr);
    gate.open();
    cluster.all_end_with(0);
    assert_eq!(rows_of(&cluster, 1), all_rows(40));
}

#[test]
fn a_second_process_with_an_empty_disk_does_not_take_the_seat_of_a_living_one() {
    let (_site, mut cluster, gate) = three_at_gate(160, 5, &["job.takeLimit=1"]);
    cluster.start_all();
    cluster.done(3);
    let own = |word: String| match word.as_str() {
        "d2" => "elsewhere".to_owned(),
        "o2" => "out-elsewhere".to_owned(),
        _ => word,
    };
    let mut words: Vec<String> = cluster.words(2).into_iter().map(own).collect();
    let listen = words.iter().position(|word| word == "--listen").unwrap();
    words[listen + 1] = "127.0.0.1:0".to_owned();
    words.extend(["--set", "cluster.quorum.timeout=3s"].map(str::to_owned));
    let ending = cluster.work.start(&words.iter().map(String::as_str).collect::<Vec<_>>()).end();
    assert_eq!(ending.code, 10, "{ending:?}");
    assert!(ending.stderr.contains("another process runs as node"), "{}", ending.stderr);
    gate.open();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 2), all_rows(160));
}

#[test]
fn a_node_refuses_the_data_directory_of_another_node() {
    let (_site, mut cluster) = three(10, Duration::ZERO, &[]);
    cluster.start_all();
    cluster.all_end_with(0);
    cluster.give(1, &["--data-dir", "d2"]);
    cluster.start(1);
    let ending = cluster.end(1);
    assert_eq!(ending.code, 10, "{ending:?}");
    assert!(ending.stderr.contains("belongs to node 2"), "{}", ending.stderr);
}

#[test]
fn data_directories_of_solo_runs_and_clusters_are_not_mixed() {
    let (_site, mut cluster) = three(10, Duration::ZERO, &[]);
    cluster.solo(0);
    cluster.give(1, &["--data-dir", "solo"]);
    cluster.start(1);
    let ending = cluster.end(1);
    assert!([2, 10].contains(&ending.code), "{ending:?}");
    assert!(ending.stderr.contains("solo"), "{}", ending.stderr);

    let (_site, mut cluster) = three(10, Duration::ZERO, &[]);
    cluster.start_all();
    cluster.all_end_with(0);
    let ending = cluster.work.spoonbill(&["run", "defs", "--data-dir", "d1", "--output", "x"]);
    assert!([2, 10].contains(&ending.code), "{ending:?}");
    assert!(ending.stderr.contains("cluster"), "{}", ending.stderr);
    // The refusals have changed nothing.
    cluster.fsck();
}

#[test]
fn broken_definitions_end_all_nodes_with_the_list_of_errors() {
    let defs = "locatorGroups:\n  g:\n    locators: [ { name: a, url: \"http://127.0.0.1:1/\" } ]\n\
                taskGroups: { g: { t: { dataDef: missing } } }\n";
    let mut cluster = TestCluster::of(3, defs, &QUICK);
    cluster.start_all();
    let names_it = |ending: &crate::harness::ProcessOutput| ending.stderr.contains("missing");
    let ends = cluster.all_end_with(3);
    assert!(ends.iter().all(names_it), "{ends:?}");
}

#[test]
fn a_node_with_good_definitions_prints_the_errors_of_another_node() {
    let (site, mut cluster) = three(20, Duration::from_millis(5), &[]);
    cluster.work.write("bad/job.yml", "taskGroups: { g: { t: { dataDef: missing } } }\n");
    // If node 3 sets the run up, all nodes fail. If another node does, the run succeeds.
    let words: Vec<String> =
        cluster.words(3).into_iter().map(|w| if w == "defs" { "bad".into() } else { w }).collect();
    let third = cluster.work.start(&words.iter().map(String::as_str).collect::<Vec<_>>());
    cluster.start(1);
    cluster.start(2);
    let ends: Vec<_> =
        [1, 2].map(|node| cluster.end(node)).into_iter().chain([third.end()]).collect();
    let code = ends[0].code;
    assert!(ends.iter().all(|ending| ending.code == code), "{ends:?}");
    if code == 0 {
        assert_eq!(rows_of(&cluster, 1), all_rows(20));
        return;
    }
    assert_eq!(code, 3, "{ends:?}");
    assert!(ends.iter().all(|ending| ending.stderr.contains("missing")), "{ends:?}");
    assert!(site.log().is_empty(), "a page was loaded before the definitions were checked");
}

#[test]
fn definitions_changed_on_one_node_give_a_warning() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let victim = 1 + cluster.led() % 3;
    cluster.kill(victim);
    let text = cluster.work.read("defs/job.yml");
    cluster.work.write("defs/job.yml", text.replace("title", "heading"));
    cluster.start(victim);
    cluster.wait_for_state(victim, "running");
    gate.open();
    let ends = cluster.all_end_with(0);
    let warned = &ends[victim - 1].stderr;
    assert!(warned.contains("differ from those of the run"), "{warned}");
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(60));
}
