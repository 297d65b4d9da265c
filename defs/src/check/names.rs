//! Checks the names that refer to other entries: groups, data definitions, links.

use std::collections::HashSet;

use crate::Defs;
use crate::data_defs::Item;
use crate::findings::Findings;
use crate::follow::Follow;
use crate::tasks::Task;

/// Reports unknown names and unused definitions.
pub(super) fn check(defs: &Defs, findings: &mut Findings<'_>) {
    // A part of the definitions is missing, so most of these reports would be false.
    if findings.incomplete {
        return;
    }
    let task_groups: HashSet<&str> = names(defs.task_groups.iter().map(|group| &group.name.text));
    let data_defs: HashSet<&str> = names(defs.data_defs.iter().map(|def| &def.name.text));
    let mut used_groups = HashSet::new();
    let mut used_defs = HashSet::new();

    for group in &defs.locator_groups {
        used_groups.insert(group.name.text.as_str());
        if !task_groups.contains(group.name.text.as_str()) {
            let known = defs.task_groups.iter().map(|group| group.name.as_str());
            let meant = findings.nearest(&group.name.text, known);
            used_groups.extend(meant);
            let help = advice(meant, &group.name.text, "taskGroups");
            findings.error(
                group.name.at,
                format!("the locator group `{}` has no task group", group.name.text),
                help,
            );
        }
    }
    for task in defs.task_groups.iter().flat_map(|group| &group.tasks) {
        used_defs.insert(task.data_def.text.as_str());
        if !task.data_def.text.is_empty() && !data_defs.contains(task.data_def.as_str()) {
            let known = defs.data_defs.iter().map(|def| def.name.as_str());
            let meant = findings.nearest(&task.data_def.text, known);
            used_defs.extend(meant);
            let help = advice(meant, &task.data_def.text, "dataDefs");
            findings.error(
                task.data_def.at,
                format!(
                    "task `{}` uses dataDef `{}`, which no file defines",
                    task.name.text, task.data_def.text
                ),
                help,
            );
        }
    }
    for item in defs.data_defs.iter().flat_map(|def| &def.items) {
        used_groups.extend(check_link(item, defs, &task_groups, findings));
    }
    for (task, rule) in all_rules(defs) {
        used_groups.extend(check_rule(task, rule, defs, &task_groups, findings));
    }
    warn_unused(defs, &used_groups, &used_defs, findings);
}

fn all_rules(defs: &Defs) -> impl Iterator<Item = (&Task, &Follow)> {
    let tasks = defs.task_groups.iter().flat_map(|group| &group.tasks);
    tasks.flat_map(|task| task.follow.iter().map(move |rule| (task, rule)))
}

/// The group of a follow rule; the most similar one if the name is unknown.
fn check_rule<'d>(
    task: &Task,
    rule: &'d Follow,
    defs: &'d Defs,
    groups: &HashSet<&str>,
    findings: &mut Findings<'_>,
) -> Option<&'d str> {
    if groups.contains(rule.group.as_str()) {
        return Some(rule.group.as_str());
    }
    let known = defs.task_groups.iter().map(|group| group.name.as_str());
    let meant = findings.nearest(&rule.group.text, known);
    let help = match meant {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("add `{}:` below `groups:`", rule.group.text),
    };
    findings.error(
        rule.group.at,
        format!(
            "task `{}` follows links to the group `{}`, which no file defines",
            task.name.text, rule.group.text
        ),
        help,
    );
    meant
}

fn names<'n>(names: impl Iterator<Item = &'n String>) -> HashSet<&'n str> {
    names.map(String::as_str).collect()
}

/// Help for an unknown name. The suggested entry also counts as used, so that one misspelt name
/// causes one problem.
fn advice(meant: Option<&str>, wanted: &str, section: &str) -> String {
    match meant {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("add `{wanted}:` below `{section}:`"),
    }
}

/// The task group that an item links to; the most similar one if the name is unknown.
fn check_link<'d>(
    item: &'d Item,
    defs: &'d Defs,
    groups: &HashSet<&str>,
    findings: &mut Findings<'_>,
) -> Option<&'d str> {
    let link = item.link_group.as_ref()?;
    if groups.contains(link.as_str()) {
        return Some(link.as_str());
    }
    let meant =
        findings.nearest(&link.text, defs.task_groups.iter().map(|group| group.name.as_str()));
    findings.error(
        link.at,
        format!(
            "item `{}` links to task group `{}`, which no file defines",
            item.name.text, link.text
        ),
        advice(meant, &link.text, "taskGroups"),
    );
    meant
}

fn warn_unused(
    defs: &Defs,
    used_groups: &HashSet<&str>,
    used_defs: &HashSet<&str>,
    findings: &mut Findings<'_>,
) {
    for def in &defs.data_defs {
        if !used_defs.contains(def.name.as_str()) {
            findings.warn(
                def.name.at,
                format!("no task uses the dataDef `{}`", def.name.text),
                "remove it, or use it as the `dataDef` of a task",
            );
        }
    }
    for group in &defs.task_groups {
        if used_groups.contains(group.name.as_str()) {
            continue;
        }
        let name = &group.name;
        match findings.without_pages.get(&name.text) {
            Some(true) => {}
            Some(false) => {
                let message =
                    format!("the group `{}` has no `urls`, and no link leads to it", name.text);
                let help = format!(
                    "add `urls:` with a start address, or add `group: {}` to a `follow` rule",
                    name.text
                );
                if defs.locator_groups.is_empty() {
                    findings.error(name.at, message, help);
                } else {
                    findings.warn(name.at, message, help);
                }
            }
            None => findings.warn(
                group.name.at,
                format!(
                    "no locator group and no link leads to the task group `{}`",
                    group.name.text
                ),
                "remove it, or use its name in a locator group, a `follow` rule or a `linkGroup`",
            ),
        }
    }
}
