//! Explains each cell of a page: where its value came from, or why it is empty.

use super::extract::{LimitMeter, PageExtractor};
use super::find::RecordBlock;
use super::html::node_path;
use super::plan::RecordPlan;
use super::rows::EmptyReason;
use super::{FieldScripts, RecordError, RecordLimits, RecordPage};

/// Explains all rows of one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageExplanation {
    /// The query of the blocks, as written. `None` if the whole page is the block.
    pub block: Option<String>,
    /// One row for each block, including the dropped ones.
    pub rows: Vec<RowExplanation>,
}

/// Explains one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowExplanation {
    /// Path of the block's element. `None` for JSON and for the whole page.
    pub node: Option<String>,
    /// Names and values of the standard columns.
    pub columns: Vec<(String, String)>,
    /// The fields, in order.
    pub cells: Vec<CellExplanation>,
    /// Index of the first required field without a value. The row is dropped if there is one.
    pub dropped_for: Option<usize>,
}

/// Explains one cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellExplanation {
    /// Name of the field.
    pub field: String,
    /// The value in the output.
    pub value: Option<String>,
    /// Whether the value is the default.
    pub is_default: bool,
    /// The query that found the value, as written. `None` for a constant.
    pub query: Option<String>,
    /// The queries as written, if none of them found a value.
    pub tried: Vec<String>,
    /// Number of matches of that query in the block.
    pub matches: usize,
    /// Path of the node that has the value.
    pub node: Option<String>,
    /// Why no value was found; also set if the value is the default.
    pub why: Option<EmptyReason>,
}

impl RecordPlan {
    /// Explains what [`RecordPlan::extract`] does on a page. Slower, because it counts all matches.
    pub fn explain(
        &self,
        page: &RecordPage<'_>,
        scripts: &mut dyn FieldScripts,
        limits: &RecordLimits,
    ) -> Result<PageExplanation, RecordError> {
        let mut extractor = PageExtractor::new(page, true);
        let blocks = extractor.blocks(self.block.as_ref())?;
        let block = self.block.as_ref().map(|query| query.shown.to_string());
        let mut explanation = PageExplanation { block, rows: Vec::new() };
        let mut meter = LimitMeter::new(limits);
        for block in &blocks {
            meter.row(blocks.len())?;
            let row = self.row_explanation(&mut extractor, block, scripts)?;
            let lengths = row.cells.iter().filter_map(|cell| cell.value.as_ref().map(String::len));
            meter.bytes(lengths.sum())?;
            explanation.rows.push(row);
        }
        Ok(explanation)
    }

    fn row_explanation(
        &self,
        extractor: &mut PageExtractor<'_>,
        block: &RecordBlock,
        scripts: &mut dyn FieldScripts,
    ) -> Result<RowExplanation, RecordError> {
        let page = extractor.page;
        let path = |node| page.tree.map(|tree| node_path(tree, node));
        let columns = self.standard(page).into_iter();
        let mut row = RowExplanation {
            node: block
                .root
                .filter(|_| self.block.is_some() && block.json.is_none())
                .and_then(path),
            columns: columns
                .map(|axis| (axis.item_name.to_string(), axis.value.unwrap_or_default()))
                .collect(),
            ..RowExplanation::default()
        };
        for (place, field) in self.fields.iter().enumerate() {
            let cell = extractor.cell(field, block, scripts)?;
            if cell.value.is_none() && field.required {
                row.dropped_for.get_or_insert(place);
            }
            let query = cell.query.and_then(|place| field.queries.get(place));
            let tried = if query.is_none() { field.queries.as_slice() } else { &[] };
            row.cells.push(CellExplanation {
                field: field.name.to_string(),
                is_default: cell.is_default,
                value: cell.value,
                query: query.map(|query| query.shown.to_string()),
                tried: tried.iter().map(|query| query.shown.to_string()).collect(),
                matches: cell.matches,
                node: cell.node.and_then(path),
                why: cell.why,
            });
        }
        Ok(row)
    }
}
