//! The tree while it is built. Nodes are in linked lists, because malformed pages move them. At the
//! end they are sorted into document order, in which they nearly always are already.

use super::name::{NameId, Namespace};
use super::{AttributeEntry, NONE, NodeKind, TreeNode};

/// A range of 32-bit offsets. For texts: bytes of the page, or of `HtmlParser::extra` behind it.
/// For a tag: entries of [`TreeBuilder::attributes`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Range32 {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Where a node is inserted: before a sibling or, if `before` is `NONE`, as last child.
#[derive(Debug, Clone, Copy)]
pub(super) struct InsertPosition {
    pub(super) parent: u32,
    pub(super) before: u32,
}

impl InsertPosition {
    pub(super) fn at_end(parent: u32) -> Self {
        Self { parent, before: NONE }
    }
}

/// A part of a text node that does not directly follow the part before it.
#[derive(Debug)]
struct TextPiece {
    span: Range32,
    next: u32,
}

/// The unfinished tree. While building, `TreeNode::end` is the last child of an element, or the
/// last piece of a text. `TreeNode::name` of a text is its second piece.
#[derive(Debug)]
pub(super) struct TreeBuilder {
    pub(super) nodes: Vec<TreeNode>,
    pub(super) attributes: Vec<AttributeEntry>,
    pieces: Vec<TextPiece>,
}

impl TreeBuilder {
    /// An empty document, with memory reserved for a page of this length.
    pub(super) fn new(bytes: usize) -> Self {
        let mut tree = Self {
            nodes: Vec::with_capacity(16 + bytes / 24),
            attributes: Vec::with_capacity(16 + bytes / 48),
            pieces: Vec::new(),
        };
        tree.nodes.push(TreeNode::new(NodeKind::Document, NONE, Namespace::HTML, 0, 0));
        tree
    }

    pub(super) fn at(&mut self, id: u32) -> &mut TreeNode {
        &mut self.nodes[id as usize]
    }

    pub(super) fn get(&self, id: u32) -> &TreeNode {
        &self.nodes[id as usize]
    }

    /// A new element without a parent.
    pub(super) fn element(
        &mut self,
        name: NameId,
        namespace: Namespace,
        attributes: Range32,
    ) -> u32 {
        let Range32 { start, len } = attributes;
        self.nodes.push(TreeNode::new(NodeKind::Element, name.raw(), namespace, start, len));
        self.nodes.len() as u32 - 1
    }

    pub(super) fn add_comment(&mut self, place: InsertPosition, text: Range32) {
        let Range32 { start, len } = text;
        self.nodes.push(TreeNode::new(NodeKind::Comment, NONE, Namespace::HTML, start, len));
        self.insert(place, self.nodes.len() as u32 - 1);
    }

    pub(super) fn add_doctype(&mut self) {
        self.nodes.push(TreeNode::new(NodeKind::Doctype, NONE, Namespace::HTML, 0, 0));
        self.insert(InsertPosition::at_end(0), self.nodes.len() as u32 - 1);
    }

    /// Appends to the text node before the position, or inserts a new one.
    pub(super) fn add_text(&mut self, place: InsertPosition, text: Range32) {
        let prev = match place.before {
            NONE => self.get(place.parent).end,
            before => self.get(before).prev,
        };
        if prev != NONE && self.get(prev).kind == NodeKind::Text {
            self.extend_text(prev, text);
            return;
        }
        let Range32 { start, len } = text;
        self.nodes.push(TreeNode::new(NodeKind::Text, NONE, Namespace::HTML, start, len));
        self.insert(place, self.nodes.len() as u32 - 1);
    }

    fn extend_text(&mut self, node: u32, text: Range32) {
        let node = &mut self.nodes[node as usize];
        let last_piece = node.end;
        let (start, len) = match self.pieces.get_mut(last_piece as usize) {
            None => (node.at, &mut node.len),
            Some(piece) => (piece.span.start, &mut piece.span.len),
        };
        if start + *len == text.start {
            *len += text.len;
            return;
        }
        let piece = self.pieces.len() as u32;
        node.end = piece;
        match self.pieces.get_mut(last_piece as usize) {
            None => node.name = piece,
            Some(last) => last.next = piece,
        }
        self.pieces.push(TextPiece { span: text, next: NONE });
    }

    /// Inserts a node that has no parent.
    pub(super) fn insert(&mut self, place: InsertPosition, child: u32) {
        let InsertPosition { parent, before } = place;
        let prev = if before == NONE {
            std::mem::replace(&mut self.at(parent).end, child)
        } else {
            std::mem::replace(&mut self.at(before).prev, child)
        };
        let node = self.at(child);
        (node.parent, node.prev, node.next) = (parent, prev, before);
        if prev != NONE {
            self.at(prev).next = child;
        }
    }

