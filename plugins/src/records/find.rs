//! Runs queries on one page.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use spoonbill_defs::TextKind;

use super::extract::PageExtractor;
use super::html::{inner_html, is_raw};
use super::json::{Json, JsonKind, JsonNode, JsonPath};
use super::jsonld;
use super::plan::{QueryPlan, QueryTarget};
use super::rows::EmptyReason;
use super::value::fold;
use crate::css;
use crate::html::{Document, NodeId, NodeKind};
use crate::xpath::{XNode, XPathLimits, XPathValue, number_to_string};

/// A block: an element, or a value in JSON.
#[derive(Debug, Clone)]
pub(super) struct RecordBlock {
    pub(super) root: Option<NodeId>,
    pub(super) json: Option<(Rc<Json>, JsonNode)>,
}

/// The result of a query. If `why` is `None` there is at least one text, and none is blank.
#[derive(Debug)]
pub(super) struct QueryResult {
    pub(super) texts: Vec<String>,
    /// The first node that matched.
    pub(super) node: Option<NodeId>,
    pub(super) matches: usize,
    pub(super) why: Option<EmptyReason>,
}

/// One match of a query, before its text is taken.
#[derive(Debug, Clone)]
pub(super) enum QueryMatch {
    Node(XNode),
    Text(String),
    Json(Rc<Json>, JsonNode),
}

/// The nodes that a path selects, with their JSON.
type SelectedNodes = (Rc<Json>, Vec<JsonNode>);

/// Parsed JSON by its element and attribute, so that each is parsed once.
pub(super) type JsonCache = HashMap<(NodeId, Option<Box<str>>), Option<Rc<Json>>>;

