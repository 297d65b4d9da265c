//! `spoonbill check`: everything that is wrong, before anything is fetched.

use std::path::Path;

use super::problems::{self, Shown};
use super::{LogArgs, SettingArgs};
use crate::compose::compose;
use crate::report::counted;

pub(super) fn check(defs_dir: &Path, settings: &SettingArgs, logging: &LogArgs) -> u8 {
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
            0
        }
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            3
        }
    }
}
