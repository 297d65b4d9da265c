//! Finds the items of a list: elements that resemble a model element.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::matches::{MatchKind, SampleMatch};
use super::page_view::PageView;
use super::words::{self, ValueShape, shape};
use crate::html::NodeId;

/// All elements that resemble `model`, itself included, in document order. `matches` are samples in
/// the model; a similar element should have an element with the same role for each.
pub(super) fn similar_elements(
    view: &PageView,
    model: NodeId,
    matches: &[&SampleMatch],
) -> Vec<NodeId> {
    let score = SimilarityCheck::new(view, model, matches);
    let by_path = view.elements().filter(|node| view.path_id(*node) == view.path_id(model));
    let mut best: Vec<NodeId> = by_path.filter(|node| score.matches_model(*node)).collect();
    for class in view.descriptive(model) {
        let alike = view.elements().filter(|node| {
            view.tag(*node) == view.tag(model) && view.descriptive(*node).contains(class)
        });
        let found: Vec<NodeId> = alike.filter(|node| score.matches_model(*node)).collect();
        if found.len() > best.len() && best.iter().all(|node| found.contains(node)) {
            best = found;
        }
    }
    best
}

/// An element of the model that holds a sample.
struct SampledRole<'a> {
    /// The tags from the model down to it.
    way: Vec<&'a str>,
    tag: &'a str,
    classes: &'a BTreeSet<&'a str>,
    /// Whether its whole text is a number, an amount of money or a date.
    is_counted: bool,
    /// Whether the sample is a part of the element's own text.
    is_loose: bool,
}

/// Compares elements with a model.
struct SimilarityCheck<'a> {
    view: &'a PageView<'a>,
    model: NodeId,
    features: Rc<BTreeSet<String>>,
    roles: Vec<SampledRole<'a>>,
    cells: usize,
}

impl<'a> SimilarityCheck<'a> {
    fn new(view: &'a PageView<'a>, model: NodeId, matches: &[&SampleMatch]) -> Self {
        let roles = matches
            .iter()
            .filter(|hit| view.holds(model, hit.node))
            .map(|hit| SampledRole {
                way: view.tag_path(model, hit.node),
                tag: view.tag(hit.node),
                classes: view.descriptive(hit.node),
                is_counted: hit.how == MatchKind::Whole
                    && matches!(
                        shape(&view.text(hit.node)),
                        ValueShape::Number | ValueShape::Money | ValueShape::Date
                    ),
                is_loose: hit.how == MatchKind::Part && !view.own_text(hit.node).is_empty(),
            })
            .collect();
        Self {
            view,
            model,
            features: view.features(model),
            roles,
            cells: view.document.child_elements(model).count(),
        }
    }

    fn matches_model(&self, node: NodeId) -> bool {
        if node == self.model {
            return true;
        }
        let shares = self.shares_class(node);
        self.classes_fit(node, shares)
            && (shares || !self.view.holds(node, self.model) && !self.view.holds(self.model, node))
            && self.advert_fits(node)
            && (!self.is_head(node) || self.is_head(self.model))
            && !self.is_head_row(node)
            && self.surroundings_fit(node, shares)
            && self.cells_fit(node)
            && self.roles_fit(node)
            && self.features_fit(node, shares)
    }

    fn shares_class(&self, node: NodeId) -> bool {
        self.view.shares_class(node, self.model)
    }

    fn classes_fit(&self, node: NodeId, shares: bool) -> bool {
        // If the model itself is the sample, there are no inner elements to compare.
        let is_bare = self.roles.iter().any(|role| role.way.is_empty());
        let theirs = self.view.descriptive(node);
        shares || theirs.is_empty() || (self.view.descriptive(self.model).is_empty() && !is_bare)
    }

    /// Whether it is the first or last sibling and its class says that it is a heading or a total.
    fn is_head(&self, node: NodeId) -> bool {
        let is_end = self.view.before(node).is_none() || self.view.after(node).next().is_none();
        let is_head = |class| words::has_word(class, "head header heading thead total footer");
        is_end && self.view.classes(node).into_iter().any(is_head)
    }

