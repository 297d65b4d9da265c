//! What an operator asks and orders.

use std::time::Duration;

use super::{all_rows, rows_of, same_everywhere, three};
use crate::harness::wait_until;

#[test]
fn status_tells_the_same_story_on_every_node() {
    let (_site, mut cluster) = three(60, Duration::from_millis(150), &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    for node in cluster.seats() {
        let status = cluster.status(node).expect("an answer");
        assert_eq!(status["node"], node);
        assert_eq!(status["mode"], "cluster");
        assert!(status["term"].as_u64() > Some(0), "{status}");
        assert!(status["index"].as_u64() > Some(0), "{status}");
        assert_eq!(status["nodes"].as_array().unwrap().len(), 3);
        let run = &status["run"];
        assert_eq!(run["state"], "running", "{status}");
        let sum: u64 =
            ["pending", "taken", "done", "failed"].iter().map(|k| run[k].as_u64().unwrap()).sum();
        assert_eq!(sum, 60, "{status}");
    }
    wait_until("all run", || {
        cluster.status(1).is_some_and(|status| {
            status["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "running")
        })
    });
    let (code, text, _) = cluster.ask(leader, &["status"]).expect("an answer");
    assert_eq!(code, 0);
    for word in ["run  running", "in hand", &format!("{leader}: running, voter, leads")] {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    // Over the socket of the data directory as well.
    let ending = cluster.work.spoonbill(&["status", "--data-dir", "d2", "--json"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stdout.contains("\"node\":2"), "{}", ending.stdout);
    cluster.all_end_with(0);
    let ending = cluster.work.spoonbill(&["status", "--data-dir", "d2"]);
    assert_eq!(ending.code, 1, "{ending:?}");
}

#[test]
fn a_silent_node_is_shown_as_such_and_shown_back() {
    let (_site, mut cluster) = three(80, Duration::from_millis(200), &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = 1 + leader % 3;
    cluster.kill(victim);
    let state = |cluster: &crate::harness::Cluster| {
        let status = cluster.status(leader);
        status.map(|status| status["nodes"][victim - 1]["state"].as_str().unwrap().to_owned())
    };
    wait_until("it is silent", || state(&cluster).as_deref() == Some("silent"));
    cluster.start(victim);
    wait_until("it is back", || state(&cluster).as_deref() == Some("running"));
    cluster.all_end_with(0);
    assert_eq!(rows_of(&cluster, victim), all_rows(80));
}

#[test]
fn a_fenced_node_stays_out_until_it_is_admitted() {
    let settings = ["job.takeLimit=2", "cluster.autoFence=true"];
    let (_site, mut cluster) = three(100, Duration::from_millis(200), &settings);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = 1 + leader % 3;
    let state = |cluster: &crate::harness::Cluster| {
        let status = cluster.status(leader);
        status.map(|status| status["nodes"][victim - 1]["state"].as_str().unwrap().to_owned())
    };
    // Silent for too long, so it is fenced by itself.
    cluster.signal(victim, "STOP");
    wait_until("it is fenced", || state(&cluster).as_deref() == Some("fenced"));
    cluster.signal(victim, "CONT");
    wait_until("it is told", || {
        let said = cluster.node(victim).stderr();
        said.contains(&format!("`spoonbill admit {victim}`"))
    });
    assert_eq!(state(&cluster).as_deref(), Some("fenced"));
    let (code, _, stderr) =
        cluster.ask(leader, &["admit", &victim.to_string()]).expect("an answer");
    assert_eq!(code, 0, "{stderr}");
    wait_until("it is in again", || state(&cluster).as_deref() == Some("running"));
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(100));
}

#[test]
fn fence_by_command_takes_a_nodes_work_away() {
    let (_site, mut cluster) = three(80, Duration::from_millis(200), &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.done(3);
    let leader = cluster.led();
    let victim = 1 + leader % 3;
    let victims = victim.to_string();
    let shown = |cluster: &crate::harness::Cluster| {
        cluster.status(leader).map(|status| status["nodes"][victim - 1].clone())
    };
    let (code, _, stderr) = cluster.ask(leader, &["fence", &victims]).expect("an answer");
    assert_eq!(code, 0, "{stderr}");
    wait_until("it is out", || {
        shown(&cluster).is_some_and(|node| node["state"] == "fenced" && node["jobs"] == 0)
    });
    let (code, _, stderr) = cluster.ask(leader, &["fence", "77"]).expect("an answer");
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("there is no node 77"), "{stderr}");
    cluster.ask(leader, &["admit", &victims]).expect("an answer");
    wait_until("it is in again", || shown(&cluster).is_some_and(|node| node["state"] == "running"));
    cluster.all_end_with(0);
    same_everywhere(&cluster);
}
