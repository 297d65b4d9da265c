//! Pages of many types. A proposal must give the right rows for all items, not only for the samples.

#![allow(clippy::needless_raw_string_hashes, clippy::format_collect, reason = "pages as they come")]

mod details;
mod lists;
mod more;
mod siblings;
mod sites;

use std::sync::Arc;

use spoonbill_defs::{Field, FieldType, Query, Record, Separators, Text, TextKind};

use super::{FieldSource, ProposedColumn, ProposedDefinition, Sample, ValueType, propose};
use crate::data::Row;
use crate::dates::DateSetup;
use crate::html::{Document, TreeLimits};
use crate::records::{FieldScripts, RecordLimits, RecordPage, RecordPlan};
use crate::script::ScriptError;

const BASE: &str = "https://shop.example/list/index.html";

fn proposal(html: &str, samples: &[&str]) -> ProposedDefinition {
    let page = Document::parse(html, TreeLimits::default()).unwrap();
    let samples: Vec<Sample> = samples.iter().map(|sample| Sample::read(sample)).collect();
    let base = url::Url::parse(BASE).unwrap();
    propose(&page, &samples, Some(&base)).unwrap()
}

/// Checks the proposed rows and the rows that a run extracts: one line for each, `|` between values.
fn check(html: &str, samples: &[&str], expect: &str) -> ProposedDefinition {
    let found = proposal(html, samples);
    let rows: Vec<String> = (0..found.rows)
        .map(|row| {
            let values = found.columns.iter().map(|column| column.values[row].clone());
            values.map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
        })
        .collect();
    let expect: Vec<&str> = expect.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(rows, expect, "\nblock {:?}\n{:#?}", found.block, queries(&found));
    assert_eq!(extracted(html, &found), expect, "\n{:#?}", queries(&found));
    found
}

/// The rows of a record with the proposed fields.
fn extracted(html: &str, found: &ProposedDefinition) -> Vec<String> {
    let css = |selector: &str| Query { css: Some(Text::new(selector)), ..Query::default() };
    let record = Record {
        block: found.json_block.as_ref().map_or_else(
            || found.block.as_deref().map(css),
            |block| Some(Query { json: Some(Text::new(&block.path)), ..css(&block.selector) }),
        ),
        columns: Vec::new(),
        fields: found.columns.iter().map(field).collect(),
    };
    let setup = DateSetup { zone: jiff::tz::TimeZone::UTC, run_year: 2026 };
    let plan = RecordPlan::compile(&record, &setup).unwrap();
    let tree = Document::parse(html, TreeLimits::default()).unwrap();
    let name: Arc<str> = "page".into();
    let page = RecordPage {
        tree: Some(&tree),
        json: None,
        base: BASE,
        locator: &name,
        group: &name,
        url: BASE,
        fetched_at: jiff::Timestamp::UNIX_EPOCH,
        depth: 0,
    };
    let given = plan.extract(&page, &mut NoScripts, &RecordLimits::default()).unwrap();
    assert!(given.misfits.is_empty(), "{:?}", given.misfits);
    let text = |row: &Row| {
        let cells =
            row.axes.iter().map(|axis| axis.value.as_deref().unwrap_or_default().to_owned());
        cells.collect::<Vec<String>>().join("|")
    };
    given.rows.iter().map(text).collect()
}

fn field(column: &ProposedColumn) -> Field {
    let text = |text: &str| Some(Text::new(text));
    let mut query =
        Query { attribute: column.query.attribute.as_deref().and_then(text), ..Query::default() };
    match &column.query.source {
        FieldSource::Itself => {}
        FieldSource::Css(selector) => query.css = text(selector),
        FieldSource::Xpath(xpath) => query.xpath = text(xpath),
        FieldSource::JsonLd(path) => query.jsonld = text(path),
        FieldSource::Json(path) => query.json = text(path),
        FieldSource::Script { selector, path } => {
            query.css = text(selector);
            query.json = text(path);
        }
    }
    let others = column.query.others.iter();
    let others = others.map(|other| Query { css: text(other), ..query.clone() });
    Field {
        name: Text::new(&column.name),
        queries: std::iter::once(query.clone()).chain(others).collect(),
        text: if column.query.is_own { TextKind::Own } else { TextKind::Whole },
        all: column.query.is_all.then(|| Text::new(", ")),
        regex: column.query.regex.as_deref().and_then(text),
        kind: match column.value_type {
            ValueType::Text => FieldType::Text,
            ValueType::Integer => FieldType::Integer(Separators::default()),
            ValueType::Decimal => FieldType::Decimal(Separators::default()),
            ValueType::Date => FieldType::Date { input: Vec::new(), output: None },
            ValueType::Url => FieldType::Url,
        },
        ..Field::default()
    }
}

struct NoScripts;

impl FieldScripts for NoScripts {
    fn eval(&mut self, _: &str, _: &str) -> Result<Option<String>, ScriptError> {
        Ok(None)
    }
}

fn queries(found: &ProposedDefinition) -> Vec<(&str, &super::FieldQuery)> {
    found.columns.iter().map(|column| (column.name.as_str(), &column.query)).collect()
}

fn names(found: &ProposedDefinition) -> Vec<&str> {
    found.columns.iter().map(|column| column.name.as_str()).collect()
}