    /// Whether it is the first row of a table, without digits although the samples have some.
    fn is_head_row(&self, node: NodeId) -> bool {
        self.view.tag(node) == "tr"
            && self.view.before(node).is_none()
            && self.roles.iter().any(|role| role.is_counted)
            && !self.view.text(node).contains(|c: char| c.is_ascii_digit())
    }

    fn advert_fits(&self, node: NodeId) -> bool {
        let marked = |node: NodeId| is_advert(self.view, node);
        let meeting = self.view.common(&[self.model, node]);
        let with_frame = |node: NodeId| {
            let mut all = meeting.map_or_else(Vec::new, |meeting| self.view.between(meeting, node));
            all.push(node);
            all.into_iter().any(marked)
        };
        !with_frame(node) || with_frame(self.model)
    }

    /// Whether the ancestors of both are similar, up to the common one.
    fn surroundings_fit(&self, node: NodeId, shares: bool) -> bool {
        let view = self.view;
        let Some(meeting) = view.common(&[self.model, node]) else { return false };
        let (ours, theirs) = (view.between(meeting, self.model), view.between(meeting, node));
        let is_aside = |list: &[NodeId]| list.iter().any(|around| view.is_secondary(*around));
        if is_aside(&theirs) != is_aside(&ours) {
            return false;
        }
        if shares {
            return true;
        }
        ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(our, their)| {
                let (our, their) = (view.descriptive(*our), view.descriptive(*their));
                our.is_empty() || their.is_empty() || !our.is_disjoint(their)
            })
    }

    /// Whether a table row has as many cells as the model. A row with merged cells is a heading or a
    /// total.
    fn cells_fit(&self, node: NodeId) -> bool {
        if self.view.tag(self.model) != "tr" {
            return true;
        }
        let cells: Vec<NodeId> = self.view.document.child_elements(node).collect();
        let is_merged = cells.iter().any(|cell| {
            let span = self.view.attribute(*cell, "colspan").and_then(|span| span.parse().ok());
            span.unwrap_or(1) > 1
        });
        let is_head = |cell: &NodeId| self.view.tag(*cell) == "th";
        let heads = |row| self.view.document.child_elements(row).filter(is_head).count();
        cells.len() == self.cells && (heads(node) == heads(self.model) || heads(node) < self.cells)
            || (!is_merged
                && cells.len() > 1
                && cells.len().abs_diff(self.cells) == 1
                && heads(node) < cells.len())
    }

    /// Whether it has an element for at least half of the roles.
    fn roles_fit(&self, node: NodeId) -> bool {
        if self.view.text_len(node) == 0 && self.view.text_len(self.model) > 0 {
            return false;
        }
        // Counted in halves: if the model's element has a class, a match by position counts half.
        let mut played = 0;
        for SampledRole { way, tag, classes, is_counted, is_loose } in &self.roles {
            let has_digit = |node: NodeId| self.view.text(node).contains(|c: char| c.is_numeric());
            let alike = self.view.inside(node).filter(|inner| self.view.tag(*inner) == *tag);
            let worth = alike.map(|inner| {
                let is_named = !self.view.descriptive(inner).is_disjoint(classes);
                let is_placed = || self.view.tag_path(node, inner) == *way;
                if *is_counted && !has_digit(inner) {
                    return 0;
                }
                match (is_named, classes.is_empty()) {
                    (true, _) => 2,
                    (false, true) => 2 * usize::from(is_placed()),
                    (false, false) => usize::from(is_placed()),
                }
            });
            played += match way.is_empty() {
                true if *is_loose && self.view.own_text(node).is_empty() => 0,
                true => 2,
                false => worth.max().unwrap_or_default(),
            };
        }
        let needed = self.roles.len();
        let is_brother = self.view.parent(node) == self.view.parent(self.model);
        played > needed
            || (needed <= 2 && played == needed)
            || (is_brother && self.shares_class(node) && played >= 2)
    }

    fn features_fit(&self, node: NodeId, shares: bool) -> bool {
        let theirs = self.view.features(node);
        if self.features.is_empty() && theirs.is_empty() {
            return true;
        }
        let shared = self.features.intersection(&theirs).count() as f64;
        let all = self.features.union(&theirs).count() as f64;
        shared / all >= if shares { 0.2 } else { 0.35 }
    }
}

