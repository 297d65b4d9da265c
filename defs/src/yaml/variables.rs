//! `${NAME}` and `${NAME:-default}` in scalars, filled from the environment.

use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::text::Span;

/// Where variables come from, and the secrets among those that were used.
#[derive(Debug)]
pub(crate) struct Variables {
    lookup: fn(&str) -> Option<String>,
    /// Names and values that must not be shown.
    pub(crate) secrets: BTreeMap<String, String>,
}

impl Variables {
    /// Variables that are looked up by a function.
    pub(crate) fn new(lookup: fn(&str) -> Option<String>) -> Self {
        Self { lookup, secrets: BTreeMap::new() }
    }

    /// The text with every variable filled; `None` when there is none in it. A missing one is a
    /// problem, and stays as it is written.
    pub(crate) fn fill(
        &mut self,
        text: &str,
        at: Span,
        findings: &mut Findings<'_>,
    ) -> Option<String> {
        let mut rest = text;
        let mut filled = String::new();
        let mut any = false;
        while let Some(start) = rest.find("${") {
            let (before, inside) = (&rest[..start], &rest[start + 2..]);
            let Some((body, name, default)) = variable(inside) else {
                filled.push_str(&rest[..start + 2]);
                rest = inside;
                continue;
            };
            any = true;
            rest = &inside[body.len() + 1..];
            if let Some(literal) = before.strip_suffix('$') {
                filled.extend([literal, "${", body, "}"]);
                continue;
            }
            filled.push_str(before);
            if let Some(value) = (self.lookup)(name).or_else(|| default.map(str::to_owned)) {
                self.keep_secret(name, &value);
                filled.push_str(&value);
            } else {
                findings.error(
                    at,
                    format!("the environment has no variable `{name}`"),
                    format!("set it, or write a default: `${{{name}:-...}}`"),
                );
                filled.extend(["${", body, "}"]);
            }
        }
        filled.push_str(rest);
        any.then_some(filled)
    }

    fn keep_secret(&mut self, name: &str, value: &str) {
        let ends = ["SECRET", "TOKEN", "PASSWORD", "KEY"];
        if !value.is_empty() && ends.iter().any(|end| name.to_ascii_uppercase().ends_with(end)) {
            self.secrets.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// What stands between the braces, the name in it, and its default.
fn variable(inside: &str) -> Option<(&str, &str, Option<&str>)> {
    let body = &inside[..inside.find('}')?];
    let (name, default) =
        body.split_once(":-").map_or((body, None), |(name, other)| (name, Some(other)));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((body, name, default))
}
