mod limits;

use super::*;
use crate::html::TreeLimits;

const PAGE: &str = "<!doctype html><!--top--><html lang=en-GB><body class='a b'>\
    <div id=d1><p id=p1>one</p><p id=p2 class=x>two <b>bold</b> end<!--note--></p></div>\
    <div id=d2 data-Unit=kg><p id=p3>3</p><div id=d3><p id=p4>4.5</p><p id=p5>x\u{a0}y</p></div></div>\
    <table id=t><tr id=r1><td id=c1>1<td id=c2>2<td id=c3>3<tr id=r2><td id=c4>4<td id=c5>five</table>\
    <svg viewBox='0 0 1 1'><clipPath id=k xlink:href='#h'></clipPath></svg>";

fn page(html: &str) -> Document {
    Document::parse(html, TreeLimits::default()).unwrap()
}

/// A node in short form: `p#id` for an element, `@name=value`, `"text"`, `!` for a comment, `/` for
/// the document.
fn show(document: &Document, node: XNode) -> String {
    let XNode::Node(id) = node else {
        let XNode::Attribute(owner, index) = node else { unreachable!() };
        let (name, value) = document.attributes(owner).nth(index as usize).unwrap();
        return format!("@{name}={value}");
    };
    match (document.name(id), document.attribute(id, "id")) {
        (Some(name), None) => name.to_string(),
        (Some(name), Some(own)) => format!("{name}#{own}"),
        (None, _) if id == document.root() => "/".to_owned(),
        (None, _) if document.kind(id) == crate::html::NodeKind::Comment => "!".to_owned(),
        (None, _) => format!("{:?}", document.text(id).unwrap_or("doctype")),
    }
}

fn evaluated(html: &str, context: &str, expression: &str) -> Result<String, XPathError> {
    let document = page(html);
    let limits = XPathLimits::default();
    let start = XPath::parse(context)?.evaluate(&document, document.root(), limits)?;
    let XPathValue::Nodes(start) = start else {
        unreachable!("the context expression selects nodes")
    };
    let value = XPath::parse(expression)?.evaluate(&document, start[0], limits)?;
    Ok(match value {
        XPathValue::Nodes(nodes) => {
            let shown: Vec<_> = nodes.iter().map(|node| show(&document, *node)).collect();
            shown.join(" ")
        }
        XPathValue::Text(text) => text,
        XPathValue::Number(number) => number_to_string(number),
        XPathValue::Boolean(truth) => truth.to_string(),
    })
}

#[track_caller]
fn check_from(context: &str, expression: &str, expect: &str) {
    let found = evaluated(PAGE, context, expression);
    assert_eq!(found.as_deref(), Ok(expect), "{expression}");
}

#[track_caller]
fn check(expression: &str, expect: &str) {
    check_from("/", expression, expect);
}

#[track_caller]
fn check_error(expression: &str, expect: &str) {
    let error = XPath::parse(expression).unwrap_err();
    assert_eq!(error.to_string(), expect, "{expression}");
}

#[test]
fn every_axis_finds_its_nodes_in_document_order() {
    check_from("//div[2]", "child::*", "p#p3 div#d3");
    check_from("//div[2]", "descendant::*", "p#p3 div#d3 p#p4 p#p5");
    check_from("//p[1]", "parent::*", "div#d1");
    check_from("//p[1]", "ancestor::*", "html body div#d1");
    check_from("//p[1]", "ancestor-or-self::*", "html body div#d1 p#p1");
    check_from("//p[1]", "ancestor::node()[last()]", "/");
    check_from("//p[1]", "following-sibling::node()", "p#p2");
    check_from("//p[2]", "preceding-sibling::*", "p#p1");
    check_from("//p[2]", "following::p", "p#p3 p#p4 p#p5");
    check_from("//*[@id='d3']", "preceding::*", "head div#d1 p#p1 p#p2 b p#p3");
    check_from("//p[2]", "self::p", "p#p2");
    check_from("//p[2]", "descendant-or-self::*", "p#p2 b");
    check_from("//p[2]", "attribute::*", "@id=p2 @class=x");
    check("//*/namespace::*", "");
}

