//! Compiles records, so that selectors, paths, patterns and scripts are parsed once.

use std::sync::Arc;

use spoonbill_defs::{Field, FieldType, PageColumn, Query, Record, Text, TextKind};

use super::cut::FieldRegex;
use super::dates::DateForm;
use super::json::JsonPath;
use super::jsonld::LdPath;
use super::number::NumberForm;
use super::problems::RecordProblems;
use crate::css::Selector;
use crate::data::CellType;
use crate::dates::DateSetup;
use crate::options::OptionProblem;
use crate::xpath::XPath;

/// A compiled record.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    pub(super) block: Option<QueryPlan>,
    pub(super) columns: Vec<PageColumn>,
    pub(super) fields: Vec<FieldPlan>,
    /// Names of all columns, starting with the standard ones.
    pub(super) names: Vec<Arc<str>>,
}

/// A compiled query.
#[derive(Debug, Clone)]
pub(super) struct QueryPlan {
    pub(super) place: QueryTarget,
    /// Attribute to read instead of the text, in lower case.
    pub(super) attribute: Option<Box<str>>,
    pub(super) json: Option<JsonPath>,
    /// The query as written, for messages.
    pub(super) shown: Box<str>,
}

#[derive(Debug, Clone)]
pub(super) enum QueryTarget {
    /// The block itself.
    Here,
    Css(Selector),
    Xpath(XPath),
    JsonLd(LdPath),
}

#[derive(Debug, Clone)]
pub(super) struct FieldPlan {
    pub(super) name: Arc<str>,
    pub(super) queries: Vec<QueryPlan>,
    pub(super) value: Option<Box<str>>,
    pub(super) text: TextKind,
    pub(super) all: Option<Box<str>>,
    pub(super) regex: Option<FieldRegex>,
    pub(super) script: Option<Box<str>>,
    pub(super) form: FieldFormat,
    pub(super) default: Option<Box<str>>,
    pub(super) required: bool,
}

/// The type of a field with its options.
#[derive(Debug, Clone)]
pub(super) enum FieldFormat {
    Text,
    Number(NumberForm),
    /// The texts that mean true. Empty means `true`, `yes`, `on`, `y` and `1`.
    Boolean(Vec<Box<str>>),
    Date(DateForm),
    Url,
}

impl RecordPlan {
    /// Compiles a record, or returns all its problems with their positions.
    ///
    /// ```
    /// use spoonbill_defs::{Field, Query, Record, Text};
    /// use spoonbill_plugins::dates::DateSetup;
    /// use spoonbill_plugins::records::RecordPlan;
    ///
    /// let setup = DateSetup { zone: jiff::tz::TimeZone::UTC, run_year: 2026 };
    /// let query = Query { css: Some(Text::new("//h1")), ..Query::default() };
    /// let title = Field { name: Text::new("title"), queries: vec![query], ..Field::default() };
    /// let record = Record { fields: vec![title], ..Record::default() };
    /// let problems = RecordPlan::compile(&record, &setup).unwrap_err();
    /// assert_eq!(problems[0].message, "field `title`: `//h1` is XPath, but a selector is needed");
    /// ```
    pub fn compile(record: &Record, dates: &DateSetup) -> Result<Self, Vec<OptionProblem>> {
        let mut problems = RecordProblems::default();
        let block = record.block.as_ref().map(|query| problems.query("block", query));
        let json_block = record.block.as_ref().is_some_and(|query| query.json.is_some());
        let fields: Vec<_> =
            record.fields.iter().map(|field| problems.field(field, json_block, dates)).collect();
        problems.names(record);
        if !problems.found.is_empty() {
            return Err(problems.found);
        }
        let fields: Vec<FieldPlan> = fields.into_iter().flatten().collect();
        let standard = record.columns.iter().map(|column| Arc::from(column.name()));
        let names = standard.chain(fields.iter().map(|field| Arc::clone(&field.name))).collect();
        Ok(Self { block: block.flatten(), columns: record.columns.clone(), fields, names })
    }

    /// Names of all columns in the order of the output, starting with the standard ones.
    pub fn column_names(&self) -> Vec<&str> {
        self.names.iter().map(|name| &**name).collect()
    }

    /// Types of all columns, in the order of the output.
    pub fn column_types(&self) -> Vec<CellType> {
        let standard = self.columns.iter().map(|column| match column {
            PageColumn::Depth => CellType::Number,
            _ => CellType::Text,
        });
        let own = self.fields.iter().map(|field| match field.form {
            // Several values in one cell are text.
            _ if field.all.is_some() => CellType::Text,
            FieldFormat::Number(_) => CellType::Number,
            FieldFormat::Boolean(_) => CellType::Boolean,
            FieldFormat::Text | FieldFormat::Date(_) | FieldFormat::Url => CellType::Text,
        });
        standard.chain(own).collect()
    }

