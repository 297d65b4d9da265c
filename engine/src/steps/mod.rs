//! Walks one page through the steps of its tasks. A step returns its result and never calls the engine.

mod analyze;
mod append;
mod follow;
mod links;
mod parse;
mod preview;
pub(crate) mod query;
mod records;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use spoonbill_plugins::css::Selector;
use spoonbill_plugins::data::Data;
use spoonbill_plugins::filter::Filters;
use spoonbill_plugins::page::Page;
use spoonbill_plugins::parser::CompiledQueries;
use spoonbill_plugins::script::Scripter;
use spoonbill_plugins::xpath::XPath;

use crate::ledger::{Block, FieldTallies, Grant, Harvest, Tally};
use crate::plan::prepare::{Group, Plan, ReadyStep, ReadyTask};

use parse::Trees;

pub(crate) use links::Link;
pub(crate) use preview::Preview;

/// Compiled queries and scripts that one thread reuses for the next page.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) selectors: CompiledQueries<Selector>,
    pub(crate) xpaths: CompiledQueries<XPath>,
    scripters: HashMap<(u32, usize), Scripter>,
}

/// The plan and the count of pages, which all threads share.
pub(crate) struct PageWorker {
    /// The compiled definitions and the settings.
    pub plan: Arc<Plan>,
    /// How many pages were parsed with each label. Some encoders print the count.
    pages: Mutex<HashMap<String, u32>>,
}

/// A loaded page with its job, and the data that an earlier run parsed from it.
pub(crate) struct Delivery {
    /// The job.
    pub grant: Grant,
    /// The page.
    pub page: Page,
    /// Saved parsed data, by key.
    pub parsed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether parsed data is saved: the page itself is saved and stays live.
    pub keep_data: bool,
    /// The counts that loading has made.
    pub tally: Tally,
}

/// The result of one page.
pub(crate) struct Yield {
    /// Rows, links and counts for the ledger.
    pub harvest: Harvest,
    /// Parsed data to save, by key.
    pub parsed: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The result of one task on a page.
#[derive(Default)]
struct TaskYield {
    blocks: Vec<Block>,
    links: Vec<Link>,
    skipped: BTreeMap<String, u64>,
    notes: Vec<String>,
    fields: FieldTallies,
    parsed: Option<(Vec<u8>, Vec<u8>)>,
    data: Data,
}

impl PageWorker {
    /// The worker of one run.
    pub(crate) fn of(plan: Arc<Plan>) -> Self {
        Self { plan, pages: Mutex::default() }
    }

    /// Runs every task of the page's group. A task that fails costs its own rows only.
    pub(crate) fn work(&self, worker: &mut Worker, delivery: &Delivery) -> Yield {
        let mut harvest = Harvest { tally: delivery.tally.clone(), ..Harvest::default() };
        let mut parsed = Vec::new();
        let Some(group) = self.plan.groups.get(&delivery.grant.job.group) else {
            let reason = format!("no task group `{}`", delivery.grant.job.group);
            harvest.failures.push((String::from("(all)"), reason));
            return Yield { harvest, parsed };
        };
        let mut trees = Trees::default();
        for task in wanted(group, &delivery.grant) {
            // Links are followed even if the rows failed: they lead to other pages.
            let walked = self.walk(worker, task, delivery, &mut trees);
            let followed = self.followed(task, delivery, &mut trees);
            let failure = [walked, followed].into_iter().filter_map(|made| {
                made.map(|made| self.gather(delivery, made, &mut harvest, &mut parsed)).err()
            });
            if let Some(reason) = failure.reduce(|first, _| first) {
                harvest.failures.push((task.name.clone(), reason));
            }
        }
        Yield { harvest, parsed }
    }

    /// Adds the result of a task to the result of the page.
    fn gather(
        &self,
        delivery: &Delivery,
        made: TaskYield,
        harvest: &mut Harvest,
        parsed: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) {
        harvest.blocks.extend(made.blocks);
        parsed.extend(made.parsed);
        self.follow(harvest, delivery, made.links);
        for (reason, count) in made.skipped {
            *harvest.tally.skipped.entry(reason).or_default() += count;
        }
        harvest.tally.fields.add(&made.fields);
        for note in made.notes {
            *harvest.tally.notes.entry(note).or_default() += 1;
        }
    }

    fn walk(
        &self,
        worker: &mut Worker,
        task: &ReadyTask,
        delivery: &Delivery,
        trees: &mut Trees,
    ) -> Result<TaskYield, String> {
        let mut made = TaskYield::default();
        let mut data = Data::default();
        for (place, step) in task.steps.iter().enumerate() {
            match step {
                ReadyStep::Parse(dialect, plan) => {
                    let how = (*dialect, &**plan);
                    data = self.parse(worker, task, how, delivery, trees, &mut made)?;
                }
                ReadyStep::Records(plan) => {
                    data = self.records(task, plan, delivery, trees, &mut made)?;
                }
                ReadyStep::Sitemap => self.sitemap(task, delivery, &mut made)?,
                ReadyStep::Analyze(dialect) => {
                    analyze::converse(
                        self.tree(delivery, *dialect, trees)?,
                        *dialect,
                        &delivery.page,
                    )?;
                }
                ReadyStep::Filter(filters) => filter(&mut data, filters),
                ReadyStep::Convert(converters) => {
                    spoonbill_plugins::converter::apply(converters, &mut data)
                        .map_err(|error| error.to_string())?;
                }
                ReadyStep::Script(chain) => {
                    let scripter =
                        worker.scripters.entry((task.number, place)).or_insert_with(|| {
                            Scripter::new(chain, &self.plan.run_facts, self.script_limits())
                        });
                    data = scripter.run(data).map_err(|error| error.to_string())?;
                }
                ReadyStep::CreateLocators(rules) => links::collect(&data, rules, &mut made),
                ReadyStep::Append(sinks) => {
                    let counts = sinks.iter().any(|sink| sink.encoder.prints_tags());
                    let page = if counts { self.page_number(&data.name) } else { 1 };
                    made.blocks.extend(append::encode(&data, sinks, task, page));
                    records::compare(&data, task, &delivery.page.url, &mut made.fields);
                }
            }
        }
        made.data = data;
        Ok(made)
    }

    /// How many pages this process has parsed with a label, including this one.
    fn page_number(&self, label: &str) -> u32 {
        let Ok(mut pages) = self.pages.lock() else {
            return 1;
        };
        let count = pages.entry(label.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// The tasks that a grant names; all of the group if it names none.
fn wanted<'a>(group: &'a Group, grant: &'a Grant) -> impl Iterator<Item = &'a ReadyTask> {
    let all = grant.tasks.is_empty();
    group.tasks.iter().filter(move |task| all || grant.tasks.contains(&task.name))
}

fn filter(data: &mut Data, filters: &Filters) {
    if !filters.is_empty() {
        data.rows.retain(|row| filters.keep(row));
    }
}
