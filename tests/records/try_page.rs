//! `spoonbill try` and `spoonbill schema`.

use serde_json::Value;

use super::with_page;
use crate::harness::{Workdir, job, titled};

#[test]
fn try_prints_the_rows_of_one_page_as_json_lines() {
    let work = with_page("block: p\nfields: { b: b, i: { selector: i, type: integer } }\n", "");
    work.write("other.html", "<p><b>x</b><i>many</i></p><p><b>y</b><i>2</i></p>");
    let ending = work.spoonbill(&["try", "other.html", "--defs", "defs"]);
    assert_eq!(ending.code, 0, "{}", ending.stderr);
    assert_eq!(ending.stdout, "{\"b\":\"x\",\"i\":null}\n{\"b\":\"y\",\"i\":2}\n");
    assert!(ending.stderr.contains("field `i`: 1 misfit, `many`"), "{}", ending.stderr);
    assert!(!work.exists("data") && !work.exists("output"));
}

#[test]
fn try_explains_where_values_come_from() {
    let work = with_page("block: p\nfields: { b: [ em, b ], i: i }\n", "<p><b>x</b></p>");
    let ending = work.spoonbill(&["try", "page.html", "--defs", "defs", "--explain"]);
    let line: Value = serde_json::from_str(&ending.stdout).unwrap();
    assert_eq!(line["row"]["b"], "x");
    assert_eq!(line["fields"][0]["query"], "b");
    assert_eq!(line["fields"][0]["matches"], 1);
    assert!(line["fields"][0]["node"].as_str().unwrap().ends_with("> p > b"), "{line}");
    assert_eq!(line["fields"][1]["why"], "nothing matches");
}

#[test]
fn a_classic_definition_can_be_tried_too() {
    let work = Workdir::with_defs(&job(&[("n", "page.html")], crate::harness::TITLE));
    work.write("page.html", titled("x"));
    let ending = work.spoonbill(&["try", "page.html", "--defs", "defs", "--group", "g"]);
    assert_eq!(ending.code, 0, "{}", ending.stderr);
    let row: Value = serde_json::from_str(&ending.stdout).unwrap();
    assert_eq!(row["title"], "title");
    assert_eq!(row["fact"], "x");
}

#[test]
fn an_unknown_group_is_a_usage_error() {
    let work = with_page("fields: { b: b }\n", "");
    let ending = work.spoonbill(&["try", "page.html", "--defs", "defs", "--group", "G"]);
    assert_eq!(
        (ending.code, ending.stderr.as_str()),
        (2, "error: there is no group `G`; did you mean `g`?\n")
    );
}

#[test]
fn the_schema_is_json() {
    let ending = Workdir::new().spoonbill(&["schema"]);
    assert_eq!(ending.code, 0);
    let schema: Value = serde_json::from_str(&ending.stdout).unwrap();
    assert!(schema["properties"]["groups"]["description"].is_string());
    assert!(schema["definitions"]["field"]["properties"]["regex"]["description"].is_string());
}

#[test]
fn try_explains_dropped_rows_and_missing_blocks() {
    let defs = "block: p\nfields: { b: { selector: [ em, b ], required: true } }\n";
    let work = with_page(defs, "<p>x</p><p><b>1</b></p>");
    let explain = |page: &str| work.spoonbill(&["try", page, "--defs", "defs", "--explain"]);
    let ending = explain("page.html");
    let rows: Vec<Value> =
        ending.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["row"], &rows[0]["dropped"]), (&Value::Null, &"`b` is required".into()));
    assert_eq!(rows[0]["fields"][0]["tried"], serde_json::json!(["em", "b"]));
    assert_eq!(rows[1]["row"]["b"], "1");
    work.write("other.html", "<div>");
    let ending = explain("other.html");
    assert!(ending.stderr.contains("0 rows\nblock `p` matches nothing"), "{}", ending.stderr);
}
