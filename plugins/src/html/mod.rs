//! A page as a tree: flat arrays in document order, built once, then only read.
//!
//! TreeNode ids are positions in document order, so "comes before" is a comparison of numbers and
//! "lies inside" is a range check. The tree owns all its text and may cross threads.

mod added_attributes;
mod body;
mod body_end;
mod charref;
mod foreign;
mod formatting;
mod index;
mod name;
mod names;
mod outside_body;
mod parse;
mod raw;
mod stack;
mod table;
mod tokens;
mod tree;
mod xml;

use std::sync::OnceLock;
use std::time::Instant;

use index::{IdClassIndex, NameIndex};
pub use name::{LocalName, Namespace};
use name::{NameId, name_of};

/// Bounds on the tree of one page.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Nodes of all kinds.
    pub nodes_max: usize,
    /// Levels of nesting.
    pub depth_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { nodes_max: 500_000, depth_max: 5_000, deadline: None }
    }
}

/// How a page is read where readers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HtmlDialect {
    /// As the HTML standard says: `<div/>` opens an element.
    Html,
    /// As jsoup does: `<div/>` is a whole element, and a CDATA section is text.
    Jsoup,
}

/// Why a page gave no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Too many nodes.
    #[error("page has more than {0} nodes (setting `parser.nodes.max`)")]
    TooManyNodes(usize),
    /// Nested too deeply.
    #[error("page is nested more than {0} levels deep (setting `parser.depth.max`)")]
    TooDeep(usize),
    /// Longer than any page.
    #[error("page is longer than can be counted")]
    TooLong,
    /// Took too long to read: some pages cost more than their size tells.
    #[error("page takes too long to read (setting `parser.time.max`)")]
    TooSlow,
}

/// A node of a [`Document`]: its position in document order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Position in document order; the document node is 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// The document itself, parent of everything.
    Document,
    /// `<!doctype ...>`.
    Doctype,
    /// An element.
    Element,
    /// A run of text.
    Text,
    /// A comment.
    Comment,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct TreeNode {
    parent: u32,
    /// One past the last node of the subtree.
    end: u32,
    prev: u32,
    next: u32,
    /// Element: its name.
    name: u32,
    /// Element: its first attribute. Text and comment: start in `text`.
    at: u32,
    /// Element: how many attributes. Text and comment: length in `text`.
    len: u32,
    kind: NodeKind,
    namespace: Namespace,
    /// While the tree grows: whether it is in the list of formatting elements.
    is_listed: bool,
}

impl TreeNode {
    /// A node that hangs nowhere yet.
    fn new(kind: NodeKind, name: u32, namespace: Namespace, at: u32, len: u32) -> Self {
        Self {
            parent: NONE,
            end: NONE,
            prev: NONE,
            next: NONE,
            name,
            at,
            len,
            kind,
            namespace,
            is_listed: false,
        }
    }
}

#[derive(Debug, Clone)]
struct AttributeEntry {
    /// Name as written, with its prefix (`xlink:href`); lower case for HTML elements.
    name: NameId,
    /// The value as a part of `text`.
    at: u32,
    len: u32,
}

/// A parsed page.
#[derive(Debug, Clone)]
pub struct Document {
    nodes: Vec<TreeNode>,
    attributes: Vec<AttributeEntry>,
    /// Names that are not in common use.
    names: Vec<LocalName>,
    /// The page itself, and behind it what does not stand there literally.
    text: String,
    by_name: OnceLock<NameIndex>,
    marked: OnceLock<IdClassIndex>,
}

impl Document {
    /// Parses a page as a browser with scripting off would.
    pub fn parse(html: &str, limits: TreeLimits) -> Result<Self, TreeError> {
        Self::parse_as(HtmlDialect::Standard, html, limits)
    }

    /// Parses a page in one of two manners.
    pub fn parse_as(
        dialect: HtmlDialect,
        html: &str,
        limits: TreeLimits,
    ) -> Result<Self, TreeError> {
        parse::parse(html, dialect, limits)
    }

    /// Parses a page that is XML, such as a feed: names keep their letters, CDATA is text, and any
    /// element may have something in it.
    ///
    /// ```
    /// use spoonbill_plugins::html::{Document, TreeLimits};
    ///
    /// let page = Document::parse_xml("<a><link>x</link></a>", TreeLimits::default())?;
    /// assert_eq!(page.text_content(page.root()), "x");
    /// # Ok::<(), spoonbill_plugins::html::TreeError>(())
    /// ```
    pub fn parse_xml(xml: &str, limits: TreeLimits) -> Result<Self, TreeError> {
        xml::parse(xml, limits)
    }

    fn new(
        nodes: Vec<TreeNode>,
        attributes: Vec<AttributeEntry>,
        names: Vec<LocalName>,
        text: String,
    ) -> Self {
        let (by_name, marked) = (OnceLock::new(), OnceLock::new());
        Self { nodes, attributes, names, text, by_name, marked }
    }

