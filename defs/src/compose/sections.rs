//! The top level: the sections of all files, merged one level deep.

use std::collections::HashMap;

use super::fields::{mapping, unknown_key};
use crate::findings::Findings;
use crate::text::Span;
use crate::yaml::{Entry, Node};

/// The keys of the top level.
pub(super) const SECTIONS: [&str; 5] =
    ["locatorGroups", "taskGroups", "dataDefs", "steps", "groups"];

/// One section with the entries of all files.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// The first place that names the section or may hide it; `None` when no file has it.
    pub(super) at: Option<Span>,
    /// Entries by name; a replaced one keeps its position.
    pub(super) entries: Vec<Entry>,
}

/// Merges the files' sections, in the order of [`SECTIONS`].
pub(super) fn merge(roots: Vec<Node>, findings: &mut Findings<'_>) -> [Section; 5] {
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
        for section in entries {
            let Some(index) = SECTIONS.iter().position(|name| *name == section.key.text) else {
                // A misspelt section hides its names, so nothing is called unknown or missing.
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
                add(entry.clone(), &mut sections[index].entries, &mut positions[index], findings);
            }
        }
    }
    sections
}

fn add(
    entry: Entry,
    entries: &mut Vec<Entry>,
    positions: &mut HashMap<String, usize>,
    findings: &mut Findings<'_>,
) {
    let known = positions.get(&entry.key.text).copied();
    match known.and_then(|position| entries.get_mut(position)) {
        None => {
            positions.insert(entry.key.text.clone(), entries.len());
            entries.push(entry);
        }
        Some(earlier) => {
            if *earlier != entry {
                findings.warn(
                    entry.key.at,
                    format!(
                        "`{}` replaces a different definition of that name, the one at {}",
                        entry.key.text,
                        findings.place_name(earlier.key.at)
                    ),
                    "rename or remove one of the two; the parts are not put together",
                );
            }
            *earlier = entry;
        }
    }
}
