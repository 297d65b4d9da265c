//! The rules outside of the body: before it, the head, framesets, and after it.

use super::name::Namespace;
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{Content, Mode, Parser, Step, Tag, Token, is_space};
use super::stack::{Open, traits_of};
use super::tree::{Place, Span};

impl Parser<'_> {
    pub(super) fn initial(&mut self, token: Token) -> Step {
        match token {
            Token::Comment(words) => self.comment_in(0, words),
            Token::Doctype => {
                self.tree.add_doctype();
                self.mode = Mode::BeforeHtml;
                Step::Done
            }
            Token::Text(words) => self.drop_blank(words, Mode::BeforeHtml),
            _ => self.again_in(Mode::BeforeHtml),
        }
    }

    fn comment_in(&mut self, node: u32, words: Span) -> Step {
        self.tree.add_comment(Place::at_end(node), words);
        Step::Done
    }

    /// Drops white space; the rest of a text goes on in another mode.
    fn drop_blank(&mut self, words: Span, mode: Mode) -> Step {
        let (_, rest) = self.split_blank(words);
        if rest.len > 0 {
            self.mode = mode;
            self.process(Token::Text(rest));
        }
        Step::Done
    }

    pub(super) fn before_html(&mut self, token: Token) -> Step {
        match token {
            Token::Doctype => return Step::Done,
            Token::Comment(words) => return self.comment_in(0, words),
            Token::Text(words) if self.is_blank(words) => return Step::Done,
            Token::Start(tag) if tag.name == HTML => {
                self.insert_tag(tag);
                self.mode = Mode::BeforeHead;
                return Step::Done;
            }
            Token::End(name) if !matches!(name, HEAD | BODY | HTML | BR) => return Step::Done,
            _ => {}
        }
        self.insert_phantom(HTML);
        if let Token::Text(words) = token {
            return self.drop_blank(words, Mode::BeforeHead);
        }
        self.again_in(Mode::BeforeHead)
    }

    pub(super) fn before_head(&mut self, token: Token) -> Step {
        match token {
            Token::Doctype => return Step::Done,
            Token::Comment(words) => return self.insert_comment(words),
            Token::Text(words) if self.is_blank(words) => return Step::Done,
            Token::Start(tag) if tag.name == HTML => return self.in_body(token),
            Token::Start(tag) if tag.name == HEAD => {
                self.head = self.insert_tag(tag);
                self.mode = Mode::InHead;
                return Step::Done;
            }
            Token::End(name) if !matches!(name, HEAD | BODY | HTML | BR) => return Step::Done,
            _ => {}
        }
        self.head = self.insert_phantom(HEAD);
        if let Token::Text(words) = token {
            return self.drop_blank(words, Mode::InHead);
        }
        self.again_in(Mode::InHead)
    }

    /// Inserts white space; true if anything is left of a text.
    fn keep_blank(&mut self, words: Span) -> Option<Token> {
        let (blank, rest) = self.split_blank(words);
        self.insert_text(blank);
        (rest.len > 0).then_some(Token::Text(rest))
    }

    pub(super) fn in_head(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => {
                if let Some(rest) = self.keep_blank(words) {
                    self.stack.pop();
                    self.mode = Mode::AfterHead;
                    self.process(rest);
                }
                return Step::Done;
            }
            Token::Comment(words) => return self.insert_comment(words),
            Token::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                HEAD => return Step::Done,
                NOSCRIPT => {
                    self.insert_tag(tag);
                    self.mode = Mode::InHeadNoscript;
                    return Step::Done;
                }
                _ if is_head_content(tag) => return self.head_start(tag),
                _ => {}
            },
            Token::End(HEAD) => {
                self.stack.pop();
                self.mode = Mode::AfterHead;
                return Step::Done;
            }
            Token::End(TEMPLATE) => return self.end_template(),
            Token::End(BODY | HTML | BR) | Token::Nul | Token::EndOfPage => {}
            Token::End(_) | Token::Doctype => return Step::Done,
        }
        self.stack.pop();
        self.again_in(Mode::AfterHead)
    }

    /// The elements of a head, wherever they stand.
    pub(super) fn head_start(&mut self, tag: Tag) -> Step {
        match tag.name {
            TITLE => self.insert_raw(tag, Content::Escapable),
            NOFRAMES | STYLE => self.insert_raw(tag, Content::Raw),
            SCRIPT => self.insert_raw(tag, Content::Script),
            TEMPLATE => {
                self.insert_tag(tag);
                self.formatting.push_marker();
                self.frameset_ok = false;
                self.mode = Mode::InTemplate;
                self.template_modes.push(Mode::InTemplate);
                Step::Done
            }
            _ => {
                self.insert_void(tag);
                Step::Done
            }
        }
    }

    pub(super) fn end_template(&mut self) -> Step {
        if self.stack.has_template() {
            self.stack.imply_ends_thoroughly();
            self.close_template();
        }
        Step::Done
    }

    fn close_template(&mut self) {
        self.stack.pop_through(TEMPLATE);
        self.formatting.clear_to_marker(&mut self.tree);
        self.template_modes.pop();
        self.reset_mode();
    }

    pub(super) fn in_head_noscript(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => {
                if let Some(rest) = self.keep_blank(words) {
                    self.stack.pop();
                    self.mode = Mode::InHead;
                    self.process(rest);
                }
                return Step::Done;
            }
            Token::Comment(_) => return self.in_head(token),
            Token::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                BASEFONT | BGSOUND | LINK | META | NOFRAMES | STYLE => return self.head_start(tag),
                HEAD | NOSCRIPT => return Step::Done,
                _ => {}
            },
            Token::End(NOSCRIPT) => {
                self.stack.pop();
                self.mode = Mode::InHead;
                return Step::Done;
            }
            Token::End(BR) | Token::Nul | Token::EndOfPage => {}
            Token::End(_) | Token::Doctype => return Step::Done,
        }
        self.stack.pop();
        self.again_in(Mode::InHead)
    }

    pub(super) fn after_head(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => {
                if let Some(rest) = self.keep_blank(words) {
                    self.insert_phantom(BODY);
                    self.mode = Mode::InBody;
                    self.process(rest);
                }
                return Step::Done;
            }
            Token::Comment(words) => return self.insert_comment(words),
            Token::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                BODY => {
                    self.insert_tag(tag);
                    self.frameset_ok = false;
                    self.mode = Mode::InBody;
                    return Step::Done;
                }
                FRAMESET => {
                    self.insert_tag(tag);
                    self.mode = Mode::InFrameset;
                    return Step::Done;
                }
                HEAD => return Step::Done,
                _ if is_head_content(tag) => return self.late_head_start(tag),
                _ => {}
            },
            Token::End(TEMPLATE) => return self.end_template(),
            Token::End(BODY | HTML | BR) | Token::Nul | Token::EndOfPage => {}
            Token::End(_) | Token::Doctype => return Step::Done,
        }
        self.insert_phantom(BODY);
        self.again_in(Mode::InBody)
    }

    /// An element of the head between head and body goes into the head.
    fn late_head_start(&mut self, tag: Tag) -> Step {
        let traits = traits_of(HEAD, Namespace::HTML);
        self.stack.push(Open { node: self.head, name: HEAD, traits });
        let step = self.head_start(tag);
        if let Some(at) = self.stack.position(self.head) {
            self.stack.remove(at);
        }
        step
    }

    pub(super) fn in_template(&mut self, token: Token) -> Step {
        let mode = match token {
            Token::Text(_) | Token::Nul | Token::Comment(_) | Token::Doctype => {
                return self.in_body(token);
            }
            Token::Start(tag) => match tag.name {
                NOSCRIPT => Mode::InBody,
                _ if is_head_content(tag) => return self.head_start(tag),
                CAPTION | COLGROUP | TBODY | TFOOT | THEAD => Mode::InTable,
                COL => Mode::InColumnGroup,
                TR => Mode::InTableBody,
                TD | TH => Mode::InRow,
                _ => Mode::InBody,
            },
            Token::End(TEMPLATE) => return self.end_template(),
            Token::End(_) => return Step::Done,
            Token::EndOfPage => {
                if !self.stack.has_template() {
                    return Step::Done;
                }
                self.close_template();
                return Step::Again;
            }
        };
        self.template_modes.pop();
        self.template_modes.push(mode);
        self.again_in(mode)
    }

    pub(super) fn after_body(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) if self.is_blank(words) => return self.in_body(token),
            Token::Comment(words) => {
                let html = self.stack.open.first().map_or(0, |open| open.node);
                return self.comment_in(html, words);
            }
            Token::Doctype | Token::EndOfPage => return Step::Done,
            Token::Start(tag) if tag.name == HTML => return self.in_body(token),
            Token::End(HTML) => {
                self.mode = Mode::AfterAfterBody;
                return Step::Done;
            }
            _ => {}
        }
        self.again_in(Mode::InBody)
    }

    /// Of a text among frames, only the white space is kept.
    pub(super) fn keep_spaces(&mut self, words: Span) -> Step {
        let mut rest = words;
        while rest.len > 0 {
            let (blank, behind) = self.split_blank(rest);
            self.insert_text(blank);
            let dropped = self.bytes(behind).iter().take_while(|byte| !is_space(**byte));
            let dropped = dropped.count() as u32;
            rest = Span { start: behind.start + dropped, len: behind.len - dropped };
        }
        Step::Done
    }

    pub(super) fn in_frameset(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => return self.keep_spaces(words),
            Token::Comment(words) => return self.insert_comment(words),
            Token::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                FRAMESET => {
                    self.insert_tag(tag);
                }
                FRAME => self.insert_void(tag),
                NOFRAMES => return self.head_start(tag),
                _ => {}
            },
            Token::End(FRAMESET) => {
                if self.stack.open.len() > 1 {
                    self.stack.pop();
                    if !self.stack.is_on(FRAMESET) {
                        self.mode = Mode::AfterFrameset;
                    }
                }
            }
            Token::Doctype | Token::Nul | Token::EndOfPage | Token::End(_) => {}
        }
        Step::Done
    }

    pub(super) fn after_frameset(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => self.keep_spaces(words),
            Token::Comment(words) => self.insert_comment(words),
            Token::Start(tag) if tag.name == HTML => self.in_body(token),
            Token::Start(tag) if tag.name == NOFRAMES => self.head_start(tag),
            Token::End(HTML) => {
                self.mode = Mode::AfterAfterFrameset;
                Step::Done
            }
            _ => Step::Done,
        }
    }

    pub(super) fn after_after_body(&mut self, token: Token) -> Step {
        match token {
            Token::Comment(words) => self.comment_in(0, words),
            Token::Text(words) if self.is_blank(words) => self.in_body(token),
            Token::Start(tag) if tag.name == HTML => self.in_body(token),
            Token::Doctype | Token::EndOfPage => Step::Done,
            _ => self.again_in(Mode::InBody),
        }
    }

    pub(super) fn after_after_frameset(&mut self, token: Token) -> Step {
        match token {
            Token::Comment(words) => self.comment_in(0, words),
            Token::Text(words) => {
                // As in the body, but nothing except white space comes so far.
                if self.bytes(words).iter().any(|byte| is_space(*byte)) {
                    self.reconstruct();
                }
                self.keep_spaces(words)
            }
            Token::Start(tag) if tag.name == HTML => self.in_body(token),
            Token::Start(tag) if tag.name == NOFRAMES => self.head_start(tag),
            _ => Step::Done,
        }
    }
}

/// Whether an element belongs into the head.
pub(super) fn is_head_content(tag: Tag) -> bool {
    matches!(
        tag.name,
        BASE | BASEFONT | BGSOUND | LINK | META | NOFRAMES | SCRIPT | STYLE | TEMPLATE | TITLE
    )
}
