//! CSS selectors in jsoup's dialect, over our own page tree.
//!
//! A [`Selector`] is compiled once and matched right to left; what is learnt about a page (texts,
//! positions among siblings) is kept in a [`TextCache`] of the caller's. Nothing here recurses with
//! the depth of a page.

mod argument;
mod cache;
mod cursor;
mod element;
mod matcher;
mod parse;
mod regex;
mod select;
mod syntax;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::sync::Arc;

use crate::html::{Document, NodeId};

pub use cache::TextCache;
pub use text::{own_text, text};

/// A selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {})", at + 1)]
pub struct SelectorError {
    /// What is wrong, in plain words.
    pub message: String,
    /// Where, in characters from the start of the selector.
    pub at: usize,
}

impl SelectorError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), at }
    }
}

/// A selector that could not be followed through on a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchError {
    /// A regular expression went astray on the page's text.
    #[error("regex `{pattern}` gives up on this page: {reason}")]
    Regex {
        /// The pattern as written in the selector.
        pattern: String,
        /// What the regex engine says.
        reason: String,
    },
    /// The page makes the selector take steps without end.
    #[error("selector `{selector}` needs more than {steps_max} steps on this page")]
    TooMuchWork {
        /// The selector as written.
        selector: String,
        /// The limit it hit.
        steps_max: u64,
    },
}

/// A compiled selector; cheap to clone, and any thread may use it.
///
/// ```
/// use spoonbill_plugins::css::{Selector, TextCache, own_text};
/// use spoonbill_plugins::html::{Document, TreeLimits};
///
/// let page = Document::parse("<p>Cash<p>Debt <b>5</b>", TreeLimits::default())?;
/// let debt = Selector::parse("p:contains(debt) > b")?;
/// let found = debt.select(&page, page.root(), &mut TextCache::default())?;
/// assert_eq!(own_text(&page, found[0]), "5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Selector {
    group: Arc<syntax::SelectorList>,
    text: Arc<str>,
}

impl Selector {
    /// Compiles a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Ok(Self { group: Arc::new(parse::parse(text)?), text: text.into() })
    }

    /// Finds every match in `root` and below, in document order.
    ///
    /// `root` itself is a candidate, also when it is the document node. Combinators never look
    /// above `root`; positions among siblings are those of the real document. `cache` must have
    /// served no other page. With `:matchText` the matches are text nodes, which pass for elements
    /// of the tag and attributes around them.
    pub fn select(
        &self,
        document: &Document,
        root: NodeId,
        cache: &mut TextCache,
    ) -> Result<Vec<NodeId>, MatchError> {
        select::select(self, document, root, cache)
    }

    /// The first of what [`Selector::select`] finds, for less work.
    pub fn select_first(
        &self,
        document: &Document,
        root: NodeId,
        cache: &mut TextCache,
    ) -> Result<Option<NodeId>, MatchError> {
        select::select_first(self, document, root, cache)
    }

    /// Whether [`Selector::select`] from `root` would find `node`.
    pub fn matches(
        &self,
        document: &Document,
        root: NodeId,
        node: NodeId,
        cache: &mut TextCache,
    ) -> Result<bool, MatchError> {
        select::matches(self, document, root, node, cache)
    }

    /// The selector as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Selector").field(&self.text).finish()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
