//! Pages made to be expensive. Each must be parsed in time that grows with its length, or be
//! refused by a limit.

use std::time::Duration;

use super::*;

/// Parses with a deadline. The page must give a valid tree or exceed a limit.
fn parse_or_refuse(html: &str) {
    let deadline = Some(Instant::now() + Duration::from_millis(300));
    match Document::parse(html, TreeLimits { deadline, ..TreeLimits::default() }) {
        Ok(document) => check_links(&document),
        Err(error) => assert_ne!(error, TreeError::TooLong),
    }
}

/// Parses without a deadline: with quadratic time the test would not end.
fn parse(html: &str) {
    check_links(&Document::parse(html, TreeLimits::default()).unwrap());
}

#[test]
fn attributes_take_linear_time() {
    let attributes = (0..100_000).fold(String::new(), |mut all, number| {
        write!(all, " a{number}=1").unwrap();
        all
    });
    parse(&format!("<p{attributes}>"));
    parse(&format!("<b{attributes}><b{attributes}><b{attributes}><b{attributes}>"));
    parse(&"<a b=c".repeat(20_000));
    let bodies = (0..20_000).fold(String::new(), |mut all, number| {
        write!(all, "<body a{number}><html b{number}>").unwrap();
        all
    });
    parse(&bodies);
}

#[test]
fn texts_in_many_pieces_take_linear_time() {
    parse(&format!("<table>{}", "a<tr x='&amp;'>".repeat(20_000)));
    parse(&"a</x>&amp;<!DOCTYPE>".repeat(20_000));
    parse(&format!("<svg>{}", "a\0".repeat(20_000)));
}

#[test]
fn unclosed_and_misnested_elements_are_parsed_or_refused() {
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
        parse_or_refuse(&format!("{start}{}", part.repeat(many)));
    }
}

#[test]
fn searches_in_a_deep_stack_are_parsed_or_refused() {
    let deep = "<span>".repeat(4_900);
    for part in ["</p>", "<p></p>", "</x>", "<br></div>", "<b></b>", "<a><p></a>", "<li></li>"] {
        parse_or_refuse(&format!("{deep}{}", part.repeat(30_000)));
    }
    let fonts = (0..4_900).fold(String::new(), |mut all, number| {
        write!(all, "<font size={number}>").unwrap();
        all
    });
    for part in ["<p></font>", "<div></font></div>", "</div>", "x<p>", "<font></font>"] {
        parse_or_refuse(&format!("{fonts}{}", part.repeat(30_000)));
        parse_or_refuse(&format!("{fonts}<p>{}", part.repeat(30_000)));
    }
}

#[test]
fn each_limit_refuses_a_page() {
    let limits = TreeLimits { nodes_max: 1_000, depth_max: 100, deadline: None };
    let wide = "<i>x</i>".repeat(20_000);
    assert_eq!(Document::parse(&wide, limits).unwrap_err(), TreeError::TooManyNodes(1_000));
    let deep = "<div>".repeat(500);
    assert_eq!(Document::parse(&deep, limits).unwrap_err(), TreeError::TooDeep(100));
    let limits = TreeLimits { deadline: Some(Instant::now()), ..TreeLimits::default() };
    let long = "<p>x".repeat(100_000);
    assert_eq!(Document::parse(&long, limits).unwrap_err(), TreeError::TooSlow);
}
