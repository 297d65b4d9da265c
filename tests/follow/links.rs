//! Which links are followed, and how their addresses are resolved.

use serde_json::json;

use super::{TITLES, page, skipped, titles};
use crate::harness::{SiteResponse, TestSite, Workdir};

#[test]
fn pages_of_a_list_and_their_details_are_loaded_once() {
    let site = TestSite::start();
    site.page("/list/1", page("list 1", &["/item/a?utm_source=x", "/item/b#top", "/list/2"]));
    site.page("/list/2", page("list 2", &["../item/b", "/item/c?gclid=1", "/list/1?utm_id=7"]));
    for item in ["a", "b", "c"] {
        site.page(&format!("/item/{item}"), page(item, &["/list/1"]));
    }
    let work = Workdir::with_defs(&format!(
        r#"
groups:
  list:
    urls: "{}"
    follow:
      - {{ selector: a, group: item, allow: /item/ }}
      - {{ selector: a, allow: /list/ }}
  item: {{ dataDef: page }}
{TITLES}"#,
        site.url("/list/1")
    ));
    assert_eq!(titles(&work.rows(&[])), ["a", "b", "c"]);
    assert_eq!(site.log().len(), 5);
    assert_eq!(
        skipped(&work),
        json!({
            "already known": 2,
            "links that match no allow pattern": 6,
        })
    );
    let items = work.latest();
    // A row shows the name of the page on which the link was found.
    let start = site.url("/list/1");
    assert!(items.iter().all(|row| row.starts_with(&format!("{start}|item|"))), "{items:?}");
}

#[test]
fn pages_that_link_in_a_circle_are_followed_once() {
    let site = TestSite::start();
    site.page("/", page("home", &["/a", "/", "#x", ""]));
    site.page("/a", page("a", &["/b", "/?utm_medium=mail"]));
    site.page("/b", page("b", &["/a", &site.url("/")]));
    let work = Workdir::with_defs(&format!(
        "groups: {{ all: {{ urls: \"{}\", dataDef: page, follow: a }} }}\n{TITLES}",
        site.url("")
    ));
    assert_eq!(titles(&work.rows(&[])), ["a", "b", "home"]);
    assert_eq!(site.log().len(), 3);
    assert_eq!(skipped(&work), json!({ "already known": 6 }));
}

#[test]
fn the_scope_limits_which_links_are_followed() {
    let (site, other) = (TestSite::start(), TestSite::start_on("127.0.0.2"));
    let links = ["/docs/a", "/b", &other.url("/c")];
    site.page("/docs/", page("start", &links));
    site.page("/docs/a", page("a", &["/docs/deep/d", "/b"]));
    site.page("/docs/deep/d", page("d", &["/docs/e"]));
    site.page("/docs/e", page("e", &[]));
    site.page("/b", page("b", &[]));
    other.page("/c", page("c", &[&site.url("/b")]));
    let run = |scope: &str| {
        let work = Workdir::with_defs(&format!(
            "groups: {{ all: {{ urls: \"{}\", dataDef: page, follow: {{ selector: a, scope: {scope} \
             }} }} }}\n{TITLES}",
            site.url("/docs/")
        ));
        let rows = work.rows(&[]);
        (titles(&rows).join(" "), skipped(&work))
    };
    let known = |count: u64| json!({ "already known": count });
    assert_eq!(run("any"), ("a b c d e start".to_owned(), known(2)));
    let out = |scope: &str, known: u64| {
        let words = format!("links out of scope ({scope})");
        if known == 0 { json!({ words: 2 }) } else { json!({ words: 1, "already known": known }) }
    };
    assert_eq!(run("host"), ("a b d e start".to_owned(), out("host", 1)));
    assert_eq!(run("domain"), ("a b d e start".to_owned(), out("domain", 1)));
    let (titles, reasons) = run("prefix");
    assert_eq!(titles, "a d e start");
    assert_eq!(reasons, json!({ "links out of scope (prefix)": 3 }));
}

#[test]
fn every_link_that_is_not_followed_has_its_reason() {
    let site = TestSite::start();
    let links =
        ["/ok", "/no/1", "/other", "mailto:me@h", "javascript:x()", "http://[", "file:///x"];
    site.page("/", page("home", &links));
    site.page("/ok", page("ok", &[]));
    let work = Workdir::with_defs(&format!(
        r#"
groups:
  all:
    urls: "{}"
    dataDef: page
    follow: {{ selector: "a, h1", allow: [ "/ok$", "/no/\\d" ], deny: /no/ }}
{TITLES}"#,
        site.url("/")
    ));
    assert_eq!(titles(&work.rows(&[])), ["home", "ok"]);
    assert_eq!(
        skipped(&work),
        json!({
            "links from web pages to files": 1,
            "links that match a deny pattern": 1,
            "links to other schemes (mailto:, javascript:, ...)": 2,
            "links with an invalid address": 1,
            "links that match no allow pattern": 1,
            "links without an address": 2,
        })
    );
}

