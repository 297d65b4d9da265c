//! The axes: the nodes in a direction, nearest first, and the node tests.

use std::collections::HashSet;
use std::iter::successors;
use std::ops::ControlFlow;

use crate::html::{Document, LocalName, NodeId, NodeKind};

use super::XNode;
use super::expression::{NodeTest, XPathAxis};

/// Visits the nodes on `axis`, except attributes, in the order of their positions, until `visit`
/// breaks.
pub(super) fn walk<B>(
    document: &Document,
    axis: XPathAxis,
    from: XNode,
    mut visit: impl FnMut(NodeId) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let (id, is_attribute) = match from {
        XNode::Node(id) => (id, false),
        XNode::Attribute(owner, _) => (owner, true),
    };
    match axis {
        XPathAxis::Ancestor | XPathAxis::AncestorOrSelf if is_attribute => {
            ancestors(document, Some(id)).try_for_each(visit)
        }
        XPathAxis::Parent if is_attribute => visit(id),
        // The content of its element follows an attribute.
        XPathAxis::Following if is_attribute => {
            onwards(document, onward(document, id)).try_for_each(visit)
        }
        XPathAxis::Preceding => preceding(document, id, visit),
        _ if is_attribute => ControlFlow::Continue(()),
        XPathAxis::SelfNode => visit(id),
        XPathAxis::Child => document.children(id).try_for_each(visit),
        XPathAxis::Descendant => document.descendants(id).try_for_each(visit),
        XPathAxis::DescendantOrSelf => {
            visit(id)?;
            document.descendants(id).try_for_each(visit)
        }
        XPathAxis::Parent => document.parent(id).into_iter().try_for_each(visit),
        XPathAxis::Ancestor => ancestors(document, document.parent(id)).try_for_each(visit),
        XPathAxis::AncestorOrSelf => ancestors(document, Some(id)).try_for_each(visit),
        XPathAxis::FollowingSibling => {
            let first = document.next_sibling(id);
            successors(first, |at| document.next_sibling(*at)).try_for_each(visit)
        }
        XPathAxis::PrecedingSibling => {
            let first = document.prev_sibling(id);
            successors(first, |at| document.prev_sibling(*at)).try_for_each(visit)
        }
        XPathAxis::Following => onwards(document, document.after_subtree(id)).try_for_each(visit),
        XPathAxis::Attribute | XPathAxis::Namespace => ControlFlow::Continue(()),
    }
}

fn ancestors(document: &Document, first: Option<NodeId>) -> impl Iterator<Item = NodeId> + '_ {
    successors(first, |at| document.parent(*at))
}

/// The next node in document order.
fn onward(document: &Document, id: NodeId) -> Option<NodeId> {
    document.first_child(id).or_else(|| document.after_subtree(id))
}

fn onwards(document: &Document, first: Option<NodeId>) -> impl Iterator<Item = NodeId> + '_ {
    successors(first, |at| onward(document, *at))
}

/// Visits the nodes before `id` in reverse document order, without its ancestors.
fn preceding<B>(
    document: &Document,
    id: NodeId,
    mut visit: impl FnMut(NodeId) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut at = id;
    loop {
        if let Some(before) = document.prev_sibling(at) {
            document.descendants(before).rev().try_for_each(&mut visit)?;
            visit(before)?;
            at = before;
        } else if let Some(parent) = document.parent(at) {
            at = parent;
        } else {
            return ControlFlow::Continue(());
        }
    }
}

