//! Network partitions, in real network namespaces. A wrong neighbour entry drops all packets in one
//! direction without an error, like a broken switch.

use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{QUICK, all_rows, rows_of, same_everywhere};
use crate::harness::needs::NETWORK_NAMESPACES;
use crate::harness::{SiteResponse, TITLE, TestCluster, TestSite, job, titled, wait_until};
use crate::kill::shop::SeededRandom;

/// The environment variable of the process inside the namespaces.
const INSIDE: &str = "SPOONBILL_TEST_INSIDE";
const SITE: &str = "10.99.0.254";
const PAGES: usize = 70;
const PAUSE: Duration = Duration::from_millis(200);
/// The number of the worker, in tests that have one.
const WORKER: usize = 4;
/// The default of `cluster.session.ttl`.
const SESSION: Duration = Duration::from_millis(3500);

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}

#[test]
fn a_cluster_recovers_from_network_partitions() {
    if !NETWORK_NAMESPACES.are_there() {
        return;
    }
    let prepare = "mount --make-rprivate / && mkdir -p /run/netns && mount -t tmpfs none /run/netns \
                   && ip link set lo up && ip link add hub type bridge";
    let own = std::env::current_exe().unwrap();
    let then = format!("{prepare} && exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", &then])
        .arg(own)
        .args(["cluster::partitions::inside", "--exact", "--ignored", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the test inside the namespaces failed");
    assert!(said.contains("1 passed"), "no test ran inside the namespaces");
}

#[test]
#[ignore = "runs in namespaces that another test creates"]
fn inside() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    ip("link set hub up");
    ip(&format!("addr add {SITE}/24 dev hub"));
    for node in 1..=WORKER {
        ip(&format!("netns add node{node}"));
        ip(&format!("link add to{node} type veth peer name eth0 netns node{node}"));
        ip(&format!("link set to{node} master hub up"));
        ip(&format!("-n node{node} addr add 10.99.0.{node}/24 dev eth0"));
        ip(&format!("-n node{node} link set eth0 up"));
        ip(&format!("-n node{node} link set lo up"));
    }
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for round in 0..rounds {
        scenario("the leader is cut off", leader_cut_off);
        scenario("the leader is heard and does not hear", |cluster| one_way(cluster, false));
        scenario("the leader hears and is not heard", |cluster| one_way(cluster, true));
        scenario("two nodes hear only the third", one_link_cut);
        scenario("links that fail and recover", |cluster| flapping(cluster, 100 + round));
        if is_wanted("cut off but not from the web") {
            cut_off_but_not_from_the_web();
        }
    }
}

/// Drops all packets from one node to another.
fn cut(from: usize, to: usize) {
    ip(&format!(
        "-n node{from} neigh replace 10.99.0.{to} lladdr 02:00:00:00:00:99 dev eth0 nud permanent"
    ));
}

fn heal(from: usize, to: usize) {
    let word = format!("-n node{from} neigh del 10.99.0.{to} dev eth0");
    // This fails if the link was not cut.
    drop(Command::new("ip").args(word.split_whitespace()).output());
}

fn heal_all() {
    for from in 1..=WORKER {
        for to in (1..=WORKER).filter(|to| *to != from) {
            heal(from, to);
        }
    }
}

fn others(node: usize) -> impl Iterator<Item = usize> {
    (1..=3).filter(move |other| *other != node)
}

/// Three nodes in their own network namespaces, for a site whose pages each take a while.
fn stage(pages: usize, takes: Duration, settings: &[&str]) -> (TestSite, TestCluster) {
    let site = TestSite::start_on(SITE);
    site.otherwise(move |request, _| {
        let page = titled(&request.path.replace('/', "page "));
        SiteResponse::html(page).delay(takes)
    });
    let locators: Vec<(String, String)> =
        (0..pages).map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let settings: Vec<&str> = QUICK.iter().chain(settings).copied().collect();
    let peers = (1..=3).map(|node| format!("10.99.0.{node}:7400")).collect();
    let mut cluster = TestCluster::at(peers, &job(&locators, TITLE), &settings);
    cluster.share_secret();
    for node in 1..=WORKER {
        cluster.put_behind(
            node,
            &["/bin/sh", "-c", "exec ip netns exec \"$@\"", "-", &format!("node{node}")],
        );
    }
    cluster.start_all();
    (site, cluster)
}

