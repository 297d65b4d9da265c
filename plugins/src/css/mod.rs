//! CSS selectors in jsoup's dialect.
//!
//! A [`Selector`] is compiled once and matched from right to left. Texts and sibling positions of a
//! page are computed once and kept in a [`TextCache`], which the caller owns. No recursion depends
//! on the depth of a page.

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
pub(crate) use text::own_text;
pub use text::text;

/// Why a selector could not be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {})", at + 1)]
pub struct SelectorError {
    /// The message shown to users.
    pub message: String,
    /// The position of the problem, in characters from 0.
    pub at: usize,
}

impl SelectorError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), at }
    }
}

/// Why a selector could not be evaluated on a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchError {
    /// The regex engine stopped, for example at its limit on backtracking.
    #[error("regex `{pattern}` failed on this page: {reason}")]
    Regex {
        /// The pattern as written in the selector.
        pattern: String,
        /// The error of the regex engine.
        reason: String,
    },
    /// The search took more steps than allowed.
    #[error("selector `{selector}` needs more than {steps_max} steps on this page")]
    TooManySteps {
        /// The selector as written.
        selector: String,
        /// The limit on steps.
        steps_max: u64,
    },
}

/// A compiled selector. A clone is cheap, and threads can share it.
///
/// ```
/// use spoonbill_plugins::css::{Selector, TextCache, text};
/// use spoonbill_plugins::html::{Document, TreeLimits};
///
/// let page = Document::parse("<p>Cash<p>Debt <b>5</b>", TreeLimits::default())?;
/// let debt = Selector::parse("p:contains(debt) > b")?;
/// let found = debt.select(&page, page.root(), &mut TextCache::default())?;
/// assert_eq!(text(&page, found[0]), "5");
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

    /// Finds all matches at `root` and below, in document order.
    ///
    /// `root` itself can match, even if it is the document node. Combinators never look above
    /// `root`, but positions among siblings are those in the whole document. `cache` must not have
    /// been used with another page. With `:matchText` the matches are text nodes, which have the
    /// tag and attributes of the element around them.
    pub fn select(
        &self,
        document: &Document,
        root: NodeId,
        cache: &mut TextCache,
    ) -> Result<Vec<NodeId>, MatchError> {
        select::select(self, document, root, cache)
    }

    /// The first match of [`Selector::select`]. It is cheaper than finding all.
    pub fn select_first(
        &self,
        document: &Document,
        root: NodeId,
        cache: &mut TextCache,
    ) -> Result<Option<NodeId>, MatchError> {
        select::select_first(self, document, root, cache)
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
