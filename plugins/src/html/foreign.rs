//! The rules within SVG and MathML.

use super::name::{NameId, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{Parser, Step, Tag, Token};
use super::stack::{HTML_POINT, IS_HTML, IS_SVG, TEXT_POINT, traits_of};
use super::tree::Span;

impl Parser<'_> {
    pub(super) fn foreign(&mut self, token: Token) -> Step {
        match token {
            Token::Nul => {
                let start = (self.page.len() + self.extra.len()) as u32;
                self.extra.push(char::REPLACEMENT_CHARACTER);
                self.insert_text(Span { start, len: 3 });
            }
            Token::Text(words) => {
                self.frameset_ok &= self.is_blank(words);
                self.insert_text(words);
            }
            Token::Comment(words) => return self.insert_comment(words),
            Token::Start(tag) if self.breaks_out(tag) => return self.break_out(token),
            Token::Start(tag) => {
                let is_svg = self.stack.top().has(IS_SVG);
                self.insert_foreign(tag, if is_svg { Namespace::SVG } else { Namespace::MATHML });
            }
            Token::End(BR | P) => return self.break_out(token),
            Token::End(name) => return self.end_foreign(name),
            Token::Doctype | Token::EndOfPage => {}
        }
        Step::Done
    }

    /// Puts an element of SVG or MathML into the tree.
    pub(super) fn insert_foreign(&mut self, tag: Tag, namespace: Namespace) {
        let is_svg = namespace == Namespace::SVG;
        let Span { start, len } = tag.attributes;
        for attribute in &mut self.tree.attributes[start as usize..(start + len) as usize] {
            if is_svg {
                attribute.name = attribute.name.as_svg_attribute();
            } else if attribute.name == DEFINITIONURL {
                attribute.name = self.namer.number("definitionURL");
            }
        }
        let name = if is_svg { tag.name.as_svg_element() } else { tag.name };
        let mut traits = traits_of(name, namespace);
        if name == ANNOTATION_XML && !is_svg && self.holds_html(tag) {
            traits |= HTML_POINT;
        }
        self.insert_as(name, namespace, traits, tag.attributes);
        if tag.closes_itself {
            self.stack.pop();
        }
    }

    fn holds_html(&self, tag: Tag) -> bool {
        self.attribute(tag, ENCODING).is_some_and(|encoding| {
            encoding.eq_ignore_ascii_case(b"text/html")
                || encoding.eq_ignore_ascii_case(b"application/xhtml+xml")
        })
    }

    /// HTML where a drawing or formula was left open.
    fn break_out(&mut self, token: Token) -> Step {
        self.stack.pop_to(IS_HTML | HTML_POINT | TEXT_POINT);
        self.in_mode(token)
    }

    fn end_foreign(&mut self, name: NameId) -> Step {
        for at in (1..self.stack.open.len()).rev() {
            let open = self.stack.open[at];
            if open.has(IS_HTML) {
                return self.in_mode(Token::End(name));
            }
            if open.name.lower() == name {
                self.stack.truncate(at);
                return Step::Done;
            }
        }
        Step::Done
    }

    fn breaks_out(&self, tag: Tag) -> bool {
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