/// Whether a scenario is to run. `SCENE=leader` runs those with `leader` in their name.
fn is_wanted(name: &str) -> bool {
    std::env::var("SCENE").map_or(true, |wanted| name.contains(&wanted))
}

fn scenario(name: &str, faults: impl Fn(&TestCluster)) {
    if !is_wanted(name) {
        return;
    }
    let start = Instant::now();
    let pause = format!("loader.fetch.delay={}ms", PAUSE.as_millis());
    let own = [pause.as_str(), "loader.fetch.parallelism=1"];
    let (site, mut cluster) = stage(PAGES, Duration::from_millis(40), &own);
    cluster.done(5);
    faults(&cluster);
    heal_all();
    let healed = Instant::now();
    cluster.all_end_with(0);
    let (end, rest) = (start.elapsed(), healed.elapsed());
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(PAGES));
    cluster.fsck();
    let asked = site.log().len();
    println!("{name}: {end:.1?}, {rest:.1?} after it healed, {asked} requests");
    site.assert_paused(PAUSE);
    assert_eq!(site.max_parallel(), 1, "{name}: two requests at the same time");
    assert!(asked * 2 < PAGES * 3, "{name}: {asked} requests for {PAGES} pages");
}

/// Whether something becomes true within a limited time.
fn within(limit: Duration, mut fact: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !fact() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// The times at which a node sent requests to the site.
fn asked_by(site: &TestSite, node: usize) -> Vec<Instant> {
    let own = Some(IpAddr::from([10, 99, 0, node as u8]));
    site.log().iter().filter(|hit| hit.from == own).map(|hit| hit.at).collect()
}

/// A follower and a worker that can reach only the site. They hold jobs when their sessions expire, and
/// must not send further requests. Other nodes do their jobs until both are connected again.
fn cut_off_but_not_from_the_web() {
    const PAGES: usize = 500;
    /// One page is loading when the session expires. The next ones would be loaded after that.
    const TAKES: Duration = Duration::from_secs(8);
    let start = Instant::now();
    let slow = |site: &TestSite, delay| {
        site.otherwise(move |request, _| {
            SiteResponse::html(titled(&request.path.replace('/', "page "))).delay(delay)
        });
    };
    // Nodes take jobs in advance only while pages are fast.
    let quick = Duration::from_millis(20);
    let (site, mut cluster) = stage(PAGES, quick, &["loader.fetch.parallelism=1"]);
    cluster.start(WORKER);
    wait_until("the worker works", || !asked_by(&site, WORKER).is_empty());
    let leader = cluster.led();
    let follower = 1 + leader % 3;
    let lost = [follower, WORKER];
    let have = |jobs: u64| lost.iter().all(|node| jobs_held(&cluster, leader, *node) >= jobs);
    wait_until("both hold jobs", || {
        // A node that has just loaded a slow page takes no jobs in advance until pages are fast again.
        let many = within(Duration::from_secs(10), || have(3));
        slow(&site, TAKES);
        let caught = many && within(Duration::from_millis(300), || have(2));
        if !caught {
            slow(&site, quick);
        }
        caught
    });
    for node in lost {
        for other in (1..=WORKER).filter(|other| *other != node) {
            cut(node, other);
            cut(other, node);
        }
    }
    let (cut_at, before) = (Instant::now(), jobs_done(&cluster, leader));
    let continues = || {
        cut_at.elapsed() > TAKES + Duration::from_millis(1500)
            && jobs_done(&cluster, leader) > before + 1
    };
    wait_until("two nodes finish jobs", continues);
    let healing = Instant::now();
    slow(&site, quick * 2);
    heal_all();
    cluster.all_end_with(0);
    assert_eq!(cluster.end(WORKER).code, 0);
    for node in lost {
        let asked = asked_by(&site, node);
        let meanwhile = asked.iter().filter(|at| **at > cut_at && **at < healing);
        let after: Vec<Duration> = meanwhile.map(|at| *at - cut_at).collect();
        let back = asked.iter().filter(|at| **at >= healing).count();
        println!(
            "  node {node}: sent requests {after:.1?} after the cut, and {back} after it joined again"
        );
        // A node that ignores the end of its session would send its next request after this page.
        let late = (SESSION + TAKES) / 2;
        assert!(after.iter().all(|at| *at < late), "node {node} sent requests without a session");
        assert!(back > 0, "node {node} did not join again");
    }
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(PAGES));
    cluster.fsck();
    let asked = site.log().len();
    assert!(asked * 20 < PAGES * 21, "{asked} requests for {PAGES} pages");
    let (end, rest) = (start.elapsed(), healing.elapsed());
    println!(
        "cut off but not from the web: {end:.1?}, {rest:.1?} after it healed, {asked} requests"
    );
}

