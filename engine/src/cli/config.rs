//! `spoonbill config`: every effective setting with its source.

use std::path::PathBuf;

use clap::Args;

use super::{CommandResult, RunCommand, SettingArgs, print_out};

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(flatten)]
    settings: SettingArgs,
    /// Look for `spoonbill.yml` beside this directory
    #[arg(long, value_name = "DIR")]
    defs_dir: Option<PathBuf>,
}

impl RunCommand for ConfigArgs {
    fn run(&self) -> CommandResult {
        let config = self.settings.resolve(self.defs_dir.as_deref())?;
        let entries: Vec<_> = config.entries().collect();
        let width = entries.iter().map(|entry| entry.key.len()).max().unwrap_or(0);
        let lines = entries.iter().map(|entry| {
            let value = entry.value.unwrap_or("(none)");
            let note = if entry.effective { "" } else { ", accepted without effect" };
            format!("{:width$} = {value}  ({}{note})\n", entry.key, entry.source)
        });
        print_out(&lines.collect::<String>())
    }
}
