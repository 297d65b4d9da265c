//! Reduced prices: the old price in `<del>`, the current one in `<ins>`.

use super::layout::LayoutKind;
use super::matches::MatchKind;
use super::page_view::PageView;
use super::paths;
use super::query::{FieldQuery, FieldSource};
use super::words::shape;
use crate::html::NodeId;

/// Extends a query so that it finds the current price in items with and without a reduction. `None`
/// if the query has nothing to do with reduced prices.
pub(super) fn with_reduced_price(
    view: &PageView,
    query: &FieldQuery,
    (member, node): (NodeId, NodeId),
    members: &[NodeId],
) -> Option<FieldQuery> {
    let FieldSource::Css(selector) = &query.source else { return None };
    let is_bare = query.attribute.is_none() && query.regex.is_none() && query.others.is_empty();
    if !is_bare || query.is_all || query.is_own {
        return None;
    }
    let within = |wanted: &str, outer: NodeId| view.inside(outer).any(|at| view.tag(at) == wanted);
    let new = view.upwards(node).take_while(|up| *up != member).find(|up| view.tag(*up) == "ins");
    if let Some(new) = new {
        let other =
            view.parent(new).and_then(|both| usual(view, query, (member, both), members))?;
        return Some(FieldQuery { others: vec![other], ..query.clone() });
    }
    let nodes = query.nodes(view, members);
    let mut firsts = nodes.iter().filter_map(|found| found.first());
    let is_reduced = firsts.any(|found| within("ins", *found) && within("del", *found));
    if within("ins", node) || !is_reduced {
        return None;
    }
    let source = FieldSource::Css(format!("{selector} ins"));
    Some(FieldQuery { source, others: vec![selector.clone()], ..query.clone() })
}

/// A selector for the parent of both prices that finds the only price in the remaining items.
fn usual(
    view: &PageView,
    query: &FieldQuery,
    (member, both): (NodeId, NodeId),
    members: &[NodeId],
) -> Option<String> {
    let given = query.values(view, members, None);
    let wanted = shape(given.iter().flatten().next()?);
    let fits = |way: &str| {
        let found = view.select_each(way, members);
        let own = view.select(way, member);
        let mut rest = given.iter().zip(&found).filter(|(value, _)| value.is_none()).peekable();
        own.first() == Some(&both)
            && rest.peek().is_some()
            && rest.all(|(_, found)| {
                found.first().is_some_and(|found| shape(&view.text(*found)) == wanted)
            })
    };
    let ways =
        paths::css(view, member, both, LayoutKind::List, &MatchKind::Whole).into_iter().take(40);
    ways.map(|part| part.text).find(|way| fits(way))
}
