//! Ranges in addresses, files of addresses and sitemaps.

use serde_json::json;

use super::{TITLES, page, skipped, titles};
use crate::harness::{SiteResponse, TestSite, Workdir};

fn defs(keys: &str) -> String {
    format!("groups:\n  all:\n    dataDef: page\n    {keys}\n{TITLES}")
}

fn echo() -> TestSite {
    let site = TestSite::start();
    site.otherwise(|request, _| SiteResponse::html(page(&request.path, &[])));
    site
}

#[test]
fn ranges_in_addresses_give_one_page_per_value() {
    let site = echo();
    let work = Workdir::with_defs(&defs(&format!(
        "urls: [ \"{}\", \"{}\" ]",
        site.url("/[1-2]/[008-010]"),
        site.url("/x?from=[0-40:20]&k=[a]")
    )));
    let expected = [
        "/1/008",
        "/1/009",
        "/1/010",
        "/2/008",
        "/2/009",
        "/2/010",
        "/x?from=0&k=%5Ba%5D",
        "/x?from=20&k=%5Ba%5D",
        "/x?from=40&k=%5Ba%5D",
    ];
    let rows = work.rows(&[]);
    assert_eq!(titles(&rows), expected);
    let first = site.url("/1/008");
    assert!(rows.contains(&format!("{first}|all|{first}|/1/008")), "{rows:?}");
}

#[test]
fn addresses_are_read_from_text_and_csv_files() {
    let site = echo();
    let work = Workdir::with_defs(&defs(
        "urls: [ { file: list.txt }, { file: list.csv, column: link, name: title } ]",
    ));
    let (a, b, c) = (site.url("/a"), site.url("/b"), site.url("/c"));
    work.write("list.txt", format!("\u{feff}# pages\r\n{a}\r\n\r\n"));
    work.write("defs/list.csv", format!("title,link\n\"b, or not\",{b}\n,{c}\n"));
    let mut rows = work.rows(&[]);
    rows.sort();
    let mut expected =
        vec![format!("b, or not|all|{b}|/b"), format!("{a}|all|{a}|/a"), format!("{c}|all|{c}|/c")];
    expected.sort();
    assert_eq!(rows, expected);
}

#[test]
fn a_changed_list_of_addresses_does_not_continue_the_run() {
    let site = TestSite::start();
    site.answer("/slow", SiteResponse::silence());
    site.page("/b", page("b", &[]));
    let work = Workdir::with_defs(&defs("urls: { file: list.txt }"));
    work.write("list.txt", site.url("/slow"));
    let running = work.start_run(&[]);
    crate::harness::wait_until("the page is asked for", || site.hits("/slow") > 0);
    running.signal("KILL");
    running.end();
    work.write("list.txt", site.url("/b"));
    let ending = work.run(&[]);
    assert_ne!(ending.code, 0, "{ending:?}");
    assert_eq!(
        titles(&{
            assert_eq!(work.run(&["--fresh"]).code, 0);
            work.latest()
        }),
        ["b"]
    );
}

#[test]
fn check_shows_where_a_source_is_wrong() {
    let work = Workdir::with_defs(
        "groups:\n  all:\n    fields: { t: h1 }\n    urls:\n      - http://h/[9-1]\n      \
         - { file: none.txt }\n      - { file: a.csv, column: ulr }\n      \
         - { file: a.csv, column: url, name: tilte }\n      - http://h/[1-99999999]\n",
    );
    work.write("a.csv", "title,url\nx,http://h/\n");
    let ending = work.spoonbill(&["check", "defs"]);
    assert_eq!(ending.code, 3, "{ending:?}");
    for words in [
        ":5:9",
        "range `[9-1]` is empty",
        ":6:17",
        "there is no file `none.txt`",
        ":7:32",
        "no column `ulr`; the columns are `title`, `url`",
        ":8:43",
        "no column `tilte`",
        ":9:9",
        "the definitions have more than 10000000 addresses",
        "urls.max",
    ] {
        assert!(ending.stderr.contains(words), "{words} in {}", ending.stderr);
    }
    assert_eq!(work.run(&[]).code, 3);
}

