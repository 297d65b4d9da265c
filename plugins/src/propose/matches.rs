//! Finds the elements and attributes of a page that contain a sample.

use url::Url;

use super::Sample;
use super::names;
use super::page_view::PageView;
use super::paths::label_before;
use super::words::{fold, text_len, tokens};
use crate::html::NodeId;

/// Most matches of one sample that are kept.
const HITS_MAX: usize = 10_000;
/// Longest text that is searched, in visible characters.
const PART_TEXT_MAX: u32 = 20_000;

/// The part of an element that matches a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MatchKind {
    /// The whole text.
    Whole,
    /// The text outside child elements.
    Own,
    /// A line between `<br>` tags, counted from 1.
    Line(usize),
    /// The beginning of the text; the user means all of it.
    Start,
    /// An attribute as written.
    Attribute(String),
    /// An attribute, resolved against the address of the page.
    Address(String),
    /// A part of the text.
    Part,
    /// A part of an attribute.
    AttributePart(String),
}

impl MatchKind {
    pub(super) fn attribute(&self) -> Option<&str> {
        match self {
            Self::Attribute(name) | Self::Address(name) | Self::AttributePart(name) => Some(name),
            Self::Whole | Self::Own | Self::Line(_) | Self::Start | Self::Part => None,
        }
    }
}

/// One match of a sample.
#[derive(Debug, Clone)]
pub(super) struct SampleMatch {
    pub(super) node: NodeId,
    pub(super) how: MatchKind,
    /// 0 for visible text that equals the sample; more for weaker matches.
    pub(super) cost: f64,
}

/// All matches of a sample, cheapest first.
pub(super) fn matches(view: &PageView, sample: &Sample, base: Option<&Url>) -> Vec<SampleMatch> {
    let name = sample.name.as_ref().map(|name| tokens(name));
    let sample = fold(&sample.text);
    if sample.is_empty() {
        return Vec::new();
    }
    let search = SampleSearch { view, lower: sample.to_lowercase(), sample, base };
    let mut found = search.texts();
    found.extend(view.elements().flat_map(|node| search.attributes(node)));
    for hit in &mut found {
        hit.cost += place_cost(view, hit.node);
        if name.as_ref().is_some_and(|name| is_called(view, hit, name)) {
            hit.cost -= 0.5;
        }
    }
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.node.cmp(&b.node)));
    found.truncate(HITS_MAX);
    found
}

/// Whether the name that the user gave is in a class, attribute, label or heading of the match.
fn is_called(view: &PageView, hit: &SampleMatch, name: &[String]) -> bool {
    let mut calls: Vec<String> = view.classes(hit.node).into_iter().map(str::to_owned).collect();
    calls.extend(
        ["itemprop", "id", "name"]
            .iter()
            .filter_map(|each| view.attribute(hit.node, each).map(str::to_owned)),
    );
    calls.extend(hit.how.attribute().map(str::to_owned));
    let label = view.upwards(hit.node).take(2).find_map(|up| label_before(view, up, true));
    calls.extend(label.map(|(_, text)| text));
    let next = view.after(hit.node).next().filter(|next| view.text_len(*next) < 20);
    calls.extend(next.map(|next| view.text(next)));
    calls.extend(names::head(view, hit.node));
    calls.iter().any(|call| {
        let words = tokens(call);
        name.iter().all(|word| words.contains(word))
    })
}

/// The search for one sample.
struct SampleSearch<'a> {
    view: &'a PageView<'a>,
    sample: String,
    lower: String,
    base: Option<&'a Url>,
}