#[test]
fn attributes_have_a_parent_but_no_siblings() {
    check_from("//p[2]/@class", "..", "p#p2");
    check_from("//p[2]/@class", "ancestor::div", "div#d1");
    check_from("//p[2]/@class", "self::node()", "@class=x");
    check_from("//p[2]/@class", "self::*", "");
    check_from("//p[2]/@class", "following-sibling::node()", "");
    check_from("//p[2]/@class", "node()", "");
    check_from("//p[2]/@class", "following::*[1]", "b");
    check_from("//p[2]/@class", "preceding::*[1]", "p#p1");
    check_from("//p[2]", "@class | . | b | @id", "p#p2 @id=p2 @class=x b");
}

#[test]
fn node_tests_select_by_kind() {
    check_from("//p[2]", "node()", "\"two \" b \" end\" !");
    check_from("//p[2]", "text()", "\"two \" \" end\"");
    check("//comment()", "! !");
    check("//processing-instruction()", "");
    check("//processing-instruction('x')", "");
    check("/node()", "! html");
    check("/", "/");
}

#[test]
fn positions_count_along_the_axis() {
    check("//td[1]", "td#c1 td#c4");
    check("(//td)[1]", "td#c1");
    check("(//td)[last()]", "td#c5");
    check("//td[last()]", "td#c3 td#c5");
    check("//td[position()<3]", "td#c1 td#c2 td#c4 td#c5");
    check("//td[position()=2]", "td#c2 td#c5");
    check("//td[2][.='2']", "td#c2");
    check("//td[.!='1'][1]", "td#c2 td#c4");
    check("//td[1][2]", "");
    check("//td[0]", "");
    check("//td[1.5]", "");
    check("//tr[2-1]/td[1+1]", "td#c2");
    check("//td[count(../../tr)]", "td#c2 td#c5");
    check_from("//td[3]", "preceding-sibling::td[1]", "td#c2");
    check_from("//td[3]", "(preceding-sibling::td)[1]", "td#c1");
    check_from("//td[3]", "ancestor::*[1]", "tr#r1");
    check_from("//p[. = 4.5]", "ancestor::div[2]", "div#d2");
    check("//div/descendant::p[1]", "p#p1 p#p3 p#p4");
    check("//p[@id][position()>1][last()]", "p#p2 p#p5");
}

#[test]
fn abbreviations_and_unions_join_without_duplicates() {
    check("//div//p", "p#p1 p#p2 p#p3 p#p4 p#p5");
    check("//div//p[1]", "p#p1 p#p3 p#p4");
    check("//p/..", "div#d1 div#d2 div#d3");
    check("//p/../@id", "@id=d1 @id=d2 @id=d3");
    check("//b/.//../text()", "\"two \" \"bold\" \" end\"");
    check("//td[1] | //td[.='five'] | //td[1]", "td#c1 td#c4 td#c5");
    check("(//tr | //table)/@id", "@id=t @id=r1 @id=r2");
    check("//*//*//td", "td#c1 td#c2 td#c3 td#c4 td#c5");
    check_from("//div[2]", ".//p[2]", "p#p5");
    check_from("//div[2]", "/html/body/div[1]/p[1]", "p#p1");
}

#[test]
fn names_ignore_case_outside_brackets_and_after_at_signs() {
    check("//TD[@ID='c2']", "td#c2");
    check("/HTML/Body/DIV/P", "p#p1 p#p2 p#p3");
    check("//DIV[@DATA-UNIT='kg']", "div#d2");
    check("COUNT(//td)", "5");
    check("//TR[TD]", "");
    check("//P[.='ONE']", "");
    check("string('ABC')", "ABC");
    check("//p = 'ONE' OR false()", "false");
    check("//clipPath", "clipPath#k");
    check("//svg/@viewBox", "@viewBox=0 0 1 1");
    check("//@xlink:href", "@xlink:href=#h");
    check("//@xlink:*", "@xlink:href=#h");
    check("name(//@xlink:href)", "xlink:href");
    check("local-name(//@xlink:href)", "href");
}

