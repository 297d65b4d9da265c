//! Records: rows with named columns, taken from blocks of a page.
//!
//! A [`RecordPlan`] is compiled once from its definition, and all threads use it on all pages. A
//! value passes through query, JSON path, regex, script and type, in this order. Nothing here does
//! I/O or recurses with the depth of a page. Content never fails a page: a value that does not fit
//! its type leaves the cell empty and is reported as a [`Misfit`].

mod cut;
mod dates;
mod explain;
mod extract;
mod find;
mod html;
mod json;
mod jsonld;
mod number;
mod plan;
mod problems;
mod rows;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use crate::data::Row;
use crate::html::Document;
use crate::script::{ItemScripts, ScriptError};

pub(crate) use problems::{selector, xpath};

pub use explain::{CellExplanation, PageExplanation, RowExplanation};
pub use plan::RecordPlan;
pub use rows::EmptyReason;

/// The page that a record reads.
#[derive(Debug, Clone, Copy)]
pub struct RecordPage<'p> {
    /// The parsed HTML or XML. `None` for a page of JSON; see [`RecordPlan::needs_tree`].
    pub tree: Option<&'p Document>,
    /// The text of a page of JSON; see [`json_text`].
    pub json: Option<&'p str>,
    /// Relative addresses are resolved against this URL or path.
    pub base: &'p str,
    /// Name of the locator.
    pub locator: &'p Arc<str>,
    /// Group of the page.
    pub group: &'p Arc<str>,
    /// Address of the page.
    pub url: &'p str,
    /// Time of the load.
    pub fetched_at: Timestamp,
    /// Links followed to reach it.
    pub depth: u32,
}

/// Limits on the rows of one page.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// Rows, including the dropped ones.
    pub rows_max: usize,
    /// Bytes of all cells. Blocks may be nested, and each contains the text of its inner blocks.
    pub bytes_max: usize,
    /// `None` means no time limit.
    pub deadline: Option<Instant>,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { rows_max: 100_000, bytes_max: 256 << 20, deadline: None }
    }
}

/// The rows of a page, and what was wrong with its values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extraction {
    /// Rows in document order of their blocks.
    pub rows: Vec<Row>,
    /// The first 100 values that did not fit.
    pub misfits: Vec<Misfit>,
    /// Counts for each field, in the order of the definition.
    pub fields: Vec<FieldCounts>,
}

/// Counts for one field on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// Rows with a value in this field.
    pub filled: u32,
    /// Values that did not fit.
    pub misfits: u32,
    /// Rows dropped because this required field is empty.
    pub dropped: u32,
}

/// A value that does not fit its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Index among the fields of the record.
    pub field: usize,
    /// The value on the page, cut after 80 characters.
    pub value: String,
    /// Why it does not fit: `is not a decimal number`.
    pub why: String,
}

/// Why a page has no rows at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A query exceeded its limits on this page.
    #[error("{place}: query `{query}`: {message}")]
    Query {
        /// `block`, or the field.
        place: String,
        /// The query, as written in the definition.
        query: String,
        /// The cause.
        message: String,
    },
    /// A script exceeded its time or memory.
    #[error("field `{field}`: {message}")]
    Script {
        /// The field.
        field: String,
        /// The cause.
        message: String,
    },
    /// The page has more rows than allowed.
    #[error("more than {0} rows (setting `parser.rows.max`)")]
    TooManyRows(usize),
    /// The cells have more bytes than allowed.
    #[error("the rows of this page have more than {0} bytes, because blocks are nested")]
    TooManyBytes(usize),
    /// The deadline passed.
    #[error("ran out of time after {0} rows (setting `parser.time.max`)")]
    OutOfTime(usize),
}

/// Runs the scripts of fields on one page.
pub trait FieldScripts {
    /// Evaluates an expression that reads the text of the field as `value`. Returns `None` for
    /// null and undefined.
    fn eval(&mut self, expression: &str, value: &str) -> Result<Option<String>, ScriptError>;
}

impl FieldScripts for ItemScripts {
    fn eval(&mut self, expression: &str, value: &str) -> Result<Option<String>, ScriptError> {
        self.eval_value(expression, value)
    }
}

/// Whether a page is XML and not HTML, by its content type or by an `<?xml` at its start.
pub fn is_xml(content_type: Option<&str>, body: &[u8]) -> bool {
    let kind = content_type.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    let is_xml = match kind.to_ascii_lowercase().as_str() {
        "application/xml" | "text/xml" => true,
        kind if kind.ends_with("+xml") => kind != "application/xhtml+xml",
        _ => body.get(..5).is_some_and(|first| first.eq_ignore_ascii_case(b"<?xml")),
    };
    if !is_xml {
        return false;
    }
    let head = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    !head.contains("<html") && !head.contains("<!doctype html")
}

/// Returns the text for [`RecordPage::json`] if the page is JSON. A content type of JSON is
/// enough; without it the whole text must be valid JSON.
pub fn json_text<'t>(content_type: Option<&str>, text: &'t str) -> Option<&'t str> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let kind = content_type.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_said = kind.ends_with("/json") || kind.ends_with("+json");
    let begins = text.starts_with(['{', '[']);
    (is_said || begins && json::Json::parse(text).is_some()).then_some(text)
}