/// Drops contexts whose nodes on `axis` are all reached from another context.
///
/// `contexts` are in document order. Without this, `//*//*` would take quadratic time.
pub(super) fn drop_covered(
    document: &Document,
    axis: XPathAxis,
    mut contexts: Vec<XNode>,
) -> Vec<XNode> {
    match axis {
        XPathAxis::Descendant | XPathAxis::DescendantOrSelf => {
            let mut outer: Option<XNode> = None;
            contexts.retain(|context| {
                // An attribute has no descendants, but is on the axis descendant-or-self itself.
                if matches!(context, XNode::Attribute(..)) {
                    return axis == XPathAxis::DescendantOrSelf;
                }
                let covered = outer.is_some_and(|at| document.is_inside(context.id(), at.id()));
                if !covered {
                    outer = Some(*context);
                }
                !covered
            });
        }
        XPathAxis::Following => {
            // A context with nothing after it sorts last.
            let first = contexts.into_iter().min_by_key(|context| {
                let next = match context {
                    XNode::Node(id) => document.after_subtree(*id),
                    XNode::Attribute(owner, _) => onward(document, *owner),
                };
                next.map_or((true, None), |next| (false, Some(next)))
            });
            contexts = first.into_iter().collect();
        }
        XPathAxis::Preceding => contexts = contexts.pop().into_iter().collect(),
        XPathAxis::Ancestor | XPathAxis::AncestorOrSelf => {
            // The ancestors of a node are also ancestors of everything inside it.
            let mut inner: Option<XNode> = None;
            contexts.reverse();
            contexts.retain(|context| {
                let covered = inner.is_some_and(|at| holds(document, *context, at));
                inner = Some(*context);
                !covered
            });
            if axis == XPathAxis::Ancestor {
                one_per_parent(document, axis, &mut contexts);
            }
        }
        XPathAxis::Parent | XPathAxis::FollowingSibling => {
            one_per_parent(document, axis, &mut contexts);
        }
        XPathAxis::PrecedingSibling => {
            contexts.reverse();
            one_per_parent(document, axis, &mut contexts);
        }
        XPathAxis::Attribute | XPathAxis::Child | XPathAxis::SelfNode | XPathAxis::Namespace => {}
    }
    contexts
}

/// Whether `inner` is below `outer`, or one of its attributes.
fn holds(document: &Document, outer: XNode, inner: XNode) -> bool {
    let is_attribute = matches!(inner, XNode::Attribute(..));
    match outer {
        XNode::Attribute(..) => false,
        XNode::Node(id) => document.is_inside(inner.id(), id) || (is_attribute && inner.id() == id),
    }
}

fn one_per_parent(document: &Document, axis: XPathAxis, contexts: &mut Vec<XNode>) {
    let mut seen = HashSet::new();
    contexts.retain(|context| seen.insert(parent(document, *context, axis)));
}

/// A key that contexts share if the first of them reaches everything that the rest reach.
fn parent(document: &Document, context: XNode, axis: XPathAxis) -> (Option<NodeId>, bool) {
    match context {
        XNode::Node(id) => (document.parent(id), false),
        // An attribute has a parent, but is no sibling of its parent's children.
        XNode::Attribute(owner, _) => {
            (Some(owner), matches!(axis, XPathAxis::FollowingSibling | XPathAxis::PrecedingSibling))
        }
    }
}

/// Whether a node of the tree passes the test.
pub(super) fn admits(document: &Document, test: &NodeTest, id: NodeId) -> bool {
    match test {
        NodeTest::Any => document.kind(id) != NodeKind::Doctype,
        NodeTest::Text => document.kind(id) == NodeKind::Text,
        NodeTest::Comment => document.kind(id) == NodeKind::Comment,
        NodeTest::ProcessingInstruction => false,
        NodeTest::HasChildren => document.first_child(id).is_some(),
        NodeTest::AnyName => document.is_element(id),
        NodeTest::Name(..) | NodeTest::Prefix(..) => {
            document.name(id).is_some_and(|name| admits_name(test, name))
        }
    }
}

/// Whether a name passes the test: of an element, or on the attribute axis of an attribute.
pub(super) fn admits_name(test: &NodeTest, name: &LocalName) -> bool {
    match test {
        NodeTest::Any | NodeTest::AnyName => true,
        NodeTest::Name(folded, given) => name == folded || given.as_ref() == Some(name),
        NodeTest::Prefix(folded, given) => {
            let starts = |prefix: &str| name.starts_with(prefix);
            starts(folded) || given.as_deref().is_some_and(starts)
        }
        NodeTest::Text
        | NodeTest::Comment
        | NodeTest::ProcessingInstruction
        | NodeTest::HasChildren => false,
    }
}
