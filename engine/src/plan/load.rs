//! Reads a definitions folder and checks all of it, without a request and without a write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spoonbill_defs::{
    Defs, DefsOptions, LoadedDefs, PluginDef, Problem, Problems, SourceLocation, Sources,
};
use spoonbill_plugins::loader::PageTarget;

use crate::config::Config;
use crate::plan::prepare::{Plan, RunDate, prepare};
use crate::plan::publish::PublishedPlan;
use crate::plan::{address_lists, files};

/// How many missing files `check` reports; the report of a run lists the rest as failed jobs.
const MISSING_MAX: usize = 20;

/// A folder of definitions that was read and found valid.
#[derive(Debug, Clone)]
pub(crate) struct Definitions {
    /// The definitions, compiled.
    pub plan: Arc<Plan>,
    /// The folder on this machine. Files that definitions name may lie beside it.
    pub dir: PathBuf,
    /// Warnings to print once.
    pub warnings: Vec<Problem>,
}

impl Definitions {
    /// Reads and checks a folder. Returns all problems at once: those of the files' form and those of
    /// their content.
    pub(crate) fn load(dir: &Path, config: &Config) -> Result<Self, Problems> {
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
        let published = Arc::new(PublishedPlan { defs, files, secrets, lists });
        let date = RunDate::of(config).unwrap_or_else(|problem| {
            problems.push(problem);
            RunDate(spoonbill_plugins::dates::now())
        });
        let plan = match prepare(&published, config, &date, &sources) {
            Ok((plan, warnings)) => {
                add_news(&mut problems, warnings);
                Some(plan)
            }
            Err(found) => {
                add_news(&mut problems, found.0);
                None
            }
        };
        problems.hide(&published.secrets);
        problems.sort();
        match plan {
            Some(plan) if !problems.has_errors() => {
                Ok(Self { plan: Arc::new(plan), dir: dir.to_owned(), warnings: problems.0 })
            }
            _ => Err(problems),
        }
    }

    /// The same definitions with other settings and another date.
    pub(crate) fn with(&self, config: &Config, date: &RunDate) -> Result<Self, Problems> {
        let (plan, _) = prepare(&self.plan.published, config, date, &Sources::default())?;
        Ok(Self { plan: Arc::new(plan), ..self.clone() })
    }
}

/// Adds problems whose place has none of at least the same severity yet: one place, one message.
fn add_news(problems: &mut Problems, found: Vec<Problem>) {
    let known = problems.0.clone();
    let is_news = |news: &Problem| {
        let Some(place) = &news.place else { return true };
        !known.iter().any(|known| {
            known.severity >= news.severity
                && known.place.as_ref().is_some_and(|known| overlap(known, place))
        })
    };
    problems.0.extend(found.into_iter().filter(is_news));
}

fn overlap(one: &SourceLocation, other: &SourceLocation) -> bool {
    let end = |place: &SourceLocation| place.column + place.width;
    (&one.file, one.line) == (&other.file, other.line)
        && one.column < end(other)
        && other.column < end(one)
}

/// Warnings for start pages that name no existing file and look like a URL without its scheme.
fn missing_files(defs: &Defs, config: &Config, sources: &Sources) -> Vec<Problem> {
    let locators = defs.locator_groups.iter().flat_map(|group| &group.locators);
    let missing = locators.filter_map(|locator| {
        let Ok(PageTarget::Path(path)) = PageTarget::of(&locator.url.text) else { return None };
        let inner = path.trim_start_matches('/');
        let below = config.fetch.resources_dir.iter().map(|dir| dir.join(inner));
        if below.chain([PathBuf::from(&path)]).any(|file| file.exists())
            || !looks_like_host(path.split('/').next().unwrap_or_default())
        {
            return None;
        }
        let message = format!("this page will fail: there is no file `{path}`");
        let help = format!("add the scheme: `https://{path}`");
        Some(Problem::warning(sources, locator.url.at, message).with_help(help))
    });
    missing.take(MISSING_MAX).collect()
}

fn looks_like_host(part: &str) -> bool {
    const FILES: [&str; 7] = ["html", "htm", "xml", "json", "csv", "txt", "gz"];
    let end = part.rsplit_once('.').map_or("", |(_, end)| end);
    end.len() > 1
        && end.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !part.starts_with('.')
        && !FILES.contains(&end.to_ascii_lowercase().as_str())
}

fn script_files(defs: &Defs, dir: &Path, config: &Config) -> BTreeMap<String, String> {
    let steps = defs.task_groups.iter().flat_map(|group| &group.tasks).flat_map(|task| &task.steps);
    let names = steps.flat_map(|step| &step.plugins).flat_map(script_names);
    let read = |name: &str| {
        let mut paths = files::candidates(name, dir, config).into_iter();
        paths.find_map(|path| std::fs::read_to_string(path).ok())
    };
    names.filter_map(|name| Some((name.to_owned(), read(name)?))).collect()
}

fn script_names(plugin: &PluginDef) -> impl Iterator<Item = &str> {
    let names = plugin.list("script").into_iter().chain(plugin.list("scripts"));
    names.map(|name| name.text.as_str())
}
