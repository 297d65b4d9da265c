//! Records and what is expected of them, ready.

use std::sync::Arc;

use spoonbill_defs::DataDef;
use spoonbill_plugins::java_regex::{Regex, compile_whole};
use spoonbill_plugins::parser::DataDefPlan;
use spoonbill_plugins::records::RecordPlan;

use crate::plan::prepare::PlanCompiler;

/// What a task takes from a page, compiled.
#[derive(Debug, Clone)]
pub(super) enum Takes {
    /// Items, dims and facts.
    Items(Arc<DataDefPlan>),
    /// Rows with named columns.
    Record(Arc<RecordPlan>),
}

impl Takes {
    /// The names of its columns, if they have any.
    pub(super) fn columns(&self) -> Option<Vec<&str>> {
        match self {
            Self::Items(_) => None,
            Self::Record(plan) => Some(plan.column_names()),
        }
    }
}

/// What is expected of the rows of a data definition, ready.
#[derive(Debug, Clone)]
pub(crate) struct Expectations {
    /// Name of the data definition.
    pub data_def: String,
    /// Query of its block, as written.
    pub block: Option<String>,
    /// Rows, at least.
    pub min_rows: Option<u64>,
    /// Rows, at most.
    pub max_rows: Option<u64>,
    /// What is expected of fields.
    pub fields: Vec<FieldExpectation>,
    /// Fields without which a row is dropped, with their queries as written.
    pub required: Vec<(String, String)>,
}

/// What is expected of one field.
#[derive(Debug, Clone)]
pub(crate) struct FieldExpectation {
    /// Its name.
    pub name: String,
    /// Its queries, as written.
    pub query: String,
    /// Share of rows with a value, in millionths, at least.
    pub fill: Option<u32>,
    /// What every value has to be.
    pub pattern: Option<Arc<Regex>>,
}

impl PlanCompiler<'_> {
    /// Compiles what a task takes; `None` after a problem.
    pub(super) fn takes(&mut self, def: &DataDef) -> Option<Takes> {
        if let Some(record) = &def.record {
            let plan = RecordPlan::compile(record, &self.setup);
            let plan = self.options(plan);
            self.tried.insert(def.name.text.clone());
            return plan.map(|plan| Takes::Record(Arc::new(plan)));
        }
        match DataDefPlan::compile(def) {
            Ok(plan) => Some(Takes::Items(Arc::new(plan))),
            Err(problems) => {
                for problem in problems {
                    let at = if problem.at.line == 0 { def.name.at } else { problem.at };
                    self.error(at, problem.message, None);
                }
                None
            }
        }
    }

    /// Compiles what is expected of a definition; `None` when nothing is, or after a problem.
    pub(super) fn expectations(
        &mut self,
        def: &DataDef,
        takes: Option<&Takes>,
    ) -> Option<Arc<Expectations>> {
        let expect = def.expect.as_ref()?;
        let record = def.record.as_ref()?;
        let mut fields = Vec::new();
        for (place, field) in record.fields.iter().enumerate() {
            let fill = expect.fill.iter().find(|(name, _)| *name == field.name);
            let pattern = expect.pattern.iter().find(|(name, _)| *name == field.name);
            let pattern = pattern.and_then(|(_, text)| match compile_whole(&text.text) {
                Ok(pattern) => Some(Arc::new(pattern)),
                Err(error) => {
                    self.error(text.at, format!("bad pattern: {error}"), None);
                    None
                }
            });
            if fill.is_none() && pattern.is_none() {
                continue;
            }
            let query = match takes {
                Some(Takes::Record(plan)) => plan.field_query(place),
                _ => String::new(),
            };
            let fill = fill.map(|(_, share)| *share);
            fields.push(FieldExpectation { name: field.name.text.clone(), query, fill, pattern });
        }
        let required = record.fields.iter().enumerate().filter(|(_, field)| field.required);
        let required = required.map(|(place, field)| {
            let query = match takes {
                Some(Takes::Record(plan)) => plan.field_query(place),
                _ => String::new(),
            };
            (field.name.text.clone(), query)
        });
        let block = record.block.as_ref().and_then(|block| block.shown());
        Some(Arc::new(Expectations {
            data_def: def.name.text.clone(),
            block: block.map(|text| text.text.clone()),
            min_rows: expect.min_rows,
            max_rows: expect.max_rows,
            fields,
            required: required.collect(),
        }))
    }
}
