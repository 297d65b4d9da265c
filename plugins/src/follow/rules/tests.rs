//! Which links of a page are followed, and the reasons against the rest.

use spoonbill_defs::{Follow, FollowScope, Query, Text};

use super::*;
use crate::html::TreeLimits;

fn css(selector: &str) -> Follow {
    let query = Query { css: Some(Text::new(selector)), ..Query::default() };
    Follow { query, group: Text::new("g"), ..Follow::default() }
}

fn xpath(path: &str) -> Follow {
    let query = Query { xpath: Some(Text::new(path)), ..Query::default() };
    Follow { query, group: Text::new("g"), ..Follow::default() }
}

fn texts(words: &[&str]) -> Vec<Text> {
    words.iter().map(|word| Text::new(*word)).collect()
}

/// The links to follow and the counted reasons, one per line.
fn look(rules: &[Follow], page: &str, html: &str) -> String {
    look_from(rules, page, page, html)
}

fn look_from(rules: &[Follow], start: &str, page: &str, html: &str) -> String {
    let document = Document::parse(html, TreeLimits::default()).unwrap();
    let rules =
        rules.iter().zip(1..).map(|(rule, number)| FollowRule::compile(rule, number).unwrap());
    let plan = FollowPlan::new(rules.collect());
    let canon = Canonicalizer::new("utm_*");
    let context = LinkContext {
        group: "g",
        asked: page,
        page: PageAddress::of(page).unwrap(),
        home: PageAddress::of(page).unwrap(),
        start: PageAddress::of(start).unwrap(),
        depth: 2,
        canon: &canon,
        keeps_refused: false,
    };
    let found = plan.collect(&document, &context).unwrap();
    let links = found.links.iter().map(|link| format!("{} {} {}", link.rule, link.group, link.url));
    let skipped = found.skipped.iter().map(|(reason, count)| format!("{count} {reason}"));
    links.chain(skipped).collect::<Vec<_>>().join("\n")
}

const PAGE: &str = "http://h/list?p=1";

#[test]
fn every_link_is_followed_or_has_a_reason() {
    let html = "<a href=/a>1</a><a href='/a#x'>2</a><a href=/a?utm_id=1>3</a><a>4</a>
        <a href=http://other/x>5</a><a href=mailto:x>6</a><a href='http://['>7</a>
        <a href='?p=1'>8</a><img src=b.png><a href=file:///x>9</a>";
    insta::assert_snapshot!(look(&[css("a, img")], PAGE, html), @r"
    1 g http://h/a
    1 g http://h/b.png
    3 already known
    1 links from web pages to files
    1 links out of scope (host)
    1 links to other schemes (mailto:, javascript:, ...)
    1 links with an invalid address
    1 links without an address
    ");
}

#[test]
fn patterns_and_depth_limit_the_links_of_a_rule() {
    let html = "<a href=/item/1>1</a><a href=/item/2/reviews>2</a><a href=/about>3</a>";
    let items = Follow {
        allow: texts(&["/item/\\d+"]),
        deny: texts(&["reviews$"]),
        group: Text::new("items"),
        ..css("a")
    };
    let deep = Follow { max_depth: Some(2), ..css("a") };
    let last = Follow { max_depth: Some(3), max_pages: Some(5), ..css("a[href=/about]") };
    insta::assert_snapshot!(look(&[items, deep, last], PAGE, html), @r"
    1 items http://h/item/1
    3 g http://h/about
    3 links beyond maxDepth
    1 links that match a deny pattern
    1 links that match no allow pattern
    ");
}

#[test]
fn links_come_from_attributes_and_xpath_and_resolve_against_the_base() {
    let html = "<base href=/b/><div data-url=x></div><a href=y>1</a><a href=z>2</a>";
    let mut data = css("div");
    data.query.attribute = Some(Text::new("DATA-url"));
    let rules = [data, xpath("//a"), xpath("//a[1]/@href"), xpath("string(//a[2]/@href)")];
    insta::assert_snapshot!(look(&rules, PAGE, html), @r"
    1 g http://h/b/x
    2 g http://h/b/y
    2 g http://h/b/z
    2 already known
    ");
}

#[test]
fn host_and_domain_compare_with_the_page_and_prefix_with_the_start_page() {
    let html = "<a href=/docs/a>1</a><a href=/b>2</a><a href=http://www.h.example/c>3</a>";
    let scoped = |scope| [Follow { scope, ..css("a") }];
    let (start, page) = ("http://h.example/docs/", "http://h.example/docs/x/y");
    let look = |scope| look_from(&scoped(scope), start, page, html);
    assert!(look(FollowScope::Host).ends_with("1 links out of scope (host)"));
    insta::assert_snapshot!(look(FollowScope::Prefix), @r"
    1 g http://h.example/docs/a
    2 links out of scope (prefix)
    ");
    assert_eq!(look(FollowScope::Domain).lines().count(), 3);
    assert_eq!(look(FollowScope::Any).lines().count(), 3);
}

#[test]
fn links_of_local_pages_resolve_as_paths() {
    let html = "<a href='item/3.html'>1</a><a href=/x>2</a><a href=list.html#a>3</a>
        <a href=http://h/>4</a>";
    insta::assert_snapshot!(look(&[css("a")], "pages/list.html", html), @r"
    1 g pages/item/3.html
    1 g /x
    1 already known
    1 links out of scope (host)
    ");
}

#[test]
fn all_problems_of_a_rule_are_reported() {
    let rule = Follow { allow: texts(&["("]), deny: texts(&["ok", "["]), ..css("a[") };
    let problems = FollowRule::compile(&rule, 1).unwrap_err();
    let words: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(words.len(), 3);
    assert!(words[0].starts_with("follow: bad selector: "), "{words:?}");
    assert!(words[1].starts_with("bad `allow` pattern: "), "{words:?}");
    assert!(words[2].starts_with("bad `deny` pattern: "), "{words:?}");
    assert!(FollowRule::compile(&xpath("//["), 1).is_err());
}

#[test]
fn a_pattern_that_takes_too_long_is_a_reason() {
    let rule = Follow { deny: texts(&["(?=(a+)+$)(a+)+b"]), ..css("a") };
    let html = format!("<a href=/{}>1</a>", "a".repeat(40));
    let found = look(&[rule], PAGE, &html);
    assert!(
        found.contains("links on which a pattern took too long") || found.starts_with("1 g"),
        "{found}"
    );
}

#[test]
fn a_wrong_selector_has_the_same_help_as_in_a_field() {
    let problem = |rule: Follow| FollowRule::compile(&rule, 1).unwrap_err().remove(0);
    let words = problem(css("//a[1]"));
    assert_eq!(words.message, "follow: `//a[1]` is XPath, but a selector is needed");
    let words = problem(css("a::attr(href)"));
    assert!(words.inside.is_some() && words.help.unwrap().starts_with("write `a @href`"));
    assert!(problem(xpath("li.next > a")).message.ends_with("but XPath is needed"));
}

#[test]
fn users_and_passwords_do_not_identify_a_page() {
    let html =
        "<a href=http://me:pw@h/a>1</a><a href=http://h/a>2</a><a href=http://x@h/list?p=1>3</a>";
    insta::assert_snapshot!(look(&[css("a")], PAGE, html), @r"
    1 g http://me:pw@h/a
    2 already known
    ");
}
