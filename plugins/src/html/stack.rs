//! The stack of open elements, and what the standard says of each kind of element.

use super::NONE;
use super::name::{NameId, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;

/// What an open element is, as bits.
pub(super) type ElementFlags = u32;

/// In the namespace of HTML.
pub(super) const IS_HTML: ElementFlags = 1;
/// In the namespace of SVG.
pub(super) const IS_SVG: ElementFlags = 1 << 1;
/// "Special": it stops the search for a mate of an end tag.
pub(super) const SPECIAL: ElementFlags = 1 << 2;
/// Ends a scope.
pub(super) const SCOPE: ElementFlags = 1 << 3;
/// Ends a button scope besides.
pub(super) const BUTTON_SCOPE: ElementFlags = 1 << 4;
/// Ends a list item scope besides.
pub(super) const LIST_SCOPE: ElementFlags = 1 << 5;
/// Ends a table scope.
pub(super) const TABLE_SCOPE: ElementFlags = 1 << 6;
/// What a row group is put into.
pub(super) const BODY_CONTEXT: ElementFlags = 1 << 7;
/// What a cell is put into.
pub(super) const ROW_CONTEXT: ElementFlags = 1 << 8;
/// Its end tag may be left out.
pub(super) const IMPLIED: ElementFlags = 1 << 9;
/// Its end tag may be left out at the end of a template.
pub(super) const IMPLIED_THOROUGHLY: ElementFlags = 1 << 10;
/// `h1` to `h6`.
pub(super) const HEADING: ElementFlags = 1 << 11;
/// What is put into it by mistake goes before the table.
pub(super) const FOSTERS: ElementFlags = 1 << 12;
/// May be in the list of formatting elements.
pub(super) const FORMATTING: ElementFlags = 1 << 13;
/// An element of MathML that holds text.
pub(super) const TEXT_POINT: ElementFlags = 1 << 14;
/// A foreign element that holds HTML.
pub(super) const HTML_POINT: ElementFlags = 1 << 15;
/// `annotation-xml`.
pub(super) const ANNOTATION: ElementFlags = 1 << 16;

const fn mark(all: &mut [ElementFlags; KNOWN], names: &[NameId], flags: ElementFlags) {
    let mut at = 0;
    while at < names.len() {
        all[names[at].index()] |= flags;
        at += 1;
    }
}

/// ElementFlags of HTML elements by name.
static HTML_FLAGS: [ElementFlags; KNOWN] = {
    let mut all = [IS_HTML; KNOWN];
    let special = [
        ADDRESS, APPLET, AREA, ARTICLE, ASIDE, BASE, BASEFONT, BGSOUND, BLOCKQUOTE, BODY, BR,
        BUTTON, CAPTION, CENTER, COL, COLGROUP, DD, DETAILS, DIR, DIV, DL, DT, EMBED, FIELDSET,
        FIGCAPTION, FIGURE, FOOTER, FORM, FRAME, FRAMESET, H1, H2, H3, H4, H5, H6, HEAD, HEADER,
        HGROUP, HR, HTML, IFRAME, IMG, INPUT, KEYGEN, LI, LINK, LISTING, MAIN, MARQUEE, MENU, META,
        NAV, NOEMBED, NOFRAMES, NOSCRIPT, OBJECT, OL, P, PARAM, PLAINTEXT, PRE, SCRIPT, SEARCH,
        SECTION, SELECT, SOURCE, STYLE, SUMMARY, TABLE, TBODY, TD, TEMPLATE, TEXTAREA, TFOOT, TH,
        THEAD, TITLE, TR, TRACK, UL, WBR, XMP,
    ];
    mark(&mut all, &special, SPECIAL);
    let scope = [APPLET, CAPTION, HTML, TABLE, TD, TH, MARQUEE, OBJECT, SELECT, TEMPLATE];
    mark(&mut all, &scope, SCOPE);
    mark(&mut all, &[BUTTON], BUTTON_SCOPE);
    mark(&mut all, &[OL, UL], LIST_SCOPE);
    mark(&mut all, &[HTML, TABLE, TEMPLATE], TABLE_SCOPE);
    mark(&mut all, &[TBODY, TFOOT, THEAD, TEMPLATE, HTML], BODY_CONTEXT);
    mark(&mut all, &[TR, TEMPLATE, HTML], ROW_CONTEXT);
    let implied = [DD, DT, LI, OPTGROUP, OPTION, P, RB, RP, RT, RTC];
    mark(&mut all, &implied, IMPLIED | IMPLIED_THOROUGHLY);
    let thoroughly = [CAPTION, COLGROUP, TBODY, TD, TFOOT, TH, THEAD, TR];
    mark(&mut all, &thoroughly, IMPLIED_THOROUGHLY);
    mark(&mut all, &[H1, H2, H3, H4, H5, H6], HEADING);
    mark(&mut all, &[TABLE, TBODY, TFOOT, THEAD, TR], FOSTERS);
    let formatting = [A, B, BIG, CODE, EM, FONT, I, NOBR, S, SMALL, STRIKE, STRONG, TT, U];
    mark(&mut all, &formatting, FORMATTING);
    all
};

/// What an element of this name is. Whether `annotation-xml` holds HTML depends on its attributes.
pub(super) fn flags_of(name: NameId, namespace: Namespace) -> ElementFlags {
    match namespace {
        Namespace::HTML => HTML_FLAGS.get(name.index()).copied().unwrap_or(IS_HTML),
        Namespace::SVG => match name.lower() {
            FOREIGN_OBJECT | DESC | TITLE => IS_SVG | SPECIAL | SCOPE | HTML_POINT,
            _ => IS_SVG,
        },
        _ => match name {
            MI | MO | MN | MS | MTEXT => SPECIAL | SCOPE | TEXT_POINT,
            ANNOTATION_XML => SPECIAL | SCOPE | ANNOTATION,
            _ => 0,
        },
    }
}

/// An open element.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenElement {
    pub(super) node: u32,
    pub(super) name: NameId,
    pub(super) flags: ElementFlags,
}

