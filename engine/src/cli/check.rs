//! `spoonbill check`: everything that is wrong, before anything is fetched.

use std::path::Path;

use super::problems::{self, Shown};
use super::{LogArgs, SettingArgs, print_out};
use crate::error::counted;
use crate::plan::load::Definitions;
use crate::plan::prepare::{Plan, forms, looked_up};

pub(super) fn check(
    defs_dir: &Path,
    explain: bool,
    settings: &SettingArgs,
    logging: &LogArgs,
) -> u8 {
    logging.start();
    let config = match settings.resolve(Some(&defs_dir.to_path_buf()), None) {
        Ok(config) => config,
        Err(code) => return code,
    };
    match Definitions::load(defs_dir, &config) {
        Ok(Definitions { plan, warnings, .. }) => {
            problems::print(&warnings, Shown::ProblemsAndCount);
            let defs = &plan.published.defs;
            let groups = &defs.locator_groups;
            let locators: usize = groups.iter().map(|group| group.locators.len()).sum();
            let sources: usize = groups.iter().map(|group| group.sources.len()).sum();
            let more = match sources {
                0 => String::new(),
                _ => format!(" and {}", counted(sources as u64, "source")),
            };
            let tasks: usize = defs.task_groups.iter().map(|group| group.tasks.len()).sum();
            super::print_err(&format!(
                "ok: {}{more} in {}, {}, {}\n",
                counted(locators as u64, "locator"),
                counted(groups.len() as u64, "group"),
                counted(tasks as u64, "task"),
                counted(defs.data_defs.len() as u64, "data definition"),
            ));
            if explain { explain_reading(&plan) } else { 0 }
        }
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            3
        }
    }
}

/// Prints how pages are read: one tree for each dialect, which all tasks of a page share.
fn explain_reading(plan: &Plan) -> u8 {
    let mut lines = Vec::new();
    for (name, group) in &plan.groups {
        let forms = match forms(group) {
            forms if forms.is_empty() => "nothing: it is loaded only".to_owned(),
            forms => forms.join(", and "),
        };
        lines.push(format!("group `{name}`: a page is read once, into {forms}\n"));
        for task in &group.tasks {
            let what = looked_up(task);
            if !what.is_empty() {
                lines.push(format!("    task `{}` looks up {}\n", task.name, what.join(" and ")));
            }
        }
    }
    let always = "selectors, patterns and scripts are compiled once a run; selectors look at lists of a \
                  page's elements by name, id and class\n";
    lines.push(always.to_owned());
    u8::from(print_out(&lines.concat()).is_err())
}
