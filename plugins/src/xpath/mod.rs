//! XPath 1.0 over a [`Document`]: an expression is compiled once and evaluated on many pages.
//!
//! Types are known before a page is seen, so what can be wrong with an expression is told when it
//! is compiled. Nothing here recurses over the depth of a page, and each evaluation has a budget.

mod call;
mod compare;
mod evaluate;
mod expression;
mod function;
mod lexer;
mod location;
mod number;
mod parser;
mod path;
mod simplify;
#[cfg(test)]
mod tests;
mod walk;

use std::cmp::Ordering;
use std::fmt;

use crate::html::{Document, NodeId};

pub use number::number_to_string;

/// Bounds on one evaluation.
#[derive(Debug, Clone, Copy)]
pub struct XPathLimits {
    /// Nodes looked at; long text counts as further nodes.
    pub steps_max: u64,
}

impl Default for XPathLimits {
    fn default() -> Self {
        Self { steps_max: 50_000_000 }
    }
}

/// Why an expression was refused, or gave up on a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct XPathError {
    /// What is wrong, in plain words.
    pub message: String,
    /// Where in the expression, in characters from its start; none if the page is to blame.
    pub at: Option<usize>,
}

impl XPathError {
    fn new(message: impl Into<String>, at: usize) -> Self {
        Self { message: message.into(), at: Some(at) }
    }
}

impl fmt::Display for XPathError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            // People count from one.
            Some(at) => write!(out, "{} (at character {})", self.message, at + 1),
            None => out.write_str(&self.message),
        }
    }
}

/// A node as XPath sees it: one of the tree, or an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XNode {
    /// The document, an element, a text or a comment.
    Node(NodeId),
    /// An attribute: its element, and its place among that element's attributes.
    Attribute(NodeId, u32),
}

impl XNode {
    /// The node itself, or the element an attribute belongs to.
    pub fn id(self) -> NodeId {
        match self {
            Self::Node(id) | Self::Attribute(id, _) => id,
        }
    }

    /// The text of the node: raw, neither trimmed nor collapsed.
    pub fn string_value(self, document: &Document) -> String {
        match self {
            Self::Node(id) => document.text_content(id),
            Self::Attribute(..) => self.attribute_value(document).to_owned(),
        }
    }

    fn attribute_value(self, document: &Document) -> &str {
        match self {
            Self::Node(_) => "",
            Self::Attribute(owner, index) => {
                document.attributes(owner).nth(index as usize).map_or("", |(_, value)| value)
            }
        }
    }

    /// Attributes come after their element and before its children.
    fn order(self) -> (NodeId, u64) {
        match self {
            Self::Node(id) => (id, 0),
            Self::Attribute(id, index) => (id, u64::from(index) + 1),
        }
    }
}

impl From<NodeId> for XNode {
    fn from(id: NodeId) -> Self {
        Self::Node(id)
    }
}

impl Ord for XNode {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for XNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What an expression comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum XPathValue {
    /// Nodes in document order, each once.
    Nodes(Vec<XNode>),
    /// A string.
    Text(String),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct XPath {
    expression: expression::Expression,
}

impl XPath {
    /// Compiles an expression.
    ///
    /// Names outside `[ ]` and `( )`, and those after `@` everywhere, match in lower case as well
    /// as given; quoted text is never changed.
    ///
    /// ```
    /// use spoonbill_plugins::html::{Document, TreeLimits};
    /// use spoonbill_plugins::xpath::{XPathValue, XPath, XPathLimits};
    ///
    /// let page = Document::parse("<p>one<p id=b>two", TreeLimits::default())?;
    /// let path = XPath::parse("string(//p[@ID='b'])")?;
    /// let value = path.evaluate(&page, page.root(), XPathLimits::default())?;
    /// assert_eq!(value, XPathValue::Text("two".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, XPathError> {
        parser::parse(text).map(|expression| Self { expression })
    }

    /// Evaluates from `context`: a node, or an attribute found before.
    pub fn evaluate(
        &self,
        document: &Document,
        context: impl Into<XNode>,
        limits: XPathLimits,
    ) -> Result<XPathValue, XPathError> {
        evaluate::evaluate(&self.expression, document, context.into(), limits)
    }
}
