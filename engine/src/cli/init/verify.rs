//! Reads a definition back and tries it on its page, as a run would.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use spoonbill_defs::{DefsOptions, from_str};
use spoonbill_plugins::dates::DateSetup;
use spoonbill_plugins::html::Document;
use spoonbill_plugins::propose::ProposedDefinition;
use spoonbill_plugins::records::{FieldScripts, RecordLimits, RecordPage, RecordPlan};
use spoonbill_plugins::script::ScriptError;

/// The page on which a definition is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial<'a> {
    /// The tree of the page.
    pub document: &'a Document,
    /// The base of relative addresses.
    pub base: &'a str,
}

/// Checks a definition. Returns the first problem.
pub(crate) fn verify(
    text: &str,
    proposal: &ProposedDefinition,
    trial: Trial<'_>,
) -> Result<(), String> {
    let loaded = from_str("proposal.yml", text, &DefsOptions::default()).map_err(|problems| {
        problems.0.first().map_or_else(String::new, |first| first.message.clone())
    })?;
    let record = loaded.defs.data_defs.iter().find_map(|def| def.record.as_ref());
    let record = record.ok_or("it has no fields")?;
    let setup = DateSetup { zone: TimeZone::UTC, run_year: 2000 };
    let plan = RecordPlan::compile(record, &setup).map_err(|problems| {
        problems.first().map_or_else(String::new, |first| first.message.clone())
    })?;
    let name: Arc<str> = "page".into();
    let page = RecordPage {
        tree: Some(trial.document),
        json: None,
        base: trial.base,
        locator: &name,
        group: &name,
        url: trial.base,
        fetched_at: Timestamp::UNIX_EPOCH,
        depth: 0,
    };
    let given = plan
        .extract(&page, &mut NoScripts, &RecordLimits::default())
        .map_err(|error| error.to_string())?;
    if given.rows.len() != proposal.rows {
        return Err(format!("it gives {} rows instead of {}", given.rows.len(), proposal.rows));
    }
    for (at, column) in proposal.columns.iter().enumerate() {
        for (row, value) in given.rows.iter().zip(&column.values) {
            let got = row.axes.get(at).and_then(|axis| axis.value.as_deref());
            if got != value.as_deref() {
                let (got, wanted) = (got.unwrap_or_default(), value.as_deref().unwrap_or_default());
                return Err(format!(
                    "column `{}` gives `{got}` instead of `{wanted}`",
                    column.name
                ));
            }
        }
    }
    Ok(())
}

/// A proposal has no scripts.
struct NoScripts;

impl FieldScripts for NoScripts {
    fn eval(&mut self, _: &str, _: &str) -> Result<Option<String>, ScriptError> {
        Ok(None)
    }
}
