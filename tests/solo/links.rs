//! Locators that a step creates from pages. Each becomes one job.

use crate::harness::defs::titled;
use crate::harness::{SiteResponse, TestSite, Workdir};

/// A listing whose links lead to the group `books`, and to the next page in the group `list`.
fn catalogue(url: &str, prefix: &str, link: &str) -> String {
    format!(
        r#"
locatorGroups: {{ list: {{ locators: [ {{ name: shop, url: "{url}" }} ] }} }}
taskGroups:
  list:
    links:
      dataDef: links
      steps: &chain
        jsoupDefault:
          process: {{ class: locator_creator, previous: parser, next: seeder }}
  books:
    title: {{ dataDef: title }}
dataDefs:
  links:
    query: {{ block: body }}
    items:
      - item: {{ name: book, linkGroup: books, selector: "li:nth-child(%{{index}}) a attribute: href",
          indexRange: 1-4, prefix: [ "{prefix}" ]{link} }}
      - item: {{ name: next, linkGroup: list, selector: "a.next attribute: href", prefix: [ "{prefix}" ] }}
  title:
    query: {{ block: body, selector: h1 }}
    items: [ item: {{ name: i, script: "document.getUrl().replace('{prefix}', '')" }} ]
"#
    )
    .replace("steps: &chain", "steps:")
}

fn listing(books: &[&str], next: &str) -> String {
    let books: String = books.iter().map(|b| format!("<li><a href='{b}'>{b}</a></li>")).collect();
    let next = if next.is_empty() { String::new() } else { format!("<a class=next href={next}>") };
    format!("<ul>{books}</ul>{next}")
}

#[test]
fn every_link_becomes_a_job_and_paging_ends_at_the_last_page() {
    let site = TestSite::start();
    site.page("/1", listing(&["/a", "/b", "/c", "/d"], "/2"));
    site.page("/2", listing(&["/e", "/f"], ""));
    for book in ["a", "b", "c", "d", "e", "f"] {
        site.page(&format!("/{book}"), titled(book));
    }
    let prefix = site.url("");
    let work = Workdir::with_defs(&catalogue(&site.url("/1"), &prefix, ""));
    let mut rows = work.rows(&[]);
    rows.sort();
    let expect: Vec<String> =
        "abcdef".chars().map(|book| format!("shop|books|/{book}|{book}")).collect();
    assert_eq!(rows, expect);
    assert_eq!(site.log().len(), 8);
    let report = work.report();
    assert_eq!(report["jobs"], serde_json::json!({ "done": 8, "failed": 0, "pending": 0 }));
}

#[test]
fn link_break_on_stops_at_its_link() {
    let site = TestSite::start();
    site.page("/1", listing(&["/a", "/b"], ""));
    site.page("/a", titled("a"));
    site.page("/b", titled("b"));
    let prefix = site.url("");
    let stop = format!(", linkBreakOn: [ \"{prefix}/b\" ]");
    let work = Workdir::with_defs(&catalogue(&site.url("/1"), &prefix, &stop));
    assert_eq!(work.rows(&[]), ["shop|books|/a|a"]);
    assert_eq!(site.hits("/b"), 0);
    assert_eq!(work.report()["pages"]["skipped"]["links stopped by linkBreakOn"], 1);
}

#[test]
fn endless_paging_ends_at_the_maximum_depth() {
    let site = TestSite::start();
    site.otherwise(|request, _| {
        let number: u32 = request.path[1..].parse().unwrap();
        SiteResponse::html(listing(&[], &format!("/{}", number + 1)))
    });
    let work = Workdir::with_defs(&catalogue(&site.url("/1"), &site.url(""), ""));
    let ending = work.run(&["links.depth.max=5"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(site.log().len(), 6);
    assert_eq!(work.report()["pages"]["skipped"]["links beyond links.depth.max"], 1);
}

#[test]
fn pages_that_link_in_a_circle_are_loaded_once_each() {
    let site = TestSite::start();
    site.page("/1", listing(&["/a"], "/2"));
    site.page("/2", listing(&["/a", "/a"], "/1"));
    site.page("/a", titled("a"));
    let work = Workdir::with_defs(&catalogue(&site.url("/1"), &site.url(""), ""));
    assert_eq!(work.rows(&[]), ["shop|books|/a|a"]);
    assert_eq!(site.log().len(), 3);
}

#[test]
fn links_beyond_the_limit_of_a_page_are_counted() {
    let site = TestSite::start();
    site.page("/1", listing(&["/a", "/b", "/c", "/d"], ""));
    site.otherwise(|request, _| SiteResponse::html(titled(&request.path)));
    let work = Workdir::with_defs(&catalogue(&site.url("/1"), &site.url(""), ""));
    let rows = work.rows(&["links.page.max=3"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(work.report()["pages"]["skipped"]["links beyond links.page.max"], 1);
}
