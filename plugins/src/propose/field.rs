//! Finds the best query for one column over all items.

use url::Url;

use super::layout::{LayoutKind, PlacedSample};
use super::matches::{MatchKind, SampleMatch, opening};
use super::page_view::PageView;
use super::paths;
use super::patterns;
use super::query::{FieldQuery, FieldSource, is_sample};
use super::selectors::{ScoredSelector, link_end};
use super::words::{ValueShape, fold, has_word, is_in, shape, tokens, unit};
use crate::html::NodeId;

/// Most items on which a query is tried.
const TRIED_MAX: usize = 80;
/// Most selectors for which a regular expression is searched.
const PATTERNED_MAX: usize = 30;

/// A column as its samples describe it.
pub(super) struct WantedColumn<'a> {
    /// The first sample and its text.
    pub(super) first: &'a PlacedSample,
    pub(super) sample: &'a str,
    /// All samples of the column, with their texts.
    pub(super) examples: Vec<(&'a PlacedSample, &'a str)>,
    /// All matches of the first sample.
    pub(super) matches: &'a [SampleMatch],
    pub(super) kind: LayoutKind,
    /// Elements that earlier columns use, with their attribute.
    pub(super) taken: &'a [(NodeId, Option<String>)],
}

/// A query and its cost.
#[derive(Debug, Clone)]
pub(super) struct ScoredQuery {
    pub(super) query: FieldQuery,
    pub(super) cost: f64,
    /// The element in which it finds the first sample.
    pub(super) node: NodeId,
}

/// Finds the cheapest query that gives all samples of a column.
pub(super) fn choose(
    view: &PageView,
    wanted: &WantedColumn,
    members: &[NodeId],
    base: Option<&Url>,
) -> Option<ScoredQuery> {
    let first = wanted.first;
    let mut tried: Vec<NodeId> = members.iter().copied().take(TRIED_MAX).collect();
    for (example, _) in &wanted.examples {
        if !tried.contains(&example.member) {
            tried.push(example.member);
        }
    }
    let trial = QueryScorer { view, wanted, tried, base };
    let mut best: Option<ScoredQuery> = None;
    let places = wanted.matches.iter().filter(|hit| {
        let is_here = wanted.kind == LayoutKind::Flat || view.holds(first.member, hit.node);
        hit.node == first.hit.node
            || is_here && wanted.kind == LayoutKind::List
            || is_page_rival(wanted, hit)
    });
    let attribute = |hit: &SampleMatch| hit.how.attribute().map(str::to_owned);
    let is_free = |hit: &&SampleMatch| {
        matches!(hit.how, MatchKind::Part | MatchKind::AttributePart(_))
            || !wanted.taken.contains(&(hit.node, attribute(hit)))
    };
    let places: Vec<&SampleMatch> = places.collect();
    let free: Vec<&SampleMatch> = places.iter().copied().filter(is_free).collect();
    let places = if free.is_empty() { places } else { free };
    for hit in places.into_iter().take(12) {
        for (node, extra) in same_text(view, first.member, hit) {
            let ways = sources(view, first.member, node, wanted.kind, hit);
            let mut patterned = 0;
            for (source, cost) in ways {
                let floor = cost + hit.cost + extra;
                if best.as_ref().is_some_and(|best| best.cost <= floor) {
                    break;
                }
                if matches!(hit.how, MatchKind::Part | MatchKind::AttributePart(_)) {
                    // The pattern is made for the text of this element, so it must come first.
                    let found = FieldQuery::new(source.clone()).nodes(view, &[first.member]);
                    if found.iter().any(|nodes| nodes.first() != Some(&node)) {
                        continue;
                    }
                    patterned += 1;
                    if patterned > PATTERNED_MAX {
                        break;
                    }
                }
                for query in queries(view, source, node, hit, wanted) {
                    let Some(cost) = trial.score(&query, floor, (node, hit)) else {
                        continue;
                    };
                    if best.as_ref().is_none_or(|best| cost < best.cost) {
                        best = Some(ScoredQuery { query, cost, node });
                    }
                }
            }
        }
    }
    best
}

/// Whether another match of the sample may be used: only on a page with one record, and only if its
/// cost is about the same.
fn is_page_rival(wanted: &WantedColumn, hit: &SampleMatch) -> bool {
    wanted.kind == LayoutKind::Page && hit.cost <= wanted.first.hit.cost + 0.2
}

/// The matched element, and its ancestors in the item that have the same text.
fn same_text(view: &PageView, root: NodeId, hit: &SampleMatch) -> Vec<(NodeId, f64)> {
    let mut found = vec![(hit.node, 0.0)];
    if hit.how == MatchKind::Whole {
        let wanted = view.text_len(hit.node);
        let around = view.between(root, hit.node);
        let alike = around.into_iter().take_while(|node| view.text_len(*node) == wanted).take(3);
        found.extend(alike.enumerate().map(|(level, node)| (node, 0.15 * (level + 1) as f64)));
    }
    found
}

