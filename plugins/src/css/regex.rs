//! A Java pattern inside a selector. It matches anywhere in a text.

use fancy_regex::Regex;

use crate::java_regex::compile_find;

/// A compiled pattern and its source text.
#[derive(Debug, Clone)]
pub(super) struct SelectorRegex {
    regex: Regex,
    source: String,
}

impl SelectorRegex {
    /// Compiles a pattern, or returns what is wrong with it.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        let regex = compile_find(source)
            .map_err(|error| format!("regex `{source}` is invalid: {}", last_line(&error)))?;
        Ok(Self { regex, source: source.to_owned() })
    }

    /// Whether the pattern occurs in `text`. The error is the reason why the regex engine stopped.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, String> {
        self.regex.is_match(text).map_err(|error| last_line(&error))
    }

    /// The pattern as written in the selector.
    pub(super) fn as_str(&self) -> &str {
        &self.source
    }
}

/// The last line of an error, which names the problem. The lines above it draw the pattern.
fn last_line(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}
