use super::*;
use crate::parser::bound::AxisState;

fn head(kind: AxisKind, name: &str) -> AxisHead {
    AxisHead { kind, item_name: name.into(), match_text: None, order: None, constant: None }
}

/// Item `MC` (match `EPS \(TTM\)`, order 7, index 5, value `five`), dim `year` (index 2, value
/// `two`), dim `unit` (constant `Rs`, index 9), and a fact.
fn row() -> (Vec<AxisHead>, Vec<AxisState>) {
    let mut heads = vec![
        head(AxisKind::Item, "MC"),
        head(AxisKind::Dim, "year"),
        head(AxisKind::Dim, "unit"),
        head(AxisKind::Fact, "fact"),
    ];
    heads[0].match_text = Some(r"EPS \(TTM\)".into());
    heads[0].order = Some(7);
    heads[2].constant = Some("Rs".into());
    let now = [(5, Some("five")), (2, Some("two")), (9, None), (1, None)];
    let now =
        now.map(|(index, value)| AxisState { index, value: value.map(str::to_owned), last: None });
    (heads, now.to_vec())
}

fn fill(own: usize, text: &str) -> String {
    let (heads, now) = row();
    let bound = Template::compile(text).unwrap().bind(own, &heads).unwrap();
    bound.fill(&heads, &now, &mut String::new()).to_owned()
}

fn check(text: &str, expect: &str) {
    assert_eq!(fill(3, text), expect, "{text}");
}

fn check_error(text: &str, expect: &str, at: usize) {
    let (heads, _) = row();
    let error = Template::compile(text).and_then(|template| template.bind(3, &heads)).unwrap_err();
    assert!(error.message.contains(expect), "{text}: {error}");
    assert_eq!(error.at, at, "{text}");
}

#[test]
fn variables_of_one_two_and_three_parts() {
    check("plain", "plain");
    check("", "");
    check("tr[%{item.index}]/td[%{dim.index}]", "tr[5]/td[2]");
    check("%{dim.unit.index}%{index}", "91");
    check("%{item.MC.value}|%{item.MC.order}|%{item.MC.itemName}", "five|7|MC");
    check("%{item.axisName} %{dim.nameString} %{axisName}", "item dim fact");
    assert_eq!(fill(1, "td:nth-child(%{index})"), "td:nth-child(2)");
}

#[test]
fn match_keeps_its_backslashes() {
    check(":matchesOwn(^%{item.match})", r":matchesOwn(^EPS \(TTM\))");
}

#[test]
fn a_variable_without_value_stays_as_written() {
    check("a %{dim.match} b %{order}", "a %{dim.match} b %{order}");
    assert_eq!(fill(0, "%{dim.value}"), "%{dim.value}", "an axis further right");
    assert_eq!(fill(1, "%{value}"), "%{value}", "its own axis");
    assert_eq!(fill(0, "%{dim.unit.value}"), "Rs", "a constant of a later axis");
}

#[test]
fn an_escaped_variable_is_printed() {
    check("%%{item.index}", "%{item.index}");
    check("100%%%{index} %{index}%%{index}", "100%%{index} 1%{index}");
    check_error("%%{item.colour}", "no property `colour`", 1);
}

#[test]
fn an_incomplete_variable_is_plain_text() {
    check("50% {x} %{index", "50% {x} %{index");
    check("%}{index}", "%}{index}");
}

#[test]
fn errors_have_the_position_of_the_variable() {
    check_error("tr %{idex}", "did you mean `index`?", 3);
    check_error("%{}", "no property ``", 0);
    check_error("%{index:-1}", "no property `index:-1`", 0);
    check_error("%{row.index}", "`row` is not one of", 0);
    check_error("%{dim.a.b.index}", "4 parts", 0);
    check_error("%{dim.years.index}", "no dim named `years`", 0);
    let (heads, _) = row();
    let template = Template::compile("%{dim.index}").unwrap();
    let error = template.bind(0, &heads[..1]).unwrap_err();
    assert!(error.message.contains("has no dim"), "{error}");
}

#[test]
fn variables_in_inserted_text_are_replaced() {
    let (mut heads, mut now) = row();
    heads[0].match_text = Some("<%{dim.index} %%{index} %{nothing}>".into());
    now[1].value = Some("two of %{item.value} %{no.such.thing}".into());
    let template = Template::compile("%{item.match} %{dim.value}").unwrap();
    let bound = template.bind(3, &heads).unwrap();
    let text = bound.fill(&heads, &now, &mut String::new()).to_owned();
    assert_eq!(text, "<2 %{index} %{nothing}> two of five %{no.such.thing}");
}

#[test]
fn texts_that_insert_each_other_end() {
    let (mut heads, mut now) = row();
    heads[0].match_text = Some("%{item.match}%{item.match}".into());
    now[0].value = Some("%{item.value}%{dim.value}".into());
    now[1].value = Some("%{item.value}%{dim.value}".into());
    let template = Template::compile("%{item.match}%{dim.value}").unwrap();
    let bound = template.bind(3, &heads).unwrap();
    let length = bound.fill(&heads, &now, &mut String::new()).len();
    assert!(length < 10_000, "{length}");
}

#[test]
fn only_an_index_of_a_later_axis_reaches_right() {
    let (heads, _) = row();
    let reaches = |own, text| {
        let template = Template::compile(text).unwrap();
        template.bind(own, &heads).unwrap().reaches_right()
    };
    assert!(reaches(0, "%{dim.index}"));
    assert!(!reaches(1, "%{dim.index}"));
    assert!(!reaches(2, "%{item.index}"));
}

#[test]
fn the_attribute_is_split_off() {
    assert_eq!(split_attribute("h3 > a attribute: href"), ("h3 > a", Some("href")));
    assert_eq!(split_attribute("a[attribute:x]"), ("a[attribute:x]", None));
    assert_eq!(split_attribute("a attribute: b attribute: c"), ("a", Some("b")));
    assert_eq!(split_attribute("a attribute: "), ("a", Some("")));
}

#[test]
fn a_huge_value_full_of_variables_stays_as_it_is() {
    let (heads, mut now) = row();
    now[0].value = Some("%{item.value}".repeat(100_000));
    now[1].value = Some("%{item.value}".repeat(100));
    let template = Template::compile("%{item.value}%{dim.value}").unwrap();
    let bound = template.bind(3, &heads).unwrap();
    let length = bound.fill(&heads, &now, &mut String::new()).len();
    assert_eq!(length, "%{item.value}".len() * 100_100);
}
