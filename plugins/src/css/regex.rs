//! A Java pattern inside a selector: searched for, never anchored.

use fancy_regex::Regex;

use crate::java_regex::compile_find;

/// A compiled pattern that remembers how it was written.
#[derive(Debug, Clone)]
pub(super) struct SelectorRegex {
    regex: Regex,
    source: String,
}

impl SelectorRegex {
    /// Compiles a pattern, or says what is wrong with it.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        let regex = compile_find(source)
            .map_err(|error| format!("regex `{source}` cannot be read: {}", fault(&error)))?;
        Ok(Self { regex, source: source.to_owned() })
    }

    /// Whether the pattern is found anywhere in `text`; the error says why the search was given up.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, String> {
        self.regex.is_match(text).map_err(|error| fault(&error))
    }

    /// The pattern as written.
    pub(super) fn as_str(&self) -> &str {
        &self.source
    }
}

/// The engine draws its errors over several lines; the last one names the fault.
fn fault(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let words = text.lines().rfind(|line| !line.trim().is_empty());
    words.unwrap_or_default().trim().to_owned()
}
