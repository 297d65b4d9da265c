//! Explanations of cells.

use spoonbill_defs::{FieldType, Separators};

use super::*;
use crate::records::{EmptyReason, PageExplanation};

fn story(record: &Record, page: &str) -> PageExplanation {
    let limits = RecordLimits::default();
    on_page(page, |page| plan(record).explain(page, &mut scripts(), &limits)).unwrap()
}

#[test]
fn an_explanation_has_node_query_and_number_of_matches() {
    let page = "<div id=main><ul class='x list'><li>a</li><li class=p>b <b>1</b></li></ul></div>";
    let two = Field { queries: vec![css("i"), css("b, li")], ..field(css("b")) };
    let story = story(&record(Some(css("li.p")), vec![two]), page);
    assert_eq!(story.block.as_deref(), Some("li.p"));
    let row = &story.rows[0];
    let block = "html > body > div#main > ul.x > li.p:nth-of-type(2)";
    assert_eq!(row.node.as_deref(), Some(block));
    let cell = &row.cells[0];
    assert_eq!(cell.query.as_deref(), Some("b, li"));
    assert_eq!((cell.value.as_deref(), cell.matches), (Some("b 1"), 2));
    assert_eq!((cell.node.as_deref(), &cell.why), (Some(block), &None));
}

#[test]
fn empty_cells_have_a_reason() {
    let page = "<p>abc</p><i> </i><script id=s>{\"a\":1}</script>";
    let number = FieldType::Decimal(Separators::default());
    let inside = |selector: &str| Query { json: Some(Text::new("$.b")), ..css(selector) };
    let cases = [
        (field(css("u")), "nothing matches"),
        (field(css("i")), "the match is blank"),
        (field(with(css("p"), "href")), "the match is blank"),
        (field(inside("p")), "the match is not JSON"),
        (field(inside("#s")), "the JSON path selects nothing"),
        (field(json("$.a")), "the match is not JSON"),
        (
            Field { regex: Some(Text::new("x")), ..field(css("p")) },
            "the regex does not match `abc`",
        ),
        (
            Field { script: Some(Text::new("null")), ..field(css("p")) },
            "the script returns no value",
        ),
        (Field { kind: number, ..field(css("p")) }, "`abc` is not a decimal number"),
    ];
    for (field, expect) in cases {
        let story = story(&record(None, vec![field]), page);
        let why = story.rows[0].cells[0].why.as_ref().map(EmptyReason::to_string);
        assert_eq!(why.as_deref(), Some(expect));
    }
}

#[test]
fn defaults_and_dropped_rows_are_explained() {
    let default = Field { default: Some(Text::new("d")), ..field(css("u")) };
    let required = Field { name: Text::new("y"), required: true, ..field(css("u")) };
    let story = story(&record(None, vec![default, required]), "<p>");
    let row = &story.rows[0];
    assert_eq!((row.cells[0].is_default, row.cells[0].value.as_deref()), (true, Some("d")));
    assert_eq!((row.dropped_for, row.node.as_deref()), (Some(1), None));
}

#[test]
fn queries_are_shown_as_written() {
    let query = Query { json: Some(Text::new("$.a")), ..with(css("#d"), "data-p") };
    let record =
        record(None, vec![field(query), Field { name: Text::new("y"), ..field(css(".")) }]);
    let plan = plan(&record);
    assert_eq!(
        (plan.field_query(0).as_str(), plan.field_query(1).as_str()),
        ("#d @data-p | $.a", ".")
    );
    assert_eq!(plan.field_query(7), "");
}

#[test]
fn an_explanation_lists_tried_queries_and_counts_matches_in_json() {
    let two = Field { queries: vec![css("i"), with(css("b"), "x")], ..field(css("b")) };
    let cells = story(&record(None, vec![two]), "<p>").rows[0].cells.clone();
    assert_eq!((cells[0].query.as_ref(), cells[0].tried.join("; ")), (None, "i; b @x".to_owned()));
    let all = Field { all: Some(Text::new(",")), ..field(json("$.a[*].b")) };
    let cells =
        story(&record(None, vec![all]), r#"{"a":[{"b":1},{"b":2},{"b":3}]}"#).rows[0].cells.clone();
    assert_eq!((cells[0].value.as_deref(), cells[0].matches), (Some("1,2,3"), 3));
}
