//! The text of elements, with white space normalized like jsoup does.

use crate::html::{Document, LocalName, NodeId, NodeKind};

/// Levels above a text in which `<pre>` and similar tags keep its white space.
const KEEPING_LEVELS_MAX: usize = 5;

/// The text of the text nodes directly below `element`, normalized. `<br>` counts as a space.
///
/// For a text node, which `:matchText` can find, it is the text itself.
pub(crate) fn own_text(document: &Document, element: NodeId) -> String {
    let mut own = Normaliser::new(false);
    own_text_into(document, element, &mut own);
    trimmed(&own.out).to_owned()
}

/// All text in `element`, normalized, with a space at `<br>` and between block elements.
///
/// ```
/// use spoonbill_plugins::css::text;
/// use spoonbill_plugins::html::{Document, TreeLimits};
///
/// let page = Document::parse("<div>A<p>cat</p>sat</div>", TreeLimits::default())?;
/// assert_eq!(text(&page, page.root()), "A cat sat");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn text(document: &Document, element: NodeId) -> String {
    let mut walk = VisibleText::new(document, false);
    walk.head(element);
    for node in document.descendants(element) {
        walk.leave_before(node, |_, _| {});
        walk.head(node);
    }
    trimmed(&walk.normal.out).to_owned()
}

/// Removes the characters at both ends that Java's `trim` removes.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

pub(super) fn own_text_into(document: &Document, element: NodeId, own: &mut Normaliser) {
    own.out.clear();
    if document.kind(element) == NodeKind::Text {
        own.push_node(document, element);
        return;
    }
    for child in document.children(element) {
        match document.kind(child) {
            NodeKind::Text => own.push_node(document, child),
            NodeKind::Element if is_break(document, child) => own.space(),
            _ => {}
        }
    }
}

/// Folds to lower case, character by character: the result does not depend on the position in a
/// word.
pub(super) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_folded(&mut out, c));
    out
}

fn push_folded(out: &mut String, c: char) {
    if c.is_ascii() {
        out.push(c.to_ascii_lowercase());
        return;
    }
    for lower in c.to_lowercase() {
        // Lower case has another sigma at the end of a word. Here both are the same letter.
        out.push(if lower == 'ς' { 'σ' } else { lower });
    }
}

/// Collects texts and normalizes their white space.
#[derive(Debug, Default)]
pub(super) struct Normaliser {
    pub(super) out: String,
    folds: bool,
}

impl Normaliser {
    pub(super) fn new(folds: bool) -> Self {
        Self { out: String::new(), folds }
    }

    pub(super) fn set_folds(&mut self, folds: bool) {
        self.folds = folds;
    }

    fn push(&mut self, c: char) {
        if self.folds {
            push_folded(&mut self.out, c);
        } else {
            self.out.push(c);
        }
    }

    fn space(&mut self) {
        if !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    fn push_node(&mut self, document: &Document, node: NodeId) {
        if is_data(document, node) {
            return;
        }
        let words = document.text(node).unwrap_or_default();
        if keeps_space(document, node) {
            words.chars().for_each(|c| self.push(c));
            return;
        }
        let mut rest = words;
        while let Some(first) = rest.chars().next() {
            // Most text is ASCII without spaces, which is copied in one piece.
            let plain = rest.bytes().take_while(|byte| matches!(byte, 0x21..0x7f)).count();
            if plain > 0 && !self.folds {
                self.out.push_str(&rest[..plain]);
                rest = &rest[plain..];
                continue;
            }
            match first {
                ' ' | '\t' | '\n' | '\x0c' | '\r' | '\u{a0}' => self.space(),
                // Zero-width spaces and soft hyphens are dropped, and white space around them is
                // one space.
                '\u{200b}' | '\u{ad}' => {}
                _ => self.push(first),
            }
            rest = &rest[first.len_utf8()..];
        }
    }
}

/// Whether a text node is the content of a script or style.
pub(super) fn is_data(document: &Document, text: NodeId) -> bool {
    document
        .parent(text)
        .and_then(|parent| document.name(parent))
        .is_some_and(|name| *name == LocalName::SCRIPT || *name == LocalName::STYLE)
}

fn is_break(document: &Document, node: NodeId) -> bool {
    document.name(node) == Some(&LocalName::BR)
}

fn keeps_space(document: &Document, text: NodeId) -> bool {
    std::iter::successors(document.parent(text), |node| document.parent(*node))
        .take(1 + KEEPING_LEVELS_MAX)
        .filter_map(|node| document.name(node))
        .any(|name| {
            [LocalName::PRE, LocalName::PLAINTEXT, LocalName::TITLE, LocalName::TEXTAREA]
                .contains(name)
        })
}

/// The texts of all elements, as slices of one string.
///
/// The text of an element is what a walk over the page adds between entering and leaving it. White
/// space at its ends may differ, but callers trim it. So memory grows with the page, not with the
/// page times its depth.
#[derive(Debug)]
pub(super) struct TextIndex {
    pub(super) text: String,
    /// By node: start and end in `text`, before trimming.
    spans: Vec<(u32, u32)>,
}

impl TextIndex {
    /// All visible text; `folds` converts it to lower case.
    pub(super) fn whole(document: &Document, folds: bool) -> Self {
        let mut spans = vec![(0, 0); document.len()];
        let mut walk = VisibleText::new(document, folds);
        for node in document.all() {
            walk.leave_before(node, |left, end| spans[left.index()].1 = end);
            walk.head(node);
            // This span is final for a text node. For an element, the end is set when the walk
            // leaves it.
            spans[node.index()] = (walk.started as u32, walk.normal.out.len() as u32);
        }
        walk.leave_all(|left, end| spans[left.index()].1 = end);
        Self { text: walk.normal.out, spans }
    }

