//! html5ever as an independent reference for our parser: its tree, printed in the same format as
//! ours.

use std::borrow::Cow;
use std::cell::{Ref, RefCell};
use std::fmt::Write;

use html5ever::buffer_queue::BufferQueue;
use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, LocalName, Namespace, QualName, TokenizerResult};

const NONE: u32 = u32::MAX;

/// Parses with html5ever, never in quirks mode, and with jsoup's rules if `jsoup`.
pub(super) fn parse(html: &str, jsoup: bool) -> ReferenceTree {
    let options =
        TreeBuilderOpts { scripting_enabled: false, iframe_srcdoc: true, ..Default::default() };
    let builder = TreeBuilder::new(ReferenceSink::default(), options);
    let tokenizer = Tokenizer::new(JsoupTokenFilter { builder, jsoup }, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The tokenizer returns at the end of each script so that the caller can run it. We run none.
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    tokenizer.sink.builder.sink.finish()
}

/// A filter between tokenizer and tree builder that makes html5ever follow jsoup where that differs
/// from the standard.
struct JsoupTokenFilter {
    builder: TreeBuilder<u32, ReferenceSink>,
    jsoup: bool,
}

impl TokenSink for JsoupTokenFilter {
    type Handle = u32;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<u32> {
        match token {
            Token::TagToken(tag) if self.jsoup && closes_itself(&tag) => {
                let end = Tag {
                    kind: TagKind::EndTag,
                    name: tag.name.clone(),
                    self_closing: false,
                    attrs: Vec::new(),
                    had_duplicate_attributes: false,
                };
                let start = Tag { self_closing: false, ..tag };
                // The result asks for a tokenizer state, which the end tag makes obsolete.
                drop(self.builder.process_token(Token::TagToken(start), line));
                drop(self.builder.process_token(Token::TagToken(end), line));
                TokenSinkResult::Continue
            }
            other => self.builder.process_token(other, line),
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        // Decides whether `<![CDATA[...]]>` is text. For jsoup it always is.
        self.jsoup || self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

fn closes_itself(tag: &Tag) -> bool {
    const OTHERS: [&str; 24] = [
        "area", "base", "basefont", "bgsound", "body", "br", "col", "command", "embed", "frame",
        "frameset", "head", "hr", "html", "image", "img", "input", "keygen", "link", "meta",
        "param", "source", "track", "wbr",
    ];
    tag.kind == TagKind::StartTag && tag.self_closing && !OTHERS.contains(&&*tag.name)
}

#[derive(Debug)]
enum ReferenceContent {
    Document,
    Doctype,
    Element(QualName, Vec<Attribute>),
    Text(StrTendril),
    Comment(StrTendril),
}

#[derive(Debug)]
struct ReferenceNode {
    content: ReferenceContent,
    parent: u32,
    prev: u32,
    next: u32,
    first: u32,
    last: u32,
}

/// The tree that html5ever builds.
#[derive(Debug)]
pub(super) struct ReferenceTree {
    nodes: Vec<ReferenceNode>,
    /// `annotation-xml` elements that contain HTML.
    html_inside: Vec<u32>,
}

impl ReferenceTree {
    fn add(&mut self, content: ReferenceContent) -> u32 {
        let (parent, prev, next, first, last) = (NONE, NONE, NONE, NONE, NONE);
        self.nodes.push(ReferenceNode { content, parent, prev, next, first, last });
        self.nodes.len() as u32 - 1
    }

    /// Number of nodes that were created, detached ones included.
    #[allow(dead_code)] // Only the example `html_speed` calls it.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn at(&mut self, id: u32) -> &mut ReferenceNode {
        &mut self.nodes[id as usize]
    }

    fn detach(&mut self, id: u32) {
        let ReferenceNode { parent, prev, next, .. } = *self.at(id);
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
        let node = self.at(child);
        (node.parent, node.prev, node.next) = (parent, last, NONE);
        if last == NONE {
            self.at(parent).first = child;
        } else {
            self.at(last).next = child;
        }
        self.at(parent).last = child;
    }

    fn insert_before(&mut self, sibling: u32, child: u32) {
        self.detach(child);
        let ReferenceNode { parent, prev, .. } = *self.at(sibling);
        let node = self.at(child);
        (node.parent, node.prev, node.next) = (parent, prev, sibling);
        self.at(sibling).prev = child;
        if prev == NONE {
            self.at(parent).first = child;
        } else {
            self.at(prev).next = child;
        }
    }

    /// Appends `words` to the node `id` if that is a text.
    fn join(&mut self, id: u32, words: &StrTendril) -> bool {
        if id == NONE {
            return false;
        }
        match &mut self.at(id).content {
            ReferenceContent::Text(text) => {
                text.push_tendril(words);
                true
            }
            _ => false,
        }
    }

    /// One line for each node and each attribute, starting with its depth.
    #[allow(dead_code)] // Only the tests call it.
    pub(super) fn dump(&self) -> String {
        let mut out = String::new();
        let (mut at, mut depth) = (0, 0);
        loop {
            let node = &self.nodes[at as usize];
            match &node.content {
                ReferenceContent::Document => {}
                ReferenceContent::Doctype => writeln!(out, "{depth} doctype").unwrap(),
                ReferenceContent::Text(words) => {
                    writeln!(out, "{depth} text {:?}", &**words).unwrap();
                }
                ReferenceContent::Comment(words) => {
                    writeln!(out, "{depth} comment {:?}", &**words).unwrap();
                }
                ReferenceContent::Element(name, attributes) => {
                    writeln!(out, "{depth} {} {}", &*name.ns, &*name.local).unwrap();
                    for attribute in attributes {
                        let prefix = attribute.name.prefix.as_deref().unwrap_or_default();
                        let colon = if prefix.is_empty() { "" } else { ":" };
                        let local = &*attribute.name.local;
                        let value = &*attribute.value;
                        writeln!(out, "{depth} {prefix}{colon}{local}={value:?}").unwrap();
                    }
                }
            }
            if node.first != NONE {
                (at, depth) = (node.first, depth + 1);
                continue;
            }
            while self.nodes[at as usize].next == NONE {
                at = self.nodes[at as usize].parent;
                if at == NONE {
                    return out;
                }
                depth -= 1;
            }
            at = self.nodes[at as usize].next;
        }
    }
}

#[derive(Debug)]
struct ReferenceSink {
    // The tree builder calls the sink by shared reference, one call at a time.
    tree: RefCell<ReferenceTree>,
}

impl Default for ReferenceSink {
    fn default() -> Self {
        let mut tree = ReferenceTree { nodes: Vec::with_capacity(1024), html_inside: Vec::new() };
        tree.add(ReferenceContent::Document);
        Self { tree: RefCell::new(tree) }
    }
}

#[derive(Debug)]
struct ReferenceName<'a>(Ref<'a, QualName>);

impl ElemName for ReferenceName<'_> {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl TreeSink for ReferenceSink {
    type Handle = u32;
    type Output = ReferenceTree;
    type ElemName<'a> = ReferenceName<'a>;

    fn finish(self) -> ReferenceTree {
        self.tree.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> u32 {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a u32) -> ReferenceName<'a> {
        ReferenceName(Ref::map(self.tree.borrow(), |tree| {
            match &tree.nodes[*target as usize].content {
                ReferenceContent::Element(name, _) => name,
                other => {
                    unreachable!("html5ever asks for the name of {other:?}, which is no element")
                }
            }
        }))
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> u32 {
        let mut tree = self.tree.borrow_mut();
        let id = tree.add(ReferenceContent::Element(name, attrs));
        if flags.mathml_annotation_xml_integration_point {
            tree.html_inside.push(id);
        }
        id
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &u32) -> bool {
        self.tree.borrow().html_inside.contains(target)
    }

    fn create_comment(&self, text: StrTendril) -> u32 {
        self.tree.borrow_mut().add(ReferenceContent::Comment(text))
    }

    fn create_pi(&self, target: StrTendril, _: StrTendril) -> u32 {
        self.tree.borrow_mut().add(ReferenceContent::Comment(target))
    }

    fn append(&self, parent: &u32, child: NodeOrText<u32>) {
        let mut tree = self.tree.borrow_mut();
        match child {
            NodeOrText::AppendNode(node) => tree.append(*parent, node),
            NodeOrText::AppendText(words) => {
                let last = tree.at(*parent).last;
                if !tree.join(last, &words) {
                    let text = tree.add(ReferenceContent::Text(words));
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
        let doctype = tree.add(ReferenceContent::Doctype);
        tree.append(0, doctype);
    }

    // The contents of a template are ordinary children, as in jsoup.
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
                    let text = tree.add(ReferenceContent::Text(words));
                    tree.insert_before(*sibling, text);
                }
            }
        }
    }

    fn add_attrs_if_missing(&self, target: &u32, attrs: Vec<Attribute>) {
        let mut tree = self.tree.borrow_mut();
        if let ReferenceContent::Element(_, own) = &mut tree.at(*target).content {
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
