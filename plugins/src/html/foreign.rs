//! The rules for foreign content: SVG and MathML.

use super::name::{NameId, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{HtmlParser, HtmlToken, RuleOutcome, TagToken};
use super::stack::{HTML_POINT, IS_HTML, IS_SVG, TEXT_POINT, flags_of};
use super::tree::Range32;

impl HtmlParser<'_> {
    pub(super) fn foreign(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Nul => {
                let start = (self.page.len() + self.extra.len()) as u32;
                self.extra.push(char::REPLACEMENT_CHARACTER);
                self.insert_text(Range32 { start, len: 3 });
            }
            HtmlToken::Text(text) => {
                self.frameset_ok &= self.is_blank(text);
                self.insert_text(text);
            }
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Start(tag) if self.breaks_out(tag) => return self.break_out(token),
            HtmlToken::Start(tag) => {
                let is_svg = self.stack.top().has(IS_SVG);
                self.insert_foreign(tag, if is_svg { Namespace::SVG } else { Namespace::MATHML });
            }
            HtmlToken::End(BR | P) => return self.break_out(token),
            HtmlToken::End(name) => return self.end_foreign(name),
            HtmlToken::Doctype | HtmlToken::EndOfPage => {}
        }
        RuleOutcome::Done
    }

    /// Inserts an element of SVG or MathML, with the names as those languages spell them.
    pub(super) fn insert_foreign(&mut self, tag: TagToken, namespace: Namespace) {
        let is_svg = namespace == Namespace::SVG;
        let Range32 { start, len } = tag.attributes;
        for attribute in &mut self.tree.attributes[start as usize..(start + len) as usize] {
            if is_svg {
                attribute.name = attribute.name.as_svg_attribute();
            } else if attribute.name == DEFINITIONURL {
                attribute.name = self.names.number("definitionURL");
            }
        }
        let name = if is_svg { tag.name.as_svg_element() } else { tag.name };
        let mut flags = flags_of(name, namespace);
        if name == ANNOTATION_XML && !is_svg && self.contains_html(tag) {
            flags |= HTML_POINT;
        }
        self.insert_as(name, namespace, flags, tag.attributes);
        if tag.closes_itself {
            self.stack.pop();
        }
    }

    fn contains_html(&self, tag: TagToken) -> bool {
        self.attribute(tag, ENCODING).is_some_and(|encoding| {
            encoding.eq_ignore_ascii_case(b"text/html")
                || encoding.eq_ignore_ascii_case(b"application/xhtml+xml")
        })
    }

    /// An HTML tag ends the foreign content that is still open.
    fn break_out(&mut self, token: HtmlToken) -> RuleOutcome {
        self.stack.pop_to(IS_HTML | HTML_POINT | TEXT_POINT);
        self.in_mode(token)
    }

    fn end_foreign(&mut self, name: NameId) -> RuleOutcome {
        for at in (1..self.stack.open.len()).rev() {
            let open = self.stack.open[at];
            if open.has(IS_HTML) {
                return self.in_mode(HtmlToken::End(name));
            }
            if open.name.lower() == name {
                self.stack.truncate(at);
                return RuleOutcome::Done;
            }
        }
        RuleOutcome::Done
    }

    fn breaks_out(&self, tag: TagToken) -> bool {
        match tag.name {
            B | BIG | BLOCKQUOTE | BODY | BR | CENTER | CODE | DD | DIV | DL | DT | EM | EMBED
            | H1 | H2 | H3 | H4 | H5 | H6 | HEAD | HR | I | IMG | LI | LISTING | MENU | META
            | NOBR | OL | P | PRE | RUBY | S | SMALL | SPAN | STRONG | STRIKE | SUB | SUP
            | TABLE | TT | U | UL | VAR => true,
            FONT => [COLOR, FACE, SIZE].iter().any(|name| self.attribute(tag, *name).is_some()),
            _ => false,
        }
    }
}
