//! `spoonbill check`: all problems of the definitions, without a request.

use std::path::PathBuf;

use clap::Args;

use super::problems::{self, ProblemsShown};
use super::{CommandResult, LogArgs, RunCommand, SettingArgs, print_err, print_out};
use crate::error::counted;
use crate::plan::load::Definitions;
use crate::plan::prepare::{Plan, forms, looked_up};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Directory of definition files
    defs_dir: PathBuf,
    /// Explain how the pages of each group are read
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    logging: LogArgs,
}

impl RunCommand for CheckArgs {
    fn run(&self) -> CommandResult {
        self.logging.start();
        let config = self.settings.resolve(Some(&self.defs_dir))?;
        let Definitions { plan, warnings, .. } = Definitions::load(&self.defs_dir, &config)?;
        problems::print(&warnings, ProblemsShown::WithCount);
        print_err(&summary(&plan));
        if self.explain { explain_reading(&plan) } else { Ok(0) }
    }
}

fn summary(plan: &Plan) -> String {
    let defs = &plan.published.defs;
    let groups = &defs.locator_groups;
    let locators: usize = groups.iter().map(|group| group.locators.len()).sum();
    let sources: usize = groups.iter().map(|group| group.sources.len()).sum();
    let more = match sources {
        0 => String::new(),
        _ => format!(" and {}", counted(sources as u64, "source")),
    };
    let tasks: usize = defs.task_groups.iter().map(|group| group.tasks.len()).sum();
    format!(
        "ok: {}{more} in {}, {}, {}\n",
        counted(locators as u64, "locator"),
        counted(groups.len() as u64, "group"),
        counted(tasks as u64, "task"),
        counted(defs.data_defs.len() as u64, "data definition"),
    )
}

/// Prints how pages are read: one tree for each dialect, which all tasks of a page share.
fn explain_reading(plan: &Plan) -> CommandResult {
    let mut lines = Vec::new();
    for (name, group) in &plan.groups {
        let forms = match forms(group) {
            forms if forms.is_empty() => "nothing: it is only loaded".to_owned(),
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
    let always = "a run compiles selectors, patterns and scripts once; selectors use an index of a page's \
                  elements by name, id and class\n";
    lines.push(always.to_owned());
    print_out(&lines.concat())
}
