//! The rules within the body: text and start tags.

use super::name::{NameId, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{Content, Mode, Parser, Step, Tag, Token};
use super::stack::{HEADING, SPECIAL};
use super::tree::Span;

/// What the start tags of the body have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Any other.
    Plain,
    Html,
    InHead,
    Body,
    Frameset,
    Block,
    Heading,
    Pre,
    Form,
    Item,
    PlainText,
    Button,
    Anchor,
    Formatting,
    Nobr,
    /// Formatting does not cross it.
    Walled,
    Table,
    Void,
    Input,
    Param,
    Rule,
    Image,
    TextArea,
    Xmp,
    Iframe,
    Noembed,
    Select,
    Option,
    OptGroup,
    Ruby,
    Foreign,
    /// Belongs into a table or before the body.
    Misplaced,
}

const fn set(all: &mut [Start; KNOWN], names: &[NameId], kind: Start) {
    let mut at = 0;
    while at < names.len() {
        all[names[at].index()] = kind;
        at += 1;
    }
}

static STARTS: [Start; KNOWN] = {
    let mut all = [Start::Plain; KNOWN];
    let blocks = [
        ADDRESS, ARTICLE, ASIDE, BLOCKQUOTE, CENTER, DETAILS, DIALOG, DIR, DIV, DL, FIELDSET,
        FIGCAPTION, FIGURE, FOOTER, HEADER, HGROUP, MAIN, MENU, NAV, OL, P, SEARCH, SECTION,
        SUMMARY, UL,
    ];
    set(&mut all, &blocks, Start::Block);
    let in_head = [BASE, BASEFONT, BGSOUND, LINK, META, NOFRAMES, SCRIPT, STYLE, TEMPLATE, TITLE];
    set(&mut all, &in_head, Start::InHead);
    set(&mut all, &[HTML], Start::Html);
    set(&mut all, &[BODY], Start::Body);
    set(&mut all, &[FRAMESET], Start::Frameset);
    set(&mut all, &[H1, H2, H3, H4, H5, H6], Start::Heading);
    set(&mut all, &[PRE, LISTING], Start::Pre);
    set(&mut all, &[FORM], Start::Form);
    set(&mut all, &[LI, DD, DT], Start::Item);
    set(&mut all, &[PLAINTEXT], Start::PlainText);
    set(&mut all, &[BUTTON], Start::Button);
    set(&mut all, &[A], Start::Anchor);
    let formatting = [B, BIG, CODE, EM, FONT, I, S, SMALL, STRIKE, STRONG, TT, U];
    set(&mut all, &formatting, Start::Formatting);
    set(&mut all, &[NOBR], Start::Nobr);
    set(&mut all, &[APPLET, MARQUEE, OBJECT], Start::Walled);
    set(&mut all, &[TABLE], Start::Table);
    set(&mut all, &[AREA, BR, EMBED, IMG, KEYGEN, WBR], Start::Void);
    set(&mut all, &[INPUT], Start::Input);
    set(&mut all, &[PARAM, SOURCE, TRACK], Start::Param);
    set(&mut all, &[HR], Start::Rule);
    set(&mut all, &[IMAGE], Start::Image);
    set(&mut all, &[TEXTAREA], Start::TextArea);
    set(&mut all, &[XMP], Start::Xmp);
    set(&mut all, &[IFRAME], Start::Iframe);
    set(&mut all, &[NOEMBED], Start::Noembed);
    set(&mut all, &[SELECT], Start::Select);
    set(&mut all, &[OPTION], Start::Option);
    set(&mut all, &[OPTGROUP], Start::OptGroup);
    set(&mut all, &[RB, RTC, RP, RT], Start::Ruby);
    set(&mut all, &[MATH, SVG], Start::Foreign);
    let misplaced = [CAPTION, COL, COLGROUP, FRAME, HEAD, TBODY, TD, TFOOT, TH, THEAD, TR];
    set(&mut all, &misplaced, Start::Misplaced);
    all
};

