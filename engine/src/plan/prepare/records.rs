//! Compiles records and their expectations.

use std::sync::Arc;

use spoonbill_defs::DataDef;
use spoonbill_plugins::java_regex::{Regex, compile_whole};
use spoonbill_plugins::parser::DataDefPlan;
use spoonbill_plugins::records::RecordPlan;

use crate::plan::prepare::PlanCompiler;

/// The compiled data definition of a task.
#[derive(Debug, Clone)]
pub(super) enum Takes {
    /// Items, dims and facts.
    Items(Arc<DataDefPlan>),
    /// Rows with named columns.
    Record(Arc<RecordPlan>),
}

impl Takes {
    /// The names of the columns; items have none.
    pub(super) fn columns(&self) -> Option<Vec<&str>> {
        match self {
            Self::Items(_) => None,
            Self::Record(plan) => Some(plan.column_names()),
        }
    }
}

/// The compiled expectations of a data definition.
#[derive(Debug, Clone)]
pub(crate) struct Expectations {
    /// The name of the data definition.
    pub data_def: String,
    /// The query of its block, as written.
    pub block: Option<String>,
    /// The least number of rows.
    pub min_rows: Option<u64>,
    /// The greatest number of rows.
    pub max_rows: Option<u64>,
    /// The expectations of its fields.
    pub fields: Vec<FieldExpectation>,
    /// Required fields and their queries, as written. A row without such a field is dropped.
    pub required: Vec<(String, String)>,
}

/// The compiled expectations of one field.
#[derive(Debug, Clone)]
pub(crate) struct FieldExpectation {
    /// The name of the field.
    pub name: String,
    /// The queries, as written.
    pub query: String,
    /// The least share of rows with a value, in millionths.
    pub fill: Option<u32>,
    /// The pattern that each value must match.
    pub pattern: Option<Arc<Regex>>,
}

impl PlanCompiler<'_> {
    /// Compiles a data definition; `None` after a problem.
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

    /// Compiles the expectations of a definition; `None` if it has none, or after a problem.
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
