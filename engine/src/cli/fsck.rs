//! `spoonbill fsck`: verifies a data directory.

use super::{SettingArgs, expect_run, print_err, print_out};
use crate::cluster::LOG_CHECK;
use crate::run::exit_code;
use crate::threads::ignore::ignore_closed;
use crate::{pages, store};

pub(super) fn fsck(settings: &SettingArgs) -> u8 {
    let config = match settings.resolve(None, None) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let dir = &config.store.data_dir;
    if let Err(code) = expect_run(dir, "") {
        return code;
    }
    let mut found = match store::examine(dir, &LOG_CHECK) {
        Ok(found) => found,
        Err(error) => {
            print_err(&format!("error: {error}\n"));
            return exit_code::of_error(&error.into());
        }
    };
    found.extend(pages::examine(dir));
    if found.is_empty() {
        print_err(&format!("`{}` is whole\n", dir.display()));
        return 0;
    }
    let lines: Vec<String> = found.iter().map(|words| format!("{words}\n")).collect();
    // The directory is damaged, even if the list cannot be printed.
    ignore_closed(print_out(&lines.concat()));
    1
}
