//! A page as a tree: flat arrays in document order, built once, then only read.
//!
//! Node ids are positions in document order, so "comes before" is a comparison of numbers and "lies
//! inside" is a range check. The tree owns all its text and may cross threads.
//!
//! `parse` follows the HTML standard. The tokenizer (`tokens`, `raw`, `charref`) cuts the page into
//! tokens. The rules of the current insertion mode (`outside_body`, `body`, `body_end`, `table`,
//! `foreign`) put each token into `tree`, with the help of `stack` and `formatting`. `index` lists
//! the elements for queries. `xml` and `xml_reader` parse pages that are XML.

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
pub(crate) mod xml_reader;

use std::sync::OnceLock;
use std::time::Instant;

use index::{IdClassIndex, NameIndex};
pub use name::LocalName;
pub(crate) use name::Namespace;
use name::{NameId, name_of};

/// Limits on the tree of one page.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Maximum number of nodes of all kinds.
    pub nodes_max: usize,
    /// Maximum number of nesting levels.
    pub depth_max: usize,
    /// Parsing stops at this time with [`TreeError::TooSlow`]; `None` means no deadline.
    pub deadline: Option<Instant>,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { nodes_max: 500_000, depth_max: 5_000, deadline: None }
    }
}

/// The rules to follow where browsers and jsoup parse a page differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HtmlDialect {
    /// The HTML standard: `<div/>` opens an element.
    Standard,
    /// jsoup: `<div/>` is a complete element, and a CDATA section is text.
    Jsoup,
}

/// Why a page could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The page has more nodes than [`TreeLimits::nodes_max`].
    #[error("page has more than {0} nodes (setting `parser.nodes.max`)")]
    TooManyNodes(usize),
    /// The page has more levels than [`TreeLimits::depth_max`].
    #[error("page is nested more than {0} levels deep (setting `parser.depth.max`)")]
    TooDeep(usize),
    /// The page has more bytes than 32-bit offsets can address once its text is rewritten.
    #[error("page is longer than 512 MiB")]
    TooLong,
    /// The deadline passed. A small page can take long if it is malformed on purpose.
    #[error("page takes too long to parse (setting `parser.time.max`)")]
    TooSlow,
}

/// A node of a [`Document`]: its position in document order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Position in document order; the document node is 0.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kinds of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// The document itself, the ancestor of all other nodes.
    Document,
    /// `<!doctype ...>`.
    Doctype,
    /// An element.
    Element,
    /// Consecutive text.
    Text,
    /// A comment.
    Comment,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct TreeNode {
    parent: u32,
    /// One past the last node of the subtree. `TreeBuilder` uses it differently while it builds.
    end: u32,
    prev: u32,
    next: u32,
    /// Element: number of its name.
    name: u32,
    /// Element: index of its first attribute. Text and comment: start in `Document::text`.
    at: u32,
    /// Element: number of attributes. Text and comment: length in bytes.
    len: u32,
    kind: NodeKind,
    namespace: Namespace,
    /// Used while parsing: whether the element is in the list of active formatting elements.
    is_listed: bool,
}

impl TreeNode {
    /// A node without a parent yet.
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
    /// The name as written, with its prefix (`xlink:href`). Names of HTML attributes are lower
    /// case.
    name: NameId,
    /// Start of the value in `Document::text`.
    at: u32,
    len: u32,
}

/// A parsed page.
#[derive(Debug, Clone)]
pub struct Document {
    nodes: Vec<TreeNode>,
    attributes: Vec<AttributeEntry>,
    /// Names of this page that are not in the table of known names.
    names: Vec<LocalName>,
    /// The page, followed by the texts that differ from it: with references resolved, U+0000
    /// replaced, or pieces joined.
    text: String,
    by_name: OnceLock<NameIndex>,
    marked: OnceLock<IdClassIndex>,
}

impl Document {
    /// Parses a page as a browser does whose scripting is off.
    pub fn parse(html: &str, limits: TreeLimits) -> Result<Self, TreeError> {
        Self::parse_as(HtmlDialect::Standard, html, limits)
    }

