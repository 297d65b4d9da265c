//! The insertion modes outside the body: before it, in the head, in framesets and after the body.
//! Also "in template".

use super::name::Namespace;
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{
    HtmlParser, HtmlToken, InsertionMode, RuleOutcome, TagToken, TokenizerState, is_space,
};
use super::stack::{OpenElement, flags_of};
use super::tree::{InsertPosition, Range32};

impl HtmlParser<'_> {
    pub(super) fn initial(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Comment(text) => self.comment_in(0, text),
            HtmlToken::Doctype => {
                self.tree.add_doctype();
                self.mode = InsertionMode::BeforeHtml;
                RuleOutcome::Done
            }
            HtmlToken::Text(text) => self.drop_blank(text, InsertionMode::BeforeHtml),
            _ => self.reprocess_in(InsertionMode::BeforeHtml),
        }
    }

    fn comment_in(&mut self, node: u32, text: Range32) -> RuleOutcome {
        self.tree.add_comment(InsertPosition::at_end(node), text);
        RuleOutcome::Done
    }

    /// Drops leading white space, and processes the rest of a text in another mode.
    fn drop_blank(&mut self, text: Range32, mode: InsertionMode) -> RuleOutcome {
        let (_, rest) = self.split_blank(text);
        if rest.len > 0 {
            self.mode = mode;
            self.process(HtmlToken::Text(rest));
        }
        RuleOutcome::Done
    }

    pub(super) fn before_html(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Doctype => return RuleOutcome::Done,
            HtmlToken::Comment(text) => return self.comment_in(0, text),
            HtmlToken::Text(text) if self.is_blank(text) => return RuleOutcome::Done,
            HtmlToken::Start(tag) if tag.name == HTML => {
                self.insert_tag(tag);
                self.mode = InsertionMode::BeforeHead;
                return RuleOutcome::Done;
            }
            HtmlToken::End(name) if !matches!(name, HEAD | BODY | HTML | BR) => {
                return RuleOutcome::Done;
            }
            _ => {}
        }
        self.insert_implied(HTML);
        if let HtmlToken::Text(text) = token {
            return self.drop_blank(text, InsertionMode::BeforeHead);
        }
        self.reprocess_in(InsertionMode::BeforeHead)
    }

    pub(super) fn before_head(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Doctype => return RuleOutcome::Done,
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Text(text) if self.is_blank(text) => return RuleOutcome::Done,
            HtmlToken::Start(tag) if tag.name == HTML => return self.in_body(token),
            HtmlToken::Start(tag) if tag.name == HEAD => {
                self.head = self.insert_tag(tag);
                self.mode = InsertionMode::InHead;
                return RuleOutcome::Done;
            }
            HtmlToken::End(name) if !matches!(name, HEAD | BODY | HTML | BR) => {
                return RuleOutcome::Done;
            }
            _ => {}
        }
        self.head = self.insert_implied(HEAD);
        if let HtmlToken::Text(text) = token {
            return self.drop_blank(text, InsertionMode::InHead);
        }
        self.reprocess_in(InsertionMode::InHead)
    }

    /// Inserts leading white space, and returns the rest of a text if there is any.
    fn keep_blank(&mut self, text: Range32) -> Option<HtmlToken> {
        let (blank, rest) = self.split_blank(text);
        self.insert_text(blank);
        (rest.len > 0).then_some(HtmlToken::Text(rest))
    }

    pub(super) fn in_head(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => {
                if let Some(rest) = self.keep_blank(text) {
                    self.stack.pop();
                    self.mode = InsertionMode::AfterHead;
                    self.process(rest);
                }
                return RuleOutcome::Done;
            }
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                HEAD => return RuleOutcome::Done,
                NOSCRIPT => {
                    self.insert_tag(tag);
                    self.mode = InsertionMode::InHeadNoscript;
                    return RuleOutcome::Done;
                }
                _ if is_head_content(tag) => return self.head_start(tag),
                _ => {}
            },
            HtmlToken::End(HEAD) => {
                self.stack.pop();
                self.mode = InsertionMode::AfterHead;
                return RuleOutcome::Done;
            }
            HtmlToken::End(TEMPLATE) => return self.end_template(),
            HtmlToken::End(BODY | HTML | BR) | HtmlToken::Nul | HtmlToken::EndOfPage => {}
            HtmlToken::End(_) | HtmlToken::Doctype => return RuleOutcome::Done,
        }
        self.stack.pop();
        self.reprocess_in(InsertionMode::AfterHead)
    }

    /// Start tags of elements that belong into the head, wherever they are in the page.
    pub(super) fn head_start(&mut self, tag: TagToken) -> RuleOutcome {
        match tag.name {
            TITLE => self.insert_raw(tag, TokenizerState::Rcdata),
            NOFRAMES | STYLE => self.insert_raw(tag, TokenizerState::Rawtext),
            SCRIPT => self.insert_raw(tag, TokenizerState::ScriptData),
            TEMPLATE => {
                self.insert_tag(tag);
                self.formatting.push_marker();
                self.frameset_ok = false;
                self.mode = InsertionMode::InTemplate;
                self.template_modes.push(InsertionMode::InTemplate);
                RuleOutcome::Done
            }
            _ => {
                self.insert_void(tag);
                RuleOutcome::Done
            }
        }
    }

    pub(super) fn end_template(&mut self) -> RuleOutcome {
        if self.stack.has_template() {
            self.stack.imply_ends_thoroughly();
            self.close_template();
        }
        RuleOutcome::Done
    }

    fn close_template(&mut self) {
        self.stack.pop_through(TEMPLATE);
        self.formatting.clear_to_marker(&mut self.tree);
        self.template_modes.pop();
        self.reset_mode();
    }

    pub(super) fn in_head_noscript(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => {
                if let Some(rest) = self.keep_blank(text) {
                    self.stack.pop();
                    self.mode = InsertionMode::InHead;
                    self.process(rest);
                }
                return RuleOutcome::Done;
            }
            HtmlToken::Comment(_) => return self.in_head(token),
            HtmlToken::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                BASEFONT | BGSOUND | LINK | META | NOFRAMES | STYLE => return self.head_start(tag),
                HEAD | NOSCRIPT => return RuleOutcome::Done,
                _ => {}
            },
            HtmlToken::End(NOSCRIPT) => {
                self.stack.pop();
                self.mode = InsertionMode::InHead;
                return RuleOutcome::Done;
            }
            HtmlToken::End(BR) | HtmlToken::Nul | HtmlToken::EndOfPage => {}
            HtmlToken::End(_) | HtmlToken::Doctype => return RuleOutcome::Done,
        }
        self.stack.pop();
        self.reprocess_in(InsertionMode::InHead)
    }

    pub(super) fn after_head(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => {
                if let Some(rest) = self.keep_blank(text) {
                    self.insert_implied(BODY);
                    self.mode = InsertionMode::InBody;
                    self.process(rest);
                }
                return RuleOutcome::Done;
            }
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                BODY => {
                    self.insert_tag(tag);
                    self.frameset_ok = false;
                    self.mode = InsertionMode::InBody;
                    return RuleOutcome::Done;
                }
                FRAMESET => {
                    self.insert_tag(tag);
                    self.mode = InsertionMode::InFrameset;
                    return RuleOutcome::Done;
                }
                HEAD => return RuleOutcome::Done,
                _ if is_head_content(tag) => return self.late_head_start(tag),
                _ => {}
            },
            HtmlToken::End(TEMPLATE) => return self.end_template(),
            HtmlToken::End(BODY | HTML | BR) | HtmlToken::Nul | HtmlToken::EndOfPage => {}
            HtmlToken::End(_) | HtmlToken::Doctype => return RuleOutcome::Done,
        }
        self.insert_implied(BODY);
        self.reprocess_in(InsertionMode::InBody)
    }

    /// An element of the head that stands between head and body is inserted into the head.
    fn late_head_start(&mut self, tag: TagToken) -> RuleOutcome {
        let flags = flags_of(HEAD, Namespace::HTML);
        self.stack.push(OpenElement { node: self.head, name: HEAD, flags });
        let step = self.head_start(tag);
        if let Some(at) = self.stack.position(self.head) {
            self.stack.remove(at);
        }
        step
    }

    pub(super) fn in_template(&mut self, token: HtmlToken) -> RuleOutcome {
        let mode = match token {
            HtmlToken::Text(_) | HtmlToken::Nul | HtmlToken::Comment(_) | HtmlToken::Doctype => {
                return self.in_body(token);
            }
            HtmlToken::Start(tag) => match tag.name {
                NOSCRIPT => InsertionMode::InBody,
                _ if is_head_content(tag) => return self.head_start(tag),
                CAPTION | COLGROUP | TBODY | TFOOT | THEAD => InsertionMode::InTable,
                COL => InsertionMode::InColumnGroup,
                TR => InsertionMode::InTableBody,
                TD | TH => InsertionMode::InRow,
                _ => InsertionMode::InBody,
            },
            HtmlToken::End(TEMPLATE) => return self.end_template(),
            HtmlToken::End(_) => return RuleOutcome::Done,
            HtmlToken::EndOfPage => {
                if !self.stack.has_template() {
                    return RuleOutcome::Done;
                }
                self.close_template();
                return RuleOutcome::Reprocess;
            }
        };
        self.template_modes.pop();
        self.template_modes.push(mode);
        self.reprocess_in(mode)
    }

    pub(super) fn after_body(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) if self.is_blank(text) => return self.in_body(token),
            HtmlToken::Comment(text) => {
                let html = self.stack.open.first().map_or(0, |open| open.node);
                return self.comment_in(html, text);
            }
            HtmlToken::Doctype | HtmlToken::EndOfPage => return RuleOutcome::Done,
            HtmlToken::Start(tag) if tag.name == HTML => return self.in_body(token),
            HtmlToken::End(HTML) => {
                self.mode = InsertionMode::AfterAfterBody;
                return RuleOutcome::Done;
            }
            _ => {}
        }
        self.reprocess_in(InsertionMode::InBody)
    }

    /// Inserts the white space of a text and drops its other characters: framesets contain no text.
    pub(super) fn keep_spaces(&mut self, text: Range32) -> RuleOutcome {
        let mut rest = text;
        while rest.len > 0 {
            let (blank, behind) = self.split_blank(rest);
            self.insert_text(blank);
            let dropped = self.bytes(behind).iter().take_while(|byte| !is_space(**byte));
            let dropped = dropped.count() as u32;
            rest = Range32 { start: behind.start + dropped, len: behind.len - dropped };
        }
        RuleOutcome::Done
    }

    pub(super) fn in_frameset(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => return self.keep_spaces(text),
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                FRAMESET => {
                    self.insert_tag(tag);
                }
                FRAME => self.insert_void(tag),
                NOFRAMES => return self.head_start(tag),
                _ => {}
            },
            HtmlToken::End(FRAMESET) => {
                if self.stack.open.len() > 1 {
                    self.stack.pop();
                    if !self.stack.is_on(FRAMESET) {
                        self.mode = InsertionMode::AfterFrameset;
                    }
                }
            }
            HtmlToken::Doctype | HtmlToken::Nul | HtmlToken::EndOfPage | HtmlToken::End(_) => {}
        }
        RuleOutcome::Done
    }

    pub(super) fn after_frameset(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => self.keep_spaces(text),
            HtmlToken::Comment(text) => self.insert_comment(text),
            HtmlToken::Start(tag) if tag.name == HTML => self.in_body(token),
            HtmlToken::Start(tag) if tag.name == NOFRAMES => self.head_start(tag),
            HtmlToken::End(HTML) => {
                self.mode = InsertionMode::AfterAfterFrameset;
                RuleOutcome::Done
            }
            _ => RuleOutcome::Done,
        }
    }

    pub(super) fn after_after_body(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Comment(text) => self.comment_in(0, text),
            HtmlToken::Text(text) if self.is_blank(text) => self.in_body(token),
            HtmlToken::Start(tag) if tag.name == HTML => self.in_body(token),
            HtmlToken::Doctype | HtmlToken::EndOfPage => RuleOutcome::Done,
            _ => self.reprocess_in(InsertionMode::InBody),
        }
    }

    pub(super) fn after_after_frameset(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Comment(text) => self.comment_in(0, text),
            HtmlToken::Text(text) => {
                // As in the body, although only white space is inserted here.
                if self.bytes(text).iter().any(|byte| is_space(*byte)) {
                    self.reconstruct();
                }
                self.keep_spaces(text)
            }
            HtmlToken::Start(tag) if tag.name == HTML => self.in_body(token),
            HtmlToken::Start(tag) if tag.name == NOFRAMES => self.head_start(tag),
            _ => RuleOutcome::Done,
        }
    }
}

/// Whether an element belongs into the head.
pub(super) fn is_head_content(tag: TagToken) -> bool {
    matches!(
        tag.name,
        BASE | BASEFONT | BGSOUND | LINK | META | NOFRAMES | SCRIPT | STYLE | TEMPLATE | TITLE
    )
}
