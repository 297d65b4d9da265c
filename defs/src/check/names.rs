//! Checks the names that refer to other entries: groups, data definitions, links.

use std::collections::HashSet;

use crate::Defs;
use crate::findings::Findings;
use crate::text::Text;

/// Reports unknown names and unused definitions.
pub(super) fn check(defs: &Defs, findings: &mut Findings<'_>) {
    // A part of the definitions is missing, so most of these reports would be false.
    if findings.incomplete {
        return;
    }
    let groups = KnownNames::new(defs.task_groups.iter().map(|group| &group.name));
    let data_defs = KnownNames::new(defs.data_defs.iter().map(|def| &def.name));
    let tasks = || defs.task_groups.iter().flat_map(|group| &group.tasks);
    let mut used_groups = HashSet::new();
    let mut used_defs = HashSet::new();

    for group in defs.locator_groups.iter().map(|group| &group.name) {
        let message = || format!("the locator group `{}` has no task group", group.text);
        used_groups.extend(groups.resolve(group, "taskGroups", message, findings));
    }
    for task in tasks().filter(|task| !task.data_def.text.is_empty()) {
        let (task, def) = (&task.name.text, &task.data_def);
        let message =
            || format!("task `{task}` uses dataDef `{}`, which no file defines", def.text);
        used_defs.extend(data_defs.resolve(def, "dataDefs", message, findings));
    }
    for item in defs.data_defs.iter().flat_map(|def| &def.items) {
        let Some(group) = &item.link_group else { continue };
        let (item, name) = (&item.name.text, &group.text);
        let message =
            || format!("item `{item}` links to task group `{name}`, which no file defines");
        used_groups.extend(groups.resolve(group, "taskGroups", message, findings));
    }
    for (task, rule) in tasks().flat_map(|task| task.follow.iter().map(move |rule| (task, rule))) {
        let (task, name) = (&task.name.text, &rule.group.text);
        let message =
            || format!("task `{task}` follows links to the group `{name}`, which no file defines");
        used_groups.extend(groups.resolve(&rule.group, "groups", message, findings));
    }
    warn_unused(defs, &used_groups, &used_defs, findings);
}

/// The names of a section, in order and as a set.
struct KnownNames<'d> {
    names: Vec<&'d str>,
    set: HashSet<&'d str>,
}

impl<'d> KnownNames<'d> {
    fn new(names: impl Iterator<Item = &'d Text>) -> Self {
        let names: Vec<&str> = names.map(Text::as_str).collect();
        Self { set: names.iter().copied().collect(), names }
    }

    /// The entry that a name refers to. An unknown name is reported. The most similar entry then
    /// counts as used, so that one misspelt name causes one problem.
    fn resolve(
        &self,
        wanted: &Text,
        section: &str,
        message: impl FnOnce() -> String,
        findings: &mut Findings<'_>,
    ) -> Option<&'d str> {
        if let Some(name) = self.set.get(wanted.as_str()) {
            return Some(name);
        }
        let meant = findings.nearest(&wanted.text, self.names.iter().copied());
        let help = match meant {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("add `{}:` below `{section}:`", wanted.text),
        };
        findings.error(wanted.at, message(), help);
        meant
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
                "remove it, or use it as the `dataDef` of a task",
            );
        }
    }
    for group in &defs.task_groups {
        if used_groups.contains(group.name.as_str()) {
            continue;
        }
        let name = &group.name;
        match findings.short_groups.get(&name.text) {
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
