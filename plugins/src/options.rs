//! Reads the properties of a plugin and reports all problems at once.

use spoonbill_defs::{PluginDef, PluginValue, Span, Text, suggest};

/// Something wrong with a property of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    /// Its position in the definitions.
    pub at: Span,
    /// The problem: lower case, no full stop, names in backticks.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// Offset of the wrong character in the text at `at`, from 0, if known.
    pub inside: Option<usize>,
}

impl OptionProblem {
    /// A problem without advice.
    pub fn new(at: Span, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None, inside: None }
    }

    /// The same problem with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same problem, with the offset of the wrong character.
    #[must_use]
    pub fn inside(mut self, offset: usize) -> Self {
        self.inside = Some(offset);
        self
    }
}

/// The advice for a misspelt word: the most similar one of `known`, or all of them.
pub(crate) fn advice(wanted: &str, known: &[&str]) -> String {
    match suggest(wanted, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "remove it: there are no properties".to_owned(),
        None => format!("use one of `{}`", known.join("`, `")),
    }
}

/// The properties of a plugin, and the problems found in them.
pub(crate) struct Options<'d> {
    def: &'d PluginDef,
    pub(crate) problems: Vec<OptionProblem>,
}

impl<'d> Options<'d> {
    /// Reports properties that are not `known`, lists instead of single values, and nested plugins.
    pub(crate) fn new(def: &'d PluginDef, known: &[&str]) -> Self {
        let mut problems = Vec::new();
        for (key, value) in &def.options {
            if !known.contains(&key.as_str()) {
                let message = format!("plugin `{}` has no property `{}`", def.name.text, key.text);
                problems
                    .push(OptionProblem::new(key.at, message).with_help(advice(&key.text, known)));
            } else if matches!(value, PluginValue::Many(_)) {
                let message = format!("property `{}` takes one value, not a list", key.text);
                problems.push(OptionProblem::new(key.at, message));
            }
        }
        for nested in &def.plugins {
            let message = format!("plugin `{}` takes no nested plugins", def.name.text);
            problems.push(OptionProblem::new(nested.name.at, message));
        }
        Self { def, problems }
    }

    /// The value of an optional property.
    pub(crate) fn optional(&self, key: &str) -> Option<&'d Text> {
        self.def.option(key)
    }

    /// The value of a required property. Reports a problem if it is missing or blank.
    pub(crate) fn required(&mut self, key: &str) -> Option<&'d Text> {
        match self.def.option(key) {
            Some(text) if !text.text.trim().is_empty() => Some(text),
            Some(text) => {
                self.problem(text, format!("property `{key}` is blank"));
                None
            }
            None => {
                // `new` has reported a list already.
                if !self.def.options.iter().any(|(name, _)| name.text == key) {
                    let message = format!("plugin `{}` lacks property `{key}`", self.def.name.text);
                    self.problems.push(OptionProblem::new(self.def.name.at, message));
                }
                None
            }
        }
    }

    pub(crate) fn problem(&mut self, at: &Text, message: impl Into<String>) {
        self.problems.push(OptionProblem::new(at.at, message));
    }
}
