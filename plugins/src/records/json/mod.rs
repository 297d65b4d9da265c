//! JSON as flat arrays in document order, and paths into it.
//!
//! Numbers keep the digits they were written with and objects their order. Two things that pages
//! get wrong are forgiven: raw line ends inside texts, and a comma before a closing bracket.

mod filter;
mod parse;
mod path;
mod read;
mod walk;

use std::borrow::Cow;

pub(super) use path::JsonPath;

/// A node of a [`Json`]: its position in document order; 0 is the whole.
pub(super) type JsonNode = u32;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonKind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    kind: JsonKind,
    /// Where it stands in the source.
    start: u32,
    end: u32,
    /// One past the last node inside.
    after: JsonNode,
    /// Where its name stands in the source, with the quotes; empty outside objects.
    name: (u32, u32),
}

/// A parsed JSON text.
#[derive(Debug)]
pub(super) struct Json {
    source: Box<str>,
    nodes: Vec<Node>,
}

impl Json {
    /// Reads a text that is JSON from end to end.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (json, end) = read::read(text)?;
        (end == text.len()).then_some(json)
    }

    /// Reads a text that is JSON, or a script that assigns it or passes it on.
    pub(super) fn parse_script(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| {
            starts(text).take(STARTS_MAX).find_map(|at| {
                let (json, _) = read::read(&text[at..])?;
                (json.nodes.len() > 1).then_some(json)
            })
        })
    }

    /// What a node is.
    pub(super) fn kind(&self, node: JsonNode) -> JsonKind {
        self.nodes[node as usize].kind
    }

    /// The values of an array or object, in order.
    pub(super) fn children(&self, node: JsonNode) -> impl Iterator<Item = JsonNode> + '_ {
        let end = self.nodes[node as usize].after;
        let first = (node + 1 < end).then_some(node + 1);
        std::iter::successors(first, move |child| {
            let next = self.nodes[*child as usize].after;
            (next < end).then_some(next)
        })
    }

    /// Every node, in document order.
    pub(super) fn all(&self) -> impl Iterator<Item = JsonNode> + use<> {
        0..self.nodes.len() as JsonNode
    }

    /// The node and everything inside it, in document order.
    fn inclusive(&self, node: JsonNode) -> std::ops::Range<JsonNode> {
        node..self.nodes[node as usize].after
    }

    /// The value of this name in an object; the last one, as JavaScript has it.
    pub(super) fn member(&self, node: JsonNode, name: &str) -> Option<JsonNode> {
        if self.kind(node) != JsonKind::Object {
            return None;
        }
        self.children(node).filter(|child| self.name(*child) == name).last()
    }

    /// The name of a value in its object.
    fn name(&self, node: JsonNode) -> Cow<'_, str> {
        let (start, end) = self.nodes[node as usize].name;
        if start == end { Cow::Borrowed("") } else { self.unquoted(start, end) }
    }

    fn raw(&self, node: JsonNode) -> &str {
        let node = self.nodes[node as usize];
        &self.source[node.start as usize..node.end as usize]
    }

    /// The words of a text; none for anything else.
    pub(super) fn words(&self, node: JsonNode) -> Option<Cow<'_, str>> {
        let at = self.nodes[node as usize];
        (at.kind == JsonKind::Text).then(|| self.unquoted(at.start, at.end))
    }

    /// The value as the text of a cell: null is nothing, lists and objects stay JSON.
    pub(super) fn text(&self, node: JsonNode) -> Option<String> {
        match self.kind(node) {
            JsonKind::Null => None,
            JsonKind::Boolean | JsonKind::Number => Some(self.raw(node).to_owned()),
            JsonKind::Text => self.words(node).map(Cow::into_owned),
            JsonKind::Array | JsonKind::Object => Some(compact(self.raw(node))),
        }
    }

    fn unquoted(&self, start: u32, end: u32) -> Cow<'_, str> {
        read::unquote(&self.source[start as usize + 1..end as usize - 1])
    }
}

/// Places of a script that are tried as the start of JSON.
const STARTS_MAX: usize = 64;

/// Where something bracketed is assigned, passed or returned.
fn starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices()
        .scan(' ', |before, (at, c)| {
            let is_start = matches!(c, '{' | '[') && matches!(*before, '=' | '(' | ' ');
            if !c.is_whitespace() {
                *before = c;
            }
            Some(is_start.then_some(at))
        })
        .flatten()
}

/// JSON without the white space between its parts.
fn compact(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let (mut inside, mut escaped) = (false, false);
    for c in raw.chars() {
        if inside || !c.is_whitespace() {
            out.push(c);
        }
        match c {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
    }
    out
}