impl OpenElement {
    /// Whether it is the HTML element of this name.
    pub(super) fn is(&self, name: NameId) -> bool {
        self.name == name && self.flags & IS_HTML != 0
    }

    pub(super) fn has(&self, any_of: ElementFlags) -> bool {
        self.flags & any_of != 0
    }
}

/// The stack of open elements.
#[derive(Debug, Default)]
pub(super) struct ElementStack {
    pub(super) open: Vec<OpenElement>,
    /// How many paragraphs are open: most block elements ask for one.
    paragraphs: u32,
    templates: u32,
}

impl ElementStack {
    pub(super) fn push(&mut self, open: OpenElement) {
        self.count(open, 1);
        self.open.push(open);
    }

    fn count(&mut self, open: OpenElement, by: u32) {
        if open.is(P) {
            self.paragraphs = self.paragraphs.wrapping_add(by);
        } else if open.is(TEMPLATE) {
            self.templates = self.templates.wrapping_add(by);
        }
    }

    pub(super) fn pop(&mut self) {
        if let Some(open) = self.open.pop() {
            self.count(open, u32::MAX);
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        while self.open.len() > len {
            self.pop();
        }
    }

    pub(super) fn remove(&mut self, at: usize) {
        let open = self.open.remove(at);
        self.count(open, u32::MAX);
    }

    pub(super) fn insert(&mut self, at: usize, open: OpenElement) {
        self.count(open, 1);
        self.open.insert(at, open);
    }

    /// The current node. Before the first element there is none.
    pub(super) fn top(&self) -> OpenElement {
        const NOTHING: OpenElement =
            OpenElement { node: 0, name: NameId::from_raw(NONE), flags: IS_HTML };
        self.open.last().copied().unwrap_or(NOTHING)
    }

    /// Whether the current node is the HTML element of this name.
    pub(super) fn is_on(&self, name: NameId) -> bool {
        self.top().is(name)
    }

    pub(super) fn position(&self, node: u32) -> Option<usize> {
        self.open.iter().rposition(|open| open.node == node)
    }

    /// Whether such an element is open with no end of scope between.
    pub(super) fn scope_has(&self, is: impl Fn(&OpenElement) -> bool, ends: ElementFlags) -> bool {
        for open in self.open.iter().rev() {
            if is(open) {
                return true;
            }
            if open.has(ends) {
                return false;
            }
        }
        false
    }

    pub(super) fn in_scope(&self, name: NameId) -> bool {
        self.scope_has(|open| open.is(name), SCOPE)
    }

    pub(super) fn in_table_scope(&self, name: NameId) -> bool {
        self.scope_has(|open| open.is(name), TABLE_SCOPE)
    }

    pub(super) fn paragraph_in_button_scope(&self) -> bool {
        self.paragraphs > 0 && self.scope_has(|open| open.is(P), SCOPE | BUTTON_SCOPE)
    }

    pub(super) fn has_template(&self) -> bool {
        self.templates > 0
    }

    /// Closes elements until one of this name is closed.
    pub(super) fn pop_through(&mut self, name: NameId) {
        self.pop_through_where(|open| open.is(name));
    }

    pub(super) fn pop_through_where(&mut self, is: impl Fn(&OpenElement) -> bool) {
        let at = self.open.iter().rposition(is).unwrap_or(0);
        self.truncate(at);
    }

    /// Closes elements until the current node has one of these flags.
    pub(super) fn pop_to(&mut self, any_of: ElementFlags) {
        while !self.open.is_empty() && !self.top().has(any_of) {
            self.pop();
        }
    }

    /// Closes the elements whose end tags may be left out.
    pub(super) fn imply_ends(&mut self) {
        self.pop_while(|open| open.has(IMPLIED));
    }

    pub(super) fn imply_ends_except(&mut self, name: NameId) {
        self.pop_while(|open| open.has(IMPLIED) && open.name != name);
    }

    pub(super) fn imply_ends_thoroughly(&mut self) {
        self.pop_while(|open| open.has(IMPLIED_THOROUGHLY));
    }

    fn pop_while(&mut self, is: impl Fn(&OpenElement) -> bool) {
        while !self.open.is_empty() && is(&self.top()) {
            self.pop();
        }
    }
}
