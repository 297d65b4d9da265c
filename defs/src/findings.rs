//! Collects problems while definitions are read and checked; never stops at the first.
//!
//! Bounded: a hostile file must not turn a million mistakes into gigabytes of messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::problem::{Problem, Problems, Severity, suggest};
use crate::text::{Sources, Span};

/// Problems kept of each severity; the rest is only counted.
const KEPT_MAX: usize = 1_000;

/// Names looked at for one suggestion.
const SUGGEST_FROM_MAX: usize = 2_000;

/// The problems found so far.
#[derive(Debug)]
pub(crate) struct Findings<'a> {
    /// The files the places are in.
    pub(crate) sources: &'a Sources,
    /// A file could not be read whole, so "nobody defines this" may be false and is not said.
    pub(crate) incomplete: bool,
    /// Groups in short form that have no pages of their own, and whether that has been told.
    pub(crate) without_pages: HashMap<String, bool>,
    /// Values that are broken and told: nothing else is said of them.
    broken: HashSet<Span>,
    kept: Vec<Problem>,
    seen: HashSet<(Span, String)>,
    errors: usize,
    warnings: usize,
}

impl<'a> Findings<'a> {
    /// Starts from what reading the files found.
    pub(crate) fn new(sources: &'a Sources, early: Vec<Problem>) -> Self {
        Self {
            sources,
            incomplete: !early.is_empty(),
            without_pages: HashMap::new(),
            broken: HashSet::new(),
            errors: early.len(),
            warnings: 0,
            kept: early,
            seen: HashSet::new(),
        }
    }

    /// Notes what refuses the run; an empty help is none.
    pub(crate) fn error(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.broken.contains(&at) {
            return;
        }
        self.errors += 1;
        if self.errors <= KEPT_MAX {
            self.keep(Severity::Error, at, message.into(), help.into());
        }
    }

    /// Notes what is wrong with a value, and that nothing else need be said of it.
    pub(crate) fn broken_value(
        &mut self,
        at: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        // A value may have two such faults, but not one twice.
        self.broken.remove(&at);
        self.error(at, message, help);
        self.broken.insert(at);
    }

    /// Notes what deserves a look; an empty help is none.
    pub(crate) fn warn(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        self.warnings += 1;
        if self.warnings <= KEPT_MAX {
            self.keep(Severity::Warning, at, message.into(), help.into());
        }
    }

    fn keep(&mut self, severity: Severity, at: Span, message: String, help: String) {
        // Two tasks that share a chain share its mistakes; one report is enough.
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

    /// Whether enough is kept that further effort on a problem would be lost.
    pub(crate) fn is_full(&self) -> bool {
        self.errors + self.warnings >= KEPT_MAX
    }

    /// The known name closest to a misspelt one, as long as there is room to tell it.
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

    /// `did you mean ...?`, or else the given help.
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

    /// `path:line` of a place, for messages that name a second one.
    pub(crate) fn location(&self, at: Span) -> String {
        match self.sources.path(at.file) {
            Some(path) if at.line > 0 => format!("{}:{}", path.display(), at.line),
            _ => "the built-in definitions".to_owned(),
        }
    }

    /// All problems in the order of their places, without what must not be shown.
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
