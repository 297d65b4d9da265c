//! Decides what the rows are: elements of a list, runs of siblings without an element around them, or
//! the page as one record.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::Sample;
use super::items::{is_labelled, similar_elements};
use super::matches::SampleMatch;
use super::page_view::PageView;
use super::words::{ValueShape, shape, unit};
use crate::html::NodeId;

/// Most matches of one sample from which lists are searched. A sample that every item contains leads
/// to the same list each time.
const SEEDS_MAX: usize = 12;
/// Most matches of the rarest sample that are compared with matches of the remaining samples.
const PIVOTS_MAX: usize = 60;

/// A sample and the match that was chosen for it.
#[derive(Debug, Clone)]
pub(super) struct PlacedSample {
    /// Index of the sample.
    pub(super) sample: usize,
    /// The item that contains the match.
    pub(super) member: NodeId,
    pub(super) hit: SampleMatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayoutKind {
    /// Each item is one element.
    List,
    /// Each item is a run of siblings, represented by the first.
    Flat,
    /// The page is one record.
    Page,
}

#[derive(Debug, Clone)]
pub(super) struct PageLayout {
    pub(super) kind: LayoutKind,
    /// The items, in document order. For a page it is the root.
    pub(super) members: Vec<NodeId>,
    pub(super) examples: Vec<PlacedSample>,
    /// Samples outside the items, whose values are the same in all rows.
    pub(super) outside: Vec<PlacedSample>,
}

/// Finds the layout that explains most samples.
pub(super) fn layout(
    view: &PageView,
    samples: &[Sample],
    matches: &[Vec<SampleMatch>],
) -> PageLayout {
    let found = matches.iter().filter(|places| !places.is_empty()).count();
    let mut lists = lists(view, samples, matches);
    if let Some(at) = lists.first().and_then(|best| finer(view, &lists, best, found)) {
        let outer = lists.remove(0);
        let list = lists.remove(at - 1);
        let mut outside = outer.examples;
        outside.retain(|each| list.examples.iter().all(|own| own.sample != each.sample));
        return list.layout(outside);
    }
    let wider = lists.first().and_then(|best| wider(view, &lists, best));
    let best = lists.into_iter().nth(wider.unwrap_or_default());
    let tightest = tightest(view, matches);
    let root = view.document.root();
    let near = page_examples(root, matches, &tightest, |_| true);
    let is_whole = best.as_ref().is_some_and(|list| list.examples.len() == found);
    // If a list has more items than the flat layout, the flat items are headings of groups.
    let is_larger = |flat: &PageLayout| {
        let items = best.as_ref().filter(|list| list.is_trusted(found));
        items.is_some_and(|list| list.members.len() > flat.members.len())
    };
    let flat_first = (!is_whole).then(|| flat(view, samples, &near)).flatten();
    if let Some(flat) = flat_first.filter(|flat| !is_larger(flat)) {
        return flat;
    }
    if let Some(list) = best.filter(|list| list.is_trusted(found)) {
        let in_model: Vec<PlacedSample> =
            list.examples.iter().filter(|example| example.member == list.model).cloned().collect();
        let is_whole = in_model.len() == found;
        return is_whole.then(|| flat(view, samples, &in_model)).flatten().unwrap_or_else(|| {
            let covered: BTreeSet<usize> = list.examples.iter().map(|each| each.sample).collect();
            let outside =
                page_examples(root, matches, &tightest, |sample| !covered.contains(&sample));
            list.layout(outside)
        });
    }
    PageLayout { kind: LayoutKind::Page, members: vec![root], examples: near, outside: Vec::new() }
}

fn page_examples(
    root: NodeId,
    matches: &[Vec<SampleMatch>],
    chosen: &[Option<usize>],
    wanted: impl Fn(usize) -> bool,
) -> Vec<PlacedSample> {
    let taken = matches.iter().zip(chosen).enumerate().filter(|(sample, _)| wanted(*sample));
    taken
        .filter_map(|(sample, (places, at))| {
            let hit = places.get((*at)?)?.clone();
            Some(PlacedSample { sample, member: root, hit })
        })
        .collect()
}

/// Chooses one match for each sample so that costs and distances between them are small. The rarest
/// sample is the pivot.
fn tightest(view: &PageView, matches: &[Vec<SampleMatch>]) -> Vec<Option<usize>> {
    let pivot = matches
        .iter()
        .enumerate()
        .filter(|(_, places)| !places.is_empty())
        .min_by_key(|(at, places)| (places.len(), *at));
    let Some((pivot, places)) = pivot else { return vec![None; matches.len()] };
    let choices = places.iter().enumerate().take(PIVOTS_MAX).map(|(at, hit)| {
        let mut total = hit.cost;
        let mut chosen = vec![None; matches.len()];
        for (sample, places) in matches.iter().enumerate() {
            if sample == pivot {
                chosen[sample] = Some(at);
                continue;
            }
            let costs =
                places.iter().map(|place| place.cost + distance(view, hit.node, place.node));
            let nearest = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((place, cost)) = nearest {
                total += cost;
                chosen[sample] = Some(place);
            }
        }
        (total, chosen)
    });
    let best = choices.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(|| vec![None; matches.len()], |(_, chosen)| chosen)
}

/// Distance of two nodes: it grows with the size of their common ancestor.
fn distance(view: &PageView, one: NodeId, other: NodeId) -> f64 {
    let size = view.common(&[one, other]).map_or(view.document.len(), |outer| view.size(outer));
    0.3 * (size as f64).ln()
}

/// A list that may hold the items.
struct CandidateList {
    model: NodeId,
    members: Vec<NodeId>,
    examples: Vec<PlacedSample>,
    /// Pairs of samples in one item that look like one column.
    conflicts: usize,
    /// Items that contain samples.
    used: usize,
    cost: f64,
}

impl CandidateList {
    /// Whether it has all `found` samples, or two in one item of at least three.
    fn is_trusted(&self, found: usize) -> bool {
        let most = self.examples.iter().filter(|each| each.member == self.model).count();
        self.examples.len() == found || (most >= 2 && self.members.len() >= 3)
    }

