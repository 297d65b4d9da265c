use super::super::*;
use super::{PAGE, check, page};

#[test]
fn nesting_is_limited_for_every_construct() {
    let deep = |open: &str, core: &str, close: &str, times: usize| {
        open.repeat(times) + core + &close.repeat(times)
    };
    let document = page(PAGE);
    for (open, core, close) in [
        ("(", "1", ")"),
        ("not(", "1", ")"),
        ("p[", "p", "]"),
        ("-(", "1", ")"),
        ("1 or 1 and 1=1<1+1*(", "p", ")"),
        ("(p[1]|", "p", ")"),
        ("(", "p", ")[1]"),
        ("p[count(", "p", ") > p]"),
    ] {
        let error = XPath::parse(&deep(open, core, close, 3_000)).unwrap_err();
        let expect = "expression is nested more than 100 levels deep";
        assert_eq!(error.message, expect, "{open}");
        // The deepest expression that compiles must also be evaluated on the small stack of this
        // thread.
        let most = (1..=110).rev().find_map(|times| {
            let path = XPath::parse(&deep(open, core, close, times)).ok()?;
            Some(path.evaluate(&document, document.root(), XPathLimits::default()))
        });
        assert!(most.is_some_and(|value| value.is_ok()), "{open}");
    }
    assert!(XPath::parse(&format!("p{}", "+p".repeat(5_000))).is_err());
    assert!(XPath::parse(&format!("1{}", "=1".repeat(5_000))).is_err());
    for wide in ["p or ", "p and ", "p | ", "p/", "-", "p//"] {
        check(&format!("boolean({}p)", wide.repeat(5_000)), "false");
    }
    assert!(XPath::parse(&"p/".repeat(50_000)).is_err());
}

#[test]
fn an_expensive_evaluation_stops_at_its_budget() {
    let document = page(&"<div><p>x</p>".repeat(500));
    let limits = XPathLimits { steps_max: 150_000 };
    let run = |expression: &str| {
        let path = XPath::parse(expression).unwrap();
        path.evaluate(&document, document.root(), limits)
    };
    for hostile in [
        "//*[count(//*[count(//*) > 5]) > 5]",
        "//*/following::*[last()]",
        "//*[. = //*/text()[. = 'y']]",
        "//*[contains(., 'y')]",
        "//*/descendant::*[position() > 1]",
    ] {
        let error = run(hostile).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stopped after 150000 steps: the expression is too expensive for this page"
        );
    }
    // Contexts whose nodes are all reached from another one are dropped first.
    for harmless in [
        "//*//*//*//*",
        "//*/following::*/preceding::*",
        "//*/following-sibling::*/preceding-sibling::*",
        "//*/..//*[not(@id)]",
        "//*[//*[//*]]",
    ] {
        assert!(run(harmless).is_ok(), "{harmless}");
    }
}

#[test]
fn duplicates_are_dropped_before_they_fill_the_memory() {
    let document = page(&"<i>x</i>".repeat(1_100));
    let path = XPath::parse("//*/following-sibling::*[position() > 0]").unwrap();
    let value = path.evaluate(&document, document.root(), XPathLimits::default());
    let Ok(XPathValue::Nodes(nodes)) = value else {
        panic!("{value:?}");
    };
    assert_eq!(nodes.len(), 1_100);
    assert!(nodes.is_sorted_by(|before, after| before < after));
}

#[test]
fn a_page_of_the_greatest_depth_is_walked_on_a_small_stack() {
    let document = page(&"<div>".repeat(4_990));
    for expression in [
        "count(//div)",
        "count(//div[not(div)]/ancestor::*)",
        "string(/)",
        "count(//div[1]/div[1])",
        "count(//*/ancestor-or-self::*[1])",
        "string-length(normalize-space(//div))",
    ] {
        let path = XPath::parse(expression).unwrap();
        let value = path.evaluate(&document, document.root(), XPathLimits::default());
        assert!(value.is_ok(), "{expression}: {value:?}");
    }
}
