//! Selectors that lead from an item to one element, with their costs.

use super::items::is_marked_label;
use super::layout::LayoutKind;
use super::matches::MatchKind;
use super::page_view::PageView;
use super::selectors::{ScoredSelector, element_selectors, places, scored, sort};
use super::words::{is_currency, is_descriptive, is_plain, unit};
use crate::html::NodeId;

/// CSS selectors from `root` to `node`, cheapest first. They may match further elements.
pub(super) fn css(
    view: &PageView,
    root: NodeId,
    node: NodeId,
    kind: LayoutKind,
    how: &MatchKind,
) -> Vec<ScoredSelector> {
    let is_page = kind == LayoutKind::Page;
    let mut own = element_selectors(view, node, is_page);
    own.truncate(12);
    own.extend(without_class(view, root, node));
    if let Some(sign) = view.own_text(node).chars().find(|c| is_currency(*c)) {
        own.push(scored(format!("{}:containsOwn({sign})", view.tag(node)), 1.9));
    }
    own.extend(by_unit(view, node));
    own.extend(without_classes(view, node));
    let placed = places(view, node);
    let mut all = own.clone();
    all.extend(placed.iter().cloned());
    let between = view.between(root, node);
    for (level, outer) in between.iter().take(8).enumerate() {
        let mut contexts = element_selectors(view, *outer, is_page);
        contexts.truncate(5);
        contexts.extend(places(view, *outer));
        for context in &contexts {
            for part in own.iter().take(8).chain(&placed) {
                let cost = 0.2 + 0.02 * level as f64 + 0.5 * context.cost + part.cost;
                let sign = if level == 0 { " > " } else { " " };
                all.push(scored(format!("{}{sign}{}", context.text, part.text), cost + 0.01));
                if level == 0 {
                    all.push(scored(format!("{} {}", context.text, part.text), cost));
                }
            }
        }
    }
    all.extend(after_label(view, root, node, is_page));
    all.extend(with_label(view, node, is_page, how));
    all.push(by_positions(view, root, node));
    sort(&mut all);
    all
}

/// An element without classes among elements with classes: `span:not([class])`.
fn without_classes(view: &PageView, node: NodeId) -> Option<ScoredSelector> {
    let parent = view.parent(node)?;
    let bare = |node: &NodeId| view.attribute(*node, "class").is_none();
    let scope = view.parent(parent).and_then(|up| view.parent(up)).unwrap_or(parent);
    let scope = view.parent(scope).unwrap_or(scope);
    let mut alike = view.inside(scope).filter(|other| {
        view.tag(*other) == view.tag(node)
            && view.parent(*other).map(|up| view.classes(up)) == Some(view.classes(parent))
    });
    (bare(&node) && alike.any(|other| !bare(&other)))
        .then(|| scored(format!("{}:not([class])", view.tag(node)), 1.1))
}

/// An element with a number and a unit: `.fact:contains(beds)`.
fn by_unit(view: &PageView, node: NodeId) -> Option<ScoredSelector> {
    let text = view.text(node);
    let unit = unit(&text)?;
    let class = view.classes(node).into_iter().find(|class| is_descriptive(class));
    let name = class.map_or_else(|| view.tag(node).to_owned(), |class| format!(".{class}"));
    Some(scored(format!("{name}:contains({unit})"), 2.2))
}

/// A class, without a class of similar elements: `.price:not(.old)`.
fn without_class(view: &PageView, root: NodeId, node: NodeId) -> Vec<ScoredSelector> {
    let ours = view.classes(node);
    let scope =
        view.upwards(root).find(|outer| view.size(*outer) > view.size(root)).unwrap_or(root);
    let mut found = Vec::new();
    for class in ours.iter().filter(|class| is_descriptive(class)) {
        let mut strangers: Vec<&str> = view
            .inside(scope)
            .filter(|other| view.classes(*other).contains(class))
            .flat_map(|other| view.classes(other))
            .filter(|other| !ours.contains(other) && is_plain(other))
            .collect();
        strangers.sort_unstable();
        strangers.dedup();
        let forms = strangers.into_iter().take(6);
        found.extend(forms.map(|other| scored(format!(".{class}:not(.{other})"), 0.25)));
    }
    found
}

