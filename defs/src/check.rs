//! Checks the references between entries.
//!
//! It works on merged, normalised definitions and is independent of files and YAML.

mod flow;
mod items;
mod live;
mod names;
mod variables;

use crate::Defs;
use crate::findings::Findings;

/// Runs all checks that concern more than one entry.
pub(crate) fn check(defs: &Defs, findings: &mut Findings<'_>) {
    names::check(defs, findings);
    live::check(&defs.task_groups, findings);
    flow::check(defs, findings);
    for def in &defs.data_defs {
        items::check(def, findings);
        variables::check(def, findings);
    }
}

#[cfg(test)]
mod tests;
