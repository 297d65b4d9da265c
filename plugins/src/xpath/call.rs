//! The functions. The parser has checked the number of their arguments.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::html::NodeId;

use super::XNode;
use super::evaluate::{EvalResult, Evaluator, Focus};
use super::expression::{Expression, ValueKind};
use super::function::Function;
use super::number::{is_space, number_from, round};

/// The namespace of HTML, which XPath expressions see as no namespace.
const HTML: &str = "http://www.w3.org/1999/xhtml";

impl<'d> Evaluator<'d> {
    pub(super) fn call_truth(
        &self,
        function: Function,
        arguments: &[Expression],
        focus: Focus,
    ) -> EvalResult<bool> {
        match (function, arguments) {
            (Function::Not, [value]) => Ok(!self.truth(value, focus)?),
            (Function::Lang, [wanted]) => self.lang(&self.text(wanted, focus)?, focus.node),
            (Function::Contains, [text, part]) => {
                let part = self.text(part, focus)?;
                if text.kind() != ValueKind::Nodes {
                    return Ok(self.text(text, focus)?.contains(&*part));
                }
                match self.first(text, focus)? {
                    Some(node) => self.contains_text(node, &part),
                    None => Ok(part.is_empty()),
                }
            }
            (Function::StartsWith, [text, part]) => {
                let part = self.text(part, focus)?;
                if text.kind() != ValueKind::Nodes {
                    return Ok(self.text(text, focus)?.starts_with(&*part));
                }
                match self.first(text, focus)? {
                    Some(node) => self.starts_with_text(node, &part),
                    None => Ok(part.is_empty()),
                }
            }
            (Function::EndsWith, [text, part]) => {
                let part = self.text(part, focus)?;
                Ok(self.text(text, focus)?.ends_with(&*part))
            }
            (_, [value, ..]) => self.truth(value, focus),
            (_, []) => Ok(false),
        }
    }

    pub(super) fn call_number(
        &self,
        function: Function,
        arguments: &[Expression],
        focus: Focus,
    ) -> EvalResult<f64> {
        match (function, arguments) {
            (Function::Last, _) => Ok(focus.size as f64),
            (Function::Position, _) => Ok(focus.position as f64),
            (Function::Count, [nodes]) => Ok(self.count(nodes, focus)? as f64),
            (Function::Sum, [nodes]) => {
                let mut sum = 0.0;
                for node in self.nodes(nodes, focus)? {
                    sum += number_from(&self.string_value(node)?);
                }
                Ok(sum)
            }
            (Function::StringLength, [text]) => Ok(self.text(text, focus)?.chars().count() as f64),
            (Function::Floor, [number]) => Ok(self.number(number, focus)?.floor()),
            (Function::Ceiling, [number]) => Ok(self.number(number, focus)?.ceil()),
            (Function::Round, [number]) => Ok(round(self.number(number, focus)?)),
            (_, [value, ..]) => self.number(value, focus),
            (_, []) => Ok(f64::NAN),
        }
    }

