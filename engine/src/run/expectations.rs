//! The quality of the data: values that do not have their type, and expectations that were not met.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::error::counted;
use crate::ledger::{FieldExample, FieldTally, Tally};
use crate::plan::prepare::Expectations;

/// Problems with the values of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldReport {
    /// Data definition.
    pub data_def: String,
    /// Field.
    pub field: String,
    /// Values that do not have their type.
    pub misfits: u64,
    /// Rows dropped because the field was missing.
    pub rows_dropped: u64,
    /// A page with such a value.
    pub page: Option<String>,
    /// The value there.
    pub value: Option<String>,
    /// Why it does not have its type.
    pub why: Option<String>,
}

/// An expectation that was not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unmet {
    /// Data definition.
    pub data_def: String,
    /// Field; `None` if the number of rows is wrong.
    pub field: Option<String>,
    /// The query of the field, as written.
    pub query: Option<String>,
    /// The expected and the actual value.
    pub words: String,
}

/// The fields with problems.
pub(crate) fn fields(tally: &Tally) -> Vec<FieldReport> {
    let befallen = tally.fields.0.iter().filter(|(_, field)| field.misfits + field.dropped > 0);
    let reports = befallen.map(|((data_def, name), field)| {
        let of =
            |part: fn(&FieldExample) -> &String| field.example.as_ref().map(|it| part(it).clone());
        FieldReport {
            data_def: data_def.clone(),
            field: name.clone(),
            misfits: field.misfits,
            rows_dropped: field.dropped,
            page: of(|example| &example.url),
            value: of(|example| &example.value),
            why: of(|example| &example.why),
        }
    });
    reports.collect()
}

impl FieldReport {
    /// The line of the report.
    pub(crate) fn text(&self) -> String {
        let mut parts = Vec::new();
        if self.misfits > 0 {
            let values = if self.misfits == 1 { "value does" } else { "values do" };
            let mut words = format!("{} {values} not fit", self.misfits);
            if let (Some(value), Some(why), Some(page)) = (&self.value, &self.why, &self.page) {
                words = format!("{words}: `{value}` {why}, on {page}");
            }
            parts.push(words);
        }
        if self.rows_dropped > 0 {
            parts.push(format!("{} dropped for want of it", counted(self.rows_dropped, "row")));
        }
        format!("{}.{}: {}", self.data_def, self.field, parts.join("; "))
    }
}

/// The expectations that the rows of a finished run do not meet.
pub(crate) fn unmet(expectations: &[Arc<Expectations>], tally: &Tally) -> Vec<Unmet> {
    let mut by_name: BTreeMap<&str, &Expectations> = BTreeMap::new();
    for expect in expectations {
        by_name.insert(&expect.data_def, expect);
    }
    by_name.into_values().flat_map(|expect| unmet_by(expect, tally)).collect()
}

fn unmet_by(expect: &Expectations, tally: &Tally) -> Vec<Unmet> {
    let rows = tally.rows.get(&expect.data_def).copied().unwrap_or(0);
    let mut found = Vec::new();
    let bounds = [
        expect.min_rows.filter(|min| rows < *min).map(|min| ("at least", min)),
        expect.max_rows.filter(|max| rows > *max).map(|max| ("at most", max)),
    ];
    for (bound, wanted) in bounds.into_iter().flatten() {
        found.push(Unmet {
            data_def: expect.data_def.clone(),
            field: None,
            query: expect.block.clone(),
            words: format!(
                "{} instead of {bound} {wanted}{}",
                counted(rows, "row"),
                if rows < wanted { dropped(expect, tally) } else { String::new() }
            ),
        });
    }
    let none = FieldTally::default();
    for field in &expect.fields {
        let key = (expect.data_def.clone(), field.name.clone());
        let known = tally.fields.0.get(&key).unwrap_or(&none);
        let mut miss = |words: String| {
            found.push(Unmet {
                data_def: expect.data_def.clone(),
                field: Some(field.name.clone()),
                query: Some(field.query.clone()).filter(|query| !query.is_empty()),
                words,
            });
        };
        if rows == 0 && field.fill.is_some_and(|fill| fill > 0) {
            miss("there is no row that could have a value".to_owned());
        } else if let Some(fill) = field.fill
            && (known.filled * 1_000_000) < rows * u64::from(fill)
        {
            let wanted = f64::from(fill) / 1e4;
            miss(format!(
                "{} of {} with a value, instead of {wanted} %",
                known.filled,
                counted(rows, "row")
            ));
        }
        if let Some(example) = known.mismatch.as_ref().filter(|_| known.mismatches > 0) {
            let values = if known.mismatches == 1 { "value is" } else { "values are" };
            miss(format!(
                "{} {values} not as the pattern says: `{}` on {}",
                known.mismatches, example.value, example.url
            ));
        }
    }
    found
}

/// The rows that were dropped, with the missing fields.
fn dropped(expect: &Expectations, tally: &Tally) -> String {
    let told = expect.required.iter().filter_map(|(name, query)| {
        let known = tally.fields.0.get(&(expect.data_def.clone(), name.clone()))?;
        let rows = counted((known.dropped > 0).then_some(known.dropped)?, "row");
        let query = if query.is_empty() { String::new() } else { format!(" (`{query}`)") };
        Some(format!("; {rows} dropped for want of `{name}`{query}"))
    });
    told.collect()
}

impl Unmet {
    /// The line of the report.
    pub(crate) fn text(&self) -> String {
        let field = self.field.as_ref().map(|field| format!(".{field}")).unwrap_or_default();
        let query = self.query.as_ref().map(|query| format!(" (`{query}`)")).unwrap_or_default();
        format!("{}{field}{query}: {}", self.data_def, self.words)
    }
}
