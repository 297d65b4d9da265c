//! `spoonbill replay` writes rows from stored pages and does not change the last run.

use std::time::Duration;

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{ProcessOutput, SiteResponse, TestSite, Workdir, wait_until};

/// A list that leads to two items. The first one has two prices.
fn shop() -> TestSite {
    let site = TestSite::start();
    let (one, two) = (site.url("/item/1"), site.url("/item/2"));
    let links = format!("<li><a href='{one}'>1</a></li><li><a href='{two}'>2</a></li>");
    site.page("/list", format!("<h1>List</h1><ul>{links}</ul>"));
    site.page("/item/1", "<h1>Item 1</h1><p>10</p><p>11</p><b>red</b>");
    site.page("/item/2", "<h1>Item 2</h1><p>20</p><b>blue</b>");
    site
}

fn defs(site: &TestSite) -> String {
    DEFS.replace("SITE", site.url("").trim_end_matches('/'))
}

const DEFS: &str = r#"
locatorGroups:
  lists:
    locators: [ { name: shop, url: "SITE/list" } ]
taskGroups:
  lists:
    itemTask:
      dataDef: items
      steps: { jsoupDefault: { process: {
        class: "org.codetab.scoopi.step.process.LocatorCreator", previous: parser, next: seeder } } }
  items:
    nameTask: { dataDef: name }
    priceTask: { dataDef: price }
dataDefs:
  name:
    query: { block: "body", selector: "h1" }
    items: [ item: { name: name, value: "Name" } ]
  price:
    query: { block: "body", selector: "p:nth-of-type(%{item.index})" }
    items: [ item: { name: price, value: "Price", indexRange: 1-1 } ]
  items:
    query: { block: "ul" }
    items: [ item: { name: link, linkGroup: items, indexRange: "1-2",
                     selector: "li:nth-child(%{index}) > a attribute: href" } ]
"#;

fn replay(work: &Workdir, more: &[&str]) -> ProcessOutput {
    let mut arguments = vec!["replay", "defs", "--report", "replay.json"];
    arguments.extend(more);
    work.spoonbill(&arguments)
}

fn report(work: &Workdir) -> serde_json::Value {
    serde_json::from_str(&work.read("replay.json")).expect("a report")
}

fn change(added: u64, removed: u64, changed: u64, same: u64) -> serde_json::Value {
    serde_json::json!({ "added": added, "removed": removed, "changed": changed, "same": same })
}

/// The rows of the only replay.
fn replayed(work: &Workdir) -> Vec<String> {
    let names = work.list("output");
    let folder = names.iter().find(|name| name.ends_with("-replay")).expect("a folder");
    let mut rows = work.lines(&format!("output/{folder}/data.txt"));
    rows.sort();
    rows
}

#[test]
fn a_replay_gives_the_same_rows_without_the_site() {
    let site = shop();
    let work = Workdir::with_defs(&defs(&site));
    assert_eq!(work.run(&[]).code, 0);
    let (rows, latest) = (work.latest(), std::fs::read_link(work.path("output/latest")).unwrap());
    drop(site);
    let ending = replay(&work, &["--set", "runDateTimeText=2020-07-01T10:20:05.000+0000"]);
    assert_eq!(ending.code, 0, "{}", ending.stderr);
    assert_eq!(replayed(&work), rows);
    assert_eq!(report(&work)["replay"]["dataDefs"]["name"], change(0, 0, 0, 2));
    assert_eq!(report(&work)["replay"]["dataDefs"]["price"], change(0, 0, 0, 2));
    assert_eq!(report(&work)["pages"]["fromStore"], 3);
    assert_eq!(report(&work)["pages"]["fetched"], 0);
    let words = "    replay  name: 0 added, 0 removed, 0 changed, 2 same";
    assert!(ending.stderr.contains(words), "{}", ending.stderr);
    // `latest` still points to the run.
    assert_eq!(std::fs::read_link(work.path("output/latest")).unwrap(), latest);
    assert!(!work.exists("data/replay"));
    assert_eq!(work.spoonbill(&["fsck"]).code, 0);
}

