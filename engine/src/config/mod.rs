//! Settings: read once, checked together, and passed on as typed groups.
//!
//! `table.rs` has a row for each setting, and `inputs.rs` reads their sources. Nothing here prints. Only
//! scripts read a setting by its name.

mod choices;
mod cluster;
mod file;
mod groups;
mod inputs;
mod keys;
mod lookup;
mod reference;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use spoonbill_defs::{Problem, Problems};

pub use choices::{ClusterRole, Durability, OutputOrder, PagesKeep, Placement};
pub use cluster::Seating;
pub use inputs::Inputs;
pub(crate) use inputs::variable;
pub use reference::reference;
pub use table::{
    ClusterConfig, Config, DatesConfig, DefsConfig, FactConfig, FetchConfig, JobConfig,
    LinksConfig, OutputConfig, ParseConfig, RunConfig, ScriptConfig, StoreConfig,
};
pub use value::Source;

use inputs::{Assignment, Gathered};
use keys::{Bare, Key, Kind, Preset, Scope, UNITS};
use table::table;
use value::{Setting, Value};

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("command line"),
            Self::Set => f.write_str("`--set`"),
            Self::Env(name) => write!(f, "environment variable `{name}`"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Published => f.write_str("published settings"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One line of the `config` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Full name, without prefix.
    pub key: &'a str,
    /// The value as written; `***` for a secret.
    pub value: Option<&'a str>,
    /// The source of the value.
    pub source: &'a Source,
    /// The meaning of the setting.
    pub doc: &'static str,
    /// Whether it has an effect.
    pub effective: bool,
}

impl Config {
    /// Reads and checks every source. Returns the settings and warnings, or all problems.
    pub fn resolve(inputs: &Inputs) -> Result<(Self, Vec<Problem>), Problems> {
        let (config, problems) = settle(Gathered::from_inputs(inputs));
        if problems.has_errors() {
            return Err(problems);
        }
        Ok((config, problems.0))
    }

    /// Reads a map of [`Config::to_map`]. Missing settings have their default.
    pub fn from_map(map: &BTreeMap<String, String>) -> Result<Self, Problems> {
        let mut gathered = Gathered::default();
        for (name, text) in map {
            gathered.add(name, text, Source::Published);
        }
        let (config, problems) = settle(gathered);
        if problems.has_errors() {
            return Err(problems);
        }
        Ok(config)
    }

    /// Every setting that has a value, including defaults, so that all nodes have equal ones.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.settings
            .iter()
            .filter_map(|(name, setting)| Some((name.clone(), setting.text.clone()?)))
            .collect()
    }

    /// Published settings, combined with this machine's own: paths, threads and the part in the cluster.
    pub fn with_published(&self, mut all: BTreeMap<String, String>) -> Result<Self, Problems> {
        all.retain(|name, _| !is_local(name));
        all.extend(self.to_map().into_iter().filter(|(name, _)| is_local(name)));
        Self::from_map(&all)
    }

    /// The settings to publish: all but the secret.
    pub fn shared(&self) -> BTreeMap<String, String> {
        let mut all = self.to_map();
        all.retain(|name, _| name != "cluster.secret");
        all
    }

    /// Every setting, in the order of the reference.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        table().flat_map(move |key| {
            let from = key.family().unwrap_or(key.name);
            self.settings
                .range(from.to_owned()..)
                .take_while(move |(name, _)| match key.family() {
                    Some(stem) => name.starts_with(stem),
                    None => *name == key.name,
                })
                .map(move |(name, setting)| Entry {
                    key: name,
                    value: shown(name, setting),
                    source: &setting.source,
                    doc: key.doc,
                    effective: key.is_effective(),
                })
        })
    }

    /// The text of a setting, for scripts. The name may have a prefix.
    pub fn get(&self, name: &str) -> Option<&str> {
        let name = lookup::without_prefix(name);
        match self.settings.get(name) {
            Some(setting) => setting.text.as_deref(),
            // An unset member of a family has the default of the family.
            None => match lookup::find(name)?.preset {
                Preset::Is(text) => Some(text),
                Preset::Unset | Preset::Like(..) => None,
            },
        }
    }
}

/// Whether a setting belongs to a machine and not to the run.
fn is_local(name: &str) -> bool {
    lookup::find(name)
        .is_some_and(|key| key.scope == Scope::Machine || name.starts_with("cluster."))
}

