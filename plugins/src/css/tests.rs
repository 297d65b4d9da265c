//! The expected results were taken from jsoup.

use super::*;
use crate::html::TreeLimits;

const PAGE: &str = r#"<!doctype html><html><head><title> a  b </title>
<script>var Hello = 1;</script></head><body><!-- Note me --><div id=Main class="One two"><p a=" x y "
title="'q'">One'One <b>bold</b> tail</p><p>Two (2)<br>lines\x</p><p>Three</p><p class=TWO></p><p> </p>
<p><!--c--></p></div><ul><li>1<li>2<li>3<li>4<li>5</ul><pre>  keep
  this  </pre><fb:name>n</fb:name><h1>t1<i>i</i>t2</h1><a href=/x data-k=1>l&nbsp;&nbsp;k</a></body></html>"#;

fn page(html: &str) -> Document {
    Document::parse(html, TreeLimits::default()).expect("small page")
}

/// The matches, separated by `|`: tag name and own text of each.
fn found_in(html: &str, root: &str, selector: &str) -> String {
    let page = page(html);
    let mut cache = TextCache::default();
    let root = if root.is_empty() {
        page.root()
    } else {
        let roots = Selector::parse(root).expect(root);
        roots.select(&page, page.root(), &mut cache).expect(root)[0]
    };
    let selector = Selector::parse(selector).expect(selector);
    let found = selector.select(&page, root, &mut cache).expect("a small page");
    let first = selector.select_first(&page, root, &mut cache);
    assert_eq!(first, Ok(found.first().copied()));
    let name = |node| match page.kind(node) {
        crate::html::NodeKind::Text => "#text".to_owned(),
        _ => page.name(node).map_or("#root".to_owned(), ToString::to_string),
    };
    let words = found.iter().map(|node| match own_text(&page, *node).as_str() {
        "" => name(*node),
        text => format!("{}={text}", name(*node)),
    });
    words.collect::<Vec<_>>().join("|")
}

#[track_caller]
fn check(selector: &str, expected: &str) {
    assert_eq!(found_in(PAGE, "", selector), expected, "{selector}");
}

#[track_caller]
fn check_from(root: &str, selector: &str, expected: &str) {
    assert_eq!(found_in(PAGE, root, selector), expected, "{selector} from {root}");
}

#[test]
fn tags_ids_and_classes_match() {
    check("LI", "li=1|li=2|li=3|li=4|li=5");
    check("#Main", "div");
    check("#main", "");
    check(".two", "div|p");
    check("div.One.TWO", "div");
    check("fb|name", "fb:name=n");
    check("*|name", "fb:name=n");
    check("*|b", "b=bold");
    check("[href]a", "a=l k");
    check("head > *", "title=a  b|script");
}

#[test]
fn attributes_match_by_operator() {
    for selector in ["[a]", "[A=X y]", "[a= x y ]", "[a=' x y ']", "[a^=' x']", "[a$='y ']"] {
        check(selector, "p=One'One tail");
    }
    for selector in ["[a*=' y']", "[title=\"'q'\"]", "[ a=x y]", r"[a~=x\sy]", "p[a!=q][a]"] {
        check(selector, "p=One'One tail");
    }
    for selector in ["[a^=x]", "[a = 'x y']", "[ a ]", "[title='q']", "[a~=^x]"] {
        check(selector, "");
    }
    check("[^DATA]", "a=l k");
    check("[abs:href]", "a=l k");
    check("b[x!=1]", "b=bold");
}

#[test]
fn combinators_and_lists_match() {
    check("body>div b", "b=bold");
    check("li + li ~ li", "li=3|li=4|li=5");
    check("b, title , div > p > b", "title=a  b|b=bold");
    check("div\tp\nb", "b=bold");
    check("> html > head title", "title=a  b");
    check("+ p", "");
    check("* > html", "html");
}

#[test]
fn a_search_stays_in_its_root() {
    check_from("ul", "*", "ul|li=1|li=2|li=3|li=4|li=5");
    check_from("ul", "ul > li:eq(0)", "li=1");
    check_from("ul", "body li", "");
    check_from("ul", "> li:last-child", "li=5");
    check_from("ul", "li, > li", "li=1|li=2|li=3|li=4|li=5");
    check_from("ul", ":root", "ul");
    check_from("li:eq(2)", "li:nth-child(3)", "li=3");
    check_from("li:eq(2)", "li + li", "");
    check_from("li:eq(2)", ":lt(9)", "");
}

