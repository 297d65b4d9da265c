//! `query` runs one query on a page and prints JSON strings.

use crate::harness::{SiteResponse, TestSite, Workdir};

const PAGE: &str = "<ul><li class=a title='T \"1\"'> one\n  <b>bold</b></li>\
                    <li class=b>zwei ü</li></ul><script>var x = 1;</script>";

fn with_page() -> Workdir {
    let work = Workdir::new();
    work.write("page.html", PAGE);
    work
}

#[test]
fn query_prints_matches_in_document_order() {
    let work = with_page();
    let css = work.spoonbill(&["query", "page.html", "--css", "li, b"]);
    insta::assert_snapshot!(css.shown(&work), @r#"
    exit 0
    --- stdout
    "one bold"
    "bold"
    "zwei ü"
    "#);
    let xpath = work.spoonbill(&["query", "page.html", "--xpath", "//li | //b"]);
    assert_eq!((xpath.code, xpath.stdout), (0, css.stdout));
}

#[test]
fn query_prints_attributes_and_xpath_values() {
    let work = with_page();
    let css = work.spoonbill(&["query", "page.html", "--css", "li", "--attr", "class"]);
    insta::assert_snapshot!(css.shown(&work), @r#"
    exit 0
    --- stdout
    "a"
    "b"
    "#);
    let xpath = work.spoonbill(&["query", "page.html", "--xpath", "//li/@title"]);
    insta::assert_snapshot!(xpath.shown(&work), @r#"
    exit 0
    --- stdout
    "T \"1\""
    "#);
    let string = work.spoonbill(&["query", "page.html", "--xpath", "normalize-space(//li[1])"]);
    insta::assert_snapshot!(string.shown(&work), @r#"
    exit 0
    --- stdout
    "one bold"
    "#);
    let number = work.spoonbill(&["query", "page.html", "--xpath", "count(//li)"]);
    insta::assert_snapshot!(number.shown(&work), @r#"
    exit 0
    --- stdout
    "2"
    "#);
}

#[test]
fn query_prints_nothing_without_a_match() {
    let work = with_page();
    let none = work.spoonbill(&["query", "page.html", "--css", "table"]);
    insta::assert_snapshot!(none.shown(&work), @"exit 0");
}

#[test]
fn query_shows_where_a_query_is_wrong() {
    let work = with_page();
    let css = work.spoonbill(&["query", "page.html", "--css", "li["]);
    insta::assert_snapshot!(css.shown(&work), @r#"
    exit 3
    --- stderr
    error: `[` has no matching `]` (at character 3)
    "#);
    let xpath = work.spoonbill(&["query", "page.html", "--xpath", "//li["]);
    insta::assert_snapshot!(xpath.shown(&work), @r#"
    exit 3
    --- stderr
    error: expected a name, `*` or `text()`, found the end (at character 6)
    "#);
}

#[test]
fn query_ends_with_4_if_a_page_cannot_be_loaded() {
    let work = Workdir::new();
    let file = work.spoonbill(&["query", "none.html", "--css", "li"]);
    insta::assert_snapshot!(file.shown(&work), @r#"
    exit 4
    --- stderr
    error: cannot load `none.html`: no file `none.html`
    "#);
    let site = TestSite::start();
    let missing = work.spoonbill(&["query", &site.url("/none"), "--css", "li"]);
    insta::assert_snapshot!(missing.shown(&work), @r#"
    exit 4
    --- stderr
    error: cannot load `http://127.0.0.1:[port]/none`: status 404 Not Found
    "#);
}

#[test]
fn query_loads_a_page_over_http() {
    let work = Workdir::new();
    let site = TestSite::start();
    site.page("/", PAGE);
    let found = work.spoonbill(&["query", &site.url("/"), "--css", "li.b"]);
    assert_eq!((found.code, found.stdout.as_str()), (0, "\"zwei ü\"\n"), "{}", found.stderr);
}

#[test]
fn query_gives_up_after_the_idle_timeout() {
    let work = Workdir::new();
    let site = TestSite::start();
    site.answer("/", SiteResponse::silence());
    let url = site.url("/");
    let arguments = ["query", &url, "--css", "li", "--set", "loader.idle.timeout=200ms"];
    let silent = work.spoonbill(&arguments);
    insta::assert_snapshot!(silent.shown(&work), @r#"
    exit 4
    --- stderr
    error: cannot load `http://127.0.0.1:[port]/`: timed out after 200 ms without data
    "#);
}

#[test]
fn query_needs_css_or_xpath() {
    let work = with_page();
    let none = work.spoonbill(&["query", "page.html"]);
    insta::assert_snapshot!(none.shown(&work), @r#"
    exit 2
    --- stderr
    error: the following required arguments were not provided:
      <--css <SELECTOR>|--xpath <EXPRESSION>>

    Usage: spoonbill query <--css <SELECTOR>|--xpath <EXPRESSION>> <SOURCE>

    For more information, try '--help'.
    "#);
    let both = work.spoonbill(&["query", "page.html", "--css", "a", "--xpath", "//a"]);
    insta::assert_snapshot!(both.shown(&work), @r#"
    exit 2
    --- stderr
    error: the argument '--css <SELECTOR>' cannot be used with '--xpath <EXPRESSION>'

    Usage: spoonbill query <--css <SELECTOR>|--xpath <EXPRESSION>> <SOURCE>

    For more information, try '--help'.
    "#);
}
