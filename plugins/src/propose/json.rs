//! Samples that are not in the visible page but in JSON-LD or in JSON scripts.

use serde_json::Value;

use super::page_view::PageView;
use super::query::{FieldQuery, FieldSource};
use super::words::{fold, is_generated, is_plain};
use super::{JsonBlock, Sample};
use crate::html::NodeId;

const LINKED_DATA: &str = "script[type=\"application/ld+json\"]";
const JSON_SCRIPTS: &str = "script[type=application/json]";

/// Most values of a JSON document that are visited.
const STEPS_MAX: usize = 200_000;

/// Finds a sample in the JSON of a page: the query, and the value as written there.
pub(super) fn find(view: &PageView, sample: &str) -> Option<(FieldQuery, String)> {
    let jsonld = objects(view).into_iter().find_map(|object| {
        let steps = steps_to(&object, sample)?;
        let path = steps.join(".");
        let is_plain_path = !path.contains(['$', '[', ']', '*', '/', ' ']);
        let kind = object.get("@type").and_then(Value::as_str).filter(|kind| is_plain(kind));
        let path = kind.map_or_else(|| path.clone(), |kind| format!("{kind}.{path}"));
        let found = look_up_jsonld(view, &path).filter(|value| fold(value) == sample)?;
        is_plain_path.then(|| (FieldQuery::new(FieldSource::JsonLd(path)), found))
    });
    jsonld.or_else(|| {
        parsed(view, JSON_SCRIPTS).into_iter().find_map(|(node, value)| {
            let steps = steps_to(&value, sample)?;
            let found = node_at(&value, &steps).and_then(plain)?;
            let selector = script_selector(view, node)?;
            let source = FieldSource::Script { selector, path: json_path(&steps) };
            Some((FieldQuery::new(source), found))
        })
    })
}

/// The objects of all JSON-LD scripts; arrays and graphs are flattened.
fn objects(view: &PageView) -> Vec<Value> {
    let mut open: Vec<Value> =
        parsed(view, LINKED_DATA).into_iter().rev().map(|(_, value)| value).collect();
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.into_iter().rev()),
            Value::Object(mut object) => {
                open.extend(object.remove("@graph"));
                if object.len() > 1 {
                    found.push(Value::Object(object));
                }
            }
            _ => {}
        }
    }
    found
}

/// The scripts that a selector finds and that are valid JSON.
fn parsed(view: &PageView, selector: &str) -> Vec<(NodeId, Value)> {
    let scripts = view.select(selector, view.document.root()).into_iter();
    let parse = |node| serde_json::from_str(&view.document.text_content(node)).ok();
    scripts.filter_map(|node| Some((node, parse(node)?))).collect()
}

fn script_selector(view: &PageView, node: NodeId) -> Option<String> {
    let id = view.attribute(node, "id").filter(|id| is_plain(id) && !is_generated(id));
    let selector = id.map_or_else(|| JSON_SCRIPTS.to_owned(), |id| format!("script#{id}"));
    (view.select(&selector, view.document.root()).first() == Some(&node)).then_some(selector)
}

/// A JSON array in which one element has all samples.
pub(super) struct JsonList {
    pub(super) block: JsonBlock,
    pub(super) rows: usize,
    /// For each sample its path in an element, and the values of all elements.
    pub(super) columns: Vec<(String, Vec<Option<String>>)>,
}

/// Finds an array in the JSON of a page in which one element has all samples.
pub(super) fn list(view: &PageView, samples: &[Sample]) -> Option<JsonList> {
    let linked =
        parsed(view, LINKED_DATA).into_iter().map(|(_, value)| (LINKED_DATA.into(), value));
    let is_only = view.select(LINKED_DATA, view.document.root()).len() == 1;
    let others = parsed(view, JSON_SCRIPTS).into_iter();
    let others = others.filter_map(|(node, value)| Some((script_selector(view, node)?, value)));
    let mut all = linked.filter(|_| is_only).chain(others);
    all.find_map(|(selector, value): (String, Value)| list_in(&value, &selector, samples))
}

