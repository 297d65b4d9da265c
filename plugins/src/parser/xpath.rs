//! XPath queries as existing definitions expect them from HtmlUnit: the text of the last match in
//! the last block, not trimmed.

use std::collections::HashMap;

use super::compiled::CompiledQueries;
use super::{ParseError, Queries};
use crate::html::Document;
use crate::xpath::{XNode, XPath, XPathLimits, XPathValue};

/// Answers XPath queries about one page.
///
/// ```
/// use spoonbill_plugins::html::{Document, TreeLimits};
/// use spoonbill_plugins::parser::{CompiledQueries, Queries, XpathQueries};
/// use spoonbill_plugins::xpath::XPathLimits;
///
/// let page = Document::parse("<p>one<p> <b>two</b> ", TreeLimits::default())?;
/// let mut compiled = CompiledQueries::default();
/// let mut queries = XpathQueries::new(&page, &mut compiled, XPathLimits::default());
/// assert_eq!(queries.query("//body", "p", None)?.as_deref(), Some(" two "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct XpathQueries<'a> {
    document: &'a Document,
    compiled: &'a mut CompiledQueries<XPath>,
    limits: XPathLimits,
    /// The last match of each block query. The other matches never decide a value.
    blocks: HashMap<Box<str>, Option<XNode>>,
}

impl<'a> XpathQueries<'a> {
    /// Queries about `document`. `compiled` is kept from page to page.
    pub fn new(
        document: &'a Document,
        compiled: &'a mut CompiledQueries<XPath>,
        limits: XPathLimits,
    ) -> Self {
        Self { document, compiled, limits, blocks: HashMap::new() }
    }

    fn block(&mut self, block: &str) -> Result<Option<XNode>, ParseError> {
        if let Some(known) = self.blocks.get(block) {
            return Ok(*known);
        }
        let root = XNode::from(self.document.root());
        let last = match self.evaluate(block, root)? {
            XPathValue::Nodes(nodes) => nodes.last().copied(),
            XPathValue::Text(_) | XPathValue::Number(_) | XPathValue::Boolean(_) => {
                let message = "a block must select nodes, not a string, number or boolean";
                return Err(ParseError::query(block, &message));
            }
        };
        self.blocks.insert(block.into(), last);
        Ok(last)
    }

    fn evaluate(&mut self, text: &str, context: XNode) -> Result<XPathValue, ParseError> {
        self.compiled
            .get(text, XPath::parse)
            .and_then(|path| path.evaluate(self.document, context, self.limits))
            .map_err(|error| ParseError::query(text, &error))
    }
}

impl Queries for XpathQueries<'_> {
    fn query(
        &mut self,
        block: &str,
        selector: &str,
        // XPath selects attributes with `@href`, so ` attribute: ` is ignored.
        _attribute: Option<&str>,
    ) -> Result<Option<String>, ParseError> {
        let Some(block) = self.block(block)? else {
            return Ok(None);
        };
        Ok(match self.evaluate(selector, block)? {
            XPathValue::Nodes(nodes) => nodes.last().map(|node| node.string_value(self.document)),
            XPathValue::Text(text) => Some(text),
            XPathValue::Number(_) | XPathValue::Boolean(_) => None,
        })
    }
}

#[cfg(test)]
mod tests;
