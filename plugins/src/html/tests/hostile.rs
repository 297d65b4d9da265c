//! Pages that would take long: each must end by itself soon, or be refused.

use std::time::Duration;

use super::*;

/// Parses with the limits a run has; true if it gave a tree.
fn ends(html: &str) -> bool {
    let deadline = Some(Instant::now() + Duration::from_millis(300));
    is_tree(Document::parse(html, TreeLimits { deadline, ..TreeLimits::default() }))
}

/// Parses without looking at the clock: this must not take more than the page is long.
fn ends_by_itself(html: &str) -> bool {
    is_tree(Document::parse(html, TreeLimits::default()))
}

fn is_tree(parsed: Result<Document, TreeError>) -> bool {
    parsed.inspect(check_links).is_ok()
}

#[test]
fn many_attributes_cost_no_more_than_they_are_long() {
    let attributes = (0..100_000).fold(String::new(), |mut all, number| {
        write!(all, " a{number}=1").unwrap();
        all
    });
    assert!(ends_by_itself(&format!("<p{attributes}>")));
    assert!(ends_by_itself(&format!(
        "<b{attributes}><b{attributes}><b{attributes}><b{attributes}>"
    )));
    assert!(ends_by_itself(&"<a b=c".repeat(20_000)));
    let bodies = (0..20_000).fold(String::new(), |mut all, number| {
        write!(all, "<body a{number}><html b{number}>").unwrap();
        all
    });
    assert!(ends_by_itself(&bodies));
}

#[test]
fn texts_that_grow_in_pieces_are_not_copied_each_time() {
    assert!(ends_by_itself(&format!("<table>{}", "a<tr x='&amp;'>".repeat(20_000))));
    assert!(ends_by_itself(&"a</x>&amp;<!DOCTYPE>".repeat(20_000)));
    assert!(ends_by_itself(&format!("<svg>{}", "a\0".repeat(20_000))));
}

#[test]
fn unclosed_and_misnested_elements_end_or_are_refused() {
    let many = 20_000;
    for (start, part) in [
        ("", "<b>"),
        ("", "<font size=1><p>"),
        ("", "<a><p>"),
        ("", "<a><div></a>"),
        ("", "<b><div></b><p>"),
        ("", "<i></p>"),
        ("", "<nobr><div>"),
        ("<table>", "<b><p>x"),
        ("", "<table><td>"),
        ("", "<table><b>"),
        ("", "<select><option>"),
        ("", "<ul><li>"),
        ("", "<svg><desc>"),
        ("", "<math><mi>"),
        ("", "<template>"),
        ("", "<button><p>"),
        ("", "<object><b>"),
        ("", "</p>"),
        ("", "</br>"),
        ("", "<![CDATA["),
        ("<svg>", "<![CDATA[a"),
        ("", "<!--"),
        ("<script>", "<!--<script>"),
        ("<title>", "</title"),
        ("", "&#x"),
        ("", "&aaaaaaaa"),
        ("", "<"),
        ("", "</"),
        ("", "<a \""),
        ("", "<frameset>"),
    ] {
        ends(&format!("{start}{}", part.repeat(many)));
    }
}

#[test]
fn searches_through_a_deep_stack_are_cut_off() {
    let deep = "<span>".repeat(4_900);
    for part in ["</p>", "<p></p>", "</x>", "<br></div>", "<b></b>", "<a><p></a>", "<li></li>"] {
        ends(&format!("{deep}{}", part.repeat(30_000)));
    }
    let fonts = (0..4_900).fold(String::new(), |mut all, number| {
        write!(all, "<font size={number}>").unwrap();
        all
    });
    for part in ["<p></font>", "<div></font></div>", "</div>", "x<p>", "<font></font>"] {
        ends(&format!("{fonts}{}", part.repeat(30_000)));
        ends(&format!("{fonts}<p>{}", part.repeat(30_000)));
    }
}

#[test]
fn limits_refuse_hostile_pages() {
    let limits = TreeLimits { nodes_max: 1_000, depth_max: 100, deadline: None };
    let wide = "<i>x</i>".repeat(20_000);
    assert_eq!(Document::parse(&wide, limits).unwrap_err(), TreeError::TooManyNodes(1_000));
    let deep = "<div>".repeat(500);
    assert_eq!(Document::parse(&deep, limits).unwrap_err(), TreeError::TooDeep(100));
    let limits = TreeLimits { deadline: Some(Instant::now()), ..TreeLimits::default() };
    let long = "<p>x".repeat(100_000);
    assert_eq!(Document::parse(&long, limits).unwrap_err(), TreeError::TooSlow);
}