/// The settings that decide the rows, so that runs with other values are other runs.
pub(crate) fn deciding() -> impl Iterator<Item = &'static str> {
    table().filter(|key| key.scope == Scope::Rows).map(|key| key.name)
}

impl Default for Config {
    /// All defaults.
    fn default() -> Self {
        settle(Gathered::default()).0
    }
}

impl From<Config> for BTreeMap<String, String> {
    fn from(config: Config) -> Self {
        config.to_map()
    }
}

impl TryFrom<BTreeMap<String, String>> for Config {
    type Error = Problems;

    fn try_from(map: BTreeMap<String, String>) -> Result<Self, Problems> {
        Self::from_map(&map)
    }
}

/// Checks the values, applies the precedence of sources, and fills in defaults. An invalid value counts
/// as unset and adds a problem.
fn settle(mut gathered: Gathered) -> (Config, Problems) {
    let mut problems = Problems(std::mem::take(&mut gathered.problems));
    let units = units(&gathered.assignments);
    let mut settings = BTreeMap::new();
    for assignment in &gathered.assignments {
        match check(assignment, &units) {
            Ok(value) => {
                let setting = Setting {
                    text: value.is_some().then(|| assignment.text.clone()),
                    value,
                    source: assignment.source.clone(),
                };
                settings.insert(assignment.name.clone(), setting);
            }
            Err(mismatch) => problems.push(complaint(&gathered, assignment, &mismatch)),
        }
    }
    fill_defaults(&mut settings);
    problems.sort();
    (Config::of(settings), problems)
}

/// The values of settings that name a unit. The check of bare numbers needs them.
fn units(assignments: &[Assignment]) -> BTreeMap<&str, &str> {
    assignments
        .iter()
        .filter(|assignment| assignment.key.kind == Kind::Choice(UNITS))
        .map(|assignment| (assignment.name.as_str(), assignment.text.trim()))
        .collect()
}

fn check(
    assignment: &Assignment,
    units: &BTreeMap<&str, &str>,
) -> Result<Option<Value>, value::Mismatch> {
    let key = assignment.key;
    if key.preset == Preset::Unset && assignment.text.trim().is_empty() {
        return Ok(None);
    }
    let unit = match key.kind {
        Kind::Duration { bare: Bare::NamedBy(name), .. } => units.get(name).copied(),
        _ => None,
    };
    value::parse(key.kind, &assignment.text, unit.unwrap_or("SECONDS")).map(Some)
}

fn complaint(gathered: &Gathered, wrong: &Assignment, mismatch: &value::Mismatch) -> Problem {
    let name = &wrong.name;
    let found = match wrong.text.as_str() {
        "" => "empty".to_owned(),
        _ if lookup::is_secret(name) => "`***`".to_owned(),
        text => format!("`{text}`"),
    };
    let origin = match &wrong.source {
        Source::File(..) => String::new(),
        source => format!("{source}: "),
    };
    let expected = &mismatch.expected;
    let message = format!("{origin}`{name}` is {found}, but must be {expected}");
    let mut problem = Problem::error(&gathered.sources, wrong.at, message)
        .with_help(format!("such as {}", mismatch.example));
    inputs::hide_secret(&mut problem, name, wrong.at);
    problem
}

fn fill_defaults(settings: &mut BTreeMap<String, Setting>) {
    let fixed = table().filter(|key| key.family().is_none());
    // Defaults that copy another setting come last, once that setting is filled in.
    let (looking, plain): (Vec<Key>, Vec<Key>) =
        fixed.partition(|key| matches!(key.preset, Preset::Like(..)));
    for key in plain.into_iter().chain(looking) {
        if settings.contains_key(key.name) {
            continue;
        }
        let text = match key.preset {
            Preset::Unset => None,
            Preset::Is(text) => Some(text.to_owned()),
            Preset::Like(other, text) => settings
                .get(other)
                .and_then(|setting| setting.text.clone())
                .or_else(|| Some(text.to_owned())),
        };
        let value = text.as_deref().and_then(|text| value::parse(key.kind, text, "SECONDS").ok());
        let source = Source::Default;
        settings.insert(key.name.to_owned(), Setting { text, value, source });
    }
}

fn shown<'a>(name: &str, setting: &'a Setting) -> Option<&'a str> {
    let secret = lookup::is_secret(name)
        || matches!(&setting.source, Source::Env(variable) if lookup::is_secret(variable));
    match setting.text.as_deref() {
        Some(_) if secret => Some("***"),
        text => text,
    }
}
