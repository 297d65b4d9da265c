//! Explains how the definitions of an unfinished run differ from the current ones.

use std::collections::BTreeMap;

use spoonbill_defs::Defs;

use crate::config::deciding;
use crate::ledger::OpenMode;
use crate::plan::prepare::Plan;
use crate::plan::publish::{PublishedPlan, encode};

/// The message for a data directory that holds another run. `defs` and `settings` are the published
/// bytes of that run.
pub(crate) fn explain(defs: &[u8], settings: &[u8], new: &Plan, mode: OpenMode) -> String {
    let mut found = match postcard::from_bytes::<PublishedPlan>(defs) {
        Ok(old) => changes(&old, &new.published),
        Err(_) => vec!["its definitions cannot be read".to_owned()],
    };
    match postcard::from_bytes::<BTreeMap<String, String>>(settings) {
        Ok(old) => found.extend(other_settings(&old, &new.config.to_map())),
        Err(_) => found.push("its settings cannot be read".to_owned()),
    }
    let what = match mode {
        OpenMode::Retry => "the last run in the data directory had other definitions or settings",
        OpenMode::Continue | OpenMode::Complete | OpenMode::Fresh => {
            "the data directory holds an unfinished run of other definitions or settings"
        }
    };
    let changes = if found.is_empty() {
        "another version of Spoonbill began it".to_owned()
    } else {
        found.join(", ")
    };
    let discard = match mode {
        OpenMode::Retry => "to start a new run, use `spoonbill run --fresh`",
        OpenMode::Continue | OpenMode::Complete | OpenMode::Fresh => "to discard it, add `--fresh`",
    };
    format!(
        "{what}: {changes}; to finish it, run with the old ones; {discard}; to keep it, name another \
         `--data-dir`"
    )
}

fn changes(old: &PublishedPlan, new: &PublishedPlan) -> Vec<String> {
    let mut found = Vec::new();
    compare("locator group", &locator_groups(&old.defs), &locator_groups(&new.defs), &mut found);
    compare("task group", &task_groups(&old.defs), &task_groups(&new.defs), &mut found);
    compare("dataDef", &data_defs(&old.defs), &data_defs(&new.defs), &mut found);
    compare("script", &named(&old.files), &named(&new.files), &mut found);
    compare("list", &named(&old.lists), &named(&new.lists), &mut found);
    // The values may be secret; the names are not.
    compare("variable", &named(&old.secrets), &named(&new.secrets), &mut found);
    if found.is_empty() && old.defs != new.defs {
        found.push("the definitions have changed".to_owned());
    }
    found
}

fn other_settings(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let shown = |value: Option<&String>| value.map_or("not set".to_owned(), |v| format!("`{v}`"));
    let changed = deciding().filter(|key| old.get(*key) != new.get(*key));
    let words = changed.map(|key| {
        let (was, is) = (shown(old.get(key)), shown(new.get(key)));
        format!("setting `{key}` was {was} and is {is}")
    });
    words.collect()
}

fn named<T: AsRef<[u8]>>(files: &BTreeMap<String, T>) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(name, content)| (name.clone(), content.as_ref().to_vec())).collect()
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
