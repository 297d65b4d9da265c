//! Samples that stand only in data for programs: JSON-LD and JSON in scripts.

use serde_json::Value;

use super::take::{Source, Take};
use super::view::View;
use super::words::{fold, is_generated, is_plain};
use crate::html::NodeId;

/// Steps into a document that are followed, at most.
const STEPS_MAX: usize = 200_000;

/// Where a sample stands in the data of a page, if it does.
pub(super) fn find(view: &View, sample: &str) -> Option<Take> {
    let jsonld = objects(view).into_iter().find_map(|object| {
        let path = path_to(&object, sample)?;
        let path = path.trim_start_matches('.');
        let kind = object.get("@type").and_then(Value::as_str).filter(|kind| is_plain(kind));
        Some(kind.map_or_else(|| path.to_owned(), |kind| format!("{kind}.{path}")))
    });
    if let Some(path) = jsonld {
        let take = Take::new(Source::JsonLd(path.clone()));
        return (look_up_jsonld(view, &path).as_deref() == Some(sample)).then_some(take);
    }
    scripts(view).into_iter().find_map(|(node, value)| {
        let path = format!("${}", path_to(&value, sample)?);
        let selector = script_selector(view, node)?;
        Some(Take::new(Source::Script { selector, path }))
    })
}

/// The objects of all JSON-LD, lists and graphs laid out flat.
fn objects(view: &View) -> Vec<Value> {
    let mut found = Vec::new();
    for node in view.select("script[type=application/ld+json]", view.document.root()) {
        let Ok(value) = serde_json::from_str(&view.document.text_content(node)) else { continue };
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items.into_iter().rev()),
                Value::Object(mut object) => {
                    let graph = object.remove("@graph");
                    open.extend(graph);
                    if object.len() > 1 {
                        found.push(Value::Object(object));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Scripts that are JSON as a whole.
fn scripts(view: &View) -> Vec<(NodeId, Value)> {
    let all = view.select("script[type=application/json]", view.document.root());
    all.into_iter()
        .filter_map(|node| {
            let value = serde_json::from_str(&view.document.text_content(node)).ok()?;
            Some((node, value))
        })
        .collect()
}

fn script_selector(view: &View, node: NodeId) -> Option<String> {
    let id = view.attribute(node, "id").filter(|id| is_plain(id) && !is_generated(id));
    let selector =
        id.map_or_else(|| "script[type=application/json]".to_owned(), |id| format!("script#{id}"));
    (view.select(&selector, view.document.root()).first() == Some(&node)).then_some(selector)
}

/// The path to the first value that is the sample: `.offers.price`, `.tags[0]`.
fn path_to(value: &Value, sample: &str) -> Option<String> {
    let mut open = vec![(value, String::new())];
    let mut steps = 0;
    while let Some((value, path)) = open.pop() {
        steps += 1;
        if steps > STEPS_MAX {
            return None;
        }
        match value {
            Value::Object(object) => {
                let inner = object.iter().rev().filter(|(key, _)| *key != "@context");
                open.extend(inner.map(|(key, value)| (value, format!("{path}{}", step(key)))));
            }
            Value::Array(items) => {
                let inner = items.iter().enumerate().rev();
                open.extend(inner.map(|(at, value)| (value, format!("{path}[{at}]"))));
            }
            leaf => {
                if plain(leaf).is_some_and(|text| fold(&text) == sample) {
                    return Some(path);
                }
            }
        }
    }
    None
}

fn step(key: &str) -> String {
    let is_simple = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_simple { format!(".{key}") } else { format!("['{}']", key.replace('\'', "\\'")) }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn look_up_jsonld(view: &View, path: &str) -> Option<String> {
    let (kind, rest) = match path.split_once('.') {
        Some((kind, rest)) if kind.starts_with(char::is_uppercase) => (Some(kind), rest),
        _ => (None, path),
    };
    let is_kind = |object: &Value| {
        kind.is_none_or(|kind| object.get("@type").and_then(Value::as_str) == Some(kind))
    };
    objects(view).iter().filter(|object| is_kind(object)).find_map(|object| walk(object, rest))
}

pub(super) fn look_up_script(view: &View, selector: &str, path: &str) -> Option<String> {
    let node = view.select(selector, view.document.root()).into_iter().next()?;
    let value: Value = serde_json::from_str(&view.document.text_content(node)).ok()?;
    walk(&value, path.trim_start_matches('$').trim_start_matches('.'))
}

/// Follows a path as [`path_to`] writes it.
fn walk(value: &Value, path: &str) -> Option<String> {
    let mut at = value;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let (key, after) = quoted.split_once("']")?;
            at = at.get(key.replace("\\'", "'"))?;
            rest = after;
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            at = at.get(index.parse::<usize>().ok()?)?;
            rest = after;
        } else {
            rest = rest.trim_start_matches('.');
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            at = at.get(&rest[..end])?;
            rest = &rest[end..];
        }
    }
    plain(at)
}