    /// Names of the fields, by index.
    pub fn field_names(&self) -> Vec<&str> {
        self.fields.iter().map(|field| &*field.name).collect()
    }

    /// The query of the block as written, if it has one.
    pub fn block_query(&self) -> Option<&str> {
        self.block.as_ref().map(|query| &*query.shown)
    }

    /// The queries of a field as written, with commas between them.
    pub fn field_query(&self, field: usize) -> String {
        let queries = self.fields.get(field).map_or(&[][..], |field| &field.queries);
        queries.iter().map(|query| &*query.shown).collect::<Vec<_>>().join(", ")
    }

    /// Whether the record needs the parsed HTML or XML of a page, and not only its JSON.
    pub fn needs_tree(&self) -> bool {
        let json_block = self
            .block
            .as_ref()
            .is_some_and(|block| block.json.is_some() && matches!(block.place, QueryTarget::Here));
        let looks = |query: &QueryPlan| match query.place {
            QueryTarget::Here => query.json.is_none() && !json_block,
            QueryTarget::Css(_) | QueryTarget::Xpath(_) | QueryTarget::JsonLd(_) => true,
        };
        let queries = self.fields.iter().flat_map(|field| &field.queries);
        queries.chain(&self.block).any(looks)
    }
}

impl RecordProblems {
    fn field(&mut self, field: &Field, json_block: bool, dates: &DateSetup) -> Option<FieldPlan> {
        let before = self.found.len();
        let place = format!("field `{}`", field.name.text);
        let queries: Vec<_> =
            field.queries.iter().filter_map(|query| self.query(&place, query)).collect();
        if field.queries.is_empty() && field.value.is_none() && field.script.is_none() {
            self.nothing_to_look_for(field, json_block);
        }
        let form = self.form(&place, &field.kind, dates);
        let whole = before == self.found.len();
        if let (Some(text), true) = (&field.default, whole) {
            self.constant(&place, "default", text, &form);
        }
        let untouched = field.regex.is_none() && field.script.is_none();
        if let (Some(text), true) = (&field.value, whole && untouched) {
            self.constant(&place, "value", text, &form);
        }
        let plan = FieldPlan {
            name: field.name.text.as_str().into(),
            queries,
            value: boxed(field.value.as_ref()),
            text: field.text,
            all: boxed(field.all.as_ref()),
            regex: field.regex.as_ref().and_then(|text| self.regex(&place, text)),
            script: field.script.as_ref().and_then(|text| self.script(&place, text)),
            form,
            default: boxed(field.default.as_ref()),
            required: field.required,
        };
        (self.found.len() == before).then_some(plan)
    }

    fn query(&mut self, place: &str, query: &Query) -> Option<QueryPlan> {
        let before = self.found.len();
        let kinds = [&query.css, &query.xpath, &query.jsonld];
        if let [_, second, ..] = kinds.into_iter().flatten().collect::<Vec<_>>()[..] {
            self.two_queries(place, second);
        }
        let found = if let Some(css) = &query.css {
            self.css(place, css)
        } else if let Some(xpath) = &query.xpath {
            self.xpath(place, xpath).map(QueryTarget::Xpath)
        } else if let Some(path) = &query.jsonld {
            self.jsonld(place, path).map(QueryTarget::JsonLd)
        } else {
            Some(QueryTarget::Here)
        };
        let json = query.json.as_ref().and_then(|path| self.json(place, path));
        let attribute = query.attribute.as_ref().and_then(|name| self.attribute(place, name));
        (self.found.len() == before).then_some(())?;
        let shown = match (query.shown(), &query.attribute) {
            (Some(text), Some(name)) if text != name => format!("{} @{}", text.text, name.text),
            (Some(text), None) => text.text.clone(),
            (_, Some(name)) => format!("@{}", name.text),
            (None, None) => ".".to_owned(),
        };
        let shown = match (&query.json, query.shown()) {
            (Some(json), Some(text)) if text != json => format!("{shown} | {}", json.text),
            _ => shown,
        };
        Some(QueryPlan { place: found?, attribute, json, shown: shown.into() })
    }

    fn form(&mut self, place: &str, kind: &FieldType, dates: &DateSetup) -> FieldFormat {
        match kind {
            FieldType::Text => FieldFormat::Text,
            FieldType::Integer(separators) => {
                FieldFormat::Number(self.number(place, separators, false))
            }
            FieldType::Decimal(separators) => {
                FieldFormat::Number(self.number(place, separators, true))
            }
            FieldType::Boolean { true_when } => {
                FieldFormat::Boolean(true_when.iter().map(|text| text.text.trim().into()).collect())
            }
            FieldType::Date { input, output } => {
                FieldFormat::Date(self.date(place, input, output.as_ref(), dates))
            }
            FieldType::Url => FieldFormat::Url,
        }
    }
}

fn boxed(text: Option<&Text>) -> Option<Box<str>> {
    text.map(|text| text.text.as_str().into())
}
