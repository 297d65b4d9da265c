//! Texts with variables `%{...}`: taken apart once, filled in for every row.
//!
//! A [`Template`] knows the words; a [`Bound`] knows the row it stands in as well, so that filling
//! in is a walk over pieces. What a page says can never make filling in fail or grow without end.

use std::sync::Arc;

use spoonbill_defs::suggest;

use crate::data::AxisKind;

/// How many texts may be inserted into inserted texts, for one text in all; further variables stay
/// as written. Without it two values that name each other would grow for ever.
const INSERTIONS_MAX: u32 = 64;

/// Longest inserted text that is scanned for variables, and longest one put into another.
const INSERTED_BYTES_MAX: usize = 4096;

const PROPERTIES: [&str; 7] = [
    "index",
    "match",
    "value",
    "order",
    "itemName",
    "axisName",
    "nameString",
];

const SEPARATOR: &str = " attribute: ";

/// A text whose variables cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// Byte of the text at which the variable starts.
    pub at: usize,
}

/// A text taken apart into words and variables.
///
/// ```
/// use spoonbill_plugins::parser::Template;
///
/// assert!(!Template::compile("td:nth-child(%{dim.year.index})")?.is_constant());
/// assert!(Template::compile("%{item.colour}").is_err());
/// # Ok::<(), spoonbill_plugins::parser::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Words(String),
    Variable {
        variable: Variable,
        /// As written, from `%{` to `}`.
        whole: String,
        at: usize,
        /// Printed instead of filled in; it must name something all the same.
        escaped: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    axis: AxisRef,
    property: Property,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AxisRef {
    Own,
    First(AxisKind),
    Named(AxisKind, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Index,
    Match,
    Value,
    Order,
    ItemName,
    AxisName,
}

impl Template {
    /// Takes a text apart; every variable must have a known form, axis kind and property.
    pub fn compile(text: &str) -> Result<Self, TemplateError> {
        let pieces = stretches(text).map(|stretch| match stretch {
            Stretch::Words(words) => Ok(Piece::Words(words.to_owned())),
            Stretch::Variable {
                whole,
                name,
                at,
                escaped,
            } => Ok(Piece::Variable {
                variable: Variable::parse(name).map_err(|why| TemplateError {
                    message: format!("variable `{whole}`: {why}"),
                    at,
                })?,
                whole: whole.to_owned(),
                at,
                escaped,
            }),
        });
        Ok(Self {
            pieces: pieces.collect::<Result<_, _>>()?,
        })
    }

    /// Whether the text is the same for every row.
    pub fn is_constant(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Words(_) => true,
            Piece::Variable { escaped, .. } => *escaped,
        })
    }

    /// Puts the text into a row: `own` is the place of the axis it belongs to among `heads`.
    ///
    /// What the definition alone decides is filled in here already.
    pub(super) fn bind(&self, own: usize, heads: &[AxisHead]) -> Result<Bound, TemplateError> {
        let mut binder = Binder::new(own, heads, INSERTIONS_MAX);
        for piece in &self.pieces {
            match piece {
                Piece::Words(words) => binder.push_words(words),
                Piece::Variable {
                    variable,
                    whole,
                    at,
                    escaped,
                } => {
                    let axis = variable.place(own, heads).map_err(|why| TemplateError {
                        message: format!("variable `{whole}`: {why}"),
                        at: *at,
                    })?;
                    if *escaped {
                        binder.push_words(whole);
                    } else {
                        binder.push_variable(axis, variable.property, whole, false);
                    }
                }
            }
        }
        Ok(binder.finish(false))
    }
}

impl Variable {
    fn parse(name: &str) -> Result<Self, String> {
        let parts: Vec<&str> = name.split('.').collect();
        let (axis, property) = match *parts {
            [property] => (AxisRef::Own, property),
            [kind, property] => (AxisRef::First(parse_kind(kind)?), property),
            [kind, item, property] => {
                (AxisRef::Named(parse_kind(kind)?, item.to_owned()), property)
            }
            _ => {
                return Err(format!(
                    "it has {} parts where three are the most: kind, item name, property",
                    parts.len()
                ));
            }
        };
        Ok(Self {
            axis,
            property: parse_property(property)?,
        })
    }

