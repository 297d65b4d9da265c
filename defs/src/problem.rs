//! A problem of a definition: message, position and help.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::text::{Sources, Span};

/// The effect of a problem on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The run continues.
    Warning,
    /// The run does not start.
    Error,
}

/// One problem, with everything that is needed to print it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// The fault: lower case, no full stop, names in backticks.
    pub message: String,
    /// Position; `None` if the problem has no single position.
    pub place: Option<SourceLocation>,
    /// Advice, such as `did you mean ...?`.
    pub help: Option<String>,
}

/// A position with its source line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// Path of the file, as it was opened.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Number of characters to underline.
    pub width: u32,
    /// The whole source line; empty if it is too long to show.
    pub source: String,
}

impl Problem {
    /// An error at a position.
    pub fn error(sources: &Sources, at: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            place: place(sources, at),
            help: None,
        }
    }

    /// A warning at a position.
    pub fn warning(sources: &Sources, at: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(sources, at, message) }
    }

    /// The same problem with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Longest source line that is copied into a problem, in bytes.
const SOURCE_LINE_MAX: usize = 4_096;

fn place(sources: &Sources, at: Span) -> Option<SourceLocation> {
    if at.line == 0 {
        return None;
    }
    Some(SourceLocation {
        file: sources.path(at.file)?.to_path_buf(),
        line: at.line,
        column: at.column,
        width: at.width.max(1),
        source: sources
            .line(at.file, at.line)
            .filter(|line| line.len() <= SOURCE_LINE_MAX)
            .unwrap_or_default()
            .to_owned(),
    })
}

/// All problems of a directory, ordered by position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Sorts by file, line and column. Problems without a position come first.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| a.place.cmp(&b.place));
    }

    /// Replaces each value of a secret variable by `${NAME}`.
    pub fn hide(&mut self, secrets: &BTreeMap<String, String>) {
        // A longer value may contain a shorter one, so it goes first. A single character would
        // match inside ordinary words, so it is not hidden.
        let mut known: Vec<(&String, &String)> =
            secrets.iter().filter(|(_, value)| value.len() > 1).collect();
        known.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        for problem in &mut self.0 {
            for (name, value) in &known {
                let shown = format!("${{{name}}}");
                for text in
                    [Some(&mut problem.message), problem.help.as_mut()].into_iter().flatten()
                {
                    hide(text, value, &shown);
                }
            }
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Replaces a value in a text: as is, percent-encoded, and cut off before `...`.
fn hide(text: &mut String, value: &str, shown: &str) {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    let encoded: String = value.bytes().map(encode).collect();
    for form in [value, encoded.as_str()] {
        if text.contains(form) {
            *text = text.replace(form, shown);
        }
    }
    let mut from = 0;
    while let Some(dots) = text.get(from..).and_then(|rest| rest.find("...")) {
        let end = from + dots;
        let mut parts = value.char_indices().map(|(at, _)| at).filter(|at| *at > 1);
        let cut = parts.rfind(|at| text[..end].ends_with(&value[..*at]));
        if let Some(cut) = cut {
            text.replace_range(end - cut..end, shown);
            from = end - cut + shown.len() + 3;
        } else {
            from = end + 3;
        }
    }
}

/// Longest misspelt name that is compared, in bytes. The cost grows with the square of the length.
const SUGGEST_NAME_MAX: usize = 200;

/// The known name closest to a misspelt one, if one is similar enough.
pub fn suggest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.len() > SUGGEST_NAME_MAX {
        return None;
    }
    let wanted = wanted.to_lowercase();
    let length = wanted.chars().count();
    known
        .into_iter()
        .filter_map(|name| {
            let allowed = (name.chars().count() / 3).max(1);
            if name.chars().count().abs_diff(length) > allowed {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&wanted, &name.to_lowercase());
            // Otherwise all one-letter names would be similar.
            (distance <= allowed && distance < length).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
