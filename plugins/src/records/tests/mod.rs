//! Tests with records built in code and small pages.

mod compile;
mod fields;
mod hostile;
mod json;
mod json_paths;
mod story;
mod types;

use std::sync::Arc;

use spoonbill_defs::{Field, Query, Record, Span, Text};

use super::{
    Extraction, FieldScripts, RecordError, RecordLimits, RecordPage, RecordPlan, json_text,
};
use crate::dates::DateSetup;
use crate::html::{Document, TreeLimits};
use crate::script::{ItemScripts, Limits, ScriptError};

/// Fails a test that runs a script.
pub(super) struct NoScripts;

impl FieldScripts for NoScripts {
    fn eval(&mut self, expression: &str, _: &str) -> Result<Option<String>, ScriptError> {
        panic!("no script was expected, but `{expression}`")
    }
}

pub(super) fn scripts() -> ItemScripts {
    ItemScripts::new(&crate::script::testing::page_facts(), Limits::default())
}

pub(super) fn setup() -> DateSetup {
    DateSetup { zone: jiff::tz::TimeZone::UTC, run_year: 2026 }
}

/// A text in the given line of a file.
pub(super) fn at(text: &str, line: u32) -> Text {
    let width = text.chars().count().max(1) as u32;
    Text { text: text.to_owned(), at: Span { file: 0, line, column: 5, width } }
}

pub(super) fn css(selector: &str) -> Query {
    Query { css: Some(Text::new(selector)), ..Query::default() }
}

pub(super) fn xpath(path: &str) -> Query {
    Query { xpath: Some(Text::new(path)), ..Query::default() }
}

pub(super) fn json(path: &str) -> Query {
    Query { json: Some(Text::new(path)), ..Query::default() }
}

pub(super) fn ld(path: &str) -> Query {
    Query { jsonld: Some(Text::new(path)), ..Query::default() }
}

pub(super) fn with(query: Query, attribute: &str) -> Query {
    Query { attribute: Some(Text::new(attribute)), ..query }
}

pub(super) fn field(query: Query) -> Field {
    Field { name: Text::new("x"), queries: vec![query], ..Field::default() }
}

pub(super) fn record(block: Option<Query>, fields: Vec<Field>) -> Record {
    Record { block, columns: Vec::new(), fields }
}

#[track_caller]
pub(super) fn plan(record: &Record) -> RecordPlan {
    RecordPlan::compile(record, &setup()).unwrap()
}

/// Calls a function with a page of JSON or HTML.
pub(super) fn on_page<T>(text: &str, call: impl FnOnce(&RecordPage<'_>) -> T) -> T {
    let (locator, group): (Arc<str>, Arc<str>) = ("acme".into(), "books".into());
    let json = json_text(None, text);
    let tree = Document::parse(text, TreeLimits::default()).unwrap();
    call(&RecordPage {
        tree: json.is_none().then_some(&tree),
        json,
        base: "https://shop.example/books/page.html",
        locator: &locator,
        group: &group,
        url: "https://shop.example/b",
        fetched_at: "2026-05-06T07:08:09.5Z".parse().unwrap(),
        depth: 2,
    })
}

pub(super) fn try_extract(record: &Record, page: &str) -> Result<Extraction, RecordError> {
    let limits = RecordLimits::default();
    on_page(page, |page| plan(record).extract(page, &mut scripts(), &limits))
}

#[track_caller]
pub(super) fn extract(record: &Record, page: &str) -> Extraction {
    try_extract(record, page).unwrap()
}

/// The rows as texts, with `|` between cells and `~` for an empty cell.
pub(super) fn lines(made: &Extraction) -> Vec<String> {
    let line = |row: &crate::data::Row| {
        let cells: Vec<_> =
            row.axes.iter().map(|axis| axis.value.as_deref().unwrap_or("~")).collect();
        cells.join("|")
    };
    made.rows.iter().map(line).collect()
}

/// The value of one field on a whole page.
#[track_caller]
pub(super) fn value(field: Field, page: &str) -> Option<String> {
    extract(&record(None, vec![field]), page).rows[0].axes[0].value.clone()
}

#[track_caller]
pub(super) fn check(field: Field, page: &str, expect: &str) {
    assert_eq!(value(field, page).as_deref().unwrap_or("~"), expect);
}
