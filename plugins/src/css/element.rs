//! Tests on a single element: name, attributes, emptiness.

use super::syntax::AttributeOperator;
use super::text::trimmed;
use crate::html::{Document, LocalName, Namespace, NodeId, NodeKind};

pub(super) fn is_named(document: &Document, node: NodeId, name: &LocalName) -> bool {
    document.name(node).is_some_and(|own| {
        own == name
            || document.namespace(node) != Some(&Namespace::HTML) && own.eq_ignore_ascii_case(name)
    })
}

/// The value of an attribute. `key` is lower case, but SVG has attributes such as `viewBox`, so
/// these match in any case.
pub(super) fn attribute<'a>(
    document: &'a Document,
    node: NodeId,
    key: &LocalName,
) -> Option<&'a str> {
    let is_html = document.namespace(node) == Some(&Namespace::HTML);
    document
        .attributes(node)
        .find(|(name, _)| *name == key || !is_html && name.eq_ignore_ascii_case(key))
        .map(|(_, value)| value)
}

pub(super) fn has_class(document: &Document, node: NodeId, class: &str) -> bool {
    attribute(document, node, &LocalName::CLASS)
        .is_some_and(|all| all.split_whitespace().any(|own| same_letters(own, class)))
}

/// Whether `text` equals `lower` when folded to lower case.
fn same_letters(text: &str, lower: &str) -> bool {
    if text.is_ascii() {
        return text.eq_ignore_ascii_case(lower);
    }
    text.to_lowercase() == lower
}

pub(super) fn attribute_holds(value: Option<&str>, is: AttributeOperator, wanted: &str) -> bool {
    if is == AttributeOperator::NotEqual {
        return !same_letters(value.unwrap_or_default(), wanted);
    }
    let Some(value) = value else {
        return false;
    };
    match is {
        AttributeOperator::Equal => same_letters(trimmed(value), wanted),
        AttributeOperator::Starting => match value.get(..wanted.len()) {
            Some(start) if start.is_ascii() => start.eq_ignore_ascii_case(wanted),
            _ => value.to_lowercase().starts_with(wanted),
        },
        AttributeOperator::Ending => value.to_lowercase().ends_with(wanted),
        AttributeOperator::Word => value.split_whitespace().any(|word| same_letters(word, wanted)),
        AttributeOperator::Containing | AttributeOperator::NotEqual => {
            value.to_lowercase().contains(wanted)
        }
    }
}

/// Like [`attribute_holds`], but case-sensitive.
pub(super) fn attribute_is(value: Option<&str>, is: AttributeOperator, wanted: &str) -> bool {
    let own = value.unwrap_or_default();
    match is {
        AttributeOperator::NotEqual => own != wanted,
        _ if value.is_none() => false,
        AttributeOperator::Equal => own == wanted,
        AttributeOperator::Starting => own.starts_with(wanted),
        AttributeOperator::Ending => own.ends_with(wanted),
        AttributeOperator::Containing => own.contains(wanted),
        AttributeOperator::Word => own.split_whitespace().any(|word| word == wanted),
    }
}

/// Whether an element contains nothing but comments. White space counts as content.
pub(super) fn is_empty(document: &Document, node: NodeId) -> bool {
    document
        .children(node)
        .all(|child| matches!(document.kind(child), NodeKind::Comment | NodeKind::Doctype))
}

/// `:root`: the root of the search. If that is the document node, its first element.
pub(super) fn is_root(document: &Document, root: NodeId, node: NodeId) -> bool {
    if document.kind(root) == NodeKind::Document {
        return document.child_elements(root).next() == Some(node);
    }
    node == root
}
