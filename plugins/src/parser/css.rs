//! CSS queries as existing definitions expect them from jsoup: the own texts of all matches, joined
//! by spaces.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::compiled::CompiledQueries;
use super::{ParseError, Queries, is_blank};
use crate::css::{Selector, TextCache, own_text};
use crate::html::{Document, NodeId};

/// Answers CSS queries about one page.
///
/// ```
/// use spoonbill_plugins::html::{Document, TreeLimits};
/// use spoonbill_plugins::parser::{CompiledQueries, CssQueries, Queries};
///
/// let page = Document::parse("<ul><li>one<li><b>two</b><li>three</ul>", TreeLimits::default())?;
/// let mut compiled = CompiledQueries::default();
/// let mut queries = CssQueries::new(&page, &mut compiled);
/// assert_eq!(queries.query("ul", "li", None)?.as_deref(), Some("one three"));
/// assert_eq!(queries.query("ul", "p", None)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CssQueries<'a> {
    document: &'a Document,
    compiled: &'a mut CompiledQueries<Selector>,
    /// The matches of each block query, because many cells share one.
    blocks: HashMap<Box<str>, Rc<[NodeId]>>,
    /// Texts and positions of the page, shared by all selectors.
    learnt: TextCache,
}

impl<'a> CssQueries<'a> {
    /// Queries about `document`. `compiled` is kept from page to page.
    pub fn new(document: &'a Document, compiled: &'a mut CompiledQueries<Selector>) -> Self {
        Self { document, compiled, blocks: HashMap::new(), learnt: TextCache::default() }
    }

    fn blocks(&mut self, block: &str) -> Result<Rc<[NodeId]>, ParseError> {
        if let Some(known) = self.blocks.get(block) {
            return Ok(Rc::clone(known));
        }
        let found: Rc<[NodeId]> = self.select(block, &[self.document.root()])?.into();
        self.blocks.insert(block.into(), Rc::clone(&found));
        Ok(found)
    }

    /// The matches of a selector for each root in turn, without duplicates.
    fn select(&mut self, text: &str, roots: &[NodeId]) -> Result<Vec<NodeId>, ParseError> {
        let selector = self
            .compiled
            .get(text, Selector::parse)
            .map_err(|error| ParseError::query(text, &error))?;
        let mut all = Vec::new();
        for root in roots {
            let found = selector.select(self.document, *root, &mut self.learnt);
            all.append(&mut found.map_err(|error| ParseError::query(text, &error))?);
        }
        // Blocks can be nested. With a single root there are no duplicates.
        if roots.len() > 1 {
            let mut seen = HashSet::with_capacity(all.len());
            all.retain(|element| seen.insert(*element));
        }
        Ok(all)
    }
}

impl Queries for CssQueries<'_> {
    fn query(
        &mut self,
        block: &str,
        selector: &str,
        attribute: Option<&str>,
    ) -> Result<Option<String>, ParseError> {
        let blocks = self.blocks(block)?;
        let elements = self.select(selector, &blocks)?;
        let texts = elements.into_iter().map(|element| match attribute {
            None => own_text(self.document, element),
            Some(name) => attribute_of(self.document, element, name),
        });
        Ok(texts.reduce(|mut joined, text| {
            if is_blank(&joined) {
                // Blank texts are dropped, unless all are blank: then the first one is the result.
                return if is_blank(&text) { joined } else { text };
            }
            if !is_blank(&text) {
                joined.push(' ');
                joined.push_str(&text);
            }
            joined
        }))
    }
}

fn attribute_of(document: &Document, element: NodeId, name: &str) -> String {
    document
        .attributes(element)
        .find(|(own, _)| (***own).eq_ignore_ascii_case(name))
        .map_or_else(String::new, |(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests;
