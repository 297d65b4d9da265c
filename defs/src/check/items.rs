//! Checks the names of the items of one data definition.

use std::collections::HashMap;

use crate::data_defs::DataDef;
use crate::findings::Findings;
use crate::text::Span;

/// Reports names that are not unique across the axes, as variables refer to entries by name.
pub(super) fn check(def: &DataDef, findings: &mut Findings<'_>) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for item in def.items.iter().chain(&def.dims).chain(&def.facts) {
        let name = &item.name;
        // A missing name is empty; it is reported where the item is read.
        if name.text.is_empty() {
            continue;
        }
        let Some(first) = seen.get(name.as_str()) else {
            seen.insert(name.as_str(), name.at);
            continue;
        };
        if name.at.line == 0 {
            findings.error(
                *first,
                format!("`{}` is the name of the default fact", name.text),
                "rename the entry, or add `facts` with another name",
            );
        } else {
            findings.error(
                name.at,
                format!("two entries of the dataDef have the name `{}`", name.text),
                format!(
                    "line {} has the same name; names must be unique in items, dims and facts",
                    first.line
                ),
            );
        }
    }
}
