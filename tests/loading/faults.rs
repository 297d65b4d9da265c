//! One page with one fault. The run gives its rows or a reason, and correct counts.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{SiteResponse, TestSite, Workdir};

/// Runs a page `bad`, set up by the closure, and a page `good`. Returns the report and the site.
fn run(
    bad: impl FnOnce(&TestSite),
    settings: &[&str],
    code: i32,
    rows: &[&str],
) -> (Value, TestSite) {
    let site = TestSite::start();
    site.page("/good", titled("good"));
    bad(&site);
    let locators = [("bad", site.url("/bad")), ("good", site.url("/good"))];
    let locators = locators.each_ref().map(|(name, url)| (*name, url.as_str()));
    let work = Workdir::with_defs(&job(&locators, TITLE));
    let ending = work.run(settings);
    assert_eq!(ending.code, code, "{}", ending.stderr);
    assert_eq!(work.latest(), rows);
    (work.report(), site)
}

/// Runs a page that fails because of the fault. Returns the reason, the site and the report.
fn fails_with(response: SiteResponse, settings: &[&str]) -> (String, TestSite, Value) {
    let (report, site) =
        run(|site| site.answer("/bad", response), settings, 4, &["good|g|title|good"]);
    assert_eq!(report["jobs"], json!({ "done": 1, "failed": 1, "pending": 0 }));
    assert_eq!(report["pages"]["failed"], 1);
    assert_eq!(report["pages"]["fetched"], 1);
    assert_eq!(report["failures"].as_array().unwrap().len(), 1);
    assert_eq!(report["failures"][0]["name"], "bad");
    let reasons = report["failures"][0]["reasons"].as_array().unwrap();
    let reasons: Vec<&str> = reasons.iter().map(|reason| reason.as_str().unwrap()).collect();
    (reasons.join("; "), site, report)
}

/// Runs a page that fails `times` times and then answers. Returns the number of its requests and the
/// report.
fn recovers(times: usize, fault: SiteResponse, settings: &[&str]) -> (usize, Value) {
    let then = SiteResponse::html(titled("at last"));
    let (report, site) = run(
        |site| site.recovers("/bad", times, fault, then),
        settings,
        0,
        &["bad|g|title|at last", "good|g|title|good"],
    );
    assert_eq!(report["jobs"], json!({ "done": 2, "failed": 0, "pending": 0 }));
    assert_eq!(report["retries"], times);
    (site.hits("/bad"), report)
}

#[test]
fn a_status_404_is_not_retried() {
    let (reason, site, report) = fails_with(SiteResponse::status(404), &[]);
    assert!(reason.contains("404"), "{reason}");
    assert_eq!(site.hits("/bad"), 1);
    assert_eq!(report["httpStatus"], json!({ "200": 1, "404": 1 }));
    assert_eq!(report["retries"], 0);
}

#[test]
fn a_temporary_server_error_is_retried() {
    let (hits, report) = recovers(2, SiteResponse::status(500), &[]);
    assert_eq!(hits, 3);
    assert_eq!(report["httpStatus"], json!({ "200": 2, "500": 2 }));
}

#[test]
fn a_lasting_server_error_fails_the_page_with_the_number_of_attempts() {
    let (reason, site, report) = fails_with(SiteResponse::status(503), &["job.attempts.max=3"]);
    assert_eq!(site.hits("/bad"), 3);
    assert!(reason.contains("503") && reason.contains('3'), "{reason}");
    assert!(reason.contains("3 times") || reason.contains("3 attempts"), "{reason}");
    assert_eq!(report["retries"], 2);
    assert_eq!(report["httpStatus"]["503"], 3);
}

#[test]
fn broken_connections_are_retried() {
    assert_eq!(recovers(1, SiteResponse::hang_up(), &[]).0, 2);
    assert_eq!(recovers(1, SiteResponse::html(titled("half")).cut_after(9), &[]).0, 2);
    assert_eq!(
        recovers(1, SiteResponse::raw_bytes("SSH-2.0-OpenSSH\r\n"), &["job.attempts.max=9"]).0,
        2
    );
}

#[test]
fn a_truncated_body_is_never_parsed() {
    let page = titled("half") + &"<p>x</p>".repeat(100);
    let (reason, site, _) =
        fails_with(SiteResponse::html(page.clone()).cut_after(60), &["job.attempts.max=2"]);
    assert_eq!(site.hits("/bad"), 2);
    assert!(reason.contains("/bad"), "{reason}");
    let (_, site, _) =
        fails_with(SiteResponse::html(page).chunked().cut_after(60), &["job.attempts.max=2"]);
    assert_eq!(site.hits("/bad"), 2);
}

#[test]
fn a_page_that_never_answers_fails_after_the_idle_timeout() {
    let settings = ["loader.idle.timeout=2s", "job.attempts.max=2"];
    let (reason, site, _) = fails_with(SiteResponse::silence(), &settings);
    assert!(reason.contains("timed out after 2 s without data"), "{reason}");
    assert_eq!(site.hits("/bad"), 2);
}

