//! A selector that matches exactly the items of a list.

use std::collections::BTreeSet;

use super::page_view::PageView;
use super::selectors::{self, ScoredSelector, element_selectors, scored};
use crate::html::NodeId;

/// Most selectors that are tried on the page for one set of items.
const TRIES_MAX: usize = 1_500;

/// The best selector for a set of items.
#[derive(Debug, Clone)]
pub(super) struct BlockChoice {
    pub(super) selector: String,
    pub(super) cost: f64,
    /// Whether it matches the items and nothing else.
    pub(super) is_exact: bool,
}

/// Finds the cheapest selector for `members`. If none is exact, returns the one that comes closest.
/// `inside` are elements that only real items contain, usable as `:has(...)`.
pub(super) fn block(view: &PageView, members: &[NodeId], inside: &[NodeId]) -> Option<BlockChoice> {
    let root = view.document.root();
    let wanted: BTreeSet<NodeId> = members.iter().copied().collect();
    let candidates = candidates(view, members, inside);
    let mut nearest: Option<(f64, BlockChoice)> = None;
    for part in candidates.into_iter().take(TRIES_MAX) {
        let found: BTreeSet<NodeId> = view.select(&part.text, root).into_iter().collect();
        let shared = found.intersection(&wanted).count() as f64;
        let likeness = shared / found.union(&wanted).count() as f64;
        let is_exact = found == wanted;
        if nearest.as_ref().is_none_or(|(most, _)| likeness > *most) {
            let choice = BlockChoice { selector: part.text, cost: part.cost, is_exact };
            nearest = Some((likeness, choice));
        }
        if is_exact {
            break;
        }
    }
    nearest.map(|(_, choice)| choice)
}

fn candidates(view: &PageView, members: &[NodeId], inside: &[NodeId]) -> Vec<ScoredSelector> {
    let Some(first) = members.first().copied() else { return Vec::new() };
    let own = shared_selectors(view, members);
    let limits = limits(view, members, inside, &own);
    let mut all = Vec::new();
    let around: Vec<NodeId> = view.upwards(first).skip(1).take(10).collect();
    for part in &own {
        let mut forms = vec![part.clone()];
        for (level, outer) in around.iter().enumerate() {
            for context in element_selectors(view, *outer, true).into_iter().take(6) {
                let cost = 0.3 + 0.02 * level as f64 + 0.6 * context.cost + part.cost;
                if level == 0 {
                    forms.push(scored(format!("{} > {}", context.text, part.text), cost));
                }
                forms.push(scored(format!("{} {}", context.text, part.text), cost));
            }
        }
        for form in forms {
            for limit in &limits {
                all.push(scored(format!("{}{}", form.text, limit.text), form.cost + limit.cost));
            }
            all.push(form);
        }
    }
    for chain in chains(view, first, &around) {
        for limit in &limits {
            all.push(scored(format!("{}{}", chain.text, limit.text), chain.cost + limit.cost));
        }
        all.push(chain);
    }
    selectors::sort(&mut all);
    all
}

/// Selectors that match every item.
fn shared_selectors(view: &PageView, members: &[NodeId]) -> Vec<ScoredSelector> {
    let Some((first, rest)) = members.split_first() else { return Vec::new() };
    let mut shared = element_selectors(view, *first, false);
    for member in rest {
        let theirs: BTreeSet<String> =
            element_selectors(view, *member, false).into_iter().map(|part| part.text).collect();
        shared.retain(|part| theirs.contains(&part.text));
    }
    shared.truncate(10);
    shared
}

/// Conditions that exclude other elements: parts that only items have, classes that no item has.
fn limits(
    view: &PageView,
    members: &[NodeId],
    inside: &[NodeId],
    own: &[ScoredSelector],
) -> Vec<ScoredSelector> {
    let mut found = Vec::new();
    if let Some(row) = members.first().filter(|node| view.tag(**node) == "tr") {
        found.push(scored(":has(td)", 0.3));
        let cells =
            view.document.child_elements(*row).filter(|cell| view.tag(*cell) == "td").count();
        let last = view.document.child_elements(*row).last().map(|cell| view.place(cell).0);
        found.extend(last.map(|place| scored(format!(":has(td:nth-child({place}))"), 0.5)));
        if cells > 1 {
            found.push(scored(":not(:has([colspan]))", 0.7));
            found.push(scored(":has(td):not(:has([colspan]))", 0.8));
        }
    }
    for node in inside {
        let known = element_selectors(view, *node, false).into_iter().take(3);
        found.extend(known.map(|part| scored(format!(":has({})", part.text), 0.7 + part.cost)));
    }
    let known: BTreeSet<NodeId> = members.iter().copied().collect();
    let has: BTreeSet<&str> = members.iter().flat_map(|member| view.classes(*member)).collect();
    let mut strangers = BTreeSet::new();
    for part in own {
        for other in view.select(&part.text, view.document.root()) {
            if !known.contains(&other) {
                let theirs = view.classes(other);
                strangers.extend(theirs.into_iter().filter(|class| !has.contains(class)));
            }
        }
    }
    if members.first().is_some_and(|first| view.before(*first).is_some())
        && members.iter().all(|member| view.tag(*member) == "tr")
    {
        found.push(scored(":not(:first-child)", 0.6));
    }
    // A class that ends in a number belongs to one element only.
    let is_numbered = |class: &str| class.ends_with(|c: char| c.is_ascii_digit());
    let plain =
        strangers.into_iter().filter(|class| super::words::is_plain(class) && !is_numbered(class));
    found.extend(plain.take(8).map(|class| scored(format!(":not(.{class})"), 0.5)));
    found
}

/// Chains of child tags below an ancestor with a class or id, for pages with few classes.
fn chains(view: &PageView, first: NodeId, around: &[NodeId]) -> Vec<ScoredSelector> {
    let mut found = Vec::new();
    let mut way = view.tag(first).to_owned();
    for (level, outer) in around.iter().enumerate() {
        let length = 0.4 * (level + 1) as f64;
        for context in element_selectors(view, *outer, true).into_iter().take(3) {
            let cost = 1.6 + length + 0.6 * context.cost;
            found.push(scored(format!("{} > {way}", context.text), cost));
        }
        let place = view.place(*outer).0;
        found
            .push(scored(format!("{}:nth-child({place}) > {way}", view.tag(*outer)), 3.4 + length));
        way = format!("{} > {way}", view.tag(*outer));
    }
    found
}
