//! Compiles follow rules, and marks the groups that they lead to.

use std::collections::{BTreeMap, BTreeSet};

use spoonbill_defs::{
    DataDef, Defs, Follow, FollowScope, PageColumn, Problem, StepKind, Task, TaskGroup,
};
use spoonbill_plugins::follow::{Canonicalizer, FollowPlan, FollowRule};

use crate::plan::prepare::queries::Dialect;
use crate::plan::prepare::{Group, PlanCompiler, ReadyStep, ReadyTask};

impl PlanCompiler<'_> {
    /// Compiles the rules of a task; `None` after a problem. The same rule on two tasks is one rule with
    /// one limit on its pages.
    pub(super) fn follow(&mut self, task: &Task) -> Option<FollowPlan> {
        let mut rules = Some(Vec::new());
        for follow in &task.follow {
            let known = self.rules.iter().position(|known| known == follow);
            let number = known.unwrap_or_else(|| {
                self.rules.push(follow.clone());
                self.rules.len() - 1
            });
            let compiled = FollowRule::compile(follow, number as u32);
            match (self.options(compiled), &mut rules) {
                (Some(rule), Some(rules)) => rules.push(rule),
                _ => rules = None,
            }
        }
        rules.map(FollowPlan::new)
    }

    /// Warns of start pages with the same address in a followed group: they are one page.
    pub(super) fn check_twins(&mut self) {
        let defs = &self.published.defs;
        let canon = Canonicalizer::new(&self.config.links.drop_params);
        for group in &defs.locator_groups {
            let tasks = defs.task_group(&group.name.text);
            if !tasks.is_some_and(|tasks| is_followed(defs, tasks)) {
                continue;
            }
            let mut known = BTreeMap::new();
            for locator in &group.locators {
                let url = canon.address(&locator.url.text);
                if let Some(first) = known.insert(url, &locator.name.text) {
                    let words = format!(
                        "this page is in the group as `{first}` already: where links are \
                         followed, a page is loaded once"
                    );
                    self.problems.push(Problem::warning(self.sources, locator.url.at, words));
                }
            }
        }
    }

    /// Compiles a task group, with what the rest of the definitions demand of it.
    pub(super) fn group(
        &self,
        group: &TaskGroup,
        live: Option<String>,
        tasks: Vec<ReadyTask>,
    ) -> Group {
        let defs = &self.published.defs;
        let (name, origin) = &self.wanted;
        Group {
            live,
            tasks,
            is_followed: is_followed(defs, group),
            inherits_name: name.contains(&group.name.text),
            needs_origin: origin.contains(&group.name.text),
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

/// The groups whose pages print the name of their locator, and the groups whose links have a scope
/// that is relative to the start page.
pub(super) fn wanted(defs: &Defs) -> (BTreeSet<String>, BTreeSet<String>) {
    let prints_name = |group: &&TaskGroup| {
        let mut used = group.tasks.iter().filter_map(|task| defs.data_def(&task.data_def.text));
        used.any(|def| match &def.record {
            None => true,
            Some(record) => record.columns.contains(&PageColumn::Locator),
        })
    };
    let printing = defs.task_groups.iter().filter(prints_name);
    let measured = rules(defs).filter(|(_, rule)| rule.scope == FollowScope::Prefix);
    (
        on_the_way(defs, printing.map(|group| group.name.text.clone()).collect()),
        on_the_way(defs, measured.map(|(group, _)| group.name.text.clone()).collect()),
    )
}

/// These groups and all groups that link to them, directly or not.
fn on_the_way(defs: &Defs, mut groups: BTreeSet<String>) -> BTreeSet<String> {
    loop {
        let before = groups.len();
        for (group, rule) in rules(defs) {
            if groups.contains(rule.group.as_str()) {
                groups.insert(group.name.text.clone());
            }
        }
        if groups.len() == before {
            return groups;
        }
    }
}

/// Whether the depth of a page decides the rows: by a limit, or as a column.
pub(super) fn by_level(defs: &Defs) -> bool {
    let prints_depth = |def: &DataDef| {
        def.record.as_ref().is_some_and(|record| record.columns.contains(&PageColumn::Depth))
    };
    rules(defs).any(|(_, rule)| rule.max_depth.is_some()) || defs.data_defs.iter().any(prints_depth)
}

/// Whether a definition has links only, so that nothing is parsed.
pub(super) fn is_links_only(def: &DataDef) -> bool {
    def.record.as_ref().is_some_and(|record| record.fields.is_empty() && record.columns.is_empty())
}

/// The dialect in which links are selected: that of the task's parser, so that one tree serves both.
/// Records and definitions with links only use the tree of the HTML standard.
pub(super) fn reader(def: &DataDef, steps: &[ReadyStep]) -> Dialect {
    let classic = def.record.is_none();
    let css = |step: &ReadyStep| matches!(step, ReadyStep::Parse(Dialect::Css, _));
    if classic && steps.iter().any(css) { Dialect::Css } else { Dialect::Xpath }
}