    /// The axis of the row that is meant.
    fn place(&self, own: usize, heads: &[AxisHead]) -> Result<usize, String> {
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

fn parse_property(word: &str) -> Result<Property, String> {
    Ok(match word {
        "index" => Property::Index,
        "match" => Property::Match,
        "value" => Property::Value,
        "order" => Property::Order,
        "itemName" => Property::ItemName,
        "axisName" | "nameString" => Property::AxisName,
        _ => {
            let advice = suggest(word, PROPERTIES)
                .map(|known| format!("; did you mean `{known}`?"))
                .unwrap_or_default();
            return Err(format!("there is no property `{word}`{advice}"));
        }
    })
}

enum Stretch<'t> {
    Words(&'t str),
    Variable {
        whole: &'t str,
        name: &'t str,
        at: usize,
        escaped: bool,
    },
}

/// Splits a text at its variables; `%{` without `}` is plain words.
fn stretches(text: &str) -> impl Iterator<Item = Stretch<'_>> {
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
            return (!rest.is_empty()).then_some(Stretch::Words(rest));
        };
        let whole = &rest[open..=open + length];
        let escaped = rest[..open].ends_with('%');
        let words = &rest[..open - usize::from(escaped)];
        let found = Stretch::Variable {
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
        Some(Stretch::Words(words))
    })
}

/// What the definition says of one axis of a row, whatever the page.
#[derive(Debug, Clone)]
pub(super) struct AxisHead {
    pub(super) kind: AxisKind,
    pub(super) item_name: Arc<str>,
    pub(super) match_text: Option<Arc<str>>,
    pub(super) order: Option<u32>,
    /// The item's `value`.
    pub(super) constant: Option<Arc<str>>,
}

/// Where one axis stands in the current row.
#[derive(Debug, Clone, Default)]
pub(super) struct AxisNow {
    pub(super) index: u32,
    pub(super) value: Option<String>,
    /// Last index; open ranges get one when they break.
    pub(super) last: Option<u32>,
}

/// A template within a row: what is left to fill in changes from row to row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    own: usize,
    /// Made from an inserted text.
    nested: bool,
    pieces: Vec<BoundPiece>,
    /// Variables that can never have a value, as written.
    unfilled: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BoundPiece {
    Words(String),
    Index(usize),
    /// Axis and the variable as written, which stays when there is no value.
    Value(usize, String),
}

impl Bound {
    /// The text, if it is the same for every row.
    pub(super) fn constant(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [BoundPiece::Words(words)] => Some(words),
            _ => None,
        }
    }

    /// Whether the text changes with the index of an axis further right.
    pub(super) fn reaches_right(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, BoundPiece::Index(axis) if *axis > self.own))
    }

    /// Variables that stay as written in every row.
    pub(super) fn unfilled(&self) -> &[String] {
        &self.unfilled
    }

    /// The text for the current row; `buffer` is only used when it changes from row to row.
    pub(super) fn fill<'b>(
        &'b self,
        heads: &[AxisHead],
        now: &[AxisNow],
        buffer: &'b mut String,
    ) -> &'b str {
        if let Some(text) = self.constant() {
            return text;
        }
        buffer.clear();
        self.fill_into(heads, now, &mut { INSERTIONS_MAX }, buffer);
        buffer
    }

    fn fill_into(
        &self,
        heads: &[AxisHead],
        now: &[AxisNow],
        insertions: &mut u32,
        out: &mut String,
    ) {
        for piece in &self.pieces {
            match piece {
                BoundPiece::Words(words) => out.push_str(words),
                BoundPiece::Index(axis) => push_number(now[*axis].index, out),
                BoundPiece::Value(axis, whole) => match &now[*axis].value {
                    None => out.push_str(whole),
                    Some(value) if self.nested && !may_insert(value, insertions) => {
                        out.push_str(whole);
                    }
                    Some(value) if holds_variable(value) => {
                        let mut binder = Binder::new(self.own, heads, *insertions);
                        binder.push_inserted(value);
                        *insertions = binder.insertions;
                        binder.finish(true).fill_into(heads, now, insertions, out);
                    }
                    Some(value) => out.push_str(value),
                },
            }
        }
    }
}