    /// Removes a node and its subtree from its parent.
    pub(super) fn detach(&mut self, id: u32) {
        let TreeNode { parent, prev, next, .. } = *self.get(id);
        if parent == NONE {
            return;
        }
        if prev != NONE {
            self.at(prev).next = next;
        }
        if next == NONE {
            self.at(parent).end = prev;
        } else {
            self.at(next).prev = prev;
        }
        let node = self.at(id);
        (node.parent, node.prev, node.next) = (NONE, NONE, NONE);
    }

    /// Moves a node and its subtree.
    pub(super) fn move_to(&mut self, place: InsertPosition, id: u32) {
        self.detach(id);
        self.insert(place, id);
    }

    /// Moves all children of `from` to `to`, which has none.
    pub(super) fn move_children(&mut self, from: u32, to: u32) {
        let last = std::mem::replace(&mut self.at(from).end, NONE);
        self.at(to).end = last;
        let mut child = last;
        while child != NONE {
            let node = self.at(child);
            node.parent = to;
            child = node.prev;
        }
    }

    /// Joins the pieces of each text that has several, at the end of `extra`.
    pub(super) fn join_pieces(&mut self, page: &str, extra: &mut String) {
        if self.pieces.is_empty() {
            return;
        }
        let texts = self.nodes.iter_mut().filter(|node| node.kind == NodeKind::Text);
        for node in texts.filter(|node| node.name != NONE) {
            let start = (page.len() + extra.len()) as u32;
            let mut span = Range32 { start: node.at, len: node.len };
            let mut next = node.name;
            loop {
                let from = span.start as usize;
                if from < page.len() {
                    extra.push_str(&page[from..from + span.len as usize]);
                } else {
                    let from = from - page.len();
                    extra.extend_from_within(from..from + span.len as usize);
                }
                let Some(piece) = self.pieces.get(next as usize) else {
                    break;
                };
                (span, next) = (piece.span, piece.next);
            }
            node.at = start;
            node.len = (page.len() + extra.len()) as u32 - start;
            (node.name, node.end) = (NONE, NONE);
        }
    }

    /// Numbers the nodes in document order and sets the end of each subtree. `false` if the tree is
    /// deeper than `depth_max`.
    pub(super) fn number_nodes(&mut self, depth_max: usize) -> bool {
        self.set_ends() || self.sort(depth_max)
    }

    /// Sets the end of each subtree if the nodes are in document order. Returns `false` if they are
    /// not; `TreeNode::end` then has no meaning.
    fn set_ends(&mut self) -> bool {
        for id in (0..self.nodes.len()).rev() {
            let node = &self.nodes[id];
            let (last, next) = (node.end, node.next);
            let end = if last == NONE {
                id as u32 + 1
            } else {
                let first_parent = self.nodes.get(id + 1).map(|first| first.parent);
                if last as usize <= id || first_parent != Some(id as u32) {
                    return false;
                }
                self.nodes[last as usize].end
            };
            if next != NONE && next != end {
                return false;
            }
            self.nodes[id].end = end;
        }
        self.nodes[0].end as usize == self.nodes.len()
    }

    fn sort(&mut self, depth_max: usize) -> bool {
        let mut firsts = vec![NONE; self.nodes.len()];
        for (node, id) in self.nodes.iter().zip(0..) {
            if node.prev == NONE && node.parent != NONE {
                firsts[node.parent as usize] = id;
            }
        }
        let mut sorted: Vec<TreeNode> = Vec::with_capacity(self.nodes.len());
        let (mut at, mut parent, mut prev, mut depth) = (0, NONE, NONE, 0);
        // An iterative walk, because a page may be nested up to the limit.
        loop {
            let mut done = sorted.len() as u32;
            if let Some(before) = sorted.get_mut(prev as usize) {
                before.next = done;
            }
            sorted.push(TreeNode { parent, prev, next: NONE, ..self.nodes[at as usize].clone() });
            let first = firsts[at as usize];
            if first != NONE {
                depth += 1;
                if depth > depth_max {
                    return false;
                }
                (at, parent, prev) = (first, done, NONE);
                continue;
            }
            loop {
                sorted[done as usize].end = sorted.len() as u32;
                let next = self.nodes[at as usize].next;
                if next != NONE {
                    (at, prev) = (next, done);
                    break;
                }
                at = self.nodes[at as usize].parent;
                if at == NONE {
                    self.nodes = sorted;
                    return true;
                }
                depth -= 1;
                done = parent;
                parent = sorted[done as usize].parent;
            }
        }
    }
}