#[test]
fn changed_definitions_tell_what_is_added_removed_and_changed() {
    let site = shop();
    let work = Workdir::with_defs(&defs(&site));
    assert_eq!(work.run(&[]).code, 0);
    let asked = site.log().len();
    let changed = defs(&site)
        .replace("value: \"Name\"", "value: \"Title\"")
        .replace("1-1", "1-2")
        .replace(
            "nameTask: { dataDef: name }",
            "nameTask: { dataDef: name }\n    c: { dataDef: c }",
        )
        + "  c:\n    query: { block: body, selector: b }\n    items: [ item: { name: c, value: C } ]\n";
    work.write("defs/job.yml", &changed);
    let ending = replay(&work, &[]);
    assert_eq!(ending.code, 0, "{}", ending.stderr);
    let changes = &report(&work)["replay"];
    assert_eq!(changes["pagesMissing"], 0);
    assert_eq!(changes["dataDefs"]["name"], change(0, 0, 2, 0));
    assert_eq!(changes["dataDefs"]["price"], change(2, 0, 0, 2));
    assert_eq!(changes["dataDefs"]["c"], change(2, 0, 0, 0));
    // A dataDef that was removed.
    let fewer = defs(&site).replace("    priceTask: { dataDef: price }\n", "");
    work.write("defs/job.yml", &fewer);
    assert_eq!(replay(&work, &[]).code, 0);
    assert_eq!(report(&work)["replay"]["dataDefs"]["price"], change(0, 2, 0, 0));
    assert_eq!(site.log().len(), asked, "a replay sent a request");
}

#[test]
fn a_replay_counts_missing_pages_and_fetches_none() {
    let site = shop();
    site.page("/item/3", titled("Item 3"));
    let work = Workdir::with_defs(&defs(&site));
    assert_eq!(work.run(&[]).code, 0);
    let more = format!("{{ name: more, url: \"{}\" }}, {{ name: shop,", site.url("/item/3"));
    work.write("defs/job.yml", defs(&site).replace("{ name: shop,", &more));
    let ending = replay(&work, &[]);
    assert_eq!(ending.code, 4, "{}", ending.stderr);
    assert!(ending.stderr.contains("1 page is not stored"), "{}", ending.stderr);
    assert_eq!(report(&work)["replay"]["pagesMissing"], 1);
    assert_eq!(report(&work)["replay"]["dataDefs"]["name"], change(0, 0, 0, 2));
    assert_eq!(site.hits("/item/3"), 0);
    // A page stays stored if its locator gets another name.
    work.write("defs/job.yml", defs(&site).replace("name: shop", "name: store"));
    assert_eq!(replay(&work, &[]).code, 0);
    assert_eq!(report(&work)["replay"]["dataDefs"]["name"], change(2, 2, 0, 0));
}

#[test]
fn a_replay_does_not_change_what_failed_and_retry_see() {
    let site = shop();
    site.recovers("/item/2", 4, SiteResponse::status(503), SiteResponse::html(titled("Item 2")));
    let work = Workdir::with_defs(&defs(&site));
    assert_eq!(work.run(&[]).code, 4);
    let listed = work.spoonbill(&["failed"]).stdout;
    assert!(listed.contains("/item/2"), "{listed}");
    let ending = replay(&work, &[]);
    assert_eq!(ending.code, 4, "{}", ending.stderr);
    assert!(!ending.stderr.contains("spoonbill failed"), "{}", ending.stderr);
    assert_eq!(work.spoonbill(&["failed"]).stdout, listed);
    let retried = work.retry(&[]);
    assert_eq!(retried.code, 0, "{}", retried.stderr);
    assert_eq!(work.latest().len(), 4);
    assert_eq!(replay(&work, &[]).code, 0);
    assert_eq!(report(&work)["replay"]["dataDefs"]["name"], change(0, 0, 0, 2));
}

#[test]
fn a_replay_needs_a_finished_run() {
    let site = shop();
    let work = Workdir::with_defs(&defs(&site));
    let ending = replay(&work, &[]);
    assert_eq!(ending.code, 1);
    assert!(ending.stderr.contains("`data` holds no run whose pages"), "{}", ending.stderr);
    assert!(!work.exists("data"));
    let late = SiteResponse::html("").delay(Duration::from_secs(60));
    site.recovers("/item/1", 1, late, SiteResponse::html(titled("Item 1")));
    let mut running = work.start_run(&[]);
    wait_until("a page is asked for", || site.hits("/item/1") > 0);
    assert!(!running.has_ended());
    running.signal("KILL");
    running.end();
    let ending = replay(&work, &[]);
    assert_eq!(ending.code, 3, "{}", ending.stderr);
    assert!(ending.stderr.contains("is not finished"), "{}", ending.stderr);
    assert_eq!(work.run(&[]).code, 0, "the run cannot be continued");
}

#[test]
fn a_replay_reads_local_files_unless_all_pages_are_kept() {
    for (keep, code) in [("pages.keep=web", 4), ("pages.keep=all", 0)] {
        let work = Workdir::with_defs(&job(&[("acme", "page.html")], TITLE));
        work.write("page.html", titled("one"));
        assert_eq!(work.rows(&[keep]), ["acme|g|title|one"]);
        assert_eq!(replay(&work, &[]).code, 0);
        assert_eq!(report(&work)["replay"]["dataDefs"]["d"], change(0, 0, 0, 1));
        std::fs::remove_file(work.path("page.html")).unwrap();
        let ending = replay(&work, &[]);
        assert_eq!(ending.code, code, "{keep}: {}", ending.stderr);
    }
}
