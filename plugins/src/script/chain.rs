//! Reads and checks the plugins of a script step and their files.

use std::sync::Arc;

use spoonbill_defs::{PluginDef, PluginValue, Span, Text, suggest};

use super::error::ScriptError;
use super::syntax::check_source;
use crate::options::OptionProblem;

const CLASSES: [&str; 4] = [
    "script",
    "dom_script",
    "org.codetab.scoopi.plugin.script.BasicScript",
    "org.codetab.scoopi.plugin.script.DomScript",
];
const PROPERTIES: [&str; 3] = ["script", "scripts", "entryPoint"];

/// The scripts of one step. It holds sources only, so that every thread can build its own engine.
#[derive(Debug, Clone)]
pub struct ScriptChain {
    pub(super) links: Arc<[ScriptLink]>,
}

/// One plugin: its files in the order they are evaluated, and the function to call.
#[derive(Debug)]
pub(super) struct ScriptLink {
    pub(super) files: Vec<ScriptFile>,
    pub(super) entry_point: String,
}

impl ScriptLink {
    /// Name of the main file, for errors.
    pub(super) fn name(&self) -> &str {
        self.files.first().map_or("script", |file| &file.name)
    }
}

/// A file as named in the definitions, and its text.
#[derive(Debug)]
pub(super) struct ScriptFile {
    pub(super) name: String,
    pub(super) source: String,
}

impl ScriptChain {
    /// Reads the plugins of a step and their files, or returns all problems.
    pub fn from_def(
        plugins: &[PluginDef],
        read_file: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, Vec<OptionProblem>> {
        let mut problems = Vec::new();
        let links =
            plugins.iter().map(|plugin| read_link(plugin, read_file, &mut problems)).collect();
        if plugins.is_empty() {
            let help = "add a plugin with class `script`".to_owned();
            let message = "a script step needs a plugin".to_owned();
            problems.push(problem(Span::default(), message, Some(help)));
        }
        if problems.is_empty() { Ok(Self { links }) } else { Err(problems) }
    }
}

fn read_link(
    plugin: &PluginDef,
    read_file: &dyn Fn(&str) -> Result<String, String>,
    problems: &mut Vec<OptionProblem>,
) -> ScriptLink {
    check_class(plugin, problems);
    check_properties(plugin, problems);
    let main = plugin.option("script");
    if main.is_none() && !has(plugin, "script") {
        let message = format!("plugin `{}` has no `script`", plugin.name.text);
        let help = "name the main file: `script: scripts/main.js`".to_owned();
        problems.push(problem(plugin.name.at, message, Some(help)));
    }
    let files = main
        .into_iter()
        .chain(plugin.list("scripts"))
        .filter_map(|name| read_script(name, read_file, problems))
        .collect();
    let entry_point = plugin
        .option("entryPoint")
        .map_or_else(|| "execute".to_owned(), |text| text.text.trim().to_owned());
    ScriptLink { files, entry_point }
}

fn check_class(plugin: &PluginDef, problems: &mut Vec<OptionProblem>) {
    let class = plugin.class.as_str();
    if !CLASSES.contains(&class) {
        let message = format!("`{class}` is not a script plugin");
        let help = suggest(class, CLASSES).map(|known| format!("did you mean `{known}`?"));
        problems.push(problem(plugin.class.at, message, help));
    }
}

fn check_properties(plugin: &PluginDef, problems: &mut Vec<OptionProblem>) {
    for (key, value) in &plugin.options {
        let name = key.as_str();
        if !PROPERTIES.contains(&name) {
            let message = format!("script plugins have no property `{name}`");
            let help = suggest(name, PROPERTIES).map_or_else(
                || format!("use one of `{}`", PROPERTIES.join("`, `")),
                |known| format!("did you mean `{known}`?"),
            );
            problems.push(problem(key.at, message, Some(help)));
        } else if name != "scripts" && matches!(value, PluginValue::Many(_)) {
            let message = format!("`{name}` takes one value, not a list");
            let help = (name == "script").then(|| "put further files in `scripts`".to_owned());
            problems.push(problem(key.at, message, help));
        }
    }
    if let Some(entry) = plugin.option("entryPoint")
        && !is_path(entry.text.trim())
    {
        let message = format!("`{}` is not the name of a function", entry.text);
        let help = "write the name only, without parentheses".to_owned();
        problems.push(problem(entry.at, message, Some(help)));
    }
    if let Some(nested) = plugin.plugins.first() {
        let message = "script plugins take no nested plugins".to_owned();
        problems.push(problem(nested.name.at, message, None));
    }
}

fn read_script(
    name: &Text,
    read_file: &dyn Fn(&str) -> Result<String, String>,
    problems: &mut Vec<OptionProblem>,
) -> Option<ScriptFile> {
    let source = match read_file(&name.text) {
        Ok(source) => source,
        Err(reason) => {
            let message = format!("script file `{}` cannot be read: {reason}", name.text);
            problems.push(problem(name.at, message, None));
            return None;
        }
    };
    if let Err(error) = check_source(&name.text, &source) {
        let help = matches!(error, ScriptError::Syntax { .. })
            .then(|| "scripts are plain JavaScript: no modules, no Java types".to_owned());
        problems.push(problem(name.at, error.to_string(), help));
        return None;
    }
    Some(ScriptFile { name: name.text.clone(), source })
}

fn has(plugin: &PluginDef, key: &str) -> bool {
    plugin.options.iter().any(|(name, _)| name.text == key)
}

/// Whether a text is a name, or names joined by dots. It becomes part of generated code.
fn is_path(text: &str) -> bool {
    text.split('.').all(|name| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_' || first == '$')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
    })
}

fn problem(at: Span, message: String, help: Option<String>) -> OptionProblem {
    OptionProblem { help, ..OptionProblem::new(at, message) }
}

#[cfg(test)]
mod tests;
