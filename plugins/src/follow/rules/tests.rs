//! Links on a page: which are taken, and what is said of the others.

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

/// Taken links and counted reasons, one a line.
fn look(rules: &[Follow], page: &str, html: &str) -> String {
    look_from(rules, page, page, html)
}

fn look_from(rules: &[Follow], start: &str, page: &str, html: &str) -> String {
    let document = Document::parse(html, TreeLimits::default()).unwrap();
    let rules = rules.iter().zip(1..).map(|(rule, number)| Rule::compile(rule, number).unwrap());
    let plan = FollowPlan::new(rules.collect());
    let canon = Canon::new("utm_*");
    let ground = Ground {
        group: "g",
        asked: page,
        page: Address::of(page).unwrap(),
        home: Address::of(page).unwrap(),
        start: Address::of(start).unwrap(),
        depth: 2,
        canon: &canon,
        tells: false,
    };
    let found = plan.collect(&document, &ground).unwrap();
    let links = found.links.iter().map(|link| format!("{} {} {}", link.rule, link.group, link.url));
    let skipped = found.skipped.iter().map(|(reason, count)| format!("{count} {reason}"));
    links.chain(skipped).collect::<Vec<_>>().join("\n")
}

const PAGE: &str = "http://h/list?p=1";

#[test]
fn every_link_is_taken_or_has_its_reason() {
    let html = "<a href=/a>1</a><a href='/a#x'>2</a><a href=/a?utm_id=1>3</a><a>4</a>
        <a href=http://other/x>5</a><a href=mailto:x>6</a><a href='http://['>7</a>
        <a href='?p=1'>8</a><img src=b.png><a href=file:///x>9</a>";
    insta::assert_snapshot!(look(&[css("a, img")], PAGE, html), @r"
    1 g http://h/a
    1 g http://h/b.png
    3 already known
    1 links of web pages that name a file
    1 links out of scope (host)
    1 links that are no web address (mailto:, javascript:, ...)
    1 links that cannot be read
    1 links without an address
    ");
}

#[test]
fn patterns_depth_and_groups() {
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
    1 links that a deny pattern holds
    1 links that no allow pattern holds
    ");
}

#[test]
fn attributes_xpath_and_base() {
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
fn scopes_are_of_the_page_and_the_prefix_of_the_start_page() {
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
fn links_of_files_join_as_they_stand() {
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
fn all_that_is_wrong_with_a_rule_is_told() {
    let rule = Follow { allow: texts(&["("]), deny: texts(&["ok", "["]), ..css("a[") };
    let problems = Rule::compile(&rule, 1).unwrap_err();
    let words: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(words.len(), 3);
    assert!(words[0].starts_with("follow: bad selector: "), "{words:?}");
    assert!(words[1].starts_with("bad `allow` pattern: "), "{words:?}");
    assert!(words[2].starts_with("bad `deny` pattern: "), "{words:?}");
    assert!(Rule::compile(&xpath("//["), 1).is_err());
}

#[test]
fn a_pattern_that_takes_too_long_is_a_reason_too() {
    let rule = Follow { deny: texts(&["(?=(a+)+$)(a+)+b"]), ..css("a") };
    let html = format!("<a href=/{}>1</a>", "a".repeat(40));
    let found = look(&[rule], PAGE, &html);
    assert!(
        found.contains("links on which a pattern gives up") || found.starts_with("1 g"),
        "{found}"
    );
}

#[test]
fn a_selector_that_is_none_has_the_advice_of_fields() {
    let told = |rule: Follow| Rule::compile(&rule, 1).unwrap_err().remove(0);
    let words = told(css("//a[1]"));
    assert_eq!(words.message, "follow: `//a[1]` is XPath and stands for a selector");
    let words = told(css("a::attr(href)"));
    assert!(words.inside.is_some() && words.help.unwrap().starts_with("write `a @href`"));
    assert!(told(xpath("li.next > a")).message.ends_with("stands for XPath"));
}

#[test]
fn users_and_passwords_are_no_part_of_which_page_it_is() {
    let html =
        "<a href=http://me:pw@h/a>1</a><a href=http://h/a>2</a><a href=http://x@h/list?p=1>3</a>";
    insta::assert_snapshot!(look(&[css("a")], PAGE, html), @r"
    1 g http://me:pw@h/a
    2 already known
    ");
}
