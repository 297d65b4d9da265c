//! From a page to rows with named columns, and the comparison with their expectations.

use std::time::Instant;

use spoonbill_plugins::data::Data;
use spoonbill_plugins::loader::charset;
use spoonbill_plugins::records::{
    Extraction, PageExplanation, RecordLimits, RecordPage, RecordPlan, json_text,
};

use super::parse::{LazyScripts, Trees};
use super::{Delivery, PageWorker, TaskYield};
use crate::ledger::{FieldExample, FieldTallies};
use crate::plan::prepare::{Dialect, ReadyTask};

impl PageWorker {
    pub(super) fn records(
        &self,
        task: &ReadyTask,
        plan: &RecordPlan,
        delivery: &Delivery,
        trees: &mut Trees,
        made: &mut TaskYield,
    ) -> Result<Data, String> {
        if let Some(data) = self.reused(task, delivery) {
            return Ok(data);
        }
        let page = &delivery.page;
        let Extraction { rows, misfits, fields } =
            self.on_page(plan, delivery, trees, |page, scripts, limits| {
                plan.extract(page, scripts, limits).map_err(|error| error.to_string())
            })?;
        let nothing = rows.is_empty() && fields.iter().all(|field| field.dropped == 0);
        if let (Some(block), true) = (plan.block_query(), nothing) {
            made.notes.push(format!("{}: pages without block `{block}`", task.data_def));
        }
        let names = plan.field_names();
        for (name, counts) in names.iter().zip(&fields) {
            if counts.misfits + counts.dropped > 0 {
                let tally = made.fields.of(&task.data_def, name);
                tally.misfits += u64::from(counts.misfits);
                tally.dropped += u64::from(counts.dropped);
            }
        }
        for misfit in misfits {
            if let Some(name) = names.get(misfit.field) {
                let example = || FieldExample {
                    url: page.url.to_string(),
                    value: misfit.value.clone(),
                    why: misfit.why.clone(),
                };
                made.fields.of(&task.data_def, name).example.get_or_insert_with(example);
            }
        }
        let data = Data {
            name: format!("{}:{}:{}", page.name, task.name, task.data_def),
            data_def: task.data_def.clone(),
            rows,
            tags: Vec::new(),
            named: true,
        };
        made.parsed = self.worth_keeping(task, delivery, &data);
        Ok(data)
    }

    /// Explains where each value of a page comes from.
    pub(crate) fn explain(
        &self,
        plan: &RecordPlan,
        delivery: &Delivery,
    ) -> Result<PageExplanation, String> {
        self.on_page(plan, delivery, &mut Trees::default(), |page, scripts, limits| {
            plan.explain(page, scripts, limits).map_err(|error| error.to_string())
        })
    }

    /// Calls `look` with the page as JSON or as a tree.
    fn on_page<T>(
        &self,
        plan: &RecordPlan,
        delivery: &Delivery,
        trees: &mut Trees,
        look: impl FnOnce(&RecordPage<'_>, &mut LazyScripts<'_>, &RecordLimits) -> Result<T, String>,
    ) -> Result<T, String> {
        let page = &delivery.page;
        let text;
        let mut json = None;
        if may_be_json(page.content_type.as_deref(), &page.body) {
            text = charset::decode(&page.body, page.content_type.as_deref());
            json = json_text(page.content_type.as_deref(), &text);
        }
        let tree = match json {
            Some(_) if !plan.needs_tree() => None,
            _ => Some(self.true_tree(delivery, Dialect::Xpath, trees)?),
        };
        let seen = RecordPage {
            tree,
            json,
            base: &page.base,
            locator: &page.name,
            group: &page.group,
            url: &page.url,
            fetched_at: page.from_date.timestamp(),
            depth: delivery.grant.job.depth,
        };
        let limits = RecordLimits {
            rows_max: self.plan.config.parse.rows_max,
            deadline: Instant::now().checked_add(self.plan.config.parse.time_max),
            ..RecordLimits::default()
        };
        look(&seen, &mut LazyScripts::new(self, delivery), &limits)
    }
}

/// Whether the page is decoded to find out if it is JSON.
fn may_be_json(content_type: Option<&str>, body: &[u8]) -> bool {
    let said = content_type.is_some_and(|kind| kind.to_ascii_lowercase().contains("json"));
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    said || matches!(first, Some(b'{' | b'[' | 0xef | 0xfe | 0xff))
}

/// Counts filled values and mismatches for the expectations of a task.
pub(super) fn compare(data: &Data, task: &ReadyTask, url: &str, fields: &mut FieldTallies) {
    let Some(expect) = &task.expect else {
        return;
    };
    for field in &expect.fields {
        let axes = data
            .rows
            .iter()
            .filter_map(|row| row.axes.iter().find(|axis| *axis.item_name == *field.name));
        let values = axes.filter_map(|axis| axis.value.as_deref()).filter(|text| !text.is_empty());
        let tally = fields.of(&task.data_def, &field.name);
        for value in values {
            tally.filled += 1;
            let Some(pattern) = &field.pattern else { continue };
            if !pattern.is_match(value).unwrap_or(false) {
                tally.mismatches += 1;
                tally.mismatch.get_or_insert_with(|| FieldExample {
                    url: url.to_owned(),
                    value: value.chars().take(80).collect(),
                    why: String::new(),
                });
            }
        }
    }
}
