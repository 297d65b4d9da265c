//! Builds a [`Document`] behind html5ever's tree builder.
//!
//! While the page is read, nodes hang in linked lists, since malformed pages move them about; at
//! the end one walk lays them out in document order.

use std::borrow::Cow;
use std::cell::{Ref, RefCell};
use std::time::Instant;

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute as ParsedAttribute, LocalName, Namespace, ParseOpts, QualName};

use super::{Attribute, Document, Element, NONE, Node, NodeKind, TreeError, TreeLimits};

/// Bytes fed between two looks at the limits.
const CHUNK: usize = 16 * 1024;

pub(super) fn parse(html: &str, limits: TreeLimits) -> Result<Document, TreeError> {
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts {
            scripting_enabled: false,
            // Never quirks mode: a table closes an open paragraph, doctype or not, as in jsoup.
            iframe_srcdoc: true,
            ..Default::default()
        },
        ..Default::default()
    };
    let mut parser = html5ever::parse_document(Sink::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let cut = rest.floor_char_boundary(CHUNK.min(rest.len()));
        parser.process(StrTendril::from_slice(&rest[..cut]));
        rest = &rest[cut..];
        let tree = parser.tokenizer.sink.sink.tree.borrow();
        if tree.nodes.len() > limits.nodes_max {
            return Err(TreeError::TooManyNodes(limits.nodes_max));
        }
        if tree.depth as usize > limits.depth_max {
            return Err(TreeError::TooDeep(limits.depth_max));
        }
        if limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(TreeError::TooSlow);
        }
    }
    Ok(parser.finish())
}

#[derive(Debug)]
enum Content {
    Document,
    Doctype,
    Element(QualName, Vec<ParsedAttribute>),
    Text(StrTendril),
    Comment(StrTendril),
}

#[derive(Debug)]
struct Loose {
    content: Content,
    parent: u32,
    prev: u32,
    next: u32,
    first: u32,
    last: u32,
    depth: u32,
}

#[derive(Debug)]
struct Tree {
    nodes: Vec<Loose>,
    /// Deepest level so far.
    depth: u32,
}

#[derive(Debug)]
struct Sink {
    // The tree builder holds the sink by shared reference; nothing else does.
    tree: RefCell<Tree>,
}

impl Default for Sink {
    fn default() -> Self {
        let mut tree = Tree { nodes: Vec::with_capacity(1024), depth: 0 };
        tree.add(Content::Document);
        Self { tree: RefCell::new(tree) }
    }
}

