//! Reads the sections `locatorGroups` and `taskGroups`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Options;
use super::chains::{self, StepDraft};
use super::fields::{Fields, boolean, check_name, mapping, sequence, text};
use super::inherit::Chains;
use super::sections::Section;
use super::wiring;
use crate::findings::Findings;
use crate::locators::{Locator, LocatorGroup};
use crate::tasks::{Task, TaskGroup};
use crate::text::{Span, Text};
use crate::yaml::{Entry, Kind, Node};

/// Reads the groups of locators.
pub(super) fn locator_groups(section: &Section, findings: &mut Findings<'_>) -> Vec<LocatorGroup> {
    if let (Some(at), true, false) = (section.at, section.entries.is_empty(), findings.incomplete) {
        findings.error(
            at,
            "there are no locators, so there is nothing to load",
            "add a group: `myGroup: { locators: [ { name: ..., url: ... } ] }`",
        );
    }
    let groups = section.entries.iter().map(|entry| LocatorGroup {
        name: entry.key.clone(),
        locators: locators(entry, findings),
        sources: Vec::new(),
    });
    groups.collect()
}

fn locators(entry: &Entry, findings: &mut Findings<'_>) -> Vec<Locator> {
    check_name("a locator group", &entry.key, findings);
    let at = entry.key.at;
    let keys = ["locators"];
    let Some(fields) = Fields::new("a locator group", at, &entry.value, &keys, findings) else {
        return Vec::new();
    };
    let Some(list) = fields.required("locators", findings) else {
        return Vec::new();
    };
    let nodes = sequence("locators", "{ name: ..., url: ... }", list, findings);
    if nodes.is_some_and(<[Node]>::is_empty) {
        findings.error(
            list.at,
            format!("the locator group `{}` has no locators", entry.key.text),
            "list at least one `{ name: ..., url: ... }`",
        );
    }
    let mut seen: HashMap<(String, String), Span> = HashMap::new();
    let mut locators = Vec::new();
    for node in nodes.unwrap_or_default() {
        let keys = ["name", "url"];
        let Some(fields) = Fields::new("a locator", node.at, node, &keys, findings) else {
            continue;
        };
        let (name, url) = (fields.name("name", findings), fields.name("url", findings));
        let (Some(name), Some(url)) = (name, url) else {
            continue;
        };
        if let Some(first) = seen.insert((name.text.clone(), url.text.clone()), node.at) {
            findings.error(
                node.at,
                format!("the locator `{}` with this url stands twice in the group", name.text),
                format!("it is also on line {}; keep one of the two", first.line),
            );
        }
        locators.push(Locator { name, url });
    }
    locators
}

/// Reads the groups of tasks and gives every task its effective chain.
pub(super) fn task_groups(
    entries: &[Entry],
    chains: &Chains,
    options: &Options,
    findings: &mut Findings<'_>,
) -> Vec<TaskGroup> {
    let mut reader = TaskReader { chains, options, copied: 0 };
    entries.iter().map(|entry| reader.group(entry, findings)).collect()
}

struct TaskReader<'c> {
    chains: &'c Chains,
    options: &'c Options,
    /// Weight of the steps copied into tasks so far.
    copied: usize,
}

impl<'c> TaskReader<'c> {
    fn group(&mut self, entry: &Entry, findings: &mut Findings<'_>) -> TaskGroup {
        check_name("a task group", &entry.key, findings);
        let mut group = TaskGroup { name: entry.key.clone(), ..TaskGroup::default() };
        let Some(entries) = mapping("a task group", &entry.value, findings) else {
            return group;
        };
        for task in entries {
            match (&task.value.kind, task.key.text.as_str()) {
                (_, "live") => group.live = text("live", &task.value, findings),
                (Kind::Scalar(..), key) => {
                    let help = findings.did_you_mean(
                        key,
                        ["live"],
                        format!("write a task: `{key}: {{ dataDef: ... }}`"),
                    );
                    findings.error(
                        task.key.at,
                        format!("`{key}` must be a task, but it is {}", task.value.describe()),
                        help,
                    );
                }
                (Kind::Sequence(_) | Kind::Mapping(_), _) => {
                    group.tasks.push(self.task(task, findings));
                }
            }
        }
        if group.tasks.is_empty() && !entries.iter().any(|task| task.key.text != "live") {
            findings.error(
                group.name.at,
                format!("the task group `{}` has no tasks", group.name.text),
                "add one: `myTask: { dataDef: ... }`",
            );
        }
        group
    }

    fn task(&mut self, entry: &Entry, findings: &mut Findings<'_>) -> Task {
        check_name("a task", &entry.key, findings);
        let mut task = Task { name: entry.key.clone(), persist_data: true, ..Task::default() };
        let keys = ["dataDef", "steps", "persist"];
        let at = entry.key.at;
        let Some(fields) = Fields::new("a task", at, &entry.value, &keys, findings) else {
            return task;
        };
        task.data_def = fields.name("dataDef", findings).unwrap_or_default();
        if let Some(node) = fields.get("persist") {
            let persist = Fields::new("`persist`", node.at, node, &["data"], findings);
            let data = persist.and_then(|persist| persist.get("data"));
            let data = data.and_then(|node| boolean("data", node, findings));
            task.persist_data = data.unwrap_or(true);
        }
        let steps = self.steps(&entry.key, fields.get("steps"), findings);
        let steps = steps.and_then(|steps| wiring::walk(&steps, &entry.key, findings));
        task.steps = steps.unwrap_or_default();
        task
    }

    /// The steps a task names, inherits or has by default, in no order yet.
    fn steps(
        &mut self,
        task: &Text,
        node: Option<&Node>,
        findings: &mut Findings<'_>,
    ) -> Option<Cow<'c, [StepDraft]>> {
        let Some(node) = node else {
            let name = Text::new(self.options.default_steps.clone());
            return self.chain(&name, task, findings).map(Cow::Borrowed);
        };
        let Kind::Mapping(entries) = &node.kind else {
            let name = text("steps", node, findings)?;
            return self.chain(&name, task, findings).map(Cow::Borrowed);
        };
        let [base] = entries.as_slice() else {
            findings.error(
                node.at,
                format!(
                    "the `steps` of task `{}` must hold one chain name, not {}",
                    task.text,
                    entries.len()
                ),
                "put the chain below the top-level `steps:` and write its name here",
            );
            return None;
        };
        let known = self.chain(&base.key, task, findings);
        let overlay = chains::overlay_steps(base, findings)?;
        super::inherit::overlay(known?, &overlay, findings).map(Cow::Owned)
    }

    /// A chain to be copied into a task, as long as the copies are not too many.
    fn chain(
        &mut self,
        name: &Text,
        task: &Text,
        findings: &mut Findings<'_>,
    ) -> Option<&'c [StepDraft]> {
        let chain = self.chains.find(name, findings)?;
        self.copied += chain.iter().map(chains::weight).sum::<usize>();
        if self.copied > chains::WEIGHT_MAX {
            chains::report_too_large(task.at, findings);
            return None;
        }
        Some(chain)
    }
}
