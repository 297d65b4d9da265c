//! Selectors for a single element, and what each of them costs.

use super::page_view::PageView;
use super::words::{self, class_cost, is_generated, is_plain, module_stem};
use crate::html::NodeId;

/// A selector and its cost. The cost says how likely the selector is to fail elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScoredSelector {
    pub(super) text: String,
    pub(super) cost: f64,
}

pub(super) fn scored(text: impl Into<String>, cost: f64) -> ScoredSelector {
    ScoredSelector { text: text.into(), cost }
}

/// Sorts by cost, then length, then text, so that the order is the same on every run.
pub(super) fn sort(selectors: &mut Vec<ScoredSelector>) {
    selectors.sort_by(|a, b| {
        (a.cost.total_cmp(&b.cost))
            .then(a.text.chars().count().cmp(&b.text.chars().count()))
            .then(a.text.cmp(&b.text))
    });
    selectors.dedup_by(|a, b| a.text == b.text);
}

/// Selectors by tag, id, class and attribute, cheapest first.
pub(super) fn element_selectors(
    view: &PageView,
    node: NodeId,
    with_id: bool,
) -> Vec<ScoredSelector> {
    let tag = view.tag(node);
    let mut found = vec![scored(tag, tag_cost(tag))];
    if with_id {
        let id = view.attribute(node, "id").filter(|id| is_plain(id) && !is_generated(id));
        let is_numbered = id.is_some_and(|id| id.chars().any(|c| c.is_ascii_digit()));
        found.extend(id.map(|id| scored(format!("#{id}"), if is_numbered { 0.9 } else { 0.02 })));
    }
    let classes: Vec<&str> =
        view.classes(node).into_iter().filter(|class| is_plain(class)).collect();
    for class in &classes {
        let cost = class_cost(class);
        found.push(scored(format!(".{class}"), cost));
        found.push(scored(format!("{tag}.{class}"), cost + 0.05));
        let stem = module_stem(class);
        found.extend(stem.map(|stem| scored(format!("{tag}[class*={stem}]"), 0.3)));
    }
    for (at, one) in classes.iter().enumerate() {
        for two in &classes[at + 1..] {
            let cost = 0.15 + class_cost(one).max(class_cost(two));
            found.push(scored(format!(".{one}.{two}"), cost));
        }
    }
    found.extend(attribute_selectors(view, node, tag));
    sort(&mut found);
    found
}

fn attribute_selectors(view: &PageView, node: NodeId, tag: &str) -> Vec<ScoredSelector> {
    let mut found = Vec::new();
    for (name, value) in view.document.attributes(node) {
        let name = &**name;
        let cost = match name {
            "itemprop" => 0.04,
            "data-testid" | "data-test" | "data-qa" | "data-role" | "data-field" | "data-cy"
            | "data-hook" => 0.1,
            "property" | "name" | "itemtype" => 0.2,
            "rel" | "role" | "type" | "scope" => 0.5,
            "datetime" => 0.6,
            "aria-hidden" => 0.9,
            _ if name.starts_with("data-") => 0.7,
            _ => continue,
        };
        let is_fixed = value.chars().count() <= 60 && !is_generated(value) && !value.is_empty();
        if is_fixed && !value.contains(['"', '\'', ']', '[', '\\', '\n']) && name != "datetime" {
            found.push(scored(format!("[{name}={}]", quoted(value)), cost));
        }
        // The name alone may match all items; the value may differ.
        let is_told = name.starts_with("data-") || name == "datetime";
        if is_told && is_plain(name) && !is_framework(name) {
            found.push(scored(format!("{tag}[{name}]"), cost.max(0.4) + 0.1));
        }
    }
    let scheme = view.attribute(node, "href").and_then(|href| href.split_once(':'));
    if let Some((scheme @ ("mailto" | "tel"), _)) = scheme {
        found.push(scored(format!("{tag}[href^=\"{scheme}:\"]"), 0.5));
    }
    if let Some(end) = link_end(view, node) {
        found.push(scored(format!("a[href$=/{end}]"), 1.3));
    }
    if let Some(stem) =
        (tag == "a").then(|| view.attribute(node, "href").and_then(path_stem)).flatten()
    {
        found.push(scored(format!("a[href*={}]", quoted(&stem)), 1.7));
    }
    found
}