#[test]
fn links_are_resolved_against_base_and_the_address_after_redirects() {
    let (site, other) = (TestSite::start(), TestSite::start_on("127.0.0.3"));
    site.answer("/old/", SiteResponse::redirect(&other.url("/new/index")));
    other.page("/new/index", page("moved", &["a", "index"]));
    other.page("/new/a", format!("<base href='/b/'>{}", page("a", &["c"])));
    other.page("/b/c", page("c", &[]));
    let work = Workdir::with_defs(&format!(
        "groups: {{ all: {{ urls: \"{}\", live: P1D, dataDef: page, follow: a }} }}\n{TITLES}",
        site.url("/old/")
    ));
    assert_eq!(titles(&work.rows(&[])), ["a", "c", "moved"]);
    assert_eq!(skipped(&work), json!({ "already known": 1 }));
    // A stored page keeps the address after redirects.
    assert_eq!(titles(&work.rows(&[])), ["a", "c", "moved"]);
    assert_eq!(site.log().len() + other.log().len(), 4);
    assert_eq!(work.report()["pages"]["fromStore"], 3);
}

#[test]
fn links_of_local_files_lead_to_local_files() {
    let work = Workdir::with_defs(&format!(
        "groups: {{ all: {{ urls: pages/list-1.html, dataDef: page, follow: a }} }}\n{TITLES}"
    ));
    let links = ["item/a%20b.html?x#top", "./list-1.html", "../top.html", "http://h/"];
    work.write("pages/list-1.html", page("list", &links));
    work.write("pages/item/a b.html", page("item", &["../list-1.html"]));
    work.write("top.html", page("top", &[]));
    assert_eq!(titles(&work.rows(&[])), ["item", "list", "top"]);
    assert_eq!(skipped(&work), json!({ "already known": 2, "links out of scope (host)": 1 }));
}

#[test]
fn xpath_attributes_and_classic_links_are_both_followed() {
    let site = TestSite::start();
    site.page("/", "<h1>home</h1><div data-next=/a></div><a class=n href=/b>b</a>");
    site.page("/a", page("a", &[]));
    site.page("/b", page("b", &[]));
    let work = Workdir::with_defs(&format!(
        r#"
locatorGroups: {{ all: {{ locators: [ {{ name: home, url: "{}" }} ] }} }}
taskGroups:
  all:
    rows:
      dataDef: page
      follow: [ "div @data-next", {{ xpath: "//a[@class='n']/@href", group: other }} ]
  other: {{ rows: {{ dataDef: page }} }}
{TITLES}"#,
        site.url("/")
    ));
    let mut rows = work.rows(&[]);
    rows.sort();
    let row =
        |group: &str, path: &str, title: &str| format!("home|{group}|{}|{title}", site.url(path));
    assert_eq!(rows, [row("all", "/a", "a"), row("all", "/", "home"), row("other", "/b", "b")]);
}

#[test]
fn check_shows_where_a_follow_rule_is_wrong() {
    let work = Workdir::with_defs(
        "groups:\n  all:\n    urls: http://h/\n    fields: { t: h1 }\n    follow:\n      - 'a['\n      \
         - { xpath: '//a[', allow: '(', deny: [ x, '[' ] }\n",
    );
    let ending = work.spoonbill(&["check", "defs"]);
    assert_eq!(ending.code, 3, "{ending:?}");
    for place in [":6:11", ":7:23", ":7:35", ":7:51"] {
        assert!(ending.stderr.contains(place), "{place} in {}", ending.stderr);
    }
}

#[test]
fn a_redirect_does_not_widen_the_scope_of_links() {
    let (site, other) = (TestSite::start(), TestSite::start_on("127.0.0.2"));
    site.answer("/", SiteResponse::redirect(&other.url("/home")));
    other.page("/home", page("home", &["/out", "/in"]));
    other.answer("/out", SiteResponse::redirect(&site.url("/far")));
    other.page("/in", page("in", &[]));
    site.page("/far", page("far", &["/farther", &other.url("/back")]));
    site.page("/farther", page("farther", &[]));
    other.page("/back", page("back", &[]));
    for scope in ["host", "domain", "prefix"] {
        let work = Workdir::with_defs(&format!(
            "groups: {{ all: {{ urls: \"{}\", dataDef: page, follow: {{ selector: a, scope: {scope} \
             }} }} }}\n{TITLES}",
            site.url("/")
        ));
        // The host of the start page is the one that it was redirected to.
        assert_eq!(titles(&work.rows(&[])), ["back", "far", "home", "in"], "{scope}");
        assert_eq!(skipped(&work), json!({ format!("links out of scope ({scope})"): 1 }));
        let log = work.run(&["--fresh", "-vv"]).stderr;
        let line = format!("link not followed link={} reason=", site.url("/farther"));
        assert!(log.contains(&line), "{log}");
    }
}
