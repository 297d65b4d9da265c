//! Merges the top-level sections of all files.

use std::collections::HashMap;

use super::mapping::{mapping, unknown_key};
use crate::findings::Findings;
use crate::problem::suggest;
use crate::shapes;
use crate::text::Span;
use crate::yaml::{YamlEntry, YamlNode, shorten};

/// The top-level keys.
pub(super) const SECTIONS: [&str; 5] =
    ["groups", "locatorGroups", "taskGroups", "dataDefs", "steps"];

/// One section with the entries of all files.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// First position of the section, or of a mistake that may hide it. `None` if no file has it.
    pub(super) at: Option<Span>,
    /// Entries in order. A replaced entry keeps its position.
    pub(super) entries: Vec<YamlEntry>,
}

/// Merges the files' sections, in the order of [`SECTIONS`].
pub(super) fn merge(roots: Vec<YamlNode>, findings: &mut Findings<'_>) -> [Section; 5] {
    let mut sections: [Section; 5] = Default::default();
    let mut positions: [HashMap<String, usize>; 5] = Default::default();
    for root in roots {
        let Some(entries) = mapping("a definition file", &root, findings) else {
            findings.incomplete = true;
            for section in &mut sections {
                section.at.get_or_insert(root.at);
            }
            continue;
        };
        let (loose, entries) = without_group(entries);
        if let Some(first) = loose.first() {
            report_loose(first, findings);
            findings.incomplete = true;
            sections[0].at.get_or_insert(first.key.at);
        }
        for section in entries {
            let Some(index) = SECTIONS.iter().position(|name| *name == section.key.text) else {
                // A misspelt section hides its names, so no name is reported as unknown.
                let meant = unknown_key("a definition file", &section.key, &SECTIONS, findings);
                let meant = SECTIONS.iter().position(|name| Some(*name) == meant);
                if let Some(section_meant) = meant.and_then(|index| sections.get_mut(index)) {
                    findings.incomplete = true;
                    section_meant.at.get_or_insert(section.key.at);
                }
                continue;
            };
            sections[index].at.get_or_insert(section.key.at);
            let what = format!("`{}`", section.key.text);
            let entries = mapping(&what, &section.value, findings);
            findings.incomplete |= entries.is_none();
            for entry in entries.unwrap_or_default() {
                add(
                    entry.clone(),
                    index == 0,
                    &mut sections[index].entries,
                    &mut positions[index],
                    findings,
                );
            }
        }
    }
    sections
}

/// Splits the top-level entries of a file into those that belong in a group, and the rest.
fn without_group(entries: &[YamlEntry]) -> (Vec<&YamlEntry>, Vec<&YamlEntry>) {
    let is_group_key = |name: &str| shapes::GROUP.names().any(|key| key == name);
    let is_loose = |entry: &&YamlEntry| {
        let name = entry.key.text.as_str();
        if SECTIONS.contains(&name) || suggest(name, SECTIONS).is_some() {
            return false;
        }
        let holds = |key: &str| entry.value.get(key).is_some();
        is_group_key(name) || ["urls", "fields", "follow"].into_iter().any(holds)
    };
    entries.iter().partition(is_loose)
}

fn report_loose(first: &YamlEntry, findings: &mut Findings<'_>) {
    let name = shorten(&first.key.text);
    if shapes::GROUP.names().any(|key| key == first.key.text) {
        findings.error(
            first.key.at,
            format!("`{name}` is a key of a group, but it stands at the top level"),
            format!("move it into a group: `groups: {{ myGroup: {{ {name}: ... }} }}`"),
        );
    } else {
        findings.error(
            first.key.at,
            format!("`{name}` is a group, but it is not below `groups:`"),
            "write `groups:` above it and indent it",
        );
    }
}

fn add(
    entry: YamlEntry,
    short: bool,
    entries: &mut Vec<YamlEntry>,
    positions: &mut HashMap<String, usize>,
    findings: &mut Findings<'_>,
) {
    let known = positions.get(&entry.key.text).copied();
    match known.and_then(|position| entries.get_mut(position)) {
        None => {
            positions.insert(entry.key.text.clone(), entries.len());
            entries.push(entry);
        }
        Some(earlier) if short => findings.error(
            entry.key.at,
            format!(
                "the group `{}` is already defined at {}",
                entry.key.text,
                findings.location(earlier.key.at)
            ),
            "rename one of them, or merge them by hand: groups of the same name are not merged",
        ),
        Some(earlier) => {
            if *earlier != entry {
                findings.warn(
                    entry.key.at,
                    format!(
                        "`{}` replaces the different definition at {}",
                        entry.key.text,
                        findings.location(earlier.key.at)
                    ),
                    "rename or remove one of them: definitions of the same name are not merged",
                );
            }
            *earlier = entry;
        }
    }
}
