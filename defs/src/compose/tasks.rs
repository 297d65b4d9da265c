//! Reads tasks from the sections `taskGroups` and `groups`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::DefsOptions;
use super::chains::{self, FOLLOW_CHAIN, RECORD_CHAIN, SITEMAP_CHAIN, StepDraft};
use super::data_defs::DataDefWithLinks;
use super::inherit::Chains;
use super::mapping::{KeyReader, boolean, check_name, mapping, text};
use super::records::{self, RECORD_KEYS};
use super::sections::Section;
use super::{links, locators, output, wiring};
use crate::data_defs::DataDef;
use crate::findings::Findings;
use crate::follow::Follow;
use crate::locators::{Locator, LocatorGroup};
use crate::records::Record;
use crate::shapes;
use crate::tasks::{Task, TaskGroup};
use crate::text::Text;
use crate::yaml::{YamlEntry, YamlKind, YamlNode};

/// Reads tasks and resolves the chain of each.
pub(super) struct TaskReader<'c> {
    chains: &'c Chains,
    options: &'c DefsOptions,
    /// Total weight of the steps that were copied into tasks.
    copied: usize,
    /// Names of the data definitions with fields.
    records: HashSet<String>,
    /// Follow rules of data definitions, by name.
    links: HashMap<String, Vec<Follow>>,
    pub(super) locator_groups: Vec<LocatorGroup>,
    pub(super) task_groups: Vec<TaskGroup>,
    pub(super) data_defs: Vec<DataDef>,
}

/// The form of a task, which decides its default chain.
#[derive(Clone, Copy, PartialEq)]
enum TaskForm {
    Classic,
    Record,
    LinksOnly,
}

impl<'c> TaskReader<'c> {
    /// Starts with the locator groups and data definitions of the classic sections.
    pub(super) fn new(
        chains: &'c Chains,
        options: &'c DefsOptions,
        locator_groups: Vec<LocatorGroup>,
        data_defs: Vec<DataDefWithLinks>,
    ) -> Self {
        let links = data_defs.iter().map(|(def, links)| (def.name.text.clone(), links.clone()));
        let links = links.collect();
        let data_defs: Vec<DataDef> = data_defs.into_iter().map(|(def, _)| def).collect();
        let records = data_defs.iter().filter(|def| def.record.is_some());
        let records = records.map(|def| def.name.text.clone()).collect();
        Self {
            chains,
            options,
            copied: 0,
            records,
            links,
            locator_groups,
            task_groups: Vec::new(),
            data_defs,
        }
    }

    /// Reads the section `taskGroups`.
    pub(super) fn classic(&mut self, section: &Section, findings: &mut Findings<'_>) {
        for entry in &section.entries {
            let group = self.task_group(entry, findings);
            self.task_groups.push(group);
        }
    }

    /// Reads the sitemaps of the section `locatorGroups`.
    pub(super) fn sitemaps(&mut self, section: &Section, findings: &mut Findings<'_>) {
        for entry in &section.entries {
            // Problems of these keys were reported with the locators.
            let quiet = &mut Findings::new(findings.sources, Vec::new());
            let keys = KeyReader::new(&shapes::LOCATOR_GROUP, entry.key.at, &entry.value, quiet);
            if let Some(keys) = keys {
                self.sitemap_group(&keys, &entry.key, findings);
            }
        }
    }

    /// Reads the section `groups`. Each entry becomes a locator group, a task group and a data
    /// definition.
    pub(super) fn short(&mut self, section: &Section, findings: &mut Findings<'_>) {
        for entry in &section.entries {
            let name = &entry.key;
            check_name("a group", name, findings);
            let Some(keys) = KeyReader::new(&shapes::GROUP, name.at, &entry.value, findings) else {
                continue;
            };
            self.check_free(name, findings);
            let sources = ["urls", "locators", "sitemap"];
            let reported = locators::has_sources(&keys) || keys.misspells(&sources);
            findings.short_groups.insert(name.text.clone(), reported);
            if locators::has_sources(&keys) {
                let group =
                    LocatorGroup { name: name.clone(), ..locators::sources(&keys, findings) };
                if !group.locators.is_empty() || !group.sources.is_empty() {
                    self.locator_groups.push(group);
                }
                self.sitemap_group(&keys, name, findings);
            }
            let live = keys.text("live", findings);
            let start_sequence = if locators::has_sources(&keys) {
                start_sequence(&keys, findings)
            } else {
                keys.index("startSequence", findings).unwrap_or_default()
            };
            let tasks = self.short_tasks(&keys, name, findings);
            self.task_groups.push(TaskGroup { name: name.clone(), live, start_sequence, tasks });
        }
    }

