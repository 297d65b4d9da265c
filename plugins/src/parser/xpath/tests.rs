use super::*;
use crate::html::TreeLimits;

fn ask(page: &str, block: &str, selector: &str) -> Result<Option<String>, ParseError> {
    let page = Document::parse(page, TreeLimits::default()).unwrap();
    let mut compiled = CompiledQueries::default();
    let mut queries = XpathQueries::new(&page, &mut compiled, XPathLimits::default());
    let first = queries.query(block, selector, None);
    assert_eq!(queries.query(block, selector, Some("href")), first, "attribute");
    first
}

fn check(page: &str, block: &str, selector: &str, expect: Option<&str>) {
    let found = ask(page, block, selector).unwrap();
    assert_eq!(found.as_deref(), expect, "{block} {selector}");
}

#[test]
fn the_last_node_decides_and_its_text_is_not_trimmed() {
    let page = "<div><p>one</p><p> two\n <b> three</b> </p></div>";
    check(page, "//div", "p", Some(" two\n  three "));
    check(page, "//div", "p[1]", Some("one"));
    check(page, "//div", "i", None);
    check(page, "//section", "p", None);
}

#[test]
fn the_last_block_decides_even_without_a_match() {
    let page = "<div><p>1</p></div><div><p>2</p><i>x</i></div>";
    check(page, "//div", "p", Some("2"));
    check(page, "//div", "i", Some("x"));
    check(page, "//div[1]", "i", None);
    check(&page.replace("<p>2</p>", ""), "//div", "p", None);
    check(&page.replace("<p>2</p>", ""), "//div", "//p", Some("1"));
}

#[test]
fn attributes_and_strings_are_values_but_numbers_and_booleans_are_not() {
    let page = "<div><a href='x'> a  b </a></div>";
    check(page, "//div", "a/@href", Some("x"));
    check(page, "//div", "normalize-space(a)", Some("a b"));
    check(page, "//div", "string(b)", Some(""));
    check(page, "//div", "count(a)", None);
    check(page, "//div", "count(a) = 1", None);
    check(page, "//a/@href", "..", Some(" a  b "));
}

#[test]
fn a_block_must_select_nodes() {
    let error = ask("<p>", "string(//p)", "p").unwrap_err();
    assert!(error.to_string().contains("a block must select nodes"), "{error}");
}

#[test]
fn an_error_names_the_invalid_query() {
    let error = ask("<p>", "//p", "p['it's']").unwrap_err();
    assert!(error.to_string().starts_with("query `p['it's']`: "), "{error}");
}
