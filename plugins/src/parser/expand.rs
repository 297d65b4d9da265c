//! Expands a data definition to rows: nested loops over the indexes of all axes, the rightmost
//! innermost, with one row per combination.
//!
//! A value that is missing on the page ends an open range or leaves the cell empty. It never
//! discards other rows.

use std::sync::Arc;
use std::time::Instant;

use super::bound::{AxisState, has_variable};
use super::lookup::CellLookup;
use super::plan::{AxisPlan, AxisSource, DataDefPlan, RowPlan};
use super::{ParseError, Queries, Scripts, is_blank};
use crate::data::{Axis, AxisKind, Data, Row};

/// Maximum number of notes about one page; further ones repeat the same kind of problem.
const NOTES_MAX: usize = 20;

/// Where the data of a page belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandContext {
    /// Name of the locator.
    pub locator: Arc<str>,
    /// Group of the locator.
    pub group: Arc<str>,
    /// Label of the data: `locator:task:dataDef`.
    pub label: String,
}

/// The replacements for missing and blank facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactText {
    /// Whether a blank fact is replaced.
    pub blank_replace: bool,
    /// The replacement of a blank fact.
    pub blank_with: String,
    /// The replacement of a fact that was not found.
    pub not_found_with: String,
}

/// Limits on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpandLimits {
    /// Maximum number of rows of one page.
    pub rows_max: usize,
    /// Expansion stops at this time with [`ParseError::OutOfTime`]; `None` means no deadline.
    pub deadline: Option<Instant>,
}

/// The rows of a page, and notes for the author of the definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expansion {
    /// The rows.
    pub data: Data,
    /// Open ranges that ended at a missing value.
    pub notes: Vec<String>,
}

impl DataDefPlan {
    /// Expands the definition on one page.
    pub fn expand(
        &self,
        context: &ExpandContext,
        queries: &mut dyn Queries,
        scripts: &mut dyn Scripts,
        facts: &FactText,
        limits: &ExpandLimits,
    ) -> Result<Expansion, ParseError> {
        let mut walk = RowExpander {
            plan: self,
            context,
            limits,
            facts,
            lookup: CellLookup::new(queries, scripts),
            rows: Vec::new(),
            notes: Vec::new(),
            passes_ended: 0,
        };
        for row in &self.rows {
            walk.row(row)?;
        }
        Ok(Expansion {
            data: Data {
                name: context.label.clone(),
                data_def: self.name.as_ref().to_owned(),
                rows: walk.rows,
                tags: Vec::new(),
                named: false,
            },
            notes: walk.notes,
        })
    }
}

struct RowExpander<'w> {
    plan: &'w DataDefPlan,
    context: &'w ExpandContext,
    limits: &'w ExpandLimits,
    facts: &'w FactText,
    lookup: CellLookup<'w>,
    rows: Vec<Row>,
    notes: Vec<String>,
    /// How often an open range ended before a row was complete. `rows_max` limits this number too,
    /// so that the loop ends.
    passes_ended: usize,
}

