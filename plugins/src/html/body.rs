//! The insertion mode "in body": text and start tags.

use super::name::{NameId, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{HtmlParser, HtmlToken, InsertionMode, RuleOutcome, TagToken, TokenizerState};
use super::stack::{HEADING, SPECIAL};
use super::tree::Range32;

/// The rules for start tags. Each has a list of element names in [`STARTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyStartRule {
    /// Any other start tag.
    Ordinary,
    Html,
    InHead,
    Body,
    Frameset,
    Block,
    Heading,
    Pre,
    Form,
    ListItem,
    PlainText,
    Button,
    Anchor,
    Formatting,
    Nobr,
    /// `<object>` and others, which put a marker into the list of active formatting elements.
    WithMarker,
    Table,
    Void,
    Input,
    Param,
    HorizontalRule,
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
    /// Ignored: the tag belongs into a table or before the body.
    Misplaced,
}

const fn set(all: &mut [BodyStartRule; KNOWN], names: &[NameId], kind: BodyStartRule) {
    let mut at = 0;
    while at < names.len() {
        all[names[at].index()] = kind;
        at += 1;
    }
}

static STARTS: [BodyStartRule; KNOWN] = {
    let mut all = [BodyStartRule::Ordinary; KNOWN];
    let blocks = [
        ADDRESS, ARTICLE, ASIDE, BLOCKQUOTE, CENTER, DETAILS, DIALOG, DIR, DIV, DL, FIELDSET,
        FIGCAPTION, FIGURE, FOOTER, HEADER, HGROUP, MAIN, MENU, NAV, OL, P, SEARCH, SECTION,
        SUMMARY, UL,
    ];
    set(&mut all, &blocks, BodyStartRule::Block);
    let in_head = [BASE, BASEFONT, BGSOUND, LINK, META, NOFRAMES, SCRIPT, STYLE, TEMPLATE, TITLE];
    set(&mut all, &in_head, BodyStartRule::InHead);
    set(&mut all, &[HTML], BodyStartRule::Html);
    set(&mut all, &[BODY], BodyStartRule::Body);
    set(&mut all, &[FRAMESET], BodyStartRule::Frameset);
    set(&mut all, &[H1, H2, H3, H4, H5, H6], BodyStartRule::Heading);
    set(&mut all, &[PRE, LISTING], BodyStartRule::Pre);
    set(&mut all, &[FORM], BodyStartRule::Form);
    set(&mut all, &[LI, DD, DT], BodyStartRule::ListItem);
    set(&mut all, &[PLAINTEXT], BodyStartRule::PlainText);
    set(&mut all, &[BUTTON], BodyStartRule::Button);
    set(&mut all, &[A], BodyStartRule::Anchor);
    let formatting = [B, BIG, CODE, EM, FONT, I, S, SMALL, STRIKE, STRONG, TT, U];
    set(&mut all, &formatting, BodyStartRule::Formatting);
    set(&mut all, &[NOBR], BodyStartRule::Nobr);
    set(&mut all, &[APPLET, MARQUEE, OBJECT], BodyStartRule::WithMarker);
    set(&mut all, &[TABLE], BodyStartRule::Table);
    set(&mut all, &[AREA, BR, EMBED, IMG, KEYGEN, WBR], BodyStartRule::Void);
    set(&mut all, &[INPUT], BodyStartRule::Input);
    set(&mut all, &[PARAM, SOURCE, TRACK], BodyStartRule::Param);
    set(&mut all, &[HR], BodyStartRule::HorizontalRule);
    set(&mut all, &[IMAGE], BodyStartRule::Image);
    set(&mut all, &[TEXTAREA], BodyStartRule::TextArea);
    set(&mut all, &[XMP], BodyStartRule::Xmp);
    set(&mut all, &[IFRAME], BodyStartRule::Iframe);
    set(&mut all, &[NOEMBED], BodyStartRule::Noembed);
    set(&mut all, &[SELECT], BodyStartRule::Select);
    set(&mut all, &[OPTION], BodyStartRule::Option);
    set(&mut all, &[OPTGROUP], BodyStartRule::OptGroup);
    set(&mut all, &[RB, RTC, RP, RT], BodyStartRule::Ruby);
    set(&mut all, &[MATH, SVG], BodyStartRule::Foreign);
    let misplaced = [CAPTION, COL, COLGROUP, FRAME, HEAD, TBODY, TD, TFOOT, TH, THEAD, TR];
    set(&mut all, &misplaced, BodyStartRule::Misplaced);
    all
};