#[test]
fn comparisons_follow_the_kinds_of_both_sides() {
    check("//td = 'five'", "true");
    check("//td != 'five'", "true");
    check("//b != 'bold'", "false");
    check("//td > 4", "false");
    check("//td >= 4", "true");
    check("4 <= //td", "true");
    check("//nothing = ''", "false");
    check("//nothing = false()", "true");
    check("//p = //td", "true");
    check("//b = //td", "false");
    check("//td < //p", "true");
    check("//p[. = //td]", "p#p3");
    check("//td[. != //td]", "td#c1 td#c2 td#c3 td#c4 td#c5");
    check("//td = true()", "true");
    check("'1' = 1", "true");
    check("true() = 'x'", "true");
    check("'a' < 'b'", "false");
    check("0 div 0 = 0 div 0", "false");
    check("//p[.='two bold end']", "p#p2");
    check("//p[.='two bold']", "");
    check("//*[.='bold']", "b");
    check("count(//*[.=''])", "3");
}

#[test]
fn comparing_a_count_with_a_number_keeps_its_meaning() {
    check("//div[count(*)=0]", "");
    check("//p[count(*)=0]", "p#p1 p#p3 p#p4 p#p5");
    check("//p[0 != count(b)]", "p#p2");
    check("//p[count(b) >= 1]", "p#p2");
    check("//tr[count(td) = 2]", "tr#r2");
    check("//div[count(div) != 1]", "div#d1 div#d3");
    check("//p[count(b) >= 0]", "p#p1 p#p2 p#p3 p#p4 p#p5");
}

#[test]
fn arithmetic_follows_ieee_754() {
    check("2+3*4-1", "13");
    check("(2+3)*4", "20");
    check("7 mod -2", "1");
    check("-7 mod 2", "-1");
    check("1 div 0", "Infinity");
    check("-1 div 0", "-Infinity");
    check("--2", "2");
    check("- //td[2]", "-2");
    check("1 div 3", "0.3333333333333333");
    check("10000000000 * 100000000000", "1000000000000000000000");
    check("0.0000001", "0.0000001");
    check("1 or 0 and 0", "true");
    check("1 = 1 = 1", "true");
    check("3 > 2 > 1", "false");
}

#[test]
fn number_functions_follow_the_standard() {
    check("round(2.5)", "3");
    check("round(-2.5)", "-2");
    check("round(0.49999999999999994)", "0");
    check("1 div round(-0.2)", "-Infinity");
    check("floor(-1.5)", "-2");
    check("ceiling(-1.5)", "-1");
    check("sum(//tr[1]/td)", "6");
    check("sum(//td)", "NaN");
    check("number('  -12.50 ')", "-12.5");
    for not_a_number in ["+1", "1e3", "", ".", "-", "1 2", "1..2", "inf", "NaN"] {
        check(&format!("number('{not_a_number}')"), "NaN");
    }
    check("number('1.') + number('.5')", "1.5");
    check("number(true())", "1");
    check("string-length('h\u{e9}\u{1f600}')", "3");
}

#[test]
fn string_functions_follow_the_standard() {
    check("concat('a', 1, true())", "a1true");
    check("substring('12345', 2, 3)", "234");
    check("substring('12345', 1.5, 2.6)", "234");
    check("substring('12345', 0, 3)", "12");
    check("substring('12345', 0 div 0, 3)", "");
    check("substring('12345', -42, 1 div 0)", "12345");
    check("substring('12345', -1 div 0, 1 div 0)", "");
    check("substring-before('1999/04/01', '/')", "1999");
    check("substring-after('1999/04/01', '/')", "04/01");
    check("substring-after('abc', '')", "abc");
    check("substring-before('abc', 'z')", "");
    check("normalize-space('  a \t\n b  ')", "a b");
    check("normalize-space(//p[@id='p5'])", "x\u{a0}y");
    check("translate('--aaa--', 'abc-', 'ABC')", "AAA");
    check("lower-case('ÀB')", "àb");
    check("starts-with(//p[2], 'two bold')", "true");
    check("starts-with(//p[2], 'two bald')", "false");
    check("starts-with(//nothing, '')", "true");
    check("ends-with(//p[2], 'ld end')", "true");
    check("//p[contains(., 'o bold e')]", "p#p2");
    check("string(//p[2]/@class)", "x");
    check("string(//nothing)", "");
    check_from("//b", "string()", "bold");
    check_from("//b", "name()", "b");
}

