//! `spoonbill check`: everything that is wrong, before anything is fetched.

use std::path::Path;

use spoonbill_defs::Sources;

use super::problems::{self, Shown};
use super::{LogArgs, SettingArgs, print_out};
use crate::config::Config;
use crate::error::counted;
use crate::plan::prepare::{forms, looked_up, prepare};
use crate::plan::publish::{Composed, compose};

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
    match compose(defs_dir, &config) {
        Ok(composed) => {
            problems::print(&composed.warnings, Shown::ProblemsAndCount);
            let defs = &composed.published.defs;
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
            if explain { told(&composed, &config) } else { 0 }
        }
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            3
        }
    }
}

/// Tells how pages are read. There is one way, whatever the definitions: all that is looked up in a
/// page is looked up in one tree for each manner of reading, which is made once.
fn told(composed: &Composed, config: &Config) -> u8 {
    let Ok(prepared) = prepare(&composed.published, config, &composed.date, &Sources::default())
    else {
        return 3;
    };
    let mut lines = Vec::new();
    for (name, group) in &prepared.groups {
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
