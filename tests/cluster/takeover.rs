//! How long a cluster is without a leader, and jobs without a node, after a SIGKILL. The bounds are
//! those of a busy machine; the figures are printed. `ROUNDS=50 cargo test --test spoonbill takeover
//! -- --nocapture` measures more.

use std::time::{Duration, Instant};

use super::{QUICK, three, three_at_gate};
use crate::harness::{Cluster, Gate, Response, Site, TITLE, job, titled, wait_until};

/// A session that outlives every deadline of the tests. Jobs change hands all the same, because the
/// closed connections of a dead node are a hint.
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
        assert!(cluster.kill(leader), "it had ended by itself");
        let killed = Instant::now();
        // In turn, and what each says of itself.
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
        let shown = |cluster: &Cluster| {
            let status = cluster.status(others[0]);
            status.map(|status| status["nodes"][leader - 1].clone()).unwrap_or_default()
        };
        // Else its former session could be taken for the next one.
        wait_until("it is missed", || shown(&cluster)["state"] == "silent");
        cluster.start(leader);
        wait_until("it is back", || {
            let back = shown(&cluster);
            back["state"] == "running" && back["jobs"].as_u64() > Some(0)
        });
    }
    print_figures("leader takeover", elections);
    print_figures("a job finished after a leader was killed", jobs);
    cluster.ask(1, &["cancel"]).expect("an answer");
    cluster.all_end_with(130);
}

/// Pages that hang until the gate opens when they are asked for the first time.
fn hanging_site(pages: usize, gate: &Gate) -> (Site, String) {
    let (site, gate) = (Site::start(), gate.clone());
    site.otherwise(move |request, nth| {
        let page = Response::html(titled(&request.path.replace('/', "page ")));
        if nth == 1 { page.held_by(&gate, 0) } else { page }
    });
    let locators: Vec<(String, String)> =
        (0..pages).map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    (site, job(&locators, TITLE))
}

/// A node that holds jobs dies; from then until others have asked for each of their pages, and whether
/// it led.
fn jobs_change_hands(pages: usize, settings: &[&str]) -> (Duration, bool) {
    let gate = Gate::at(0);
    let (site, defs) = hanging_site(pages, &gate);
    let settings: Vec<&str> =
        QUICK.iter().chain(settings).copied().chain(["cluster.end.wait=0s"]).collect();
    let mut cluster = Cluster::of(3, &defs, &settings);
    cluster.start_all();
    wait_until("all pages are asked for", || site.log().len() >= pages);
    let leader = cluster.led();
    let holds = |cluster: &Cluster, node: usize| {
        let status = cluster.status(leader).expect("an answer");
        status["nodes"][node - 1]["jobs"].as_u64().unwrap_or(0)
    };
    // Most jobs, and not the leader if there is a choice.
    let victim = cluster.seats().max_by_key(|node| {
        (holds(&cluster, *node).min(1), *node != leader, holds(&cluster, *node))
    });
    let victim = victim.unwrap();
    let held = holds(&cluster, victim) as usize;
    assert!(held > 0, "nobody holds a job");
    let again = || -> Vec<Instant> {
        let log = site.log();
        let second = |place: usize| log[..place].iter().any(|hit| hit.path == log[place].path);
        (0..log.len()).filter(|place| second(*place)).map(|place| log[place].at).collect()
    };
    assert!(again().is_empty());
    assert!(cluster.kill(victim));
    let killed = Instant::now();
    wait_until("others have its jobs", || again().len() >= held);
    let last = again().into_iter().max().unwrap();
    gate.open();
    for node in cluster.seats().filter(|node| *node != victim) {
        let ending = cluster.end(node);
        assert_eq!(ending.code, 0, "node {node}: {ending:?}");
    }
    (last - killed, victim == leader)
}

#[test]
fn jobs_of_a_dead_node_are_taken_over() {
    let (mut shared, mut of_leaders, mut polite) = (Vec::new(), Vec::new(), Vec::new());
    let (least, mut round) = (rounds(3), 0);
    // Until somebody has died who did not lead.
    while round < least || shared.is_empty() && round < least + 12 {
        if round.is_multiple_of(2) {
            let settings = ["loader.fetch.parallelism=8", "job.takeLimit=12", ENDLESS_SESSION];
            let (time, led) = jobs_change_hands(8, &settings);
            if led { &mut of_leaders } else { &mut shared }.push(time);
        } else {
            let settings =
                ["loader.fetch.delay=50ms", "loader.fetch.parallelism=4", "job.takeLimit=12"];
            polite.push(jobs_change_hands(4, &settings).0);
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
    let gate = Gate::at(0);
    let (site, defs) = hanging_site(3, &gate);
    let more = ["loader.fetch.parallelism=8", "task.timeout=2s"];
    let settings: Vec<&str> = QUICK.iter().chain(&more).copied().collect();
    let mut cluster = Cluster::of(3, &defs, &settings);
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
    assert!(site.log().len() <= 42, "only what it had in hand was loaded again");
}