/// The number of jobs that a node holds, as another node reports it.
fn jobs_held(cluster: &TestCluster, asked: usize, node: usize) -> u64 {
    let Some(status) = cluster.status(asked) else { return 0 };
    let mut nodes = status["nodes"].as_array().into_iter().flatten();
    let is_meant = |one: &&Value| match node {
        WORKER => one["role"] == "worker",
        seat => one["id"].as_u64() == Some(seat as u64),
    };
    nodes.find(is_meant).and_then(|one| one["jobs"].as_u64()).unwrap_or(0)
}

/// Waits until another node leads.
fn another_leads(cluster: &TestCluster, old: usize) {
    let other = || {
        others(old).any(|node| {
            let status = cluster.status(node);
            status.is_some_and(|status| status["leader"].as_u64() == Some(node as u64))
        })
    };
    let took = wait_until("another node leads", other);
    println!("  another led after {took:.1?}");
}

fn jobs_done(cluster: &TestCluster, node: usize) -> u64 {
    cluster.status(node).and_then(|status| status["run"]["done"].as_u64()).unwrap_or(0)
}

fn leader_cut_off(cluster: &TestCluster) {
    let leader = cluster.led();
    for other in others(leader) {
        cut(leader, other);
        cut(other, leader);
    }
    another_leads(cluster, leader);
    let (other, before) = (1 + leader % 3, jobs_done(cluster, 1 + leader % 3));
    wait_until("the majority finishes jobs", || jobs_done(cluster, other) > before + 5);
}

/// Cuts one direction: a mute leader receives packets but cannot send, a deaf one can only send.
fn one_way(cluster: &TestCluster, mute: bool) {
    let leader = cluster.led();
    for other in others(leader) {
        if mute { cut(leader, other) } else { cut(other, leader) }
    }
    another_leads(cluster, leader);
    let (other, before) = (1 + leader % 3, jobs_done(cluster, 1 + leader % 3));
    wait_until("the majority finishes jobs", || jobs_done(cluster, other) > before + 5);
}

/// Cuts the link between the leader and one other node. The third node hears both.
fn one_link_cut(cluster: &TestCluster) {
    let leader = cluster.led();
    let far = 1 + leader % 3;
    cut(leader, far);
    cut(far, leader);
    let middle = 6 - leader - far;
    let before = jobs_done(cluster, middle);
    wait_until("the cluster finishes jobs", || jobs_done(cluster, middle) > before + 15);
}

fn flapping(cluster: &TestCluster, seed: u64) {
    let mut dice = SeededRandom(seed);
    for _ in 0..16 {
        let from = 1 + dice.below(3) as usize;
        let to = 1 + (from + dice.below(2) as usize) % 3;
        if dice.below(2) == 0 {
            cut(from, to);
        } else {
            heal(from, to);
        }
        if dice.below(8) == 0 {
            heal_all();
        }
        std::thread::sleep(Duration::from_millis(50 + dice.below(900)));
        // An operator may ask for the status at any time.
        cluster.status(from);
    }
}