#[test]
fn positions_count_among_siblings() {
    check("li:nth-child(2n+1)", "li=1|li=3|li=5");
    check("li:NTH-child( ODD )", "li=1|li=3|li=5");
    check("li:nth-child(2n + 1)", "li=1|li=3|li=5");
    check("li:nth-child(even)", "li=2|li=4");
    check("li:nth-child(-2n+3)", "li=1|li=3");
    check("li:nth-child(-n+3)", "li=3|li=4|li=5");
    check("li:nth-child(+2)", "li=2");
    check("li:nth-last-child(2)", "li=4");
    check(
        "body > :nth-of-type(1):first-of-type:last-of-type",
        "div|ul|pre=keep\n  this|fb:name=n|h1=t1t2|a=l k",
    );
    check("li:nth-last-of-type(4n)", "li=2");
    check("li:eq(1), li:gt(3), li:lt(1)", "li=1|li=2|li=5");
    check("b:only-child, i:only-of-type, li:only-child", "b=bold|i=i");
    check("html:first-child, html:nth-child(1), html:only-child", "");
    check("html:eq(0)", "html");
}

#[test]
fn pseudo_classes_test_the_structure() {
    check(":root", "html");
    check(":empty", "br|p|p");
    check("div:has(b), p:has(> b)", "div|p=One'One tail");
    check("ul:has(ul), p:has(p)", "");
    check("div:has(> b)", "");
    check("body:has(div > p + p)", "body");
    check("p:not(.two):not(:has(b)):not(:empty)", "p=Two (2) lines\\x|p=Three|p");
    check("p:is(.two, [a])", "p=One'One tail|p");
    check("li:not(ul > :nth-child(n+2))", "li=1");
    check(":has(:has(b))", "#root|html|body|div");
}

#[test]
fn pseudo_classes_test_texts() {
    check("div:contains(ONE'ONE BOLD TAIL TWO)", "div");
    check(r"p:contains(One\'One)", "p=One'One tail");
    check("p:contains(Two (2))", "p=Two (2) lines\\x");
    check(r"p:contains(two \(2\) LINES\\x)", "p=Two (2) lines\\x");
    check("p:containsOwn(bold), p:containsOwn(one tail)", "p=One'One tail");
    check("p:contains(\"Three\"), p:contains(three )", "");
    check("p:contains( ):not(:has(*))", "");
    check("a:contains(l k)", "a=l k");
    check(":containsData(HELLO)", "#root|html|head|script");
    check("body:containsData(note me)", "body");
    check(r"p:matches(\(\d\)), p:matches(^Th)", "p=Two (2) lines\\x|p=Three");
    check(r"p:matches(\Q(2\E)", "p=Two (2) lines\\x");
    check("p:matchesOwn(bold), p:matchesOwn(tail$)", "p=One'One tail");
    check(r"pre:matches(keep\n +this$)", "pre=keep\n  this");
    check("p:matchText", "#text=One'One|#text=tail|#text=Two (2)|#text=lines\\x|#text=Three|#text");
    check("h1:matchText:contains(t1), i", "#text=t1|i=i");
    check("h1 > :matchText", "#text=t1|#text=t2");
}

#[test]
fn texts_are_normalized() {
    #[track_caller]
    fn check(html: &str, own: &str, whole: &str) {
        let page = page(&format!("<x-root>{html}</x-root>"));
        let at = page.all().find(|node| page.name(*node).is_some_and(|name| &**name == "x-root"));
        let at = at.expect("the root");
        assert_eq!((&*own_text(&page, at), &*text(&page, at)), (own, whole), "{html}");
        let wrapped = format!("<x-root>{html}</x-root>");
        let needle = format!("x-root:contains({whole})");
        assert_ne!(found_in(&wrapped, "", &needle), "", "{html}");
    }
    check(" a \t\n\u{c}\u{a0} b ", "a b", "a b");
    check("so\u{ad}ft\u{200b}ly \u{200b} x", "softly x", "softly x");
    check("a<br>b<br/> c", "a b c", "a b c");
    check("a<i>b</i>c", "ac", "abc");
    check("a<div>b</div>c<hr>d", "acd", "a b c d");
    check("<script>no</script><style>no</style>yes<!-- no -->", "yes", "yes");
    check("<pre> a  b\n</pre>c", "c", "a  b\n c");
    check("<pre><b><b><b><b><b>x  y</b></b></b></b></b></pre>z", "z", "x  y z");
    check("<pre><b><b><b><b><b><b>x  y</b></b></b></b></b></b></pre>z", "z", "x y z");
    check("<td>1<td>2", "12", "12");
    check("ΟΔΟΣ straße", "ΟΔΟΣ straße", "ΟΔΟΣ straße");
}

