//! The commands of an operator: `status`, `fence`, `admit`.

use serde_json::Value;

use super::{all_rows, rows_of, same_everywhere, three_at_gate};
use crate::harness::wait_until;

#[test]
fn status_is_the_same_on_every_node() {
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    for node in cluster.seats() {
        let status = cluster.status(node).expect("an answer");
        assert_eq!(status["node"], node);
        assert_eq!(status["mode"], "cluster");
        assert!(status["term"].as_u64() > Some(0), "{status}");
        assert!(status["index"].as_u64() > Some(0), "{status}");
        assert!(status["heardMs"].is_u64(), "{status}");
        assert_eq!(status["nodes"].as_array().unwrap().len(), 3);
        let run = &status["run"];
        assert_eq!(run["state"], "running", "{status}");
        let sum: u64 =
            ["pending", "taken", "done", "failed"].iter().map(|k| run[k].as_u64().unwrap()).sum();
        assert_eq!(sum, 60, "{status}");
    }
    wait_until("all nodes run", || {
        cluster.status(1).is_some_and(|status| {
            status["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "running")
        })
    });
    let (code, text, _) = cluster.ask(leader, &["status"]).expect("an answer");
    assert_eq!(code, 0);
    for word in
        ["run  running", "in flight", "as of  change", &format!("{leader}: running, voter, leads")]
    {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    // The socket in the data directory gives the same answer.
    let ending = cluster.work.spoonbill(&["status", "--data-dir", "d2", "--json"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stdout.contains("\"node\":2"), "{}", ending.stdout);
    gate.open();
    cluster.all_end_with(0);
    let ending = cluster.work.spoonbill(&["status", "--data-dir", "d2"]);
    assert_eq!(ending.code, 1, "{ending:?}");
}

#[test]
fn a_waiting_node_reports_which_nodes_are_missing() {
    let (_site, mut cluster, gate) = three_at_gate(20, 5, &[]);
    cluster.start(1);
    let states = |status: &Value| -> Vec<String> {
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().map(|node| node["state"].as_str().unwrap().to_owned()).collect()
    };
    wait_until("the node answers", || cluster.status(1).is_some());
    let status = cluster.status(1).unwrap();
    assert_eq!(states(&status), ["checking", "silent", "silent"], "{status}");
    assert!(status["leader"].is_null() && status["heardMs"].is_null(), "{status}");
    // The same through the socket in its data directory.
    let ending = cluster.work.spoonbill(&["status", "--data-dir", "d1"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    for words in ["1: checking, voter", "2: silent, voter", "no contact with a leader"] {
        assert!(ending.stdout.contains(words), "no `{words}` in:\n{}", ending.stdout);
    }
    let ending = cluster.work.spoonbill(&["status", "--ready", "--data-dir", "d1"]);
    assert_eq!((ending.code, ending.stderr.as_str()), (1, "not ready: it has not joined yet\n"));
    // A worker without a connection reports the same states.
    cluster.start(9);
    wait_until("the worker answers", || {
        let ending = cluster.work.spoonbill(&["status", "--data-dir", "d9", "--json"]);
        let status = serde_json::from_str(&ending.stdout).unwrap_or_default();
        ending.code == 0 && states(&status) == ["checking", "silent", "silent", "checking"]
    });
    // States from the disk must not appear as current ones.
    cluster.start(2);
    cluster.start(3);
    cluster.done(2);
    for node in cluster.seats() {
        cluster.kill(node);
    }
    cluster.start(3);
    wait_until("the node answers again", || cluster.status(3).is_some());
    let status = cluster.status(3).unwrap();
    assert_eq!(states(&status)[..3], ["silent", "silent", "checking"], "{status}");
    gate.open();
    cluster.start(1);
    cluster.start(2);
    cluster.all_end_with(0);
    assert_eq!(cluster.end(9).code, 0);
}

#[test]
fn a_node_is_ready_once_it_has_joined_and_not_without_a_leader() {
    let settings = ["job.takeLimit=2", "cluster.session.ttl=60s"];
    let (_site, mut cluster, gate) = three_at_gate(100, 5, &settings);
    cluster.start_all();
    cluster.start(9);
    let ready = |cluster: &crate::harness::TestCluster, node: usize| {
        let dir = format!("d{node}");
        cluster.work.spoonbill(&["status", "--ready", "--data-dir", &dir])
    };
    for node in [1, 2, 3, 9] {
        wait_until("the node is ready", || ready(&cluster, node).code == 0);
        assert_eq!(ready(&cluster, node).stdout, "ready\n");
    }
    let stopped = [1, 2];
    for node in stopped {
        cluster.signal(node, "STOP");
    }
    wait_until("the node reports that it has no leader", || {
        let ending = ready(&cluster, 3);
        ending.code == 1 && ending.stderr.contains("leader")
    });
    // But it is alive, so a check of the process alone succeeds.
    assert_eq!(cluster.work.spoonbill(&["status", "--data-dir", "d3"]).code, 0);
    for node in stopped {
        cluster.signal(node, "CONT");
    }
    wait_until("the node is ready again", || ready(&cluster, 3).code == 0);
    gate.open();
    cluster.all_end_with(0);
    assert_eq!(cluster.end(9).code, 0);
}

#[test]
fn status_shows_when_a_node_is_silent_and_when_it_is_back() {
    let (_site, mut cluster, gate) = three_at_gate(80, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let victim = 1 + cluster.led() % 3;
    cluster.kill(victim);
    cluster.wait_for_state(victim, "silent");
    cluster.start(victim);
    cluster.wait_for_state(victim, "running");
    gate.open();
    cluster.all_end_with(0);
    assert_eq!(rows_of(&cluster, victim), all_rows(80));
}

#[test]
fn a_fenced_node_stays_out_until_it_is_admitted() {
    let settings = ["job.takeLimit=2", "cluster.autoFence=true"];
    let (_site, mut cluster, gate) = three_at_gate(100, 5, &settings);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = 1 + leader % 3;
    // A node that is silent for too long is fenced automatically.
    cluster.signal(victim, "STOP");
    cluster.wait_for_state(victim, "fenced");
    cluster.signal(victim, "CONT");
    wait_until("the node logs that it is fenced", || {
        let said = cluster.node(victim).stderr();
        said.contains(&format!("`spoonbill admit {victim}`"))
    });
    assert_eq!(cluster.seen(victim)["state"], "fenced");
    let (code, _, stderr) =
        cluster.ask(leader, &["admit", &victim.to_string()]).expect("an answer");
    assert_eq!(code, 0, "{stderr}");
    cluster.wait_for_state(victim, "running");
    gate.open();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(100));
}

#[test]
fn a_leader_without_followers_does_not_report_itself_as_leader() {
    let settings = ["job.takeLimit=2", "cluster.session.ttl=60s"];
    let (_site, mut cluster, _gate) = three_at_gate(100, 5, &settings);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    for other in cluster.seats().filter(|node| *node != leader) {
        cluster.kill(other);
    }
    let alone = wait_until("the leader knows that it is alone", || {
        let status = cluster.status(leader).expect("an answer");
        let nodes = status["nodes"].as_array().unwrap();
        let silent = nodes.iter().filter(|node| node["state"] == "silent").count();
        status["leader"].is_null() && silent == 2
    });
    println!("the leader knew after {alone:?}");
    let (code, _, why) = cluster.ask(leader, &["status", "--ready"]).expect("an answer");
    assert_eq!((code, why.as_str()), (1, "not ready: it hears no leader\n"));
}

#[test]
fn the_end_does_not_wait_for_a_fenced_node() {
    let settings = ["job.takeLimit=2", "cluster.end.wait=60s"];
    let (_site, mut cluster, gate) = three_at_gate(60, 5, &settings);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = 1 + leader % 3;
    let (code, _, stderr) =
        cluster.ask(leader, &["fence", &victim.to_string()]).expect("an answer");
    assert_eq!(code, 0, "{stderr}");
    // After a restart it finds a run that continues without it.
    cluster.kill(victim);
    cluster.start(victim);
    wait_until("the node logs that it is fenced", || {
        cluster.node(victim).stderr().contains("it stays out until")
    });
    gate.open();
    for node in cluster.seats().filter(|node| *node != victim) {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "node {node}: {ending:?}");
        assert_eq!(rows_of(&cluster, node), all_rows(60));
        assert!(!ending.stderr.contains(&format!("waiting for node {victim}")), "{ending:?}");
    }
    let ending = cluster.end(victim);
    println!("{}", ending.stderr);
    assert_eq!(ending.code, 75, "{ending:?}");
    assert!(ending.stderr.contains("the run ended while this node was fenced"), "{ending:?}");
    assert_eq!(ending.stderr.matches("it stays out until").count(), 1, "{ending:?}");
}

#[test]
fn the_fence_command_takes_the_jobs_of_a_node() {
    let (_site, mut cluster, gate) = three_at_gate(80, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = 1 + leader % 3;
    let victims = victim.to_string();
    let (code, _, stderr) = cluster.ask(leader, &["fence", &victims]).expect("an answer");
    assert_eq!(code, 0, "{stderr}");
    wait_until("the node is fenced and holds no job", || {
        let seen = cluster.seen(victim);
        seen["state"] == "fenced" && seen["jobs"] == 0
    });
    let (code, _, stderr) = cluster.ask(leader, &["fence", "77"]).expect("an answer");
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("there is no node 77"), "{stderr}");
    cluster.ask(leader, &["admit", &victims]).expect("an answer");
    cluster.wait_for_state(victim, "running");
    gate.open();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
}
