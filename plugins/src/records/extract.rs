//! Extracts the rows of a page.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Instant;

use spoonbill_defs::PageColumn;

use super::find::{JsonCache, QueryMatch, RecordBlock};
use super::json::Json;
use super::plan::{QueryPlan, RecordPlan};
use super::value::AddressBase;
use super::{Extraction, FieldCounts, FieldScripts, Misfit, RecordError, RecordLimits, RecordPage};
use crate::css::TextCache;
use crate::data::{Axis, AxisKind, Row};
use crate::follow::without_user;

/// Misfits of one page that are kept with their value. Further ones are only counted.
const MISFITS_MAX: usize = 100;

/// The page and what was already read of it.
pub(super) struct PageExtractor<'p> {
    pub(super) page: &'p RecordPage<'p>,
    pub(super) base: AddressBase<'p>,
    /// Whether queries find all matches in order to count them, and not only the first.
    pub(super) counts: bool,
    pub(super) texts: TextCache,
    pub(super) page_json: OnceCell<Option<Rc<Json>>>,
    pub(super) json_ld: Option<Rc<[Rc<Json>]>>,
    pub(super) embedded: JsonCache,
}

impl<'p> PageExtractor<'p> {
    pub(super) fn new(page: &'p RecordPage<'p>, counts: bool) -> Self {
        Self {
            page,
            base: AddressBase::new(page.base, page.tree),
            counts,
            texts: TextCache::default(),
            page_json: OnceCell::new(),
            json_ld: None,
            embedded: JsonCache::new(),
        }
    }

    /// Finds the blocks of the page, in document order.
    pub(super) fn blocks(
        &mut self,
        block: Option<&QueryPlan>,
    ) -> Result<Vec<RecordBlock>, RecordError> {
        let page =
            RecordBlock { root: self.page.tree.map(crate::html::Document::root), json: None };
        let Some(query) = block else {
            return Ok(vec![page]);
        };
        self.blocks_of(query, &page).map_err(|message| RecordError::Query {
            place: "block".to_owned(),
            query: query.shown.to_string(),
            message,
        })
    }

    fn blocks_of(
        &mut self,
        query: &QueryPlan,
        page: &RecordBlock,
    ) -> Result<Vec<RecordBlock>, String> {
        let mut blocks = Vec::new();
        for hit in self.hits(query, page, true)? {
            if let Some(path) = &query.json {
                let Some((json, nodes)) = self.inside_json(query, &hit, path)? else { continue };
                blocks.extend(nodes.into_iter().map(|node| RecordBlock {
                    root: page.root,
                    json: Some((Rc::clone(&json), node)),
                }));
                continue;
            }
            match hit {
                QueryMatch::Node(node) => {
                    blocks.push(RecordBlock { root: Some(node.id()), json: None });
                }
                QueryMatch::Json(json, node) => {
                    blocks.push(RecordBlock { root: page.root, json: Some((json, node)) });
                }
                QueryMatch::Text(_) => {
                    return Err(
                        "a block must be a node, not a string, number or boolean".to_owned()
                    );
                }
            }
        }
        Ok(blocks)
    }
}

impl RecordPlan {
    /// Extracts the rows of a page.
    pub fn extract(
        &self,
        page: &RecordPage<'_>,
        scripts: &mut dyn FieldScripts,
        limits: &RecordLimits,
    ) -> Result<Extraction, RecordError> {
        let mut extractor = PageExtractor::new(page, false);
        let blocks = extractor.blocks(self.block.as_ref())?;
        let mut made = Extraction {
            fields: vec![FieldCounts::default(); self.fields.len()],
            ..Extraction::default()
        };
        let standard = self.standard(page);
        let mut meter = LimitMeter::new(limits);
        for block in &blocks {
            meter.row(blocks.len())?;
            let mut axes = Vec::with_capacity(self.names.len());
            axes.extend(standard.iter().cloned());
            let mut missing = None;
            for (place, field) in self.fields.iter().enumerate() {
                let cell = extractor.cell(field, block, scripts)?;
                meter.bytes(cell.value.as_ref().map_or(0, String::len))?;
                for (value, why) in cell.misfits {
                    made.fields[place].misfits += 1;
                    if made.misfits.len() < MISFITS_MAX {
                        made.misfits.push(Misfit { field: place, value, why });
                    }
                }
                if cell.value.is_none() && field.required {
                    missing.get_or_insert(place);
                }
                axes.push(self.axis(self.columns.len() + place, cell.value));
            }
            if let Some(place) = missing {
                made.fields[place].dropped += 1;
                continue;
            }
            for (counts, axis) in made.fields.iter_mut().zip(&axes[standard.len()..]) {
                counts.filled += u32::from(axis.value.is_some());
            }
            made.rows.push(Row { name: page.locator.clone(), group: page.group.clone(), axes });
        }
        Ok(made)
    }

    fn axis(&self, column: usize, value: Option<String>) -> Axis {
        Axis {
            kind: AxisKind::Field,
            item_name: self.names[column].clone(),
            value,
            match_text: None,
            index: None,
            order: None,
        }
    }

    /// The cells of the standard columns, which are the same in all rows of a page.
    pub(super) fn standard(&self, page: &RecordPage<'_>) -> Vec<Axis> {
        let value = |column: &PageColumn| match column {
            PageColumn::Locator => without_user(page.locator).into_owned(),
            PageColumn::Group => page.group.to_string(),
            PageColumn::Url => without_user(page.url).into_owned(),
            PageColumn::FetchedAt => page.fetched_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            PageColumn::Depth => page.depth.to_string(),
        };
        let columns = self.columns.iter().enumerate();
        columns.map(|(place, column)| self.axis(place, Some(value(column)))).collect()
    }
}

/// Counts the rows and bytes of a page against its limits.
pub(super) struct LimitMeter<'l> {
    limits: &'l RecordLimits,
    rows: usize,
    bytes: usize,
}

impl<'l> LimitMeter<'l> {
    pub(super) fn new(limits: &'l RecordLimits) -> Self {
        Self { limits, rows: 0, bytes: 0 }
    }

    /// Counts one row; `of` is the number of rows on the page.
    pub(super) fn row(&mut self, of: usize) -> Result<(), RecordError> {
        if of > self.limits.rows_max {
            return Err(RecordError::TooManyRows(self.limits.rows_max));
        }
        if self.limits.deadline.is_some_and(|at| Instant::now() >= at) {
            return Err(RecordError::OutOfTime(self.rows));
        }
        self.rows += 1;
        Ok(())
    }

    pub(super) fn bytes(&mut self, bytes: usize) -> Result<(), RecordError> {
        self.bytes += bytes;
        if self.bytes > self.limits.bytes_max {
            return Err(RecordError::TooManyBytes(self.limits.bytes_max));
        }
        Ok(())
    }
}
