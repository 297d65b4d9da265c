//! The insertion mode "in body": end tags.

use super::NONE;
use super::name::NameId;
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{HtmlParser, HtmlToken, InsertionMode, RuleOutcome, TagToken};
use super::stack::{HEADING, LIST_SCOPE, SCOPE, SPECIAL};
use super::tree::Range32;

impl HtmlParser<'_> {
    pub(super) fn body_end(&mut self, name: NameId) -> RuleOutcome {
        match name {
            DIV | ADDRESS | ARTICLE | ASIDE | BLOCKQUOTE | BUTTON | CENTER | DETAILS | DIALOG
            | DIR | DL | FIELDSET | FIGCAPTION | FIGURE | FOOTER | HEADER | HGROUP | LISTING
            | MAIN | MENU | NAV | OL | PRE | SEARCH | SECTION | SELECT | SUMMARY | UL => {
                if self.stack.is_on(name) {
                    self.stack.pop();
                } else if self.stack.in_scope(name) {
                    self.stack.pop_through(name);
                }
            }
            P => {
                if !self.stack.paragraph_in_button_scope() {
                    self.insert_implied(P);
                }
                self.stack.pop_through(P);
            }
            A | B | BIG | CODE | EM | FONT | I | NOBR | S | SMALL | STRIKE | STRONG | TT | U => {
                self.end_formatting(name);
            }
            LI => {
                if self.stack.scope_has(|open| open.is(LI), SCOPE | LIST_SCOPE) {
                    self.stack.pop_through(LI);
                }
            }
            DD | DT => {
                if self.stack.in_scope(name) {
                    self.stack.pop_through(name);
                }
            }
            H1 | H2 | H3 | H4 | H5 | H6 => {
                if self.stack.scope_has(|open| open.has(HEADING), SCOPE) {
                    self.stack.pop_through_where(|open| open.has(HEADING));
                }
            }
            APPLET | MARQUEE | OBJECT => {
                if self.stack.in_scope(name) {
                    self.stack.pop_through(name);
                    self.formatting.clear_to_marker(&mut self.tree);
                }
            }
            FORM => self.end_form(),
            BR => {
                let attributes = Range32 { start: 0, len: 0 };
                let tag = TagToken { name: BR, attributes, closes_itself: false };
                return self.in_body(HtmlToken::Start(tag));
            }
            BODY | HTML => {
                if self.stack.in_scope(BODY) {
                    self.mode = InsertionMode::AfterBody;
                    if name == HTML {
                        return RuleOutcome::Reprocess;
                    }
                }
            }
            TEMPLATE => return self.end_template(),
            _ => self.end_other(name),
        }
        RuleOutcome::Done
    }

    /// The end tag of a formatting element.
    pub(super) fn end_formatting(&mut self, name: NameId) {
        if !self.adopt(name) {
            self.end_other(name);
        }
    }

    /// "Any other end tag."
    fn end_other(&mut self, name: NameId) {
        for at in (0..self.stack.open.len()).rev() {
            let open = self.stack.open[at];
            if open.is(name) {
                self.stack.truncate(at);
                return;
            }
            if open.has(SPECIAL) {
                return;
            }
        }
    }

    fn end_form(&mut self) {
        if self.stack.has_template() {
            if self.stack.in_scope(FORM) {
                self.stack.pop_through(FORM);
            }
            return;
        }
        let form = std::mem::replace(&mut self.form, NONE);
        if form == NONE || !self.stack.scope_has(|open| open.node == form, SCOPE) {
            return;
        }
        self.stack.imply_ends();
        if let Some(at) = self.stack.position(form) {
            self.stack.remove(at);
        }
    }
}