    fn layout(self, outside: Vec<PlacedSample>) -> PageLayout {
        let Self { members, examples, .. } = self;
        PageLayout { kind: LayoutKind::List, members, examples, outside }
    }

    fn compare(&self, other: &Self) -> Ordering {
        (other.examples.len().cmp(&self.examples.len()))
            .then(self.conflicts.cmp(&other.conflicts))
            .then(self.used.cmp(&other.used))
            .then(self.cost.total_cmp(&other.cost))
            .then(self.model.cmp(&other.model))
    }
}

/// All lists that explain samples, the best first.
fn lists(view: &PageView, samples: &[Sample], matches: &[Vec<SampleMatch>]) -> Vec<CandidateList> {
    let mut seen = BTreeSet::new();
    let mut all: Vec<CandidateList> = Vec::new();
    // A sample with many matches says little about the list, so few of them are tried.
    let seeds = |places: &Vec<SampleMatch>| if places.len() <= SEEDS_MAX { SEEDS_MAX } else { 4 };
    for hit in matches.iter().flat_map(|places| places.iter().take(seeds(places))) {
        for model in view.upwards(hit.node) {
            let tag = view.tag(model);
            let is_frame = matches!(tag, "html" | "body" | "head" | "main" | "tbody" | "table");
            if is_frame || !seen.insert(model) {
                break;
            }
            all.extend(list_of(view, samples, matches, model));
        }
    }
    all.sort_by(CandidateList::compare);
    all
}

/// Finds a list inside the items of `outer` that contains most samples. The remaining samples apply
/// to several of its items, such as a day above its events.
fn finer(
    view: &PageView,
    lists: &[CandidateList],
    outer: &CandidateList,
    found: usize,
) -> Option<usize> {
    lists.iter().position(|list| {
        let inside = list.examples.iter().filter(|each| each.member == list.model).count();
        view.document.is_inside(list.model, outer.model)
            && inside >= 2
            && 2 * inside > found
            && list.examples.len() == inside
            && list.conflicts == 0
            && list.examples.iter().all(|own| {
                let mut theirs = outer.examples.iter().filter(|each| each.sample == own.sample);
                theirs.all(|each| own.hit.cost <= each.hit.cost + 0.5)
            })
            && outer.members.iter().any(|item| {
                list.members.iter().filter(|inner| view.holds(*item, **inner)).count() > 1
            })
    })
}

/// Finds a list whose items wrap those of `best`, one each, and that has further similar siblings.
fn wider(view: &PageView, lists: &[CandidateList], best: &CandidateList) -> Option<usize> {
    lists.iter().position(|list| {
        let is_brother = |member: &NodeId| {
            view.parent(*member) == view.parent(list.model)
                && view.shares_class(*member, list.model)
        };
        let holds = |member: &NodeId| {
            best.members.iter().filter(|inner| view.holds(*member, **inner)).count()
        };
        let held: Vec<usize> = list.members.iter().map(holds).collect();
        view.document.is_inside(best.model, list.model)
            && list.examples.len() == best.examples.len()
            && (list.conflicts, list.used) == (best.conflicts, best.used)
            && list.members.len() > best.members.len()
            && held.iter().all(|held| *held <= 1)
            && held.iter().sum::<usize>() == best.members.len()
            && list.members.iter().zip(&held).all(|(each, held)| *held == 1 || is_brother(each))
    })
}

/// The list of elements similar to `model`. `None` if there is one only, or if they are labelled
/// values of a detail page.
fn list_of(
    view: &PageView,
    samples: &[Sample],
    matches: &[Vec<SampleMatch>],
    model: NodeId,
) -> Option<CandidateList> {
    let local: Vec<Option<&SampleMatch>> = matches
        .iter()
        .map(|places| places.iter().find(|place| view.holds(model, place.node)))
        .collect();
    let inside: Vec<&SampleMatch> = local.iter().flatten().copied().collect();
    let members = similar_elements(view, model, &inside);
    if members.len() < 2 {
        return None;
    }
    let own = local.iter().enumerate().filter_map(|(sample, hit)| {
        Some(PlacedSample { sample, member: model, hit: (*hit)?.clone() })
    });
    let mut examples: Vec<PlacedSample> = own.collect();
    for (sample, places) in matches.iter().enumerate().filter(|(at, _)| local[*at].is_none()) {
        let elsewhere = places.iter().find_map(|place| {
            let member = members.iter().find(|member| view.holds(**member, place.node))?;
            let example = PlacedSample { sample, member: *member, hit: place.clone() };
            agrees(view, samples, &examples, &example).then_some(example)
        });
        examples.extend(elsewhere);
    }
    examples.sort_by_key(|example| example.sample);
    let used: BTreeSet<NodeId> = examples.iter().map(|example| example.member).collect();
    for member in &used {
        let mut here = examples.iter().filter(|example| example.member == *member);
        if here.all(|example| is_labelled(view, *member, &members, &example.hit)) {
            return None;
        }
    }
    let cost = examples.iter().map(|example| example.hit.cost).sum::<f64>()
        + 0.3 * (view.size(model) as f64).ln();
    let conflicts = conflicts(view, samples, &examples);
    Some(CandidateList { model, members, examples, conflicts, used: used.len(), cost })
}

/// Whether two samples have the same role: tags from the item down, classes and attribute.
pub(super) fn same_role(view: &PageView, one: &PlacedSample, other: &PlacedSample) -> bool {
    let role = |example: &PlacedSample| {
        let node = example.hit.node;
        let place = match view.tag(node) {
            "td" | "th" | "dd" => view.place(node).0,
            _ => 0,
        };
        (view.tag_path(example.member, node), view.descriptive(node), place)
    };
    one.hit.how.attribute() == other.hit.how.attribute() && role(one) == role(other)
}

/// Samples of different items with the same role are one column, so their values must look similar.
fn agrees(
    view: &PageView,
    samples: &[Sample],
    others: &[PlacedSample],
    example: &PlacedSample,
) -> bool {
    others.iter().all(|other| {
        let (first, second) = (&samples[other.sample], &samples[example.sample]);
        other.member == example.member
            || !same_role(view, other, example)
            || (shape(&first.text) == shape(&second.text) && first.name == second.name)
    })
}

fn names_differ(one: &Sample, other: &Sample) -> bool {
    one.name.is_some() && other.name.is_some() && one.name != other.name
}

fn pairs(examples: &[PlacedSample]) -> impl Iterator<Item = (&PlacedSample, &PlacedSample)> {
    let later = |at: usize| examples.iter().skip(at + 1);
    examples.iter().enumerate().flat_map(move |(at, one)| later(at).map(move |other| (one, other)))
}

/// Counts the pairs of samples that lie in one item but look like one column of two items. Such pairs
/// mean that the item is too large.
fn conflicts(view: &PageView, samples: &[Sample], examples: &[PlacedSample]) -> usize {
    pairs(examples)
        .filter(|(one, other)| {
            let (first, second) = (&samples[one.sample], &samples[other.sample]);
            one.member == other.member
                && !names_differ(first, second)
                && unit(&first.text) == unit(&second.text)
                && !is_accompanied(view, examples, one, other)
                && clash(view, one, other, shape(&first.text) == shape(&second.text))
        })
        .count()
}

/// Whether two samples are siblings and a third one of the item lies elsewhere. Then they are two
/// columns of that item.
fn is_accompanied(
    view: &PageView,
    all: &[PlacedSample],
    one: &PlacedSample,
    other: &PlacedSample,
) -> bool {
    let (left, right) = (one.hit.node, other.hit.node);
    view.parent(left) == view.parent(right)
        && view.parent(left).is_some_and(|parent| {
            all.iter()
                .any(|third| third.member == one.member && !view.holds(parent, third.hit.node))
        })
}

/// Whether two samples look like one column of two neighbouring items.
fn clash(view: &PageView, one: &PlacedSample, other: &PlacedSample, is_same_shape: bool) -> bool {
    let (one, other) = (one.hit.node, other.hit.node);
    let Some(meeting) = view.common(&[one, other]) else { return false };
    let (left, right) = (view.child_towards(meeting, one), view.child_towards(meeting, other));
    let (Some(left), Some(right)) = (left, right) else { return false };
    let classes = view.descriptive(one);
    if left == right
        || view.tag(left) != view.tag(right)
        || view.tag_path(meeting, one) != view.tag_path(meeting, other)
        || classes != view.descriptive(other)
        || matches!(view.tag(left), "td" | "th" | "dd" | "dt")
    {
        return false;
    }
    !classes.is_empty()
        || matches!(view.tag(left), "tr" | "article")
        || is_same_shape && (left != one || view.tag(left) == "li")
}

/// The flat layout, if the siblings that contain the samples repeat.
fn flat(view: &PageView, samples: &[Sample], examples: &[PlacedSample]) -> Option<PageLayout> {
    let nodes: Vec<NodeId> = examples.iter().map(|example| example.hit.node).collect();
    let meeting = view.common(&nodes)?;
    let parts = nodes.iter().map(|node| view.child_towards(meeting, *node));
    let parts: Vec<NodeId> = parts.collect::<Option<_>>()?;
    let (first, last) = (*parts.iter().min()?, *parts.iter().max()?);
    if first == last {
        return None;
    }
    let alike = |one: NodeId, other: NodeId| {
        let (ours, theirs) = (view.descriptive(one), view.descriptive(other));
        view.tag(one) == view.tag(other)
            && (ours.is_empty() == theirs.is_empty())
            && (ours.is_empty() || !ours.is_disjoint(theirs))
    };
    let anchors: Vec<NodeId> =
        view.document.child_elements(meeting).filter(|child| alike(*child, first)).collect();
    let next = anchors.iter().find(|anchor| **anchor > first);
    if next.is_some_and(|next| *next <= last) {
        return None;
    }
    let is_item = |at: usize| {
        let end = anchors.get(at + 1);
        parts.iter().zip(examples).filter(|(part, _)| **part != first).all(|(part, example)| {
            let wanted = shape(&samples[example.sample].text);
            view.after(anchors[at]).take_while(|node| Some(node) != end).any(|node| {
                let is_words = wanted == ValueShape::Words || *part != example.hit.node;
                alike(node, *part) && (is_words || shape(&view.text(node)) == wanted)
            })
        })
    };
    let whole = (0..anchors.len()).filter(|at| is_item(*at)).count();
    let is_head = matches!(view.tag(first), "dt" | "tr" | "h1" | "h2" | "h3" | "h4" | "h5");
    let enough = if is_head { 2 } else { 3 };
    if whole < enough || 5 * whole < 3 * anchors.len() {
        return None;
    }
    let examples = examples.iter().map(|example| PlacedSample { member: first, ..example.clone() });
    let examples = examples.collect();
    Some(PageLayout { kind: LayoutKind::Flat, members: anchors, examples, outside: Vec::new() })
}

/// The items, then their parents and so on, until two items share an ancestor.
pub(super) fn levels(view: &PageView, members: &[NodeId]) -> Vec<Vec<NodeId>> {
    let mut found = vec![members.to_vec()];
    loop {
        let Some(last) = found.last() else { return found };
        let parents: Option<Vec<NodeId>> = last.iter().map(|node| view.parent(*node)).collect();
        let Some(parents) = parents else { return found };
        let distinct: BTreeSet<NodeId> = parents.iter().copied().collect();
        let tag = view.tag(parents[0]);
        let is_one_kind = parents.iter().all(|node| view.tag(*node) == tag);
        let is_frame = matches!(tag, "html" | "body" | "main" | "table" | "tbody" | "thead");
        // In document order, a nested element follows its ancestor or another element inside it.
        let mut order = distinct.iter();
        let nests = order.next().is_some_and(|first| {
            let mut outer = *first;
            order.any(|next| {
                let is_inside = view.document.is_inside(*next, outer);
                outer = *next;
                is_inside
            })
        });
        if distinct.len() != parents.len() || !is_one_kind || is_frame || nests || found.len() > 8 {
            return found;
        }
        found.push(parents);
    }
}