    /// The document node.
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node but the document's own.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    fn node(&self, id: NodeId) -> &TreeNode {
        &self.nodes[id.index()]
    }

    /// What `id` is.
    pub fn kind(&self, id: NodeId) -> NodeKind {
        self.node(id).kind
    }

    /// Whether `id` is an element.
    pub fn is_element(&self, id: NodeId) -> bool {
        self.kind(id) == NodeKind::Element
    }

    /// The parent; none for the document node.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        link(self.node(id).parent)
    }

    /// The parent, if it is an element.
    pub fn parent_element(&self, id: NodeId) -> Option<NodeId> {
        self.parent(id).filter(|parent| self.is_element(*parent))
    }

    /// The node after `id` below the same parent.
    pub fn next_sibling(&self, id: NodeId) -> Option<NodeId> {
        link(self.node(id).next)
    }

    /// The node before `id` below the same parent.
    pub fn prev_sibling(&self, id: NodeId) -> Option<NodeId> {
        link(self.node(id).prev)
    }

    /// The first child.
    pub fn first_child(&self, id: NodeId) -> Option<NodeId> {
        (self.node(id).end > id.0 + 1).then_some(NodeId(id.0 + 1))
    }

    /// The children, in order.
    pub fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.first_child(id), |child| self.next_sibling(*child))
    }

    /// The element children, in order.
    pub fn child_elements(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.children(id).filter(|child| self.is_element(*child))
    }

    /// Everything below `id` in document order, without `id` itself.
    pub fn descendants(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (id.0 + 1..self.node(id).end).map(NodeId)
    }

    /// Every node in document order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The first node in document order that comes after the whole subtree of `id`, if any.
    pub fn after_subtree(&self, id: NodeId) -> Option<NodeId> {
        let end = self.node(id).end;
        ((end as usize) < self.nodes.len()).then_some(NodeId(end))
    }

    /// Whether `inner` lies strictly below `outer`.
    pub fn is_inside(&self, inner: NodeId, outer: NodeId) -> bool {
        outer < inner && inner.0 < self.node(outer).end
    }

    fn element(&self, id: NodeId) -> Option<&TreeNode> {
        Some(self.node(id)).filter(|node| node.kind == NodeKind::Element)
    }

    /// Local name of an element; lower case for HTML.
    pub fn name(&self, id: NodeId) -> Option<&LocalName> {
        self.element(id).map(|element| name_of(NameId::from_raw(element.name), &self.names))
    }

    /// Namespace of an element.
    pub fn namespace(&self, id: NodeId) -> Option<&Namespace> {
        self.element(id).map(|element| &element.namespace)
    }

    /// Attributes of an element, in document order. Empty for other nodes.
    pub fn attributes(&self, id: NodeId) -> impl Iterator<Item = (&LocalName, &str)> + '_ {
        let own =
            self.element(id).map_or(0..0, |node| node.at as usize..(node.at + node.len) as usize);
        self.attributes[own].iter().map(|attribute| {
            (name_of(attribute.name, &self.names), self.slice(attribute.at, attribute.len))
        })
    }

    /// The value of an attribute by its lower-case name.
    pub fn attribute(&self, id: NodeId, name: &str) -> Option<&str> {
        self.attributes(id).find(|(own, _)| &***own == name).map(|(_, value)| value)
    }

    /// The elements of a lower-case name at `root` and below it, in document order; the letters of
    /// names that are not HTML may be of either case.
    pub(crate) fn named(&self, name: &LocalName, root: NodeId) -> &[NodeId] {
        let all = self.by_name.get_or_init(|| NameIndex::of(self)).get(name, &self.names);
        self.part_in(all, root)
    }

    /// The elements with an `id` at `root` and below it, in document order.
    pub(crate) fn with_id(&self, root: NodeId) -> &[NodeId] {
        self.part_in(&self.marked.get_or_init(|| IdClassIndex::of(self)).ids, root)
    }

    /// The elements with a `class` at `root` and below it, in document order.
    pub(crate) fn with_class(&self, root: NodeId) -> &[NodeId] {
        self.part_in(&self.marked.get_or_init(|| IdClassIndex::of(self)).classes, root)
    }

    /// Of nodes in document order, those at `root` and below it.
    fn part_in<'n>(&self, all: &'n [NodeId], root: NodeId) -> &'n [NodeId] {
        let start = all.partition_point(|node| *node < root);
        let len = all[start..].partition_point(|node| node.0 < self.node(root).end);
        &all[start..start + len]
    }

    fn slice(&self, start: u32, len: u32) -> &str {
        &self.text[start as usize..(start + len) as usize]
    }

    /// The words of a text or comment node.
    pub fn text(&self, id: NodeId) -> Option<&str> {
        let node = self.node(id);
        matches!(node.kind, NodeKind::Text | NodeKind::Comment)
            .then(|| self.slice(node.at, node.len))
    }

    /// All text below `id` put together, as it stands; for a text or comment node its own words.
    pub fn text_content(&self, id: NodeId) -> String {
        if let Some(own) = self.text(id) {
            return own.to_owned();
        }
        let mut all = String::new();
        for node in self.descendants(id).filter(|node| self.kind(*node) == NodeKind::Text) {
            all.push_str(self.text(node).unwrap_or_default());
        }
        all
    }
}

fn link(at: u32) -> Option<NodeId> {
    (at != NONE).then_some(NodeId(at))
}

#[cfg(test)]
mod tests;
