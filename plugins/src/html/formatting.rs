//! The list of active formatting elements (`<b>`, `<i>` and others). Elements that a page closes
//! too early are reopened ("reconstruct"). Elements that it nests wrongly are split by the
//! "adoption agency algorithm".

use super::name::{NameId, Namespace};
use super::parse::HtmlParser;
use super::stack::{ElementFlags, OpenElement, SCOPE, SPECIAL, flags_of};
use super::tree::{InsertPosition, Range32, TreeBuilder};
use super::{AttributeEntry, NONE, NodeKind};

/// Rounds of the adoption agency algorithm for one end tag; the number is the standard's.
const ROUNDS_MAX: usize = 8;
/// Formatting elements between the two that a round moves and that stay in the list; the number is
/// the standard's.
const KEPT_IN_LIST_MAX: usize = 3;
/// Equal entries the list may have behind its last marker; the number is the standard's.
const EQUAL_ENTRIES_MAX: usize = 3;

/// An entry of the list; `node` is `NONE` for a marker.
#[derive(Debug, Clone, Copy)]
struct FormattingEntry {
    node: u32,
    name: NameId,
    attributes: Range32,
}

/// The list of active formatting elements.
#[derive(Debug, Default)]
pub(super) struct FormattingList {
    list: Vec<FormattingEntry>,
}

impl FormattingList {
    pub(super) fn push_marker(&mut self) {
        let name = NameId::from_raw(NONE);
        self.list.push(FormattingEntry {
            node: NONE,
            name,
            attributes: Range32 { start: 0, len: 0 },
        });
    }

    /// "Clear the list up to the last marker", the marker included.
    pub(super) fn clear_to_marker(&mut self, tree: &mut TreeBuilder) {
        while let Some(entry) = self.list.pop() {
            if entry.node == NONE {
                return;
            }
            tree.at(entry.node).is_listed = false;
        }
    }

    fn remove(&mut self, at: usize, tree: &mut TreeBuilder) {
        let entry = self.list.remove(at);
        if entry.node != NONE {
            tree.at(entry.node).is_listed = false;
        }
    }

    fn position(&self, node: u32) -> Option<usize> {
        self.list.iter().rposition(|entry| entry.node == node)
    }

    /// The last entry of this name behind the last marker.
    fn last_named(&self, name: NameId) -> Option<usize> {
        let recent =
            self.list.iter().rposition(|entry| entry.node == NONE || entry.name == name)?;
        (self.list[recent].node != NONE).then_some(recent)
    }
}

