//! Names that lead from one entry to another: groups, data definitions, links.

use std::collections::HashSet;

use crate::Defs;
use crate::data_defs::Item;
use crate::findings::Findings;
use crate::text::Text;

/// Finds names nobody defines and definitions nobody uses.
pub(super) fn check(defs: &Defs, findings: &mut Findings<'_>) {
    // Half the definitions are missing then, so almost any of these would be false.
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
            let help = findings.did_you_mean(
                &group.name.text,
                defs.task_groups.iter().map(|group| group.name.as_str()),
                format!("add `{}:` below `taskGroups:`", group.name.text),
            );
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
            let help = findings.did_you_mean(
                &task.data_def.text,
                defs.data_defs.iter().map(|def| def.name.as_str()),
                format!("add `{}:` below `dataDefs:`", task.data_def.text),
            );
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
        check_link(item, defs, &task_groups, findings);
        used_groups.extend(item.link_group.as_ref().map(Text::as_str));
    }
    warn_unused(defs, &used_groups, &used_defs, findings);
}

fn names<'n>(names: impl Iterator<Item = &'n String>) -> HashSet<&'n str> {
    names.map(String::as_str).collect()
}

fn check_link(item: &Item, defs: &Defs, groups: &HashSet<&str>, findings: &mut Findings<'_>) {
    let Some(link) = &item.link_group else {
        return;
    };
    if !groups.contains(link.as_str()) {
        let help = findings.did_you_mean(
            &link.text,
            defs.task_groups.iter().map(|group| group.name.as_str()),
            format!("add `{}:` below `taskGroups:`", link.text),
        );
        findings.error(
            link.at,
            format!(
                "item `{}` links to task group `{}`, which no file defines",
                item.name.text, link.text
            ),
            help,
        );
    }
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
                "remove it, or name it as `dataDef` of a task",
            );
        }
    }
    for group in &defs.task_groups {
        if !used_groups.contains(group.name.as_str()) {
            findings.warn(
                group.name.at,
                format!(
                    "no locator group and no link leads to the task group `{}`",
                    group.name.text
                ),
                "remove it, or give a locator group or a `linkGroup` this name",
            );
        }
    }
}
