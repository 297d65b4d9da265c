//! Pages and scripts that would use up the machine. Their job fails with a reason, other jobs finish.

use serde_json::json;

use crate::harness::Workdir;
use crate::harness::defs::{TITLE, job, job_with, titled};

/// Runs a bad page beside a good one and returns the reason why the bad one failed.
fn reason(bad: &str, data_def: &str, task: &str, settings: &[&str], good: &str) -> String {
    let locators = [("bad", "bad.html"), ("good", "good.html")];
    let work = Workdir::with_defs(&job_with(&locators, task, data_def));
    work.write("bad.html", bad);
    work.write("good.html", titled("good"));
    work.write("defs/step.js", STEP);
    let ending = work.run(settings);
    assert_eq!(ending.code, 4, "{ending:?}");
    assert_eq!(work.latest(), [good]);
    let report = work.report();
    assert_eq!(report["jobs"], json!({ "done": 1, "failed": 1, "pending": 0 }));
    assert_eq!(report["failures"][0]["name"], "bad");
    report["failures"][0]["reasons"].to_string()
}

fn check(words: &[&str], reason: &str) {
    for word in words {
        assert!(reason.contains(word), "`{word}` is missing: {reason}");
    }
}

const GOOD: &str = "good|g|title|good";

#[test]
fn too_many_nodes_fail_the_page() {
    let page = "<p>x".repeat(2_100_000);
    check(&["4000000"], &reason(&page, TITLE, "", &[], GOOD));
    let xpath =
        "query: { block: //body, selector: //h1 }\nitems: [ item: { name: i, value: title } ]";
    check(
        &["1000"],
        &reason(&page, xpath, "steps: htmlUnitDefault", &["parser.nodes.max=1000"], GOOD),
    );
}

#[test]
fn elements_nested_too_deeply_fail_the_page() {
    let page = "<div>".repeat(100_000);
    check(&["5000"], &reason(&page, TITLE, "", &[], GOOD));
}

#[test]
fn deep_nesting_below_the_limit_works_in_css_and_xpath() {
    let page = "<div>".repeat(4_000) + "<h1>deep</h1>";
    for (task, data_def) in [
        ("", "query: { block: body, selector: h1 }\nitems: [ item: { name: i, value: i } ]"),
        (
            "steps: htmlUnitDefault",
            "query: { block: //body, selector: .//h1 }\nitems: [ item: { name: i, value: i } ]",
        ),
    ] {
        let work = Workdir::with_defs(&job_with(&[("acme", "page.html")], task, data_def));
        work.write("page.html", &page);
        assert_eq!(work.rows(&[]), ["acme|g|i|deep"]);
    }
}

/// A dataDef whose item script runs `body` on the bad page.
fn scripted(body: &str) -> String {
    format!(
        "query: {{ block: body, selector: h1 }}\nitems:\n  - item:\n      name: title\n      script: \
         \"(function() {{ if (document.getName() == 'bad') {{ {body} }} return 'title'; }})()\"\n"
    )
}

#[test]
fn an_endless_item_script_fails_the_page() {
    let data_def = scripted("for (;;) {}");
    let reason = reason("<h1>x</h1>", &data_def, "", &["script.time.max=1s"], GOOD);
    check(&["ran longer than", "script.time.max"], &reason);
}

#[test]
fn an_item_script_that_uses_too_much_memory_fails_the_page() {
    let data_def =
        scripted("var all = []; for (;;) all.push(new Array(1000).join('x') + all.length);");
    let settings = ["script.memory.max=8MiB", "script.time.max=60s"];
    check(&["memory"], &reason("<h1>x</h1>", &data_def, "", &settings, GOOD));
}

#[test]
fn an_item_script_that_recurses_endlessly_fails_the_page() {
    let data_def = scripted("function f() { return f() + 1; } f();");
    check(&["stack"], &reason("<h1>x</h1>", &data_def, "", &[], GOOD).to_lowercase());
}

/// A script step that never ends on the bad page.
const STEP: &str = "
function execute(data) {
  if (data.getItems().get(0).getName() == 'bad') { for (;;) {} }
  return data;
}";

#[test]
fn an_endless_script_step_fails_its_page() {
    let task = "
        steps:
          jsoupDefault:
            script:
              class: scripter
              previous: filter
              next: appender
              plugins: [ plugin: { name: s, class: script, script: step.js } ]
    ";
    let reason = reason("<h1>x</h1>", TITLE, task, &["script.time.max=1s"], GOOD);
    check(&["step.js"], &reason);
}

#[test]
fn an_endless_range_of_present_values_fails_the_page() {
    let data_def = r#"
        query: { block: body, selector: h1 }
        items: [ item: { name: i, selector: "h1", index: 1, breakAfter: [ good ] } ]
    "#;
    let settings = ["parser.rows.max=5000"];
    check(&["5000"], &reason("<h1>x</h1>", data_def, "", &settings, "good|g|good|good"));
}

#[test]
fn an_open_range_without_a_break_is_an_error() {
    let data_def = r#"
        query: { block: body, selector: h1 }
        items: [ item: { name: i, selector: "h1", indexRange: 1- } ]
    "#;
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], data_def));
    work.write("page.html", titled("x"));
    let ending = work.run(&["parser.rows.max=5000"]);
    assert!(ending.code == 3 || ending.code == 4, "{ending:?}");
    assert!(ending.stderr.contains("range") || ending.stderr.contains("5000"), "{ending:?}");
}

#[test]
fn a_range_that_takes_too_long_fails_the_page() {
    let data_def = r#"
        query: { block: body, selector: h1 }
        items:
          - item: { name: i, selector: "h1:not(p:contains(%{index}) + h1)", index: 1, breakAfter: [ good ] }
    "#;
    let page = "<p>filler</p>".repeat(20_000) + "<h1>never</h1>";
    let reason = reason(&page, data_def, "", &["parser.time.max=1s"], "good|g|good|good");
    check(&["out of time", "parser.time.max"], &reason);
}

#[test]
fn a_range_whose_values_run_out_keeps_the_rows_it_has() {
    let data_def = r#"
        query: { block: ul, selector: "li:nth-child(%{item.index})" }
        items:
          - item: { name: i, selector: "li:nth-child(%{index})", index: 1, breakAfter: [ end ] }
    "#;
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], data_def));
    work.write("page.html", "<ul><li>a</li><li>b</li></ul>");
    assert_eq!(work.rows(&[]), ["acme|g|a|a", "acme|g|b|b"]);
}

#[test]
fn random_bytes_are_parsed_without_a_failure() {
    let rubbish: Vec<u8> =
        (0..50_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let work = Workdir::with_defs(&job(&[("bad", "bad.html"), ("good", "good.html")], TITLE));
    work.write("bad.html", rubbish);
    work.write("good.html", titled("good"));
    let rows = work.rows(&["fact.notFound.replaceWith=absent"]);
    assert!(rows.contains(&GOOD.to_owned()), "{rows:?}");
    assert_eq!(rows.len(), 2);
}