    /// Parses a page by the rules of `dialect`.
    pub fn parse_as(
        dialect: HtmlDialect,
        html: &str,
        limits: TreeLimits,
    ) -> Result<Self, TreeError> {
        parse::parse(html, dialect, limits)
    }

    /// Parses a page that is XML, such as a feed. Names keep their case, CDATA is text, and every
    /// element may have content.
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

    /// Number of nodes, the document node included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the document node is the only node.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    fn node(&self, id: NodeId) -> &TreeNode {
        &self.nodes[id.index()]
    }

    /// The kind of a node.
    pub(crate) fn kind(&self, id: NodeId) -> NodeKind {
        self.node(id).kind
    }

    /// Whether `id` is an element.
    pub fn is_element(&self, id: NodeId) -> bool {
        self.kind(id) == NodeKind::Element
    }

    /// The parent; `None` for the document node.
    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        link(self.node(id).parent)
    }

    /// The parent, if it is an element.
    pub(crate) fn parent_element(&self, id: NodeId) -> Option<NodeId> {
        self.parent(id).filter(|parent| self.is_element(*parent))
    }

    /// The next sibling.
    pub(crate) fn next_sibling(&self, id: NodeId) -> Option<NodeId> {
        link(self.node(id).next)
    }

    /// The previous sibling.
    pub(crate) fn prev_sibling(&self, id: NodeId) -> Option<NodeId> {
        link(self.node(id).prev)
    }

    /// The first child.
    pub(crate) fn first_child(&self, id: NodeId) -> Option<NodeId> {
        (self.node(id).end > id.0 + 1).then_some(NodeId(id.0 + 1))
    }

    /// The children, in order.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.first_child(id), |child| self.next_sibling(*child))
    }

    /// The element children, in order.
    pub(crate) fn child_elements(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.children(id).filter(|child| self.is_element(*child))
    }

    /// Everything below `id` in document order, without `id` itself.
    pub(crate) fn descendants(
        &self,
        id: NodeId,
    ) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (id.0 + 1..self.node(id).end).map(NodeId)
    }

    /// Every node in document order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The first node after the subtree of `id` in document order.
    pub(crate) fn after_subtree(&self, id: NodeId) -> Option<NodeId> {
        let end = self.node(id).end;
        ((end as usize) < self.nodes.len()).then_some(NodeId(end))
    }

    /// Whether `inner` lies strictly below `outer`.
    pub(crate) fn is_inside(&self, inner: NodeId, outer: NodeId) -> bool {
        outer < inner && inner.0 < self.node(outer).end
    }

    fn element(&self, id: NodeId) -> Option<&TreeNode> {
        Some(self.node(id)).filter(|node| node.kind == NodeKind::Element)
    }

    /// Local name of an element; lower case for HTML. `None` for other nodes.
    pub fn name(&self, id: NodeId) -> Option<&LocalName> {
        self.element(id).map(|element| name_of(NameId::from_raw(element.name), &self.names))
    }

    /// Namespace of an element; `None` for other nodes.
    pub(crate) fn namespace(&self, id: NodeId) -> Option<&Namespace> {
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

    /// The value of an attribute, by its exact name.
    pub fn attribute(&self, id: NodeId, name: &str) -> Option<&str> {
        self.attributes(id).find(|(own, _)| &***own == name).map(|(_, value)| value)
    }

    /// The elements with a lower-case name, at `root` and below it, in document order. Elements
    /// that are not HTML match in any case.
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

    /// The part of `all`, which is in document order, that lies at `root` and below it.
    fn part_in<'n>(&self, all: &'n [NodeId], root: NodeId) -> &'n [NodeId] {
        let start = all.partition_point(|node| *node < root);
        let len = all[start..].partition_point(|node| node.0 < self.node(root).end);
        &all[start..start + len]
    }

    fn slice(&self, start: u32, len: u32) -> &str {
        &self.text[start as usize..(start + len) as usize]
    }

    /// The text of a text or comment node; `None` for other nodes.
    pub fn text(&self, id: NodeId) -> Option<&str> {
        let node = self.node(id);
        matches!(node.kind, NodeKind::Text | NodeKind::Comment)
            .then(|| self.slice(node.at, node.len))
    }

    /// All text below `id` joined without changes. For a text or comment node, its own text.
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
