//! Finds settings by name.

use super::keys::Key;
use super::table::table;

/// Removes the optional prefix `scoopi.` or `spoonbill.`.
pub(super) fn without_prefix(name: &str) -> &str {
    name.strip_prefix("scoopi.").or_else(|| name.strip_prefix("spoonbill.")).unwrap_or(name)
}

/// The row of a name without prefix.
pub(super) fn find(name: &str) -> Option<Key> {
    let of_family = |key: &Key| {
        let rest = key.family().and_then(|stem| name.strip_prefix(stem));
        rest.is_some_and(|rest| !rest.is_empty())
    };
    table().find(|key| key.name == name).or_else(|| table().find(of_family))
}

/// The name of the setting that a variable such as `LOADER__FETCH__DELAY` sets.
pub(super) fn find_variable(variable: &str) -> Option<String> {
    let dotted = variable.replace("__", ".").to_ascii_lowercase();
    table().find_map(|key| match key.family() {
        Some(stem) => dotted
            .strip_prefix(stem)
            .filter(|rest| !rest.is_empty())
            .map(|rest| format!("{stem}{rest}")),
        None => key.name.eq_ignore_ascii_case(&dotted).then(|| key.name.to_owned()),
    })
}

/// The environment variable of a setting, without the leading `SPOONBILL_`.
pub(super) fn variable(name: &str) -> String {
    name.replace('.', "__").to_ascii_uppercase()
}

/// Whether the name is a group, as `loader` is the group of `loader.fetch.delay`.
pub(super) fn is_group(name: &str) -> bool {
    table().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The setting with the closest name, or the only setting that ends with a shortened name.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let close = spoonbill_defs::suggest(name, table().map(|key| key.name));
    let ending = format!(".{}", name.to_ascii_lowercase());
    close.or_else(|| {
        let mut longer = table()
            .filter(|key| key.is_effective() && key.name.to_ascii_lowercase().ends_with(&ending));
        let found = longer.next()?;
        longer.next().is_none().then_some(found.name)
    })
}

/// Whether values with this name are secret.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["SECRET", "TOKEN", "PASSWORD", "KEY"].iter().any(|ending| name.ends_with(ending))
}
