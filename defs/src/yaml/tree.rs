//! Builds nodes from parser events, without recursion over the input.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag, options};

use super::mistakes::{self, ParseFailure};
use super::variables::DollarSyntax;
use super::{ScalarType, Variables, YamlEntry, YamlKind, YamlNode, scalar_type, syntax};
use crate::findings::Findings;
use crate::text::{Span, Text};

/// Deepest nesting. Definitions need ten levels; later stages recurse over nodes and rely on it.
const DEPTH_MAX: usize = 64;

/// Maximum number of nodes of one directory, including the copies that aliases make.
const NODES_MAX: usize = 1_000_000;

/// Number of nodes that the files may still use.
#[derive(Debug)]
pub(crate) struct NodeBudget(usize);

impl Default for NodeBudget {
    fn default() -> Self {
        Self(NODES_MAX)
    }
}

/// The file has an error, already reported, that makes the rest of it unreadable.
#[derive(Debug)]
pub(crate) struct Unreadable;

/// Reads the first document of a file. `None` if it is empty.
pub(crate) fn parse(
    file: u32,
    budget: &mut NodeBudget,
    variables: &mut Variables,
    findings: &mut Findings<'_>,
) -> Result<Option<YamlNode>, Unreadable> {
    let text = findings.sources.text(file).unwrap_or_default();
    let settings = options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut builder = NodeBuilder {
        file,
        text,
        budget,
        variables,
        findings,
        open: Vec::new(),
        anchors: HashMap::new(),
        end: 0,
        root: None,
    };
    let mut first_ended = false;
    let mut read_to = 0;
    for event in Parser::new_from_str_with_options(text, settings) {
        let (event, span) = match event {
            Ok(found) => found,
            // Text after the first document is not read, so errors there do not count.
            Err(_) if first_ended => break,
            Err(error) => {
                builder.report(&error, read_to);
                return Err(Unreadable);
            }
        };
        read_to = span.end.byte_offset().unwrap_or(read_to);
        let at = builder.span(span.start, span.end);
        if first_ended {
            if matches!(event, Event::DocumentStart(..)) {
                builder.findings.warn(
                    at,
                    "only the first document of a file is read",
                    "move the text after `---` to another file",
                );
                break;
            }
            continue;
        }
        first_ended = matches!(event, Event::DocumentEnd);
        builder.end = read_to;
        builder.take(event, at)?;
    }
    Ok(builder.root.filter(|node| !matches!(node.kind, YamlKind::Scalar(_, ScalarType::Null))))
}

struct NodeBuilder<'b, 's> {
    file: u32,
    text: &'s str,
    budget: &'b mut NodeBudget,
    variables: &'b mut Variables,
    findings: &'b mut Findings<'s>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, YamlNode>,
    /// End of the part that was read, in bytes.
    end: usize,
    root: Option<YamlNode>,
}

/// A list or mapping whose end was not read yet.
struct OpenCollection {
    at: Span,
    anchor: usize,
    content: OpenContent,
}

enum OpenContent {
    Sequence(Vec<YamlNode>),
    Mapping(Vec<MappingPair>, Option<PendingKey>),
}

enum PendingKey {
    /// A key, and whether it is an unquoted `<<`.
    Named(Text, bool),
    /// A list or mapping as a key, which is reported.
    Bad,
}

struct MappingPair {
    key: Text,
    merges: bool,
    value: YamlNode,
}

