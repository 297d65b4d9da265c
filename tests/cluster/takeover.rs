//! Another node takes over after a SIGKILL: the lead, and the jobs of the killed node. The times are
//! printed. `ROUNDS=50 cargo test --test spoonbill takeover -- --nocapture` measures more of them.

use std::time::{Duration, Instant};

use super::{QUICK, three, three_at_gate};
use crate::harness::{
    PageGate, SiteResponse, TITLE, TestCluster, TestSite, job, titled, wait_until,
};

/// A session that does not expire during a test. Jobs of a dead node still go to other nodes, because
/// its closed connections are a hint.
const ENDLESS_SESSION: &str = "cluster.session.ttl=1h";

fn rounds(otherwise: usize) -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn print_figures(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: {} rounds, p50 {:.2?}, p99 {:.2?}", times.len(), at(50), at(99));
}

#[test]
fn another_node_leads_after_the_leader_is_killed() {
    let (_site, mut cluster) = three(4000, Duration::from_millis(300), &["job.takeLimit=3"]);
    cluster.start_all();
    cluster.done(3);
    let (mut elections, mut jobs) = (Vec::new(), Vec::new());
    for _ in 0..rounds(5) {
        let leader = cluster.led();
        let others: Vec<usize> = cluster.seats().filter(|node| *node != leader).collect();
        assert!(cluster.kill(leader), "the leader had ended");
        let killed = Instant::now();
        let mut done = None;
        let leads = wait_until("another node leads", || {
            others.iter().any(|node| {
                let status = cluster.status(*node);
                status.is_some_and(|status| {
                    done = status["run"]["done"].as_u64();
                    status["leader"].as_u64() == Some(*node as u64)
                })
            })
        });
        elections.push(leads);
        wait_until("jobs are done", || {
            let status = cluster.status(others[0]);
            status.is_some_and(|status| status["run"]["done"].as_u64() > done)
        });
        jobs.push(killed.elapsed());
        let shown = |cluster: &TestCluster| {
            let status = cluster.status(others[0]);
            status.map(|status| status["nodes"][leader - 1].clone()).unwrap_or_default()
        };
        // Otherwise the status below could still show its old session.
        wait_until("the killed node is silent", || shown(&cluster)["state"] == "silent");
        cluster.start(leader);
        wait_until("the killed node works again", || {
            let back = shown(&cluster);
            back["state"] == "running" && back["jobs"].as_u64() > Some(0)
        });
    }
    print_figures("leader takeover", elections);
    print_figures("a job finished after a leader was killed", jobs);
    cluster.ask(1, &["cancel"]).expect("an answer");
    cluster.all_end_with(130);
}

/// A site whose pages wait for the gate at the first request and answer later ones at once.
fn hanging_site(pages: usize, gate: &PageGate) -> (TestSite, String) {
    let (site, gate) = (TestSite::start(), gate.clone());
    site.otherwise(move |request, nth| {
        let page = SiteResponse::html(titled(&request.path.replace('/', "page ")));
        if nth == 1 { page.held_by(&gate, 0) } else { page }
    });
    let locators: Vec<(String, String)> =
        (0..pages).map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    (site, job(&locators, TITLE))
}

/// Kills a node that holds jobs. Returns the time until other nodes have asked for all of its pages, and
/// whether the node was the leader.
fn jobs_are_taken_over(pages: usize, settings: &[&str]) -> (Duration, bool) {
    let gate = PageGate::at(0);
    let (site, defs) = hanging_site(pages, &gate);
    let settings: Vec<&str> = QUICK.iter().chain(settings).copied().collect();
    let mut cluster = TestCluster::of(3, &defs, &settings);
    cluster.start_all();
    wait_until("all pages are asked for", || site.log().len() >= pages);
    let leader = cluster.led();
    let holds = |cluster: &TestCluster, node: usize| {
        let status = cluster.status(leader).expect("an answer");
        status["nodes"][node - 1]["jobs"].as_u64().unwrap_or(0)
    };
    // The node with most jobs, and not the leader if there is a choice.
    let victim = cluster.seats().max_by_key(|node| {
        (holds(&cluster, *node).min(1), *node != leader, holds(&cluster, *node))
    });
    let victim = victim.unwrap();
    let held = holds(&cluster, victim) as usize;
    assert!(held > 0, "no node holds a job");
    let again = || -> Vec<Instant> {
        let log = site.log();
        let second = |place: usize| log[..place].iter().any(|hit| hit.path == log[place].path);
        (0..log.len()).filter(|place| second(*place)).map(|place| log[place].at).collect()
    };
    assert!(again().is_empty());
    assert!(cluster.kill(victim));
    let killed = Instant::now();
    wait_until("other nodes ask for its pages", || again().len() >= held);
    let last = again().into_iter().max().unwrap();
    gate.open();
    cluster.done(pages as u64);
    (last - killed, victim == leader)
}

#[test]
fn jobs_of_a_dead_node_are_taken_over() {
    let (mut shared, mut of_leaders, mut polite) = (Vec::new(), Vec::new(), Vec::new());
    let (least, mut round) = (rounds(3), 0);
    // At least one round must kill a node that is not the leader.
    while round < least || shared.is_empty() && round < least + 12 {
        if round.is_multiple_of(2) {
            let settings = ["loader.fetch.parallelism=8", "job.takeLimit=12", ENDLESS_SESSION];
            let (time, led) = jobs_are_taken_over(8, &settings);
            if led { &mut of_leaders } else { &mut shared }.push(time);
        } else {
            let settings =
                ["loader.fetch.delay=50ms", "loader.fetch.parallelism=4", "job.takeLimit=12"];
            polite.push(jobs_are_taken_over(4, &settings).0);
        }
        round += 1;
    }
    for (what, times) in [
        ("job takeover, shared host", shared),
        ("job takeover, shared host, the leader died", of_leaders),
        ("job takeover, polite host", polite),
    ] {
        if !times.is_empty() {
            print_figures(what, times);
        }
    }
}

#[test]
fn a_job_that_hangs_on_a_live_node_goes_to_another_node() {
    let gate = PageGate::at(0);
    let (site, defs) = hanging_site(3, &gate);
    let more = ["loader.fetch.parallelism=8", "task.timeout=2s"];
    let settings: Vec<&str> = QUICK.iter().chain(&more).copied().collect();
    let mut cluster = TestCluster::of(3, &defs, &settings);
    cluster.start_all();
    let paths = ["/000", "/001", "/002"];
    wait_until("all pages are asked for twice", || paths.iter().all(|path| site.hits(path) > 1));
    for path in paths {
        let log = site.log();
        let asked: Vec<Instant> =
            log.iter().filter(|hit| hit.path == path).map(|hit| hit.at).collect();
        let held = asked[1] - asked[0];
        assert!(held > Duration::from_secs(1), "{path} was given away after {held:?}");
    }
    gate.open();
    cluster.all_end_with(0);
    super::same_everywhere(&cluster);
    assert_eq!(super::rows_of(&cluster, 1), super::all_rows(3));
}

#[test]
fn jobs_of_a_dead_worker_go_to_other_nodes() {
    let (site, mut cluster, gate) = three_at_gate(40, 5, &["job.takeLimit=2"]);
    cluster.start_all();
    cluster.start(9);
    cluster.wait_for_jobs(9);
    cluster.kill(9);
    gate.open();
    cluster.all_end_with(0);
    super::same_everywhere(&cluster);
    assert_eq!(super::rows_of(&cluster, 1), super::all_rows(40));
    assert!(site.log().len() <= 42, "pages were loaded again that the worker had not begun");
}