impl RowExpander<'_> {
    fn row(&mut self, row: &RowPlan) -> Result<(), ParseError> {
        let mut now = row.start();
        let mut noted = vec![false; now.len()];
        let mut advanced = 0;
        // After a value contains a variable, every cell may depend on every axis. Then all are
        // evaluated for each row.
        let mut values_have_variables = false;
        loop {
            self.check_time(row, &now)?;
            let from = if values_have_variables { 0 } else { advanced.min(row.reaches_right) };
            let ended = self.evaluate(row, &mut now, from)?;
            let still = &now[from..ended.unwrap_or(now.len())];
            values_have_variables |=
                still.iter().filter_map(|axis| axis.value.as_deref()).any(has_variable);
            match ended {
                None => self.emit(row, &now)?,
                Some(axis) => self.end_pass(row, &now, axis, &mut noted)?,
            }
            match advance(row, &mut now, ended.unwrap_or(row.axes.len())) {
                Some(axis) => advanced = axis,
                None => return Ok(()),
            }
        }
    }

    /// Evaluates the axes from `from` on, from left to right. Returns the axis whose open range
    /// ends here because its value is missing; the axes after it are not evaluated.
    fn evaluate(
        &mut self,
        row: &RowPlan,
        now: &mut [AxisState],
        from: usize,
    ) -> Result<Option<usize>, ParseError> {
        for own in from..row.axes.len() {
            let axis = &row.axes[own];
            let (script, query) = match &axis.source {
                AxisSource::Constant(text) => {
                    set_text(&mut now[own].value, text);
                    continue;
                }
                AxisSource::LookedUp { script, query } => (script, query),
            };
            let found = self.lookup.look_up(row, now, script.as_ref(), query.as_deref());
            let found = found.map_err(|problem| ParseError::Item {
                data_def: self.plan.name.as_ref().to_owned(),
                item: row.heads[own].item_name.as_ref().to_owned(),
                problem: Box::new(problem),
            })?;
            let raw = found.as_deref();
            if now[own].last.is_none() {
                let Some(raw) = raw else {
                    return Ok(Some(own));
                };
                let mut breaks = axis.break_after.iter().flatten();
                if breaks.any(|end| end == raw) {
                    now[own].last = Some(now[own].index);
                }
            }
            let kind = row.heads[own].kind;
            finish(axis, kind, raw, self.facts, &mut now[own].value);
        }
        Ok(None)
    }

    fn emit(&mut self, row: &RowPlan, now: &[AxisState]) -> Result<(), ParseError> {
        if self.rows.len() >= self.limits.rows_max {
            return Err(self.too_many(row, now));
        }
        let axes = row.heads.iter().zip(now).map(|(head, now)| Axis {
            kind: head.kind,
            item_name: Arc::clone(&head.item_name),
            value: now.value.clone(),
            match_text: head.match_text.clone(),
            index: Some(now.index),
            order: head.order,
        });
        self.rows.push(Row {
            name: Arc::clone(&self.context.locator),
            group: Arc::clone(&self.context.group),
            axes: axes.collect(),
        });
        Ok(())
    }

    fn end_pass(
        &mut self,
        row: &RowPlan,
        now: &[AxisState],
        own: usize,
        noted: &mut [bool],
    ) -> Result<(), ParseError> {
        self.passes_ended += 1;
        if self.passes_ended > self.limits.rows_max {
            return Err(self.too_many(row, now));
        }
        let axis = &row.axes[own];
        let index = now[own].index;
        // Without `breakAfter`, an open range is expected to end at the first missing index.
        let expected = axis.break_after.is_none() && index > axis.first;
        if expected || std::mem::replace(&mut noted[own], true) || self.notes.len() >= NOTES_MAX {
            return Ok(());
        }
        let (plan, item) = (&self.plan.name, &row.heads[own].item_name);
        let why = if index == axis.first {
            format!("gives no rows: nothing was found at its first index {index}")
        } else {
            format!(
                "ends before index {index}, where nothing was found; none of its breakAfter values \
                 was found"
            )
        };
        self.notes.push(format!("dataDef `{plan}`: item `{item}` {why}"));
        Ok(())
    }

    fn check_time(&self, row: &RowPlan, now: &[AxisState]) -> Result<(), ParseError> {
        let Some(deadline) = self.limits.deadline else {
            return Ok(());
        };
        if Instant::now() < deadline {
            return Ok(());
        }
        let axis = widest(row, now);
        Err(ParseError::OutOfTime {
            data_def: self.plan.name.as_ref().to_owned(),
            item: row.heads[axis].item_name.as_ref().to_owned(),
            index: now[axis].index,
            rows: self.rows.len(),
        })
    }

    fn too_many(&self, row: &RowPlan, now: &[AxisState]) -> ParseError {
        ParseError::TooManyRows {
            data_def: self.plan.name.as_ref().to_owned(),
            item: row.heads[widest(row, now)].item_name.as_ref().to_owned(),
            rows_max: self.limits.rows_max,
        }
    }
}

/// The axis named in errors about too many rows: the open axis with the most indexes, else the
/// widest.
fn widest(row: &RowPlan, now: &[AxisState]) -> usize {
    let width = |own: &usize| {
        let (axis, now) = (&row.axes[*own], &now[*own]);
        let end = now.last.unwrap_or(now.index);
        (now.last.is_none(), end.saturating_sub(axis.first))
    };
    // `max_by_key` takes the last of equal elements; the order is reversed to take the leftmost.
    (0..now.len()).rev().max_by_key(width).unwrap_or_default()
}

/// Increments the rightmost axis before `upto` that has a next index, and resets all axes after it.
/// Returns that axis.
fn advance(row: &RowPlan, now: &mut [AxisState], upto: usize) -> Option<usize> {
    let advanced = (0..upto).rev().find(|axis| {
        let AxisState { index, last, .. } = now[*axis];
        index < last.unwrap_or(u32::MAX)
    })?;
    now[advanced].index += 1;
    for (after, axis) in now.iter_mut().zip(&row.axes).skip(advanced + 1) {
        after.index = axis.first;
    }
    Some(advanced)
}

/// Sets the printed value from the raw one: adds prefixes, and replaces missing and blank facts.
fn finish(
    axis: &AxisPlan,
    kind: AxisKind,
    raw: Option<&str>,
    facts: &FactText,
    value: &mut Option<String>,
) {
    match raw {
        None => *value = None,
        Some(raw) => {
            let value = set_text(value, &axis.prefix);
            value.push_str(raw);
        }
    }
    if kind != AxisKind::Fact {
        return;
    }
    match value.as_deref() {
        None => *value = Some(facts.not_found_with.clone()),
        Some(text) if is_null_word(text) => *value = Some(facts.not_found_with.clone()),
        Some(text) if facts.blank_replace && is_blank(text) => {
            *value = Some(facts.blank_with.clone());
        }
        Some(_) => {}
    }
}

fn is_null_word(text: &str) -> bool {
    let word = text.trim_matches(|letter| letter <= ' ');
    word.eq_ignore_ascii_case("null")
}

/// Sets the text of an optional string, reusing its memory.
fn set_text<'v>(value: &'v mut Option<String>, text: &str) -> &'v mut String {
    let value = value.get_or_insert_default();
    value.clear();
    value.push_str(text);
    value
}

#[cfg(test)]
mod tests;