    fn short_tasks(
        &mut self,
        keys: &KeyReader<'_>,
        name: &Text,
        findings: &mut Findings<'_>,
    ) -> Vec<Task> {
        let Some(node) = keys.get("tasks") else {
            return vec![self.task(keys, name, name, findings)];
        };
        let own = ["block", "fields", "columns", "expect", "dataDef", "output", "steps", "persist"];
        for entry in keys.entries_of(&own) {
            findings.error(
                entry.key.at,
                format!("`{}` and `tasks` cannot be used together", entry.key.text),
                format!("move `{}` into one of the tasks", entry.key.text),
            );
        }
        let entries = mapping("`tasks`", node, findings).unwrap_or_default();
        if entries.is_empty() {
            findings.error(
                node.at,
                format!("the group `{}` has no tasks", name.text),
                "add one: `myTask: { fields: { title: h1 } }`",
            );
        }
        let mut tasks: Vec<Task> = Vec::new();
        for entry in entries {
            check_name("a task", &entry.key, findings);
            let keys = KeyReader::new(&shapes::TASK, entry.key.at, &entry.value, findings);
            if let Some(keys) = keys {
                tasks.push(self.task(&keys, &entry.key, name, findings));
            }
        }
        if let Some(first) = tasks.first_mut() {
            first.follow.extend(links::follow(keys, name, findings));
        }
        tasks
    }

    fn check_free(&self, name: &Text, findings: &mut Findings<'_>) {
        let locators = self.locator_groups.iter().map(|group| ("locatorGroups", &group.name));
        let tasks = self.task_groups.iter().map(|group| ("taskGroups", &group.name));
        let taken = locators.chain(tasks).find(|(_, known)| *known == name);
        if let Some((section, known)) = taken {
            let place = findings.location(known.at);
            findings.error(
                name.at,
                format!("the group `{}` is also defined in `{section}`, at {place}", name.text),
                "rename one of them",
            );
        }
    }

    /// Adds a group for each sitemap. The sitemap is its page, and its task adds the addresses to
    /// the given group.
    fn sitemap_group(&mut self, keys: &KeyReader<'_>, group: &Text, findings: &mut Findings<'_>) {
        let sitemaps = links::sitemaps(keys, group, findings);
        if sitemaps.is_empty() {
            return;
        }
        let start_sequence = start_sequence(keys, findings);
        for (number, (url, rule)) in (1..).zip(sitemaps) {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            let name = Text { text: format!("{}:sitemap{number}", group.text), at: url.at };
            let task = Text { text: "sitemap".to_owned(), at: url.at };
            let chain = Text::new(SITEMAP_CHAIN);
            let steps = self.chain(&chain, &task, findings).map(<[StepDraft]>::to_vec);
            let steps = steps.and_then(|steps| wiring::walk(&steps, &task, findings));
            let task = Task {
                name: task,
                data_def: name.clone(),
                follow: vec![rule],
                steps: steps.unwrap_or_default(),
                persist_data: false,
            };
            let locator = Locator { name: url.clone(), url };
            self.locator_groups.push(LocatorGroup {
                name: name.clone(),
                locators: vec![locator],
                start_sequence,
                ..LocatorGroup::default()
            });
            let tasks = vec![task];
            self.task_groups.push(TaskGroup { name: name.clone(), tasks, ..TaskGroup::default() });
            self.data_defs.push(links_only(name));
        }
    }