#[test]
fn svg_names_are_matched_in_any_case() {
    let html = "<svg viewBox='0 0'><linearGradient><stop/></linearGradient></svg>";
    assert_eq!(found_in(html, "", "LinearGradient > stop"), "stop");
    assert_eq!(found_in(html, "", "svg[viewbox^=0]"), "svg");
}

#[test]
fn a_lone_quote_is_a_plain_character() {
    let html = "<table><td>Dec '16<td>Mar '17";
    assert_eq!(found_in(html, "", "td:contains(Dec '16)"), "td=Dec '16");
    assert_eq!(found_in(html, "", "td:contains(Dec '16) + td"), "td=Mar '17");
}

#[test]
fn errors_name_the_problem_and_its_position() {
    let message = |selector| Selector::parse(selector).expect_err(selector).to_string();
    let bad = [
        "",
        "p >",
        "p > > b",
        ", p",
        "p,",
        "p#",
        "p..x",
        "-p",
        "p)",
        "p[",
        "[=x]",
        "[a=]",
        "[^]",
        "p:contians(x)",
        "p:frist-child",
        "p:xyzzy",
        "p:",
        "p:has",
        "p:has()",
        "p:contains()",
        "p:contains(a",
        ":eq(-1)",
        ":nth-child(x)",
        r":matches(a\y)",
        ":matches(a(b)",
    ];
    let report: Vec<String> = bad.iter().map(|bad| format!("{bad:16}{}", message(bad))).collect();
    insta::assert_snapshot!(report.join("\n"), @r"
                    a selector is missing (at character 1)
    p >             a selector is missing at the end (at character 4)
    p > > b         a selector is missing before `>` (at character 5)
    , p             a selector is missing before `,` (at character 1)
    p,              a selector is missing at the end (at character 3)
    p#              an id is missing after `#` (at character 3)
    p..x            a class name is missing after `.` (at character 3)
    -p              unexpected `-` (at character 1)
    p)              unexpected `)` (at character 2)
    p[              `[` has no matching `]` (at character 2)
    [=x]            an attribute name is missing (at character 2)
    [a=]            a value is missing after `=` (at character 4)
    [^]             an attribute name is missing after `^` (at character 2)
    p:contians(x)   unknown pseudo-class `:contians`; did you mean `:contains`? (at character 2)
    p:frist-child   unknown pseudo-class `:frist-child`; did you mean `:first-child`? (at character 2)
    p:xyzzy         unknown pseudo-class `:xyzzy` (at character 2)
    p:              a pseudo-class is missing after `:` (at character 2)
    p:has           `:has` needs an argument in parentheses (at character 6)
    p:has()         a selector is missing (at character 7)
    p:contains()    a text is missing in the parentheses (at character 12)
    p:contains(a    `(` has no matching `)` (at character 11)
    :eq(-1)         `-1` is not an index: expected a whole number from 0 (at character 5)
    :nth-child(x)   `x` is not a position: use `3`, `2n+1`, `odd` or `even` (at character 12)
    :matches(a\y)   regex `a\y` is invalid: `\y` is not a supported escape (at character 10)
    :matches(a(b)   `(` has no matching `)` (at character 9)
    ");
}

#[test]
fn nesting_and_length_are_limited() {
    let nested = format!("{}p{}", ":not(".repeat(40), ")".repeat(40));
    let error = Selector::parse(&nested).expect_err("nested");
    assert_eq!(error.message, "selectors are nested more than 16 levels deep");
    let long = "a ".repeat(600);
    let error = Selector::parse(&long).expect_err("long");
    assert_eq!(error.message, "selector has more than 500 parts");
}

/// A page of the greatest depth, on a small stack. Without remembered results, these selectors
/// would try all pairs and triples of ancestors.
#[test]
fn a_deep_page_is_searched_in_linear_time() {
    let run = || {
        let html = format!("{}<p>x</p>", "<div>".repeat(4_900));
        let page = page(&html);
        let mut cache = TextCache::default();
        let mut count = |selector: &str| {
            let selector = Selector::parse(selector).expect(selector);
            selector.select(&page, page.root(), &mut cache).expect("in time").len()
        };
        assert_eq!(count("em div div div div div div"), 0);
        assert_eq!(count("div div > div div p"), 1);
        assert_eq!(count(":has(:has(:has(p)))"), 4_901);
        assert_eq!(count("div:contains(x)"), 4_900);
        assert_eq!(count("div:matches(x)"), 4_900);
        assert_eq!(count(&format!("{}p", "div ".repeat(499))), 1);
        assert_eq!(text(&page, page.root()), "x");
    };
    let small = std::thread::Builder::new().stack_size(2 << 20);
    small.spawn(run).expect("a thread").join().expect("no overflow");
}

#[test]
fn a_search_stops_at_its_step_limit() {
    let page = page(&"<div>".repeat(3_000));
    let selector = Selector::parse("div:has(> div:has(> div:has(em div)))").expect("valid");
    let result = selector.select(&page, page.root(), &mut TextCache::default());
    assert!(matches!(result, Err(MatchError::TooManySteps { .. })), "{result:?}");
}

/// `scraper` must agree on selectors of standard CSS.
///
/// The test leaves out `html`, which has a position among siblings only in `scraper`. It also
/// leaves out the document node, which is an element only here.
#[test]
fn agrees_with_scraper_on_standard_selectors() {
    let theirs = scraper::Html::parse_document(PAGE);
    let ours = page(PAGE);
    let mut cache = TextCache::default();
    let parts = "p|li|div|b|*|.One|#Main|[a]|[href^='/']|ul|body|br|p:first-child|i|:only-child|\
        li:nth-child(2n+1)|li:nth-last-child(2)|li:last-child|p:nth-of-type(3)|pre:last-of-type|\
        p:not(.One)|li:not(:first-child)|div:has(b)|p:has(> b)|[title*=q]|[data-k='1']";
    let parts: Vec<&str> = parts.split('|').collect();
    for (left, right) in parts.iter().flat_map(|l| parts.iter().map(move |r| (l, r))) {
        for joint in [" ", " > ", " + ", " ~ ", ", "] {
            let written = format!("{left}{joint}{right}");
            let selector = scraper::Selector::parse(&written).expect(&written);
            let expected: Vec<String> = theirs
                .select(&selector)
                .filter(|element| element.value().name() != "html")
                .map(|element| element.text().collect())
                .collect();
            let selector = Selector::parse(&written).expect(&written);
            let found = selector.select(&ours, ours.root(), &mut cache);
            let found: Vec<String> = found
                .expect("a small page")
                .into_iter()
                .filter(|node| ours.name(*node).is_some_and(|name| &**name != "html"))
                .map(|node| ours.text_content(node))
                .collect();
            // The parents of these elements include `html`, so the engines may differ.
            if *left != ":only-child" {
                assert_eq!(found, expected, "{written}");
            }
        }
    }
}

#[test]
fn standard_selectors_beyond_jsoup_are_accepted() {
    let html = "<a class='md:flex w-1/2 Card'>x</a><b class='2nd card'><i>y</i></b>";
    for (selector, expected) in [
        (r".md\:flex", "a=x"),
        (r".w-1\/2", "a=x"),
        (r".\32 nd", "b"),
        (r"a.w-1\/2.md\:flex", "a=x"),
        ("[class~=\"card\"]", "a=x|b"),
        ("[class~=\"car\"]", ""),
        ("[class~=ca.d]", "b"),
        ("[class*=\"card\" i]", "a=x|b"),
        ("[class*='Card' s]", "a=x"),
        ("[class~='card' s]", "b"),
    ] {
        assert_eq!(found_in(html, "", selector), expected, "{selector}");
    }
    assert_eq!(found_in(html, "b", ":scope > i"), "i=y");
    assert_eq!(found_in(html, "b", "b:has(:scope > i)"), "b");
}
