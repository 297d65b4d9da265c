//! Runs one query on one page.

use spoonbill_plugins::css::{self, Selector, TextCache};
use spoonbill_plugins::html::{Document, NodeId};
use spoonbill_plugins::xpath::{XNode, XPath, XPathLimits, XPathValue};

use crate::plan::prepare::Dialect;

/// The text of each match in document order: the folded text of an element or one of its attributes,
/// the value of an attribute node, or a string, number or boolean result.
pub(crate) fn ask(
    document: &Document,
    dialect: Dialect,
    query: &str,
    attribute: Option<&str>,
) -> Result<Vec<String>, String> {
    match dialect {
        Dialect::Css => {
            let selector = Selector::parse(query).map_err(|error| error.to_string())?;
            let found = selector
                .select(document, document.root(), &mut TextCache::default())
                .map_err(|error| error.to_string())?;
            Ok(found
                .into_iter()
                .map(|element| match attribute {
                    Some(name) => attribute_of(document, element, name),
                    None => css::text(document, element),
                })
                .collect())
        }
        Dialect::Xpath => {
            let xpath = XPath::parse(query).map_err(|error| error.to_string())?;
            let value = xpath
                .evaluate(document, document.root(), XPathLimits::default())
                .map_err(|error| error.to_string())?;
            Ok(match value {
                XPathValue::Nodes(nodes) => {
                    nodes.iter().map(|node| node_text(document, node, attribute)).collect()
                }
                XPathValue::Text(text) => vec![text],
                XPathValue::Number(number) => {
                    vec![spoonbill_plugins::xpath::number_to_string(number)]
                }
                XPathValue::Boolean(truth) => vec![truth.to_string()],
            })
        }
    }
}

fn node_text(document: &Document, node: &XNode, attribute: Option<&str>) -> String {
    match (node, attribute) {
        (XNode::Node(id), Some(name)) => attribute_of(document, *id, name),
        (XNode::Node(id), None) if document.text(*id).is_none() => {
            fold(&document.text_content(*id))
        }
        _ => node.string_value(document),
    }
}

/// The value of an attribute, whose name may be in any case; empty if the element lacks it.
fn attribute_of(document: &Document, element: NodeId, name: &str) -> String {
    let mut all = document.attributes(element);
    let own = all.find(|(own, _)| (***own).eq_ignore_ascii_case(name));
    own.map_or_else(String::new, |(_, value)| value.to_owned())
}

/// Folds white space to single spaces and trims the text.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
