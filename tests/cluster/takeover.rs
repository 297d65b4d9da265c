//! How long a cluster is without a leader, and jobs without a node, after a SIGKILL. The bounds are
//! those of a busy machine; the figures are printed. `ROUNDS=50 cargo test --test spoonbill takeover
//! -- --nocapture` measures more.

use std::time::{Duration, Instant};

use super::{QUICK, slow_site, three};
use crate::harness::nodes::within;
use crate::harness::{Cluster, Response, Site, TITLE, job, titled, wait_until};

/// Bounds with room for a machine that does something else besides.
const LEADER_MOST: Duration = Duration::from_secs(5);
const JOBS_MOST: Duration = Duration::from_secs(12);
/// Less than a session lives without a sign of life: the closed connections of a dead node are a hint.
/// Without a leader no time passes, so its own death takes an election more.
const SHARED_MOST: Duration = Duration::from_secs(3);

fn rounds(otherwise: usize) -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn tell(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: {} rounds, p50 {:.2?}, p99 {:.2?}", times.len(), at(50), at(99));
    *times.last().unwrap()
}

#[test]
fn another_node_leads_soon_after_the_leader_is_killed() {
    let (_site, mut cluster) = three(4000, Duration::from_millis(300), &["job.takeLimit=3"]);
    cluster.start_all();
    cluster.done(3);
    let (mut elections, mut jobs) = (Vec::new(), Vec::new());
    for round in 0..rounds(5) {
        let leader = cluster.led();
        let others: Vec<usize> = cluster.seats().filter(|node| *node != leader).collect();
        assert!(cluster.kill(leader), "it had ended by itself");
        let killed = Instant::now();
        // In turn, and what each says of itself.
        let mut done = None;
        let leads = within(Duration::from_secs(30), || {
            others.iter().any(|node| {
                let status = cluster.status(*node);
                status.is_some_and(|status| {
                    done = status["run"]["done"].as_u64();
                    status["leader"].as_u64() == Some(*node as u64)
                })
            })
        });
        elections.push(leads.unwrap_or_else(|| panic!("round {round}: nobody leads")));
        let works = within(Duration::from_secs(30), || {
            let status = cluster.status(others[0]);
            status.is_some_and(|status| status["run"]["done"].as_u64() > done)
        });
        works.unwrap_or_else(|| panic!("round {round}: nobody works"));
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
    let longest = tell("leader takeover", elections);
    tell("a job finished after a leader was killed", jobs);
    assert!(longest < LEADER_MOST, "{longest:?}");
    cluster.ask(1, &["cancel"]).expect("an answer");
    cluster.all_end_with(130);
}

/// Pages that hang when they are asked for the first time.
fn hanging_site(pages: usize) -> (Site, String) {
    let site = Site::start();
    site.otherwise(|request, nth| {
        let hangs = Duration::from_secs(if nth == 1 { 9 } else { 0 });
        Response::html(titled(&request.path.replace('/', "page "))).delay(hangs)
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
    let (site, defs) = hanging_site(pages);
    let settings: Vec<&str> = QUICK.iter().chain(settings).copied().collect();
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
    cluster.start(victim);
    cluster.all_end_with(0);
    (last - killed, victim == leader)
}

#[test]
fn jobs_of_a_dead_node_are_taken_over() {
    let (mut shared, mut of_leaders, mut polite) = (Vec::new(), Vec::new(), Vec::new());
    let (least, mut round) = (rounds(3), 0);
    // Until somebody has died who did not lead.
    while round < least || shared.is_empty() && round < least + 12 {
        if round.is_multiple_of(2) {
            let settings = ["loader.fetch.parallelism=8", "job.takeLimit=12"];
            let (time, led) = jobs_change_hands(8, &settings);
            if led { &mut of_leaders } else { &mut shared }.push(time);
        } else {
            let settings =
                ["loader.fetch.delay=50ms", "loader.fetch.parallelism=4", "job.takeLimit=12"];
            polite.push(jobs_change_hands(4, &settings).0);
        }
        round += 1;
    }
    for (what, times, most) in [
        ("job takeover, shared host", shared, SHARED_MOST),
        ("job takeover, shared host, the leader died", of_leaders, JOBS_MOST),
        ("job takeover, polite host", polite, JOBS_MOST),
    ] {
        if !times.is_empty() {
            let longest = tell(what, times);
            assert!(longest < most, "{what}: {longest:?}");
        }
    }
}

#[test]
fn a_job_that_hangs_on_a_living_node_is_given_to_another() {
    let (site, defs) = hanging_site(3);
    let more = ["loader.fetch.parallelism=8", "task.timeout=2s"];
    let settings: Vec<&str> = QUICK.iter().chain(&more).copied().collect();
    let mut cluster = Cluster::of(3, &defs, &settings);
    cluster.start_all();
    wait_until("all pages are asked for twice", || site.log().len() >= 6);
    for path in ["/000", "/001", "/002"] {
        let log = site.log();
        let asked: Vec<Instant> =
            log.iter().filter(|hit| hit.path == path).map(|hit| hit.at).collect();
        let held = asked[1] - asked[0];
        assert!(held > Duration::from_millis(1800), "{path}: {held:?}");
        assert!(held < Duration::from_secs(8), "{path}: {held:?}");
    }
    cluster.all_end_with(0);
    super::same_everywhere(&cluster);
    assert_eq!(super::rows_of(&cluster, 1), super::all_rows(3));
}

#[test]
fn a_dead_worker_without_a_vote_is_replaced_as_soon() {
    let (site, defs) = slow_site(40, Duration::from_millis(400));
    let settings: Vec<&str> = QUICK.iter().copied().chain(["job.takeLimit=2"]).collect();
    let mut cluster = Cluster::of(3, &defs, &settings);
    cluster.start_all();
    cluster.start(9);
    wait_until("the worker has jobs", || {
        cluster.status(1).is_some_and(|status| {
            let nodes = status["nodes"].as_array().unwrap().clone();
            nodes.iter().any(|node| node["role"] == "worker" && node["jobs"].as_u64() > Some(0))
        })
    });
    cluster.kill(9);
    cluster.all_end_with(0);
    super::same_everywhere(&cluster);
    assert_eq!(super::rows_of(&cluster, 1), super::all_rows(40));
    assert!(site.log().len() <= 42, "only what it had in hand was loaded again");
}
