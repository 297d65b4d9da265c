//! A page with caches for texts, classes and tag paths, which the search reads many times.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::words::{self, is_descriptive, module_stem};
use crate::css::{self, Selector, TextCache};
use crate::html::{Document, NodeId, NodeKind};

/// Depth below an element down to which features are compared.
const LEVELS_MAX: usize = 6;

/// A page and its caches.
pub(super) struct PageView<'a> {
    pub(super) document: &'a Document,
    cache: RefCell<TextCache>,
    /// By node: visible characters before it, so that a difference is the length of an element.
    text_len: Vec<u32>,
    /// By node: an id for the tags from the root down to it.
    paths: Vec<u32>,
    texts: RefCell<BTreeMap<NodeId, String>>,
    /// By node: classes that describe its content, not its layout or state.
    descriptive: Vec<BTreeSet<&'a str>>,
    features: RefCell<BTreeMap<NodeId, Rc<BTreeSet<String>>>>,
}

impl<'a> PageView<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        let mut view = Self {
            document,
            cache: RefCell::default(),
            text_len: vec![0],
            paths: vec![0; document.len()],
            texts: RefCell::default(),
            descriptive: Vec::new(),
            features: RefCell::default(),
        };
        view.descriptive = document.all().map(|node| view.find_descriptive(node)).collect();
        let mut known: BTreeMap<(u32, String), u32> = BTreeMap::new();
        let mut total = 0;
        for node in document.all() {
            if document.kind(node) == NodeKind::Text && !view.is_code(node) {
                total += words::text_len(document.text(node).unwrap_or_default());
            }
            view.text_len.push(total);
            let Some(parent) = document.parent(node) else { continue };
            if let Some(name) = document.name(node) {
                let next = known.len() as u32 + 1;
                let key = (view.paths[parent.index()], name.to_string());
                view.paths[node.index()] = *known.entry(key).or_insert(next);
            }
        }
        view
    }

    fn is_code(&self, text: NodeId) -> bool {
        let parent = self.document.parent(text).and_then(|parent| self.document.name(parent));
        parent.is_some_and(|name| matches!(&**name, "script" | "style" | "template"))
    }

    pub(super) fn elements(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.document.all().filter(|node| self.document.is_element(*node))
    }

    pub(super) fn inside(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.document.descendants(node).filter(|inner| self.document.is_element(*inner))
    }

    pub(super) fn holds(&self, outer: NodeId, inner: NodeId) -> bool {
        outer == inner || self.document.is_inside(inner, outer)
    }

    /// The number of visible characters in an element.
    pub(super) fn text_len(&self, node: NodeId) -> u32 {
        let end = self.document.after_subtree(node).map_or(self.text_len.len() - 1, NodeId::index);
        self.text_len[end] - self.text_len[node.index()]
    }

    pub(super) fn size(&self, node: NodeId) -> usize {
        let end = self.document.after_subtree(node).map_or(self.document.len(), NodeId::index);
        end - node.index()
    }

    pub(super) fn path_id(&self, node: NodeId) -> u32 {
        self.paths[node.index()]
    }

    pub(super) fn tag(&self, node: NodeId) -> &str {
        self.document.name(node).map_or("", |name| &**name)
    }

    /// The text of an element as a field extracts it.
    pub(super) fn text(&self, node: NodeId) -> String {
        let mut texts = self.texts.borrow_mut();
        texts.entry(node).or_insert_with(|| words::fold(&css::text(self.document, node))).clone()
    }

    pub(super) fn own_text(&self, node: NodeId) -> String {
        words::fold(&css::own_text(self.document, node))
    }

    pub(super) fn attribute(&self, node: NodeId, name: &str) -> Option<&'a str> {
        self.document.attribute(node, name)
    }

    pub(super) fn classes(&self, node: NodeId) -> Vec<&'a str> {
        let mut all: Vec<&'a str> =
            self.attribute(node, "class").unwrap_or_default().split_whitespace().collect();
        let mut seen = BTreeSet::new();
        all.retain(|class| seen.insert(*class));
        all
    }

    /// The classes that describe the content of an element.
    pub(super) fn descriptive(&self, node: NodeId) -> &BTreeSet<&'a str> {
        &self.descriptive[node.index()]
    }

    /// The structure of an element: tag paths and descriptive classes of its descendants.
    pub(super) fn features(&self, node: NodeId) -> Rc<BTreeSet<String>> {
        if let Some(known) = self.features.borrow().get(&node) {
            return Rc::clone(known);
        }
        let mut found = BTreeSet::new();
        for inner in self.inside(node) {
            let tags = self.tag_path(node, inner);
            if tags.len() <= LEVELS_MAX {
                found.insert(tags.join(">"));
            }
            found.extend(self.descriptive(inner).iter().map(|class| format!(".{class}")));
        }
        let found = Rc::new(found);
        self.features.borrow_mut().insert(node, Rc::clone(&found));
        found
    }

    /// Whether two elements have a descriptive class in common.
    pub(super) fn shares_class(&self, one: NodeId, other: NodeId) -> bool {
        !self.descriptive(one).is_disjoint(self.descriptive(other))
    }

    /// The child of `outer` that is `inner` or contains it.
    pub(super) fn child_towards(&self, outer: NodeId, inner: NodeId) -> Option<NodeId> {
        self.upwards(inner).find(|up| self.parent(*up) == Some(outer))
    }

    fn find_descriptive(&self, node: NodeId) -> BTreeSet<&'a str> {
        let told =
            |class: &'a str| is_descriptive(class).then_some(class).or_else(|| module_stem(class));
        self.classes(node).into_iter().filter_map(told).collect()
    }

    pub(super) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.document.parent_element(node)
    }

    /// The element and its ancestors, up to the root.
    pub(super) fn upwards(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(node), |node| self.document.parent_element(*node))
    }

    /// The elements between `outer` and `inner`, innermost first, without the two.
    pub(super) fn between(&self, outer: NodeId, inner: NodeId) -> Vec<NodeId> {
        self.upwards(inner)
            .skip(1)
            .take_while(|node| self.document.is_inside(*node, outer))
            .collect()
    }

    pub(super) fn before(&self, node: NodeId) -> Option<NodeId> {
        std::iter::successors(self.document.prev_sibling(node), |at| {
            self.document.prev_sibling(*at)
        })
        .find(|at| self.document.is_element(*at))
    }

    pub(super) fn after(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.document.next_sibling(node), |at| {
            self.document.next_sibling(*at)
        })
        .filter(|at| self.document.is_element(*at))
    }

    /// Position among all siblings and among those with the same tag, from 1.
    pub(super) fn place(&self, node: NodeId) -> (usize, usize) {
        let before =
            std::iter::successors(self.before(node), |at| self.before(*at)).collect::<Vec<_>>();
        let alike = before.iter().filter(|at| self.tag(**at) == self.tag(node)).count();
        (before.len() + 1, alike + 1)
    }

    /// The innermost element that contains all nodes.
    pub(super) fn common(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let (first, rest) = nodes.split_first()?;
        self.upwards(*first).find(|outer| rest.iter().all(|node| self.holds(*outer, *node)))
    }

    /// The tags from `outer` (left out) down to `inner`.
    pub(super) fn tag_path(&self, outer: NodeId, inner: NodeId) -> Vec<&str> {
        let mut tags: Vec<&str> = self
            .upwards(inner)
            .take_while(|node| self.document.is_inside(*node, outer))
            .map(|node| self.tag(node))
            .collect();
        tags.reverse();
        tags
    }

    /// The elements that a selector finds. Empty if it is invalid or exceeds its limits.
    pub(super) fn select(&self, selector: &str, root: NodeId) -> Vec<NodeId> {
        let Ok(selector) = Selector::parse(selector) else { return Vec::new() };
        selector.select(self.document, root, &mut self.cache.borrow_mut()).unwrap_or_default()
    }

    /// The elements that a selector finds below each root.
    pub(super) fn select_each(&self, selector: &str, roots: &[NodeId]) -> Vec<Vec<NodeId>> {
        let Ok(selector) = Selector::parse(selector) else { return vec![Vec::new(); roots.len()] };
        let mut cache = self.cache.borrow_mut();
        roots
            .iter()
            .map(|root| selector.select(self.document, *root, &mut cache).unwrap_or_default())
            .collect()
    }

    /// Whether a node is a part beside the main content, such as navigation.
    pub(super) fn is_secondary(&self, node: NodeId) -> bool {
        matches!(self.tag(node), "nav" | "aside" | "footer" | "select" | "option")
            || self.classes(node).into_iter().any(words::is_secondary)
            || self.attribute(node, "id").is_some_and(words::is_secondary)
    }
}