    pub(super) fn call_text<'a>(
        &self,
        function: Function,
        arguments: &'a [Expression],
        focus: Focus,
    ) -> EvalResult<Cow<'a, str>>
    where
        'd: 'a,
    {
        match (function, arguments) {
            (Function::Concat, parts) => {
                let mut whole = String::new();
                for part in parts {
                    let part = self.text(part, focus)?;
                    // Every byte costs a step, because only `concat` can make text longer than the
                    // page.
                    self.spend(part.len())?;
                    whole.push_str(&part);
                }
                Ok(whole.into())
            }
            (Function::LocalName | Function::Name | Function::NamespaceUri, [nodes]) => {
                let node = self.first(nodes, focus)?;
                Ok(node.map_or("", |node| self.name_part(function, node)).into())
            }
            (Function::NormalizeSpace, [text]) => Ok(normalized(self.text(text, focus)?)),
            (Function::LowerCase, [text]) => Ok(self.text(text, focus)?.to_lowercase().into()),
            (Function::SubstringBefore, [text, mark]) => {
                let (text, mark) = (self.text(text, focus)?, self.text(mark, focus)?);
                let end = text.find(&*mark).unwrap_or(0);
                Ok(slice(text, 0, end))
            }
            (Function::SubstringAfter, [text, mark]) => {
                let (text, mark) = (self.text(text, focus)?, self.text(mark, focus)?);
                let start = text.find(&*mark).map_or(text.len(), |at| at + mark.len());
                let end = text.len();
                Ok(slice(text, start, end))
            }
            (Function::Substring, [text, start, length @ ..]) => {
                let text = self.text(text, focus)?;
                let start = round(self.number(start, focus)?);
                let end = match length.first() {
                    Some(length) => start + round(self.number(length, focus)?),
                    None => f64::INFINITY,
                };
                Ok(substring(text, start, end))
            }
            (Function::Translate, [text, from, to]) => {
                let text = self.text(text, focus)?;
                let (from, to) = (self.text(from, focus)?, self.text(to, focus)?);
                Ok(translated(&text, &from, &to).into())
            }
            (_, [value, ..]) => self.text(value, focus),
            (_, []) => Ok(Cow::Borrowed("")),
        }
    }

    fn name_part(&self, function: Function, node: XNode) -> &'d str {
        let owner = node.id();
        let namespace = self.document.namespace(owner).map_or("", |uri| &**uri);
        let namespace = if namespace == HTML { "" } else { namespace };
        let (name, namespace) = match node {
            XNode::Node(id) => (self.document.name(id).map_or("", |name| &**name), namespace),
            XNode::Attribute(_, index) => {
                let attribute = self.document.attributes(owner).nth(index as usize);
                (attribute.map_or("", |(name, _)| &**name), "")
            }
        };
        match function {
            Function::NamespaceUri => namespace,
            // Only attributes of foreign elements have a prefix, such as `xlink:href` in SVG.
            Function::LocalName if self.is_foreign(owner) => {
                name.split_once(':').map_or(name, |(_, local)| local)
            }
            _ => name,
        }
    }

    fn is_foreign(&self, owner: NodeId) -> bool {
        let namespace = self.document.namespace(owner);
        namespace.is_some_and(|uri| &**uri != HTML)
    }

    fn lang(&self, wanted: &str, node: XNode) -> EvalResult<bool> {
        let mut at = Some(node.id());
        while let Some(id) = at {
            self.spend(1)?;
            let own = self.document.attribute(id, "xml:lang");
            if let Some(own) = own.or_else(|| self.document.attribute(id, "lang")) {
                // `en` matches `en-GB`, but not `eng`.
                let speaks =
                    own.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted));
                let rest = own.get(wanted.len()..).unwrap_or_default();
                return Ok(speaks && (rest.is_empty() || rest.starts_with('-')));
            }
            at = self.document.parent(id);
        }
        Ok(false)
    }

    /// The elements with one of the given ids. For each id, only the first element in the document
    /// counts.
    pub(super) fn by_id(&self, arguments: &[Expression], focus: Focus) -> EvalResult<Vec<XNode>> {
        let Some(argument) = arguments.first() else {
            return Ok(Vec::new());
        };
        let mut wanted = HashSet::new();
        let mut add = |text: &str| {
            let ids = text.split(is_space).filter(|id| !id.is_empty());
            wanted.extend(ids.map(str::to_owned));
        };
        if argument.kind() == ValueKind::Nodes {
            for node in self.nodes(argument, focus)? {
                add(&self.string_value(node)?);
            }
        } else {
            add(&self.text(argument, focus)?);
        }
        let mut found = Vec::new();
        for id in self.document.all() {
            if wanted.is_empty() {
                break;
            }
            self.spend(1)?;
            let own = self.document.attribute(id, "id");
            if own.is_some_and(|own| wanted.remove(own)) {
                found.push(XNode::Node(id));
            }
        }
        Ok(found)
    }
}

fn normalized(text: Cow<'_, str>) -> Cow<'_, str> {
    let clean = !text.starts_with(is_space)
        && !text.ends_with(is_space)
        && !text.contains(['\t', '\r', '\n'])
        && !text.contains("  ");
    if clean {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out.into()
}

fn slice(text: Cow<'_, str>, start: usize, end: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
    }
}

/// The characters at the positions from `start` up to, but not including, `end`. Positions count
/// from 1.
fn substring(text: Cow<'_, str>, start: f64, end: f64) -> Cow<'_, str> {
    let mut range: Option<(usize, usize)> = None;
    for (position, (at, c)) in text.char_indices().enumerate() {
        let position = (position + 1) as f64;
        // Both comparisons are false for NaN, so no position matches then.
        if position >= start && position < end {
            range = Some((range.map_or(at, |(first, _)| first), at + c.len_utf8()));
        }
    }
    let (first, last) = range.unwrap_or((0, 0));
    slice(text, first, last)
}

fn translated(text: &str, from: &str, to: &str) -> String {
    let mut map: HashMap<char, Option<char>> = HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let other = to.next();
        map.entry(c).or_insert(other);
    }
    text.chars().filter_map(|c| map.get(&c).copied().unwrap_or(Some(c))).collect()
}