fn is_framework(name: &str) -> bool {
    name.starts_with("data-v-") || name.starts_with("data-react") || is_generated(name)
}

pub(super) fn quoted(value: &str) -> String {
    if value.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':')) {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}

/// The parent directory of a link's target: `/author/einstein` gives `author/`.
fn path_stem(href: &str) -> Option<String> {
    let path = match href.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/')?..],
        None => href,
    };
    let path = path.split(['?', '#']).next()?;
    let at = path.trim_end_matches('/').rfind('/')?;
    let directory = path[..at].rsplit('/').next()?;
    (is_plain(directory) && !words::is_generated(directory)).then(|| format!("{directory}/"))
}

/// The last segment of a link's path, if it is a word.
pub(super) fn link_end<'a>(view: &'a PageView, node: NodeId) -> Option<&'a str> {
    view.attribute(node, "href").filter(|_| view.tag(node) == "a").and_then(path_end)
}

/// The last segment of a path, if it is a word: `/rust/forks` gives `forks`.
fn path_end(href: &str) -> Option<&str> {
    let (rest, end) = href.rsplit_once('/')?;
    let is_word = end.len() >= 3 && end.chars().all(|c| c.is_ascii_lowercase());
    (is_word && !rest.is_empty() && !rest.ends_with('/')).then_some(end)
}

/// Cost of a tag alone: low for tags with a specific meaning.
fn tag_cost(tag: &str) -> f64 {
    match tag {
        "h1" => 0.2,
        "h2" | "h3" | "h4" | "h5" | "h6" | "time" | "address" | "blockquote" | "article" | "dt"
        | "figcaption" | "cite" | "author" => 0.5,
        "main" | "img" | "header" | "footer" | "section" | "figure" | "tr" | "table" | "tbody"
        | "dl" | "ul" | "ol" | "meta" => 0.7,
        "td" | "th" => 1.6,
        _ => 1.2,
    }
}

/// Selectors by position among the siblings.
pub(super) fn places(view: &PageView, node: NodeId) -> Vec<ScoredSelector> {
    let tag = view.tag(node);
    let (of_all, of_tag) = view.place(node);
    if matches!(tag, "td" | "th") {
        let mut found = vec![scored(format!("{tag}:nth-child({of_all})"), 1.0)];
        // After a cell that spans rows, only the position from the end is the same in all rows.
        if spans_before(view, node, of_all) {
            let place = view.after(node).count() + 1;
            found.push(scored(format!("{tag}:nth-last-child({place})"), 0.8));
        }
        return found;
    }
    let is_last = view.after(node).next().is_none();
    let mut found = vec![
        scored(format!("{tag}:nth-of-type({of_tag})"), 2.6),
        scored(format!("{tag}:nth-child({of_all})"), 2.7),
    ];
    found.extend(is_last.then(|| scored(format!("{tag}:last-child"), 3.1)));
    found
}

/// Whether a table has cells that span several rows, all of them before the column of `cell`.
fn spans_before(view: &PageView, cell: NodeId, place: usize) -> bool {
    let Some(table) = view.upwards(cell).find(|up| view.tag(*up) == "table") else { return false };
    let mut spans = view.inside(table).filter(|other| {
        let rows = view.attribute(*other, "rowspan").and_then(|rows| rows.parse::<u32>().ok());
        view.tag(*other) == "td" && rows.unwrap_or(1) > 1
    });
    let mut any = false;
    let all_before = spans.all(|other| {
        any = true;
        view.place(other).0 < place || view.after(other).count() > view.after(cell).count()
    });
    any && all_before
}
