//! Decides whether a node matches a selector, which is read from right to left.
//!
//! Searches among ancestors and siblings keep their results. So the number of steps grows with the
//! size of the page, and not with the size times the depth.

use super::cache::PageFacts;
use super::element::{
    attribute, attribute_holds, attribute_is, has_class, is_empty, is_named, is_root,
};
use super::regex::SelectorRegex;
use super::select::is_candidate;
use super::syntax::{
    Combinator, CombinatorLink, ComplexSelector, CompoundSelector, SelectorList, SimpleSelector,
    TextSource,
};
use super::text::{TextIndex, is_data, own_text_into, trimmed};
use super::{MatchError, Selector};
use crate::html::{Document, LocalName, NodeId, NodeKind};

/// Compound selectors tried in one search. This many take some seconds.
const STEPS_MAX: u64 = if cfg!(test) { 500_000 } else { 50_000_000 };
/// Bytes of text searched by a regex that count as one step.
const BYTES_PER_STEP: usize = 64;

/// Whether something matches. The error is boxed to keep the common result small.
pub(super) type MatchResult = Result<bool, Box<MatchError>>;

/// The root of one search, and the results of searches among ancestors and siblings.
pub(super) struct SearchScope {
    root: NodeId,
    /// By `CombinatorLink::slot`, then by position of the node behind the root.
    walks: Vec<Vec<WalkOutcome>>,
}

/// Whether some ancestor or earlier sibling of a node matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WalkOutcome {
    Unknown,
    Fails,
    Holds,
}

impl SearchScope {
    pub(super) fn new(root: NodeId, walks: usize) -> Self {
        Self { root, walks: vec![Vec::new(); walks] }
    }
}

