//! Follow rules made ready, and what they mean for the groups they lead to.

use std::collections::BTreeSet;

use spoonbill_defs::{Column, DataDef, Defs, Follow, Scope, StepKind, Task, TaskGroup};
use spoonbill_plugins::follow::{FollowPlan, Rule};

use super::queries::Dialect;
use super::{Group, Maker, ReadyStep, ReadyTask};

impl Maker<'_> {
    /// The rules of a task, compiled; `None` after a problem. The same rule on two tasks is one
    /// rule, with one bound on its pages.
    pub(super) fn follow(&mut self, task: &Task) -> Option<FollowPlan> {
        let mut rules = Some(Vec::new());
        for follow in &task.follow {
            let known = self.rules.iter().position(|known| known == follow);
            let number = known.unwrap_or_else(|| {
                self.rules.push(follow.clone());
                self.rules.len() - 1
            });
            let compiled = Rule::compile(follow, number as u32);
            match (self.options(compiled), &mut rules) {
                (Some(rule), Some(rules)) => rules.push(rule),
                _ => rules = None,
            }
        }
        rules.map(FollowPlan::new)
    }

    /// A task group with what others say about it.
    pub(super) fn group(
        &self,
        group: &TaskGroup,
        live: Option<String>,
        tasks: Vec<ReadyTask>,
    ) -> Group {
        let defs = &self.published.defs;
        let prints_name = group.tasks.iter().any(|task| {
            defs.data_def(&task.data_def.text).is_some_and(|def| match &def.record {
                None => true,
                Some(record) => record.columns.contains(&Column::Locator),
            })
        });
        Group {
            live,
            tasks,
            is_followed: is_followed(defs, group),
            inherits_name: prints_name,
            needs_origin: needing_origin(defs).contains(group.name.as_str()),
        }
    }
}

fn rules(defs: &Defs) -> impl Iterator<Item = (&TaskGroup, &Follow)> {
    let tasks =
        defs.task_groups.iter().flat_map(|group| group.tasks.iter().map(move |task| (group, task)));
    tasks.flat_map(|(group, task)| task.follow.iter().map(move |rule| (group, rule)))
}

/// Whether links or sitemaps lead to a group.
fn is_followed(defs: &Defs, group: &TaskGroup) -> bool {
    let steps = group.tasks.iter().flat_map(|task| &task.steps);
    rules(defs).any(|(_, rule)| rule.group == group.name)
        || steps.into_iter().any(|step| step.kind == StepKind::SitemapParser)
}

/// Groups with a rule that measures links against the start page, and all groups on the way there.
fn needing_origin(defs: &Defs) -> BTreeSet<&str> {
    let measured = rules(defs).filter(|(_, rule)| rule.scope == Scope::Prefix);
    let mut needing: BTreeSet<&str> = measured.map(|(group, _)| group.name.as_str()).collect();
    loop {
        let before = needing.len();
        for (group, rule) in rules(defs) {
            if needing.contains(rule.group.as_str()) {
                needing.insert(group.name.as_str());
            }
        }
        if needing.len() == before {
            return needing;
        }
    }
}

/// Whether the depth of a page decides what a run gives: by a bound, or as a column.
pub(super) fn by_level(defs: &Defs) -> bool {
    let prints_depth = |def: &DataDef| {
        def.record.as_ref().is_some_and(|record| record.columns.contains(&Column::Depth))
    };
    rules(defs).any(|(_, rule)| rule.max_depth.is_some()) || defs.data_defs.iter().any(prints_depth)
}

/// Whether a definition is there for links alone, so that nothing is to be parsed.
pub(super) fn is_links_only(def: &DataDef) -> bool {
    def.record.as_ref().is_some_and(|record| record.fields.is_empty() && record.columns.is_empty())
}

/// How pages are read for their links: as the task itself reads them, so that the tree is built
/// once; records and links alone are read as browsers do.
pub(super) fn reader(def: &DataDef, steps: &[ReadyStep]) -> Dialect {
    let classic = def.record.is_none();
    let css = |step: &ReadyStep| matches!(step, ReadyStep::Parse(Dialect::Css, _));
    if classic && steps.iter().any(css) { Dialect::Css } else { Dialect::Xpath }
}
