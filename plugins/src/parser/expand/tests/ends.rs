//! The ends of ranges: bounds, `breakAfter`, missing values, limits.

use std::time::Duration;

use super::*;

#[test]
fn a_break_value_is_the_last_index() {
    let open = breaking(seek("a", "%{index}", 5, None), &["nope", "7"]);
    let single = def(vec![open.clone()], vec![]);
    check(&single, echo, &["5|5,1", "6|6,1", "7|7,1"]);
    let dims = vec![seek("x", "x", 1, 1), seek("y", "y", 3, 3)];
    let expect = ["5|x|y|5,1", "6|x|y|6,1", "7|x|y|7,1"];
    check(&def(vec![open.clone()], dims), echo, &expect);
    let dims = vec![seek("x", "x%{index}", 1, 2)];
    let expect = ["5|x1|5,1", "5|x2|5,1", "6|x1|6,1", "6|x2|6,1", "7|x1|7,1", "7|x2|7,1"];
    check(&def(vec![open], dims), echo, &expect);
}

#[test]
fn a_break_value_must_equal_the_value_without_prefix() {
    let mut open = breaking(seek("a", "v%{index}", 1, None), &["V1", " v1", "v2"]);
    open.prefix = texts(&["p"]);
    check(&def(vec![open], vec![]), echo, &["pv1|1,1", "pv2|2,1"]);
}

#[test]
fn a_break_value_does_not_end_a_bounded_range() {
    let bounded = breaking(seek("a", "%{index}", 1, 3), &["2"]);
    let page = |question: &str| (question != "B|1").then(|| echo(question))?;
    let expansion = check(&def(vec![bounded], vec![]), page, &["null|1,1", "2|2,1", "3|3,1"]);
    assert!(expansion.notes.is_empty());
}

#[test]
fn a_break_of_a_dim_applies_to_its_item_only() {
    let dim = breaking(seek("x", "%{item.index}%{index}", 1, None), &["12", "73"]);
    let items = vec![seek("a", "a%{index}", 1, 2), seek("b", "b%{index}", 7, 7)];
    let mut def = def(items, vec![dim]);
    def.query.selector = text("f");
    let expect = ["a1|11|f", "a1|12|f", "a2|21|f", "a2|22|f", "b7|71|f", "b7|72|f", "b7|73|f"];
    check(&def, echo, &expect);
}

#[test]
fn an_open_range_ends_at_a_missing_value_and_keeps_its_rows() {
    let open = breaking(seek("a", "%{index}", 1, None), &["end"]);
    let other = seek("b", "b%{index}", 1, 1);
    let page = |question: &str| (question != "B|3").then(|| echo(question))?;
    let def = def(vec![open, other], vec![seek("x", "x%{index}", 1, 2)]);
    let expect = ["1|x1|1,1", "1|x2|1,1", "2|x1|2,1", "2|x2|2,1", "b1|x1|1,1", "b1|x2|1,1"];
    let expansion = check(&def, page, &expect);
    assert_eq!(
        expansion.notes,
        ["dataDef `bs`: item `a` ends before index 3, where nothing was found; \
          none of its breakAfter values was found"]
    );
}

#[test]
fn a_dim_can_end_at_another_index_for_each_item() {
    let dim = seek("x", "%{item.index}/%{index}", 1, None);
    let mut def = def(vec![seek("a", "a%{index}", 1, 3)], vec![dim]);
    def.query.selector = text("f");
    let page = |question: &str| match question {
        "B|1/2" | "B|2/1" | "B|3/3" => None,
        _ => echo(question),
    };
    let expansion = check(&def, page, &["a1|1/1|f", "a3|3/1|f", "a3|3/2|f"]);
    assert_eq!(
        expansion.notes,
        ["dataDef `bs`: item `x` gives no rows: nothing was found at its first index 1"]
    );
}

#[test]
fn endless_ranges_fail_and_name_the_item() {
    let mut endless = def(vec![seek("a", "a", 1, None)], vec![seek("x", "x", 1, 2)]);
    let mut none = FakePage::new(|_: &str| None);
    let error = run(&endless, &mut FakePage::new(echo), &mut none).unwrap_err();
    let expect = "dataDef `bs`: more than 1000 rows, the range of item `a` does not end \
                  (setting `parser.rows.max`)";
    assert_eq!(error.to_string(), expect);

    // Also for a range that never gives a row.
    endless.items[0].value = text("a");
    endless.dims = vec![seek("x", "x", 1, None)];
    let error = run(&endless, &mut FakePage::new(|_: &str| None), &mut none).unwrap_err();
    assert_eq!(error.to_string(), expect);
    let plan = DataDefPlan::compile(&endless).unwrap();
    assert!(plan.warnings()[0].message.contains("never ends"));

    let wide = def(vec![seek("a", "a", 1, 2)], vec![seek("x", "x", 1, 4_000_000_000)]);
    let error = run(&wide, &mut FakePage::new(echo), &mut none).unwrap_err();
    assert!(error.to_string().contains("item `x`"), "{error}");
}

#[test]
fn the_greatest_number_of_rows_is_accepted() {
    check(
        &def(vec![seek("a", "a", 1, 1000)], vec![]),
        |_| Some(String::new()),
        &["|(blank)"; 1000],
    );
}

#[test]
fn a_deadline_stops_the_page_and_names_the_item() {
    let plan = DataDefPlan::compile(&def(vec![seek("a", "a", 3, None)], vec![])).unwrap();
    let limits = ExpandLimits {
        rows_max: usize::MAX,
        deadline: Some(Instant::now() + Duration::from_millis(5)),
    };
    let mut scripts = FakePage::new(|_: &str| None);
    let error = plan
        .expand(&context(), &mut FakePage::new(echo), &mut scripts, &fact_text(), &limits)
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("dataDef `bs`: out of time"), "{message}");
    assert!(message.contains("item `a` (setting `parser.time.max`)"), "{message}");
}

#[test]
fn a_scripted_value_can_break_an_open_range() {
    let mut open = breaking(item("a"), &["3"]);
    open.range.last = None;
    open.script = text("%{index}");
    let mut scripts = FakePage::new(echo);
    let expansion = run(&def(vec![open], vec![]), &mut FakePage::new(echo), &mut scripts).unwrap();
    assert_eq!(lines(&expansion), ["1|1,1", "2|2,1", "3|3,1"]);
}

#[test]
fn ranges_can_start_at_0_and_have_reversed_bounds() {
    check(&def(vec![seek("a", "%{index}", 0, 0)], vec![]), echo, &["0|0,1"]);
    let expect = ["2|2,1", "3|3,1", "4|4,1"];
    check(&def(vec![seek("a", "%{index}", 4, 2)], vec![]), echo, &expect);
}
