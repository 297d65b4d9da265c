//! Parses YAML files into nodes that know file, line and column.
//!
//! Scalars have the types of YAML 1.1. Aliases and merge keys are resolved here, so other modules see
//! plain nodes. Every size is limited, so hostile text causes a problem and nothing worse.

mod files;
mod mistakes;
mod syntax;
mod tree;
mod variables;

pub(crate) use files::{add_text, read_dir};
pub(crate) use tree::{NodeBudget, Unreadable, parse};
pub(crate) use variables::Variables;

use crate::text::{Span, Text};

/// One value of a definition file. Equality ignores the position.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode {
    /// Position of its start; the position of its key if the value is empty.
    pub(crate) at: Span,
    /// Scalar, list or mapping.
    pub(crate) kind: YamlKind,
}

impl PartialEq for YamlNode {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlKind {
    /// A scalar as written, and its type.
    Scalar(String, ScalarType),
    /// A list.
    Sequence(Vec<YamlNode>),
    /// Keys and values in the order of the file.
    Mapping(Vec<YamlEntry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlEntry {
    /// The key, which is always text.
    pub(crate) key: Text,
    /// The value.
    pub(crate) value: YamlNode,
}

/// The YAML 1.1 type of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarType {
    /// Empty, `~` or `null`.
    Null,
    /// One of `true false yes no on off`.
    Boolean(bool),
    /// Digits, with an optional sign, point, exponent or base.
    Number,
    /// Any other text, and every quoted text.
    Text,
    /// A text with the value of a variable. Its reader decides on the type.
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

    /// Describes the node for messages: "but it is ...".
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

/// Shortens a text for a message to 60 characters of its first line.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= SHOWN_MAX && line.len() == text.len() {
        return text.to_owned();
    }
    line.chars().take(SHOWN_MAX).chain("...".chars()).collect()
}

/// The type of an unquoted scalar.
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
        // Without a point, YAML 1.1 reads it as text. `12e3` may be a part number.
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
