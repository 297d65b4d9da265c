//! The schema, the reference page and the reader know the same keys.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value as Json};

use super::*;
use crate::findings::Findings;
use crate::text::Sources;
use crate::yaml::{self, ScalarType, YamlKind, YamlNode};
use crate::{DefsOptions, from_str};

/// Definitions that use every key.
const EVERY_KEY: &str = include_str!("every_key.yml");

fn json(node: &YamlNode) -> Json {
    match &node.kind {
        YamlKind::Scalar(_, ScalarType::Null) => Json::Null,
        YamlKind::Scalar(_, ScalarType::Boolean(value)) => Json::Bool(*value),
        YamlKind::Scalar(text, ScalarType::Number) => {
            text.parse().map_or_else(|_| Json::String(text.clone()), Json::Number)
        }
        YamlKind::Scalar(text, ScalarType::Text | ScalarType::Filled) => Json::String(text.clone()),
        YamlKind::Sequence(nodes) => Json::Array(nodes.iter().map(json).collect()),
        YamlKind::Mapping(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.text.clone(), json(&entry.value)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn parsed(text: &str) -> Json {
    let mut sources = Sources::default();
    let file = sources.add("a.yml", text);
    let mut findings = Findings::new(&sources, Vec::new());
    let mut variables = yaml::Variables::new(|_| None);
    let root = yaml::parse(file, &mut yaml::NodeBudget::default(), &mut variables, &mut findings);
    json(&root.unwrap().unwrap())
}

/// The schema's error for a definition, if it has one.
fn schema_error(instance: &Json) -> Option<String> {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    let schema = serde_json::from_str(&schema()).unwrap();
    compiler.add_resource("definitions.json", schema).unwrap();
    let index = compiler.compile("definitions.json", &mut schemas).unwrap();
    schemas.validate(instance, index).err().map(|error| format!("{error:#}"))
}

#[track_caller]
fn blessed(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "{name} is stale: `BLESS=1 cargo test -p spoonbill-defs shapes`");
}

#[test]
fn the_schema_and_the_reference_page_are_up_to_date() {
    blessed("schema.json", &schema());
    blessed("../docs/reference.md", &reference());
}

#[test]
fn every_key_is_read_and_in_the_schema() {
    let read = from_str("every_key.yml", EVERY_KEY, &DefsOptions::default());
    assert_eq!(read.err().map(|problems| crate::testing::rendered(&problems.0)), None);
    let written = parsed(EVERY_KEY);
    assert_eq!(schema_error(&written), None);
    let mut used = BTreeSet::new();
    keys_of(&written, &mut used);
    let missing: Vec<&str> = MappingShape::all()
        .into_iter()
        .flat_map(MappingShape::names)
        .filter(|name| !used.contains(*name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "keys that every_key.yml does not use");
}

fn keys_of(value: &Json, keys: &mut BTreeSet<String>) {
    match value {
        Json::Object(entries) => {
            for (key, value) in entries {
                keys.insert(key.clone());
                keys_of(value, keys);
            }
        }
        Json::Array(values) => values.iter().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let start = "groups:\n  a:\n    urls: https://a.example/\n";
    for mistake in [
        "    fild: { title: h1 }\n",
        "    fields: { title: { selectr: h1 } }\n",
        "    fields: { title: { selector: h1, type: decmal } }\n",
        "    fields: { title: { selector: h1, required: maybe } }\n",
        "    fields: [ title ]\n",
        "    fields: { title: 1 }\n",
        "    fields: { title: h1 }\n    follow: { selector: a, scope: site }\n",
        "    fields: { title: h1 }\n    follow: { selector: a, maxPages: many }\n",
        "    fields: { title: h1 }\n    columns: [ dept ]\n",
        "    fields: { title: h1 }\n    expect: { fill: { title: 2 } }\n",
        "    fields: { title: h1 }\n    expect: { fill: { title: 120% } }\n",
        "    fields: { title: h1 }\n    expect: { fill: { title: '95' } }\n",
        "    fields: { title: { type: decimal } }\n",
        "    fields: { title: { selector: [] } }\n",
        "    fields: { title: { selector: h1, type: date, in: [] } }\n",
        "    fields: {}\n",
        "    fields: { title: h1 }\n    follow: { group: a }\n",
        "    fields: { title: h1 }\n    follow: []\n",
        "    fields: { title: h1 }\n    output: rows.xlsx\n",
        "    fields: { title: h1 }\n    block: {}\n",
    ] {
        let text = format!("{start}{mistake}");
        assert!(
            from_str("a.yml", &text, &DefsOptions::default()).is_err(),
            "the reader accepts: {mistake}"
        );
        assert!(schema_error(&parsed(&text)).is_some(), "the schema accepts: {mistake}");
    }
    for good in [
        "",
        "    output: a/b.jsonl\n    expect: { fill: { title: 99.5% } }\n",
        "    columns: []\n    expect: { fill: { title: 1 } }\n",
        "    locators: [ { name: a, url: b } ]\n    follow: [ a, { xpath: //a } ]\n",
    ] {
        let text = format!("{start}    fields: {{ title: h1 }}\n{good}");
        assert!(
            from_str("a.yml", &text, &DefsOptions::default()).is_ok(),
            "the reader refuses: {good}"
        );
        assert_eq!(schema_error(&parsed(&text)), None, "the schema refuses: {good}");
    }
}
