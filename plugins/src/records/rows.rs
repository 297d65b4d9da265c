//! Computes the value of one field in one block.

use std::fmt;

use super::extract::PageExtractor;
use super::find::{QueryResult, RecordBlock};
use super::plan::FieldPlan;
use super::value::{ValueMisfit, fit, shown, trim};
use super::{FieldScripts, RecordError};
use crate::html::NodeId;
use crate::script::ScriptError;

/// Why a cell is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmptyReason {
    /// No query matched.
    NoMatch,
    /// The match has no text.
    Blank,
    /// The match is not JSON.
    NotJson,
    /// The JSON path selects nothing.
    NotInJson,
    /// The regex did not match this text.
    NoRegexMatch(String),
    /// The script returned null or undefined.
    ScriptGaveNothing,
    /// The value does not fit.
    Misfit {
        /// The value on the page, cut after 80 characters.
        value: String,
        /// Why it does not fit.
        why: String,
    },
}

impl fmt::Display for EmptyReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMatch => out.write_str("nothing matches"),
            Self::Blank => out.write_str("the match is blank"),
            Self::NotJson => out.write_str("the match is not JSON"),
            Self::NotInJson => out.write_str("the JSON path selects nothing"),
            Self::NoRegexMatch(text) => write!(out, "the regex does not match `{text}`"),
            Self::ScriptGaveNothing => out.write_str("the script returns no value"),
            Self::Misfit { value, why } => write!(out, "`{value}` {why}"),
        }
    }
}

/// A cell with the facts that explain it.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) value: Option<String>,
    /// Why no value was found. Also set for a default, and if one of several matches has none.
    pub(super) why: Option<EmptyReason>,
    pub(super) is_default: bool,
    /// Values that do not fit, with their reasons.
    pub(super) misfits: Vec<(String, String)>,
    /// Index of the query that found the value.
    pub(super) query: Option<usize>,
    pub(super) matches: usize,
    pub(super) node: Option<NodeId>,
}

impl Cell {
    /// Adds the value of one match.
    fn take(&mut self, value: Result<String, EmptyReason>, joiner: &str) {
        match (value, &mut self.value) {
            (Ok(value), Some(joined)) => joined.extend([joiner, &value]),
            (Ok(value), none) => *none = Some(value),
            (Err(why), _) => {
                if let EmptyReason::Misfit { value, why } = &why {
                    self.misfits.push((value.clone(), why.clone()));
                }
                self.why.get_or_insert(why);
            }
        }
    }
}

impl PageExtractor<'_> {
    pub(super) fn cell(
        &mut self,
        field: &FieldPlan,
        block: &RecordBlock,
        scripts: &mut dyn FieldScripts,
    ) -> Result<Cell, RecordError> {
        let mut cell = Cell::default();
        let texts = if let Some(value) = &field.value {
            Ok(vec![value.to_string()])
        } else {
            self.look(field, block, &mut cell)?
        };
        // Each match is converted alone, and the values that fit are joined.
        let joiner = field.all.as_deref().unwrap_or_default();
        match texts {
            Ok(texts) => {
                for text in texts {
                    cell.take(self.shape(field, Ok(text), scripts)?, joiner);
                }
            }
            Err(why) => cell.take(self.shape(field, Err(why), scripts)?, joiner),
        }
        if cell.value.is_none() {
            cell.is_default = field.default.is_some();
            cell.value = field.default.as_deref().map(str::to_owned);
        } else if cell.misfits.is_empty() {
            // A match without a value does not matter if another one has a value.
            cell.why = None;
        }
        Ok(cell)
    }

    /// Applies regex, script and type to one text. The outer error fails the page.
    fn shape(
        &self,
        field: &FieldPlan,
        text: Result<String, EmptyReason>,
        scripts: &mut dyn FieldScripts,
    ) -> Result<Result<String, EmptyReason>, RecordError> {
        let alone = text.is_err() || field.all.is_none();
        let value = match text.and_then(|text| by_regex(field, text)) {
            Ok(text) => by_script(field, text, scripts)?,
            // A script may compute a value without a text, but not for one match of several.
            Err(why) if field.script.is_some() && alone => {
                match by_script(field, String::new(), scripts)? {
                    Err(EmptyReason::ScriptGaveNothing) => Err(why),
                    other => other,
                }
            }
            Err(why) => Err(why),
        };
        Ok(value.map(trim).and_then(|text| {
            if text.is_empty() {
                return Err(EmptyReason::Blank);
            }
            fit(&field.form, text, &self.base).map_err(|ValueMisfit { value, why }| {
                EmptyReason::Misfit { value: shown(&value), why: why.into_owned() }
            })
        }))
    }

    /// Tries the queries in order until one finds a text.
    fn look(
        &mut self,
        field: &FieldPlan,
        block: &RecordBlock,
        cell: &mut Cell,
    ) -> Result<Result<Vec<String>, EmptyReason>, RecordError> {
        let mut first_why = None;
        for (place, query) in field.queries.iter().enumerate() {
            let found = self.find(query, block, field.text, field.all.is_some());
            let found = found.map_err(|message| RecordError::Query {
                place: format!("field `{}`", field.name),
                query: query.shown.to_string(),
                message,
            })?;
            let QueryResult { texts, node, matches, why } = found;
            if let Some(why) = why {
                first_why.get_or_insert(why);
                continue;
            }
            (cell.query, cell.matches, cell.node) = (Some(place), matches, node);
            return Ok(Ok(texts));
        }
        Ok(Err(first_why.unwrap_or(EmptyReason::NoMatch)))
    }
}

fn by_regex(field: &FieldPlan, text: String) -> Result<String, EmptyReason> {
    let Some(regex) = &field.regex else {
        return Ok(text);
    };
    match regex.find(&text) {
        Ok(Some(found)) => Ok(found.to_owned()),
        Ok(None) => Err(EmptyReason::NoRegexMatch(shown(&text))),
        Err(error) => Err(EmptyReason::Misfit {
            value: shown(&text),
            why: format!("makes the regex give up: {error}"),
        }),
    }
}

/// The outer error fails the page, and the inner one leaves the cell empty.
fn by_script(
    field: &FieldPlan,
    text: String,
    scripts: &mut dyn FieldScripts,
) -> Result<Result<String, EmptyReason>, RecordError> {
    let Some(script) = &field.script else {
        return Ok(Ok(text));
    };
    match scripts.eval(script, &text) {
        Ok(Some(value)) => Ok(Ok(value)),
        Ok(None) => Ok(Err(EmptyReason::ScriptGaveNothing)),
        // A script that throws on one text must not fail the whole page.
        Err(error @ ScriptError::Thrown { .. }) => {
            let why = format!("makes the script fail: {error}");
            Ok(Err(EmptyReason::Misfit { value: shown(&text), why }))
        }
        Err(error) => {
            Err(RecordError::Script { field: field.name.to_string(), message: error.to_string() })
        }
    }
}
