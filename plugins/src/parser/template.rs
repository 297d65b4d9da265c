//! Parses texts with variables `%{...}`, once, when the definition is compiled.

use spoonbill_defs::suggest;

use super::bound::{AxisHead, BoundTemplate, TemplateBinder};
use crate::data::AxisKind;

const PROPERTIES: [&str; 7] =
    ["index", "match", "value", "order", "itemName", "axisName", "nameString"];

const SEPARATOR: &str = " attribute: ";

/// Why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct TemplateError {
    /// The message shown to users.
    pub(super) message: String,
    /// Position of the variable, in bytes from 0.
    pub(super) at: usize,
}

/// A text split at its variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<TemplatePiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Variable {
        variable: TemplateVariable,
        /// The variable as written, from `%{` to `}`.
        whole: String,
        at: usize,
        /// Written `%%{...}`: printed as is. It must still be a valid variable.
        escaped: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateVariable {
    axis: AxisRef,
    pub(super) property: VariableProperty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AxisRef {
    Own,
    First(AxisKind),
    Named(AxisKind, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableProperty {
    Index,
    Match,
    Value,
    Order,
    ItemName,
    AxisName,
}

impl Template {
    /// Parses a template. Every variable must have a valid form, kind of axis and property.
    pub(super) fn compile(text: &str) -> Result<Self, TemplateError> {
        let pieces = segments(text).map(|segment| match segment {
            TemplateSegment::Text(words) => Ok(TemplatePiece::Text(words.to_owned())),
            TemplateSegment::Variable { whole, name, at, escaped } => Ok(TemplatePiece::Variable {
                variable: TemplateVariable::parse(name).map_err(|why| TemplateError {
                    message: format!("variable `{whole}`: {why}"),
                    at,
                })?,
                whole: whole.to_owned(),
                at,
                escaped,
            }),
        });
        Ok(Self { pieces: pieces.collect::<Result<_, _>>()? })
    }

    /// Binds the template to axis number `own` of a row, and inserts everything that the definition
    /// decides.
    pub(super) fn bind(
        &self,
        own: usize,
        heads: &[AxisHead],
    ) -> Result<BoundTemplate, TemplateError> {
        let mut binder = TemplateBinder::new(own, heads);
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(words) => binder.push_text(words),
                TemplatePiece::Variable { variable, whole, at, escaped } => {
                    let axis = variable.axis_index(own, heads).map_err(|why| TemplateError {
                        message: format!("variable `{whole}`: {why}"),
                        at: *at,
                    })?;
                    if *escaped {
                        binder.push_text(whole);
                    } else {
                        binder.push_variable(axis, variable.property, whole);
                    }
                }
            }
        }
        Ok(binder.finish())
    }
}

impl TemplateVariable {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let parts: Vec<&str> = name.split('.').collect();
        let (axis, property) = match *parts {
            [property] => (AxisRef::Own, property),
            [kind, property] => (AxisRef::First(parse_kind(kind)?), property),
            [kind, item, property] => {
                (AxisRef::Named(parse_kind(kind)?, item.to_owned()), property)
            }
            _ => {
                return Err(format!(
                    "it has {} parts, but the most are three: kind, item name, property",
                    parts.len()
                ));
            }
        };
        Ok(Self { axis, property: parse_property(property)? })
    }

    /// The index of the axis that the variable refers to.
    pub(super) fn axis_index(&self, own: usize, heads: &[AxisHead]) -> Result<usize, String> {
        match &self.axis {
            AxisRef::Own => Ok(own),
            AxisRef::First(kind) => heads
                .iter()
                .position(|head| head.kind == *kind)
                .ok_or_else(|| format!("the definition has no {}", kind.as_str())),
            AxisRef::Named(kind, name) => heads
                .iter()
                .position(|head| head.kind == *kind && *head.item_name == **name)
                .ok_or_else(|| {
                    let row = heads.first().map_or("", |head| &head.item_name);
                    let kind = kind.as_str();
                    format!("the rows of item `{row}` have no {kind} named `{name}`")
                }),
        }
    }
}

fn parse_kind(word: &str) -> Result<AxisKind, String> {
    let kinds = [AxisKind::Item, AxisKind::Dim, AxisKind::Fact];
    kinds
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| format!("`{word}` is not one of `item`, `dim` and `fact`"))
}

fn parse_property(word: &str) -> Result<VariableProperty, String> {
    Ok(match word {
        "index" => VariableProperty::Index,
        "match" => VariableProperty::Match,
        "value" => VariableProperty::Value,
        "order" => VariableProperty::Order,
        "itemName" => VariableProperty::ItemName,
        "axisName" | "nameString" => VariableProperty::AxisName,
        _ => {
            let advice = suggest(word, PROPERTIES)
                .map(|known| format!("; did you mean `{known}`?"))
                .unwrap_or_default();
            return Err(format!("there is no property `{word}`{advice}"));
        }
    })
}

pub(super) enum TemplateSegment<'t> {
    Text(&'t str),
    Variable { whole: &'t str, name: &'t str, at: usize, escaped: bool },
}

/// Splits a text at its variables. A `%{` without `}` is plain text.
pub(super) fn segments(text: &str) -> impl Iterator<Item = TemplateSegment<'_>> {
    let mut done = 0;
    let mut variable = None;
    std::iter::from_fn(move || {
        if let Some(found) = variable.take() {
            return Some(found);
        }
        let rest = &text[done..];
        let open = rest.find("%{");
        let close = open.and_then(|open| rest[open..].find('}'));
        let (Some(open), Some(length)) = (open, close) else {
            done = text.len();
            return (!rest.is_empty()).then_some(TemplateSegment::Text(rest));
        };
        let whole = &rest[open..=open + length];
        let escaped = rest[..open].ends_with('%');
        let words = &rest[..open - usize::from(escaped)];
        let found = TemplateSegment::Variable {
            whole,
            name: &whole[2..whole.len() - 1],
            at: done + open,
            escaped,
        };
        done += open + length + 1;
        if words.is_empty() {
            return Some(found);
        }
        variable = Some(found);
        Some(TemplateSegment::Text(words))
    })
}

/// Splits `css attribute: name` into the query and the name of the attribute.
pub(super) fn split_attribute(selector: &str) -> (&str, Option<&str>) {
    let mut parts = selector.split(SEPARATOR);
    (parts.next().unwrap_or_default(), parts.next())
}

#[cfg(test)]
mod tests;
