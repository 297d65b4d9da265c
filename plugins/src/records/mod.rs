//! Records: rows with named columns, taken from blocks of a page.
//!
//! A [`RecordPlan`] is compiled once from its definition and then used on every page, by any
//! thread. Values pass through queries, JSON path, regex, script and type in that order. Nothing
//! here does I/O or recurses with the depth of a page, and what a page says never fails the page:
//! a value that does not fit is told as a [`Misfit`].

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

pub use explain::{CellStory, RowStory, Story};
pub use plan::RecordPlan;
pub use rows::Why;

/// One page, as a record wants it.
#[derive(Debug, Clone, Copy)]
pub struct RecordPage<'p> {
    /// The page as browsers read it; absent for a page that is JSON alone. See
    /// [`RecordPlan::needs_tree`].
    pub tree: Option<&'p Document>,
    /// The text of the page when it is JSON; see [`json_text`].
    pub json: Option<&'p str>,
    /// What addresses are resolved against: a URL or a plain path.
    pub base: &'p str,
    /// Name of the locator.
    pub locator: &'p Arc<str>,
    /// Group of the page.
    pub group: &'p Arc<str>,
    /// Address of the page.
    pub url: &'p str,
    /// When it was loaded.
    pub fetched_at: Timestamp,
    /// Links followed to reach it.
    pub depth: u32,
}

/// Bounds on what one page may give.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// Rows, the dropped ones too.
    pub rows_max: usize,
    /// Bytes of all cells: blocks may lie in each other, and each holds the text of all inside.
    pub bytes_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { rows_max: 100_000, bytes_max: 256 << 20, deadline: None }
    }
}

/// What a page gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extraction {
    /// Rows of all columns, in document order of their blocks.
    pub rows: Vec<Row>,
    /// The first values that did not fit; bounded.
    pub misfits: Vec<Misfit>,
    /// By field: what befell it.
    pub fields: Vec<FieldCounts>,
}

/// What befell one field on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// Rows given in which it has a value.
    pub filled: u32,
    /// Values that did not fit.
    pub misfits: u32,
    /// Rows dropped for want of it.
    pub dropped: u32,
}

/// A value that does not fit its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Place among the fields of the record.
    pub field: usize,
    /// The value as found, cut if it is long.
    pub value: String,
    /// Why it does not fit: `is no decimal number`.
    pub why: String,
}

/// Why a page gave no rows at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A query that gave up on the page.
    #[error("{place}: query `{query}`: {message}")]
    Query {
        /// `block`, or the field.
        place: String,
        /// The query as written.
        query: String,
        /// What went wrong.
        message: String,
    },
    /// A script that used up what it may use.
    #[error("field `{field}`: {message}")]
    Script {
        /// The field.
        field: String,
        /// What went wrong.
        message: String,
    },
    /// More rows than allowed.
    #[error("more than {0} rows (setting `parser.rows.max`)")]
    TooManyRows(usize),
    /// More text than allowed.
    #[error("the rows of this page have more than {0} bytes: blocks lie in each other")]
    TooManyBytes(usize),
    /// The deadline passed.
    #[error("out of time after {0} rows (setting `parser.time.max`)")]
    OutOfTime(usize),
}

/// Evaluates the scripts of fields on one page.
pub trait FieldScripts {
    /// The value of an expression in which `value` is the text found; none when it is null or
    /// undefined.
    fn eval(&mut self, expression: &str, value: &str) -> Result<Option<String>, ScriptError>;
}

impl FieldScripts for ItemScripts {
    fn eval(&mut self, expression: &str, value: &str) -> Result<Option<String>, ScriptError> {
        self.eval_value(expression, value)
    }
}

/// Whether a page is XML and not HTML: by its content type, or because it begins as XML does.
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

/// The text to give as [`RecordPage::json`], if the page is JSON: by its content type, or because
/// it begins as JSON does and is.
pub fn json_text<'t>(content_type: Option<&str>, text: &'t str) -> Option<&'t str> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let kind = content_type.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_said = kind.ends_with("/json") || kind.ends_with("+json");
    let begins = text.starts_with(['{', '[']);
    (is_said || begins && json::Json::parse(text).is_some()).then_some(text)
}
