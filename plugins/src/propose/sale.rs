//! Prices that are struck out beside those that hold: `<del>` and `<ins>`.

use super::hits::{Hit, How};
use super::layout::Kind;
use super::take::{Source, Take};
use super::view::View;
use super::ways;
use super::words::shape;
use crate::html::NodeId;

/// A way that takes the price that holds in items with and without a reduced one, if the way given
/// has to do with that.
pub(super) fn with_sale(
    view: &View,
    take: &Take,
    (member, node): (NodeId, NodeId),
    members: &[NodeId],
) -> Option<Take> {
    let Source::Css(selector) = &take.source else { return None };
    let is_bare = take.attribute.is_none() && take.regex.is_none() && take.others.is_empty();
    if !is_bare || take.is_all || take.is_own {
        return None;
    }
    let within = |wanted: &str, outer: NodeId| view.inside(outer).any(|at| view.tag(at) == wanted);
    let new = view.upwards(node).take_while(|up| *up != member).find(|up| view.tag(*up) == "ins");
    if let Some(new) = new {
        let other = view.parent(new).and_then(|both| usual(view, take, (member, both), members))?;
        return Some(Take { others: vec![other], ..take.clone() });
    }
    let nodes = take.nodes(view, members);
    let mut firsts = nodes.iter().filter_map(|found| found.first());
    let is_reduced = firsts.any(|found| within("ins", *found) && within("del", *found));
    if within("ins", node) || !is_reduced {
        return None;
    }
    let source = Source::Css(format!("{selector} ins"));
    Some(Take { source, others: vec![selector.clone()], ..take.clone() })
}

/// A selector for what holds both prices, which in the other items is the only one.
fn usual(
    view: &View,
    take: &Take,
    (member, both): (NodeId, NodeId),
    members: &[NodeId],
) -> Option<String> {
    let given = take.values(view, members, None);
    let wanted = shape(given.iter().flatten().next()?);
    let hit = Hit { node: both, how: How::Whole, cost: 0.0 };
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
    let ways = ways::css(view, member, both, Kind::List, &hit).into_iter().take(40);
    ways.map(|mark| mark.text).find(|way| fits(way))
}