/// Matches nodes of one page.
pub(super) struct Matcher<'a> {
    document: &'a Document,
    facts: &'a mut PageFacts,
    /// The root of the whole search. Every node that is asked about lies inside.
    reach: NodeId,
    selector: &'a Selector,
    /// For each `:has`, all nodes inside `reach` that match its argument.
    lists: Vec<Option<Vec<NodeId>>>,
    /// For each `:contains`, all positions of its text.
    needles: Vec<Option<Vec<usize>>>,
    steps_left: u64,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        document: &'a Document,
        facts: &'a mut PageFacts,
        reach: NodeId,
        selector: &'a Selector,
    ) -> Self {
        let slots = selector.group.slots;
        Self {
            document,
            facts,
            reach,
            selector,
            lists: vec![None; slots.lists],
            needles: vec![None; slots.needles],
            steps_left: STEPS_MAX,
        }
    }

    pub(super) fn group(
        &mut self,
        scope: &mut SearchScope,
        group: &SelectorList,
        node: NodeId,
    ) -> MatchResult {
        for chain in &group.chains {
            if is_candidate(self.document, chain, node) && self.chain(scope, chain, node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn chain(
        &mut self,
        scope: &mut SearchScope,
        chain: &ComplexSelector,
        node: NodeId,
    ) -> MatchResult {
        self.part(scope, &chain.subject, &chain.links, node)
    }

    /// Whether a node matches a compound selector and all parts to its left.
    pub(super) fn part(
        &mut self,
        scope: &mut SearchScope,
        compound: &CompoundSelector,
        links: &[CombinatorLink],
        node: NodeId,
    ) -> MatchResult {
        Ok(self.compound(scope, compound, node)? && self.links(scope, links, node)?)
    }

    fn links(
        &mut self,
        scope: &mut SearchScope,
        links: &[CombinatorLink],
        node: NodeId,
    ) -> MatchResult {
        let Some((link, rest)) = links.split_first() else {
            return Ok(true);
        };
        // The parts left of a combinator are searched only inside the root.
        if node == scope.root {
            return Ok(false);
        }
        match link.combinator {
            Combinator::Child | Combinator::Next => {
                let Some(other) = self.step(link.combinator, node) else {
                    return Ok(false);
                };
                Ok(self.compound(scope, &link.compound, other)?
                    && self.links(scope, rest, other)?)
            }
            Combinator::Descendant | Combinator::Later => self.walk(scope, link, rest, node),
        }
    }

    /// Tries all ancestors or earlier siblings, nearest first.
    fn walk(
        &mut self,
        scope: &mut SearchScope,
        link: &CombinatorLink,
        rest: &[CombinatorLink],
        node: NodeId,
    ) -> MatchResult {
        let root = scope.root;
        if scope.walks[link.slot].is_empty() {
            let end = self.document.after_subtree(root);
            let end = end.map_or(self.document.len(), NodeId::index);
            scope.walks[link.slot] = vec![WalkOutcome::Unknown; end - root.index()];
        }
        let mut last = node;
        let outcome = loop {
            let known = scope.walks[link.slot][last.index() - root.index()];
            if known != WalkOutcome::Unknown {
                break known;
            }
            if last == root {
                break WalkOutcome::Fails;
            }
            let Some(other) = self.step(link.combinator, last) else {
                break WalkOutcome::Fails;
            };
            if self.part(scope, &link.compound, rest, other)? {
                break WalkOutcome::Holds;
            }
            last = other;
        };
        // The result is the same for all nodes passed on the way.
        let mut passed = node;
        loop {
            scope.walks[link.slot][passed.index() - root.index()] = outcome;
            if passed == last {
                break;
            }
            let Some(next) = self.step(link.combinator, passed) else {
                break;
            };
            passed = next;
        }
        Ok(outcome == WalkOutcome::Holds)
    }

    fn step(&self, combinator: Combinator, node: NodeId) -> Option<NodeId> {
        match combinator {
            Combinator::Descendant | Combinator::Child => self.document.parent(node),
            Combinator::Next | Combinator::Later => {
                let before = |node: &NodeId| self.document.prev_sibling(*node);
                std::iter::successors(before(&node), before)
                    .find(|sibling| self.document.is_element(*sibling))
            }
        }
    }

    fn compound(
        &mut self,
        scope: &mut SearchScope,
        compound: &CompoundSelector,
        node: NodeId,
    ) -> MatchResult {
        self.spend(1)?;
        for test in &compound.tests {
            if !self.test(scope, test, node)? {
                return Ok(false);
            }
        }
        if let Some(host) = self.document.parent(node).filter(|_| compound.on_host > 0) {
            for test in compound.tests.iter().rev().take(compound.on_host) {
                if !self.test(scope, test, host)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn spend(&mut self, steps: u64) -> Result<(), Box<MatchError>> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(Box::new(MatchError::TooManySteps {
                selector: self.selector.as_str().to_owned(),
                steps_max: STEPS_MAX,
            })),
        }
    }

    fn test(
        &mut self,
        scope: &mut SearchScope,
        test: &SimpleSelector,
        node: NodeId,
    ) -> MatchResult {
        // For most tests, a text node stands for the element that contains it.
        let host = match self.document.kind(node) {
            NodeKind::Text => self.document.parent(node).unwrap_or(node),
            _ => node,
        };
        let document = self.document;
        Ok(match test {
            SimpleSelector::Any => true,
            SimpleSelector::MatchText => {
                self.document.kind(node) == NodeKind::Text && !is_data(document, node)
            }
            SimpleSelector::Scope => node == scope.root,
            SimpleSelector::Tag(name) => is_named(document, host, name),
            SimpleSelector::AnyPrefix { name, suffix } => {
                is_named(document, host, name)
                    || document
                        .name(host)
                        .is_some_and(|own| own.to_ascii_lowercase().ends_with(suffix.as_str()))
            }
            SimpleSelector::Id(id) => {
                attribute(document, host, &LocalName::ID).is_some_and(|own| own == id)
            }
            SimpleSelector::Class(class) => has_class(document, host, class),
            SimpleSelector::HasAttribute(key) => attribute(document, host, key).is_some(),
            SimpleSelector::AttributePrefix(prefix) => document
                .attributes(host)
                .any(|(name, _)| name.to_lowercase().starts_with(prefix.as_str())),
            SimpleSelector::Attribute { key, is, value, exact: true } => {
                attribute_is(attribute(document, host, key), *is, value)
            }
            SimpleSelector::Attribute { key, is, value, exact: false } => {
                attribute_holds(attribute(document, host, key), *is, value)
            }
            SimpleSelector::AttributeMatches { key, regex } => match attribute(document, host, key)
            {
                Some(value) => {
                    regex.is_match(value).map_err(|reason| Box::new(regex_failed(regex, reason)))?
                }
                None => false,
            },
            SimpleSelector::IndexEqual(index) => self.index(node) == *index,
            SimpleSelector::IndexGreater(index) => self.index(node) > *index,
            SimpleSelector::IndexLess(index) => node != scope.root && self.index(node) < *index,
            SimpleSelector::Nth(nth) => {
                let place = self.place(node, nth.of_type);
                place
                    .is_some_and(|(first, last)| nth.holds(if nth.from_end { last } else { first }))
            }
            SimpleSelector::OnlyChild { of_type } => self.place(node, *of_type) == Some((1, 1)),
            SimpleSelector::Empty => {
                document.kind(node) != NodeKind::Text && is_empty(document, node)
            }
            SimpleSelector::Root => is_root(document, scope.root, node),
            SimpleSelector::Contains { needle, reads, slot } => {
                self.contains(needle, *reads, *slot, node)
            }
            SimpleSelector::Matches { regex, reads } => self.text_matches(regex, *reads, node)?,
            SimpleSelector::Not(group) => !self.group(scope, group, node)?,
            SimpleSelector::Is(group) => self.group(scope, group, node)?,
            SimpleSelector::Has { group, slot } => self.has(group, *slot, node)?,
        })
    }

    fn index(&mut self, node: NodeId) -> u32 {
        self.facts.place(self.document, node).from_start - 1
    }

    /// Position from either end; `None` for children of the document node.
    fn place(&mut self, node: NodeId, of_type: bool) -> Option<(u32, u32)> {
        self.document.parent_element(node)?;
        let place = if of_type {
            self.facts.place_of_type(self.document, node)
        } else {
            self.facts.place(self.document, node)
        };
        Some((place.from_start, place.from_end))
    }

    fn contains(&mut self, needle: &str, reads: TextSource, slot: usize, node: NodeId) -> bool {
        let document = self.document;
        let index = match reads {
            TextSource::Own => {
                let own = &mut self.facts.own;
                own.set_folds(true);
                own_text_into(document, node, own);
                return trimmed(&own.out).contains(needle);
            }
            TextSource::Whole => self.facts.folded(document),
            TextSource::Data => self.facts.data(document),
        };
        let reach = self.reach;
        let places = self.needles[slot].get_or_insert_with(|| occurrences(index, needle, reach));
        let (start, end) = match reads {
            TextSource::Data => index.span(node),
            TextSource::Whole | TextSource::Own => index.trimmed_span(node),
        };
        let next = places.partition_point(|place| *place < start);
        places.get(next).is_some_and(|place| place + needle.len() <= end)
    }

    fn text_matches(
        &mut self,
        regex: &SelectorRegex,
        reads: TextSource,
        node: NodeId,
    ) -> MatchResult {
        let document = self.document;
        let (steps, found) = if reads == TextSource::Own {
            let own = &mut self.facts.own;
            own.set_folds(false);
            own_text_into(document, node, own);
            (own.out.len() / BYTES_PER_STEP, regex.is_match(trimmed(&own.out)))
        } else {
            let index = self.facts.plain(document);
            let (start, end) = index.trimmed_span(node);
            let steps = (end - start) / BYTES_PER_STEP;
            (steps, regex.is_match(&index.text[start..end]))
        };
        self.spend(steps as u64)?;
        found.map_err(|reason| Box::new(regex_failed(regex, reason)))
    }

    /// Whether a node below `node` matches, with `node` as root of the search.
    fn has(&mut self, group: &SelectorList, slot: usize, node: NodeId) -> MatchResult {
        let document = self.document;
        if group.rooted {
            let mut scope = SearchScope::new(node, self.selector.group.slots.walks);
            if group.only_children {
                for child in document.children(node) {
                    if self.group(&mut scope, group, child)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
            for inner in document.descendants(node) {
                if self.group(&mut scope, group, inner)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        // The result for a node below does not depend on the root, so all are computed once.
        if self.lists[slot].is_none() {
            let mut scope = SearchScope::new(self.reach, self.selector.group.slots.walks);
            let mut list = Vec::new();
            for inner in document.descendants(self.reach) {
                if self.group(&mut scope, group, inner)? {
                    list.push(inner);
                }
            }
            self.lists[slot] = Some(list);
        }
        let list = self.lists[slot].as_deref().unwrap_or_default();
        let next = list.partition_point(|found| *found <= node);
        Ok(list.get(next).is_some_and(|found| document.is_inside(*found, node)))
    }
}

fn regex_failed(regex: &SelectorRegex, reason: String) -> MatchError {
    MatchError::Regex { pattern: regex.as_str().to_owned(), reason }
}

/// All positions of `needle` in the text of `reach`, overlapping ones included.
fn occurrences(index: &TextIndex, needle: &str, reach: NodeId) -> Vec<usize> {
    let (mut start, end) = index.span(reach);
    let mut places = Vec::new();
    let first_len = needle.chars().next().map_or(1, char::len_utf8);
    while let Some(found) = index.text[start..end].find(needle) {
        places.push(start + found);
        start += found + first_len;
    }
    places
}