impl PageExtractor<'_> {
    /// Returns the texts that a query finds in a block. An error fails the page.
    pub(super) fn find(
        &mut self,
        query: &QueryPlan,
        block: &RecordBlock,
        kind: TextKind,
        all: bool,
    ) -> Result<QueryResult, String> {
        let hits = self.hits(query, block, all || self.counts)?;
        let node = hits.first().and_then(|hit| match hit {
            QueryMatch::Node(node) => Some(node.id()),
            QueryMatch::Text(_) | QueryMatch::Json(..) => None,
        });
        let mut found = QueryResult { texts: Vec::new(), node, matches: hits.len(), why: None };
        let mut why = match &query.place {
            _ if !hits.is_empty() => EmptyReason::Blank,
            QueryTarget::Here if query.json.is_some() => EmptyReason::NotJson,
            _ => EmptyReason::NoMatch,
        };
        let mut in_json = 0;
        for hit in hits {
            if let Some(path) = &query.json {
                match self.inside_json(query, &hit, path)? {
                    None => why = EmptyReason::NotJson,
                    Some((json, nodes)) => {
                        if nodes.is_empty() {
                            why = EmptyReason::NotInJson;
                        }
                        in_json += nodes.len();
                        push_json(&json, &nodes, all, &mut found.texts);
                    }
                }
            } else {
                self.push_text(query, hit, kind, all, &mut found.texts);
            }
            if !all {
                break;
            }
        }
        if query.json.is_some() {
            // If an array became several texts, each of them counts.
            found.matches = in_json.max(found.texts.len());
        }
        found.texts.retain(|text| !text.trim().is_empty());
        if found.texts.is_empty() {
            found.why = Some(why);
        }
        Ok(found)
    }

    /// Returns the matches of a query: all of them, or only the first.
    pub(super) fn hits(
        &mut self,
        query: &QueryPlan,
        block: &RecordBlock,
        all: bool,
    ) -> Result<Vec<QueryMatch>, String> {
        let tree = self.page.tree;
        match &query.place {
            QueryTarget::Here => Ok(self.here(query, block)),
            QueryTarget::JsonLd(path) => {
                let Some(tree) = tree else { return Ok(Vec::new()) };
                let page = self.json_ld.get_or_insert_with(|| jsonld::read(tree).into());
                let found = path.find(page);
                Ok(found.into_iter().map(|(json, node)| QueryMatch::Json(json, node)).collect())
            }
            QueryTarget::Css(selector) => {
                let (Some(tree), Some(root)) = (tree, block.root) else { return Ok(Vec::new()) };
                let nodes = if all {
                    selector.select(tree, root, &mut self.texts)
                } else {
                    let first = selector.select_first(tree, root, &mut self.texts);
                    first.map(|node| node.into_iter().collect())
                };
                let nodes = nodes.map_err(|error| error.to_string())?;
                Ok(nodes.into_iter().map(|node| QueryMatch::Node(node.into())).collect())
            }
            QueryTarget::Xpath(path) => {
                let (Some(tree), Some(root)) = (tree, block.root) else { return Ok(Vec::new()) };
                let value = path.evaluate(tree, root, XPathLimits::default());
                Ok(match value.map_err(|error| error.to_string())? {
                    XPathValue::Nodes(nodes) => nodes.into_iter().map(QueryMatch::Node).collect(),
                    XPathValue::Text(text) => vec![QueryMatch::Text(text)],
                    XPathValue::Number(number) => vec![QueryMatch::Text(number_to_string(number))],
                    XPathValue::Boolean(it) => vec![QueryMatch::Text(it.to_string())],
                })
            }
        }
    }

    /// Returns the block itself, or the page of JSON if the query is a JSON path.
    fn here(&mut self, query: &QueryPlan, block: &RecordBlock) -> Vec<QueryMatch> {
        if let Some((json, node)) = &block.json
            && query.attribute.is_none()
        {
            return vec![QueryMatch::Json(Rc::clone(json), *node)];
        }
        if query.json.is_some() && query.attribute.is_none() {
            let page = self.page.json;
            let json =
                self.page_json.get_or_init(|| page.and_then(Json::parse_script).map(Rc::new));
            if let Some(json) = json {
                return vec![QueryMatch::Json(Rc::clone(json), 0)];
            }
            // The text of an element may be JSON, but not that of a whole HTML page.
            if block.root.is_none_or(|root| root.index() == 0) {
                return Vec::new();
            }
        }
        block.root.map(|root| QueryMatch::Node(root.into())).into_iter().collect()
    }

    /// Follows a path in the JSON of a match. `None` if the match is not JSON.
    pub(super) fn inside_json(
        &mut self,
        query: &QueryPlan,
        hit: &QueryMatch,
        path: &JsonPath,
    ) -> Result<Option<SelectedNodes>, String> {
        let (json, root) = match hit {
            QueryMatch::Json(json, node) => (Some(Rc::clone(json)), *node),
            QueryMatch::Text(text) => (Json::parse_script(text).map(Rc::new), 0),
            QueryMatch::Node(node) => (self.json_of(query, *node), 0),
        };
        let Some(json) = json else {
            return Ok(None);
        };
        let nodes = path.find(&json, root).ok_or("the JSON path takes too many steps")?;
        Ok(Some((json, nodes)))
    }

    fn json_of(&mut self, query: &QueryPlan, node: XNode) -> Option<Rc<Json>> {
        let tree = self.page.tree?;
        let XNode::Node(id) = node else {
            return Json::parse_script(&node.string_value(tree)).map(Rc::new);
        };
        let key = (id, query.attribute.clone());
        if let Some(known) = self.embedded.get(&key) {
            return known.clone();
        }
        let text = match &query.attribute {
            Some(name) => attribute(tree, id, name).map(Cow::Borrowed),
            None => Some(Cow::Owned(tree.text_content(id))),
        };
        let json = text.and_then(|text| Json::parse_script(&text)).map(Rc::new);
        self.embedded.insert(key, json.clone());
        json
    }

    fn push_text(
        &self,
        query: &QueryPlan,
        hit: QueryMatch,
        kind: TextKind,
        all: bool,
        texts: &mut Vec<String>,
    ) {
        match hit {
            QueryMatch::Text(text) => texts.push(text),
            QueryMatch::Json(json, node) => push_json(&json, &[node], all, texts),
            QueryMatch::Node(node) => {
                let Some(tree) = self.page.tree else { return };
                match (&query.attribute, node) {
                    (Some(name), XNode::Node(id)) => {
                        texts.extend(attribute(tree, id, name).map(str::to_owned));
                    }
                    (_, XNode::Attribute(..)) => texts.push(node.string_value(tree)),
                    (None, XNode::Node(id)) => texts.push(text_of(tree, id, kind)),
                }
            }
        }
    }
}

fn push_json(json: &Json, nodes: &[JsonNode], all: bool, texts: &mut Vec<String>) {
    let nodes = nodes.iter().copied().filter(|node| json.kind(*node) != JsonKind::Null);
    if all {
        let each = nodes.flat_map(|node| jsonld::spread(json, node));
        texts.extend(each.filter_map(|node| json.text(node)));
    } else {
        texts.extend(nodes.take(1).filter_map(|node| json.text(node)));
    }
}

/// Finds an attribute regardless of case, because SVG has names such as `viewBox`.
fn attribute<'d>(document: &'d Document, node: NodeId, name: &str) -> Option<&'d str> {
    let mut attributes = document.attributes(node);
    attributes
        .find(|(own, _)| own.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}

/// The text of a node in the form that the field asks for.
fn text_of(document: &Document, node: NodeId, kind: TextKind) -> String {
    match document.kind(node) {
        NodeKind::Element if kind == TextKind::Html => inner_html(document, node),
        NodeKind::Element if is_raw(document, node) => fold(document.text_content(node)),
        NodeKind::Element if kind == TextKind::Own => fold(css::own_text(document, node)),
        NodeKind::Text | NodeKind::Comment => fold(document.text_content(node)),
        _ if kind == TextKind::Html => inner_html(document, node),
        _ => fold(css::text(document, node)),
    }
}
