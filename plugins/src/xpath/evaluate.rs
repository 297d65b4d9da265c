//! Evaluates an expression to the kind of value its context needs, within a budget of steps.
//!
//! `path`, `compare` and `call` have the rest of the evaluator.

use std::borrow::Cow;
use std::cell::Cell;

use crate::html::{Document, NodeId, NodeKind};

use super::expression::{Expression, ValueKind};
use super::number::{number_from, number_to_string};
use super::{XNode, XPathError, XPathLimits, XPathValue};

/// Bytes of text that cost as much as one node.
const BYTES_PER_STEP: usize = 16;

/// The budget is used up, the only error an evaluation can have.
pub(super) struct BudgetExhausted;

pub(super) type EvalResult<T> = Result<T, BudgetExhausted>;

pub(super) fn evaluate(
    expression: &Expression,
    document: &Document,
    context: XNode,
    limits: XPathLimits,
) -> Result<XPathValue, XPathError> {
    let evaluator = Evaluator {
        document,
        steps_left: Cell::new(limits.steps_max),
        scratch: Cell::new(String::new()),
    };
    evaluator.value(expression, context).map_err(|BudgetExhausted| XPathError {
        message: format!(
            "stopped after {} steps: the expression is too expensive for this page",
            limits.steps_max
        ),
        at: None,
    })
}

/// The context of an expression: the values of `.`, `position()` and `last()`.
#[derive(Clone, Copy)]
pub(super) struct Focus {
    pub(super) node: XNode,
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) struct Evaluator<'d> {
    pub(super) document: &'d Document,
    steps_left: Cell<u64>,
    /// A buffer for text joined from several text nodes, reused by the next call.
    scratch: Cell<String>,
}

impl<'d> Evaluator<'d> {
    fn value(&self, expression: &Expression, context: XNode) -> EvalResult<XPathValue> {
        let focus = Focus { node: context, position: 1, size: 1 };
        Ok(match expression.kind() {
            ValueKind::Nodes => XPathValue::Nodes(self.nodes(expression, focus)?),
            ValueKind::Text => XPathValue::Text(self.text(expression, focus)?.into_owned()),
            ValueKind::Number => XPathValue::Number(self.number(expression, focus)?),
            ValueKind::Boolean => XPathValue::Boolean(self.truth(expression, focus)?),
        })
    }

    pub(super) fn spend(&self, steps: usize) -> EvalResult<()> {
        let left = self.steps_left.get().checked_sub(steps as u64);
        self.steps_left.set(left.ok_or(BudgetExhausted)?);
        Ok(())
    }

    /// The boolean value of an expression of any kind.
    pub(super) fn truth(&self, expression: &Expression, focus: Focus) -> EvalResult<bool> {
        match expression {
            Expression::Or(parts) => {
                for part in parts {
                    if self.truth(part, focus)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Expression::And(parts) => {
                for part in parts {
                    if !self.truth(part, focus)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expression::Compare(comparison, sides) => {
                self.compare(*comparison, &sides.0, &sides.1, focus)
            }
            Expression::Boolean(known) => Ok(*known),
            Expression::Call(function, arguments) if function.kind() == ValueKind::Boolean => {
                self.call_truth(*function, arguments, focus)
            }
            _ => match expression.kind() {
                ValueKind::Nodes => self.visit(expression, focus, &mut |_| Ok(true)),
                ValueKind::Text => Ok(!self.text(expression, focus)?.is_empty()),
                ValueKind::Number | ValueKind::Boolean => {
                    let number = self.number(expression, focus)?;
                    Ok(number != 0.0 && !number.is_nan())
                }
            },
        }
    }

    /// The number value of an expression of any kind.
    pub(super) fn number(&self, expression: &Expression, focus: Focus) -> EvalResult<f64> {
        match expression {
            Expression::Number(known) => Ok(*known),
            Expression::Negate(operand) => Ok(-self.number(operand, focus)?),
            Expression::Arithmetic(operator, sides) => {
                let left = self.number(&sides.0, focus)?;
                Ok(operator.of(left, self.number(&sides.1, focus)?))
            }
            Expression::Call(function, arguments) if function.kind() == ValueKind::Number => {
                self.call_number(*function, arguments, focus)
            }
            _ if expression.kind() == ValueKind::Boolean => {
                Ok(f64::from(u8::from(self.truth(expression, focus)?)))
            }
            _ => Ok(number_from(&self.text(expression, focus)?)),
        }
    }

    /// The string value of an expression of any kind.
    pub(super) fn text<'a>(
        &self,
        expression: &'a Expression,
        focus: Focus,
    ) -> EvalResult<Cow<'a, str>>
    where
        'd: 'a,
    {
        match expression {
            Expression::Literal(text) => Ok(Cow::Borrowed(text)),
            Expression::Call(function, arguments) if function.kind() == ValueKind::Text => {
                self.call_text(*function, arguments, focus)
            }
            _ => match expression.kind() {
                ValueKind::Nodes => match self.first(expression, focus)? {
                    Some(node) => self.string_value(node),
                    None => Ok(Cow::Borrowed("")),
                },
                ValueKind::Boolean if self.truth(expression, focus)? => Ok(Cow::Borrowed("true")),
                ValueKind::Boolean => Ok(Cow::Borrowed("false")),
                ValueKind::Number | ValueKind::Text => {
                    Ok(number_to_string(self.number(expression, focus)?).into())
                }
            },
        }
    }

    /// The text of a node; borrowed if it is in one text node.
    pub(super) fn string_value(&self, node: XNode) -> EvalResult<Cow<'d, str>> {
        let id = match node {
            XNode::Node(id) => id,
            XNode::Attribute(_, index) => {
                self.spend(1 + index as usize)?;
                return Ok(Cow::Borrowed(node.attribute_value(self.document)));
            }
        };
        if let Some(own) = self.document.text(id) {
            return Ok(Cow::Borrowed(own));
        }
        let mut whole = Cow::Borrowed("");
        self.text_nodes(id, &mut |piece| {
            if whole.is_empty() {
                whole = Cow::Borrowed(piece);
            } else {
                whole.to_mut().push_str(piece);
            }
            true
        })?;
        Ok(whole)
    }

    /// Whether `part` occurs in the text of a node.
    pub(super) fn contains_text(&self, node: XNode, part: &str) -> EvalResult<bool> {
        let id = match node {
            XNode::Node(id) if self.document.text(id).is_none() => id,
            _ => return Ok(self.string_value(node)?.contains(part)),
        };
        let mut only = "";
        let mut joined = self.scratch.take();
        joined.clear();
        let paid = self.text_nodes(id, &mut |piece| {
            if only.is_empty() {
                only = piece;
            } else {
                if joined.is_empty() {
                    joined.push_str(only);
                }
                joined.push_str(piece);
            }
            true
        });
        let whole = if joined.is_empty() { only } else { &joined };
        let found = whole.contains(part);
        self.scratch.set(joined);
        paid.map(|()| found)
    }

    /// Calls `take` with each text node below `id` until it returns `false`.
    pub(super) fn text_nodes(
        &self,
        id: NodeId,
        take: &mut dyn FnMut(&'d str) -> bool,
    ) -> EvalResult<()> {
        let mut steps = 0;
        for below in self.document.descendants(id) {
            steps += 1;
            if self.document.kind(below) != NodeKind::Text {
                continue;
            }
            let piece = self.document.text(below).unwrap_or_default();
            steps += piece.len() / BYTES_PER_STEP;
            if !take(piece) {
                break;
            }
        }
        self.spend(steps)
    }
}