fn urlset(urls: &[String]) -> String {
    let url = |url: &String| format!("<url><loc>{}</loc></url>", url.replace('&', "&amp;"));
    let urls: String = urls.iter().map(url).collect();
    format!("<?xml version=\"1.0\"?><urlset xmlns=\"http://s\">{urls}</urlset>")
}

#[test]
fn sitemaps_and_their_indexes_may_be_compressed() {
    let site = echo();
    let index = ["/maps/a.xml.gz", "/maps/b.xml", "/index.xml"]
        .map(|path| format!("<sitemap><loc> {} </loc></sitemap>", site.url(path)));
    let index = format!("<sitemapindex>{}</sitemapindex>", index.concat());
    site.answer("/index.xml", SiteResponse::raw(&[("Content-Type", "text/xml")], index));
    let a = urlset(&[site.url("/item/1?x=1&y=2"), site.url("/about"), site.url("/item/2#top")]);
    let packed = crate::harness::site::gzip(a.as_bytes());
    site.answer(
        "/maps/a.xml.gz",
        SiteResponse::raw(&[("Content-Type", "application/gzip")], packed),
    );
    let b = format!("{}\n{}\n{}\n", site.url("/item/2"), site.url("/item/3"), site.url("/item/4"));
    site.answer("/maps/b.xml", SiteResponse::raw(&[("Content-Type", "text/plain")], b));
    let work = Workdir::with_defs(&defs(&format!(
        "sitemap: {{ url: \"{}\", allow: /item/, maxPages: 3 }}",
        site.url("/index.xml")
    )));
    let rows = work.rows(&["loader.fetch.parallelism=1"]);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows.contains(&format!("{0}|all|{0}|/item/2", site.url("/item/2"))), "{rows:?}");
    assert_eq!(
        skipped(&work),
        json!({
            "already known": 2,
            "links beyond maxPages": 1,
            "links that match no allow pattern": 1,
        })
    );
}

#[test]
fn pages_of_a_sitemap_are_start_pages() {
    let site = TestSite::start();
    let map = urlset(&[site.url("/a")]);
    site.answer("/map.xml", SiteResponse::raw(&[("Content-Type", "text/xml")], map));
    site.page("/a", page("a", &["/b"]));
    site.page("/b", page("b", &["/c"]));
    site.page("/c", page("c", &[]));
    let work = Workdir::with_defs(&defs(&format!(
        "sitemap: \"{}\"\n    follow: {{ selector: a, maxDepth: 1 }}",
        site.url("/map.xml")
    )));
    assert_eq!(titles(&work.rows(&[])), ["a", "b"]);
    assert_eq!(skipped(&work), json!({ "links beyond maxDepth": 1 }));
}

#[test]
fn a_page_that_is_no_sitemap_fails_with_the_reason() {
    let site = TestSite::start();
    site.page("/map.xml", "<!doctype html><html><body>Not found</body></html>");
    let work = Workdir::with_defs(&defs(&format!("sitemap: \"{}\"", site.url("/map.xml"))));
    let ending = work.run(&[]);
    assert_eq!(ending.code, 4, "{ending:?}");
    let reason = work.report()["failures"][0]["reasons"][0].to_string();
    assert!(reason.contains("not a sitemap: it starts with `<html>`"), "{reason}");
}

#[test]
fn two_locators_of_one_page_give_a_warning_if_links_are_followed() {
    let site = TestSite::start();
    site.page("/a", page("a", &[]));
    let (one, other) = (site.url("/a"), site.url("/a?utm_source=x#top"));
    let locators =
        format!("locators: [ {{ name: one, url: \"{one}\" }}, {{ name: two, url: \"{other}\" }} ]");
    let work = Workdir::with_defs(&defs(&format!("{locators}\n    follow: a")));
    let ending = work.run(&[]);
    assert!(ending.stderr.contains("this page is in the group as `one` already"), "{ending:?}");
    assert_eq!(work.latest(), [format!("one|all|{one}|a")]);
    // If no links are followed, each locator is a separate job.
    let work = Workdir::with_defs(&defs(&locators));
    assert_eq!(work.rows(&[]).len(), 2);
}