impl HtmlParser<'_> {
    pub(super) fn in_body(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => {
                self.reconstruct();
                if self.frameset_ok {
                    self.frameset_ok = self.is_blank(text);
                }
                self.insert_text(text);
            }
            HtmlToken::Start(tag) => self.body_start(tag),
            HtmlToken::End(name) => return self.body_end(name),
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::EndOfPage if !self.template_modes.is_empty() => {
                return self.in_template(token);
            }
            HtmlToken::Nul | HtmlToken::Doctype | HtmlToken::EndOfPage => {}
        }
        RuleOutcome::Done
    }

    fn body_start(&mut self, tag: TagToken) {
        let kind = STARTS.get(tag.name.index()).copied().unwrap_or(BodyStartRule::Ordinary);
        match kind {
            BodyStartRule::Ordinary => {
                self.reconstruct();
                self.insert_tag(tag);
            }
            BodyStartRule::Block => {
                self.close_paragraph();
                self.insert_tag(tag);
            }
            BodyStartRule::Anchor | BodyStartRule::Formatting | BodyStartRule::Nobr => {
                self.formatting_start(kind, tag);
            }
            BodyStartRule::Void => {
                self.reconstruct();
                self.insert_void(tag);
                self.frameset_ok = false;
            }
            BodyStartRule::ListItem => self.item_start(tag),
            BodyStartRule::Heading => {
                self.close_paragraph();
                if self.stack.top().has(HEADING) {
                    self.stack.pop();
                }
                self.insert_tag(tag);
            }
            BodyStartRule::InHead => {
                self.head_start(tag);
            }
            BodyStartRule::Html | BodyStartRule::Body | BodyStartRule::Frameset => {
                self.frame_start(kind, tag);
            }
            BodyStartRule::Form => self.form_start(tag),
            BodyStartRule::Table => {
                self.close_paragraph();
                self.insert_tag(tag);
                self.frameset_ok = false;
                self.mode = InsertionMode::InTable;
            }
            BodyStartRule::WithMarker => {
                self.reconstruct();
                self.insert_tag(tag);
                self.formatting.push_marker();
                self.frameset_ok = false;
            }
            BodyStartRule::Param => self.insert_void(tag),
            BodyStartRule::Image => self.body_start(TagToken { name: IMG, ..tag }),
            BodyStartRule::Ruby => self.ruby_start(tag),
            BodyStartRule::Foreign => {
                self.reconstruct();
                let is_svg = tag.name == SVG;
                self.insert_foreign(tag, if is_svg { Namespace::SVG } else { Namespace::MATHML });
            }
            BodyStartRule::Misplaced => {}
            BodyStartRule::Pre | BodyStartRule::PlainText => self.pre_start(kind, tag),
            BodyStartRule::TextArea
            | BodyStartRule::Xmp
            | BodyStartRule::Iframe
            | BodyStartRule::Noembed => {
                self.raw_start(kind, tag);
            }
            BodyStartRule::Button
            | BodyStartRule::Input
            | BodyStartRule::HorizontalRule
            | BodyStartRule::Select => {
                self.control_start(kind, tag);
            }
            BodyStartRule::Option | BodyStartRule::OptGroup => self.option_start(kind, tag),
        }
    }

    /// "Close a p element", if there is one in button scope.
    pub(super) fn close_paragraph(&mut self) {
        if self.stack.is_on(P) {
            self.stack.pop();
        } else if self.stack.paragraph_in_button_scope() {
            self.stack.pop_through(P);
        }
    }

    fn formatting_start(&mut self, kind: BodyStartRule, tag: TagToken) {
        if kind == BodyStartRule::Anchor
            && let Some(node) = self.last_listed(A)
        {
            self.end_formatting(A);
            self.remove_formatting(node);
        }
        self.reconstruct();
        if kind == BodyStartRule::Nobr && self.stack.in_scope(NOBR) {
            self.end_formatting(NOBR);
            self.reconstruct();
        }
        self.insert_formatting(tag.name, tag.attributes);
    }

    fn item_start(&mut self, tag: TagToken) {
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

    fn frame_start(&mut self, kind: BodyStartRule, tag: TagToken) {
        let is_second = self.stack.open.get(1).is_some_and(|open| open.is(BODY));
        match kind {
            BodyStartRule::Html => {
                if !self.stack.has_template() {
                    self.add_late(0, tag.attributes);
                }
            }
            BodyStartRule::Body => {
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
                    self.mode = InsertionMode::InFrameset;
                }
            }
        }
    }

    fn add_late(&mut self, at: usize, attributes: Range32) {
        if let Some(open) = self.stack.open.get(at) {
            self.late.add(&self.tree, open.node, attributes);
        }
    }

    fn form_start(&mut self, tag: TagToken) {
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

    fn ruby_start(&mut self, tag: TagToken) {
        if self.stack.in_scope(RUBY) {
            match tag.name {
                RB | RTC => self.stack.imply_ends(),
                _ => self.stack.imply_ends_except(RTC),
            }
        }
        self.insert_tag(tag);
    }

    fn pre_start(&mut self, kind: BodyStartRule, tag: TagToken) {
        self.close_paragraph();
        self.insert_tag(tag);
        if kind == BodyStartRule::PlainText {
            self.state = TokenizerState::Plaintext;
            return;
        }
        self.skips_line_feed = true;
        self.frameset_ok = false;
    }

    fn raw_start(&mut self, kind: BodyStartRule, tag: TagToken) {
        if kind == BodyStartRule::Xmp {
            self.close_paragraph();
            self.reconstruct();
        }
        self.frameset_ok &= kind == BodyStartRule::Noembed;
        self.skips_line_feed = kind == BodyStartRule::TextArea;
        let state = if kind == BodyStartRule::TextArea {
            TokenizerState::Rcdata
        } else {
            TokenizerState::Rawtext
        };
        self.insert_raw(tag, state);
    }

    fn control_start(&mut self, kind: BodyStartRule, tag: TagToken) {
        match kind {
            BodyStartRule::Button => {
                if self.stack.in_scope(BUTTON) {
                    self.stack.pop_through(BUTTON);
                }
            }
            BodyStartRule::HorizontalRule => {
                self.close_paragraph();
                if self.stack.in_scope(SELECT) {
                    self.stack.imply_ends();
                }
                self.insert_void(tag);
                self.frameset_ok = false;
                return;
            }
            BodyStartRule::Input => {
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

    /// Whether an `<input>` has the type `hidden`.
    pub(super) fn is_hidden(&self, tag: TagToken) -> bool {
        self.attribute(tag, TYPE).is_some_and(|kind| kind.eq_ignore_ascii_case(b"hidden"))
    }

    fn option_start(&mut self, kind: BodyStartRule, tag: TagToken) {
        if self.stack.in_scope(SELECT) {
            match kind {
                BodyStartRule::Option => self.stack.imply_ends_except(OPTGROUP),
                _ => self.stack.imply_ends(),
            }
        } else if self.stack.is_on(OPTION) {
            self.stack.pop();
        }
        self.reconstruct();
        self.insert_tag(tag);
    }
}
