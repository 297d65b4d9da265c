//! Turns many files into one effective [`Defs`]: merges sections, resolves chains and names.

mod chains;
mod data_defs;
mod inherit;
mod links;
mod locators;
mod mapping;
mod output;
mod records;
mod sections;
mod selectors;
mod tasks;
mod wiring;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Defs;
use crate::check;
use crate::findings::Findings;
use crate::problem::{Problem, Problems, Severity};
use crate::text::{Sources, Span};
use crate::yaml;

use tasks::TaskReader;

/// Settings for reading definitions.
#[derive(Debug, Clone)]
pub struct DefsOptions {
    /// Chain for tasks without `steps` (setting `defs.defaultSteps`).
    pub default_steps: String,
    /// Returns the value of a variable `${NAME}`, or `None` if it is not set.
    pub variable: fn(&str) -> Option<String>,
}

impl Default for DefsOptions {
    fn default() -> Self {
        Self { default_steps: "jsoupDefault".to_owned(), variable: |_| None }
    }
}

/// The result of reading definitions.
#[derive(Debug, Clone, Default)]
pub struct LoadedDefs {
    /// The effective definitions.
    pub defs: Defs,
    /// The files that were read, for the positions of later problems.
    pub sources: Sources,
    /// Warnings only.
    pub warnings: Vec<Problem>,
    /// Secret variables that were used: their values must not be shown. Values by name.
    pub secrets: BTreeMap<String, String>,
}

/// Reads every definition file below `dir` and resolves every name.
///
/// Files end in `.yml` or `.yaml`. Their names have no meaning, but they are read in the order of
/// their paths. If there is an error, the result is the list of all problems.
pub fn load(dir: &Path, options: &DefsOptions) -> Result<LoadedDefs, Problems> {
    whole(inspect(dir, options))
}

/// Reads like [`load`], but returns the readable definitions even if there are errors. So the caller
/// can report further problems in the same pass.
pub fn inspect(dir: &Path, options: &DefsOptions) -> (LoadedDefs, Problems) {
    let mut sources = Sources::default();
    let mut early = Vec::new();
    let files = yaml::read_dir(dir, &mut sources, &mut early);
    compose(sources, &files, early, options)
}

/// Reads definitions from a text, as if it were the only file of a directory.
///
/// ```
/// use spoonbill_defs::{DefsOptions, from_str};
///
/// let text = r##"
/// locatorGroups:
///   quotes:
///     locators: [ { name: acme, url: "https://example.org/acme" } ]
/// taskGroups:
///   quotes:
///     priceTask: { dataDef: price }
/// dataDefs:
///   price:
///     query: { block: "div#price", selector: "span" }
///     items: [ item: { name: Price, value: Price } ]
/// "##;
/// let loaded = from_str("quick.yml", text, &DefsOptions::default())?;
/// assert_eq!(loaded.defs.task_groups[0].tasks[0].steps.len(), 5);
///
/// let misspelt = text.replace("dataDef: price", "dataDef: prize");
/// let problems = from_str("quick.yml", &misspelt, &DefsOptions::default()).unwrap_err();
/// assert_eq!(problems.0[0].help.as_deref(), Some("did you mean `price`?"));
/// # Ok::<(), spoonbill_defs::Problems>(())
/// ```
pub fn from_str(name: &str, text: &str, options: &DefsOptions) -> Result<LoadedDefs, Problems> {
    let mut sources = Sources::default();
    let mut early = Vec::new();
    let file = yaml::add_text(PathBuf::from(name), text, &mut sources, &mut early);
    whole(compose(sources, file.as_slice(), early, options))
}

fn whole((loaded, problems): (LoadedDefs, Problems)) -> Result<LoadedDefs, Problems> {
    if problems.has_errors() { Err(problems) } else { Ok(loaded) }
}

fn compose(
    sources: Sources,
    files: &[u32],
    early: Vec<Problem>,
    options: &DefsOptions,
) -> (LoadedDefs, Problems) {
    let mut findings = Findings::new(&sources, early);
    let mut variables = yaml::Variables::new(options.variable);
    let defs = if files.is_empty() {
        Defs::default()
    } else {
        read(files, options, &mut variables, &mut findings)
    };
    let problems = findings.finish(&variables.secrets);
    let warnings =
        problems.0.iter().filter(|problem| problem.severity == Severity::Warning).cloned();
    let warnings = warnings.collect();
    (LoadedDefs { defs, sources, warnings, secrets: variables.secrets }, problems)
}

fn read(
    files: &[u32],
    options: &DefsOptions,
    variables: &mut yaml::Variables,
    findings: &mut Findings<'_>,
) -> Defs {
    let mut budget = yaml::NodeBudget::default();
    let mut roots = Vec::new();
    for file in files {
        match yaml::parse(*file, &mut budget, variables, findings) {
            Ok(root) => roots.extend(root),
            Err(yaml::Unreadable) => findings.incomplete = true,
        }
    }
    let all_read = !findings.incomplete;
    let sections = sections::merge(roots, findings);
    let [groups, locator_groups, task_groups, data_defs, steps] = &sections;
    let chains = chains::read(&steps.entries, findings);
    let chains = inherit::expand(chains, findings);
    let locators = locators::read(locator_groups, findings);
    let defs = data_defs::read(&data_defs.entries, findings);
    let mut reader = TaskReader::new(&chains, options, locators, defs);
    reader.classic(task_groups, findings);
    reader.sitemaps(locator_groups, findings);
    reader.short(groups, findings);
    let TaskReader { locator_groups, task_groups, data_defs, .. } = reader;
    let defs = Defs { locator_groups, task_groups, data_defs };
    if all_read {
        report_missing(&sections, files, &defs, findings);
    }
    check::check(&defs, findings);
    defs
}

/// Reports sections that no file has. `steps` is optional, because the default chains are built in.
/// With `groups`, all other sections are optional.
fn report_missing(
    sections: &[sections::Section; 5],
    files: &[u32],
    defs: &Defs,
    findings: &mut Findings<'_>,
) {
    let [groups, ..] = sections;
    if groups.at.is_some() {
        return;
    }
    // With a single file, the section can only belong there.
    let at = match files {
        [file] => Span { file: *file, line: 1, column: 1, width: 1 },
        _ => Span::default(),
    };
    if sections.iter().all(|section| section.at.is_none()) {
        findings.error(
            at,
            "there is nothing to load: no file has `groups`",
            "add `groups:`, below it a name, and below the name `urls:` and `fields:`",
        );
        return;
    }
    for (name, section) in sections::SECTIONS.iter().zip(sections) {
        let needed = match *name {
            "steps" | "groups" => false,
            "dataDefs" => defs.data_defs.is_empty(),
            _ => true,
        };
        if section.at.is_none() && needed {
            findings.error(
                at,
                format!("no file has the section `{name}`"),
                format!("add `{name}:` at the top level"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
