//! `spoonbill check`: everything that is wrong, before anything is fetched.

use std::path::Path;

use super::problems::{self, Shown};
use super::{LogArgs, SettingArgs};
use crate::compose::compose;

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
            let locators: usize =
                defs.locator_groups.iter().map(|group| group.locators.len()).sum();
            let tasks: usize = defs.task_groups.iter().map(|group| group.tasks.len()).sum();
            super::print_err(&format!(
                "ok: {locators} locators in {} groups, {tasks} tasks, {} data definitions\n",
                defs.locator_groups.len(),
                defs.data_defs.len()
            ));
            0
        }
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            3
        }
    }
}
