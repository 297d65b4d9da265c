//! The types of a row of `table.rs`.

use std::time::Duration;

/// One row of the table of settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// The dotted camelCase name. `.<...>` at the end makes a family with any last word.
    pub(super) name: &'static str,
    /// Its heading in the reference.
    pub(super) group: &'static str,
    /// The form of its value.
    pub(super) kind: Kind,
    /// Its default.
    pub(super) preset: Preset,
    /// One or two sentences for the reference and the `config` command.
    pub(super) doc: &'static str,
    /// The reach of its effect.
    pub(super) scope: Scope,
}

/// The reach of a setting's effect.
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

/// The form of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// True or false.
    Boolean,
    /// A whole number within limits.
    Integer {
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A duration.
    Duration {
        /// The unit of a bare number.
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

/// The unit of a duration that is written as a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    /// None: the unit must be written.
    Refused,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// The unit that another setting names.
    NamedBy(&'static str),
}

/// The default of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// No value.
    Unset,
    /// This text.
    Is(&'static str),
    /// The value of another setting, or this text if that one is unset.
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

    /// The name of a family without its last word, with the dot.
    pub(super) fn family(&self) -> Option<&'static str> {
        self.name.strip_suffix('>')?.split_once('<').map(|(stem, _)| stem)
    }
}
