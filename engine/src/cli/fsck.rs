//! `spoonbill fsck`: verifies a data directory.

use clap::Args;

use super::{CommandResult, RunCommand, SettingArgs, expect_run, print_err, print_out};
use crate::cluster::LOG_CHECK;
use crate::{pages, store};

#[derive(Debug, Args)]
pub(super) struct FsckArgs {
    #[command(flatten)]
    settings: SettingArgs,
}

impl RunCommand for FsckArgs {
    fn run(&self) -> CommandResult {
        let dir = self.settings.resolve(None)?.store.data_dir;
        expect_run(&dir, "")?;
        let mut found = store::examine(&dir, &LOG_CHECK)?;
        found.extend(pages::examine(&dir));
        if found.is_empty() {
            print_err(&format!("`{}` is undamaged\n", dir.display()));
            return Ok(0);
        }
        print_out(&(found.join("\n") + "\n"))?;
        Ok(1)
    }
}