impl Tree {
    fn add(&mut self, content: Content) -> u32 {
        let node = Loose {
            content,
            parent: NONE,
            prev: NONE,
            next: NONE,
            first: NONE,
            last: NONE,
            depth: 0,
        };
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn at(&mut self, id: u32) -> &mut Loose {
        &mut self.nodes[id as usize]
    }

    fn detach(&mut self, id: u32) {
        let Loose { parent, prev, next, .. } = *self.at(id);
        if parent == NONE {
            return;
        }
        if prev == NONE {
            self.at(parent).first = next;
        } else {
            self.at(prev).next = next;
        }
        if next == NONE {
            self.at(parent).last = prev;
        } else {
            self.at(next).prev = prev;
        }
        let node = self.at(id);
        (node.parent, node.prev, node.next) = (NONE, NONE, NONE);
    }

    fn append(&mut self, parent: u32, child: u32) {
        self.detach(child);
        let last = self.at(parent).last;
        let depth = self.at(parent).depth + 1;
        self.depth = self.depth.max(depth);
        let node = self.at(child);
        (node.parent, node.prev, node.next, node.depth) = (parent, last, NONE, depth);
        if last == NONE {
            self.at(parent).first = child;
        } else {
            self.at(last).next = child;
        }
        self.at(parent).last = child;
    }

    fn insert_before(&mut self, sibling: u32, child: u32) {
        self.detach(child);
        let Loose { parent, prev, depth, .. } = *self.at(sibling);
        let node = self.at(child);
        (node.parent, node.prev, node.next, node.depth) = (parent, prev, sibling, depth);
        self.at(sibling).prev = child;
        if prev == NONE {
            self.at(parent).first = child;
        } else {
            self.at(prev).next = child;
        }
    }

    /// Joins `words` to `id` if that is a text node.
    fn join(&mut self, id: u32, words: &StrTendril) -> bool {
        if id == NONE {
            return false;
        }
        match &mut self.at(id).content {
            Content::Text(text) => {
                text.push_tendril(words);
                true
            }
            _ => false,
        }
    }

    fn freeze(mut self) -> Document {
        let mut document = Document {
            nodes: Vec::with_capacity(self.nodes.len()),
            elements: Vec::new(),
            attributes: Vec::new(),
            text: String::new(),
        };
        // Walks without recursion: a hostile page may be nested to the limit.
        let (mut at, mut parent, mut prev) = (0, NONE, NONE);
        loop {
            let id = document.place(&mut self.nodes[at as usize].content, parent, prev);
            let first = self.nodes[at as usize].first;
            if first != NONE {
                (at, parent, prev) = (first, id, NONE);
                continue;
            }
            let mut done = id;
            loop {
                document.nodes[done as usize].end = document.nodes.len() as u32;
                let next = self.nodes[at as usize].next;
                if next != NONE {
                    (at, prev) = (next, done);
                    break;
                }
                at = self.nodes[at as usize].parent;
                if at == NONE {
                    return document;
                }
                done = document.nodes[done as usize].parent;
                parent = document.nodes[done as usize].parent;
            }
        }
    }
}

impl Document {
    fn place(&mut self, content: &mut Content, parent: u32, prev: u32) -> u32 {
        let id = self.nodes.len() as u32;
        if prev != NONE {
            self.nodes[prev as usize].next = id;
        }
        let (kind, at, len) = match content {
            Content::Document => (NodeKind::Document, 0, 0),
            Content::Doctype => (NodeKind::Doctype, 0, 0),
            Content::Text(words) => (NodeKind::Text, self.keep(words).start, words.len() as u32),
            Content::Comment(words) => {
                (NodeKind::Comment, self.keep(words).start, words.len() as u32)
            }
            Content::Element(name, attributes) => {
                let first = self.attributes.len() as u32;
                for attribute in attributes.drain(..) {
                    let value = self.keep(&attribute.value);
                    self.attributes.push(Attribute { name: full_name(&attribute.name), value });
                }
                self.elements.push(Element {
                    name: name.local.clone(),
                    namespace: name.ns.clone(),
                    attributes: first..self.attributes.len() as u32,
                });
                (NodeKind::Element, self.elements.len() as u32 - 1, 0)
            }
        };
        self.nodes.push(Node { kind, parent, end: id + 1, prev, next: NONE, at, len });
        id
    }

    fn keep(&mut self, words: &str) -> std::ops::Range<u32> {
        let start = self.text.len() as u32;
        self.text.push_str(words);
        start..self.text.len() as u32
    }
}

fn full_name(name: &QualName) -> LocalName {
    match &name.prefix {
        Some(prefix) if !prefix.is_empty() => LocalName::from(format!("{prefix}:{}", name.local)),
        _ => name.local.clone(),
    }
}

#[derive(Debug)]
struct Name<'a>(Ref<'a, QualName>);

