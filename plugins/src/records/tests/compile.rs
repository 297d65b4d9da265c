//! All problems of a record are reported at once, with their positions.

use spoonbill_defs::{FieldType, Separators};

use super::*;

/// The problems as `line+offset message | help`.
fn problems(record: &Record) -> Vec<String> {
    let problems = RecordPlan::compile(record, &setup()).unwrap_err();
    problems
        .iter()
        .map(|it| {
            let inside = it.inside.map(|at| format!("+{at}")).unwrap_or_default();
            let help = it.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
            format!("{}{inside} {}{help}", it.at.line, it.message)
        })
        .collect()
}

fn named(name: &str, query: Query) -> Field {
    Field { name: Text::new(name), queries: vec![query], ..Field::default() }
}

fn css_at(text: &str, line: u32) -> Query {
    Query { css: Some(at(text, line)), ..Query::default() }
}

#[test]
fn all_problems_are_reported_at_once() {
    let block = Query { xpath: Some(at("//li[", 1)), ..Query::default() };
    let mut fields = vec![
        named("a", css_at("//h1", 2)),
        named("b", css_at("  p >> a", 3)),
        named("c", Query { json: Some(at("$.a[", 4)), ..Query::default() }),
        named("d", Query { jsonld: Some(at("Product..x", 5)), ..Query::default() }),
        Field { regex: Some(at("(a", 6)), ..named("e", css("p")) },
        Field { script: Some(at("1 +", 7)), ..named("f", css("p")) },
        Field { name: at("g", 8), ..Field::default() },
        named("h", Query { xpath: Some(at("//p", 9)), ..css("p") }),
        named("i", Query { attribute: Some(at("a b", 10)), ..css("p") }),
    ];
    fields.push(Field { name: at("a", 11), ..named("a", css("p")) });
    let found = problems(&record(Some(block), fields));
    let lines: Vec<_> = found.iter().map(|it| it.split(' ').next().unwrap()).collect();
    assert_eq!(lines[..2], ["1+5", "2"], "{found:#?}");
    assert_eq!(found.len(), 11, "{found:#?}");
    assert!(found[0].starts_with("1+5 block: bad XPath: "), "{found:#?}");
    assert_eq!(
        found[1],
        "2 field `a`: `//h1` is XPath, but a selector is needed | write `{ xpath: \"//h1\" }`"
    );
    assert!(found[2].starts_with("3+5 field `b`: bad selector: "), "{found:#?}");
    assert!(found[3].starts_with("4+4 field `c`: bad JSON path: "), "{found:#?}");
    assert!(found[4].starts_with("5+8 field `d`: bad JSON-LD path: a name is"), "{found:#?}");
    assert!(found[5].starts_with("6+2 field `e`: bad regex: "), "{found:#?}");
    assert!(found[6].starts_with("7+") && found[6].contains("`f`: bad script: "), "{found:#?}");
    assert!(found[7].starts_with("8 field `g` has no query and no value | add `selector`"));
    assert!(found[8].starts_with("9 field `h`: `//p` is a second query"));
    assert!(found[9].starts_with("10 field `i`: `a b` is not an attribute name"));
    assert!(found[10].starts_with("11 two columns have the name `a`"), "{found:#?}");
}

#[test]
fn options_of_types_are_checked() {
    let typed = |kind| Field { kind, ..named("a", css("p")) };
    let separators = |decimal: &str, thousands: &str| Separators {
        decimal: Some(at(decimal, 2)),
        thousands: Some(at(thousands, 3)),
    };
    let date = |input: &str, output: &str| FieldType::Date {
        input: vec![at(input, 4)],
        output: Some(at(output, 5)),
    };
    for (kind, expect) in [
        (
            FieldType::Decimal(separators(",", ",")),
            "3 field `a`: `,` separates both thousands and decimals | `decimal` and `thousands` must \
             be different",
        ),
        (
            FieldType::Integer(separators("comma", ".")),
            "2 field `a`: `decimal` must be one character, not `comma` | write `decimal: \",\"` or \
             `decimal: \".\"`",
        ),
        (
            date("dd.MM.yyyy", "yyyy-bb"),
            "5+5 field `a`: bad date pattern: `b` at offset 5 is not a pattern letter; put plain text \
             in '...'",
        ),
        (date(" ", "yyyy"), "4 field `a`: the date pattern is blank | write it like `dd.MM.yyyy`"),
    ] {
        assert_eq!(problems(&record(None, vec![typed(kind)])), [expect]);
    }
    let percent = problems(&record(None, vec![typed(date("%d.%m", "yyyy"))]));
    assert!(percent[0].ends_with("| patterns are Java's: `dd.MM.yyyy HH:mm`, not `%d.%m.%Y`"));
}

