//! Queries: how a column gets its values from the items.

use fancy_regex::Regex;
use url::Url;

use super::page_view::PageView;
use super::words::fold;
use crate::html::{Document, NodeId};
use crate::xpath::{XNode, XPath, XPathLimits, XPathValue};

/// Where a query looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FieldSource {
    /// The item itself.
    #[default]
    Itself,
    /// A CSS selector below the item.
    Css(String),
    /// XPath from the item.
    Xpath(String),
    /// A path into the JSON-LD of the page.
    JsonLd(String),
    /// A path into the item, which is JSON.
    Json(String),
    /// A path into a JSON script of the page.
    Script {
        /// Selector of the script.
        selector: String,
        /// JSON path in it.
        path: String,
    },
}

/// How to get one value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldQuery {
    /// Where the value is.
    pub source: FieldSource,
    /// Read this attribute instead of the text.
    pub attribute: Option<String>,
    /// Read only text outside child elements.
    pub is_own: bool,
    /// Regular expression for the part to extract.
    pub regex: Option<String>,
    /// Join all matches with a comma.
    pub is_all: bool,
    /// Resolve the value against the address of the page.
    pub is_url: bool,
    /// Selectors to try in this order if the source finds nothing.
    pub others: Vec<String>,
}

impl FieldQuery {
    pub(super) fn new(source: FieldSource) -> Self {
        Self { source, ..Self::default() }
    }

    /// The matches in each root.
    pub(super) fn nodes(&self, view: &PageView, roots: &[NodeId]) -> Vec<Vec<NodeId>> {
        match &self.source {
            FieldSource::Itself => roots.iter().map(|root| vec![*root]).collect(),
            FieldSource::Css(selector) => view.select_each(selector, roots),
            FieldSource::Xpath(xpath) => evaluate(view.document, xpath, roots),
            FieldSource::JsonLd(_) | FieldSource::Json(_) | FieldSource::Script { .. } => {
                vec![Vec::new(); roots.len()]
            }
        }
    }

    /// The value in each root. `None` where nothing was found, and for sources in JSON.
    pub(super) fn values(
        &self,
        view: &PageView,
        roots: &[NodeId],
        base: Option<&Url>,
    ) -> Vec<Option<String>> {
        let regex = self.regex.as_ref().and_then(|regex| Regex::new(regex).ok());
        let value = |node: &NodeId| self.value(view, *node, regex.as_ref(), base);
        let of_root = |nodes: &Vec<NodeId>| {
            if self.is_all {
                let all: Vec<String> = nodes.iter().filter_map(value).collect();
                return (!all.is_empty()).then(|| all.join(", "));
            }
            nodes.first().and_then(value)
        };
        let mut values: Vec<Option<String>> = self.nodes(view, roots).iter().map(of_root).collect();
        for other in &self.others {
            let given = view.select_each(other, roots);
            for (value, nodes) in values.iter_mut().zip(&given) {
                *value = value.take().or_else(|| of_root(nodes));
            }
        }
        values
    }

    /// Adds the selectors of `other` as alternatives, if all else about the two queries is equal.
    pub(super) fn or(&self, other: &Self) -> Option<Self> {
        let bare = |query: &Self| Self {
            source: FieldSource::Itself,
            others: Vec::new(),
            ..query.clone()
        };
        let (FieldSource::Css(_), FieldSource::Css(second)) = (&self.source, &other.source) else {
            return None;
        };
        let mut both = self.clone();
        both.others.push(second.clone());
        both.others.extend(other.others.iter().cloned());
        (bare(self) == bare(other)).then_some(both)
    }

    /// The text of a match, before the regular expression.
    pub(super) fn raw(&self, view: &PageView, node: NodeId) -> String {
        match &self.attribute {
            Some(name) => view.attribute(node, name).unwrap_or_default().trim().to_owned(),
            None if view.document.text(node).is_some() => {
                fold(view.document.text(node).unwrap_or_default())
            }
            None if self.is_own => view.own_text(node),
            None => view.text(node),
        }
    }

    fn value(
        &self,
        view: &PageView,
        node: NodeId,
        regex: Option<&Regex>,
        base: Option<&Url>,
    ) -> Option<String> {
        let mut value = self.raw(view, node);
        if let Some(regex) = regex {
            value = kept(regex, &value)?;
        }
        if let (true, Some(base)) = (self.is_url, base) {
            value = base.join(&value).ok()?.to_string();
        }
        (!value.trim().is_empty()).then_some(value)
    }
}

/// The first group of the first match, or the whole match.
pub(super) fn kept(regex: &Regex, text: &str) -> Option<String> {
    let found = regex.captures(text).ok()??;
    let part = found.get(1).or_else(|| found.get(0))?;
    Some(part.as_str().trim().to_owned())
}

fn evaluate(document: &Document, xpath: &str, roots: &[NodeId]) -> Vec<Vec<NodeId>> {
    let Ok(xpath) = XPath::parse(xpath) else { return vec![Vec::new(); roots.len()] };
    let nodes = |root: &NodeId| match xpath.evaluate(document, *root, XPathLimits::default()) {
        Ok(XPathValue::Nodes(nodes)) => nodes.iter().copied().map(XNode::id).collect(),
        _ => Vec::new(),
    };
    roots.iter().map(nodes).collect()
}

/// Whether a value equals the sample, ignoring case, because style sheets may change it.
pub(super) fn is_sample(value: &str, sample: &str) -> bool {
    let value = fold(value);
    value == sample || value.to_lowercase() == sample.to_lowercase()
}
