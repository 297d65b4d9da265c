//! The key `dataDefs`: what to take from a page.

use serde::{Deserialize, Serialize};

use crate::records::{Expect, Record};
use crate::text::Text;

/// Rows to take from a page: a record for every block, or every item with every fact, times every
/// dim.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataDef {
    /// Name of the definition.
    pub name: Text,
    /// Rows with named columns; then there are no items, dims and facts.
    pub record: Option<Record>,
    /// What the rows of a run are expected to be like.
    pub expect: Option<Expect>,
    /// Where on the page to look.
    pub query: ItemQuery,
    /// First axis of a row.
    pub items: Vec<Item>,
    /// Further axes, each an item entry of its own.
    pub dims: Vec<Item>,
    /// Last axis; normalised to one entry called `fact` when the file has none.
    pub facts: Vec<Item>,
}

/// The block a page is searched in and the selector of the fact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ItemQuery {
    /// Query for the block.
    pub block: Text,
    /// Query for the fact, relative to the block.
    pub selector: Option<Text>,
}

/// One entry of `items`, `dims` or `facts`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Name; unique within the data definition, not printed.
    pub name: Text,
    /// Constant value.
    pub value: Option<Text>,
    /// Text to match; also the value, without its backslashes.
    pub match_text: Option<Text>,
    /// JavaScript expression for the value.
    pub script: Option<Text>,
    /// Query for the value, relative to the block.
    pub selector: Option<Text>,
    /// Indexes the axis runs through.
    pub range: IndexRange,
    /// Values that end an open range; `None` when the key is absent.
    pub break_after: Option<Vec<Text>>,
    /// Filters that drop the row.
    pub filters: Vec<ItemFilter>,
    /// Texts put in front of a queried or scripted value, each before the last.
    pub prefix: Vec<Text>,
    /// Task group of the locators made from the value.
    pub link_group: Option<Text>,
    /// Values that make no locator.
    pub link_break_on: Vec<Text>,
    /// What `%{order}` stands for; normalised to the place in the list, from 1.
    pub order: Option<u32>,
}

/// Inclusive range of indexes; `last: None` is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRange {
    /// First index.
    pub first: u32,
    /// Last index, or none for an open range.
    pub last: Option<u32>,
}

impl Default for IndexRange {
    fn default() -> Self {
        Self { first: 1, last: Some(1) }
    }
}

/// Drops a row when its pattern fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemFilter {
    /// What is looked at.
    pub on: FilterSubject,
    /// Literal text, one space for "blank", or a regular expression for the whole subject.
    pub pattern: Text,
}

/// The subject of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterSubject {
    /// The axis's value.
    Value,
    /// The axis's `match`.
    Match,
}
