//! Replaces `${NAME}` and `${NAME:-default}` in scalars by environment variables.

use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::text::Span;
use crate::yaml::shorten;

/// The source of variables, and the secret ones that were used.
#[derive(Debug)]
pub(crate) struct Variables {
    lookup: fn(&str) -> Option<String>,
    /// Names and values of secret variables, which must not be shown.
    pub(crate) secrets: BTreeMap<String, String>,
}

/// How to read a `${` that does not start a valid variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DollarSyntax {
    /// A malformed variable is an error.
    Variables,
    /// It belongs to JavaScript, which uses `${...}` in template literals.
    Script,
}

impl Variables {
    /// Variables from a lookup function.
    pub(crate) fn new(lookup: fn(&str) -> Option<String>) -> Self {
        Self { lookup, secrets: BTreeMap::new() }
    }

    /// The text with every variable replaced; `None` if it has none. A missing variable is reported
    /// and stays as written.
    pub(crate) fn fill(
        &mut self,
        text: &str,
        dollars: DollarSyntax,
        at: Span,
        findings: &mut Findings<'_>,
    ) -> Option<String> {
        let mut rest = text;
        let mut filled = String::new();
        let mut any = false;
        while let Some(start) = rest.find("${") {
            let (before, inside) = (&rest[..start], &rest[start + 2..]);
            let found = variable(inside);
            if let (Some(literal), true) =
                (before.strip_suffix('$'), found.is_ok() || dollars == DollarSyntax::Variables)
            {
                any = true;
                filled.extend([literal, "${"]);
                rest = inside;
                continue;
            }
            let (body, name, default) = match found {
                Ok(found) => found,
                Err((message, help)) => {
                    if dollars == DollarSyntax::Variables {
                        findings.broken_value(at, message, help);
                    }
                    filled.push_str(&rest[..start + 2]);
                    rest = inside;
                    continue;
                }
            };
            any = true;
            rest = &inside[body.len() + 1..];
            filled.push_str(before);
            // As in a shell, `:-` also replaces an empty variable.
            let value = (self.lookup)(name)
                .filter(|value| !value.is_empty() || default.is_none())
                .or_else(|| default.map(str::to_owned));
            if let Some(value) = value {
                self.keep_secret(name, &value);
                filled.push_str(&value);
            } else {
                findings.broken_value(
                    at,
                    format!("the environment has no variable `{name}`"),
                    match dollars {
                        DollarSyntax::Variables => {
                            format!("set it, or write a default: `${{{name}:-...}}`")
                        }
                        DollarSyntax::Script => {
                            format!("write `$${{{body}}}` if it belongs to JavaScript")
                        }
                    },
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

/// The text between the braces, the name, and the default of a variable.
type VariableParts<'t> = (&'t str, &'t str, Option<&'t str>);

/// Splits the text after `${`. The error is the message and the help for a malformed variable.
fn variable(inside: &str) -> Result<VariableParts<'_>, (String, String)> {
    const LITERAL: &str = "for a literal `${` write `$${`";
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let end = inside.find(|c| !is_part(c)).unwrap_or(inside.len());
    let name = if starts { &inside[..end] } else { "" };
    let Some((body, _)) = inside.split_once('}') else {
        let name = if name.is_empty() { "NAME" } else { name };
        let message = "the variable has no closing `}`".to_owned();
        return Err((message, format!("write `${{{name}}}`; {LITERAL}")));
    };
    let not_a_name = || {
        let message = format!("`${{{}}}` is not the name of a variable", shorten(body));
        Err((message, format!("a name has letters, digits and `_`: `${{NAME}}`; {LITERAL}")))
    };
    if name.is_empty() {
        return not_a_name();
    }
    let rest = &body[name.len()..];
    match rest.strip_prefix(":-") {
        Some(default) if default.contains("${") => Err((
            format!("the default of `{name}` contains another variable"),
            "write a default without a variable".to_owned(),
        )),
        Some(default) => Ok((body, name, Some(default))),
        None if rest.is_empty() => Ok((body, name, None)),
        None if rest.starts_with([':', '-', '=', '|', '?']) => {
            let value = rest.trim_start_matches([':', '-', '=', '|', '?']);
            Err((
                format!("a default is written after `:-`, as in `${{{name}:-...}}`"),
                format!("write `${{{name}:-{}}}`; {LITERAL}", shorten(value)),
            ))
        }
        None => not_a_name(),
    }
}
