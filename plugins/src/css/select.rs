//! Finds the nodes that could match a selector and passes them to the matcher.

use super::cache::TextCache;
use super::matcher::{Matcher, SearchScope};
use super::syntax::{Combinator, ComplexSelector, CompoundSelector, SimpleSelector};
use super::{MatchError, Selector};
use crate::html::{Document, LocalName, NodeId, NodeKind};

pub(super) fn select(
    selector: &Selector,
    document: &Document,
    root: NodeId,
    cache: &mut TextCache,
) -> Result<Vec<NodeId>, MatchError> {
    let group = &*selector.group;
    let mut search = SelectorSearch::new(selector, document, root, cache);
    let mut is_sorted = group.chains.len() == 1;
    for chain in &group.chains {
        let parents_are_fewer = search.parents_are_fewer(chain);
        is_sorted &= !parents_are_fewer;
        let outcome =
            if parents_are_fewer { search.by_parents(chain) } else { search.by_subject(chain) };
        outcome.map_err(|error| *error)?;
    }
    let mut found = search.found;
    if !is_sorted {
        found.sort_unstable();
        found.dedup();
    }
    Ok(found)
}

/// The first match in document order: the earliest of the first matches of all alternatives.
pub(super) fn select_first(
    selector: &Selector,
    document: &Document,
    root: NodeId,
    cache: &mut TextCache,
) -> Result<Option<NodeId>, MatchError> {
    let mut search = SelectorSearch::new(selector, document, root, cache);
    let mut first = None;
    for chain in &selector.group.chains {
        search.found.clear();
        search.first_only = chain.subject.tag().is_some() || !search.parents_are_fewer(chain);
        let outcome =
            if search.first_only { search.by_subject(chain) } else { search.by_parents(chain) };
        outcome.map_err(|error| *error)?;
        first = first.into_iter().chain(search.found.iter().copied()).min();
    }
    Ok(first)
}

struct SelectorSearch<'a> {
    document: &'a Document,
    matcher: Matcher<'a>,
    scope: SearchScope,
    root: NodeId,
    found: Vec<NodeId>,
    /// Whether the first match in document order is enough.
    first_only: bool,
}

impl<'a> SelectorSearch<'a> {
    fn new(
        selector: &'a Selector,
        document: &'a Document,
        root: NodeId,
        cache: &'a mut TextCache,
    ) -> Self {
        Self {
            document,
            matcher: Matcher::new(document, &mut cache.facts, root, selector),
            scope: SearchScope::new(root, selector.group.slots.walks),
            root,
            found: Vec::new(),
            first_only: false,
        }
    }

    fn is_done(&self) -> bool {
        self.first_only && !self.found.is_empty()
    }

    /// The elements with this name at the root and below.
    fn named(&self, name: &LocalName) -> &'a [NodeId] {
        self.document.named(name, self.root)
    }

    /// The shortest list that contains every node at the root and below that can match; `None` if
    /// no list applies.
    fn listed(&self, subject: &CompoundSelector) -> Option<&'a [NodeId]> {
        if subject.wants_text {
            return None;
        }
        let lists = subject.tests.iter().filter_map(|test| match test {
            SimpleSelector::Tag(name) => Some(self.named(name)),
            SimpleSelector::Id(_) => Some(self.document.with_id(self.root)),
            SimpleSelector::Class(_) => Some(self.document.with_class(self.root)),
            _ => None,
        });
        lists.min_by_key(|list| list.len())
    }

    /// Whether searching the parents is cheaper: in `tr > td` there are fewer `tr` than `td`.
    fn parents_are_fewer(&self, chain: &ComplexSelector) -> bool {
        let Some(link) = chain.links.first() else {
            return false;
        };
        if link.combinator != Combinator::Child || chain.subject.wants_text {
            return false;
        }
        match (link.compound.tag(), chain.subject.tag()) {
            (Some(parent), Some(child)) => self.named(parent).len() < self.named(child).len(),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn by_parents(&mut self, chain: &ComplexSelector) -> Result<(), Box<MatchError>> {
        let Some((link, rest)) = chain.links.split_first() else {
            return Ok(());
        };
        for parent in link.compound.tag().map_or(&[][..], |name| self.named(name)) {
            if self.matcher.part(&mut self.scope, &link.compound, rest, *parent)? {
                for child in self.document.child_elements(*parent) {
                    if self.matcher.part(&mut self.scope, &chain.subject, &[], child)? {
                        self.found.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    fn by_subject(&mut self, chain: &ComplexSelector) -> Result<(), Box<MatchError>> {
        if let Some(listed) = self.listed(&chain.subject) {
            for node in listed {
                self.try_node(chain, *node)?;
                if self.is_done() {
                    break;
                }
            }
            return Ok(());
        }
        self.try_node(chain, self.root)?;
        for node in self.document.descendants(self.root) {
            if self.is_done() {
                break;
            }
            self.try_node(chain, node)?;
        }
        Ok(())
    }

    fn try_node(&mut self, chain: &ComplexSelector, node: NodeId) -> Result<(), Box<MatchError>> {
        if is_candidate(self.document, chain, node)
            && self.matcher.chain(&mut self.scope, chain, node)?
        {
            self.found.push(node);
        }
        Ok(())
    }
}

/// Whether a node is of the kind that a selector finds. As in jsoup, the document node can match
/// like an element, but only as the root.
pub(super) fn is_candidate(document: &Document, chain: &ComplexSelector, node: NodeId) -> bool {
    match document.kind(node) {
        NodeKind::Element | NodeKind::Document => !chain.subject.wants_text,
        NodeKind::Text => chain.subject.wants_text,
        NodeKind::Comment | NodeKind::Doctype => false,
    }
}
