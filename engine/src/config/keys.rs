//! What a setting is: its name, kind, default and one line of doc. The rows stand in `table.rs`.
//!
//! Everything else about settings (checking, typed groups, the reference page) follows from them.

use std::time::Duration;

/// One row of the table of settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Dotted camelCase name; a family ends in `.<...>` and stands for any last word.
    pub(super) name: &'static str,
    /// Heading it stands under in the reference.
    pub(super) group: &'static str,
    /// What its value must look like.
    pub(super) kind: Kind,
    /// Its value when nobody sets it.
    pub(super) preset: Preset,
    /// One or two sentences for the reference and the `config` command.
    pub(super) doc: &'static str,
    /// What it decides.
    pub(super) scope: Scope,
}

/// What a setting decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The rows: a run is continued only with the same value.
    Rows,
    /// How the run works, on all nodes alike.
    Run,
    /// How this machine takes part. It is not published.
    Machine,
    /// Nothing.
    NoEffect,
}

/// What the value of a setting must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// Yes or no.
    Boolean,
    /// A whole number within bounds, both included.
    Integer {
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A length of time.
    Duration {
        /// What a number without a unit counts.
        bare: Bare,
        /// Shortest allowed.
        min: Duration,
    },
    /// A number of bytes.
    Size {
        /// Smallest allowed.
        min: u64,
    },
    /// A path, relative to the working directory.
    Path,
}

/// What a duration without a unit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    /// Nothing: the unit must be written.
    Refused,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// The unit that another setting names.
    NamedBy(&'static str),
}

/// The value of a setting that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// None.
    Unset,
    /// This text.
    Is(&'static str),
    /// The value of another setting, or this text where that one has none.
    Like(&'static str, &'static str),
}

/// Names of Java's time units, which Scoopi's `...timeoutUnit` settings use.
pub(super) const UNITS: &[&str] =
    &["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"];

impl Key {
    /// Whether it has an effect.
    pub(super) fn is_effective(&self) -> bool {
        self.scope != Scope::NoEffect
    }

    /// The words before the last one of a family, with the dot.
    pub(super) fn family(&self) -> Option<&'static str> {
        self.name.split_once('<').map(|(stem, _)| stem)
    }
}
