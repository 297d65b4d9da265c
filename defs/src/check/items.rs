//! The entries of one data definition: their names.

use std::collections::HashMap;

use crate::data_defs::DataDef;
use crate::findings::Findings;
use crate::text::Span;

/// The one name the last axis has, and no other may have.
const FACT: &str = "fact";

/// Checks that names are unique and the fact is the fact.
pub(super) fn check(def: &DataDef, findings: &mut Findings<'_>) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for item in def.items.iter().chain(&def.dims) {
        if item.name.text == FACT {
            findings.error(
                item.name.at,
                "only the entry of `facts` may be called `fact`",
                "give the item another name; it is not printed",
            );
        }
    }
    for item in def.items.iter().chain(&def.dims).chain(&def.facts) {
        let name = &item.name;
        // An empty name is a missing one, which is reported where the item is read.
        if name.text.is_empty() {
            continue;
        }
        match seen.get(name.as_str()) {
            None => {
                seen.insert(name.as_str(), name.at);
            }
            Some(_) if name.text == FACT => {}
            Some(first) => findings.error(
                name.at,
                format!("two entries of the dataDef are called `{}`", name.text),
                format!(
                    "the other one is on line {}; names must differ over items, dims and facts",
                    first.line
                ),
            ),
        }
    }
    check_facts(def, findings);
}

fn check_facts(def: &DataDef, findings: &mut Findings<'_>) {
    for (position, item) in def.facts.iter().enumerate() {
        if item.name.text.is_empty() {
            continue;
        }
        if position > 0 {
            findings.error(
                item.name.at,
                "`facts` has one entry only",
                "make the others entries of `items` or `dims`",
            );
        } else if item.name.text != FACT {
            findings.error(
                item.name.at,
                format!("the entry of `facts` is called `{}`", item.name.text),
                "call it `fact`; the name is not printed",
            );
        }
    }
}
