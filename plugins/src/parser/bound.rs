//! A template within a row: what the definition decides is filled in once, the rest for every row.
//!
//! What a page says can never make filling in fail or grow without end.

use std::sync::Arc;

use super::template::{TemplateSegment, TemplateVariable, VariableProperty, segments};
use crate::data::AxisKind;

/// How many texts may be inserted into inserted texts, for one text in all; further variables stay
/// as written. Without it two values that name each other would grow for ever.
const INSERTIONS_MAX: u32 = 64;

/// Longest inserted text that is scanned for variables, and longest one put into another.
const INSERTED_BYTES_MAX: usize = 4096;

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
pub(super) struct AxisState {
    pub(super) index: u32,
    pub(super) value: Option<String>,
    /// Last index; open ranges get one when they break.
    pub(super) last: Option<u32>,
}

/// A template within a row: what is left to fill in changes from row to row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundTemplate {
    own: usize,
    /// Made from an inserted text.
    nested: bool,
    pieces: Vec<BoundTemplatePiece>,
    /// Variables that can never have a value, as written.
    unfilled: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BoundTemplatePiece {
    Text(String),
    Index(usize),
    /// Axis and the variable as written, which stays when there is no value.
    Value(usize, String),
}

impl BoundTemplate {
    /// The text, if it is the same for every row.
    pub(super) fn constant(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [BoundTemplatePiece::Text(words)] => Some(words),
            _ => None,
        }
    }

    /// Whether the text changes with the index of an axis further right.
    pub(super) fn reaches_right(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, BoundTemplatePiece::Index(axis) if *axis > self.own))
    }

    /// Variables that stay as written in every row.
    pub(super) fn unfilled(&self) -> &[String] {
        &self.unfilled
    }

    /// The text for the current row; `buffer` is only used when it changes from row to row.
    pub(super) fn fill<'b>(
        &'b self,
        heads: &[AxisHead],
        now: &[AxisState],
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
        now: &[AxisState],
        insertions: &mut u32,
        out: &mut String,
    ) {
        for piece in &self.pieces {
            match piece {
                BoundTemplatePiece::Text(words) => out.push_str(words),
                BoundTemplatePiece::Index(axis) => push_number(now[*axis].index, out),
                BoundTemplatePiece::Value(axis, whole) => match &now[*axis].value {
                    None => out.push_str(whole),
                    Some(value) if self.nested && !count_insertion(value, insertions) => {
                        out.push_str(whole);
                    }
                    Some(value) if holds_variable(value) => {
                        let mut binder = TemplateBinder {
                            nested: true,
                            insertions: *insertions,
                            ..TemplateBinder::new(self.own, heads)
                        };
                        binder.push_inserted(value);
                        *insertions = binder.insertions;
                        binder.finish().fill_into(heads, now, insertions, out);
                    }
                    Some(value) => out.push_str(value),
                },
            }
        }
    }
}

/// Whether a text may go into an inserted text; counts it if so.
fn count_insertion(text: &str, insertions: &mut u32) -> bool {
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

pub(super) struct TemplateBinder<'h> {
    own: usize,
    heads: &'h [AxisHead],
    /// Within an inserted text.
    nested: bool,
    insertions: u32,
    pieces: Vec<BoundTemplatePiece>,
    unfilled: Vec<String>,
}

impl<'h> TemplateBinder<'h> {
    pub(super) fn new(own: usize, heads: &'h [AxisHead]) -> Self {
        Self {
            own,
            heads,
            nested: false,
            insertions: INSERTIONS_MAX,
            pieces: Vec::new(),
            unfilled: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> BoundTemplate {
        BoundTemplate {
            own: self.own,
            nested: self.nested,
            pieces: self.pieces,
            unfilled: self.unfilled,
        }
    }

    pub(super) fn push_text(&mut self, words: &str) {
        if let Some(BoundTemplatePiece::Text(before)) = self.pieces.last_mut() {
            before.push_str(words);
        } else if !words.is_empty() {
            self.pieces.push(BoundTemplatePiece::Text(words.to_owned()));
        }
    }

    pub(super) fn push_variable(&mut self, axis: usize, property: VariableProperty, whole: &str) {
        let head = &self.heads[axis];
        let known = match property {
            VariableProperty::Index => return self.pieces.push(BoundTemplatePiece::Index(axis)),
            VariableProperty::Match => head.match_text.clone(),
            VariableProperty::Order => head.order.map(|order| order.to_string().into()),
            VariableProperty::ItemName => Some(Arc::clone(&head.item_name)),
            VariableProperty::AxisName => Some(head.kind.as_str().into()),
            VariableProperty::Value => head.constant.clone(),
        };
        match known {
            Some(text) if self.nested && !count_insertion(&text, &mut self.insertions) => {
                self.push_text(whole);
            }
            Some(text) => self.push_inserted(&text),
            // Axes are evaluated from left to right: only those before have a value by now.
            None if property == VariableProperty::Value && axis < self.own => {
                self.pieces.push(BoundTemplatePiece::Value(axis, whole.to_owned()));
            }
            None => {
                self.unfilled.push(whole.to_owned());
                self.push_text(whole);
            }
        }
    }

    /// Adds a text that may hold variables itself. Those that name nothing stay as they are: the
    /// text may be a page's, which must not be able to fail the parse.
    fn push_inserted(&mut self, text: &str) {
        if !holds_variable(text) {
            return self.push_text(text);
        }
        let outer = std::mem::replace(&mut self.nested, true);
        for segment in segments(text) {
            match segment {
                TemplateSegment::Text(words) => self.push_text(words),
                TemplateSegment::Variable { whole, name, escaped, .. } => {
                    let place = TemplateVariable::parse(name).and_then(|variable| {
                        Ok((variable.place(self.own, self.heads)?, variable.property))
                    });
                    match place {
                        Ok((axis, property)) if !escaped => {
                            self.push_variable(axis, property, whole);
                        }
                        Ok(_) => self.push_text(whole),
                        Err(_) => {
                            self.push_text(if escaped { "%" } else { "" });
                            self.push_text(whole);
                        }
                    }
                }
            }
        }
        self.nested = outer;
    }
}

#[cfg(test)]
mod tests {
    use super::push_number;

    #[test]
    fn numbers_as_text() {
        for number in [0, 7, 10, 4_294_967_295] {
            let mut text = String::new();
            push_number(number, &mut text);
            assert_eq!(text, number.to_string());
        }
    }
}
