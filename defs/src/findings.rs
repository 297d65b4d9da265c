//! Collects problems while definitions are read and checked.
//!
//! The number of kept problems is limited, so a hostile file cannot fill the memory with messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::problem::{Problem, Problems, Severity, suggest};
use crate::text::{Sources, Span};

/// Maximum number of problems kept of each severity. The rest is only counted.
const KEPT_MAX: usize = 1_000;

/// Maximum number of names compared for one suggestion.
const SUGGEST_FROM_MAX: usize = 2_000;

/// The problems that reading and checking have found.
#[derive(Debug)]
pub(crate) struct Findings<'a> {
    /// The files that the positions refer to.
    pub(crate) sources: &'a Sources,
    /// Whether a part of the files is unreadable. Then a missing name may be defined in that part,
    /// so it is not reported.
    pub(crate) incomplete: bool,
    /// Groups of the short form: whether they have sources of pages, or a reported mistake instead.
    pub(crate) short_groups: HashMap<String, bool>,
    /// Values that are reported as broken. Further errors at their position are dropped.
    broken: HashSet<Span>,
    kept: Vec<Problem>,
    seen: HashSet<(Span, String)>,
    errors: usize,
    warnings: usize,
}

impl<'a> Findings<'a> {
    /// Starts with the problems of reading the files.
    pub(crate) fn new(sources: &'a Sources, early: Vec<Problem>) -> Self {
        Self {
            sources,
            incomplete: !early.is_empty(),
            short_groups: HashMap::new(),
            broken: HashSet::new(),
            errors: early.len(),
            warnings: 0,
            kept: early,
            seen: HashSet::new(),
        }
    }

    /// Reports an error. An empty help means that there is none.
    pub(crate) fn error(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.broken.contains(&at) {
            return;
        }
        self.errors += 1;
        if self.errors <= KEPT_MAX {
            self.keep(Severity::Error, at, message.into(), help.into());
        }
    }

    /// Reports an error of a value, and drops later errors at the same position.
    pub(crate) fn broken_value(
        &mut self,
        at: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        // A value may contain two broken variables; both are reported.
        self.broken.remove(&at);
        self.error(at, message, help);
        self.broken.insert(at);
    }

    /// Reports a warning. An empty help means that there is none.
    pub(crate) fn warn(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        self.warnings += 1;
        if self.warnings <= KEPT_MAX {
            self.keep(Severity::Warning, at, message.into(), help.into());
        }
    }

    fn keep(&mut self, severity: Severity, at: Span, message: String, help: String) {
        // Two tasks with the same chain have the same mistakes. One report is enough.
        if !self.seen.insert((at, message.clone())) {
            return;
        }
        let mut problem = match severity {
            Severity::Error => Problem::error(self.sources, at, message),
            Severity::Warning => Problem::warning(self.sources, at, message),
        };
        if !help.is_empty() {
            problem = problem.with_help(help);
        }
        self.kept.push(problem);
    }

    /// Whether the limit of kept problems is reached, so further ones are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.errors + self.warnings >= KEPT_MAX
    }

    /// The known name closest to a misspelt one; `None` once [`Self::is_full`].
    pub(crate) fn nearest<'n>(
        &self,
        wanted: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        if self.is_full() {
            return None;
        }
        suggest(wanted, known.into_iter().take(SUGGEST_FROM_MAX))
    }

    /// `did you mean ...?`, or the given help if no name is similar.
    pub(crate) fn did_you_mean<'n>(
        &self,
        wanted: &str,
        known: impl IntoIterator<Item = &'n str>,
        otherwise: impl Into<String>,
    ) -> String {
        if self.is_full() {
            return String::new();
        }
        self.nearest(wanted, known)
            .map_or_else(|| otherwise.into(), |name| format!("did you mean `{name}`?"))
    }

    /// `path:line` of a position, for messages that name a second one.
    pub(crate) fn location(&self, at: Span) -> String {
        match self.sources.path(at.file) {
            Some(path) if at.line > 0 => format!("{}:{}", path.display(), at.line),
            _ => "the built-in definitions".to_owned(),
        }
    }

    /// All problems ordered by position, with the values of secret variables hidden.
    pub(crate) fn finish(self, secrets: &BTreeMap<String, String>) -> Problems {
        let mut problems = Problems(self.kept);
        problems.hide(secrets);
        problems.sort();
        for (found, name) in [(self.errors, "errors"), (self.warnings, "warnings")] {
            if found > KEPT_MAX {
                let mut more = Problem::error(
                    self.sources,
                    Span::default(),
                    format!("{} more {name} are not shown", found - KEPT_MAX),
                );
                if name == "warnings" {
                    more.severity = Severity::Warning;
                }
                problems.push(more.with_help("fix the ones shown first, then check again"));
            }
        }
        problems
    }
}