/// The element after a label: `dt:contains(Weight) + dd`.
fn after_label(view: &PageView, root: NodeId, node: NodeId, is_page: bool) -> Vec<ScoredSelector> {
    let mut found = Vec::new();
    for step in std::iter::once(node).chain(view.between(root, node)) {
        let Some((label, text)) = label_before(view, step, is_page) else { continue };
        let tag = view.tag(label);
        let cost = if matches!(tag, "dt" | "th") { 0.5 } else { 0.9 };
        let cost = cost + if is_page { 0.0 } else { 0.5 };
        let tags = view.tag_path(step, node).into_iter();
        let tail = tags.fold(String::new(), |tail, tag| tail + " > " + tag);
        let word = text.trim_end_matches(':').trim();
        let end = format!("+ {}{tail}", view.tag(step));
        found.push(scored(format!("{tag}:contains({word}) {end}"), cost));
        let exact = super::patterns::escape(word);
        found.push(scored(format!("{tag}:matches(^{exact}:?$) {end}"), cost + 0.3));
    }
    found
}

/// The label before an element, and its text.
pub(super) fn label_before(
    view: &PageView,
    node: NodeId,
    is_page: bool,
) -> Option<(NodeId, String)> {
    let label = view.before(node)?;
    let text = view.text(label);
    let is_fit = text.chars().any(char::is_alphabetic)
        && text.chars().count() <= 40
        && !text.contains(['(', ')', '"', '\'', '\\']);
    let is_label = is_marked_label(view, label, &text) || (is_page && is_pair(view, label, &text));
    (is_fit && is_label).then_some((label, text))
}

/// Whether an element is the first of two siblings, probably label and value.
fn is_pair(view: &PageView, label: NodeId, text: &str) -> bool {
    matches!(view.tag(label), "td" | "span" | "div")
        && !text.chars().any(|c| c.is_ascii_digit())
        && text.split(' ').count() <= 3
        && view.parent(label).is_some_and(|row| view.document.child_elements(row).count() == 2)
}

/// An element whose text is a label, a colon and a value: `li:contains(Weight:)`.
fn with_label(
    view: &PageView,
    node: NodeId,
    is_page: bool,
    how: &MatchKind,
) -> Option<ScoredSelector> {
    let text = view.text(node);
    if !matches!(how, MatchKind::Own | MatchKind::Part) {
        return None;
    }
    let label: String = text.chars().take_while(|c| *c != ':').collect();
    let is_label = label.len() < text.len()
        && (2..=30).contains(&label.chars().count())
        && label.chars().all(|c| c.is_alphabetic() || c == ' ' || c == '-');
    let cost = if is_page { 0.8 } else { 1.3 };
    is_label.then(|| scored(format!("{}:contains({label}:)", view.tag(node)), cost))
}

/// Positions alone, from `root` down to `node`.
fn by_positions(view: &PageView, root: NodeId, node: NodeId) -> ScoredSelector {
    let step = |up| format!("{}:nth-child({})", view.tag(up), view.place(up).0);
    let mut steps: Vec<String> =
        view.upwards(node).take_while(|up| view.document.is_inside(*up, root)).map(step).collect();
    steps.reverse();
    scored(format!("> {}", steps.join(" > ")), 3.6 + 0.2 * steps.len() as f64)
}

/// XPath from the first sibling of an item to an element in one of its later siblings.
pub(super) fn sibling(view: &PageView, anchor: NodeId, node: NodeId) -> Vec<ScoredSelector> {
    let Some(parent) = view.parent(anchor) else { return Vec::new() };
    let Some(part) = view.child_towards(parent, node) else { return Vec::new() };
    let mut found = Vec::new();
    for (test, cost) in tests(view, part) {
        let ahead = view
            .after(anchor)
            .take_while(|other| *other != part)
            .filter(|other| tests(view, *other).iter().any(|(theirs, _)| *theirs == test));
        let ahead = ahead.count();
        let step = format!("following-sibling::{test}[{}]", ahead + 1);
        if part == node {
            let place = view.after(anchor).take_while(|other| *other != part).count() + 1;
            for more in 0..3 {
                let text = format!(
                    "following-sibling::*[position()<={}][self::{test}][{}]",
                    place + more,
                    ahead + 1
                );
                found.push(scored(text, cost + 0.5 + 0.01 * f64::from(2 - more as u32)));
            }
            found.push(scored(step.clone(), cost));
            continue;
        }
        for (inner, inner_cost) in tests(view, node) {
            found.push(scored(format!("{step}//{inner}"), cost + inner_cost));
        }
        let down = xpath_steps(view, Some(part), node);
        found.push(scored(format!("{step}/{down}"), cost + 2.5));
    }
    sort(&mut found);
    found
}

