//! JSON-LD of a page, and paths into it.

use std::rc::Rc;

use super::json::{Json, JsonKind, JsonNode};
use crate::html::{Document, NodeKind};

/// JSON-LD scripts of one page that are parsed. Further ones are ignored.
const SCRIPTS_MAX: usize = 200;

/// A path such as `Product.offers.price`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LdPath {
    /// The wanted `@type`. `None` accepts all objects.
    kind: Option<Box<str>>,
    names: Vec<Box<str>>,
}

impl LdPath {
    /// Parses a path. An error has its offset in characters.
    pub(super) fn parse(text: &str) -> Result<Self, (String, usize)> {
        let mut names: Vec<Box<str>> = Vec::new();
        let mut at = 0;
        // `offers[1]` means `offers.1`.
        let text = &dotted(text);
        for name in text.split('.') {
            let odd = |c: char| c.is_whitespace() || matches!(c, '$' | '[' | ']' | '*' | '/');
            let trimmed = name.trim();
            if trimmed.is_empty() {
                return Err(("a name is missing here".to_owned(), at));
            }
            if let Some(place) = trimmed.chars().position(odd) {
                return Err((
                    "a path consists of names with dots between them".to_owned(),
                    at + place,
                ));
            }
            names.push(trimmed.into());
            at += name.chars().count() + 1;
        }
        let is_kind = names[0].starts_with(char::is_uppercase);
        let kind = is_kind.then(|| names.remove(0));
        Ok(Self { kind, names })
    }

    /// Returns the values in the first object that has any. Nested objects are tried last.
    pub(super) fn find(&self, page: &[Rc<Json>]) -> Vec<(Rc<Json>, JsonNode)> {
        for deep in [false, true] {
            if deep && self.kind.is_none() {
                break;
            }
            for json in page {
                let objects = if deep { all_objects(json) } else { top_objects(json) };
                let mut found = Vec::new();
                for object in objects.into_iter().filter(|object| self.is_kind(json, *object)) {
                    found.extend(self.walk(json, object));
                    if !found.is_empty() && !self.names.is_empty() {
                        break;
                    }
                }
                if !found.is_empty() {
                    return found.into_iter().map(|node| (Rc::clone(json), node)).collect();
                }
            }
        }
        Vec::new()
    }

    fn is_kind(&self, json: &Json, object: JsonNode) -> bool {
        let Some(kind) = &self.kind else {
            return true;
        };
        let Some(own) = json.member(object, "@type") else {
            return false;
        };
        spread(json, own).into_iter().filter_map(|node| json.words(node)).any(|words| {
            // `Product`, `schema:Product` or `https://schema.org/Product`.
            words.rsplit(['/', '#', ':']).next() == Some(kind)
        })
    }

    fn walk(&self, json: &Json, object: JsonNode) -> Vec<JsonNode> {
        let mut nodes = vec![object];
        for name in &self.names {
            let place = name.parse::<usize>().ok();
            nodes = nodes
                .into_iter()
                .flat_map(|node| match (json.kind(node), place) {
                    (JsonKind::Array, Some(place)) => {
                        json.children(node).nth(place).into_iter().collect()
                    }
                    _ => spread(json, node),
                })
                .filter_map(|node| match place {
                    Some(_) => Some(node),
                    None => json.member(node, name),
                })
                .collect();
        }
        let leaves = nodes.into_iter().flat_map(|node| spread(json, node));
        leaves.filter(|node| json.kind(*node) != JsonKind::Null).collect()
    }
}

/// Replaces each `[1]` by `.1`.
fn dotted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(before);
        if digits > 0 && after[digits..].starts_with(']') && !out.is_empty() {
            out.push('.');
            out.push_str(&after[..digits]);
            rest = &after[digits + 1..];
        } else {
            out.push('[');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// The values in an array, or the value itself.
pub(super) fn spread(json: &Json, node: JsonNode) -> Vec<JsonNode> {
    if json.kind(node) == JsonKind::Array { json.children(node).collect() } else { vec![node] }
}

/// The top-level objects, including those in arrays and in `@graph`.
fn top_objects(json: &Json) -> Vec<JsonNode> {
    let mut objects = Vec::new();
    let mut todo = vec![0];
    while let Some(node) = todo.pop() {
        match json.kind(node) {
            JsonKind::Array => {
                let inner: Vec<_> = json.children(node).collect();
                todo.extend(inner.into_iter().rev());
            }
            JsonKind::Object => {
                objects.push(node);
                todo.extend(json.member(node, "@graph"));
            }
            _ => {}
        }
    }
    objects
}

fn all_objects(json: &Json) -> Vec<JsonNode> {
    json.all().filter(|node| json.kind(*node) == JsonKind::Object).collect()
}

/// Parses the JSON-LD scripts of a page. Invalid ones are skipped.
pub(super) fn read(document: &Document) -> Vec<Rc<Json>> {
    document
        .all()
        .filter(|node| {
            document.kind(*node) == NodeKind::Element
                && document.name(*node).is_some_and(|name| &**name == "script")
                && document.attribute(*node, "type").is_some_and(is_ld)
        })
        .take(SCRIPTS_MAX)
        .filter_map(|node| Json::parse_script(strip(&document.text_content(node))).map(Rc::new))
        .collect()
}

fn is_ld(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/ld+json")
}

/// Strips the comment or CDATA marks that protect scripts from old browsers and from XML.
fn strip(text: &str) -> &str {
    let mut text = text.trim();
    for (start, end) in [("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("<![CDATA[", "]]>")] {
        if let Some(inner) = text.strip_prefix(start) {
            text = inner.strip_suffix(end).unwrap_or(inner).trim();
        }
    }
    text.strip_suffix(';').unwrap_or(text).trim()
}
