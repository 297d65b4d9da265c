//! Signals in the middle of a run. The run ends in order, and the next command continues it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::workdir::DEADLINE;
use crate::harness::{Running, SiteResponse, TestSite, Workdir, wait_until};

const PAGES: usize = 24;
const AT_ONCE: &str = "loader.fetch.parallelism=4";

/// A site whose pages from number `quick` on take a second, and definitions for all pages. This leaves
/// time for a signal in the middle of the run, on a busy machine too.
fn slow_site(quick: usize) -> (TestSite, Workdir) {
    let site = TestSite::start();
    pages_take(&site, quick, Duration::from_secs(1));
    let locators: Vec<(String, String)> =
        (0..PAGES).map(|n| (format!("n{n:02}"), site.url(&format!("/{n:02}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let work = Workdir::with_defs(&job(&locators, TITLE));
    (site, work)
}

fn pages_take(site: &TestSite, quick: usize, slow: Duration) {
    site.otherwise(move |request, _| {
        let number: usize = request.path[1..].parse().unwrap_or(0);
        let delay = if number < quick { Duration::from_millis(20) } else { slow };
        SiteResponse::html(titled(&request.path.replace('/', "page "))).delay(delay)
    });
}

fn all_rows() -> Vec<String> {
    (0..PAGES).map(|n| format!("n{n:02}|g|title|page {n:02}")).collect()
}

/// The number of requests for each page.
fn visits(site: &TestSite) -> BTreeMap<String, usize> {
    let mut visits = BTreeMap::new();
    for hit in site.log() {
        *visits.entry(hit.path).or_default() += 1;
    }
    visits
}

/// Checks that the file of an interrupted run has only complete rows, each once. Returns their number.
fn assert_whole_rows(work: &Workdir) -> usize {
    let text = work.read("output/latest/data.txt");
    assert!(text.is_empty() || text.ends_with('\n'), "half a row: {text:?}");
    let rows = work.latest();
    let mut distinct = rows.clone();
    distinct.dedup();
    assert_eq!(rows, distinct, "a row is there twice");
    let all = all_rows();
    assert!(rows.iter().all(|row| all.contains(row)), "{rows:?}");
    rows.len()
}

fn started(work: &Workdir, site: &TestSite, settings: &[&str], pages: usize) -> Running {
    let before = site.log().len();
    let running = work.start_run(settings);
    wait_until("some pages are asked for", || site.log().len() >= before + pages);
    running
}

/// Sends a signal in the middle of a run and then runs to the end.
fn drained_by(signal: &str, code: i32) {
    let (site, work) = slow_site(5);
    let running = started(&work, &site, &[AT_ONCE], 7);
    running.signal(signal);
    let ending = running.end();
    assert_eq!(ending.code, code, "{ending:?}");
    assert!(ending.stderr.contains("cancelled"), "{}", ending.stderr);
    let report = work.report();
    assert_eq!(report["finishReason"], "cancelled");
    let rows = assert_whole_rows(&work);
    // Requests in flight were finished, so every page that was asked for has a row.
    assert_eq!(rows, site.log().len());
    assert_eq!(report["jobs"]["done"], rows);
    assert_eq!(report["jobs"]["pending"], PAGES - rows);
    assert!(rows < PAGES, "the run was over before the signal");

    pages_take(&site, PAGES, Duration::ZERO);
    let ending = work.run(&[AT_ONCE]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stderr.contains("continued"), "{}", ending.stderr);
    assert_eq!(work.latest(), all_rows());
    assert!(visits(&site).values().all(|count| *count == 1), "{:?}", visits(&site));
    assert_eq!(
        work.list("output"),
        ["2020Jul01-102005", "latest"],
        "the run continued in another folder"
    );
}

#[test]
fn ctrl_c_drains_and_the_run_can_be_continued() {
    drained_by("INT", 130);
}

#[test]
fn sigterm_drains_and_the_run_can_be_continued() {
    drained_by("TERM", 143);
}

#[test]
fn a_second_signal_does_not_wait_for_jobs_in_flight() {
    let site = TestSite::start();
    site.page("/0", titled("zero"));
    site.recovers("/1", 1, SiteResponse::silence(), SiteResponse::html(titled("one")));
    let (zero, one) = (site.url("/0"), site.url("/1"));
    let work = Workdir::with_defs(&job(&[("a", &zero), ("b", &one)], TITLE));
    let settings = ["shutdown.timeout=1h", "loader.idle.timeout=1h", "loader.total.timeout=1h"];
    let mut running = work.start_run(&settings);
    wait_until("the silent page is asked for", || site.hits("/1") == 1);
    running.signal("INT");
    wait_until("the second signal ends the process", || {
        // Nothing shows that the process has handled the first signal, so the second one is repeated.
        running.signal_if_there("TERM");
        running.has_ended()
    });
    let ending = running.end();
    assert_eq!(ending.code, 143, "{ending:?}");
    assert_eq!(work.report()["finishReason"], "cancelled");
    assert_eq!(work.latest(), ["a|g|title|zero"]);
    assert_eq!(work.rows(&[]).len(), 2);
    assert_eq!((site.hits("/0"), site.hits("/1")), (1, 2));
}

#[test]
fn a_drain_ends_at_the_shutdown_timeout() {
    let site = TestSite::start();
    site.recovers("/", 1, SiteResponse::silence(), SiteResponse::html(titled("x")));
    let work = Workdir::with_defs(&job(&[("a", &site.url("/"))], TITLE));
    let running = started(&work, &site, &["shutdown.timeout=200ms"], 1);
    running.signal("TERM");
    assert_eq!(running.end().code, 143);
    assert_eq!(work.rows(&[]), ["a|g|title|x"]);
}

#[test]
fn repeated_kills_lose_no_row_and_write_no_row_twice() {
    let (site, work) = slow_site(PAGES);
    let mut written: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..4 {
        let running = started(&work, &site, &[AT_ONCE], 4 + round);
        running.signal("KILL");
        assert_eq!(running.end().code, 137);
        let text = work.read("output/latest/data.txt");
        let (visits, all) = (visits(&site), all_rows());
        let whole: Vec<&str> =
            text.lines().filter(|row| all.iter().any(|known| known == row)).collect();
        assert!(whole.len() + 1 >= text.lines().count(), "more than the last row is torn: {text}");
        for row in whole {
            let page = format!("/{}", &row[row.len() - 2..]);
            written.entry(page.clone()).or_insert(visits[&page]);
        }
    }
    let ending = work.run(&[AT_ONCE]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(work.latest(), all_rows());
    let visits = visits(&site);
    for (page, count) in written {
        assert_eq!(visits[&page], count, "{page} was loaded again though its row was in the file");
    }
    assert_eq!(work.report()["jobs"]["done"], PAGES);
    assert_eq!(work.report()["rows"]["d"], PAGES);
}

#[test]
fn a_half_row_after_a_kill_is_removed() {
    let (site, work) = slow_site(5);
    let running = started(&work, &site, &[], 1);
    wait_until("rows are in the file", || !work.read("output/latest/data.txt").is_empty());
    running.signal("KILL");
    assert_eq!(running.end().code, 137);
    pages_take(&site, PAGES, Duration::ZERO);
    // As if the process had written half a row that the ledger does not know.
    let path = work.path("output/latest/data.txt");
    let torn = fs::read_to_string(&path).unwrap() + "n23|g|ti";
    fs::write(&path, torn).unwrap();
    let ending = work.run(&[AT_ONCE]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(work.latest(), all_rows());
}

#[test]
fn canonical_order_survives_a_cancel() {
    let (site, work) = slow_site(5);
    let settings = [AT_ONCE, "output.order=canonical"];
    let running = started(&work, &site, &settings, 8);
    running.signal("INT");
    assert_eq!(running.end().code, 130);
    assert_whole_rows(&work);
    pages_take(&site, PAGES, Duration::ZERO);
    assert_eq!(work.run(&settings).code, 0);
    let rows = work.lines("output/latest/data.txt");
    assert_eq!(rows, all_rows());
}

#[test]
fn a_deleted_output_is_written_again_when_the_run_continues() {
    let (site, work) = slow_site(5);
    let running = started(&work, &site, &[AT_ONCE], 8);
    running.signal("INT");
    assert_eq!(running.end().code, 130);
    pages_take(&site, PAGES, Duration::ZERO);
    fs::remove_dir_all(work.path("output")).unwrap();
    assert_eq!(work.run(&[AT_ONCE]).code, 0);
    assert_eq!(work.latest(), all_rows());
    assert!(visits(&site).values().all(|count| *count == 1));
}

#[test]
fn a_pending_retry_after_does_not_delay_the_shutdown() {
    let site = TestSite::start();
    site.recovers("/", 1, SiteResponse::busy(503, "3000"), SiteResponse::html(titled("x")));
    let work = Workdir::with_defs(&job(&[("a", &site.url("/"))], TITLE));
    let settings = ["loader.retryAfter.max=1h", "shutdown.timeout=1h"];
    let running = started(&work, &site, &settings, 1);
    // Whether the ledger has the answer or not, the process must not wait for 50 minutes.
    running.signal("INT");
    let ending = running.end();
    assert_eq!(ending.code, 130, "{ending:?}");
    assert_eq!(work.report()["jobs"]["pending"], 1);
}

#[test]
fn progress_is_printed_during_a_run() {
    let (_site, work) = slow_site(0);
    let running = work.start_run(&["progress.interval=50ms"]);
    wait_until("two lines of progress", || running.stderr().matches("progress: ").count() >= 2);
    running.signal("INT");
    let ending = running.end();
    assert_eq!(ending.code, 130, "{ending:?}");
    assert!(ending.stderr.contains("23 pending, 0 rows"), "{}", ending.stderr);
}

#[test]
fn a_signal_after_the_last_page_changes_nothing() {
    let site = TestSite::start();
    let slow = SiteResponse::html(titled("x")).delay(Duration::from_millis(300));
    site.answer("/", slow);
    let work = Workdir::with_defs(&job(&[("a", &site.url("/"))], TITLE));
    let running = started(&work, &site, &[], 1);
    running.signal("INT");
    let ending = running.end();
    // The only job was in flight and was finished, so there is nothing to continue.
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(work.report()["finishReason"], "finished");
    assert_eq!(work.latest(), ["a|g|title|x"]);
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(site.hits("/"), 2, "the next run must load the page again");
}

#[test]
fn a_signal_during_startup_ends_with_its_exit_code() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let (site, work) = slow_site(PAGES);
        // Reading settings from a pipe without a writer never ends.
        let made = Command::new("mkfifo").arg(work.path("settings.yml")).status().unwrap();
        assert!(made.success());
        let mut running = work.start(&["run", "defs", "--config", "settings.yml"]);
        wait_until("the process handles signals", || running.catches_term());
        running.signal(signal);
        assert!(running.ends_within(DEADLINE), "the process does not end");
        assert_eq!((running.code(), running.was_killed()), (Some(code), false));
        assert!(site.log().is_empty() && !work.exists("data"), "a run began");
    }
}
