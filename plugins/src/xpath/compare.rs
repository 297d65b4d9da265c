//! Comparisons. A set of nodes compares true if one of its nodes does.

use std::collections::HashMap;

use super::XNode;
use super::evaluate::{EvalResult, Evaluator, Focus};
use super::expression::{Comparison, Expression, ValueKind};
use super::number::number_from;

impl Evaluator<'_> {
    pub(super) fn compare(
        &self,
        comparison: Comparison,
        left: &Expression,
        right: &Expression,
        focus: Focus,
    ) -> EvalResult<bool> {
        match (left.kind(), right.kind()) {
            (ValueKind::Nodes, ValueKind::Nodes) => {
                self.compare_sets(comparison, left, right, focus)
            }
            (ValueKind::Nodes, ValueKind::Text | ValueKind::Number) => {
                self.compare_set(comparison, left, right, focus)
            }
            (ValueKind::Text | ValueKind::Number, ValueKind::Nodes) => {
                self.compare_set(comparison.flipped(), right, left, focus)
            }
            (one, other) => {
                let booleans = one == ValueKind::Boolean || other == ValueKind::Boolean;
                let texts = one == ValueKind::Text && other == ValueKind::Text;
                if comparison.is_equality() && booleans {
                    let same = self.truth(left, focus)? == self.truth(right, focus)?;
                    return Ok(same == (comparison == Comparison::Equal));
                }
                if comparison.is_equality() && texts {
                    let same = self.text(left, focus)? == self.text(right, focus)?;
                    return Ok(same == (comparison == Comparison::Equal));
                }
                let left = self.ordinal(left, focus)?;
                Ok(comparison.of_numbers(left, self.ordinal(right, focus)?))
            }
        }
    }

    /// The operand as a number. In a comparison with a boolean, a set of nodes is converted to a
    /// boolean first.
    fn ordinal(&self, expression: &Expression, focus: Focus) -> EvalResult<f64> {
        if expression.kind() == ValueKind::Nodes {
            return Ok(f64::from(u8::from(self.truth(expression, focus)?)));
        }
        self.number(expression, focus)
    }

    fn compare_set(
        &self,
        comparison: Comparison,
        nodes: &Expression,
        value: &Expression,
        focus: Focus,
    ) -> EvalResult<bool> {
        if value.kind() == ValueKind::Text && comparison.is_equality() {
            let wanted = self.text(value, focus)?;
            let equal = comparison == Comparison::Equal;
            return self
                .visit(nodes, focus, &mut |node| Ok(self.text_equals(node, &wanted)? == equal));
        }
        let wanted = self.number(value, focus)?;
        self.visit(nodes, focus, &mut |node| {
            let number = number_from(&self.string_value(node)?);
            Ok(comparison.of_numbers(number, wanted))
        })
    }

    /// Whether the text of a node equals `wanted`. The comparison ends at the first text node that
    /// differs.
    fn text_equals(&self, node: XNode, wanted: &str) -> EvalResult<bool> {
        let rest = self.strip_text(node, wanted)?;
        Ok(rest.is_some_and(str::is_empty))
    }

    /// Whether the text of a node starts with `wanted`.
    pub(super) fn starts_with_text(&self, node: XNode, wanted: &str) -> EvalResult<bool> {
        let id = match node {
            XNode::Node(id) if self.document.text(id).is_none() => id,
            _ => return Ok(self.string_value(node)?.starts_with(wanted)),
        };
        let mut rest = Some(wanted);
        self.text_nodes(id, &mut |piece| {
            let Some(left) = rest else { return false };
            rest = if piece.len() >= left.len() {
                piece.starts_with(left).then_some("")
            } else {
                left.strip_prefix(piece)
            };
            rest.is_some_and(|left| !left.is_empty())
        })?;
        Ok(rest.is_some_and(str::is_empty))
    }

    /// The rest of `wanted` after the whole text of a node; `None` if `wanted` does not start with
    /// it.
    fn strip_text<'w>(&self, node: XNode, wanted: &'w str) -> EvalResult<Option<&'w str>> {
        let id = match node {
            XNode::Node(id) if self.document.text(id).is_none() => id,
            _ => return Ok(wanted.strip_prefix(&*self.string_value(node)?)),
        };
        let mut rest = Some(wanted);
        self.text_nodes(id, &mut |piece| {
            rest = rest.and_then(|left| left.strip_prefix(piece));
            rest.is_some()
        })?;
        Ok(rest)
    }

    fn compare_sets(
        &self,
        comparison: Comparison,
        left: &Expression,
        right: &Expression,
        focus: Focus,
    ) -> EvalResult<bool> {
        let left = self.nodes(left, focus)?;
        let right = self.nodes(right, focus)?;
        let (Some(one), Some(_)) = (left.first(), right.first()) else {
            return Ok(false);
        };
        match comparison {
            Comparison::Equal => self.share_text(&left, &right),
            Comparison::NotEqual => {
                // Two texts differ unless all nodes on both sides have the same text.
                let text = self.string_value(*one)?;
                for node in left.iter().skip(1).chain(&right) {
                    if !self.text_equals(*node, &text)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Comparison::Less | Comparison::LessEqual => {
                let (least, _) = self.span(&left)?;
                let (_, most) = self.span(&right)?;
                Ok(comparison.of_numbers(least, most))
            }
            Comparison::Greater | Comparison::GreaterEqual => {
                let (_, most) = self.span(&left)?;
                let (least, _) = self.span(&right)?;
                Ok(comparison.of_numbers(most, least))
            }
        }
    }

    /// Smallest and largest number among the nodes. NaN, which compares false, if there is no
    /// number.
    fn span(&self, nodes: &[XNode]) -> EvalResult<(f64, f64)> {
        let (mut least, mut most) = (f64::NAN, f64::NAN);
        for node in nodes {
            let number = number_from(&self.string_value(*node)?);
            least = least.min(number);
            most = most.max(number);
        }
        Ok((least, most))
    }

    /// Whether some text occurs on both sides. It keeps hashes, because texts of nested nodes
    /// repeat and would fill the memory.
    fn share_text(&self, left: &[XNode], right: &[XNode]) -> EvalResult<bool> {
        let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
        if let [only] = few {
            let text = self.string_value(*only)?;
            for node in many {
                if self.text_equals(*node, &text)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let mut known: HashMap<u64, Vec<XNode>> = HashMap::new();
        for node in few {
            known.entry(self.hash(*node)?).or_default().push(*node);
        }
        for node in many {
            let Some(alike) = known.get(&self.hash(*node)?) else {
                continue;
            };
            let text = self.string_value(*node)?;
            for other in alike {
                if self.text_equals(*other, &text)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// A hash of a node's text (FNV-1a), whatever text nodes the text is split into.
    fn hash(&self, node: XNode) -> EvalResult<u64> {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |text: &str| {
            for byte in text.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            true
        };
        match node {
            XNode::Node(id) if self.document.text(id).is_none() => self.text_nodes(id, &mut add)?,
            _ => {
                add(&self.string_value(node)?);
            }
        }
        Ok(hash)
    }
}
