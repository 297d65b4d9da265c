//! What differs between the definitions of an unfinished run and those of now, in words.

use spoonbill_defs::Defs;

use crate::compose::{Published, encode};
use crate::ledger::OpenMode;

/// The choice a person has when the data directory holds another run.
pub(crate) fn words(old: &[u8], new: &Published, mode: OpenMode) -> String {
    let changes = match postcard::from_bytes::<Published>(old) {
        Ok(old) => changes(&old, new),
        Err(_) => vec!["its definitions cannot be read".to_owned()],
    };
    let what = match mode {
        OpenMode::Retry => "the last run in the data directory had other definitions or settings",
        OpenMode::Continue | OpenMode::Fresh => {
            "the data directory holds an unfinished run of other definitions or settings"
        }
    };
    let changes = if changes.is_empty() {
        "settings that decide the rows have changed".to_owned()
    } else {
        changes.join(", ")
    };
    format!(
        "{what}: {changes}; to finish it, run with the old ones again; to discard it, add \
         `--fresh`; to leave it alone, name another `--data-dir`"
    )
}

fn changes(old: &Published, new: &Published) -> Vec<String> {
    let mut found = Vec::new();
    compare("locator group", &locator_groups(&old.defs), &locator_groups(&new.defs), &mut found);
    compare("task group", &task_groups(&old.defs), &task_groups(&new.defs), &mut found);
    compare("dataDef", &data_defs(&old.defs), &data_defs(&new.defs), &mut found);
    if old.files != new.files {
        found.push("a script has changed".to_owned());
    }
    found
}

fn locator_groups(defs: &Defs) -> Vec<(String, Vec<u8>)> {
    defs.locator_groups.iter().map(|group| (group.name.text.clone(), encode(group))).collect()
}

fn task_groups(defs: &Defs) -> Vec<(String, Vec<u8>)> {
    defs.task_groups.iter().map(|group| (group.name.text.clone(), encode(group))).collect()
}

fn data_defs(defs: &Defs) -> Vec<(String, Vec<u8>)> {
    defs.data_defs.iter().map(|def| (def.name.text.clone(), encode(def))).collect()
}

fn compare(
    kind: &str,
    old: &[(String, Vec<u8>)],
    new: &[(String, Vec<u8>)],
    found: &mut Vec<String>,
) {
    for (name, bytes) in new {
        match old.iter().find(|(known, _)| known == name) {
            None => found.push(format!("{kind} `{name}` is new")),
            Some((_, known)) if known != bytes => {
                found.push(format!("{kind} `{name}` has changed"));
            }
            Some(_) => {}
        }
    }
    for (name, _) in old.iter().filter(|(name, _)| new.iter().all(|(known, _)| known != name)) {
        found.push(format!("{kind} `{name}` is gone"));
    }
}
