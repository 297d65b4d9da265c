//! Records: data definitions with `fields`, which have named columns and one row per block.

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// Rows with named columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Query whose matches are the rows. `None` means that the whole page is one row.
    pub block: Option<Query>,
    /// Columns about the page, before the fields.
    pub columns: Vec<PageColumn>,
    /// Columns from the block, in the order written.
    pub fields: Vec<Field>,
}

/// A query for a value or a block. At most one of `css`, `xpath` and `jsonld` is set; none of them
/// means the block itself. `json` then applies to the text that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// CSS selector, without its attribute.
    pub css: Option<Text>,
    /// XPath 1.0.
    pub xpath: Option<Text>,
    /// Path into the JSON-LD of the page: `Product.offers.price`.
    pub jsonld: Option<Text>,
    /// Attribute to take instead of the text.
    pub attribute: Option<Text>,
    /// JSON path into the found text, or into the JSON block or page.
    pub json: Option<Text>,
}

impl Query {
    /// The text that represents the query in messages, with its position.
    pub fn shown(&self) -> Option<&Text> {
        [&self.css, &self.xpath, &self.jsonld, &self.json, &self.attribute]
            .into_iter()
            .find_map(Option::as_ref)
    }
}

/// One named column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Name of the column.
    pub name: Text,
    /// Queries in order. The first one with a value that is not blank counts.
    pub queries: Vec<Query>,
    /// A constant instead of queries.
    pub value: Option<Text>,
    /// Which text of an element to take.
    pub text: TextKind,
    /// Separator to join all matches. `None` means to take the first match only.
    pub all: Option<Text>,
    /// The first capture group becomes the value, or the whole match without a group.
    pub regex: Option<Text>,
    /// JavaScript expression that computes the value from `value`.
    pub script: Option<Text>,
    /// Required type of the value.
    pub kind: FieldType,
    /// Value of an empty cell.
    pub default: Option<Text>,
    /// Whether a row without a value is dropped.
    pub required: bool,
}

/// Which text of an element to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextKind {
    /// All text inside, with white space collapsed.
    #[default]
    Whole,
    /// Text directly inside, with white space collapsed.
    Own,
    /// The inner HTML.
    Html,
}

impl TextKind {
    /// All kinds and their keywords.
    pub(crate) const ALL: [(Self, &'static str); 3] =
        [(Self::Whole, "whole"), (Self::Own, "own"), (Self::Html, "html")];
}

/// Type of a value, and how it is read and written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum FieldType {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Integer(Separators),
    /// A number with a fraction.
    Decimal(Separators),
    /// `true` or `false`.
    Boolean {
        /// Texts that are true; any other text is false. If empty, the usual words are read.
        true_when: Vec<Text>,
    },
    /// A date.
    Date {
        /// Java patterns to read, in order. If empty, ISO 8601.
        input: Vec<Text>,
        /// Java pattern to write; `None` means `yyyy-MM-dd`.
        output: Option<Text>,
    },
    /// An address, resolved against the page.
    Url,
}

impl FieldType {
    /// The keywords of all types.
    pub(crate) const NAMES: [&'static str; 6] =
        ["text", "integer", "decimal", "boolean", "date", "url"];
}

/// How a number is written on the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Separators {
    /// Decimal separator; `None` means `.`.
    pub decimal: Option<Text>,
    /// Separator of thousands; `None` means `,`, or `.` if the decimal separator is `,`.
    pub thousands: Option<Text>,
}

/// A column about the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageColumn {
    /// Name of the locator.
    Locator,
    /// Group of the page.
    Group,
    /// Address of the page.
    Url,
    /// Time of loading, ISO 8601.
    FetchedAt,
    /// Number of links from the start page.
    Depth,
}

impl PageColumn {
    /// All columns and their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Locator, "locator"),
        (Self::Group, "group"),
        (Self::Url, "url"),
        (Self::FetchedAt, "fetched_at"),
        (Self::Depth, "depth"),
    ];

    /// Name in the header.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(column, _)| *column == self).map_or("", |(_, name)| name)
    }
}

/// Requirements for the rows of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    /// Minimum number of rows of the run.
    pub min_rows: Option<u64>,
    /// Maximum number of rows of the run.
    pub max_rows: Option<u64>,
    /// By field: smallest share of rows with a value, in millionths.
    pub fill: Vec<(Text, u32)>,
    /// By field: regular expression that each value must match as a whole.
    pub pattern: Vec<(Text, Text)>,
}
