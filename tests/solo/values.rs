//! The values of an axis: prefixes, ranges, variables, facts and XPath text.

use crate::harness::Workdir;
use crate::harness::defs::{job, job_with};

const LIST: &str = "<ul><li>one</li><li>two</li><li>three</li><li>four</li></ul>";

/// Checks the rows of one page, without the columns for locator and group.
fn check(page: &str, task: &str, data_def: &str, expect: &[&str]) {
    let work = Workdir::with_defs(&job_with(&[("acme", "page.html")], task, data_def));
    work.write("page.html", page);
    let rows = work.rows(&["fact.notFound.replaceWith=absent"]);
    let bare: Vec<&str> = rows.iter().map(|row| row.strip_prefix("acme|g|").unwrap()).collect();
    assert_eq!(bare, expect);
}

#[test]
fn each_prefix_is_put_before_what_is_there() {
    let data_def = r#"
        query: { block: ul, selector: "li:nth-child(1)" }
        items: [ item: { name: i, value: i } ]
        dims:
          - item: { name: d, selector: "li:nth-child(2)", prefix: [ "b/", "a/" ] }
        facts: [ item: { name: fact, prefix: [ "y:", "x:" ] } ]
    "#;
    check(LIST, "", data_def, &["i|a/b/two|x:y:one"]);
}

#[test]
fn a_break_value_is_the_last_of_its_range_even_with_single_valued_dims() {
    let data_def = r#"
        query: { block: ul, selector: "li:nth-child(%{item.index})" }
        items: [ item: { name: i, selector: "li:nth-child(%{index})", index: 2, breakAfter: [ three ] } ]
        dims: [ item: { name: d, value: d } ]
    "#;
    check(LIST, "", data_def, &["two|d|two", "three|d|three"]);
}

#[test]
fn a_break_value_ends_its_own_axis_only() {
    let data_def = r#"
        query: { block: ul, selector: "li:nth-child(%{dim.index})" }
        items: [ item: { name: i, value: i, indexRange: 1-2 } ]
        dims:
          - item: { name: d, selector: "li:nth-child(%{index})", index: 1, breakAfter: [ two ] }
    "#;
    let expect = ["i|one|one", "i|two|two", "i|one|one", "i|two|two"];
    check(LIST, "", data_def, &expect[..]);
}

#[test]
fn the_rightmost_axis_turns_fastest_and_reversed_bounds_are_swapped() {
    let data_def = r#"
        query: { block: ul, selector: "li:nth-child(%{dim.b.index})" }
        items: [ item: { name: i, value: i } ]
        dims:
          - item: { name: a, selector: "li:nth-child(%{index})", indexRange: 2-1 }
          - item: { name: b, selector: "li:nth-child(%{index})", indexRange: 3-4 }
    "#;
    let expect = ["i|one|three|three", "i|one|four|four", "i|two|three|three", "i|two|four|four"];
    check(LIST, "", data_def, &expect);
}

#[test]
fn variables_reach_axes_by_name_and_can_be_escaped() {
    let data_def = r#"
        query:
          block: "ul:contains(%{item.first.match})"
          selector: "li:nth-child(%{dim.second.index})"
        items: [ item: { name: first, match: "one" } ]
        dims:
          - item: { name: second, index: 2, selector: "li:nth-child(%{dim.third.index})" }
          - item: { name: third, index: 3, script: "'%{item.first.value} %{itemName} %%{index}'" }
    "#;
    check(LIST, "", data_def, &["one|three|one third %{index}|two"]);
}

#[test]
fn a_match_is_a_pattern_in_queries_and_plain_text_in_rows() {
    let page = "<table><tr><td>EPS (TTM)<td>1.5</tr><tr><td>EPS<td>2</tr></table>";
    let data_def = r#"
        query: { block: table, selector: "td:matchesOwn(^%{item.match}$) + td" }
        items: [ item: { name: a, match: "EPS \\(TTM\\)" }, item: { name: b, match: EPS } ]
    "#;
    check(page, "", data_def, &["EPS (TTM)|1.5", "EPS|2"]);
}

