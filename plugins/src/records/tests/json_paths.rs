//! The compliance suite of RFC 9535, which is not part of this project. `JSONPATH_CTS` names its
//! file; without it the tests look beside the workspace.

use serde_json::Value;

use super::*;
use crate::records::json::{Json, JsonPath};

const BESIDE_THE_WORKSPACE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/suites/jsonpath/cts.json");

#[test]
fn paths_do_what_the_compliance_suite_wants() {
    let file = std::env::var("JSONPATH_CTS").unwrap_or_else(|_| BESIDE_THE_WORKSPACE.to_owned());
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: no JSON path suite at {file}; set JSONPATH_CTS to its cts.json");
        return;
    };
    let suite: Value = serde_json::from_str(&text).unwrap();
    let cases = suite["tests"].as_array().unwrap();
    let wrong: Vec<String> = cases.iter().filter_map(wrong).collect();
    assert_eq!((cases.len(), wrong.len()), (703, 0), "{wrong:#?}");
}

/// Runs one case. Returns what is wrong.
fn wrong(case: &Value) -> Option<String> {
    let path = case["selector"].as_str().unwrap();
    let is_invalid = case["invalid_selector"] == true;
    let compiled = RecordPlan::compile(&record(None, vec![field(json(path))]), &setup());
    if compiled.is_err() != is_invalid {
        return Some(format!("{path}: {:?}", compiled.err()));
    }
    if is_invalid {
        return None;
    }
    let page = Json::parse(&case["document"].to_string()).unwrap();
    let found = JsonPath::parse(path).unwrap().find(&page, 0).unwrap();
    let found: Value = found.iter().map(|node| value_of(&page, *node)).collect();
    let is_wanted =
        case["result"] == found || case["results"].as_array().is_some_and(|it| it.contains(&found));
    (!is_wanted).then(|| format!("{path}: {found}"))
}

fn value_of(page: &Json, node: u32) -> Value {
    match page.text(node) {
        None => Value::Null,
        Some(text) => match page.words(node) {
            Some(words) => Value::from(&*words),
            None => serde_json::from_str(&text).unwrap(),
        },
    }
}
