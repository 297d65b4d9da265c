//! Checks the chain of each task: every step must receive the payload that it processes.

use std::collections::HashMap;

use crate::Defs;
use crate::data_defs::DataDef;
use crate::findings::Findings;
use crate::steps::{Step, StepKind};
use crate::tasks::{Task, TaskGroup};
use crate::text::Span;

/// The output of one step, which is the input of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    Group,
    Locator,
    Page,
    Data,
    Nothing,
}

impl Payload {
    fn describe(self) -> &'static str {
        match self {
            Self::Group => "a locator group",
            Self::Locator => "a locator",
            Self::Page => "a page",
            Self::Data => "data",
            Self::Nothing => "nothing",
        }
    }
}

fn input_output(kind: StepKind) -> (Payload, Payload) {
    match kind {
        StepKind::LocatorSeeder => (Payload::Group, Payload::Locator),
        StepKind::PageLoader | StepKind::DomLoader => (Payload::Locator, Payload::Page),
        StepKind::CssParser | StepKind::XpathParser => (Payload::Page, Payload::Data),
        StepKind::CssAnalyzer | StepKind::XpathAnalyzer | StepKind::SitemapParser => {
            (Payload::Page, Payload::Nothing)
        }
        StepKind::DataFilter
        | StepKind::DataConverter
        | StepKind::Scripter
        | StepKind::DataAppender => (Payload::Data, Payload::Data),
        StepKind::LocatorCreator => (Payload::Data, Payload::Nothing),
    }
}

/// Checks the chains of all tasks. A broken chain has no steps; it was reported before.
pub(super) fn check(defs: &Defs, findings: &mut Findings<'_>) {
    let data_defs: HashMap<&str, &DataDef> =
        defs.data_defs.iter().map(|def| (def.name.as_str(), def)).collect();
    for group in &defs.task_groups {
        for task in &group.tasks {
            check_payloads(task, findings);
            if let Some(def) = data_defs.get(task.data_def.as_str()) {
                check_links(task, def, findings);
            }
        }
        check_loaders(group, findings);
    }
}

fn place(step: &Step, task: &Task) -> Span {
    if step.name.at.line == 0 { task.name.at } else { step.name.at }
}

fn check_payloads(task: &Task, findings: &mut Findings<'_>) {
    let mut payload = Payload::Group;
    let mut before = "start";
    for step in &task.steps {
        let (needs, gives) = input_output(step.kind);
        if needs != payload {
            findings.error(
                place(step, task),
                format!(
                    "step `{}` needs {}, but `{before}` before it gives {}",
                    step.name.text,
                    needs.describe(),
                    payload.describe()
                ),
                help(needs, payload),
            );
            return;
        }
        payload = gives;
        before = &step.name.text;
    }
}

fn help(needs: Payload, given: Payload) -> &'static str {
    match (needs, given) {
        (_, Payload::Nothing) => "make the step before it the last one: `next: end`",
        (Payload::Locator, Payload::Group) => "put a `locator_seeder` step before it",
        (Payload::Page, Payload::Locator) => "put a `page_loader` or `dom_loader` step before it",
        (Payload::Data, Payload::Page) => "put a `css_parser` or `xpath_parser` step before it",
        (Payload::Page | Payload::Data, Payload::Group) => {
            "a chain starts with `locator_seeder`, a loader and a parser"
        }
        (Payload::Data, Payload::Locator) => "put a loader and a parser before it",
        _ => "the usual order is seeder, loader, parser, filter, appender",
    }
}

fn check_links(task: &Task, def: &DataDef, findings: &mut Findings<'_>) {
    let creator = task.steps.iter().find(|step| step.kind == StepKind::LocatorCreator);
    let Some(creator) = creator else {
        let linked = def.items.iter().find_map(|item| item.link_group.as_ref());
        if let (Some(link), false) = (linked, task.steps.is_empty()) {
            findings.warn(
                link.at,
                format!(
                    "`linkGroup` has no effect in task `{}`: its chain creates no locators",
                    task.name.text
                ),
                "add a `locator_creator` step to the task's `steps`",
            );
        }
        return;
    };
    for item in &def.items {
        if item.link_group.is_none() {
            findings.warn(
                place(creator, task),
                format!(
                    "step `{}` creates no locator from item `{}` of dataDef `{}`: the item has no `linkGroup`",
                    creator.name.text, item.name.text, def.name.text
                ),
                "add `linkGroup: ...` with the task group of the linked pages",
            );
        } else if let Some(text) = item.value.as_ref().or(item.match_text.as_ref()) {
            findings.warn(
                text.at,
                format!(
                    "item `{}` creates a locator whose url is always `{}`",
                    item.name.text, text.text
                ),
                "take the url from the page with a `selector`, without `value` and `match`",
            );
        }
    }
}

/// Warns of loaders without effect: a page is loaded once, by the first task of its group.
fn check_loaders(group: &TaskGroup, findings: &mut Findings<'_>) {
    fn loader(task: &Task) -> Option<&Step> {
        task.steps.iter().find(|step| step.kind.is_loader())
    }
    let mut tasks = group.tasks.iter();
    let Some((first, used)) = tasks.next().and_then(|task| Some((task, loader(task)?))) else {
        return;
    };
    for task in tasks {
        if let Some(other) = loader(task)
            && other != used
        {
            findings.warn(
                place(other, task),
                format!(
                    "the loader of task `{}` does not run: task `{}` loads the pages of the group",
                    task.name.text, first.name.text
                ),
                "give both tasks the same loader, or move one to another group",
            );
        }
    }
}