impl HtmlParser<'_> {
    /// Inserts a formatting element into the tree and the list.
    pub(super) fn insert_formatting(&mut self, name: NameId, attributes: Range32) {
        self.limit_equal_entries(name, attributes);
        let node = self.insert_element(name, attributes);
        self.tree.at(node).is_listed = true;
        self.formatting.list.push(FormattingEntry { node, name, attributes });
    }

    /// Removes the first of the equal entries if the list has the maximum already.
    fn limit_equal_entries(&mut self, name: NameId, attributes: Range32) {
        let list = &self.formatting.list;
        let recent = list.iter().rposition(|entry| entry.node == NONE).map_or(0, |at| at + 1);
        let count = list[recent..].iter().filter(|entry| entry.name == name).count();
        let steps = list.len() - recent;
        if count >= EQUAL_ENTRIES_MAX {
            let own = self.sorted_attributes(attributes);
            let named = list[recent..].iter().zip(recent..);
            let equal: Vec<usize> = named
                .filter(|(entry, _)| entry.name == name && entry.attributes.len == attributes.len)
                .filter(|(entry, _)| self.sorted_attributes(entry.attributes) == own)
                .map(|(_, at)| at)
                .collect();
            if equal.len() >= EQUAL_ENTRIES_MAX {
                self.formatting.remove(equal[0], &mut self.tree);
            }
        }
        self.spend(steps);
    }

    /// Attributes sorted by name, so that their order does not matter.
    fn sorted_attributes(&self, attributes: Range32) -> Vec<(u32, &[u8])> {
        let Range32 { start, len } = attributes;
        let own = &self.tree.attributes[start as usize..(start + len) as usize];
        let pair = |attribute: &AttributeEntry| {
            let value = Range32 { start: attribute.at, len: attribute.len };
            (attribute.name.raw(), self.bytes(value))
        };
        let mut all: Vec<(u32, &[u8])> = own.iter().map(pair).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    fn is_open(&self, node: u32) -> bool {
        self.stack.position(node).is_some()
    }

    /// "Reconstruct the active formatting elements."
    pub(super) fn reconstruct(&mut self) {
        let Some(last) = self.formatting.list.last() else {
            return;
        };
        if last.node == NONE || self.is_open(last.node) {
            return;
        }
        let list = &self.formatting.list;
        let open = list.iter().rposition(|entry| entry.node == NONE || self.is_open(entry.node));
        let first = open.map_or(0, |at| at + 1);
        self.spend((list.len() - first) * self.stack.open.len());
        for at in first..self.formatting.list.len() {
            let FormattingEntry { node: old, name, attributes } = self.formatting.list[at];
            let node = self.insert_element(name, attributes);
            self.tree.at(old).is_listed = false;
            self.tree.at(node).is_listed = true;
            self.formatting.list[at].node = node;
            self.spend(1);
            if self.error.is_some() {
                return;
            }
        }
    }

    /// The node of the last entry with this name behind the last marker.
    pub(super) fn last_listed(&self, name: NameId) -> Option<u32> {
        self.formatting.last_named(name).map(|at| self.formatting.list[at].node)
    }

    /// Removes an element from the list and the stack.
    pub(super) fn remove_formatting(&mut self, node: u32) {
        if let Some(at) = self.formatting.position(node) {
            self.formatting.remove(at, &mut self.tree);
        }
        if let Some(at) = self.stack.position(node) {
            self.stack.remove(at);
        }
    }

    /// The "adoption agency algorithm" for an end tag. `false` means "any other end tag" applies.
    pub(super) fn adopt(&mut self, name: NameId) -> bool {
        let top = self.stack.top();
        if top.is(name) && !self.tree.get(top.node).is_listed {
            self.stack.pop();
            return true;
        }
        for round in 0..ROUNDS_MAX {
            let Some(entry) = self.formatting.last_named(name) else {
                return round > 0;
            };
            let node = self.formatting.list[entry].node;
            let Some(at) = self.stack.position(node) else {
                self.formatting.remove(entry, &mut self.tree);
                return true;
            };
            if !self.stack.scope_has(|open| open.node == node, SCOPE) {
                return true;
            }
            let below = &self.stack.open[at + 1..];
            let Some(furthest) = below.iter().position(|open| open.has(SPECIAL)) else {
                self.formatting.remove(entry, &mut self.tree);
                self.stack.truncate(at);
                return true;
            };
            self.adoption_round(entry, at, at + 1 + furthest);
            if self.error.is_some() {
                return true;
            }
        }
        true
    }

    /// One round of the algorithm. `entry` is the formatting element's index in the list and
    /// `formatting` its index in the stack. `furthest` is the index of the "furthest block", which
    /// moves out of it.
    fn adoption_round(&mut self, entry: usize, formatting: usize, furthest: usize) {
        let FormattingEntry { node: old, name, attributes } = self.formatting.list[entry];
        let block = self.stack.open[furthest];
        let ancestor = self.stack.open[formatting.saturating_sub(1)];
        let mut bookmark = entry;
        let mut last = block.node;
        let mut kept = 0;
        let mut furthest = furthest;
        self.spend(furthest - formatting + self.formatting.list.len());
        for at in (formatting + 1..furthest).rev() {
            let node = self.stack.open[at].node;
            kept += 1;
            let listed =
                if self.tree.get(node).is_listed { self.formatting.position(node) } else { None };
            let listed = match listed {
                Some(place) if kept > KEPT_IN_LIST_MAX => {
                    self.formatting.remove(place, &mut self.tree);
                    if place < bookmark {
                        bookmark -= 1;
                    }
                    None
                }
                other => other,
            };
            let Some(place) = listed else {
                self.stack.remove(at);
                furthest -= 1;
                continue;
            };
            let copy = self.copy_of(place);
            self.stack.open[at].node = copy;
            if last == block.node {
                bookmark = place + 1;
            }
            self.tree.move_to(InsertPosition::at_end(copy), last);
            last = copy;
        }
        self.tree.detach(last);
        let place = self.place_in(ancestor);
        self.tree.insert(place, last);
        let copy = self.tree.element(name, Namespace::HTML, attributes);
        self.tree.move_children(block.node, copy);
        self.tree.insert(InsertPosition::at_end(block.node), copy);
        self.replace_entry(old, FormattingEntry { node: copy, name, attributes }, bookmark);
        let flags: ElementFlags = flags_of(name, Namespace::HTML);
        self.stack.insert(furthest + 1, OpenElement { node: copy, name, flags });
        self.stack.remove(formatting);
    }

    /// Replaces the node of an entry by a new element with the same name and attributes.
    fn copy_of(&mut self, place: usize) -> u32 {
        let FormattingEntry { node: old, name, attributes } = self.formatting.list[place];
        let copy = self.tree.element(name, Namespace::HTML, attributes);
        self.tree.at(old).is_listed = false;
        self.tree.at(copy).is_listed = true;
        self.formatting.list[place].node = copy;
        copy
    }

    /// Inserts the new entry at the bookmark and removes the old one.
    fn replace_entry(&mut self, old: u32, entry: FormattingEntry, bookmark: usize) {
        debug_assert_eq!(self.tree.get(entry.node).kind, NodeKind::Element);
        self.tree.at(entry.node).is_listed = true;
        self.formatting.list.insert(bookmark, entry);
        if let Some(at) = self.formatting.position(old) {
            self.formatting.remove(at, &mut self.tree);
        }
    }
}
