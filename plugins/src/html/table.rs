//! The insertion modes for tables.

use super::NONE;
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{HtmlParser, HtmlToken, InsertionMode, RuleOutcome, TagToken};
use super::stack::{BODY_CONTEXT, FOSTERS, ROW_CONTEXT, TABLE_SCOPE};
use super::tree::Range32;

impl HtmlParser<'_> {
    pub(super) fn in_table(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) if self.takes_table_text() => self.table_text.push(text),
            HtmlToken::Nul if self.takes_table_text() => {}
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Start(tag) => return self.table_start(tag),
            HtmlToken::End(TABLE) => {
                if self.stack.in_table_scope(TABLE) {
                    self.stack.pop_through(TABLE);
                    self.reset_mode();
                }
            }
            HtmlToken::Doctype
            | HtmlToken::End(
                BODY | CAPTION | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR,
            ) => {}
            HtmlToken::End(TEMPLATE) => return self.end_template(),
            HtmlToken::EndOfPage => return self.in_body(token),
            _ => return self.foster(token),
        }
        RuleOutcome::Done
    }

    fn takes_table_text(&self) -> bool {
        self.stack.top().has(FOSTERS) || self.stack.is_on(TEMPLATE)
    }

    /// Applies the rules of the body. Content that may not be in a table is inserted before it.
    fn foster(&mut self, token: HtmlToken) -> RuleOutcome {
        self.fosters = true;
        let step = self.in_body(token);
        self.fosters = false;
        step
    }

    /// Inserts the pending text of a table, now that all of it is known.
    pub(super) fn flush_table_text(&mut self) {
        let mut text = std::mem::take(&mut self.table_text);
        if text.iter().all(|text| self.is_blank(*text)) {
            for text in text.drain(..) {
                self.insert_text(text);
            }
        } else {
            for text in text.drain(..) {
                self.foster(HtmlToken::Text(text));
            }
        }
        self.table_text = text;
    }

    fn table_start(&mut self, tag: TagToken) -> RuleOutcome {
        match tag.name {
            TR | TD | TH => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_implied(TBODY);
                return self.reprocess_in(InsertionMode::InTableBody);
            }
            TBODY | TFOOT | THEAD => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_tag(tag);
                self.mode = InsertionMode::InTableBody;
            }
            CAPTION => {
                self.stack.pop_to(TABLE_SCOPE);
                self.formatting.push_marker();
                self.insert_tag(tag);
                self.mode = InsertionMode::InCaption;
            }
            COLGROUP => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_tag(tag);
                self.mode = InsertionMode::InColumnGroup;
            }
            COL => {
                self.stack.pop_to(TABLE_SCOPE);
                self.insert_implied(COLGROUP);
                return self.reprocess_in(InsertionMode::InColumnGroup);
            }
            TABLE => {
                if self.stack.in_table_scope(TABLE) {
                    self.stack.pop_through(TABLE);
                    self.reset_mode();
                    return RuleOutcome::Reprocess;
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
            _ => return self.foster(HtmlToken::Start(tag)),
        }
        RuleOutcome::Done
    }

    pub(super) fn in_caption(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Start(tag) if is_part(tag) => {}
            HtmlToken::End(TABLE | CAPTION) => {}
            HtmlToken::End(BODY | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR) => {
                return RuleOutcome::Done;
            }
            _ => return self.in_body(token),
        }
        if !self.stack.in_table_scope(CAPTION) {
            return RuleOutcome::Done;
        }
        self.stack.pop_through(CAPTION);
        self.formatting.clear_to_marker(&mut self.tree);
        self.mode = InsertionMode::InTable;
        if matches!(token, HtmlToken::End(CAPTION)) {
            RuleOutcome::Done
        } else {
            RuleOutcome::Reprocess
        }
    }

    pub(super) fn in_column_group(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Text(text) => {
                let (blank, rest) = self.split_blank(text);
                self.insert_text(blank);
                if rest.len > 0 && self.stack.is_on(COLGROUP) {
                    self.stack.pop();
                    self.mode = InsertionMode::InTable;
                    self.process(HtmlToken::Text(rest));
                } else {
                    self.keep_blank_only(rest);
                }
                return RuleOutcome::Done;
            }
            HtmlToken::Comment(text) => return self.insert_comment(text),
            HtmlToken::Start(tag) => match tag.name {
                HTML => return self.in_body(token),
                COL => {
                    self.insert_void(tag);
                    return RuleOutcome::Done;
                }
                TEMPLATE => return self.head_start(tag),
                _ => {}
            },
            HtmlToken::End(COLGROUP) => {
                if self.stack.is_on(COLGROUP) {
                    self.stack.pop();
                    self.mode = InsertionMode::InTable;
                }
                return RuleOutcome::Done;
            }
            HtmlToken::End(COL) | HtmlToken::Doctype => return RuleOutcome::Done,
            HtmlToken::End(TEMPLATE) => return self.end_template(),
            HtmlToken::EndOfPage => return self.in_body(token),
            HtmlToken::End(_) | HtmlToken::Nul => {}
        }
        if !self.stack.is_on(COLGROUP) {
            return RuleOutcome::Done;
        }
        self.stack.pop();
        self.reprocess_in(InsertionMode::InTable)
    }

    /// In a template that contains columns, white space is kept and other text dropped.
    fn keep_blank_only(&mut self, text: Range32) {
        if text.len > 0 {
            self.keep_spaces(text);
        }
    }

    pub(super) fn in_table_body(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::Start(tag) => match tag.name {
                TR => {
                    self.stack.pop_to(BODY_CONTEXT);
                    self.insert_tag(tag);
                    self.mode = InsertionMode::InRow;
                    return RuleOutcome::Done;
                }
                TH | TD => {
                    self.stack.pop_to(BODY_CONTEXT);
                    self.insert_implied(TR);
                    return self.reprocess_in(InsertionMode::InRow);
                }
                CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD => {}
                _ => return self.in_table(token),
            },
            HtmlToken::End(name @ (TBODY | TFOOT | THEAD)) => {
                if self.stack.in_table_scope(name) {
                    self.stack.pop_to(BODY_CONTEXT);
                    self.stack.pop();
                    self.mode = InsertionMode::InTable;
                }
                return RuleOutcome::Done;
            }
            HtmlToken::End(TABLE) => {}
            HtmlToken::End(BODY | CAPTION | COL | COLGROUP | HTML | TD | TH | TR) => {
                return RuleOutcome::Done;
            }
            _ => return self.in_table(token),
        }
        let is_group = |name| matches!(name, TBODY | THEAD | TFOOT);
        if !self.stack.scope_has(|open| is_group(open.name) && open.is(open.name), TABLE_SCOPE) {
            return RuleOutcome::Done;
        }
        self.stack.pop_to(BODY_CONTEXT);
        self.stack.pop();
        self.reprocess_in(InsertionMode::InTable)
    }

    /// Closes the open row; `false` if there is none.
    fn close_row(&mut self) -> bool {
        let is_open = self.stack.in_table_scope(TR);
        if is_open {
            self.stack.pop_to(ROW_CONTEXT);
            self.stack.pop();
            self.mode = InsertionMode::InTableBody;
        }
        is_open
    }

    pub(super) fn in_row(&mut self, token: HtmlToken) -> RuleOutcome {
        let continues = match token {
            HtmlToken::Start(tag) => match tag.name {
                TH | TD => {
                    self.stack.pop_to(ROW_CONTEXT);
                    self.insert_tag(tag);
                    self.mode = InsertionMode::InCell;
                    self.formatting.push_marker();
                    return RuleOutcome::Done;
                }
                CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD | TR => self.close_row(),
                _ => return self.in_table(token),
            },
            HtmlToken::End(TR) => {
                self.close_row();
                false
            }
            HtmlToken::End(TABLE) => self.close_row(),
            HtmlToken::End(name @ (TBODY | TFOOT | THEAD)) => {
                self.stack.in_table_scope(name) && self.close_row()
            }
            HtmlToken::End(BODY | CAPTION | COL | COLGROUP | HTML | TD | TH) => false,
            _ => return self.in_table(token),
        };
        if continues { RuleOutcome::Reprocess } else { RuleOutcome::Done }
    }

    pub(super) fn in_cell(&mut self, token: HtmlToken) -> RuleOutcome {
        match token {
            HtmlToken::End(name @ (TD | TH)) => {
                if self.stack.in_table_scope(name) {
                    self.stack.pop_through(name);
                    self.formatting.clear_to_marker(&mut self.tree);
                    self.mode = InsertionMode::InRow;
                }
                RuleOutcome::Done
            }
            HtmlToken::Start(tag) if is_part(tag) => self.close_cell(),
            HtmlToken::End(BODY | CAPTION | COL | COLGROUP | HTML) => RuleOutcome::Done,
            HtmlToken::End(name @ (TABLE | TBODY | TFOOT | THEAD | TR)) => {
                if self.stack.in_table_scope(name) { self.close_cell() } else { RuleOutcome::Done }
            }
            _ => self.in_body(token),
        }
    }

    /// "Close the cell", then reprocesses the token.
    fn close_cell(&mut self) -> RuleOutcome {
        let is_cell = |name| matches!(name, TD | TH);
        if !self.stack.scope_has(|open| is_cell(open.name) && open.is(open.name), TABLE_SCOPE) {
            return RuleOutcome::Done;
        }
        self.stack.pop_through_where(|open| is_cell(open.name) && open.is(open.name));
        self.formatting.clear_to_marker(&mut self.tree);
        self.reprocess_in(InsertionMode::InRow)
    }
}

/// Whether an element is a part of a table.
fn is_part(tag: TagToken) -> bool {
    matches!(tag.name, CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR)
}