/// Whether a text may go into an inserted text; counts it if so.
fn may_insert(text: &str, insertions: &mut u32) -> bool {
    let may = *insertions > 0 && text.len() <= INSERTED_BYTES_MAX;
    *insertions -= u32::from(may);
    may
}

/// Whether a text would be scanned again when it is inserted.
pub(super) fn holds_variable(text: &str) -> bool {
    text.len() <= INSERTED_BYTES_MAX && text.contains("%{")
}

/// Appends without the allocation of `to_string`.
fn push_number(number: u32, out: &mut String) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

struct Binder<'h> {
    own: usize,
    heads: &'h [AxisHead],
    insertions: u32,
    pieces: Vec<BoundPiece>,
    unfilled: Vec<String>,
}

impl<'h> Binder<'h> {
    fn new(own: usize, heads: &'h [AxisHead], insertions: u32) -> Self {
        Self {
            own,
            heads,
            insertions,
            pieces: Vec::new(),
            unfilled: Vec::new(),
        }
    }

    fn finish(self, nested: bool) -> Bound {
        Bound {
            own: self.own,
            nested,
            pieces: self.pieces,
            unfilled: self.unfilled,
        }
    }

    fn push_words(&mut self, words: &str) {
        if let Some(BoundPiece::Words(before)) = self.pieces.last_mut() {
            before.push_str(words);
        } else if !words.is_empty() {
            self.pieces.push(BoundPiece::Words(words.to_owned()));
        }
    }

    fn push_variable(&mut self, axis: usize, property: Property, whole: &str, nested: bool) {
        let head = &self.heads[axis];
        let known = match property {
            Property::Index => return self.pieces.push(BoundPiece::Index(axis)),
            Property::Match => head.match_text.clone(),
            Property::Order => head.order.map(|order| order.to_string().into()),
            Property::ItemName => Some(Arc::clone(&head.item_name)),
            Property::AxisName => Some(head.kind.as_str().into()),
            Property::Value => head.constant.clone(),
        };
        match known {
            Some(text) if nested && !may_insert(&text, &mut self.insertions) => {
                self.push_words(whole);
            }
            Some(text) => self.push_inserted(&text),
            // Axes are evaluated from left to right: only those before have a value by now.
            None if property == Property::Value && axis < self.own => {
                self.pieces.push(BoundPiece::Value(axis, whole.to_owned()));
            }
            None => {
                self.unfilled.push(whole.to_owned());
                self.push_words(whole);
            }
        }
    }

    /// Adds a text that may hold variables itself. Those that name nothing stay as they are: the
    /// text may be a page's, which must not be able to fail the parse.
    fn push_inserted(&mut self, text: &str) {
        if !holds_variable(text) {
            return self.push_words(text);
        }
        for stretch in stretches(text) {
            match stretch {
                Stretch::Words(words) => self.push_words(words),
                Stretch::Variable {
                    whole,
                    name,
                    escaped,
                    ..
                } => {
                    let place = Variable::parse(name).and_then(|variable| {
                        Ok((variable.place(self.own, self.heads)?, variable.property))
                    });
                    match place {
                        Ok((axis, property)) if !escaped => {
                            self.push_variable(axis, property, whole, true);
                        }
                        Ok(_) => self.push_words(whole),
                        Err(_) => {
                            self.push_words(if escaped { "%" } else { "" });
                            self.push_words(whole);
                        }
                    }
                }
            }
        }
    }
}

/// Splits `css attribute: name` into its query and the attribute's name.
pub(super) fn split_attribute(selector: &str) -> (&str, Option<&str>) {
    let mut parts = selector.split(SEPARATOR);
    (parts.next().unwrap_or_default(), parts.next())
}

#[cfg(test)]
mod tests;
