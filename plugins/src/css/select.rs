//! Finds candidates and has them matched.

use super::cache::TextCache;
use super::matcher::{Matcher, Scope};
use super::test::Chain;
use super::{MatchError, Selector};
use crate::html::{Document, NodeId, NodeKind};

pub(super) fn select(
    selector: &Selector,
    document: &Document,
    root: NodeId,
    cache: &mut TextCache,
) -> Result<Vec<NodeId>, MatchError> {
    let group = &*selector.group;
    let mut matcher = Matcher::new(document, &mut cache.facts, root, selector);
    let mut scope = Scope::new(root, group.slots.walks);
    let mut found = Vec::new();
    for chain in &group.chains {
        let mut try_node = |node| {
            if matcher.chain(&mut scope, chain, node)? {
                found.push(node);
            }
            Ok(())
        };
        match chain.subject.tag() {
            Some(tag) if !chain.subject.wants_text => {
                let named = cache.names.get(document, tag);
                let start = named.partition_point(|node| *node < root);
                for node in &named[start..] {
                    if *node != root && !document.is_inside(*node, root) {
                        break;
                    }
                    try_node(*node)?;
                }
            }
            _ => {
                let all = std::iter::once(root).chain(document.descendants(root));
                for node in all.filter(|node| is_candidate(document, chain, *node)) {
                    try_node(node)?;
                }
            }
        }
    }
    if group.chains.len() > 1 {
        found.sort_unstable();
        found.dedup();
    }
    Ok(found)
}

pub(super) fn matches(
    selector: &Selector,
    document: &Document,
    root: NodeId,
    node: NodeId,
    cache: &mut TextCache,
) -> Result<bool, MatchError> {
    if node != root && !document.is_inside(node, root) {
        return Ok(false);
    }
    let group = &*selector.group;
    let mut matcher = Matcher::new(document, &mut cache.facts, root, selector);
    matcher.group(&mut Scope::new(root, group.slots.walks), group, node)
}

/// The document node is a candidate like any element, as in jsoup, but only ever as the root.
pub(super) fn is_candidate(document: &Document, chain: &Chain, node: NodeId) -> bool {
    match document.kind(node) {
        NodeKind::Element | NodeKind::Document => !chain.subject.wants_text,
        NodeKind::Text => chain.subject.wants_text,
        NodeKind::Comment | NodeKind::Doctype => false,
    }
}
