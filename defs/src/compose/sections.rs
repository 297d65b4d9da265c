//! The top level: the sections of all files, merged one level deep.

use std::collections::HashMap;

use super::fields::{mapping, unknown_key};
use crate::findings::Findings;
use crate::text::Span;
use crate::yaml::{Entry, Node};

/// The keys of the top level.
pub(super) const SECTIONS: [&str; 4] = ["locatorGroups", "taskGroups", "dataDefs", "steps"];

/// One section with the entries of all files.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// The first place that names the section; `None` when no file does.
    pub(super) at: Option<Span>,
    /// Entries by name; a replaced one keeps its position.
    pub(super) entries: Vec<Entry>,
}

/// Merges the files' sections, in the order of [`SECTIONS`].
pub(super) fn merge(roots: Vec<Node>, findings: &mut Findings<'_>) -> [Section; 4] {
    let mut sections: [Section; 4] = Default::default();
    let mut positions: [HashMap<String, usize>; 4] = Default::default();
    for root in roots {
        let Some(entries) = mapping("a definition file", &root, findings) else {
            continue;
        };
        for section in entries {
            let Some(index) = SECTIONS.iter().position(|name| *name == section.key.text) else {
                unknown_key("a definition file", &section.key, &SECTIONS, findings);
                continue;
            };
            sections[index].at.get_or_insert(section.key.at);
            let what = format!("`{}`", section.key.text);
            for entry in mapping(&what, &section.value, findings).unwrap_or_default() {
                add(
                    entry.clone(),
                    &mut sections[index].entries,
                    &mut positions[index],
                    findings,
                );
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
