//! Finds the link to the next page and the links to the pages of the items.

use super::layout::LayoutKind;
use super::matches::MatchKind;
use super::page_view::PageView;
use super::paths;
use super::words::{self, fold};
use crate::html::NodeId;

/// Texts of a link to the next page, in several languages, separated by `|`.
const NEXT_WORDS: &str = "next|next page|next ›|next »|next →|next >|›|»|→|>|older|older posts|load more|more|\
    weiter|nächste|nächste seite|suivant|page suivante|siguiente|successivo|volgende";

/// A selector for the link to the next page, if its `rel`, class or text marks it.
pub(super) fn next_page(view: &PageView) -> Option<String> {
    let root = view.document.root();
    if let Some(sure) = ["a[rel=next]", "link[rel=next]"].into_iter().find(|sure| {
        view.select(sure, root).first().is_some_and(|node| target(view, *node).is_some())
    }) {
        return Some(sure.to_owned());
    }
    let links: Vec<NodeId> = view.select("a[href]", root);
    let named = links.iter().find(|link| {
        let around = view.upwards(**link).take(2);
        around.flat_map(|node| view.classes(node)).any(|class| words::has_word(class, "next"))
    });
    let told = || {
        links.iter().find(|link| {
            let label = view.attribute(**link, "aria-label").unwrap_or_default();
            let is_next = |text: &str| {
                let text = fold(text).to_lowercase();
                NEXT_WORDS.split('|').any(|word| word == text)
            };
            is_next(&view.text(**link)) || is_next(label)
        })
    };
    let link = *named.or_else(told)?;
    let wanted = target(view, link)?;
    let mut ways: Vec<String> = paths::css(view, root, link, LayoutKind::Page, &MatchKind::Whole)
        .into_iter()
        .map(|part| part.text)
        .collect();
    let text = view.text(link);
    if !text.is_empty() && !text.contains(['(', ')', '\\']) {
        let cheap = ways.iter().take_while(|way| !way.contains(":nth")).count();
        ways.insert(cheap, format!("a:contains({text})"));
    }
    ways.into_iter().find(|way| {
        let found = view.select(way, root);
        !found.is_empty() && found.iter().all(|node| target(view, *node) == Some(wanted))
    })
}

/// A selector for the link from each item to its own page.
pub(super) fn details(
    view: &PageView,
    block: &str,
    members: &[NodeId],
    matches: &[NodeId],
) -> Option<String> {
    let is_link = |node: NodeId| view.tag(node) == "a" && target(view, node).is_some();
    let (member, link) = matches.iter().find_map(|hit| {
        let member = *members.iter().find(|member| view.holds(**member, *hit))?;
        let around =
            view.upwards(*hit).take_while(|up| view.holds(member, *up)).find(|up| is_link(*up));
        let link = around.or_else(|| view.inside(*hit).find(|inner| is_link(*inner)))?;
        // Prefer a link with text to a link around a picture with the same target.
        let same = |other: &NodeId| {
            target(view, *other) == target(view, link) && view.text_len(*other) > 0
        };
        Some((member, view.inside(member).find(same).unwrap_or(link)))
    })?;
    if block.contains(',') {
        return None;
    }
    if member == link {
        return Some(block.to_owned());
    }
    let ways = paths::css(view, member, link, LayoutKind::List, &MatchKind::Whole);
    let leads = |way: &str| {
        let found = view.select_each(way, members);
        let good = found.iter().filter(|nodes| nodes.len() == 1 && is_link(nodes[0])).count();
        2 * good > members.len() && good == found.iter().filter(|nodes| !nodes.is_empty()).count()
    };
    let way = ways.into_iter().find(|way| leads(&way.text))?;
    Some(format!("{block} {}", way.text))
}

/// The target of a link. `None` for fragments and scripts.
fn target<'a>(view: &'a PageView, node: NodeId) -> Option<&'a str> {
    let href = view.attribute(node, "href")?.trim();
    let is_dead = href.is_empty() || href.starts_with('#') || href.starts_with("javascript:");
    (!is_dead).then_some(href)
}
