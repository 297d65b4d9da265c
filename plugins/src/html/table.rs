//! The rules within tables.

use super::NONE;
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{Mode, Parser, Step, Tag, Token};
use super::stack::{BODY_CONTEXT, FOSTERS, ROW_CONTEXT, TABLE_SCOPE};
use super::tree::Span;

impl Parser<'_> {
    pub(super) fn in_table(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) if self.holds_table_text() => self.table_text.push(words),
            Token::Nul if self.holds_table_text() => {}
            Token::Comment(words) => return self.insert_comment(words),
            Token::Start(tag) => return self.table_start(tag),
            Token::End(TABLE) => {
                if self.stack.in_table_scope(TABLE) {
                    self.stack.pop_through(TABLE);
                    self.reset_mode();
                }
            }
            Token::Doctype
            | Token::End(
                BODY | CAPTION | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR,
            ) => {}
            Token::End(TEMPLATE) => return self.end_template(),
            Token::EndOfPage => return self.in_body(token),
            _ => return self.foster(token),
        }
        Step::Done
    }

    fn holds_table_text(&self) -> bool {
        self.stack.top().has(FOSTERS) || self.stack.is_on(TEMPLATE)
    }

    /// Applies the rules of the body; what does not belong into a table goes before it.
    fn foster(&mut self, token: Token) -> Step {
        self.fosters = true;
        let step = self.in_body(token);
        self.fosters = false;
        step
    }

    /// Puts the text of a table where it belongs, now that all of it is known.
    pub(super) fn flush_table_text(&mut self) {
        let mut words = std::mem::take(&mut self.table_text);
        if words.iter().all(|words| self.is_blank(*words)) {
            for words in words.drain(..) {
                self.insert_text(words);
            }
        } else {
            for words in words.drain(..) {
                self.foster(Token::Text(words));
            }
        }
        self.table_text = words;
    }

    fn table_start(&mut self, tag: Tag) -> Step {
        match tag.name {
            TR | TD | TH => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_phantom(TBODY);
                return self.again_in(Mode::InTableBody);
            }
            TBODY | TFOOT | THEAD => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_tag(tag);
                self.mode = Mode::InTableBody;
            }
            CAPTION => {
                self.stack.pop_to(TABLE_SCOPE);
                self.formatting.push_marker();
                self.insert_tag(tag);
                self.mode = Mode::InCaption;
            }
            COLGROUP => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_tag(tag);
                self.mode = Mode::InColumnGroup;
            }
            COL => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_phantom(COLGROUP);
                return self.again_in(Mode::InColumnGroup);
            }
            TABLE => {
                if self.stack.in_table_scope(TABLE) {
                    self.stack.pop_through(TABLE);
                    self.reset_mode();
                    return Step::Again;
                }
            }
            STYLE | SCRIPT | TEMPLATE => return self.head_start(tag),
            INPUT if self.is_hidden(tag) => self.insert_void(tag),
            FORM => {
                if self.form == NONE && !self.stack.has_template() {
                    self.form = self.insert_tag(tag);
                    self.stack.pop();
                }
            }
            _ => return self.foster(Token::Start(tag)),
        }
        Step::Done
    }

    pub(super) fn in_caption(&mut self, token: Token) -> Step {
        match token {
            Token::Start(tag) if is_part(tag) => {}
            Token::End(TABLE | CAPTION) => {}
            Token::End(BODY | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR) => {
                return Step::Done;
            }
            _ => return self.in_body(token),
        }
        if !self.stack.in_table_scope(CAPTION) {
            return Step::Done;
        }
        self.stack.pop_through(CAPTION);
        self.formatting.clear_to_marker(&mut self.tree);
        self.mode = Mode::InTable;
        if matches!(token, Token::End(CAPTION)) { Step::Done } else { Step::Again }
    }

    pub(super) fn in_column_group(&mut self, token: Token) -> Step {
        match token {
            Token::Text(words) => {
                let (blank, rest) = self.split_blank(words);
                self.insert_text(blank);
                if rest.len > 0 && self.stack.is_on(COLGROUP) {
                    self.stack.pop();
                    self.mode = Mode::InTable;
                    self.process(Token::Text(rest));
                } else {
                    self.keep_blank_only(rest);
                }
                return Step::Done;
            }
            Token::Comment(words) => return self.insert_comment(words),
            Token::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                COL => {
                    self.insert_void(tag);
                    return Step::Done;
                }
                TEMPLATE => return self.head_start(tag),
                _ => {}
            },
            Token::End(COLGROUP) => {
                if self.stack.is_on(COLGROUP) {
                    self.stack.pop();
                    self.mode = Mode::InTable;
                }
                return Step::Done;
            }
            Token::End(COL) | Token::Doctype => return Step::Done,
            Token::End(TEMPLATE) => return self.end_template(),
            Token::EndOfPage => return self.in_body(token),
            Token::End(_) | Token::Nul => {}
        }
        if !self.stack.is_on(COLGROUP) {
            return Step::Done;
        }
        self.stack.pop();
        self.again_in(Mode::InTable)
    }

    /// In a template that holds columns, letters are dropped and spaces are kept.
    fn keep_blank_only(&mut self, words: Span) {
        if words.len > 0 {
            self.keep_spaces(words);
        }
    }

    pub(super) fn in_table_body(&mut self, token: Token) -> Step {
        match token {
            Token::Start(tag) => match tag.name {
                TR => {
                    self.stack.pop_to(BODY_CONTEXT);
                    self.insert_tag(tag);
                    self.mode = Mode::InRow;
                    return Step::Done;
                }
                TH | TD => {
                    self.stack.pop_to(BODY_CONTEXT);
                    self.insert_phantom(TR);
                    return self.again_in(Mode::InRow);
                }
                CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD => {}
                _ => return self.in_table(token),
            },
            Token::End(name @ (TBODY | TFOOT | THEAD)) => {
                if self.stack.in_table_scope(name) {
                    self.stack.pop_to(BODY_CONTEXT);
                    self.stack.pop();
                    self.mode = Mode::InTable;
                }
                return Step::Done;
            }
            Token::End(TABLE) => {}
            Token::End(BODY | CAPTION | COL | COLGROUP | HTML | TD | TH | TR) => {
                return Step::Done;
            }
            _ => return self.in_table(token),
        }
        let is_group = |name| matches!(name, TBODY | THEAD | TFOOT);
        if !self.stack.scope_has(|open| is_group(open.name) && open.is(open.name), TABLE_SCOPE) {
            return Step::Done;
        }
        self.stack.pop_to(BODY_CONTEXT);
        self.stack.pop();
        self.again_in(Mode::InTable)
    }

    /// Closes the row that is open, if there is one.
    fn close_row(&mut self) -> bool {
        let is_open = self.stack.in_table_scope(TR);
        if is_open {
            self.stack.pop_to(ROW_CONTEXT);
            self.stack.pop();
            self.mode = Mode::InTableBody;
        }
        is_open
    }

    pub(super) fn in_row(&mut self, token: Token) -> Step {
        let goes_on = match token {
            Token::Start(tag) => match tag.name {
                TH | TD => {
                    self.stack.pop_to(ROW_CONTEXT);
                    self.insert_tag(tag);
                    self.mode = Mode::InCell;
                    self.formatting.push_marker();
                    return Step::Done;
                }
                CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD | TR => self.close_row(),
                _ => return self.in_table(token),
            },
            Token::End(TR) => {
                self.close_row();
                false
            }
            Token::End(TABLE) => self.close_row(),
            Token::End(name @ (TBODY | TFOOT | THEAD)) => {
                self.stack.in_table_scope(name) && self.close_row()
            }
            Token::End(BODY | CAPTION | COL | COLGROUP | HTML | TD | TH) => false,
            _ => return self.in_table(token),
        };
        if goes_on { Step::Again } else { Step::Done }
    }

    pub(super) fn in_cell(&mut self, token: Token) -> Step {
        match token {
            Token::End(name @ (TD | TH)) => {
                if self.stack.in_table_scope(name) {
                    self.stack.pop_through(name);
                    self.formatting.clear_to_marker(&mut self.tree);
                    self.mode = Mode::InRow;
                }
                Step::Done
            }
            Token::Start(tag) if is_part(tag) => self.close_cell(),
            Token::End(BODY | CAPTION | COL | COLGROUP | HTML) => Step::Done,
            Token::End(name @ (TABLE | TBODY | TFOOT | THEAD | TR)) => {
                if self.stack.in_table_scope(name) { self.close_cell() } else { Step::Done }
            }
            _ => self.in_body(token),
        }
    }

    /// Closes the cell that is open and goes on with the token.
    fn close_cell(&mut self) -> Step {
        let is_cell = |name| matches!(name, TD | TH);
        if !self.stack.scope_has(|open| is_cell(open.name) && open.is(open.name), TABLE_SCOPE) {
            return Step::Done;
        }
        self.stack.pop_through_where(|open| is_cell(open.name) && open.is(open.name));
        self.formatting.clear_to_marker(&mut self.tree);
        self.again_in(Mode::InRow)
    }
}

/// Whether an element belongs right into a table.
fn is_part(tag: Tag) -> bool {
    matches!(tag.name, CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR)
}
