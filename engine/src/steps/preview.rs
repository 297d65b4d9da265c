//! One page without a run: its rows, its links and the origin of each value.

use spoonbill_plugins::data::{CellType, Data};
use spoonbill_plugins::records::PageExplanation;

use super::parse::Trees;
use super::{Delivery, PageWorker, TaskYield, Worker};
use crate::error::counted;
use crate::ledger::FieldTallies;
use crate::plan::prepare::ReadyStep;

/// The result of one task, to be shown.
pub(crate) struct Preview {
    /// The task's name.
    pub task: String,
    /// The rows as an appender receives them, or why the task failed.
    pub data: Result<Data, String>,
    /// Where each value comes from, for records.
    pub story: Option<PageExplanation>,
    /// The types of the columns, for records.
    pub types: Vec<CellType>,
    links: Vec<(String, String)>,
    skipped: Vec<(String, u64)>,
    fields: FieldTallies,
}

impl PageWorker {
    /// Runs every task of the page's group and keeps its rows.
    pub(crate) fn preview(
        &self,
        worker: &mut Worker,
        delivery: &Delivery,
        explain: bool,
    ) -> Vec<Preview> {
        let Some(group) = self.plan.groups.get(&delivery.grant.job.group) else {
            return Vec::new();
        };
        let mut trees = Trees::default();
        let previews = group.tasks.iter().map(|task| {
            let walked = self.walk(worker, task, delivery, &mut trees);
            let followed = self.followed(task, delivery, &mut trees);
            let record = task.steps.iter().find_map(|step| match step {
                ReadyStep::Records(plan) => Some(plan),
                _ => None,
            });
            let mut preview = Preview {
                task: task.name.clone(),
                data: Ok(Data::default()),
                story: record
                    .filter(|_| explain)
                    .and_then(|plan| self.explain(plan, delivery).ok()),
                types: record.map(|plan| plan.column_types()).unwrap_or_default(),
                links: Vec::new(),
                skipped: Vec::new(),
                fields: FieldTallies::default(),
            };
            for made in [walked, followed] {
                preview.add(made);
            }
            preview
        });
        previews.collect()
    }
}

impl Preview {
    fn add(&mut self, made: Result<TaskYield, String>) {
        match (made, &mut self.data) {
            (Err(reason), data) => *data = Err(reason),
            (Ok(made), data) => {
                if let (Ok(data), false) = (data, made.data.rows.is_empty()) {
                    *data = made.data;
                }
                self.links.extend(made.links.into_iter().map(|link| (link.group, link.url)));
                self.skipped.extend(made.skipped);
                self.fields.add(&made.fields);
            }
        }
    }

    /// Misfits, dropped rows, links and skipped rows, one line each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for ((_, name), field) in &self.fields.0 {
            if let Some(example) = &field.example {
                let found = counted(field.misfits, "misfit");
                remarks
                    .push(format!("field `{name}`: {found}, `{}` {}", example.value, example.why));
            }
            if field.dropped > 0 {
                let rows = counted(field.dropped, "row");
                remarks.push(format!(
                    "field `{name}`: {rows} dropped because it is required and empty"
                ));
            }
        }
        if let Some((group, url)) = self.links.first() {
            let links = counted(self.links.len() as u64, "link");
            remarks.push(format!("{links} to follow, the first to group `{group}`: {url}"));
        }
        remarks.extend(self.skipped.iter().map(|(reason, count)| format!("{count} {reason}")));
        remarks
    }
}