    fn task_group(&mut self, entry: &YamlEntry, findings: &mut Findings<'_>) -> TaskGroup {
        check_name("a task group", &entry.key, findings);
        let mut group = TaskGroup { name: entry.key.clone(), ..TaskGroup::default() };
        let Some(entries) = mapping("a task group", &entry.value, findings) else {
            return group;
        };
        for task in entries {
            match (&task.value.kind, task.key.text.as_str()) {
                (_, "live") => group.live = text("live", &task.value, findings),
                (YamlKind::Scalar(..), key) => {
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
                (YamlKind::Sequence(_) | YamlKind::Mapping(_), _) => {
                    check_name("a task", &task.key, findings);
                    let keys = KeyReader::new(&shapes::TASK, task.key.at, &task.value, findings);
                    group.tasks.push(match keys {
                        Some(keys) => self.task(&keys, &task.key, &entry.key, findings),
                        None => Task { name: task.key.clone(), ..Task::default() },
                    });
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

    /// Reads a task from the keys of a task or of a short group.
    fn task(
        &mut self,
        keys: &KeyReader<'_>,
        name: &Text,
        group: &Text,
        findings: &mut Findings<'_>,
    ) -> Task {
        let follow = links::follow(keys, group, findings);
        let mut task = Task { name: name.clone(), persist_data: true, follow, ..Task::default() };
        let takes = self.take(keys, &mut task, group, findings);
        if let Some(node) = keys.get("persist") {
            let persist = KeyReader::new(&shapes::PERSIST, node.at, node, findings);
            let data = persist.and_then(|persist| persist.get("data"));
            let data = data.and_then(|node| boolean("data", node, findings));
            task.persist_data = data.unwrap_or(true);
        }
        let steps = self.steps(name, keys.get("steps"), takes, findings);
        let steps = steps.and_then(|steps| wiring::walk(&steps, name, findings));
        task.steps = steps.unwrap_or_default();
        output::name_files(&mut task, keys.filled_text("output", findings), findings);
        task
    }

    /// Reads the data definition of a task: a named one, or one written in place.
    fn take(
        &mut self,
        keys: &KeyReader<'_>,
        task: &mut Task,
        group: &Text,
        findings: &mut Findings<'_>,
    ) -> TaskForm {
        let inline = keys.entries_of(&RECORD_KEYS).next();
        let named = keys.get("dataDef").is_some();
        if named || inline.is_none() && task.follow.is_empty() {
            let reported = keys.get("follow").is_some() || keys.misspells(&["fields", "follow"]);
            task.data_def = if !named && reported {
                // The data definition is broken, which is reported.
                Text::default()
            } else if named || keys.has_misspelt_keys() {
                keys.required_filled_text("dataDef", findings).unwrap_or_default()
            } else {
                report_no_data_def(keys, findings);
                Text::default()
            };
            if named {
                report_keys_beside_data_def(keys, findings);
            }
            // A rule of a data definition without `group` leads to the group of the task.
            let mut rules = self.links.get(&task.data_def.text).cloned().unwrap_or_default();
            for rule in rules.iter_mut().filter(|rule| rule.group.text.is_empty()) {
                rule.group.text.clone_from(&group.text);
            }
            rules.append(&mut task.follow);
            task.follow = rules;
            let record = self.records.contains(&task.data_def.text);
            return if record { TaskForm::Record } else { TaskForm::Classic };
        }
        task.data_def = task.name.clone();
        if let Some(known) = self.data_defs.iter().find(|def| def.name == task.data_def) {
            let place = findings.location(known.name.at);
            findings.error(
                task.name.at,
                format!("there is a dataDef with the name of task `{}`, at {place}", task.name.text),
                "rename one of them: a task with `fields` or `follow` defines a dataDef of that name",
            );
        }
        if inline.is_none() {
            self.data_defs.push(links_only(task.name.clone()));
            return TaskForm::LinksOnly;
        }
        let record = records::record(keys, findings);
        let expect = records::expect(keys, &record, findings);
        self.data_defs.push(DataDef {
            name: task.name.clone(),
            record: Some(record),
            expect,
            ..DataDef::default()
        });
        TaskForm::Record
    }

    /// The steps of a task, not yet in order: its own, those of a named chain, or the default.
    fn steps(
        &mut self,
        task: &Text,
        node: Option<&YamlNode>,
        takes: TaskForm,
        findings: &mut Findings<'_>,
    ) -> Option<Cow<'c, [StepDraft]>> {
        let Some(node) = node else {
            let name = Text::new(match takes {
                TaskForm::Classic => self.options.default_steps.as_str(),
                TaskForm::Record => RECORD_CHAIN,
                TaskForm::LinksOnly => FOLLOW_CHAIN,
            });
            return self.chain(&name, task, findings).map(Cow::Borrowed);
        };
        let YamlKind::Mapping(entries) = &node.kind else {
            let name = text("steps", node, findings)?;
            return self.chain(&name, task, findings).map(Cow::Borrowed);
        };
        let [base] = entries.as_slice() else {
            findings.error(
                node.at,
                format!(
                    "the `steps` of task `{}` must name one chain, not {}",
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

    /// The steps of a chain to copy into a task. Reports chains that are too large in total.
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

/// The key `startSequence` of a mapping that was read before, so its problems are reported.
fn start_sequence(keys: &KeyReader<'_>, findings: &Findings<'_>) -> u32 {
    let quiet = &mut Findings::new(findings.sources, Vec::new());
    keys.index("startSequence", quiet).unwrap_or_default()
}

/// A data definition without rows, for pages that are only read for their links.
fn links_only(name: Text) -> DataDef {
    DataDef { name, record: Some(Record::default()), ..DataDef::default() }
}

/// Reports keys of a record together with `dataDef`.
fn report_keys_beside_data_def(keys: &KeyReader<'_>, findings: &mut Findings<'_>) {
    for YamlEntry { key, .. } in keys.entries_of(&RECORD_KEYS) {
        findings.error(
            key.at,
            format!("`{}` and `dataDef` cannot be used together", key.text),
            format!("move `{}` into the dataDef, or remove `dataDef`", key.text),
        );
    }
}

fn report_no_data_def(keys: &KeyReader<'_>, findings: &mut Findings<'_>) {
    let classic = keys.what() == shapes::TASK.what;
    findings.error(
        keys.at(),
        format!("{} needs `fields`, `dataDef` or `follow`", keys.what()),
        if classic {
            "add `dataDef: ...`, or `fields:` with the columns"
        } else {
            "add `fields:` with the columns: `title: h1`"
        },
    );
}