#[test]
fn syntax_of_other_tools_gets_help() {
    let help = |query| problems(&record(None, vec![named("a", query)])).remove(0);
    assert!(help(css_at("a::attr(href)", 2)).contains("| write `a @href` for an attribute"));
    assert!(help(css_at("$.a.b", 2)).contains("| for a JSON path write `{ json: \"$.a.b\" }`"));
    assert!(help(css_at("./td[1]", 2)).contains("| write `{ xpath: \"./td[1]\" }`"));
    let query = Query { xpath: Some(at("div#a.b", 2)), ..Query::default() };
    assert!(help(query).contains("| for a CSS selector write `selector: \"div#a.b\"`"));
}

#[test]
fn date_patterns_that_hardly_mean_what_they_say_are_refused() {
    let slip = |input: &str, output: &str| {
        let kind = FieldType::Date {
            input: vec![at(input, 4)],
            output: (!output.is_empty()).then(|| at(output, 5)),
        };
        RecordPlan::compile(&record(None, vec![Field { kind, ..named("a", css("p")) }]), &setup())
            .err()
            .map_or_else(String::new, |mut found| found.remove(0).message.split_off(29))
    };
    for (input, output, expect) in [
        ("dd.mm.yyyy", "", "the pattern has minutes without an hour"),
        ("yyyy-MM-DD", "", "`D` is the day of the year, but the pattern has a month"),
        ("YYYY-MM-dd", "", "`Y` is the year of a week, but the pattern has no week"),
        ("dd yyyy", "", "the pattern has a day without a month"),
        ("dd.mm.yyyy HH:mm", "", "the pattern has a day without a month"),
        ("%d.%m.%Y", "", "`%` has no meaning"),
        ("dd.MM.yyyy", "yyyy-mm-dd", "the pattern has minutes without an hour"),
        ("dd.MM.yyyy HH:mm", "", ""),
        ("dd.MM.yyyy", "dd", ""),
        ("d LLLL yyyy, h 'minutes' a", "", ""),
        ("yyyy D", "YYYY ww", ""),
    ] {
        assert_eq!(slip(input, output), expect, "{input} {output}");
    }
}

#[test]
fn constants_and_defaults_must_have_the_type_of_their_field() {
    let kind = || FieldType::Integer(Separators::default());
    let with_default = |text: &str| {
        let field = Field { default: Some(at(text, 3)), kind: kind(), ..named("a", css("p")) };
        RecordPlan::compile(&record(None, vec![field]), &setup()).is_ok()
    };
    assert!(with_default("0") && with_default("") && with_default("1,000"));
    assert!(!with_default("none"));
    let value =
        Field { value: Some(at("x", 3)), kind: kind(), name: at("a", 1), ..Field::default() };
    let found = problems(&record(None, vec![value]));
    assert_eq!(found, ["3 field `a`: `value`: `x` is not a whole number"]);
}

#[test]
fn a_selector_is_not_xpath_and_a_bad_regex_has_its_position() {
    let query = Query { xpath: Some(at("div.foo > a", 2)), ..Query::default() };
    assert_eq!(
        problems(&record(None, vec![named("a", query)])),
        ["2 field `a`: `div.foo > a` is a selector, but XPath is needed | write `selector: \
          \"div.foo > a\"`"]
    );
    let regex = Field { regex: Some(at("ab[", 6)), ..named("e", css("p")) };
    assert!(problems(&record(None, vec![regex]))[0].starts_with("6+"));
    let escape = Field { regex: Some(at("ü\\y", 6)), ..named("e", css("p")) };
    let found = problems(&record(None, vec![escape]));
    assert!(found[0].starts_with("6+1 "), "{found:?}");
}
