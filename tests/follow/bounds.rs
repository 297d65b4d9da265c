//! `maxDepth` and `maxPages`. Both are exact, whatever the timing and in spite of kills.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::{TITLES, page, skipped, titles};
use crate::harness::{SiteResponse, TestSite, Workdir, wait_until};

fn defs(url: &str, rule: &str) -> String {
    format!(
        "groups: {{ all: {{ urls: \"{url}\", dataDef: page, follow: {{ selector: a{rule} }} }} }}\n\
         {TITLES}"
    )
}

/// Two paths lead to page x: a long one with fast pages and a short one with a slow page. Page y follows
/// x.
fn two_ways(site: &TestSite, slow: Duration) {
    let quick = |title: &str, links: &[&str]| SiteResponse::html(page(title, links));
    site.answer("/", quick("start", &["/short", "/long1"]));
    site.answer("/short", quick("short", &["/x"]).delay(slow));
    site.answer("/long1", quick("long1", &["/long2"]));
    site.answer("/long2", quick("long2", &["/x"]));
    site.answer("/x", quick("x", &["/y"]));
    site.answer("/y", quick("y", &["/z"]));
    site.answer("/z", quick("z", &[]));
}

#[test]
fn the_depth_of_a_page_is_that_of_its_shortest_path() {
    for slow in [0, 400] {
        let site = TestSite::start();
        two_ways(&site, Duration::from_millis(slow));
        let work = Workdir::with_defs(&defs(&site.url("/"), ", maxDepth: 3"));
        let rows = work.rows(&["loader.fetch.parallelism=8"]);
        assert_eq!(titles(&rows), ["long1", "long2", "short", "start", "x", "y"]);
        assert_eq!(
            skipped(&work),
            json!({ "already known": 1, "links beyond maxDepth": 1 }),
            "with a page that takes {slow} ms"
        );
    }
}

#[test]
fn a_link_at_max_depth_waits_for_a_retry_on_a_shorter_path() {
    let site = TestSite::start();
    two_ways(&site, Duration::ZERO);
    let short = SiteResponse::html(page("short", &["/x"]));
    site.recovers("/short", 2, SiteResponse::status(503), short);
    let work = Workdir::with_defs(&defs(&site.url("/"), ", maxDepth: 3"));
    let rows = work.rows(&["loader.fetch.parallelism=8", "loader.retry.backoff=200ms"]);
    assert_eq!(titles(&rows), ["long1", "long2", "short", "start", "x", "y"]);
}

#[test]
fn a_max_depth_of_one_follows_links_of_start_pages_only() {
    let site = TestSite::start();
    two_ways(&site, Duration::ZERO);
    let work = Workdir::with_defs(&defs(&site.url("/"), ", maxDepth: 1"));
    assert_eq!(titles(&work.rows(&[])), ["long1", "short", "start"]);
    assert_eq!(skipped(&work), json!({ "links beyond maxDepth": 2 }));
}

#[test]
fn links_beyond_max_pages_are_counted() {
    let site = TestSite::start();
    site.page("/", page("start", &["/1", "/2", "/3", "/1", "/4", "/5"]));
    site.otherwise(|request, _| SiteResponse::html(page(&request.path, &["/"])));
    let work = Workdir::with_defs(&defs(&site.url("/"), ", maxPages: 3"));
    assert_eq!(titles(&work.rows(&[])), ["/1", "/2", "/3", "start"]);
    assert_eq!(skipped(&work), json!({ "already known": 4, "links beyond maxPages": 2 }));
}

#[test]
fn a_column_of_depths_does_not_depend_on_which_link_is_found_first() {
    for slow in [0, 400] {
        let site = TestSite::start();
        two_ways(&site, Duration::from_millis(slow));
        let work = Workdir::with_defs(&format!(
            "groups: {{ all: {{ urls: \"{}\", fields: {{ title: h1 }}, columns: [ depth ], follow: a \
             }} }}\n",
            site.url("/")
        ));
        let ending = work.run(&["loader.fetch.parallelism=8"]);
        assert_eq!(ending.code, 0, "{ending:?}");
        let rows = work.lines("output/latest/all.csv");
        let last_two = |row: &String| row.rsplitn(3, ',').take(2).collect::<Vec<_>>().join(" ");
        let mut rows: Vec<String> =
            rows.iter().map(last_two).filter(|row| row != "title depth").collect();
        rows.sort();
        assert_eq!(rows, ["long1 1", "long2 2", "short 1", "start 0", "x 2", "y 3", "z 4"]);
    }
}

/// Forty pages that link to each other.
fn mesh(site: &TestSite) {
    site.otherwise(|request, _| {
        let number: u32 = request.path[1..].parse().unwrap_or(0);
        let links: Vec<String> = [2 * number + 1, 2 * number + 2, number / 3, 39]
            .iter()
            .map(|to| format!("/{to}"))
            .collect();
        let links: Vec<&str> = links
            .iter()
            .map(String::as_str)
            .filter(|to| to[1..].parse::<u32>().unwrap() < 40)
            .collect();
        SiteResponse::html(page(&format!("{number:02}"), &links)).delay(Duration::from_millis(5))
    });
}

#[test]
fn kills_do_not_change_which_links_are_followed() {
    let site = TestSite::start();
    mesh(&site);
    for rule in ["", ", maxDepth: 4", ", maxDepth: 20, maxPages: 1000"] {
        let settings = [
            "output.order=canonical",
            "runDateTimeText=2020-07-01T10:00:00.000+0000",
            "loader.fetch.parallelism=4",
        ];
        let whole = Workdir::with_defs(&defs(&site.url("/0"), rule));
        let expected = whole.rows(&settings);
        let work = Workdir::with_defs(&defs(&site.url("/0"), rule));
        for pages in [1, 3, 5, 7] {
            let before = site.log().len();
            let running = work.start_run(&settings);
            wait_until("some pages are asked for", || site.log().len() >= before + pages);
            running.signal("KILL");
            assert_eq!(running.end().code, 128 + 9);
            site.settle();
        }
        assert_eq!(work.run(&settings).code, 0);
        assert_eq!(work.lines("output/latest/data.txt"), expected, "with `{rule}`");
    }
}

/// Two start pages lead to the same pages. The rows must not depend on which one is read first.
#[test]
fn canonical_rows_of_records_do_not_depend_on_timing() {
    let site = TestSite::start();
    let late = Arc::new(Mutex::new(""));
    let theirs = Arc::clone(&late);
    site.otherwise(move |request, _| {
        let slow = request.path == *theirs.lock().unwrap();
        let delay = Duration::from_millis(if slow { 300 } else { 0 });
        SiteResponse::html(page(&request.path, &["/x", "/y", "/z"])).delay(delay)
    });
    let rows = |slow: &'static str| {
        *late.lock().unwrap() = slow;
        let work = Workdir::with_defs(&format!(
            r#"
groups:
  all:
    locators: [ {{ name: b, url: "{}" }}, {{ name: a, url: "{}" }} ]
    follow: {{ selector: a, group: item }}
  item: {{ fields: {{ title: h1 }}, follow: a }}
"#,
            site.url("/1"),
            site.url("/2"),
        ));
        let ending = work.run(&["output.order=canonical", "loader.fetch.parallelism=4"]);
        assert_eq!(ending.code, 0, "{ending:?}");
        work.lines("output/latest/item.csv")
    };
    let first = rows("/1");
    assert!(first.len() >= 3, "{first:?}");
    assert_eq!(first, rows("/2"));
}
