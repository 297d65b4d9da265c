//! Evaluates scripts and queries, each only once per page.
//!
//! Results are stored by the whole text of the query. With hashes alone, a collision would give a
//! cell the value of another.

use std::collections::HashMap;
use std::rc::Rc;

use super::bound::{AxisState, BoundTemplate};
use super::plan::{CellQueryPlan, RowPlan};
use super::{ParseError, Queries, Scripts};

/// A value, or `None` if nothing was found.
pub(super) type CellText = Option<Rc<str>>;

pub(super) struct CellLookup<'s> {
    queries: &'s mut dyn Queries,
    scripts: &'s mut dyn Scripts,
    /// By block, then by selector. A list is enough for attributes, because few selectors read more
    /// than one.
    cells: HashMap<Box<str>, HashMap<Box<str>, Vec<CachedCell>>>,
    scripted: HashMap<Box<str>, CellText>,
    block: String,
    selector: String,
    attribute: String,
}

struct CachedCell {
    attribute: Option<Box<str>>,
    found: CellText,
}

impl<'s> CellLookup<'s> {
    pub(super) fn new(queries: &'s mut dyn Queries, scripts: &'s mut dyn Scripts) -> Self {
        Self {
            queries,
            scripts,
            cells: HashMap::new(),
            scripted: HashMap::new(),
            block: String::new(),
            selector: String::new(),
            attribute: String::new(),
        }
    }

    /// The raw value of a cell: the script's, or the query's if the script has none.
    pub(super) fn look_up(
        &mut self,
        row: &RowPlan,
        now: &[AxisState],
        script: Option<&BoundTemplate>,
        query: Option<&CellQueryPlan>,
    ) -> Result<CellText, ParseError> {
        if let Some(script) = script
            && let Some(value) = self.eval(row, now, script)?
        {
            return Ok(Some(value));
        }
        match query {
            Some(query) => self.query(row, now, query),
            None => Ok(None),
        }
    }

    fn eval(
        &mut self,
        row: &RowPlan,
        now: &[AxisState],
        script: &BoundTemplate,
    ) -> Result<CellText, ParseError> {
        let expression = script.fill(&row.heads, now, &mut self.selector);
        if let Some(found) = self.scripted.get(expression) {
            return Ok(found.clone());
        }
        let found: CellText = self.scripts.eval(expression)?.map(Rc::from);
        self.scripted.insert(expression.into(), found.clone());
        Ok(found)
    }

    fn query(
        &mut self,
        row: &RowPlan,
        now: &[AxisState],
        query: &CellQueryPlan,
    ) -> Result<CellText, ParseError> {
        let block = query.block.fill(&row.heads, now, &mut self.block);
        let selector = query.selector.fill(&row.heads, now, &mut self.selector);
        let attribute = query.attribute.as_ref();
        let attribute = attribute.map(|name| name.fill(&row.heads, now, &mut self.attribute));
        let known =
            self.cells.get(block).and_then(|selectors| selectors.get(selector)).and_then(|cells| {
                let same = |cell: &&CachedCell| cell.attribute.as_deref() == attribute;
                cells.iter().find(same)
            });
        if let Some(cell) = known {
            return Ok(cell.found.clone());
        }
        let found: CellText = self.queries.query(block, selector, attribute)?.map(Rc::from);
        if !self.cells.contains_key(block) {
            self.cells.insert(block.into(), HashMap::new());
        }
        if let Some(selectors) = self.cells.get_mut(block) {
            selectors
                .entry(selector.into())
                .or_default()
                .push(CachedCell { attribute: attribute.map(Box::from), found: found.clone() });
        }
        Ok(found)
    }
}
