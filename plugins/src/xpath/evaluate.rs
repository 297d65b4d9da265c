//! Evaluates an expression: paths and predicates here, comparisons and functions beside.
//!
//! Sets of nodes are kept in document order, each node once. Where only the first node or the mere
//! presence of one matters, the last step of a path stops early.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;

use crate::html::{Document, NodeId, NodeKind};

use super::expression::{Axis, Expression, Kind, NodeTest, Path, Predicate, Start, Step};
use super::number::{number_from, number_to_string};
use super::walk::{admits, admits_name, thin, walk};
use super::{Value, XNode, XPathError, XPathLimits};

/// Predicates of one step that are tested as candidates come by, without a list of these.
const STREAMED_MAX: usize = 4;
/// Bytes of text that cost as much as a node.
const BYTES_PER_STEP: usize = 16;

pub(super) type Answer<T> = Result<T, XPathError>;

/// What to do with a node that was found; answers whether that is enough.
pub(super) type Found<'f> = &'f mut dyn FnMut(XNode) -> Answer<bool>;

pub(super) fn evaluate(
    expression: &Expression,
    document: &Document,
    context: XNode,
    limits: XPathLimits,
) -> Answer<Value> {
    let evaluator = Evaluator {
        document,
        steps_max: limits.steps_max,
        steps_left: Cell::new(limits.steps_max),
    };
    let focus = Focus { node: context, position: 1, size: 1 };
    Ok(match expression.kind() {
        Kind::Nodes => Value::Nodes(evaluator.nodes(expression, focus)?),
        Kind::Text => Value::Text(evaluator.text(expression, focus)?.into_owned()),
        Kind::Number => Value::Number(evaluator.number(expression, focus)?),
        Kind::Boolean => Value::Boolean(evaluator.truth(expression, focus)?),
    })
}

/// What `.`, `position()` and `last()` stand for.
#[derive(Clone, Copy)]
pub(super) struct Focus {
    pub(super) node: XNode,
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) struct Evaluator<'d> {
    pub(super) document: &'d Document,
    steps_max: u64,
    steps_left: Cell<u64>,
}

/// How a candidate fared with the predicates of its step.
struct Verdict {
    passed: bool,
    /// No later candidate can pass.
    last: bool,
}

impl<'d> Evaluator<'d> {
    pub(super) fn spend(&self, steps: usize) -> Answer<()> {
        match self.steps_left.get().checked_sub(steps as u64) {
            Some(left) => {
                self.steps_left.set(left);
                Ok(())
            }
            None => Err(XPathError {
                message: format!(
                    "gave up after looking at {} nodes; the expression asks too much of this page",
                    self.steps_max
                ),
                at: None,
            }),
        }
    }

