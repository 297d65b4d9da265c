//! What a setting is: its name, kind, default and one line of doc. The rows stand in `table.rs`.
//!
//! Everything else about settings (checking, typed groups, the reference page) follows from them.

use std::time::Duration;

use super::table::TABLE;

/// One row of the table of settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Dotted camelCase name; a family ends in `.<...>` and stands for any last word.
    pub(super) name: &'static str,
    /// Heading it stands under in the reference.
    pub(super) group: &'static str,
    /// What its value must look like.
    pub(super) kind: Kind,
    /// Its value when nobody sets it.
    pub(super) preset: Preset,
    /// One or two sentences for the reference and the `config` command.
    pub(super) doc: &'static str,
    /// Whether it changes anything; false for names kept only so that Scoopi's settings load.
    pub(super) effective: bool,
}

/// What the value of a setting must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// Yes or no.
    Boolean,
    /// A whole number within bounds, both included.
    Integer {
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A length of time.
    Duration {
        /// What a number without a unit counts.
        bare: Bare,
        /// Shortest allowed.
        min: Duration,
    },
    /// A number of bytes.
    Size {
        /// Smallest allowed.
        min: u64,
    },
    /// A path, relative to the working directory.
    Path,
}

/// What a duration without a unit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    /// Nothing: the unit must be written.
    Refused,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// The unit that another setting names.
    NamedBy(&'static str),
}

/// The value of a setting that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// None.
    Unset,
    /// This text.
    Is(&'static str),
    /// The value of another setting, or this text where that one has none.
    Like(&'static str, &'static str),
}

impl Key {
    /// The words before the last one of a family, with the dot.
    pub(super) fn family(&self) -> Option<&'static str> {
        self.name.split_once('<').map(|(stem, _)| stem)
    }
}

/// Drops the prefix that Scoopi's files and ours may carry.
pub(super) fn without_prefix(name: &str) -> &str {
    name.strip_prefix("scoopi.").or_else(|| name.strip_prefix("spoonbill.")).unwrap_or(name)
}

/// Finds the row of a name written without prefix.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    TABLE.iter().find(|key| match key.family() {
        Some(stem) => name.strip_prefix(stem).is_some_and(|rest| !rest.is_empty()),
        None => key.name == name,
    })
}

/// Finds the full name that a variable such as `LOADER__FETCH__DELAY` stands for.
pub(super) fn find_variable(variable: &str) -> Option<String> {
    let dotted = variable.replace("__", ".").to_ascii_lowercase();
    TABLE.iter().find_map(|key| match key.family() {
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

/// Whether any setting stands below this name, as `loader.fetch.delay` does below `loader`.
pub(super) fn is_group(name: &str) -> bool {
    TABLE.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The setting a misspelt name probably meant, or the only one that ends as a shortened name does.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let close = spoonbill_defs::suggest(name, TABLE.iter().map(|key| key.name));
    let ending = format!(".{}", name.to_ascii_lowercase());
    close.or_else(|| {
        let mut longer = TABLE
            .iter()
            .filter(|key| key.effective && key.name.to_ascii_lowercase().ends_with(&ending));
        let found = longer.next()?;
        longer.next().is_none().then_some(found.name)
    })
}

/// Whether a value of this name must not be shown.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["SECRET", "TOKEN", "PASSWORD", "KEY"].iter().any(|ending| name.ends_with(ending))
}
