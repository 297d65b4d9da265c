//! The value of one field in one block.

use std::fmt;

use super::extract::Session;
use super::find::{Found, Spot};
use super::plan::FieldPlan;
use super::value::{Misfits, fit, shown, trim};
use super::{FieldScripts, RecordError};
use crate::html::NodeId;
use crate::script::ScriptError;

/// Why a cell is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// No query matched.
    NoMatch,
    /// Something matched, with nothing to read in it.
    Blank,
    /// What the JSON path looks into is not JSON.
    NotJson,
    /// The JSON path found nothing.
    NotInJson,
    /// The regex did not match this text.
    NoRegexMatch(String),
    /// The script gave nothing.
    ScriptGaveNothing,
    /// The value does not fit.
    Misfit {
        /// The value as found, cut if it is long.
        value: String,
        /// Why it does not fit.
        why: String,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMatch => out.write_str("nothing matches"),
            Self::Blank => out.write_str("what matches is blank"),
            Self::NotJson => out.write_str("what matches is not JSON"),
            Self::NotInJson => out.write_str("the JSON path finds nothing"),
            Self::NoRegexMatch(text) => write!(out, "the regex does not match `{text}`"),
            Self::ScriptGaveNothing => out.write_str("the script gives nothing"),
            Self::Misfit { value, why } => write!(out, "`{value}` {why}"),
        }
    }
}

/// A cell, and how it came to be.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) value: Option<String>,
    /// Why nothing was found; also when the default stands in, or for one match of many.
    pub(super) why: Option<Why>,
    pub(super) is_default: bool,
    /// Values that do not fit, each with the reason.
    pub(super) misfits: Vec<(String, String)>,
    /// The query that counted.
    pub(super) query: Option<usize>,
    pub(super) matches: usize,
    pub(super) node: Option<NodeId>,
}

impl Cell {
    /// Adds what became of one match.
    fn take(&mut self, value: Result<String, Why>, joiner: &str) {
        match (value, &mut self.value) {
            (Ok(value), Some(joined)) => joined.extend([joiner, &value]),
            (Ok(value), none) => *none = Some(value),
            (Err(why), _) => {
                if let Why::Misfit { value, why } = &why {
                    self.misfits.push((value.clone(), why.clone()));
                }
                self.why.get_or_insert(why);
            }
        }
    }
}

impl Session<'_> {
    pub(super) fn cell(
        &mut self,
        field: &FieldPlan,
        spot: &Spot,
        scripts: &mut dyn FieldScripts,
    ) -> Result<Cell, RecordError> {
        let mut cell = Cell::default();
        let texts = if let Some(value) = &field.value {
            Ok(vec![value.to_string()])
        } else {
            self.look(field, spot, &mut cell)?
        };
        // Every match is brought into form by itself, and what fits is joined.
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
            // What one match lacks is no matter where another has it.
            cell.why = None;
        }
        Ok(cell)
    }

    /// One text through regex, script and type; the outer error ends the page.
    fn shape(
        &self,
        field: &FieldPlan,
        text: Result<String, Why>,
        scripts: &mut dyn FieldScripts,
    ) -> Result<Result<String, Why>, RecordError> {
        let alone = text.is_err() || field.all.is_none();
        let value = match text.and_then(|text| by_regex(field, text)) {
            Ok(text) => by_script(field, text, scripts)?,
            // A script may make something of nothing, but not of one match of many.
            Err(why) if field.script.is_some() && alone => {
                match by_script(field, String::new(), scripts)? {
                    Err(Why::ScriptGaveNothing) => Err(why),
                    other => other,
                }
            }
            Err(why) => Err(why),
        };
        Ok(value.map(trim).and_then(|text| {
            if text.is_empty() {
                return Err(Why::Blank);
            }
            fit(&field.form, text, &self.base).map_err(|Misfits { value, why }| Why::Misfit {
                value: shown(&value),
                why: why.into_owned(),
            })
        }))
    }

    /// Tries the queries in order.
    fn look(
        &mut self,
        field: &FieldPlan,
        spot: &Spot,
        cell: &mut Cell,
    ) -> Result<Result<Vec<String>, Why>, RecordError> {
        let mut first_why = None;
        for (place, query) in field.queries.iter().enumerate() {
            let found = self.find(query, spot, field.text, field.all.is_some());
            let found = found.map_err(|message| RecordError::Query {
                place: format!("field `{}`", field.name),
                query: query.shown.to_string(),
                message,
            })?;
            let Found { texts, node, matches, why } = found;
            if let Some(why) = why {
                first_why.get_or_insert(why);
                continue;
            }
            (cell.query, cell.matches, cell.node) = (Some(place), matches, node);
            return Ok(Ok(texts));
        }
        Ok(Err(first_why.unwrap_or(Why::NoMatch)))
    }
}

fn by_regex(field: &FieldPlan, text: String) -> Result<String, Why> {
    let Some(regex) = &field.regex else {
        return Ok(text);
    };
    match regex.find(&text) {
        Ok(Some(found)) => Ok(found.to_owned()),
        Ok(None) => Err(Why::NoRegexMatch(shown(&text))),
        Err(error) => Err(Why::Misfit {
            value: shown(&text),
            why: format!("makes the regex give up: {error}"),
        }),
    }
}

/// The outer error ends the page, the inner one empties the cell.
fn by_script(
    field: &FieldPlan,
    text: String,
    scripts: &mut dyn FieldScripts,
) -> Result<Result<String, Why>, RecordError> {
    let Some(script) = &field.script else {
        return Ok(Ok(text));
    };
    match scripts.eval(script, &text) {
        Ok(Some(value)) => Ok(Ok(value)),
        Ok(None) => Ok(Err(Why::ScriptGaveNothing)),
        // One odd text must not cost the rows around it.
        Err(error @ ScriptError::Thrown { .. }) => {
            let why = format!("makes the script fail: {error}");
            Ok(Err(Why::Misfit { value: shown(&text), why }))
        }
        Err(error) => {
            Err(RecordError::Script { field: field.name.to_string(), message: error.to_string() })
        }
    }
}