impl SampleSearch<'_> {
    /// Matches in texts. Of nested elements only the innermost match counts.
    fn texts(&self) -> Vec<SampleMatch> {
        let mut found = Vec::new();
        let wanted = text_len(&self.sample);
        let mut is_done = vec![false; self.view.document.len()];
        let elements: Vec<NodeId> = self.view.elements().collect();
        for node in elements.into_iter().rev() {
            let seen = self.view.text_len(node);
            let is_code =
                matches!(self.view.tag(node), "script" | "style" | "template" | "noscript");
            if seen < wanted || seen > PART_TEXT_MAX || is_done[node.index()] || is_code {
                continue;
            }
            let text = self.view.text(node);
            let how = if seen == wanted {
                self.same(&text).map(|cost| (MatchKind::Whole, cost))
            } else if let Some(cost) = self.same(&self.view.own_text(node)) {
                Some((MatchKind::Own, 0.5 + cost))
            } else if let Some(place) = self.line(node) {
                Some((MatchKind::Line(place), 0.7))
            } else if self.starts(&text) {
                Some((MatchKind::Start, 0.6))
            } else {
                self.part(&text).map(|cost| (MatchKind::Part, 2.0 + cost))
            };
            if let Some((how, cost)) = how {
                // Every ancestor contains the sample too, so skip them all.
                let outer: Vec<NodeId> = self.view.upwards(node).collect();
                for around in outer {
                    is_done[around.index()] = true;
                }
                found.push(SampleMatch { node, how, cost });
            }
        }
        found
    }

    /// The line between `<br>` tags that equals the sample.
    fn line(&self, node: NodeId) -> Option<usize> {
        let document = self.view.document;
        document.child_elements(node).find(|child| self.view.tag(*child) == "br")?;
        let texts = document.children(node).filter_map(|child| document.text(child));
        let mut lines = texts.map(fold).filter(|text| !text.is_empty());
        lines.position(|line| line == self.sample).map(|at| at + 1)
    }

    fn attributes(&self, node: NodeId) -> Vec<SampleMatch> {
        let mut found = Vec::new();
        for (name, value) in self.view.document.attributes(node) {
            let name = &**name;
            if matches!(name, "id" | "onclick" | "srcset" | "d") {
                continue;
            }
            let value = fold(value);
            let base_cost = attribute_cost(name);
            if let (Some(cost), false) = (self.same(&value), name == "class") {
                let how = MatchKind::Attribute(name.to_owned());
                found.push(SampleMatch { node, how, cost: base_cost + cost });
            } else if matches!(name, "href" | "src" | "data-src" | "content")
                && self.is_address(&value)
            {
                found.push(SampleMatch {
                    node,
                    how: MatchKind::Address(name.to_owned()),
                    cost: base_cost,
                });
            } else if let (Some(cost), true) =
                (self.part(&value), name != "href" || value.len() < 200)
            {
                let how = MatchKind::AttributePart(name.to_owned());
                found.push(SampleMatch { node, how, cost: 3.0 + base_cost + cost });
            }
        }
        found
    }

    fn is_address(&self, value: &str) -> bool {
        let Some(base) = self.base else { return false };
        base.join(value).is_ok_and(|full| full.as_str() == self.sample)
    }

    /// Cost of a text that equals the sample, perhaps in another case.
    fn same(&self, text: &str) -> Option<f64> {
        if text == self.sample {
            Some(0.0)
        } else {
            (text.to_lowercase() == self.lower).then_some(0.3)
        }
    }

    /// Whether the sample is the beginning of a text that the user would not type in full.
    fn starts(&self, text: &str) -> bool {
        let start = opening(&self.sample);
        let is_cut = start.len() < self.sample.len();
        let is_long = start.split(' ').count() >= 5 && text.len() >= start.len() + start.len() / 2;
        (is_cut || is_long) && start.len() >= 8 && text.starts_with(start)
    }

    /// Cost of a text that contains the sample as whole words. It grows with the rest of the text.
    fn part(&self, text: &str) -> Option<f64> {
        find_word(text, &self.sample)?;
        if self.sample.chars().count() < 2 && text.chars().count() > 40 {
            return None;
        }
        Some(1.0 - self.sample.len() as f64 / text.len() as f64)
    }
}

/// The byte position of `wanted` in a text, as whole words.
pub(super) fn find_word(text: &str, wanted: &str) -> Option<usize> {
    let ends_word = |c: Option<char>, edge: Option<char>| {
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        !(is_letter(c) && is_letter(edge))
    };
    text.match_indices(wanted).map(|(at, _)| at).find(|at| {
        let (before, after) = (&text[..*at], &text[at + wanted.len()..]);
        ends_word(before.chars().next_back(), wanted.chars().next())
            && ends_word(after.chars().next(), wanted.chars().next_back())
    })
}

/// A sample without the ellipsis at its end.
pub(super) fn opening(sample: &str) -> &str {
    sample.trim_end_matches("...").trim_end_matches('…').trim_end()
}

fn attribute_cost(name: &str) -> f64 {
    match name {
        "title" | "alt" | "content" | "datetime" | "href" | "src" => 1.0,
        "value" | "aria-label" => 1.2,
        "data-src" => 1.3,
        _ if name.starts_with("data-") => 1.5,
        _ => 2.5,
    }
}

/// Cost of lying outside the main content of the page.
fn place_cost(view: &PageView, node: NodeId) -> f64 {
    let mut cost: f64 = 0.0;
    for around in view.upwards(node) {
        let here = match view.tag(around) {
            "head" => 1.6,
            "nav" | "footer" | "select" | "form" | "button" => 0.7,
            _ if view.is_secondary(around) => 0.6,
            _ => 0.0,
        };
        cost = cost.max(here);
    }
    cost
}