fn sources(
    view: &PageView,
    root: NodeId,
    node: NodeId,
    kind: LayoutKind,
    hit: &SampleMatch,
) -> Vec<(FieldSource, f64)> {
    let xpath = |selectors: Vec<ScoredSelector>| {
        selectors.into_iter().map(|part| (FieldSource::Xpath(part.text), part.cost)).collect()
    };
    if let MatchKind::Line(place) = hit.how {
        return xpath(paths::line(view, root, node, place));
    }
    if root == node {
        return vec![(FieldSource::Itself, 0.3)];
    }
    if !view.holds(root, node) {
        return xpath(if kind == LayoutKind::Flat {
            paths::sibling(view, root, node)
        } else {
            paths::outside(view, root, node)
        });
    }
    let with_length = |part: ScoredSelector| {
        let cost = part.cost + 0.004 * part.text.chars().count() as f64;
        (FieldSource::Css(part.text), cost)
    };
    let all = paths::css(view, root, node, kind, &hit.how);
    let mut found: Vec<(FieldSource, f64)> = all.into_iter().map(with_length).collect();
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    found
}

/// The queries to try for a source: text and list, or one query for each regular expression.
fn queries(
    view: &PageView,
    source: FieldSource,
    node: NodeId,
    hit: &SampleMatch,
    wanted: &WantedColumn,
) -> Vec<FieldQuery> {
    let mut query = FieldQuery::new(source);
    query.attribute = hit.how.attribute().map(str::to_owned);
    query.is_url = matches!(hit.how, MatchKind::Address(_));
    query.is_own = hit.how == MatchKind::Own;
    if !matches!(hit.how, MatchKind::Part | MatchKind::AttributePart(_)) {
        let all = FieldQuery { is_all: true, ..query.clone() };
        let own = FieldQuery { is_own: true, ..query.clone() };
        let is_bare = hit.how == MatchKind::Whole && view.own_text(node) == view.text(node);
        return if is_bare { vec![query, all, own] } else { vec![query, all] };
    }
    let mut found = Vec::new();
    let forms = if query.attribute.is_some() { vec![false] } else { vec![false, true] };
    for is_own in forms {
        query.is_own = is_own;
        let text = fold(&query.raw(view, node));
        let patterns = patterns::patterns(&text, wanted.sample).into_iter();
        found.extend(patterns.map(|regex| FieldQuery { regex: Some(regex), ..query.clone() }));
    }
    found
}

/// The first match of each item that has one.
fn firsts(nodes: &[Vec<NodeId>]) -> impl Iterator<Item = NodeId> {
    nodes.iter().filter_map(|found| found.first().copied())
}

/// Returns 0 for no cases, else `base` plus `slope` times the fraction of cases.
fn penalty(cases: usize, of: usize, base: f64, slope: f64) -> f64 {
    if cases == 0 { 0.0 } else { base + slope * cases as f64 / of as f64 }
}

/// Tries queries on the items.
struct QueryScorer<'a> {
    view: &'a PageView<'a>,
    wanted: &'a WantedColumn<'a>,
    tried: Vec<NodeId>,
    base: Option<&'a Url>,
}