#[test]
fn node_and_boolean_functions_follow_the_standard() {
    check("id('p1 c2 p1 none')", "p#p1 td#c2");
    check("id(//p[1]/@id)/..", "div#d1 div#d2 div#d3");
    check("namespace-uri(//p)", "");
    check("namespace-uri(//svg)", "http://www.w3.org/2000/svg");
    check("count(//p[lang('en')])", "5");
    check("count(//p[lang('EN-gb')])", "5");
    check("count(//p[lang('e')])", "0");
    check("boolean('0')", "true");
    check("boolean(0)", "false");
    check("not(//nothing)", "true");
    check("position() + last()", "2");
    check("//p[boolean(position() = 2)]", "p#p2 p#p5");
}

#[test]
fn a_word_is_a_name_or_an_operator_by_position() {
    let html = "<div id=o><div>6</div><mod>4</mod></div>";
    let show = |expression| evaluated(html, "//div[1]", expression).unwrap();
    assert_eq!(show("div div mod"), "1.5");
    assert_eq!(show("div mod mod"), "2");
    assert_eq!(show("* * *"), "36");
    assert_eq!(show("div and mod"), "true");
    assert_eq!(show("count(*)*2"), "4");
}

#[test]
fn errors_name_the_problem_and_its_position() {
    check_error("", "the expression is empty (at character 1)");
    check_error("//p[1", "expected `]` to close `[`, found the end (at character 6)");
    check_error(
        "//p[contians(., 'x')]",
        "XPath 1.0 has no function `contians`; did you mean `contains`? (at character 5)",
    );
    check_error(
        "//p[CONTAINS(., 'x')]",
        "XPath 1.0 has no function `CONTAINS`; did you mean `contains`? (at character 5)",
    );
    check_error("//p[matches(., 'x')]", "XPath 1.0 has no function `matches` (at character 5)");
    check_error(
        "folowing::p",
        "XPath 1.0 has no axis `folowing`; did you mean `following`? (at character 1)",
    );
    check_error("//p[$x]", "variables such as `$x` are not supported (at character 5)");
    check_error(
        "//p[.='it's']",
        "expected an operator such as `and` or `=`, found `s` (at character 11)",
    );
    check_error("count('a')", "`count()` takes nodes, but this is a string (at character 7)");
    check_error("//p | 1", "`|` joins only nodes, but this is a number (at character 7)");
    check_error(
        "'a'/b",
        "`[ ]` and `/` can follow only nodes, but this is a string (at character 1)",
    );
    check_error("substring('a')", "`substring()` does not take 1 argument(s) (at character 1)");
    for wrong in [
        "//",
        "p/",
        "@",
        "p[]",
        "1 +",
        "+ 1",
        ")",
        "p q",
        "//p]",
        "'abc",
        "a:b:c",
        ".[1]",
        "é!",
        "//p/count(.)",
        "concat('a',)",
        "true(1)",
        "::p",
        "child::",
        "p:::q",
    ] {
        assert!(XPath::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn string_values_are_not_trimmed() {
    let document = page("<p title=' t '>  a<b> b </b>\n");
    let path = XPath::parse("//p | //p/@title").unwrap();
    let value = path.evaluate(&document, document.root(), XPathLimits::default());
    let Ok(XPathValue::Nodes(nodes)) = value else {
        panic!("{value:?}");
    };
    assert_eq!(nodes[0].string_value(&document), "  a b \n");
    assert_eq!(nodes[1].string_value(&document), " t ");
}

#[test]
fn compiled_expressions_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<XPath>();
    crosses::<XPathError>();
}
