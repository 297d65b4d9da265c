//! Records: a data definition with `fields`, one row per match of its block and named columns.

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// Rows with named columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What is a row: one for each match; the whole page when absent.
    pub block: Option<Query>,
    /// Columns about the page, in front of the fields.
    pub columns: Vec<PageColumn>,
    /// Columns taken from the block, in the order written.
    pub fields: Vec<Field>,
}

/// Where a value or block is looked for. At most one of `css`, `xpath` and `jsonld` is set; none
/// means the block itself. `json` then looks into the text that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// CSS selector, without its attribute.
    pub css: Option<Text>,
    /// XPath 1.0.
    pub xpath: Option<Text>,
    /// Path into the JSON-LD of the page: `Product.offers.price`.
    pub jsonld: Option<Text>,
    /// Attribute whose value counts instead of the text.
    pub attribute: Option<Text>,
    /// JSON path into the text found, or into the JSON block or page itself.
    pub json: Option<Text>,
}

impl Query {
    /// The text to show for it, and its place.
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
    /// Queries tried in order: the first that gives something that is not blank counts.
    pub queries: Vec<Query>,
    /// A constant instead of queries.
    pub value: Option<Text>,
    /// Which text of an element counts.
    pub text: TextKind,
    /// All matches put together with this between them, instead of the first.
    pub all: Option<Text>,
    /// The first capture group, or the whole match, is the value; no match is nothing.
    pub regex: Option<Text>,
    /// JavaScript expression over `value`.
    pub script: Option<Text>,
    /// What the value has to be.
    pub kind: FieldType,
    /// The value when nothing was found.
    pub default: Option<Text>,
    /// Whether a row without a value is dropped.
    pub required: bool,
}

/// Which text of an element is its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextKind {
    /// All text inside, white space folded.
    #[default]
    Whole,
    /// Text directly inside, white space folded.
    Own,
    /// The inner HTML.
    Html,
}

/// What a value has to be, and how it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum FieldType {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Integer(Separators),
    /// A number with a fraction.
    Decimal(Separators),
    /// `true` or `false`; with `true_when`, whether the text is one of those.
    Boolean {
        /// Texts that mean true; any other text is then false.
        true_when: Vec<Text>,
    },
    /// A date.
    Date {
        /// Java patterns to read by, tried in order; ISO 8601 when there are none.
        input: Vec<Text>,
        /// Java pattern to write by; `yyyy-MM-dd` when absent.
        output: Option<Text>,
    },
    /// An address, resolved against the page.
    Url,
}

/// How a number is written on the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Separators {
    /// In front of the fraction; `.` when absent.
    pub decimal: Option<Text>,
    /// Between groups of digits; `,` when absent, or `.` when the decimal separator is `,`.
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
    /// When it was loaded, ISO 8601.
    FetchedAt,
    /// Links followed to reach it.
    Depth,
}

impl PageColumn {
    /// All columns with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Locator, "locator"),
        (Self::Group, "group"),
        (Self::Url, "url"),
        (Self::FetchedAt, "fetched_at"),
        (Self::Depth, "depth"),
    ];

    /// Its name in the header.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(column, _)| *column == self).map_or("", |(_, name)| name)
    }
}

/// What the rows of a run are expected to be like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    /// Rows of the run, at least.
    pub min_rows: Option<u64>,
    /// Rows of the run, at most.
    pub max_rows: Option<u64>,
    /// For a field: the share of rows that have a value, at least, in millionths.
    pub fill: Vec<(Text, u32)>,
    /// For a field: a pattern for every value that is there, whole.
    pub pattern: Vec<(Text, Text)>,
}
