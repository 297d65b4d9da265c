//! Cross-references; collects, never stops at the first.
//!
//! Works on merged, normalised definitions, so it knows nothing of files or YAML.

mod flow;
mod items;
mod live;
mod names;
mod variables;

use crate::Defs;
use crate::findings::Findings;

/// Checks everything that concerns more than one entry.
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
