//! Files to nodes that know file, line and column.
//!
//! Scalars are read as YAML 1.1 reads them; aliases and merge keys are resolved here, so nothing
//! behind this module knows of them. Every size is bounded: hostile text costs a problem, no more.

mod files;
mod mistakes;
mod syntax;
mod tree;
mod variables;

pub(crate) use files::{add_text, read_dir};
pub(crate) use tree::{NodeBudget, Unreadable, parse};
pub(crate) use variables::Variables;

use crate::text::{Span, Text};

/// One value of a definition file. Two nodes are equal when they mean the same, wherever they are.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode {
    /// Where it starts; the place of its key when nothing is written.
    pub(crate) at: Span,
    /// What it is.
    pub(crate) kind: YamlKind,
}

impl PartialEq for YamlNode {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// The kinds of nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlKind {
    /// A single word or text, and what YAML takes it for.
    Scalar(String, ScalarType),
    /// A list.
    Sequence(Vec<YamlNode>),
    /// Keys and values, in the order of the file.
    Mapping(Vec<YamlEntry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlEntry {
    /// The key; always text, as nothing else can be a name.
    pub(crate) key: Text,
    /// The value.
    pub(crate) value: YamlNode,
}

/// What YAML 1.1 takes a scalar for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarType {
    /// Nothing, `~` or `null`.
    Null,
    /// One of `true false yes no on off`.
    Boolean(bool),
    /// Digits, perhaps with a sign, point or base.
    Number,
    /// Everything else, and whatever is quoted.
    Text,
    /// Holds the value of a variable: whatever its reader wants.
    Filled,
}

impl YamlNode {
    /// The entries, if the node is a mapping.
    pub(crate) fn entries(&self) -> Option<&[YamlEntry]> {
        match &self.kind {
            YamlKind::Mapping(entries) => Some(entries),
            YamlKind::Scalar(..) | YamlKind::Sequence(_) => None,
        }
    }

    /// The value of a key, if the node is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries()?.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value)
    }

    /// What the node is, for "but it is ...".
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            YamlKind::Scalar(_, ScalarType::Null) => "empty".to_owned(),
            YamlKind::Scalar(text, ScalarType::Boolean(_)) => format!("the boolean `{text}`"),
            YamlKind::Scalar(text, ScalarType::Number) => format!("the number `{}`", shorten(text)),
            YamlKind::Scalar(text, ScalarType::Text | ScalarType::Filled) => {
                format!("the text `{}`", shorten(text))
            }
            YamlKind::Sequence(_) => "a list".to_owned(),
            YamlKind::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// A text short enough for a message.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= SHOWN_MAX && line.len() == text.len() {
        return text.to_owned();
    }
    line.chars().take(SHOWN_MAX).chain("...".chars()).collect()
}

/// Types an unquoted scalar.
fn scalar_type(text: &str) -> ScalarType {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ScalarType::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            ScalarType::Boolean(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            ScalarType::Boolean(false)
        }
        _ if is_number(text) => ScalarType::Number,
        _ => ScalarType::Text,
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hex) = digits.strip_prefix("0x") {
        return !hex.is_empty() && hex.chars().all(|c| c.is_ascii_hexdigit() || c == '_');
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return !binary.is_empty() && binary.chars().all(|c| matches!(c, '0' | '1' | '_'));
    }
    if matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let all_digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    let starts = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let exponent_fits = match exponent {
        None => true,
        // Without a point it is text in YAML 1.1: `12e3` is somebody's part number.
        Some(exponent) => {
            let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            fraction.is_some() && starts(power) && all_digits(power)
        }
    };
    exponent_fits
        && all_digits(whole)
        && fraction.is_none_or(all_digits)
        && (starts(whole) || (whole.is_empty() && fraction.is_some_and(starts)))
}

#[cfg(test)]
mod tests;
