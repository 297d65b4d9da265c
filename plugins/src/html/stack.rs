//! The stack of open elements, and the sets of elements that the standard's rules mention.

use super::NONE;
use super::name::{NameId, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;

/// The sets an element is in, as bits.
pub(super) type ElementFlags = u32;

/// Elements in the namespace of HTML.
pub(super) const IS_HTML: ElementFlags = 1;
/// Elements in the namespace of SVG.
pub(super) const IS_SVG: ElementFlags = 1 << 1;
/// "Special" elements, which end the search for the start of an end tag.
pub(super) const SPECIAL: ElementFlags = 1 << 2;
/// Elements that end the search of "has an element in scope".
pub(super) const SCOPE: ElementFlags = 1 << 3;
/// Further elements that end the search of "has an element in button scope".
pub(super) const BUTTON_SCOPE: ElementFlags = 1 << 4;
/// Further elements that end the search of "has an element in list item scope".
pub(super) const LIST_SCOPE: ElementFlags = 1 << 5;
/// Elements that end the search of "has an element in table scope".
pub(super) const TABLE_SCOPE: ElementFlags = 1 << 6;
/// "Clear the stack back to a table body context" stops at them.
pub(super) const BODY_CONTEXT: ElementFlags = 1 << 7;
/// "Clear the stack back to a table row context" stops at them.
pub(super) const ROW_CONTEXT: ElementFlags = 1 << 8;
/// "Generate implied end tags" closes them.
pub(super) const IMPLIED: ElementFlags = 1 << 9;
/// "Generate all implied end tags thoroughly" closes them.
pub(super) const IMPLIED_THOROUGHLY: ElementFlags = 1 << 10;
/// `h1` to `h6`.
pub(super) const HEADING: ElementFlags = 1 << 11;
/// Content that may not be inside is inserted before the table ("foster parenting").
pub(super) const FOSTERS: ElementFlags = 1 << 12;
/// "Formatting" elements, which are kept in the list of active formatting elements.
pub(super) const FORMATTING: ElementFlags = 1 << 13;
/// "MathML text integration points": elements of MathML that contain text.
pub(super) const TEXT_POINT: ElementFlags = 1 << 14;
/// "HTML integration points": foreign elements that contain HTML.
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

/// The sets of each known HTML element, by number of its name.
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

/// The sets of an element. The caller adds [`HTML_POINT`] to an `annotation-xml` whose attributes
/// ask for it.
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

/// The stack of open elements. It counts paragraphs and templates, because rules ask for them
/// often.
#[derive(Debug, Default)]
pub(super) struct ElementStack {
    pub(super) open: Vec<OpenElement>,
    /// Number of open `<p>` elements.
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

    /// The current node. Before the first element, a placeholder that is in no set but [`IS_HTML`].
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

    /// Whether an element that `is` accepts is open, with no element of the set `ends` above it.
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

    /// Closes elements up to and including the last one with this name.
    pub(super) fn pop_through(&mut self, name: NameId) {
        self.pop_through_where(|open| open.is(name));
    }

    pub(super) fn pop_through_where(&mut self, is: impl Fn(&OpenElement) -> bool) {
        let at = self.open.iter().rposition(is).unwrap_or(0);
        self.truncate(at);
    }

    /// Closes elements until the current node is in one of these sets.
    pub(super) fn pop_to(&mut self, any_of: ElementFlags) {
        while !self.open.is_empty() && !self.top().has(any_of) {
            self.pop();
        }
    }

    /// "Generate implied end tags."
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
