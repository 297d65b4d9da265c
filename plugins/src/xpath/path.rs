//! Evaluates paths: each step, and its predicates.
//!
//! Sets of nodes are in document order without duplicates. If only the first node or the existence
//! of one is needed, the last step stops early.

use std::ops::ControlFlow;

use super::XNode;
use super::evaluate::{EvalResult, Evaluator, Focus};
use super::expression::{
    Expression, LocationPath, NodeTest, PathStart, PathStep, Predicate, ValueKind, XPathAxis,
};
use super::walk::{admits, admits_name, drop_covered, walk};

/// Up to this many predicates of a step are tested while candidates are found, without a list of
/// candidates.
const STREAMED_MAX: usize = 4;

/// Receives each node that is found. `true` ends the search.
pub(super) type NodeVisitor<'f> = &'f mut dyn FnMut(XNode) -> EvalResult<bool>;

/// The result of the predicates for a candidate.
struct CandidateResult {
    passed: bool,
    /// Whether no later candidate can pass.
    last: bool,
}

impl Evaluator<'_> {
    /// The nodes of an expression, in document order without duplicates.
    pub(super) fn nodes(&self, expression: &Expression, focus: Focus) -> EvalResult<Vec<XNode>> {
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
                sort_and_dedup(&mut nodes);
                Ok(nodes)
            }
            Expression::Call(_, arguments) if expression.kind() == ValueKind::Nodes => {
                self.by_id(arguments, focus)
            }
            // The parser rejects any other expression where nodes are needed.
            _ => Ok(Vec::new()),
        }
    }

    fn start(&self, path: &LocationPath, focus: Focus) -> EvalResult<Vec<XNode>> {
        match &path.start {
            PathStart::Filter(primary, predicates) => {
                let nodes = self.nodes(primary, focus)?;
                self.narrow(nodes, predicates)
            }
            PathStart::Context => Ok(vec![focus.node]),
            PathStart::Root => Ok(vec![XNode::Node(self.document.root())]),
        }
    }

    /// Calls `found` for each node, in any order and possibly more than once. Returns whether
    /// `found` ended the search.
    pub(super) fn visit(
        &self,
        expression: &Expression,
        focus: Focus,
        found: NodeVisitor<'_>,
    ) -> EvalResult<bool> {
        let Expression::Path(path) = expression else {
            return visit_all(self.nodes(expression, focus)?, found);
        };
        let single = match path.start {
            PathStart::Context => focus.node,
            PathStart::Root => XNode::Node(self.document.root()),
            PathStart::Filter(..) => return visit_all(self.nodes(expression, focus)?, found),
        };
        match path.steps.as_slice() {
            [] => found(single),
            [only] => self.visit_step(only, single, found),
            [first @ .., last] => {
                let mut nodes = vec![single];
                for step in first {
                    nodes = self.step(step, nodes)?;
                }
                if nodes.len() > 1 && !last.is_positional() {
                    nodes = drop_covered(self.document, last.axis, nodes);
                }
                for node in nodes {
                    if self.visit_step(last, node, found)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The first node in document order.
    pub(super) fn first(&self, expression: &Expression, focus: Focus) -> EvalResult<Option<XNode>> {
        // One forward step from one node finds nodes in document order.
        let ordered = matches!(expression, Expression::Path(path)
            if path.steps.len() <= 1 && path.steps.iter().all(|step| !step.axis.is_reverse()));
        let mut first: Option<XNode> = None;
        self.visit(expression, focus, &mut |node| {
            first = Some(first.map_or(node, |known| known.min(node)));
            Ok(ordered)
        })?;
        Ok(first)
    }

    /// The number of nodes.
    pub(super) fn count(&self, expression: &Expression, focus: Focus) -> EvalResult<usize> {
        // One step from one node finds no node twice.
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

    /// Takes `step` from each context node.
    fn step(&self, step: &PathStep, mut contexts: Vec<XNode>) -> EvalResult<Vec<XNode>> {
        let mut nodes = Vec::new();
        if let [only] = contexts.as_slice() {
            self.visit_step(step, *only, &mut |node| {
                nodes.push(node);
                Ok(false)
            })?;
            if step.axis.is_reverse() {
                nodes.reverse();
            }
            return Ok(nodes);
        }
        if !step.is_positional() {
            contexts = drop_covered(self.document, step.axis, contexts);
        }
        // Several contexts can reach the same nodes. Duplicates are removed early, because they
        // could fill the memory.
        let mut room = self.document.len().max(1024);
        for context in contexts {
            self.visit_step(step, context, &mut |node| {
                nodes.push(node);
                Ok(false)
            })?;
            if nodes.len() > room {
                sort_and_dedup(&mut nodes);
                room = nodes.len() + self.document.len().max(1024);
            }
        }
        sort_and_dedup(&mut nodes);
        Ok(nodes)
    }

    /// Calls `found` for each node that one step reaches from one node. Returns whether `found`
    /// ended the search.
    fn visit_step(&self, step: &PathStep, from: XNode, found: NodeVisitor<'_>) -> EvalResult<bool> {
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
            let verdict = match self.test_candidate(&step.predicates, &mut seen, node) {
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

    /// Calls `offer` for each node that passes the node test, nearest first, until it breaks.
    fn candidates(
        &self,
        step: &PathStep,
        from: XNode,
        mut offer: impl FnMut(XNode) -> ControlFlow<EvalResult<bool>>,
    ) -> EvalResult<bool> {
        let (document, test) = (self.document, &step.test);
        let flow = match (step.axis, from) {
            (XPathAxis::Attribute, XNode::Node(id)) => {
                let mut attributes = document.attributes(id).zip(0..);
                attributes.try_for_each(|((name, _), index)| {
                    self.charged(|| {
                        if admits_name(test, name) {
                            offer(XNode::Attribute(id, index))
                        } else {
                            ControlFlow::Continue(())
                        }
                    })
                })
            }
            // An attribute is on these axes itself, but name tests there match only elements.
            (
                XPathAxis::SelfNode | XPathAxis::DescendantOrSelf | XPathAxis::AncestorOrSelf,
                XNode::Attribute(..),
            ) if *test == NodeTest::Any => match offer(from) {
                ControlFlow::Continue(()) => self.tree_candidates(step, from, offer),
                stop @ ControlFlow::Break(_) => stop,
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
        step: &PathStep,
        from: XNode,
        mut offer: impl FnMut(XNode) -> ControlFlow<EvalResult<bool>>,
    ) -> ControlFlow<EvalResult<bool>> {
        let mut look = |id| {
            self.charged(|| {
                if admits(self.document, &step.test, id) {
                    offer(XNode::Node(id))
                } else {
                    ControlFlow::Continue(())
                }
            })
        };
        match (step.axis, &step.test, from) {
            // The tree lists elements by name. Names as written differ from `folded` only in case,
            // so one list has all candidates.
            (XPathAxis::Descendant, NodeTest::Name(folded, _), XNode::Node(from))
                if folded.is_ascii() =>
            {
                let listed = self.document.named(folded, from).iter().copied();
                listed.filter(|id| *id != from).try_for_each(look)
            }
            (axis, _, from) => walk(self.document, axis, from, &mut look),
        }
    }

    fn charged(
        &self,
        look: impl FnOnce() -> ControlFlow<EvalResult<bool>>,
    ) -> ControlFlow<EvalResult<bool>> {
        match self.spend(1) {
            Ok(()) => look(),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }

    /// Tests a candidate. For each predicate, `seen` counts the candidates that reached it.
    fn test_candidate(
        &self,
        predicates: &[Predicate],
        seen: &mut [usize],
        node: XNode,
    ) -> EvalResult<CandidateResult> {
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
                return Ok(CandidateResult { passed, last });
            }
        }
        Ok(CandidateResult { passed: true, last })
    }

    fn holds(
        &self,
        predicate: &Predicate,
        node: XNode,
        position: usize,
        size: usize,
    ) -> EvalResult<bool> {
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

    /// Applies the predicates to a complete list, one after another.
    fn narrow(&self, mut nodes: Vec<XNode>, predicates: &[Predicate]) -> EvalResult<Vec<XNode>> {
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

fn visit_all(nodes: Vec<XNode>, found: NodeVisitor<'_>) -> EvalResult<bool> {
    for node in nodes {
        if found(node)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn sort_and_dedup(nodes: &mut Vec<XNode>) {
    if !nodes.is_sorted_by(|before, after| before < after) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}
