//! JSON in one flat array of nodes in document order, and paths into it.
//!
//! A node is a range of the source, so numbers keep their digits and objects their order. The
//! reader accepts two frequent mistakes of pages: raw line ends in texts and a comma before a
//! closing bracket.

mod filter;
mod parse;
mod path;
mod read;
mod walk;

use std::borrow::Cow;

pub(super) use path::JsonPath;

/// Index of a node in document order. The root is 0.
pub(super) type JsonNode = u32;

/// The type of a node.
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
struct NodeSpan {
    kind: JsonKind,
    /// Range in the source, in bytes.
    start: u32,
    end: u32,
    /// The next node that is not a descendant.
    after: JsonNode,
    /// Range of its name in the source, with the quotes. Empty for nodes outside objects.
    name: (u32, u32),
}

/// A parsed JSON text.
#[derive(Debug)]
pub(super) struct Json {
    source: Box<str>,
    nodes: Vec<NodeSpan>,
}

impl Json {
    /// Parses a text that is JSON as a whole.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (json, end) = read::read(text)?;
        (end == text.len()).then_some(json)
    }

    /// Parses JSON, or the first JSON that a script assigns, passes or returns.
    pub(super) fn parse_script(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| {
            starts(text).take(STARTS_MAX).find_map(|at| {
                let (json, _) = read::read(&text[at..])?;
                (json.nodes.len() > 1).then_some(json)
            })
        })
    }

    /// The type of a node.
    pub(super) fn kind(&self, node: JsonNode) -> JsonKind {
        self.nodes[node as usize].kind
    }

    /// The values in an array or object, in order.
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

    /// The value of a name in an object. The last one counts, as in JavaScript.
    pub(super) fn member(&self, node: JsonNode, name: &str) -> Option<JsonNode> {
        if self.kind(node) != JsonKind::Object {
            return None;
        }
        self.children(node).filter(|child| self.name(*child) == name).last()
    }

    /// The name of a value in its object, or an empty text.
    fn name(&self, node: JsonNode) -> Cow<'_, str> {
        let (start, end) = self.nodes[node as usize].name;
        if start == end { Cow::Borrowed("") } else { self.unquoted(start, end) }
    }

    fn raw(&self, node: JsonNode) -> &str {
        let node = self.nodes[node as usize];
        &self.source[node.start as usize..node.end as usize]
    }

    /// The unescaped content of a text node. `None` for other types.
    pub(super) fn words(&self, node: JsonNode) -> Option<Cow<'_, str>> {
        let at = self.nodes[node as usize];
        (at.kind == JsonKind::Text).then(|| self.unquoted(at.start, at.end))
    }

    /// The value as the text of a cell. `None` for null; arrays and objects stay JSON.
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

/// Brackets in a script that are tried as the start of JSON.
const STARTS_MAX: usize = 64;

/// Offsets of brackets after an assignment, in an argument or after a space.
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

/// Drops the white space outside texts.
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