impl Parser<'_> {
    pub(super) fn in_body(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => {
                self.reconstruct();
                if self.frameset_ok {
                    self.frameset_ok = self.is_blank(words);
                }
                self.insert_text(words);
            }
            Token::Start(tag) => self.body_start(tag),
            Token::End(name) => return self.body_end(name),
            Token::Comment(words) => return self.insert_comment(words),
            Token::EndOfPage if !self.template_modes.is_empty() => return self.in_template(token),
            Token::Nul | Token::Doctype | Token::EndOfPage => {}
        }
        Step::Done
    }

    fn body_start(&mut self, tag: Tag) {
        let kind = STARTS.get(tag.name.index()).copied().unwrap_or(Start::Plain);
        match kind {
            Start::Plain => {
                self.reconstruct();
                self.insert_tag(tag);
            }
            Start::Block => {
                self.close_paragraph();
                self.insert_tag(tag);
            }
            Start::Anchor | Start::Formatting | Start::Nobr => self.formatting_start(kind, tag),
            Start::Void => {
                self.reconstruct();
                self.insert_void(tag);
                self.frameset_ok = false;
            }
            Start::Item => self.item_start(tag),
            Start::Heading => {
                self.close_paragraph();
                if self.stack.top().has(HEADING) {
                    self.stack.pop();
                }
                self.insert_tag(tag);
            }
            Start::InHead => {
                self.head_start(tag);
            }
            Start::Html | Start::Body | Start::Frameset => self.frame_start(kind, tag),
            Start::Form => self.form_start(tag),
            Start::Table => {
                self.close_paragraph();
                self.insert_tag(tag);
                self.frameset_ok = false;
                self.mode = Mode::InTable;
            }
            Start::Walled => {
                self.reconstruct();
                self.insert_tag(tag);
                self.formatting.push_marker();
                self.frameset_ok = false;
            }
            Start::Param => self.insert_void(tag),
            Start::Image => self.body_start(Tag { name: IMG, ..tag }),
            Start::Ruby => self.ruby_start(tag),
            Start::Foreign => {
                self.reconstruct();
                let is_svg = tag.name == SVG;
                self.insert_foreign(tag, if is_svg { Namespace::SVG } else { Namespace::MATHML });
            }
            Start::Misplaced => {}
            Start::Pre | Start::PlainText => self.pre_start(kind, tag),
            Start::TextArea | Start::Xmp | Start::Iframe | Start::Noembed => {
                self.raw_start(kind, tag);
            }
            Start::Button | Start::Input | Start::Rule | Start::Select => {
                self.control_start(kind, tag);
            }
            Start::Option | Start::OptGroup => self.option_start(kind, tag),
        }
    }

    /// Closes a paragraph that is open, but not across a button.
    pub(super) fn close_paragraph(&mut self) {
        if self.stack.is_on(P) {
            self.stack.pop();
        } else if self.stack.paragraph_in_button_scope() {
            self.stack.pop_through(P);
        }
    }

    fn formatting_start(&mut self, kind: Start, tag: Tag) {
        if kind == Start::Anchor
            && let Some(node) = self.listed(A)
        {
            self.end_formatting(A);
            self.forget(node);
        }
        self.reconstruct();
        if kind == Start::Nobr && self.stack.in_scope(NOBR) {
            self.end_formatting(NOBR);
            self.reconstruct();
        }
        self.insert_formatting(tag.name, tag.attributes);
    }

    fn item_start(&mut self, tag: Tag) {
        self.frameset_ok = false;
        let is_mate = |name: NameId| match tag.name {
            LI => name == LI,
            _ => matches!(name, DD | DT),
        };
        let mut mate = None;
        for open in self.stack.open.iter().rev() {
            if is_mate(open.name) && open.is(open.name) {
                mate = Some(open.name);
                break;
            }
            let is_passed = open.is(ADDRESS) || open.is(DIV) || open.is(P);
            if open.has(SPECIAL) && !is_passed {
                break;
            }
        }
        if let Some(name) = mate {
            self.stack.pop_through(name);
        }
        self.close_paragraph();
        self.insert_tag(tag);
    }

    fn frame_start(&mut self, kind: Start, tag: Tag) {
        let is_second = self.stack.open.get(1).is_some_and(|open| open.is(BODY));
        match kind {
            Start::Html => {
                if !self.stack.has_template() {
                    self.add_late(0, tag.attributes);
                }
            }
            Start::Body => {
                if is_second && !self.stack.has_template() {
                    self.frameset_ok = false;
                    self.add_late(1, tag.attributes);
                }
            }
            _ => {
                if is_second && self.frameset_ok {
                    let body = self.stack.open[1].node;
                    self.tree.detach(body);
                    self.stack.truncate(1);
                    self.insert_tag(tag);
                    self.mode = Mode::InFrameset;
                }
            }
        }
    }

    fn add_late(&mut self, at: usize, attributes: Span) {
        if let Some(open) = self.stack.open.get(at) {
            self.late.add(&self.tree, open.node, attributes);
        }
    }

    fn form_start(&mut self, tag: Tag) {
        let in_template = self.stack.has_template();
        if self.form != super::NONE && !in_template {
            return;
        }
        self.close_paragraph();
        let form = self.insert_tag(tag);
        if !in_template {
            self.form = form;
        }
    }

    fn ruby_start(&mut self, tag: Tag) {
        if self.stack.in_scope(RUBY) {
            match tag.name {
                RB | RTC => self.stack.imply_ends(),
                _ => self.stack.imply_ends_except(RTC),
            }
        }
        self.insert_tag(tag);
    }

    fn pre_start(&mut self, kind: Start, tag: Tag) {
        self.close_paragraph();
        self.insert_tag(tag);
        if kind == Start::PlainText {
            self.content = Content::Plain;
            return;
        }
        self.skips_line_feed = true;
        self.frameset_ok = false;
    }

    fn raw_start(&mut self, kind: Start, tag: Tag) {
        if kind == Start::Xmp {
            self.close_paragraph();
            self.reconstruct();
        }
        self.frameset_ok &= kind == Start::Noembed;
        self.skips_line_feed = kind == Start::TextArea;
        let content = if kind == Start::TextArea { Content::Escapable } else { Content::Raw };
        self.insert_raw(tag, content);
    }

    fn control_start(&mut self, kind: Start, tag: Tag) {
        match kind {
            Start::Button => {
                if self.stack.in_scope(BUTTON) {
                    self.stack.pop_through(BUTTON);
                }
            }
            Start::Rule => {
                self.close_paragraph();
                if self.stack.in_scope(SELECT) {
                    self.stack.imply_ends();
                }
                self.insert_void(tag);
                self.frameset_ok = false;
                return;
            }
            Start::Input => {
                if self.stack.in_scope(SELECT) {
                    self.stack.pop_through(SELECT);
                }
                self.reconstruct();
                self.frameset_ok &= self.is_hidden(tag);
                self.insert_void(tag);
                return;
            }
            _ => {
                if self.stack.in_scope(SELECT) {
                    self.stack.pop_through(SELECT);
                    return;
                }
            }
        }
        self.reconstruct();
        self.insert_tag(tag);
        self.frameset_ok = false;
    }

    /// Whether an `<input>` is not to be seen.
    pub(super) fn is_hidden(&self, tag: Tag) -> bool {
        self.attribute(tag, TYPE).is_some_and(|kind| kind.eq_ignore_ascii_case(b"hidden"))
    }

    fn option_start(&mut self, kind: Start, tag: Tag) {
        if self.stack.in_scope(SELECT) {
            match kind {
                Start::Option => self.stack.imply_ends_except(OPTGROUP),
                _ => self.stack.imply_ends(),
            }
        } else if self.stack.is_on(OPTION) {
            self.stack.pop();
        }
        self.reconstruct();
        self.insert_tag(tag);
    }
}
