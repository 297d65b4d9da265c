//! Redirects from host to host. Each host keeps its own pause, and rows show the first address.

use std::time::Duration;

use serde_json::json;

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{PageGate, SiteResponse, TestSite, Workdir, wait_until};

fn two_sites() -> (TestSite, TestSite) {
    (TestSite::start_on("127.0.0.1"), TestSite::start_on("127.0.0.2"))
}

/// Definitions with a locator for each path of a site. The path is also its name.
fn pages_of(site: &TestSite, paths: &[&str]) -> Workdir {
    let urls: Vec<String> = paths.iter().map(|path| site.url(&format!("/{path}"))).collect();
    let locators: Vec<(&str, &str)> =
        paths.iter().zip(&urls).map(|(path, url)| (*path, url.as_str())).collect();
    Workdir::with_defs(&job(&locators, TITLE))
}

#[test]
fn a_host_keeps_its_pause_for_pages_that_redirects_lead_to() {
    let (from, to) = two_sites();
    // All redirects are answered at once, so the pause of the first host does not delay the requests to
    // the second one.
    let gate = PageGate::at(0);
    let paths = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for path in paths {
        let path = format!("/{path}");
        from.answer(&path, SiteResponse::redirect(&to.url(&path)).held_by(&gate, 0));
        to.page(&path, titled(&path));
    }
    let work = pages_of(&from, &paths);
    let running = work.start_run(&["loader.fetch.delay=200ms", "loader.fetch.parallelism=8"]);
    wait_until("all redirects are asked for", || from.log().len() == paths.len());
    gate.open();
    assert_eq!(running.end().code, 0);
    assert_eq!(work.latest(), paths.map(|path| format!("{path}|g|title|/{path}")));
    for site in [&from, &to] {
        site.assert_paused(Duration::from_millis(200));
    }
    let report = work.report();
    assert_eq!(report["httpStatus"], json!({ "200": 8, "302": 8 }));
    assert_eq!((&report["pages"]["fetched"], &report["retries"]), (&json!(8), &json!(0)));
}

#[test]
fn redirects_do_not_raise_the_parallelism_of_a_host() {
    let (from, to) = two_sites();
    let there = to.url("/x");
    from.otherwise(move |_, _| SiteResponse::redirect(&there));
    to.otherwise(|_, _| SiteResponse::html(titled("x")).delay(Duration::from_millis(50)));
    let urls: Vec<(String, String)> =
        (0..8).map(|n| (format!("n{n}"), [&from, &to][n % 2].url(&format!("/{n}")))).collect();
    let locators: Vec<(&str, &str)> =
        urls.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let work = Workdir::with_defs(&job(&locators, TITLE));
    assert_eq!(work.rows(&[]).len(), 8);
    assert_eq!((from.max_parallel(), to.max_parallel(), to.hits("/x")), (1, 1, 4));
}

#[test]
fn retry_after_pauses_the_host_that_sent_it() {
    let (from, to) = two_sites();
    from.answer("/r", SiteResponse::redirect(&to.url("/lim")));
    from.answer("/s", SiteResponse::redirect(&to.url("/ok")));
    from.otherwise(|_, _| SiteResponse::html(titled("here")));
    to.recovers("/lim", 1, SiteResponse::busy(429, "2"), SiteResponse::html(titled("there")));
    to.page("/ok", titled("ok"));
    let work = pages_of(&from, &["r", "s", "p1", "p2", "p3"]);
    work.rows(&["loader.fetch.delay=50ms"]);
    let rows = ["p1", "p2", "p3"].map(|name| format!("{name}|g|title|here"));
    let mut rows = rows.to_vec();
    rows.extend(["r|g|title|there".to_owned(), "s|g|title|ok".to_owned()]);
    assert_eq!(work.latest(), rows);

    let log = to.log();
    let refused = log.iter().position(|hit| hit.path == "/lim").unwrap();
    assert_eq!(refused, 0, "another page was asked for first");
    let pause = log[1].at - log[0].end;
    assert!(pause >= Duration::from_millis(1900), "{pause:?}");
    let meanwhile = from.log().iter().filter(|hit| hit.at < log[1].at).count();
    assert!(meanwhile > 3, "the first host waited: {meanwhile} of its pages were asked for");
    assert_eq!((from.hits("/r"), to.hits("/lim")), (1, 2), "the retry began at the first address");
    let report = work.report();
    assert_eq!(report["httpStatus"], json!({ "200": 5, "302": 2, "429": 1 }));
    assert_eq!(report["retries"], 1);
}

#[test]
fn hosts_that_redirect_to_each_other_fail_the_page() {
    let (from, to) = two_sites();
    from.answer("/x", SiteResponse::redirect(&to.url("/x")));
    to.answer("/x", SiteResponse::redirect(&from.url("/x")));
    let work = pages_of(&from, &["x"]);
    assert_eq!(work.run(&["loader.redirects.max=4"]).code, 4);
    assert_eq!(from.hits("/x") + to.hits("/x"), 5);
    let report = work.report();
    let reason = format!("cannot load `{}`: more than 4 redirects", from.url("/x"));
    assert_eq!(report["failures"][0]["reasons"], json!([reason]));
    assert_eq!(report["failures"][0]["url"], from.url("/x"));
    assert_eq!(report["httpStatus"], json!({ "302": 5 }));
}