/// XPath to a line of text between `<br>` tags.
pub(super) fn line(
    view: &PageView,
    root: NodeId,
    node: NodeId,
    place: usize,
) -> Vec<ScoredSelector> {
    let step = format!("text()[normalize-space()][{place}]");
    if root == node {
        return vec![scored(step, 0.5)];
    }
    if !view.holds(root, node) {
        return Vec::new();
    }
    let start = if root == view.document.root() { "//" } else { ".//" };
    let inner = tests(view, node).into_iter();
    let mut found: Vec<ScoredSelector> =
        inner.map(|(test, cost)| scored(format!("{start}{test}/{step}"), 0.5 + cost)).collect();
    found.push(scored(format!("{}/{step}", xpath_steps(view, Some(root), node)), 4.0));
    sort(&mut found);
    found
}

/// XPath to a value outside the items. If the page has several similar elements, it selects the
/// nearest one before the item; else it starts at the root.
pub(super) fn outside(view: &PageView, item: NodeId, node: NodeId) -> Vec<ScoredSelector> {
    let mut found: Vec<ScoredSelector> = Vec::new();
    let is_alone =
        view.elements().filter(|other| view.path_id(*other) == view.path_id(node)).count() < 2;
    if !is_alone && node < item && !view.holds(node, item) {
        let before = tests(view, node).into_iter();
        found
            .extend(before.map(|(test, cost)| scored(format!("preceding::{test}[1]"), 0.5 * cost)));
        let around = view.parent(node).map_or_else(Vec::new, |parent| tests(view, parent));
        for (outer, cost) in around {
            let text = format!("preceding::{outer}[1]/{}", view.tag(node));
            found.push(scored(text, 0.3 + 0.5 * cost));
        }
    }
    if let Some(id) = view.attribute(node, "id").filter(|id| is_plain(id)) {
        found.push(scored(format!("//*[@id='{id}']"), 0.1));
    }
    let own = tests(view, node);
    found.extend(own.iter().map(|(test, cost)| scored(format!("//{test}"), *cost)));
    if let Some(parent) = view.parent(node) {
        for (outer, outer_cost) in tests(view, parent) {
            found.extend(own.iter().map(|(test, cost)| {
                scored(format!("//{outer}/{test}"), 0.3 + 0.5 * outer_cost + cost)
            }));
        }
    }
    found.push(scored(format!("/{}", xpath_steps(view, None, node)), 4.0));
    sort(&mut found);
    found
}

/// XPath of positions from `outer`, or from the root, down to `node`.
fn xpath_steps(view: &PageView, outer: Option<NodeId>, node: NodeId) -> String {
    let ups = view.upwards(node).take_while(|up| Some(*up) != outer);
    let mut steps: Vec<String> =
        ups.map(|up| format!("{}[{}]", view.tag(up), view.place(up).1)).collect();
    steps.reverse();
    steps.join("/")
}

/// XPath node tests that match an element, with their costs.
fn tests(view: &PageView, node: NodeId) -> Vec<(String, f64)> {
    let tag = view.tag(node);
    let mut found = Vec::new();
    let classes = view.classes(node);
    for class in classes.iter().filter(|class| is_descriptive(class)) {
        let test = if classes.len() == 1 {
            format!("{tag}[@class='{class}']")
        } else {
            format!("{tag}[contains(concat(' ', @class, ' '), ' {class} ')]")
        };
        found.push((test, 0.1));
    }
    if let Some(name) = view.attribute(node, "itemprop").filter(|name| is_plain(name)) {
        found.push((format!("{tag}[@itemprop='{name}']"), 0.05));
    }
    if view.attribute(node, "colspan").is_some() {
        found.push((format!("{tag}[@colspan]"), 0.4));
    }
    let is_common = matches!(tag, "span" | "div" | "p" | "a" | "li" | "td");
    found.push((tag.to_owned(), if is_common { 1.2 } else { 0.5 }));
    found
}
