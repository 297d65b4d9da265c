use super::*;
use crate::html::TreeLimits;

fn check(page: &str, block: &str, selector: &str, attribute: Option<&str>, expect: Option<&str>) {
    let page = Document::parse(page, TreeLimits::default()).unwrap();
    let mut compiled = CompiledQueries::default();
    let mut queries = CssQueries::new(&page, &mut compiled);
    for _ in 0..2 {
        let found = queries.query(block, selector, attribute).unwrap();
        assert_eq!(found.as_deref(), expect, "{block} {selector}");
    }
}

#[test]
fn own_texts_are_joined_by_one_space() {
    let page = "<div><p> a <b>deep</b> b<p>\n<p>c<br>d</div>";
    check(page, "div", "p", None, Some("a b c d"));
    check(page, "div", "*", None, Some("a b deep c d"));
}

#[test]
fn a_blank_text_differs_from_a_missing_one() {
    let page = "<div><p> <p></div>";
    check(page, "div", "p", None, Some(""));
    check(page, "div", "i", None, None);
    check(page, "section", "p", None, None);
}

#[test]
fn every_block_is_searched_and_an_element_counts_once() {
    let page = "<div>a<p>1</p><div>b<p>2</p></div></div><div>c<p>3</p></div>";
    check(page, "div", "p", None, Some("1 2 3"));
    check(page, "div", "div", None, Some("a b c"));
    check(page, "div", "> p", None, Some("1 2 3"));
}

#[test]
fn blocks_are_searched_in_document_order() {
    let page = "<section><ul><li>1</ul><p>x<li>2</section><ul><li>3</ul>";
    check(page, "section, ul", "li", None, Some("1 2 3"));
    let nested = "<div id=a><b>1</b><div id=b><b>2</b></div><b>3</b></div>";
    check(nested, "div", "b", None, Some("1 2 3"));
    check(nested, "div", "> b", None, Some("1 3 2"));
}

#[test]
fn attributes_are_not_trimmed_and_empty_if_missing() {
    let page = "<p><a href=' x '>1</a><a>2</a><a HREF='y'>3</a><i>4</i></p>";
    check(page, "p", "a", Some("href"), Some(" x  y"));
    check(page, "p", "a", Some("HREF"), Some(" x  y"));
    check(page, "p", "i", Some("href"), Some(""));
    check(page, "p", "b", Some("href"), None);
}

#[test]
fn an_error_names_the_invalid_query() {
    let page = Document::parse("<p>", TreeLimits::default()).unwrap();
    let mut compiled = CompiledQueries::default();
    let mut queries = CssQueries::new(&page, &mut compiled);
    let error = queries.query("p", "td:nth-child(", None).unwrap_err();
    assert!(error.to_string().starts_with("query `td:nth-child(`: "), "{error}");
    let error = queries.query("p[", "td", None).unwrap_err();
    assert!(error.to_string().starts_with("query `p[`: "), "{error}");
}
