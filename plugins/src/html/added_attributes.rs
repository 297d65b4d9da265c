//! Attributes that a second `<html>` or `<body>` adds to the first.

use std::collections::HashSet;

use super::AttributeEntry;
use super::name::NameId;
use super::tree::{Range32, TreeBuilder};

/// The attributes added to one element.
#[derive(Debug)]
struct AttributesOfElement {
    node: u32,
    names: HashSet<NameId>,
    attributes: Vec<AttributeEntry>,
}

/// All added attributes. They are put into the tree at the end, because moving the attributes of an
/// element for each tag would cost quadratic time.
#[derive(Debug, Default)]
pub(super) struct AddedAttributes {
    all: Vec<AttributesOfElement>,
}

impl AddedAttributes {
    /// Adds the attributes of a tag that `node` does not have yet.
    pub(super) fn add(&mut self, tree: &TreeBuilder, node: u32, attributes: Range32) {
        if attributes.len == 0 {
            return;
        }
        let at = self.all.iter().position(|added| added.node == node);
        let at = at.unwrap_or_else(|| {
            let own = tree.get(node);
            let own = listed(tree, Range32 { start: own.at, len: own.len });
            let names = own.iter().map(|attribute| attribute.name).collect();
            self.all.push(AttributesOfElement { node, names, attributes: Vec::new() });
            self.all.len() - 1
        });
        let added = &mut self.all[at];
        for attribute in listed(tree, attributes) {
            if added.names.insert(attribute.name) {
                added.attributes.push(attribute.clone());
            }
        }
    }

    /// Moves the attributes into the tree.
    pub(super) fn move_into(&mut self, tree: &mut TreeBuilder) {
        for added in self.all.drain(..).filter(|added| !added.attributes.is_empty()) {
            let (start, len) =
                (tree.get(added.node).at as usize, tree.get(added.node).len as usize);
            let moved = tree.attributes.len() as u32;
            tree.attributes.extend_from_within(start..start + len);
            tree.attributes.extend(added.attributes);
            let count = tree.attributes.len() as u32 - moved;
            let node = tree.at(added.node);
            (node.at, node.len) = (moved, count);
        }
    }
}

fn listed(tree: &TreeBuilder, span: Range32) -> &[AttributeEntry] {
    &tree.attributes[span.start as usize..(span.start + span.len) as usize]
}
