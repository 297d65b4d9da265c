//! `spoonbill config`: every effective setting and where its value came from.

use std::path::PathBuf;

use super::SettingArgs;

pub(super) fn config(settings: &SettingArgs, defs_dir: Option<&PathBuf>) -> u8 {
    let config = match settings.resolve(defs_dir, None) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let entries: Vec<_> = config.entries().collect();
    let width = entries.iter().map(|entry| entry.key.len()).max().unwrap_or(0);
    let lines = entries.iter().map(|entry| {
        let value = entry.value.unwrap_or("(none)");
        let note = if entry.effective { "" } else { ", accepted without effect" };
        format!("{:width$} = {value}  ({}{note})\n", entry.key, entry.source)
    });
    u8::from(super::print_out(&lines.collect::<Vec<_>>().concat()).is_err())
}
