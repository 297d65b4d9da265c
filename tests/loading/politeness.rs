//! The pause, the parallelism and `Retry-After` of each host.

use std::time::Duration;

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{PageGate, SiteResponse, TestSite, Workdir, wait_until};

/// Definitions for the given number of pages of each site, site by site.
fn pages_of(sites: &[(&TestSite, usize)]) -> String {
    let locators: Vec<(String, String)> = sites
        .iter()
        .enumerate()
        .flat_map(|(place, (site, count))| {
            (0..*count).map(move |n| (format!("s{place}p{n}"), site.url(&format!("/{n}"))))
        })
        .collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    job(&locators, TITLE)
}

fn serving(host: &str, response: SiteResponse) -> TestSite {
    let site = TestSite::start_on(host);
    site.otherwise(move |_, _| response.clone());
    site
}

fn page() -> SiteResponse {
    SiteResponse::html(titled("x"))
}

#[test]
fn a_host_gets_one_request_at_a_time_with_a_pause() {
    let site = serving("127.0.0.1", page());
    let work = Workdir::with_defs(&pages_of(&[(&site, 5)]));
    assert_eq!(work.rows(&["loader.fetch.delay=200"]).len(), 5);
    assert_eq!(site.max_parallel(), 1);
    site.assert_paused(Duration::from_millis(200));
}

#[test]
fn requests_keep_their_pause_whether_pages_are_fast_or_slow() {
    for (parallelism, slow) in [("1", 0), ("3", 140)] {
        let site = TestSite::start();
        site.otherwise(move |request, _| {
            // Some pages answer at once, others take longer than one or two pauses.
            let number: u64 = request.path.trim_start_matches('/').parse().unwrap();
            page().delay(Duration::from_millis(slow * (number % 3) / 2))
        });
        let work = Workdir::with_defs(&pages_of(&[(&site, 110)]));
        let parallelism = format!("loader.fetch.parallelism={parallelism}");
        assert_eq!(work.rows(&["loader.fetch.delay=60", &parallelism]).len(), 110);
        site.assert_paused(Duration::from_millis(60));
        assert_eq!(site.max_parallel() > 1, slow > 0);
    }
}

#[test]
fn redirects_from_host_to_host_keep_the_pauses_of_both() {
    let (from, to) = (TestSite::start_on("127.0.0.2"), serving("127.0.0.3", page()));
    let there = to.url("");
    from.otherwise(move |request, _| SiteResponse::redirect(&format!("{there}{}", request.path)));
    let work = Workdir::with_defs(&pages_of(&[(&from, 15), (&to, 15)]));
    let rows = work.rows(&["loader.fetch.delay=100", "loader.fetch.parallelism=3"]);
    assert_eq!(rows.len(), 30);
    assert_eq!((from.log().len(), to.log().len()), (15, 30));
    from.assert_paused(Duration::from_millis(100));
    to.assert_paused(Duration::from_millis(100));
}

#[test]
fn a_host_never_gets_more_requests_at_once_than_its_parallelism() {
    let gate = PageGate::at(0);
    let site = serving("127.0.0.1", page().held_by(&gate, 0));
    let work = Workdir::with_defs(&pages_of(&[(&site, 12)]));
    let running = work.start_run(&["loader.fetch.parallelism=3"]);
    wait_until("three pages are asked for", || site.log().len() == 3);
    gate.open();
    assert_eq!(running.end().code, 0);
    assert_eq!((work.latest().len(), site.max_parallel()), (12, 3));
}

#[test]
fn connections_are_reused() {
    let site = serving("127.0.0.1", page());
    let work = Workdir::with_defs(&pages_of(&[(&site, 10)]));
    assert_eq!(work.rows(&[]).len(), 10);
    assert!(site.connections() <= 3, "{} connections", site.connections());
}

#[test]
fn a_host_that_never_answers_does_not_delay_another_host() {
    let silent = serving("127.0.0.2", SiteResponse::silence());
    let quick = serving("127.0.0.3", page());
    // The silent host has more jobs than the process takes at a time.
    let work = Workdir::with_defs(&pages_of(&[(&silent, 100), (&quick, 20)]));
    let running = work.start_run(&["loader.fetch.parallelism=8", "job.takeLimit=8"]);
    wait_until("all pages of the quick host are asked for", || quick.log().len() == 20);
    assert!(silent.log().len() <= 8);
    assert_eq!(running.end_now().code, 130);
}

#[test]
fn retry_after_pauses_the_whole_host_and_no_other() {
    let busy = TestSite::start_on("127.0.0.2");
    busy.otherwise(|_, _| page());
    busy.recovers("/0", 1, SiteResponse::busy(429, "2"), page());
    let calm = serving("127.0.0.3", page());
    let work = Workdir::with_defs(&pages_of(&[(&busy, 6), (&calm, 6)]));
    let rows = work.rows(&[]);
    assert_eq!(rows.len(), 12);
    let log = busy.log();
    let refused = log.iter().position(|hit| hit.path == "/0").unwrap();
    let (end, next) = (log[refused].end, &log[refused + 1]);
    assert!(next.at - end >= Duration::from_millis(1900), "{:?}", next.at - end);
    let meanwhile = calm.log().iter().filter(|hit| hit.at < next.at).count();
    assert!(meanwhile > 3, "the second host waited: {meanwhile} of its pages were asked for");
    let report = work.report();
    assert_eq!(report["httpStatus"]["429"], 1);
    assert_eq!(report["retries"], 1);
}

#[test]
fn a_long_retry_after_is_cut_to_the_maximum() {
    let busy = TestSite::start();
    busy.recovers("/0", 1, SiteResponse::busy(503, "86400"), page());
    let work = Workdir::with_defs(&pages_of(&[(&busy, 1)]));
    let rows = work.rows(&["loader.retryAfter.max=300ms"]);
    assert_eq!(rows.len(), 1);
}

#[test]
fn local_files_have_no_pause() {
    let locators: Vec<(String, String)> =
        (0..30).map(|n| (format!("n{n}"), format!("p{n}.html"))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let work = Workdir::with_defs(&job(&locators, TITLE));
    for (_, file) in &locators {
        work.write(file, titled("x"));
    }
    // A pause between two files would take longer than the deadline of the test.
    assert_eq!(work.rows(&["loader.fetch.delay=1h"]).len(), 30);
}