#[test]
fn a_definition_may_set_its_own_fact() {
    let data_def = r#"
        query: { block: ul, selector: "li:nth-child(1)" }
        items: [ item: { name: i, value: i } ]
        facts: [ item: { name: fact, script: "document.getName() + 1" } ]
    "#;
    check(LIST, "", data_def, &["i|acme1"]);
    check(LIST, "", &data_def.replace("script: \"document.getName() + 1\"", "value: v"), &["i|v"]);
}

#[test]
fn absent_values_and_blank_values_give_different_rows() {
    let page = "<p class=blank> </p><p class=null>Null</p>";
    let data_def = r#"
        query: { block: body, selector: "%{item.match}" }
        items:
          - item: { name: i, match: "p.blank" }
          - item: { name: j, match: "p.none" }
          - item: { name: k, match: "p.null" }
        dims:
          - item: { name: d, selector: "p.none" }
          - item: { name: e, selector: "p.blank" }
    "#;
    let expect = ["p.blank|null||-", "p.none|null||absent", "p.null|null||absent"];
    check(page, "", data_def, &expect);
}

#[test]
fn css_joins_own_texts_and_collapses_white_space() {
    let page = "<p> a&nbsp;\n b<br>c <b>not own</b></p><p></p><p>d</p>";
    let data_def = r#"
        query: { block: body, selector: p }
        items: [ item: { name: i, selector: "p attribute: class" } ]
    "#;
    check(page, "", data_def, &["|a b c d"]);
}

#[test]
fn xpath_text_is_neither_trimmed_nor_collapsed() {
    let page = "<table><tr><td> a  b </td></tr></table>";
    let data_def = r#"
        query: { block: "//table", selector: "./tbody/tr/td" }
        items: [ item: { name: i, value: i } ]
    "#;
    check(page, "steps: htmlUnitDefault", data_def, &["i| a  b "]);
}

#[test]
fn of_several_xpath_blocks_the_last_one_wins_even_if_empty() {
    let page = "<div><p>a</p><p>b</p></div><div><p>c</p><p>d</p></div><div id=x></div>";
    let data_def = r#"
        query: { block: "//div[not(@id)]", selector: ".//p" }
        items: [ item: { name: i, value: i } ]
        dims: [ item: { name: d, selector: ".//p[1]" } ]
    "#;
    check(page, "steps: htmlUnitDefault", data_def, &["i|c|d"]);
    let all = data_def.replace("[not(@id)]", "");
    check(page, "steps: htmlUnitDefault", &all, &["i|null|absent"]);
}

#[test]
fn filters_see_match_value_and_blanks() {
    let page =
        "<p class=a>1</p><p class=b> </p><p class=c>33</p><p class=d>4</p><p class=e>x(y)</p>";
    let data_def = r#"
        query: { block: body, selector: "p.%{item.match}" }
        items:
          - item: { name: a, match: a }
          - item: { name: b, match: b }
          - item: { name: c, match: c }
          - item: { name: d, match: d, filters: [ filter: { type: match, pattern: "[dq]" } ] }
          - item: { name: e, match: e }
        dims:
          - item: { name: v, selector: "p.%{item.match}", filters: [
                filter: { type: value, pattern: " " },
                filter: { type: value, pattern: "3" },
                filter: { type: value, pattern: "x(y)" } ] }
    "#;
    // The regular expression `3` has to match all of `33`, and does not.
    check(page, "", data_def, &["a|1|1", "c|33|33"]);
}

#[test]
fn scripts_see_the_document_and_the_settings() {
    let data_def = r#"
        query: { block: body }
        items: [ item: { name: i, script: "document.getGroup() + ' ' + document.getUrl()" } ]
        dims:
          - item: { name: a, script: "document.getFromDate()" }
          - item: { name: b, script: "configs.getConfig('loader.fetch.delay')" }
          - item: { name: c, script: "null" }
        facts: [ item: { name: fact, script: "[1, 2].map(function(n) { return n * 2 })" } ]
    "#;
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], data_def));
    work.write("page.html", "<p>");
    let rows = work.rows(&["dateTimePattern=dd-MM-yyyy", "runDateTimeText=01-07-2020"]);
    assert_eq!(rows, ["acme|g|g page.html|01-07-2020|0|null|2,4"]);
}
