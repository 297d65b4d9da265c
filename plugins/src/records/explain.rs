//! Explains each cell of a page: where its value came from, or why it is empty.

use super::extract::{Meter, Session};
use super::find::Spot;
use super::html::node_path;
use super::plan::RecordPlan;
use super::rows::Why;
use super::{FieldScripts, RecordError, RecordLimits, RecordPage};

/// Explains all rows of one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    /// The query of the blocks, as written. `None` if the whole page is the block.
    pub block: Option<String>,
    /// One row for each block, including the dropped ones.
    pub rows: Vec<RowStory>,
}

/// Explains one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowStory {
    /// Path of the block's element. `None` for JSON and for the whole page.
    pub node: Option<String>,
    /// Names and values of the standard columns.
    pub columns: Vec<(String, String)>,
    /// The fields, in order.
    pub cells: Vec<CellStory>,
    /// Index of the first required field without a value. The row is dropped if there is one.
    pub dropped_for: Option<usize>,
}

/// Explains one cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellStory {
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
    pub why: Option<Why>,
}

impl RecordPlan {
    /// Explains what [`RecordPlan::extract`] does on a page. Slower, because it counts all matches.
    pub fn explain(
        &self,
        page: &RecordPage<'_>,
        scripts: &mut dyn FieldScripts,
        limits: &RecordLimits,
    ) -> Result<Story, RecordError> {
        let mut session = Session::new(page, true);
        let spots = session.spots(self.block.as_ref())?;
        let block = self.block.as_ref().map(|query| query.shown.to_string());
        let mut story = Story { block, rows: Vec::new() };
        let mut meter = Meter::new(limits);
        for spot in &spots {
            meter.row(spots.len())?;
            let row = self.row_story(&mut session, spot, scripts)?;
            let lengths = row.cells.iter().filter_map(|cell| cell.value.as_ref().map(String::len));
            meter.bytes(lengths.sum())?;
            story.rows.push(row);
        }
        Ok(story)
    }

    fn row_story(
        &self,
        session: &mut Session<'_>,
        spot: &Spot,
        scripts: &mut dyn FieldScripts,
    ) -> Result<RowStory, RecordError> {
        let page = session.page;
        let path = |node| page.tree.map(|tree| node_path(tree, node));
        let columns = self.standard(page).into_iter();
        let mut row = RowStory {
            node: spot.root.filter(|_| self.block.is_some() && spot.json.is_none()).and_then(path),
            columns: columns
                .map(|axis| (axis.item_name.to_string(), axis.value.unwrap_or_default()))
                .collect(),
            ..RowStory::default()
        };
        for (place, field) in self.fields.iter().enumerate() {
            let cell = session.cell(field, spot, scripts)?;
            if cell.value.is_none() && field.required {
                row.dropped_for.get_or_insert(place);
            }
            let query = cell.query.and_then(|place| field.queries.get(place));
            let tried = if query.is_none() { field.queries.as_slice() } else { &[] };
            row.cells.push(CellStory {
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