impl QueryScorer<'_> {
    /// The total cost of a query. `None` if it does not give the samples.
    fn score(
        &self,
        query: &FieldQuery,
        floor: f64,
        (node, hit): (NodeId, &SampleMatch),
    ) -> Option<f64> {
        let (view, wanted) = (self.view, self.wanted);
        let is_start = hit.how == MatchKind::Start;
        let owners: Vec<NodeId> = wanted.examples.iter().map(|(each, _)| each.member).collect();
        let given = query.values(view, &owners, self.base);
        let holds = |value: &str, sample: &str| match (query.is_all, is_start) {
            (true, _) => {
                is_sample(value, sample)
                    || is_listed(view, node) && value.split(", ").any(|one| is_sample(one, sample))
            }
            (false, true) => value.starts_with(opening(sample)),
            (false, false) => is_sample(value, sample),
        };
        let is_given =
            wanted.examples.iter().zip(&given).all(|((_, sample), value)| {
                value.as_ref().is_some_and(|value| holds(value, sample))
            });
        if !is_given {
            return None;
        }
        let nodes = query.nodes(view, &self.tried);
        let values = query.values(view, &self.tried, self.base);
        let count = self.tried.len() as f64;
        let share = |number: usize| number as f64 / count;
        let filled = values.iter().flatten().count();
        let mut cost = floor + 1.5 * (1.0 - share(filled));
        // A label that few items have is probably a value.
        let is_labelled = matches!(&query.source, FieldSource::Css(way) if way.contains(":contains(") || way.contains(":matches("));
        if is_labelled && wanted.kind == LayoutKind::List && share(filled) < 0.5 {
            cost += 3.0;
        }
        cost +=
            if query.is_all { self.all_cost(&nodes, node)? } else { self.doubt(&nodes, &owners) };
        let sample = wanted.sample;
        let wanted_shape = shape(sample);
        let is_odd = |value: &&String| {
            shape(value) != wanted_shape || unit(sample).is_some_and(|own| unit(value) != Some(own))
        };
        let odd = values.iter().flatten().filter(is_odd).count();
        let is_plain = wanted_shape == ValueShape::Words && unit(sample).is_none();
        let weight = if is_plain { 1.0 } else { 3.0 };
        cost += weight * odd as f64 / (filled.max(1)) as f64;
        let way =
            nodes.iter().zip(&self.tried).filter_map(|(nodes, root)| Some((nodes.first()?, root)));
        let usual = view.tag_path(wanted.first.member, node);
        let strange = way.filter(|(node, root)| view.tag_path(**root, **node) != usual).count();
        cost += 0.4 * share(strange);
        cost += if query.is_own {
            0.1 + self.own_cost(&nodes)
        } else {
            self.badges(query, &nodes, (node, hit.node))
        };
        cost += self.noise(query, &nodes, (node, hit.node));
        cost += self.misplaced(query, &nodes, node) + self.overreach(&nodes);
        cost += query.regex.as_ref().map_or(0.0, |regex| {
            // Users rarely want one word out of several.
            let is_word = regex.contains("(\\S+)");
            0.01 * regex.chars().count() as f64 + if is_word { 0.3 } else { 0.0 }
        });
        Some(cost)
    }

    /// Cost of several matches in one item: only the first one counts, and it may be the wrong one.
    fn doubt(&self, nodes: &[Vec<NodeId>], owners: &[NodeId]) -> f64 {
        let view = self.view;
        let is_doubtful = |found: &Vec<NodeId>| {
            let Some((first, rest)) = found.split_first() else { return false };
            let is_list = !view.descriptive(*first).is_empty()
                && rest.iter().all(|node| {
                    view.parent(*node) == view.parent(*first)
                        && view.classes(*node) == view.classes(*first)
                        && link_end(view, *node) == link_end(view, *first)
                });
            let is_echo = rest.iter().all(|node| view.text(*node) == view.text(*first));
            !rest.is_empty() && !is_list && !is_echo
        };
        if self.wanted.kind == LayoutKind::Page {
            return if nodes.iter().any(is_doubtful) { 0.8 } else { 0.0 };
        }
        let doubtful = nodes.iter().filter(|found| is_doubtful(found)).count();
        let in_sample = nodes
            .iter()
            .zip(&self.tried)
            .any(|(found, root)| owners.contains(root) && is_doubtful(found));
        4.0 * doubtful as f64 / nodes.len() as f64 + if in_sample { 2.0 } else { 0.0 }
    }

    /// Cost of joining all matches. `None` unless they form a list in the item of the sample.
    fn all_cost(&self, nodes: &[Vec<NodeId>], node: NodeId) -> Option<f64> {
        let own = nodes.iter().find(|found| found.contains(&node))?;
        let parent = self.view.parent(node);
        let is_list = own.len() > 1
            && own.iter().all(|other| {
                self.view.tag(*other) == self.view.tag(node) && self.view.parent(*other) == parent
            });
        // An equal number in every item suggests columns, not a list.
        let counts: Vec<usize> = nodes.iter().map(Vec::len).collect();
        let is_even = counts.len() > 1 && counts.iter().all(|count| *count == own.len());
        let cost = if is_even { 5.0 } else { 2.0 };
        (is_list && own.first() != Some(&node)).then_some(cost)
    }

    /// Cost of reading own text: the fraction of items that have text only in child elements.
    fn own_cost(&self, nodes: &[Vec<NodeId>]) -> f64 {
        let bare = firsts(nodes).filter(|node| self.view.own_text(*node).is_empty()).count();
        bare as f64 / nodes.len() as f64
    }

    /// Cost of choosing an ancestor of the sampled element that contains extra text in other items.
    fn noise(
        &self,
        query: &FieldQuery,
        nodes: &[Vec<NodeId>],
        (node, inner): (NodeId, NodeId),
    ) -> f64 {
        let view = self.view;
        if node == inner || query.attribute.is_some() || query.regex.is_some() {
            return 0.0;
        }
        let way = view.tag_path(node, inner);
        let noisy = firsts(nodes).filter(|outer| {
            let alike = view.inside(*outer).find(|inner| view.tag_path(*outer, *inner) == way);
            let len = alike.map_or(0, |alike| view.text_len(alike));
            len > 0 && len != view.text_len(*outer)
        });
        penalty(noisy.count(), nodes.len(), 1.5, 2.0)
    }

    /// Cost of a selector by position that finds elements of another class, or misses an element
    /// with the class of the sample.
    fn misplaced(&self, query: &FieldQuery, nodes: &[Vec<NodeId>], node: NodeId) -> f64 {
        let view = self.view;
        let classes = view.classes(node);
        let is_placed = matches!(&query.source, FieldSource::Css(way) if is_unnamed(way));
        if !is_placed || classes.is_empty() || matches!(view.tag(node), "td" | "th") {
            return 0.0;
        }
        let is_alone = |root: NodeId| {
            view.inside(root).filter(|inner| view.classes(*inner) == classes).count() == 1
        };
        let is_told = self.wanted.examples.iter().all(|(each, _)| is_alone(each.member));
        let is_missed =
            |(found, root): (&Vec<NodeId>, &NodeId)| is_told && found.is_empty() && is_alone(*root);
        let missed = nodes.iter().zip(&self.tried).any(is_missed);
        let strange = firsts(nodes).filter(|found| {
            let theirs = view.classes(*found);
            !theirs.is_empty() && theirs.iter().all(|class| !classes.contains(class))
        });
        let missed = if missed { 3.0 } else { 0.0 };
        missed + penalty(strange.count(), nodes.len(), 1.0, 3.0)
    }

    /// Cost of matches that lie in the next item, if items are runs of siblings.
    fn overreach(&self, nodes: &[Vec<NodeId>]) -> f64 {
        if self.wanted.kind != LayoutKind::Flat {
            return 0.0;
        }
        let over = nodes.iter().zip(self.tried.iter().skip(1));
        let over = over.filter(|(found, next)| found.first().is_some_and(|node| node >= *next));
        penalty(over.count(), nodes.len(), 1.0, 3.0)
    }

    /// How many matches contain a note beside their own text, while the sample has none. A note is
    /// superscript, or a short text that several matches repeat.
    fn noted(&self, nodes: &[Vec<NodeId>], (node, inner): (NodeId, NodeId)) -> usize {
        let view = self.view;
        if view.document.child_elements(inner).next().is_some() {
            return 0;
        }
        let way = view.tag_path(node, inner);
        let alike = |outer: NodeId| {
            let found = view.inside(outer).find(|inner| view.tag_path(outer, *inner) == way);
            if way.is_empty() { Some(outer) } else { found }
        };
        let firsts = firsts(nodes).filter_map(alike);
        let notes = firsts.filter(|found| !view.own_text(*found).is_empty()).filter_map(|found| {
            let mut inner = view.document.child_elements(found);
            let only = inner.next().filter(|_| inner.next().is_none())?;
            let (whole, note) = (view.text(found), view.text(only));
            let is_edge = !note.is_empty() && (whole.starts_with(&note) || whole.ends_with(&note));
            let is_note = matches!(view.tag(only), "span" | "sup" | "small" | "label");
            (is_edge && is_note && note.chars().count() <= 20)
                .then(|| (view.tag(only) == "sup", note))
        });
        let notes: Vec<(bool, String)> = notes.collect();
        let is_again = |note: &str| notes.iter().filter(|(_, other)| other == note).count() > 1;
        notes.iter().filter(|(is_raised, note)| *is_raised || is_again(note)).count()
    }

    /// Cost of matches that contain a badge or a note beside their text.
    fn badges(&self, query: &FieldQuery, nodes: &[Vec<NodeId>], sampled: (NodeId, NodeId)) -> f64 {
        if query.attribute.is_some() || query.regex.is_some() {
            return 0.0;
        }
        let is_badge = |class| has_word(class, "badge flag ribbon sr icon hidden tooltip");
        let badged = firsts(nodes).filter(|node| {
            self.view.inside(*node).any(|inner| self.view.classes(inner).into_iter().any(is_badge))
        });
        let (badged, noted) = (badged.count(), self.noted(nodes, sampled));
        let sure = if noted > 0 { 0.8 } else { 0.0 };
        sure + 2.0 * badged.max(noted) as f64 / nodes.len() as f64
    }
}

/// Whether a selector finds its element by position or tag alone.
fn is_unnamed(way: &str) -> bool {
    let last = way.rsplit(' ').next().unwrap_or(way);
    way.contains(":nth-")
        || way.contains("-child")
        || last.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Whether a class suggests a list of values in one item, such as tags or authors.
fn is_listed(view: &PageView, node: NodeId) -> bool {
    let around = view.upwards(node).take(2).flat_map(|up| view.classes(up));
    around.flat_map(tokens).any(|word| {
        is_in(word.trim_end_matches('s'), "tag keyword author genre categorie topic skill label")
    })
}
