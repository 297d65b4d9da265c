//! Composing: a directory and settings to what the elected node publishes for all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spoonbill_defs::{
    Defs, DefsOptions, LoadedDefs, PluginDef, Problem, Problems, SourceLocation, Sources,
};
use spoonbill_plugins::loader::Target;

use crate::config::Config;
use crate::plan::address_lists;
use crate::plan::prepare::{self, RunDate};

/// What the elected node publishes and every node reads back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Published {
    /// The effective definitions.
    pub defs: Defs,
    /// Script files by the names they have in the definitions.
    pub files: BTreeMap<String, String>,
    /// Values that came from outside and must not be shown, by the names of their variables.
    pub secrets: BTreeMap<String, String>,
    /// Hashes of the files of addresses, by the names they have in the definitions.
    pub lists: BTreeMap<String, [u8; 32]>,
}

/// A checked set of definitions with its settings.
#[derive(Debug, Clone)]
pub(crate) struct Composed {
    /// What is published.
    pub published: Published,
    /// The settings it was checked with.
    pub config: Config,
    /// When the run takes place.
    pub date: RunDate,
    /// Where the definitions lie on this machine, and files beside them.
    pub dir: PathBuf,
    /// Warnings to be shown once.
    pub warnings: Vec<Problem>,
}

/// Reads and checks everything; nothing is fetched or written. Gives all problems at once, those of
/// the files' shape and those of what stands in them.
pub(crate) fn compose(dir: &Path, config: &Config) -> Result<Composed, Problems> {
    let options = DefsOptions {
        default_steps: config.defs.default_steps.clone(),
        variable: crate::config::variable,
    };
    let (LoadedDefs { defs, sources, secrets, .. }, mut problems) =
        spoonbill_defs::inspect(dir, &options);
    let files = script_files(&defs, dir, config);
    let (lists, found) = address_lists::examine(&defs, dir, config, &sources);
    problems.0.extend(found);
    problems.0.extend(missing_files(&defs, config, &sources));
    let published = Published { defs, files, secrets, lists };
    let date = match RunDate::of(config) {
        Ok(date) => date,
        Err(problem) => {
            problems.push(problem);
            RunDate(spoonbill_plugins::dates::now())
        }
    };
    let found = match prepare::prepare(&published, config, &date, &sources) {
        Ok(prepared) => prepared.warnings,
        Err(found) => found.0,
    };
    // What is wrong at a place is told once, by the one who saw it first.
    let known = problems.0.clone();
    let is_news = |news: &Problem| {
        let Some(place) = &news.place else { return true };
        !known.iter().any(|known| {
            known.severity >= news.severity
                && known.place.as_ref().is_some_and(|known| overlap(known, place))
        })
    };
    let news: Vec<Problem> = found.into_iter().filter(is_news).collect();
    problems.0.extend(news);
    problems.hide(&published.secrets);
    problems.sort();
    if problems.has_errors() {
        return Err(problems);
    }
    let dir = dir.to_owned();
    Ok(Composed { published, config: config.clone(), date, dir, warnings: problems.0 })
}

/// Addresses that are no files and seem to lack their scheme: those pages will fail.
fn missing_files(defs: &Defs, config: &Config, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    for locator in defs.locator_groups.iter().flat_map(|group| &group.locators) {
        let Ok(Target::Path(path)) = Target::of(&locator.url.text) else { continue };
        let inner = path.trim_start_matches('/');
        let below = config.fetch.resources_dir.iter().map(|dir| dir.join(inner));
        if below.chain([PathBuf::from(&path)]).any(|place| place.exists()) {
            continue;
        }
        if !is_host(path.split('/').next().unwrap_or_default()) {
            continue;
        }
        let message = format!("this page will fail: there is no file `{path}`");
        let help = format!("add the scheme: `https://{path}`");
        problems.push(Problem::warning(sources, locator.url.at, message).with_help(help));
        if problems.len() >= MISSING_MAX {
            break;
        }
    }
    problems
}

/// Missing files that are told; the others will be in the report.
const MISSING_MAX: usize = 20;

/// Whether the first part of a path looks like the name of a host.
fn is_host(part: &str) -> bool {
    const FILES: [&str; 7] = ["html", "htm", "xml", "json", "csv", "txt", "gz"];
    let end = part.rsplit_once('.').map_or("", |(_, end)| end);
    end.len() > 1
        && end.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !part.starts_with('.')
        && !FILES.contains(&end.to_ascii_lowercase().as_str())
}

fn overlap(one: &SourceLocation, other: &SourceLocation) -> bool {
    let end = |place: &SourceLocation| place.column + place.width;
    (&one.file, one.line) == (&other.file, other.line)
        && one.column < end(other)
        && other.column < end(one)
}

/// The settings that decide the rows, and with them whether a run is the same. Politeness, time
/// limits and places on this machine do not.
pub(crate) const DECIDING: [&str; 12] = [
    "fact.blank.replace",
    "fact.blank.replaceWith",
    "fact.notFound.replaceWith",
    "dateTimePattern",
    "output.order",
    "runDateTimeText",
    "follow.dropParams",
    "links.depth.max",
    "links.page.max",
    "sitemap.urls.max",
    "sitemap.files.max",
    "loader.body.max",
];

/// What a run is known by: its definitions and the settings that decide its rows.
pub(crate) fn identity(composed: &Composed) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&encode(&composed.published));
    for key in DECIDING {
        hasher.update(composed.config.get(key).unwrap_or_default().as_bytes());
        hasher.update(&[0]);
    }
    *hasher.finalize().as_bytes()
}

/// The bytes that are published.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain data with string keys: encoding cannot fail but by a mistake of ours.
    postcard::to_stdvec(value).unwrap_or_default()
}

fn script_files(defs: &Defs, dir: &Path, config: &Config) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let steps = defs.task_groups.iter().flat_map(|group| &group.tasks).flat_map(|task| &task.steps);
    for plugin in steps.flat_map(|step| &step.plugins) {
        for name in script_names(plugin) {
            let found = places(name, dir, config)
                .into_iter()
                .find_map(|path| std::fs::read_to_string(path).ok());
            if let Some(text) = found {
                files.insert(name.to_owned(), text);
            }
        }
    }
    files
}

fn script_names(plugin: &PluginDef) -> impl Iterator<Item = &str> {
    let names = plugin.list("script").into_iter().chain(plugin.list("scripts"));
    names.map(|name| name.text.as_str())
}

/// Where a file named in a definition may lie: as it is, below the resources, beside the
/// definitions.
pub(crate) fn places(name: &str, dir: &Path, config: &Config) -> Vec<PathBuf> {
    let inner = name.trim_start_matches('/');
    let mut places = vec![PathBuf::from(name)];
    places.extend(config.fetch.resources_dir.iter().map(|resources| resources.join(inner)));
    places.push(dir.join(inner));
    places
}