impl NodeBuilder<'_, '_> {
    fn take(&mut self, event: Event<'_>, at: Span) -> Result<(), Unreadable> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(text_weight(&text), at)?;
                let quoted = style != ScalarStyle::Plain || tag.is_some_and(|tag| is_text(&tag));
                let merges = !quoted && text == "<<";
                if style == ScalarStyle::Plain {
                    self.check_comment(&text, at);
                }
                let dollars = self.dollars();
                let filled = self.variables.fill(&text, dollars, at, self.findings);
                if let Some(filled) = &filled {
                    self.charge(text_weight(filled), at)?;
                }
                let kind = match (quoted, &filled) {
                    (_, Some(_)) => ScalarType::Filled,
                    (true, None) => ScalarType::Text,
                    (false, None) => scalar_type(&text),
                };
                let text = filled.unwrap_or_else(|| text.into_owned());
                self.place(YamlNode { at, kind: YamlKind::Scalar(text, kind) }, anchor, merges)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(at, anchor, OpenContent::Sequence(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(at, anchor, OpenContent::Mapping(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.alias(id, at),
            Event::UnresolvedAlias(name) => {
                self.findings.broken_value(
                    at,
                    format!("the alias `*{name}` has no anchor `&{name}` before it"),
                    "define the anchor first, or put the text in quotes",
                );
                let kind = YamlKind::Scalar(format!("*{name}"), ScalarType::Text);
                self.place(YamlNode { at, kind }, 0, false)
            }
            _ => Ok(()),
        }
    }

    /// Warns of a text that YAML ends at ` #`.
    fn check_comment(&mut self, text: &str, at: Span) {
        // Only the text right after the scalar counts, however long the line is.
        let rest = self.text.get(self.end..).unwrap_or_default();
        let comment = rest.trim_start_matches([' ', '\t']);
        if !comment.starts_with('#') || comment.len() == rest.len() {
            return;
        }
        let comment = comment.lines().next().unwrap_or_default();
        let word = comment.get(1..).unwrap_or_default().trim_end();
        let tight = word.starts_with(|c: char| c.is_alphabetic()) && !word.contains(' ');
        if !tight || scalar_type(text) == ScalarType::Null {
            return;
        }
        let comment = comment.trim_end();
        self.findings.warn(
            at,
            format!("YAML reads ` {comment}` as a comment"),
            format!("put the text in quotes: `\"{text} {comment}\"`, or write `# ` for a comment"),
        );
    }

    /// Whether the next scalar is a script.
    fn dollars(&self) -> DollarSyntax {
        match self.open.last() {
            Some(OpenCollection {
                content: OpenContent::Mapping(_, Some(PendingKey::Named(key, _))),
                ..
            }) if key.text == "script" => DollarSyntax::Script,
            _ => DollarSyntax::Variables,
        }
    }

    fn open(&mut self, at: Span, anchor: usize, content: OpenContent) -> Result<(), Unreadable> {
        self.charge(1, at)?;
        if self.open.len() >= DEPTH_MAX {
            return Err(self.too_deep(at));
        }
        self.open.push(OpenCollection { at, anchor, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Unreadable> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let kind = match open.content {
            OpenContent::Sequence(nodes) => YamlKind::Sequence(nodes),
            OpenContent::Mapping(pairs, _) => YamlKind::Mapping(self.mapping(pairs)),
        };
        self.place(YamlNode { at: open.at, kind }, open.anchor, false)
    }

    /// Adds a complete node to the innermost open collection.
    fn place(&mut self, mut node: YamlNode, anchor: usize, merges: bool) -> Result<(), Unreadable> {
        if anchor != 0 {
            self.charge(weight(&node), node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(OpenContent::Sequence(nodes)) => nodes.push(node),
            Some(OpenContent::Mapping(pairs, key)) => match (key.take(), node.kind) {
                (Some(PendingKey::Named(name, merges)), kind) => {
                    if matches!(kind, YamlKind::Scalar(_, ScalarType::Null)) {
                        node.at = name.at;
                    }
                    pairs.push(MappingPair {
                        key: name,
                        merges,
                        value: YamlNode { at: node.at, kind },
                    });
                }
                (Some(PendingKey::Bad), _) => {}
                (None, YamlKind::Scalar(text, _)) => {
                    *key = Some(PendingKey::Named(Text { text, at: node.at }, merges));
                }
                (None, YamlKind::Sequence(_) | YamlKind::Mapping(_)) => {
                    *key = Some(PendingKey::Bad);
                    self.findings.error(
                        node.at,
                        "a list or mapping cannot be a key",
                        "write a name before the `:`; put text that contains brackets in quotes",
                    );
                }
            },
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, at: Span) -> Result<(), Unreadable> {
        let Some(target) = self.anchors.get(&id) else {
            self.findings.error(
                at,
                "the alias is inside its own anchor",
                "a definition cannot contain itself; remove the alias",
            );
            return Err(Unreadable);
        };
        let (nodes, depth) = (weight(target), height(target));
        if self.open.len() + depth > DEPTH_MAX {
            return Err(self.too_deep(at));
        }
        self.charge(nodes, at)?;
        let Some(copy) = self.anchors.get(&id).cloned() else {
            return Ok(());
        };
        self.place(copy, 0, false)
    }

    /// Resolves merge keys, and reports duplicate keys. The first of them counts.
    fn mapping(&mut self, pairs: Vec<MappingPair>) -> Vec<YamlEntry> {
        let mut places: HashMap<String, Span> = HashMap::with_capacity(pairs.len());
        let mut kept = Vec::with_capacity(pairs.len());
        for pair in pairs {
            if !pair.merges {
                if let Some(first) = places.get(&pair.key.text) {
                    self.findings.error(
                        pair.key.at,
                        format!("the key `{}` is written twice in one mapping", pair.key.text),
                        format!("line {} has it too; keep one of them", first.line),
                    );
                    continue;
                }
                places.insert(pair.key.text.clone(), pair.key.at);
            }
            kept.push(pair);
        }
        let mut entries = Vec::with_capacity(kept.len());
        for pair in kept {
            if !pair.merges {
                entries.push(YamlEntry { key: pair.key, value: pair.value });
                continue;
            }
            for entry in self.merged(pair) {
                // Keys of the mapping win over merged ones, and earlier merges over later ones.
                if !places.contains_key(&entry.key.text) {
                    places.insert(entry.key.text.clone(), entry.key.at);
                    entries.push(entry);
                }
            }
        }
        entries
    }

    fn merged(&mut self, pair: MappingPair) -> Vec<YamlEntry> {
        let parts = match pair.value.kind {
            YamlKind::Sequence(parts) => parts,
            YamlKind::Scalar(..) | YamlKind::Mapping(_) => vec![pair.value],
        };
        let mut entries = Vec::new();
        for part in parts {
            match part.kind {
                YamlKind::Mapping(more) => entries.extend(more),
                YamlKind::Scalar(..) | YamlKind::Sequence(_) => self.findings.error(
                    pair.key.at,
                    "`<<` can merge only mappings",
                    "give it an alias of a mapping, such as `<<: *base`, or a list of them",
                ),
            }
        }
        entries
    }

    fn charge(&mut self, nodes: usize, at: Span) -> Result<(), Unreadable> {
        if let Some(left) = self.budget.0.checked_sub(nodes) {
            self.budget.0 = left;
            return Ok(());
        }
        self.findings.error(
            at,
            format!("the definitions have more than {NODES_MAX} values"),
            "split them into several runs; each use of an alias counts",
        );
        Err(Unreadable)
    }

    fn too_deep(&mut self, at: Span) -> Unreadable {
        self.findings.error(
            at,
            format!("the definition is nested deeper than {DEPTH_MAX} levels"),
            "no definition needs this depth; look for a missing closing bracket",
        );
        Unreadable
    }

    /// Reports an error of the parser. The text up to `read_to` was read without error.
    fn report(&mut self, error: &ScanError, read_to: usize) {
        let at = self.span(*error.marker(), *error.marker());
        let to = error.marker().byte_offset().unwrap_or(read_to);
        let failure = ParseFailure { text: self.text, from: read_to, to, at };
        let (at, message, help) = mistakes::find(error.kind(), failure).unwrap_or_else(|| {
            let (message, help) = syntax::explain(error.kind());
            (at, message, help.into())
        });
        self.findings.error(self.within(at), message, help);
    }

    /// A position with a source line: the end of the file moves to the last line that has text.
    fn within(&self, at: Span) -> Span {
        let lines = self.text.lines().enumerate();
        let last = lines.filter(|(_, line)| !line.trim().is_empty()).last();
        match last {
            Some((index, line)) if at.line as usize > index + 1 => Span {
                line: index as u32 + 1,
                column: line.trim_end().chars().count() as u32 + 1,
                width: 1,
                ..at
            },
            _ => at,
        }
    }

    fn span(&self, start: Marker, end: Marker) -> Span {
        let width = if start.line() == end.line() {
            end.col().saturating_sub(start.col())
        } else {
            start
                .byte_offset()
                .and_then(|byte| self.text.get(byte..))
                .and_then(|rest| rest.lines().next())
                .map_or(1, |line| line.trim_end().chars().count())
        };
        Span {
            file: self.file,
            line: start.line() as u32,
            column: start.col() as u32 + 1,
            width: (width as u32).max(1),
        }
    }
}

fn is_text(tag: &Tag) -> bool {
    tag.is_yaml_core_schema_tag("str") || tag.original() == "!"
}

/// The cost of a node and everything in it, keys included.
fn weight(node: &YamlNode) -> usize {
    match &node.kind {
        YamlKind::Scalar(text, _) => text_weight(text),
        YamlKind::Sequence(nodes) => 1 + nodes.iter().map(weight).sum::<usize>(),
        YamlKind::Mapping(entries) => {
            let cost = |entry: &YamlEntry| text_weight(&entry.key.text) + weight(&entry.value);
            1 + entries.iter().map(cost).sum::<usize>()
        }
    }
}

/// The cost of a text. A long one costs more, so aliases cannot copy it without limit.
fn text_weight(text: &str) -> usize {
    1 + text.len() / 64
}

fn height(node: &YamlNode) -> usize {
    match &node.kind {
        YamlKind::Scalar(..) => 0,
        YamlKind::Sequence(nodes) => 1 + nodes.iter().map(height).max().unwrap_or(0),
        YamlKind::Mapping(entries) => {
            let deepest = entries.iter().map(|entry| height(&entry.value)).max();
            1 + deepest.unwrap_or(0)
        }
    }
}