impl ElemName for Name<'_> {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl TreeSink for Sink {
    type Handle = u32;
    type Output = Document;
    type ElemName<'a> = Name<'a>;

    fn finish(self) -> Document {
        self.tree.into_inner().freeze()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> u32 {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a u32) -> Name<'a> {
        Name(Ref::map(self.tree.borrow(), |tree| match &tree.nodes[*target as usize].content {
            Content::Element(name, _) => name,
            other => {
                unreachable!("the tree builder asks names of elements alone, not {other:?}")
            }
        }))
    }

    fn create_element(&self, name: QualName, attrs: Vec<ParsedAttribute>, _: ElementFlags) -> u32 {
        self.tree.borrow_mut().add(Content::Element(name, attrs))
    }

    fn create_comment(&self, text: StrTendril) -> u32 {
        self.tree.borrow_mut().add(Content::Comment(text))
    }

    fn create_pi(&self, target: StrTendril, _: StrTendril) -> u32 {
        self.tree.borrow_mut().add(Content::Comment(target))
    }

    fn append(&self, parent: &u32, child: NodeOrText<u32>) {
        let mut tree = self.tree.borrow_mut();
        match child {
            NodeOrText::AppendNode(node) => tree.append(*parent, node),
            NodeOrText::AppendText(words) => {
                let last = tree.at(*parent).last;
                if !tree.join(last, &words) {
                    let text = tree.add(Content::Text(words));
                    tree.append(*parent, text);
                }
            }
        }
    }

    fn append_based_on_parent_node(&self, element: &u32, prev: &u32, child: NodeOrText<u32>) {
        let has_parent = self.tree.borrow().nodes[*element as usize].parent != NONE;
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(prev, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {
        let mut tree = self.tree.borrow_mut();
        let doctype = tree.add(Content::Doctype);
        tree.append(0, doctype);
    }

    // A template's contents are ordinary children here, as they are in jsoup's tree.
    fn get_template_contents(&self, target: &u32) -> u32 {
        *target
    }

    fn same_node(&self, x: &u32, y: &u32) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &u32, new_node: NodeOrText<u32>) {
        let mut tree = self.tree.borrow_mut();
        match new_node {
            NodeOrText::AppendNode(node) => tree.insert_before(*sibling, node),
            NodeOrText::AppendText(words) => {
                let prev = tree.at(*sibling).prev;
                if !tree.join(prev, &words) {
                    let text = tree.add(Content::Text(words));
                    tree.insert_before(*sibling, text);
                }
            }
        }
    }

    fn add_attrs_if_missing(&self, target: &u32, attrs: Vec<ParsedAttribute>) {
        let mut tree = self.tree.borrow_mut();
        if let Content::Element(_, own) = &mut tree.at(*target).content {
            for attr in attrs {
                if own.iter().all(|known| known.name != attr.name) {
                    own.push(attr);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &u32) {
        self.tree.borrow_mut().detach(*target);
    }

    fn reparent_children(&self, node: &u32, new_parent: &u32) {
        let mut tree = self.tree.borrow_mut();
        loop {
            let first = tree.at(*node).first;
            if first == NONE {
                return;
            }
            tree.append(*new_parent, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree as nested text: elements as `name(...)`, text in quotes.
    fn shape(html: &str) -> String {
        use std::fmt::Write;
        fn write(document: &Document, id: super::super::NodeId, out: &mut String) {
            match document.kind(id) {
                NodeKind::Element => {
                    out.push_str(document.name(id).unwrap());
                    out.push('(');
                    for child in document.children(id) {
                        write(document, child, out);
                    }
                    out.push(')');
                }
                NodeKind::Text => write!(out, "{:?}", document.text(id).unwrap()).unwrap(),
                NodeKind::Comment => out.push('!'),
                NodeKind::Doctype => {}
                NodeKind::Document => {
                    for child in document.children(id) {
                        write(document, child, out);
                    }
                }
            }
        }
        let document = Document::parse(html, TreeLimits::default()).unwrap();
        let mut out = String::new();
        write(&document, document.root(), &mut out);
        out
    }

    #[test]
    fn malformed_pages_get_the_tree_a_browser_builds() {
        assert_eq!(shape("<p>a<p>b"), r#"html(head()body(p("a")p("b")))"#);
        assert_eq!(shape("<table>x<tr><td>1"), r#"html(head()body("x"table(tbody(tr(td("1"))))))"#);
        assert_eq!(shape("<b>1<p>2</b>3</p>"), r#"html(head()body(b("1")p(b("2")"3")))"#);
        assert_eq!(
            shape("<body><noscript><i>n</i></noscript><template><u>t</u></template>"),
            r#"html(head()body(noscript(i("n"))template(u("t"))))"#
        );
    }

    #[test]
    fn ids_are_in_document_order_and_subtrees_are_ranges() {
        let document =
            Document::parse("<div><b>x</b><i>y</i></div><p>z", TreeLimits::default()).unwrap();
        let find = |name: &str| {
            document.all().find(|id| document.name(*id).is_some_and(|own| &**own == name)).unwrap()
        };
        let (div, bold, italic, paragraph) = (find("div"), find("b"), find("i"), find("p"));
        assert!(div < bold && bold < italic && italic < paragraph);
        assert!(document.is_inside(italic, div) && !document.is_inside(paragraph, div));
        assert_eq!(document.next_sibling(bold), Some(italic));
        assert_eq!(document.prev_sibling(paragraph), Some(div));
        assert_eq!(document.text_content(div), "xy");
        assert_eq!(document.parent(italic), Some(div));
    }

    #[test]
    fn limits_refuse_hostile_pages() {
        let limits = TreeLimits { nodes_max: 1_000, depth_max: 100, deadline: None };
        let wide = "<i>x</i>".repeat(20_000);
        assert_eq!(Document::parse(&wide, limits).unwrap_err(), TreeError::TooManyNodes(1_000));
        let deep = "<div>".repeat(500);
        assert_eq!(Document::parse(&deep, limits).unwrap_err(), TreeError::TooDeep(100));
        // Attributes are compared with each other: the cost grows with the square of their number.
        let attributes =
            (0..400_000).map(|number| format!(" a{number}")).collect::<Vec<_>>().concat();
        let deadline = Some(Instant::now() + std::time::Duration::from_millis(200));
        let limits = TreeLimits { deadline, ..TreeLimits::default() };
        let refused = Document::parse(&format!("<p{attributes}>"), limits).unwrap_err();
        assert_eq!(refused, TreeError::TooSlow);
    }
}