#[test]
fn a_body_that_never_completes_fails_after_the_total_timeout() {
    let drip = SiteResponse::huge(1 << 20).drip(1, Duration::from_millis(50));
    let settings = ["loader.total.timeout=3s", "job.attempts.max=1"];
    let (reason, _, _) = fails_with(drip, &settings);
    assert!(reason.contains("timed out"), "{reason}");
}

#[test]
fn a_slow_page_within_its_time_is_loaded() {
    let slow = SiteResponse::html(titled("slow"))
        .delay(Duration::from_millis(400))
        .drip(20, Duration::from_millis(50));
    let (report, _) =
        run(|site| site.answer("/bad", slow), &[], 0, &["bad|g|title|slow", "good|g|title|good"]);
    assert_eq!(report["retries"], 0);
}

#[test]
fn a_refused_connection_fails_the_page() {
    let work = Workdir::with_defs(&job(&[("dead", &TestSite::dead_url("/x"))], TITLE));
    let ending = work.run(&["job.attempts.max=2"]);
    assert_eq!(ending.code, 4, "{ending:?}");
    assert_eq!(work.report()["retries"], 1);
    assert!(ending.stderr.contains("refused"), "{}", ending.stderr);
}

#[test]
fn redirects_are_followed_to_the_final_page() {
    let (report, site) = run(
        |site| {
            site.answer("/bad", SiteResponse::redirect("/one"));
            site.answer("/one", SiteResponse::redirect(&site.url("/two")).with_status(308));
            site.page("/two", titled("two"));
        },
        &[],
        0,
        &["bad|g|title|two", "good|g|title|good"],
    );
    assert_eq!(report["pages"]["fetched"], 2);
    assert_eq!(site.log().len(), 4);
}

#[test]
fn redirects_in_a_circle_are_not_retried() {
    let (reason, site, report) =
        fails_with(SiteResponse::redirect("/bad"), &["loader.redirects.max=4"]);
    assert!(reason.contains("more than 4 redirects"), "{reason}");
    assert_eq!(site.hits("/bad"), 5);
    assert_eq!(report["retries"], 0);
}

#[test]
fn a_redirect_to_a_local_file_is_refused() {
    let (reason, _, _) = fails_with(SiteResponse::redirect("file:///etc/passwd"), &[]);
    assert!(reason.contains("refused"), "{reason}");
}

#[test]
fn a_huge_body_is_refused_without_being_kept() {
    let (reason, site, report) = fails_with(SiteResponse::huge(1 << 30).chunked(), &[]);
    assert!(reason.contains("16 MiB") || reason.contains("16777216"), "{reason}");
    assert_eq!(site.hits("/bad"), 1);
    let peak = report["peakMemoryBytes"].as_u64().unwrap();
    assert!(peak < 200 << 20, "{peak} bytes of memory");
}

#[test]
fn a_compressed_page_counts_with_its_unpacked_size() {
    let page = titled("packed") + &"<p>filler</p>".repeat(10_000);
    let packed = SiteResponse::gzip(page.as_bytes());
    let (report, _) = run(
        |site| site.answer("/bad", packed),
        &[],
        0,
        &["bad|g|title|packed", "good|g|title|good"],
    );
    assert_eq!(report["bytes"], page.len() + titled("good").len());
}

#[test]
fn a_body_that_is_too_large_when_unpacked_is_refused() {
    let packed = SiteResponse::gzip(&vec![b'x'; 200_000]);
    let (reason, _, _) = fails_with(packed, &["loader.body.max=100000"]);
    assert!(reason.contains("100000") || reason.contains("97"), "{reason}");
}

#[test]
fn damaged_compression_fails_only_its_page() {
    let damaged = SiteResponse::raw(&[("Content-Encoding", "gzip")], "no gzip at all");
    let (reason, _, _) = fails_with(damaged, &["job.attempts.max=2"]);
    assert!(reason.contains("/bad"), "{reason}");
}

#[test]
fn an_empty_body_is_a_failure() {
    let (reason, _, _) = fails_with(SiteResponse::html(""), &["job.attempts.max=2"]);
    assert!(reason.contains("empty"), "{reason}");
    fails_with(SiteResponse::status(204), &["job.attempts.max=2"]);
}

#[test]
fn unknown_schemes_and_missing_files_fail_their_jobs() {
    let locators = [("a", "gopher://host/"), ("b", "nowhere.html"), ("c", "here.html"), ("d", ".")];
    let work = Workdir::with_defs(&job(&locators, TITLE));
    work.write("here.html", titled("here"));
    let ending = work.run(&[]);
    assert_eq!(ending.code, 4, "{ending:?}");
    assert_eq!(work.latest(), ["c|g|title|here"]);
    assert_eq!(work.report()["jobs"], json!({ "done": 1, "failed": 3, "pending": 0 }));
    for word in ["gopher", "nowhere.html"] {
        assert!(ending.stderr.contains(word), "{word}: {}", ending.stderr);
    }
}
