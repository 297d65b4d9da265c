//! A template bound to an axis of a row. Values from the definition are inserted when it is bound,
//! and values from the page for each row.
//!
//! Values from a page can contain variables. They can neither make an insertion fail nor let it
//! grow without limit.

use std::sync::Arc;

use super::template::{TemplateSegment, TemplateVariable, VariableProperty, segments};
use crate::data::AxisKind;

/// Maximum number of texts inserted into inserted texts, for one template. Further variables stay
/// as written. Without it, two values that name each other would grow forever.
const INSERTIONS_MAX: u32 = 64;

/// Longest inserted text, in bytes, that is searched for variables. Also the longest text inserted
/// into an inserted text.
const INSERTED_BYTES_MAX: usize = 4096;

/// The part of an axis that the definition decides.
#[derive(Debug, Clone)]
pub(super) struct AxisHead {
    pub(super) kind: AxisKind,
    pub(super) item_name: Arc<str>,
    pub(super) match_text: Option<Arc<str>>,
    pub(super) order: Option<u32>,
    /// The item's `value`, or its `match` without backslashes.
    pub(super) constant: Option<Arc<str>>,
}

/// The current state of one axis.
#[derive(Debug, Clone, Default)]
pub(super) struct AxisState {
    pub(super) index: u32,
    pub(super) value: Option<String>,
    /// Last index. `None` for an open range until it ends.
    pub(super) last: Option<u32>,
}

/// A template bound to an axis of a row. The pieces that are left change from row to row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundTemplate {
    own: usize,
    /// Whether it was made from an inserted text.
    nested: bool,
    pieces: Vec<BoundTemplatePiece>,
    /// Variables without a value in any row, as written.
    unfilled: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BoundTemplatePiece {
    Text(String),
    Index(usize),
    /// The axis, and the variable as written, which stays if the axis has no value.
    Value(usize, String),
}

impl BoundTemplate {
    /// The text, if it is the same for every row.
    pub(super) fn constant(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [BoundTemplatePiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether the text depends on the index of an axis further right.
    pub(super) fn reaches_right(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, BoundTemplatePiece::Index(axis) if *axis > self.own))
    }

    /// Variables that stay as written in every row.
    pub(super) fn unfilled(&self) -> &[String] {
        &self.unfilled
    }

    /// The text for the current row. It is written to `buffer` if it changes from row to row.
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
                BoundTemplatePiece::Text(text) => out.push_str(text),
                BoundTemplatePiece::Index(axis) => push_number(now[*axis].index, out),
                BoundTemplatePiece::Value(axis, whole) => match &now[*axis].value {
                    None => out.push_str(whole),
                    Some(value) if self.nested && !count_insertion(value, insertions) => {
                        out.push_str(whole);
                    }
                    Some(value) if has_variable(value) => {
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

/// Whether a text may be inserted into an inserted text. Counts it if so.
fn count_insertion(text: &str, insertions: &mut u32) -> bool {
    let may = *insertions > 0 && text.len() <= INSERTED_BYTES_MAX;
    *insertions -= u32::from(may);
    may
}

/// Whether an inserted text is searched for variables.
pub(super) fn has_variable(text: &str) -> bool {
    text.len() <= INSERTED_BYTES_MAX && text.contains("%{")
}

/// Appends a number without allocating.
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
    /// Whether an inserted text is being bound.
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

    pub(super) fn push_text(&mut self, text: &str) {
        if let Some(BoundTemplatePiece::Text(before)) = self.pieces.last_mut() {
            before.push_str(text);
        } else if !text.is_empty() {
            self.pieces.push(BoundTemplatePiece::Text(text.to_owned()));
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
            // Axes are evaluated from left to right, so only the axes before this one have a value.
            None if property == VariableProperty::Value && axis < self.own => {
                self.pieces.push(BoundTemplatePiece::Value(axis, whole.to_owned()));
            }
            None => {
                self.unfilled.push(whole.to_owned());
                self.push_text(whole);
            }
        }
    }

    /// Inserts a text and the variables in it. Variables that name nothing stay as written: the
    /// text can come from a page, and a page must not make the parse fail.
    fn push_inserted(&mut self, text: &str) {
        if !has_variable(text) {
            return self.push_text(text);
        }
        let outer = std::mem::replace(&mut self.nested, true);
        for segment in segments(text) {
            match segment {
                TemplateSegment::Text(text) => self.push_text(text),
                TemplateSegment::Variable { whole, name, escaped, .. } => {
                    let place = TemplateVariable::parse(name).and_then(|variable| {
                        Ok((variable.axis_index(self.own, self.heads)?, variable.property))
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