fn is_advert(view: &PageView, node: NodeId) -> bool {
    view.classes(node).into_iter().any(words::is_advert)
        || view.document.attributes(node).any(|(name, _)| {
            let name = &**name;
            name.starts_with("data-") && words::is_advert(name)
        })
}

/// How many siblings of the items share their class, but are advertisements.
pub(super) fn adverts(view: &PageView, members: &[NodeId]) -> usize {
    let Some(first) = members.first() else { return 0 };
    let Some(parent) = view.parent(*first) else { return 0 };
    let left_out = view.document.child_elements(parent).filter(|node| {
        !members.contains(node)
            && view.tag(*node) == view.tag(*first)
            && view.shares_class(*node, *first)
            && is_advert(view, *node)
    });
    left_out.count()
}

/// Whether a row is a labelled value of a detail page and not an item of a list. Labels differ from
/// row to row, and the sample is not the label.
pub(super) fn is_labelled(
    view: &PageView,
    row: NodeId,
    similar: &[NodeId],
    hit: &SampleMatch,
) -> bool {
    if view.holds(row, hit.node)
        && label_in(view, row).is_some_and(|label| view.holds(label, hit.node))
    {
        return false;
    }
    let label_of = |node: NodeId| {
        let label = label_in(view, node).or_else(|| label_of_value(view, node))?;
        Some(view.text(label))
    };
    let Some(label) = label_of(row) else { return false };
    if has_head_row(view, row) {
        return false;
    }
    let mut others = similar.iter().filter(|node| **node != row).peekable();
    others.peek().is_some() && others.all(|node| label_of(*node).as_ref() != Some(&label))
}

fn is_label(view: &PageView, node: NodeId) -> bool {
    let text = view.text(node);
    is_marked_label(view, node, &text) && text.chars().any(char::is_alphabetic)
}

/// Whether an element looks like a label, by its tag, its class or a colon at the end.
pub(super) fn is_marked_label(view: &PageView, node: NodeId, text: &str) -> bool {
    let is_label_class = |class| words::has_word(class, "label key term caption property field");
    matches!(view.tag(node), "dt" | "th" | "b" | "strong" | "label")
        || text.ends_with(':')
        || view.classes(node).into_iter().any(is_label_class)
}

/// The first child of a row with one or two children, if it is a label.
fn label_in(view: &PageView, row: NodeId) -> Option<NodeId> {
    let mut children = view.document.child_elements(row);
    let first = children.next()?;
    (children.count() <= 1 && is_label(view, first)).then_some(first)
}

/// The label before a value, or before an ancestor with the same text.
fn label_of_value(view: &PageView, value: NodeId) -> Option<NodeId> {
    let text_len = view.text_len(value);
    let wraps = view.upwards(value).take_while(|up| view.text_len(*up) == text_len).take(3);
    wraps.filter_map(|up| view.before(up).map(|label| (up, label))).find_map(|(up, label)| {
        let is_pair = view.tag(up) == "dd"
            || view.parent(up).is_some_and(|row| view.document.child_elements(row).count() == 2);
        (is_pair && is_label(view, label)).then_some(label)
    })
}

/// Whether the table of a row has a row of column headings.
fn has_head_row(view: &PageView, row: NodeId) -> bool {
    let Some(table) = view.upwards(row).find(|node| view.tag(*node) == "table") else {
        return false;
    };
    view.inside(table).filter(|node| view.tag(*node) == "tr").any(|row| {
        let cells: Vec<NodeId> = view.document.child_elements(row).collect();
        cells.len() > 1 && cells.iter().all(|cell| view.tag(*cell) == "th")
    })
}