    /// Whether an expression of any kind is true.
    pub(super) fn truth(&self, expression: &Expression, focus: Focus) -> Answer<bool> {
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
            Expression::Call(function, arguments) if function.kind() == Kind::Boolean => {
                self.call_truth(*function, arguments, focus)
            }
            _ => match expression.kind() {
                Kind::Nodes => self.visit(expression, focus, &mut |_| Ok(true)),
                Kind::Text => Ok(!self.text(expression, focus)?.is_empty()),
                Kind::Number | Kind::Boolean => {
                    let number = self.number(expression, focus)?;
                    Ok(number != 0.0 && !number.is_nan())
                }
            },
        }
    }

    /// An expression of any kind as a number.
    pub(super) fn number(&self, expression: &Expression, focus: Focus) -> Answer<f64> {
        match expression {
            Expression::Number(known) => Ok(*known),
            Expression::Negate(operand) => Ok(-self.number(operand, focus)?),
            Expression::Arithmetic(operator, sides) => {
                let left = self.number(&sides.0, focus)?;
                Ok(operator.of(left, self.number(&sides.1, focus)?))
            }
            Expression::Call(function, arguments) if function.kind() == Kind::Number => {
                self.call_number(*function, arguments, focus)
            }
            _ if expression.kind() == Kind::Boolean => {
                Ok(f64::from(u8::from(self.truth(expression, focus)?)))
            }
            _ => Ok(number_from(&self.text(expression, focus)?)),
        }
    }

    /// An expression of any kind as a string.
    pub(super) fn text<'a>(&self, expression: &'a Expression, focus: Focus) -> Answer<Cow<'a, str>>
    where
        'd: 'a,
    {
        match expression {
            Expression::Literal(text) => Ok(Cow::Borrowed(text)),
            Expression::Call(function, arguments) if function.kind() == Kind::Text => {
                self.call_text(*function, arguments, focus)
            }
            _ => match expression.kind() {
                Kind::Nodes => match self.first(expression, focus)? {
                    Some(node) => self.string_value(node),
                    None => Ok(Cow::Borrowed("")),
                },
                Kind::Boolean if self.truth(expression, focus)? => Ok(Cow::Borrowed("true")),
                Kind::Boolean => Ok(Cow::Borrowed("false")),
                Kind::Number | Kind::Text => {
                    Ok(number_to_string(self.number(expression, focus)?).into())
                }
            },
        }
    }

    /// The text of a node; borrowed if it lies in one piece.
    pub(super) fn string_value(&self, node: XNode) -> Answer<Cow<'d, str>> {
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
        self.pieces(id, &mut |piece| {
            if whole.is_empty() {
                whole = Cow::Borrowed(piece);
            } else {
                whole.to_mut().push_str(piece);
            }
            true
        })?;
        Ok(whole)
    }

    /// Gives the texts below `id` to `take` until that answers false.
    pub(super) fn pieces(&self, id: NodeId, take: &mut dyn FnMut(&'d str) -> bool) -> Answer<()> {
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

    /// The nodes of an expression, in document order, each once.
    pub(super) fn nodes(&self, expression: &Expression, focus: Focus) -> Answer<Vec<XNode>> {
        match expression {
            Expression::Path(path) => {
                let mut nodes = self.start(path, focus)?;
                for step in &path.steps {
                    nodes = self.step(step, nodes)?;
                }
                Ok(nodes)
            }
            Expression::Union(parts) => {
                let mut nodes = Vec::new();
                for part in parts {
                    nodes.append(&mut self.nodes(part, focus)?);
                }
                put_in_order(&mut nodes);
                Ok(nodes)
            }
            Expression::Call(_, arguments) if expression.kind() == Kind::Nodes => {
                self.by_id(arguments, focus)
            }
            // The parser lets nothing else stand where nodes are wanted.
            _ => Ok(Vec::new()),
        }
    }

    fn start(&self, path: &Path, focus: Focus) -> Answer<Vec<XNode>> {
        match &path.start {
            Start::Filter(primary, predicates) => {
                let nodes = self.nodes(primary, focus)?;
                self.narrow(nodes, predicates)
            }
            Start::Context => Ok(vec![focus.node]),
            Start::Root => Ok(vec![XNode::Node(self.document.root())]),
        }
    }

    /// Visits nodes in no promised order, some perhaps twice; answers whether it was told enough.
    pub(super) fn visit(
        &self,
        expression: &Expression,
        focus: Focus,
        found: Found<'_>,
    ) -> Answer<bool> {
        let Expression::Path(path) = expression else {
            return visit_all(self.nodes(expression, focus)?, found);
        };
        let single = match path.start {
            Start::Context => focus.node,
            Start::Root => XNode::Node(self.document.root()),
            Start::Filter(..) => return visit_all(self.nodes(expression, focus)?, found),
        };
        match path.steps.as_slice() {
            [] => found(single),
            [only] => self.each(only, single, found),
            [first @ .., last] => {
                let mut nodes = vec![single];
                for step in first {
                    nodes = self.step(step, nodes)?;
                }
                if nodes.len() > 1 && !last.is_positional() {
                    nodes = thin(self.document, last.axis, nodes);
                }
                for node in nodes {
                    if self.each(last, node, found)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The first node in document order.
    pub(super) fn first(&self, expression: &Expression, focus: Focus) -> Answer<Option<XNode>> {
        // From one node forwards, the first found is the first there is.
        let ordered = matches!(expression, Expression::Path(path)
            if path.steps.len() <= 1 && path.steps.iter().all(|step| !step.axis.is_reverse()));
        let mut first: Option<XNode> = None;
        self.visit(expression, focus, &mut |node| {
            first = Some(first.map_or(node, |known| known.min(node)));
            Ok(ordered)
        })?;
        Ok(first)
    }

    /// How many nodes there are.
    pub(super) fn count(&self, expression: &Expression, focus: Focus) -> Answer<usize> {
        // From one node, one step finds no node twice.
        let distinct = matches!(expression, Expression::Path(path) if path.steps.len() <= 1);
        if !distinct {
            return Ok(self.nodes(expression, focus)?.len());
        }
        let mut count = 0;
        self.visit(expression, focus, &mut |_| {
            count += 1;
            Ok(false)
        })?;
        Ok(count)
    }

    /// Takes `step` from every context.
    fn step(&self, step: &Step, mut contexts: Vec<XNode>) -> Answer<Vec<XNode>> {
        let mut nodes = Vec::new();
        if let [only] = contexts.as_slice() {
            self.each(step, *only, &mut |node| {
                nodes.push(node);
                Ok(false)
            })?;
            if step.axis.is_reverse() {
                nodes.reverse();
            }
            return Ok(nodes);
        }
        if !step.is_positional() {
            contexts = thin(self.document, step.axis, contexts);
        }
        // Contexts may share nodes: doubles go early, or a page could fill the memory with them.
        let mut room = self.document.len().max(1024);
        for context in contexts {
            self.each(step, context, &mut |node| {
                nodes.push(node);
                Ok(false)
            })?;
            if nodes.len() > room {
                put_in_order(&mut nodes);
                room = nodes.len() + self.document.len().max(1024);
            }
        }
        put_in_order(&mut nodes);
        Ok(nodes)
    }

    /// Gives to `found` what one step finds from one node; answers whether it was told enough.
    fn each(&self, step: &Step, from: XNode, found: Found<'_>) -> Answer<bool> {
        let listed =
            step.predicates.len() > STREAMED_MAX || step.predicates.iter().any(Predicate::is_sized);
        if listed {
            let mut nodes = Vec::new();
            self.candidates(step, from, |node| {
                nodes.push(node);
                ControlFlow::Continue(())
            })?;
            return visit_all(self.narrow(nodes, &step.predicates)?, found);
        }
        let mut seen = [0; STREAMED_MAX];
        self.candidates(step, from, |node| {
            let verdict = match self.judge(&step.predicates, &mut seen, node) {
                Ok(verdict) => verdict,
                Err(error) => return ControlFlow::Break(Err(error)),
            };
            if verdict.passed {
                match found(node) {
                    Ok(false) => {}
                    enough => return ControlFlow::Break(enough),
                }
            }
            if verdict.last {
                return ControlFlow::Break(Ok(false));
            }
            ControlFlow::Continue(())
        })
    }

    /// Offers the nodes that pass the node test, nearest first, until told to break.
    fn candidates(
        &self,
        step: &Step,
        from: XNode,
        mut offer: impl FnMut(XNode) -> ControlFlow<Answer<bool>>,
    ) -> Answer<bool> {
        let (document, test) = (self.document, &step.test);
        let flow = match (step.axis, from) {
            (Axis::Attribute, XNode::Node(id)) => {
                let mut attributes = document.attributes(id).zip(0..);
                attributes.try_for_each(|((name, _), index)| {
                    self.paid(|| {
                        if admits_name(test, name) {
                            offer(XNode::Attribute(id, index))
                        } else {
                            ControlFlow::Continue(())
                        }
                    })
                })
            }
            // Of the names, an attribute is found by those of its own axis only.
            (
                Axis::Itself | Axis::DescendantOrSelf | Axis::AncestorOrSelf,
                XNode::Attribute(..),
            ) if *test == NodeTest::Any => match offer(from) {
                ControlFlow::Continue(()) => self.tree_candidates(step, from, offer),
                stop => stop,
            },
            _ => self.tree_candidates(step, from, offer),
        };
        match flow {
            ControlFlow::Break(answer) => answer,
            ControlFlow::Continue(()) => Ok(false),
        }
    }

    fn tree_candidates(
        &self,
        step: &Step,
        from: XNode,
        mut offer: impl FnMut(XNode) -> ControlFlow<Answer<bool>>,
    ) -> ControlFlow<Answer<bool>> {
        walk(self.document, step.axis, from, |id| {
            self.paid(|| {
                if admits(self.document, &step.test, id) {
                    offer(XNode::Node(id))
                } else {
                    ControlFlow::Continue(())
                }
            })
        })
    }

    fn paid(&self, look: impl FnOnce() -> ControlFlow<Answer<bool>>) -> ControlFlow<Answer<bool>> {
        match self.spend(1) {
            Ok(()) => look(),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }

    /// Tests a candidate; `seen` counts, for each predicate, the candidates that reached it.
    fn judge(&self, predicates: &[Predicate], seen: &mut [usize], node: XNode) -> Answer<Verdict> {
        let mut last = false;
        for (predicate, seen) in predicates.iter().zip(seen) {
            *seen += 1;
            let passed = match predicate {
                Predicate::At(position) => {
                    last |= *seen >= *position;
                    *seen == *position
                }
                Predicate::Test { .. } => self.holds(predicate, node, *seen, 0)?,
            };
            if !passed {
                return Ok(Verdict { passed, last });
            }
        }
        Ok(Verdict { passed: true, last })
    }

    fn holds(
        &self,
        predicate: &Predicate,
        node: XNode,
        position: usize,
        size: usize,
    ) -> Answer<bool> {
        let focus = Focus { node, position, size };
        match predicate {
            Predicate::At(wanted) => Ok(*wanted == position),
            #[expect(clippy::float_cmp, reason = "a position is a whole number or none")]
            Predicate::Test { expression, numeric: true, .. } => {
                Ok(self.number(expression, focus)? == position as f64)
            }
            Predicate::Test { expression, .. } => self.truth(expression, focus),
        }
    }

    /// Keeps of a whole list what passes the predicates, one after the other.
    fn narrow(&self, mut nodes: Vec<XNode>, predicates: &[Predicate]) -> Answer<Vec<XNode>> {
        for predicate in predicates {
            if let Predicate::At(position) = predicate {
                let kept = position.checked_sub(1).and_then(|at| nodes.get(at));
                nodes = kept.copied().into_iter().collect();
                continue;
            }
            let size = nodes.len();
            self.spend(size)?;
            let mut kept = Vec::new();
            for (before, node) in nodes.into_iter().enumerate() {
                if self.holds(predicate, node, before + 1, size)? {
                    kept.push(node);
                }
            }
            nodes = kept;
        }
        Ok(nodes)
    }
}

fn visit_all(nodes: Vec<XNode>, found: Found<'_>) -> Answer<bool> {
    for node in nodes {
        if found(node)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn put_in_order(nodes: &mut Vec<XNode>) {
    if !nodes.is_sorted_by(|before, after| before < after) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}