    /// Scripts, styles and comments, in lower case.
    pub(super) fn data(document: &Document) -> Self {
        let mut starts = Vec::with_capacity(document.len());
        let mut out = String::new();
        for node in document.all() {
            starts.push(out.len() as u32);
            let is_wanted = match document.kind(node) {
                NodeKind::Comment => true,
                NodeKind::Text => is_data(document, node),
                _ => false,
            };
            if is_wanted {
                let words = document.text(node).unwrap_or_default();
                words.chars().for_each(|c| push_folded(&mut out, c));
            }
        }
        let spans = document
            .all()
            .map(|node| {
                let end = document
                    .after_subtree(node)
                    .map_or(out.len() as u32, |after| starts[after.index()]);
                (starts[node.index()], end)
            })
            .collect();
        Self { text: out, spans }
    }

    /// Start and end of the text of `node`.
    pub(super) fn span(&self, node: NodeId) -> (usize, usize) {
        let (start, end) = self.spans[node.index()];
        (start as usize, end as usize)
    }

    /// Start and end of the trimmed text of `node`.
    pub(super) fn trimmed_span(&self, node: NodeId) -> (usize, usize) {
        let (start, end) = self.span(node);
        let bytes = &self.text.as_bytes()[start..end];
        let lead = bytes.iter().take_while(|byte| **byte <= b' ').count();
        let trail = bytes[lead..].iter().rev().take_while(|byte| **byte <= b' ').count();
        (start + lead, end - trail)
    }
}

/// A walk over a page that collects its visible text.
struct VisibleText<'a> {
    document: &'a Document,
    normal: Normaliser,
    open: Vec<NodeId>,
    /// Start of the node that was entered last.
    started: usize,
}

impl<'a> VisibleText<'a> {
    fn new(document: &'a Document, folds: bool) -> Self {
        Self { document, normal: Normaliser::new(folds), open: Vec::new(), started: 0 }
    }

    fn head(&mut self, node: NodeId) {
        let kind = self.document.kind(node);
        let is_element = kind == NodeKind::Element;
        if is_element
            && !self.normal.out.is_empty()
            && (is_block(self.document, node) || is_break(self.document, node))
        {
            self.normal.space();
        }
        self.started = self.normal.out.len();
        if kind == NodeKind::Text {
            self.normal.push_node(self.document, node);
        } else if is_element || kind == NodeKind::Document {
            self.open.push(node);
        }
    }

    /// Leaves the elements that end before `node`. Calls `left` for each, with the end of its text.
    fn leave_before(&mut self, node: NodeId, mut left: impl FnMut(NodeId, u32)) {
        while let Some(last) = self.open.last().copied() {
            if self.document.is_inside(node, last) {
                break;
            }
            self.open.pop();
            self.tail(last, &mut left);
        }
    }

    fn leave_all(&mut self, mut left: impl FnMut(NodeId, u32)) {
        while let Some(last) = self.open.pop() {
            self.tail(last, &mut left);
        }
    }

    fn tail(&mut self, node: NodeId, left: &mut impl FnMut(NodeId, u32)) {
        left(node, self.normal.out.len() as u32);
        let meets_text = self.document.next_sibling(node).is_some_and(|next| {
            self.document.kind(next) == NodeKind::Text && !is_data(self.document, next)
        });
        if meets_text && is_block(self.document, node) {
            self.normal.space();
        }
    }
}

fn is_block(document: &Document, node: NodeId) -> bool {
    document.name(node).is_some_and(is_block_name)
}

/// The tags that jsoup treats as blocks.
fn is_block_name(name: &LocalName) -> bool {
    matches!(
        &**name,
        "address"
            | "article"
            | "aside"
            | "audio"
            | "blockquote"
            | "body"
            | "canvas"
            | "caption"
            | "center"
            | "col"
            | "colgroup"
            | "dd"
            | "del"
            | "details"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "frame"
            | "frameset"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "head"
            | "header"
            | "hgroup"
            | "hr"
            | "html"
            | "ins"
            | "li"
            | "link"
            | "main"
            | "math"
            | "menu"
            | "meta"
            | "nav"
            | "noframes"
            | "noscript"
            | "ol"
            | "p"
            | "plaintext"
            | "pre"
            | "script"
            | "section"
            | "style"
            | "svg"
            | "table"
            | "tbody"
            | "td"
            | "template"
            | "tfoot"
            | "th"
            | "thead"
            | "title"
            | "tr"
            | "ul"
            | "video"
    )
}
