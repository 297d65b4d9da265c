//! The key `dataDefs`: the rows to take from a page.

use serde::{Deserialize, Serialize};

use crate::records::{Expect, Record};
use crate::text::Text;

/// Rows to take from a page: one per block of a record, or in the classic form all combinations of
/// items, dims and facts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataDef {
    /// Name of the definition.
    pub name: Text,
    /// Rows with named columns. If set, there are no items, dims and facts.
    pub record: Option<Record>,
    /// Requirements for the rows of a run.
    pub expect: Option<Expect>,
    /// Where the facts are on the page.
    pub query: ItemQuery,
    /// First axis of a row.
    pub items: Vec<Item>,
    /// Further axes, one per entry.
    pub dims: Vec<Item>,
    /// Last axis; one entry with the name `fact` if the file has none.
    pub facts: Vec<Item>,
}

/// The block to search and the selector of the fact.
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
    /// Text for `%{item.match}`; without its backslashes, also the value.
    pub match_text: Option<Text>,
    /// JavaScript expression for the value.
    pub script: Option<Text>,
    /// Query for the value, relative to the block.
    pub selector: Option<Text>,
    /// Indexes to try.
    pub range: IndexRange,
    /// Values that end an open range; `None` if the key is absent.
    pub break_after: Option<Vec<Text>>,
    /// Filters that drop the row.
    pub filters: Vec<ItemFilter>,
    /// Texts to put before a value from a query or script. The last one comes first in the result.
    pub prefix: Vec<Text>,
    /// Task group of the locators that the value creates.
    pub link_group: Option<Text>,
    /// Values that create no locator.
    pub link_break_on: Vec<Text>,
    /// Value of `%{order}`; by default the position in the list, from 1.
    pub order: Option<u32>,
}

/// Inclusive range of indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRange {
    /// First index.
    pub first: u32,
    /// Last index; `None` for an open range.
    pub last: Option<u32>,
}

impl Default for IndexRange {
    fn default() -> Self {
        Self { first: 1, last: Some(1) }
    }
}

/// Drops the rows that match its pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemFilter {
    /// The text to compare.
    pub on: FilterSubject,
    /// Literal text, one space for a blank text, or a regular expression for the whole text.
    pub pattern: Text,
}

/// The text that a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterSubject {
    /// The axis's value.
    Value,
    /// The axis's `match`.
    Match,
}
