//! Stored pages and parsed data: what is reused, and what is fetched again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{SiteResponse, TestSite, Workdir};

/// A site whose page shows the number of its requests.
fn counting_site() -> TestSite {
    let site = TestSite::start();
    let count = Arc::new(AtomicUsize::new(0));
    site.on("/", move |_, _| {
        SiteResponse::html(titled(&format!("visit {}", count.fetch_add(1, Ordering::SeqCst) + 1)))
    });
    site
}

fn living(site: &TestSite, live: &str, data_def: &str) -> String {
    job(&[("acme", &site.url("/"))], data_def)
        .replace("taskGroups:\n  g:\n", &format!("taskGroups:\n  g:\n    live: {live}\n"))
}

const NOW: &str = "runDateTimeText=2020-07-01T10:00:00.000+0000";
const NEXT_DAY: &str = "runDateTimeText=2020-07-02T09:59:59.000+0000";
const DAY_AFTER: &str = "runDateTimeText=2020-07-02T10:00:00.000+0000";

#[test]
fn a_page_is_fetched_again_only_when_it_is_older_than_live() {
    let site = counting_site();
    let work = Workdir::with_defs(&living(&site, "P1D", TITLE));
    assert_eq!(work.rows(&[NOW]), ["acme|g|title|visit 1"]);
    assert_eq!(work.rows(&[NEXT_DAY]), ["acme|g|title|visit 1"]);
    assert_eq!(site.log().len(), 1);
    assert_eq!(work.report()["pages"]["fromStore"], 1);
    assert_eq!(work.report()["pages"]["fetched"], 0);
    // A page that lives for a day is too old exactly one day later.
    assert_eq!(work.rows(&[DAY_AFTER]), ["acme|g|title|visit 2"]);
    assert_eq!(site.log().len(), 2);
}

#[test]
fn without_live_every_run_fetches() {
    for live in ["\"0\"", "PT0S"] {
        let site = counting_site();
        let work = Workdir::with_defs(&living(&site, live, TITLE));
        assert_eq!(work.rows(&[]), ["acme|g|title|visit 1"]);
        assert_eq!(work.rows(&[]), ["acme|g|title|visit 2"]);
    }
}

#[test]
fn the_current_live_decides_about_stored_pages() {
    let site = counting_site();
    let work = Workdir::with_defs(&job(&[("acme", &site.url("/"))], TITLE));
    assert_eq!(work.rows(&[NOW]), ["acme|g|title|visit 1"]);
    work.write("defs/job.yml", living(&site, "P1W", TITLE));
    assert_eq!(work.rows(&[NEXT_DAY]), ["acme|g|title|visit 1"]);
    work.write("defs/job.yml", living(&site, "PT1H", TITLE));
    assert_eq!(work.rows(&[NEXT_DAY]), ["acme|g|title|visit 2"]);
}

#[test]
fn a_changed_data_def_parses_the_stored_page_again() {
    let site = counting_site();
    let work = Workdir::with_defs(&living(&site, "P1D", TITLE));
    assert_eq!(work.rows(&[]), ["acme|g|title|visit 1"]);
    let changed = TITLE.replace("value: title", "value: heading");
    work.write("defs/job.yml", living(&site, "P1D", &changed));
    assert_eq!(work.rows(&[]), ["acme|g|heading|visit 1"]);
    assert_eq!(site.log().len(), 1);
}

#[test]
fn parsed_data_is_reused_unless_a_setting_forbids_it() {
    // The value of this script differs each time, which shows whether it ran again.
    let data_def = r#"
        query: { block: body, selector: h1 }
        items: [ item: { name: i, script: "Date.now() + ' ' + Math.random()" } ]
    "#;
    let site = counting_site();
    let defs = living(&site, "P1D", data_def);
    let work = Workdir::with_defs(&defs);
    let first = work.rows(&[]);
    assert_eq!(work.rows(&[]), first);
    assert_ne!(work.rows(&["persist.data=false"]), first);
    work.write(
        "defs/job.yml",
        defs.replace("      dataDef: d\n", "      dataDef: d\n      persist: { data: false }\n"),
    );
    assert_ne!(work.rows(&[]), first);
    assert_eq!(site.log().len(), 1);
    assert_ne!(work.rows(&["persist.locator=false"]), first);
    assert_eq!(site.log().len(), 2);
}

#[test]
fn filters_apply_to_reused_data_too() {
    let data_def = r#"
        query: { block: body, selector: h1 }
        items: [ item: { name: i, value: a }, item: { name: j, value: b FILTER } ]
    "#;
    let site = counting_site();
    let with = |filter: &str| living(&site, "P1D", &data_def.replace(" FILTER", filter));
    let work = Workdir::with_defs(&with(""));
    assert_eq!(work.rows(&[]).len(), 2);
    work.write("defs/job.yml", with(", filters: [ filter: { type: value, pattern: b } ]"));
    assert_eq!(work.rows(&[]), ["acme|g|a|visit 1"]);
    assert_eq!(site.log().len(), 1);
}

#[test]
fn urls_that_begin_with_a_slash_are_looked_for_below_the_resources() {
    let work = Workdir::with_defs(&job(&[("acme", "/pages/one.html")], TITLE));
    work.write("res/pages/one.html", titled("found"));
    assert_eq!(work.rows(&["resources.dir=res"]), ["acme|g|title|found"]);
    assert_eq!(work.run(&[]).code, 4);
    assert!(work.report()["failures"][0]["reasons"][0].to_string().contains("/pages/one.html"));
}

#[test]
fn file_urls_relative_paths_and_unusual_names_are_found() {
    let work = Workdir::new();
    let whole = format!("file://{}", work.path("a b.html").display());
    let locators = [("a", whole.as_str()), ("b", "file:sub/ü.html"), ("c", "./sub/../c.html")];
    work.write("defs/job.yml", job(&locators, TITLE));
    work.write("a b.html", titled("A"));
    work.write("sub/ü.html", titled("B"));
    work.write("c.html", titled("C"));
    let mut rows = work.rows(&[]);
    rows.sort();
    assert_eq!(rows, ["a|g|title|A", "b|g|title|B", "c|g|title|C"]);
}

#[test]
fn locators_with_equal_names_and_even_equal_urls_each_give_their_rows() {
    let site = counting_site();
    let url = site.url("/");
    let work = Workdir::with_defs(&job(&[("acme", &url), ("acme", "page.html")], TITLE));
    work.write("page.html", titled("file"));
    let mut rows = work.rows(&[]);
    rows.sort();
    assert_eq!(rows, ["acme|g|title|file", "acme|g|title|visit 1"]);
}
