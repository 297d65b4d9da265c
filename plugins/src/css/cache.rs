//! Data computed about one page, shared by all selectors that search it.

use std::collections::HashMap;

use super::text::{Normaliser, TextIndex};
use crate::html::{Document, LocalName, NodeId, NodeKind};

/// Texts and positions of one page, computed when a selector first needs them.
///
/// Create one for each page and pass it to every [`Selector`](super::Selector) that searches that
/// page.
#[derive(Debug, Default)]
pub struct TextCache {
    pub(super) facts: PageFacts,
}

/// Position among siblings, counted from 1 from either end; 0 if not computed yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SiblingPosition {
    pub(super) from_start: u32,
    pub(super) from_end: u32,
}

/// The contents of a [`TextCache`].
#[derive(Debug, Default)]
pub(super) struct PageFacts {
    plain: Option<TextIndex>,
    folded: Option<TextIndex>,
    data: Option<TextIndex>,
    places: Vec<SiblingPosition>,
    places_of_type: Vec<SiblingPosition>,
    /// A buffer for the own text of one element, reused for the next.
    pub(super) own: Normaliser,
}

impl PageFacts {
    pub(super) fn plain(&mut self, document: &Document) -> &TextIndex {
        self.plain.get_or_insert_with(|| TextIndex::whole(document, false))
    }

    pub(super) fn folded(&mut self, document: &Document) -> &TextIndex {
        self.folded.get_or_insert_with(|| TextIndex::whole(document, true))
    }

    pub(super) fn data(&mut self, document: &Document) -> &TextIndex {
        self.data.get_or_insert_with(|| TextIndex::data(document))
    }

    /// The position of `node` among its element siblings.
    pub(super) fn place(&mut self, document: &Document, node: NodeId) -> SiblingPosition {
        let Some(parent) = document.parent(node) else {
            return SiblingPosition { from_start: 1, from_end: 1 };
        };
        if document.kind(node) == NodeKind::Text {
            return text_place(document, node, |_| true);
        }
        if self.places.is_empty() {
            self.places = vec![SiblingPosition::default(); document.len()];
        }
        let known = self.places[node.index()];
        if known.from_start > 0 {
            return known;
        }
        let count = document.child_elements(parent).count() as u32;
        for (child, before) in document.child_elements(parent).zip(0..) {
            self.places[child.index()] =
                SiblingPosition { from_start: before + 1, from_end: count - before };
        }
        self.places[node.index()]
    }

    /// The position of `node` among its siblings with the same tag name.
    pub(super) fn place_of_type(&mut self, document: &Document, node: NodeId) -> SiblingPosition {
        let Some(parent) = document.parent(node) else {
            return SiblingPosition::default();
        };
        if document.kind(node) == NodeKind::Text {
            let host = document.name(parent);
            return text_place(document, node, |sibling| document.name(sibling) == host);
        }
        if self.places_of_type.is_empty() {
            self.places_of_type = vec![SiblingPosition::default(); document.len()];
        }
        let known = self.places_of_type[node.index()];
        if known.from_start > 0 {
            return known;
        }
        let mut seen: HashMap<&LocalName, u32> = HashMap::new();
        for child in document.child_elements(parent) {
            if let Some(name) = document.name(child) {
                let count = seen.entry(name).or_default();
                *count += 1;
                self.places_of_type[child.index()].from_start = *count;
            }
        }
        for child in document.child_elements(parent) {
            if let Some(name) = document.name(child) {
                let place = &mut self.places_of_type[child.index()];
                place.from_end = seen[name] + 1 - place.from_start;
            }
        }
        self.places_of_type[node.index()]
    }
}

/// The position of a text node. `:matchText` counts texts and elements together.
fn text_place(
    document: &Document,
    text: NodeId,
    counts: impl Fn(NodeId) -> bool,
) -> SiblingPosition {
    let is_counted = |node: &NodeId| match document.kind(*node) {
        NodeKind::Text => true,
        NodeKind::Element => counts(*node),
        _ => false,
    };
    let before =
        std::iter::successors(document.prev_sibling(text), |at| document.prev_sibling(*at));
    let after = std::iter::successors(document.next_sibling(text), |at| document.next_sibling(*at));
    SiblingPosition {
        from_start: 1 + before.filter(is_counted).count() as u32,
        from_end: 1 + after.filter(is_counted).count() as u32,
    }
}