fn list_in(root: &Value, selector: &str, samples: &[Sample]) -> Option<JsonList> {
    let first = steps_to(root, &samples.first()?.text)?;
    // Search from the innermost array outwards.
    (0..first.len()).rev().find_map(|at| {
        let items = node_at(root, &first[..at])?.as_array().filter(|items| items.len() > 1)?;
        let model = items.get(first[at].parse::<usize>().ok()?)?;
        let columns: Option<Vec<_>> = samples
            .iter()
            .map(|sample| {
                let steps = steps_to(model, &sample.text).filter(|steps| !steps.is_empty())?;
                let value = |item: &Value| node_at(item, &steps).and_then(plain);
                let values: Vec<Option<String>> = items.iter().map(value).collect();
                let is_usual = 2 * values.iter().flatten().count() > items.len();
                is_usual.then(|| (json_path(&steps), values))
            })
            .collect();
        let block = JsonBlock {
            selector: selector.to_owned(),
            path: format!("{}[*]", json_path(&first[..at])),
        };
        Some(JsonList { block, rows: items.len(), columns: columns? })
    })
}

/// The value at the end of the steps. A step is a name, or an index into an array.
fn node_at<'a>(root: &'a Value, steps: &[String]) -> Option<&'a Value> {
    steps.iter().try_fold(root, |at, step| match at {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => at.get(step),
    })
}

/// The steps to the first value that equals the sample: names and array indexes.
fn steps_to(value: &Value, sample: &str) -> Option<Vec<String>> {
    let mut open = vec![(value, Vec::new())];
    let mut looked_at = 0;
    while let Some((value, steps)) = open.pop() {
        looked_at += 1;
        if looked_at > STEPS_MAX {
            return None;
        }
        let with = |step: String| {
            let mut longer = steps.clone();
            longer.push(step);
            longer
        };
        match value {
            Value::Object(object) => {
                let names = object.keys().rev().filter(|key| *key != "@context");
                open.extend(names.map(|key| (&object[key], with(key.clone()))));
            }
            Value::Array(items) => {
                let inner = items.iter().enumerate().rev();
                open.extend(inner.map(|(at, value)| (value, with(at.to_string()))));
            }
            leaf => {
                if plain(leaf).is_some_and(|text| fold(&text) == sample) {
                    return Some(steps);
                }
            }
        }
    }
    None
}

/// Steps as a JSON path.
fn json_path(steps: &[String]) -> String {
    steps.iter().fold("$".to_owned(), |path, each| path + &step(each))
}

/// A step in the syntax of JSON paths.
fn step(key: &str) -> String {
    let is_simple = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if key.chars().all(|c| c.is_ascii_digit()) {
        format!("[{key}]")
    } else if is_simple {
        format!(".{key}")
    } else {
        format!("['{}']", key.replace('\'', "\\'"))
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn look_up_jsonld(view: &PageView, path: &str) -> Option<String> {
    let (kind, rest) = match path.split_once('.') {
        Some((kind, rest)) if kind.starts_with(char::is_uppercase) => (Some(kind), rest),
        _ => (None, path),
    };
    let is_kind = |object: &Value| {
        kind.is_none_or(|kind| object.get("@type").and_then(Value::as_str) == Some(kind))
    };
    let steps: Vec<&str> = rest.split('.').collect();
    objects(view).iter().filter(|object| is_kind(object)).find_map(|object| walk(object, &steps))
}

/// Follows steps. On an array, a name selects from the first element that has it.
fn walk(value: &Value, steps: &[&str]) -> Option<String> {
    let mut at = value;
    for step in steps {
        at = match (at, step.parse::<usize>()) {
            (Value::Array(items), Ok(place)) => items.get(place)?,
            (Value::Array(items), Err(_)) => items.iter().find_map(|item| item.get(step))?,
            _ => at.get(step)?,
        };
    }
    plain(at)
}
