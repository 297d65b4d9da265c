//! XPath 1.0: an expression is compiled once and evaluated on many pages.
//!
//! The kinds of all values are known at compile time, so every mistake in an expression is reported
//! then. No recursion depends on the depth of a page, and each evaluation has a budget of steps.
//!
//! `lexer`, `parser` and `location` build an `Expression`, and `simplify` makes it cheaper.
//! `evaluate`, `path`, `walk`, `compare` and `call` evaluate it.

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

/// Limits on one evaluation.
#[derive(Debug, Clone, Copy)]
pub struct XPathLimits {
    /// Nodes looked at. Every 16 bytes of text count as one more node.
    pub steps_max: u64,
}

impl Default for XPathLimits {
    fn default() -> Self {
        Self { steps_max: 50_000_000 }
    }
}

/// Why an expression was rejected, or stopped on a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct XPathError {
    /// The message shown to users.
    pub message: String,
    /// The position of the problem, in characters from 0. `None` if the page made the evaluation
    /// too expensive.
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
            // Users count from 1.
            Some(at) => write!(out, "{} (at character {})", self.message, at + 1),
            None => out.write_str(&self.message),
        }
    }
}

/// A node in the sense of XPath: a node of the tree, or an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XNode {
    /// A node of the tree.
    Node(NodeId),
    /// An attribute: its element, and its index among that element's attributes.
    Attribute(NodeId, u32),
}

impl XNode {
    /// The node itself, or the element of an attribute.
    pub fn id(self) -> NodeId {
        match self {
            Self::Node(id) | Self::Attribute(id, _) => id,
        }
    }

    /// The text of the node, neither trimmed nor normalized.
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

    /// A sort key: attributes come after their element and before its children.
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

/// The value of an expression.
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
    /// Names outside `[ ]` and `( )`, and names after `@` anywhere, match as written and in lower
    /// case. Quoted text is compared as written.
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

    /// Evaluates the expression with `context` as the context node.
    pub fn evaluate(
        &self,
        document: &Document,
        context: impl Into<XNode>,
        limits: XPathLimits,
    ) -> Result<XPathValue, XPathError> {
        evaluate::evaluate(&self.expression, document, context.into(), limits)
    }
}
