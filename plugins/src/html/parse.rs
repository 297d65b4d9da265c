//! The parser's state, and how a token finds the rule that applies to it.
//!
//! It follows the HTML standard, section "Parsing HTML documents", with scripting off and never in
//! quirks mode: a table always closes an open paragraph, as in jsoup. Quoted comments are the
//! standard's own names.

use std::borrow::Cow;
use std::time::Instant;

use super::added_attributes::AddedAttributes;
use super::formatting::FormattingList;
use super::name::{NameId, NameInterner, Namespace};
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::stack::{
    ANNOTATION, ElementFlags, ElementStack, FOSTERS, HTML_POINT, IS_HTML, OpenElement, TEXT_POINT,
    flags_of,
};
use super::tree::{InsertPosition, Range32, TreeBuilder};
use super::{Document, HtmlDialect, NONE, TreeError, TreeLimits};

/// Steps of work between two checks of the deadline.
const STEPS: usize = 64 * 1024;

/// A start or end tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct TagToken {
    pub(super) name: NameId,
    /// A range of `TreeBuilder::attributes`.
    pub(super) attributes: Range32,
    pub(super) closes_itself: bool,
}

/// A token, as the tokenizer passes it to the rules.
#[derive(Debug, Clone, Copy)]
pub(super) enum HtmlToken {
    Start(TagToken),
    End(NameId),
    Text(Range32),
    /// U+0000. Each insertion mode treats it differently, so it is no part of a text.
    Nul,
    Comment(Range32),
    Doctype,
    EndOfPage,
}

/// The outcome of a rule for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleOutcome {
    Done,
    /// The rule changed the state, and the rule that applies now must see the same token.
    Reprocess,
}

/// The insertion modes of the standard. The modes for raw text, and for text in tables, are states
/// elsewhere: [`TokenizerState`] and [`HtmlParser::table_text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertionMode {
    Initial,
    BeforeHtml,
    BeforeHead,
    InHead,
    InHeadNoscript,
    AfterHead,
    InBody,
    InTable,
    InCaption,
    InColumnGroup,
    InTableBody,
    InRow,
    InCell,
    InTemplate,
    AfterBody,
    InFrameset,
    AfterFrameset,
    AfterAfterBody,
    AfterAfterFrameset,
}

/// How the text from here on is cut into tokens: the tokenizer states that a rule can switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenizerState {
    Data,
    /// Text up to the end tag of the current node, with references resolved: `<title>`,
    /// `<textarea>`.
    Rcdata,
    /// Text up to the end tag of the current node: `<style>` and others.
    Rawtext,
    ScriptData,
    /// All the rest of the page is text: `<plaintext>`.
    Plaintext,
}

#[derive(Debug)]
pub(super) struct HtmlParser<'p> {
    /// The page, with all line ends turned into line feeds.
    pub(super) page: &'p str,
    pub(super) at: usize,
    pub(super) has_nul: bool,
    /// Texts that differ from the page. A [`Range32`] that starts behind the page points in here.
    pub(super) extra: String,
    pub(super) dialect: HtmlDialect,
    limits: TreeLimits,
    steps: usize,
    pub(super) error: Option<TreeError>,

    pub(super) tree: TreeBuilder,
    pub(super) names: NameInterner,
    /// Entries of `tree.attributes` that belong to an element. Those behind are of the tag being
    /// read.
    pub(super) attributes_kept: usize,
    /// For each attribute name, the number of the last tag that had it. Duplicates are found with
    /// it.
    pub(super) attribute_seen: Vec<u32>,
    pub(super) tag_count: u32,

    pub(super) state: TokenizerState,
    pub(super) mode: InsertionMode,
    pub(super) template_modes: Vec<InsertionMode>,
    pub(super) stack: ElementStack,
    pub(super) formatting: FormattingList,
    pub(super) head: u32,
    pub(super) form: u32,
    pub(super) late: AddedAttributes,
    pub(super) frameset_ok: bool,
    /// "Foster parenting": content that may not be in a table is inserted before the table.
    pub(super) fosters: bool,
    /// Whether a line feed that comes next is dropped.
    pub(super) skips_line_feed: bool,
    /// "Pending table character tokens": text in a table, until all of it is known.
    pub(super) table_text: Vec<Range32>,
}

/// Parses a page.
pub(super) fn parse(
    html: &str,
    dialect: HtmlDialect,
    limits: TreeLimits,
) -> Result<Document, TreeError> {
    let html = html.strip_prefix('\u{feff}').unwrap_or(html);
    // Resolving references and joining pieces can add up to seven times the page, and offsets have
    // 32 bits.
    if html.len() > u32::MAX as usize / 8 {
        return Err(TreeError::TooLong);
    }
    let page = normalize_line_ends(html);
    let mut parser = HtmlParser::new(&page, dialect, limits);
    parser.run();
    parser.finish()
}

fn normalize_line_ends(html: &str) -> Cow<'_, str> {
    let mut carriage_returns = memchr::memchr_iter(b'\r', html.as_bytes()).peekable();
    if carriage_returns.peek().is_none() {
        return Cow::Borrowed(html);
    }
    let mut page = String::with_capacity(html.len());
    let mut from = 0;
    for at in carriage_returns {
        page.push_str(&html[from..at]);
        if html.as_bytes().get(at + 1) != Some(&b'\n') {
            page.push('\n');
        }
        from = at + 1;
    }
    page.push_str(&html[from..]);
    Cow::Owned(page)
}

impl<'p> HtmlParser<'p> {
    fn new(page: &'p str, dialect: HtmlDialect, limits: TreeLimits) -> Self {
        Self {
            page,
            at: 0,
            has_nul: memchr::memchr(0, page.as_bytes()).is_some(),
            extra: String::new(),
            dialect,
            limits,
            steps: 0,
            error: None,
            tree: TreeBuilder::new(page.len()),
            names: NameInterner::default(),
            attributes_kept: 0,
            attribute_seen: vec![0; KNOWN],
            tag_count: 0,
            state: TokenizerState::Data,
            mode: InsertionMode::Initial,
            template_modes: Vec::new(),
            stack: ElementStack::default(),
            formatting: FormattingList::default(),
            head: NONE,
            form: NONE,
            late: AddedAttributes::default(),
            frameset_ok: true,
            fosters: false,
            skips_line_feed: false,
            table_text: Vec::new(),
        }
    }

    fn run(&mut self) {
        while self.at < self.page.len() && self.error.is_none() {
            match self.state {
                TokenizerState::Data => self.read_markup(),
                TokenizerState::Rcdata => self.read_rcdata(),
                TokenizerState::Rawtext => self.read_rawtext(),
                TokenizerState::ScriptData => self.read_script(),
                TokenizerState::Plaintext => self.read_plaintext(),
            }
            // Most rules search the open elements, so a deep stack costs more steps.
            self.spend(1 + self.stack.open.len() / 8);
        }
        if self.error.is_none() {
            if matches!(
                self.state,
                TokenizerState::Rawtext | TokenizerState::Rcdata | TokenizerState::ScriptData
            ) {
                self.stack.pop();
            }
            self.process(HtmlToken::EndOfPage);
        }
    }

    fn finish(mut self) -> Result<Document, TreeError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.late.move_into(&mut self.tree);
        self.tree.join_pieces(self.page, &mut self.extra);
        if !self.tree.number_nodes(self.limits.depth_max) {
            return Err(TreeError::TooDeep(self.limits.depth_max));
        }
        let mut text = String::with_capacity(self.page.len() + self.extra.len());
        text.push_str(self.page);
        text.push_str(&self.extra);
        let TreeBuilder { nodes, attributes, .. } = self.tree;
        Ok(Document::new(nodes, attributes, self.names.into_others(), text))
    }

    /// Counts work, and checks the limits.
    pub(super) fn spend(&mut self, steps: usize) {
        self.steps += steps;
        if self.steps >= STEPS {
            self.steps = 0;
            if self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.error = Some(TreeError::TooSlow);
            }
        }
        if self.tree.nodes.len() > self.limits.nodes_max {
            self.error = Some(TreeError::TooManyNodes(self.limits.nodes_max));
        }
    }

    /// Applies rules to a token until one of them is done with it.
    pub(super) fn process(&mut self, token: HtmlToken) {
        self.skips_line_feed = false;
        if !self.table_text.is_empty() && !matches!(token, HtmlToken::Text(_) | HtmlToken::Nul) {
            self.flush_table_text();
        }
        loop {
            let step =
                if self.is_foreign(token) { self.foreign(token) } else { self.in_mode(token) };
            if step == RuleOutcome::Done {
                return;
            }
        }
    }

    /// Whether the rules for SVG and MathML apply to a token.
    fn is_foreign(&self, token: HtmlToken) -> bool {
        let top = self.stack.top();
        if top.has(IS_HTML) {
            return false;
        }
        match token {
            HtmlToken::EndOfPage => false,
            HtmlToken::Text(_) | HtmlToken::Nul => !top.has(TEXT_POINT | HTML_POINT),
            HtmlToken::Start(tag) => {
                let is_html = top.has(HTML_POINT)
                    || top.has(TEXT_POINT) && tag.name != MGLYPH && tag.name != MALIGNMARK
                    || top.has(ANNOTATION) && tag.name == SVG;
                !is_html
            }
            _ => true,
        }
    }

    pub(super) fn in_mode(&mut self, token: HtmlToken) -> RuleOutcome {
        match self.mode {
            InsertionMode::Initial => self.initial(token),
            InsertionMode::BeforeHtml => self.before_html(token),
            InsertionMode::BeforeHead => self.before_head(token),
            InsertionMode::InHead => self.in_head(token),
            InsertionMode::InHeadNoscript => self.in_head_noscript(token),
            InsertionMode::AfterHead => self.after_head(token),
            InsertionMode::InBody => self.in_body(token),
            InsertionMode::InTable => self.in_table(token),
            InsertionMode::InCaption => self.in_caption(token),
            InsertionMode::InColumnGroup => self.in_column_group(token),
            InsertionMode::InTableBody => self.in_table_body(token),
            InsertionMode::InRow => self.in_row(token),
            InsertionMode::InCell => self.in_cell(token),
            InsertionMode::InTemplate => self.in_template(token),
            InsertionMode::AfterBody => self.after_body(token),
            InsertionMode::InFrameset => self.in_frameset(token),
            InsertionMode::AfterFrameset => self.after_frameset(token),
            InsertionMode::AfterAfterBody => self.after_after_body(token),
            InsertionMode::AfterAfterFrameset => self.after_after_frameset(token),
        }
    }

    /// The bytes of a text.
    pub(super) fn bytes(&self, span: Range32) -> &[u8] {
        let (start, len) = (span.start as usize, span.len as usize);
        match start.checked_sub(self.page.len()) {
            None => &self.page.as_bytes()[start..start + len],
            Some(start) => &self.extra.as_bytes()[start..start + len],
        }
    }

    pub(super) fn is_blank(&self, span: Range32) -> bool {
        self.bytes(span).iter().all(|byte| is_space(*byte))
    }

    /// Splits a text behind its leading white space.
    pub(super) fn split_blank(&self, span: Range32) -> (Range32, Range32) {
        let blank = self.bytes(span).iter().take_while(|byte| is_space(**byte)).count() as u32;
        let rest = Range32 { start: span.start + blank, len: span.len - blank };
        (Range32 { len: blank, ..span }, rest)
    }

    /// "The appropriate place for inserting a node", with `target` as override target.
    pub(super) fn place_in(&self, target: OpenElement) -> InsertPosition {
        if !self.fosters || !target.has(FOSTERS) {
            return InsertPosition::at_end(target.node);
        }
        let open = &self.stack.open;
        let last = open.iter().rposition(|open| open.is(TABLE) || open.is(TEMPLATE));
        match last {
            Some(at) if open[at].is(TABLE) => {
                let table = open[at].node;
                match self.tree.get(table).parent {
                    NONE => InsertPosition::at_end(open[at.saturating_sub(1)].node),
                    parent => InsertPosition { parent, before: table },
                }
            }
            Some(at) => InsertPosition::at_end(open[at].node),
            None => InsertPosition::at_end(open.first().map_or(0, |open| open.node)),
        }
    }

    /// Inserts an HTML element and pushes it on the stack.
    pub(super) fn insert_element(&mut self, name: NameId, attributes: Range32) -> u32 {
        let flags = flags_of(name, Namespace::HTML);
        self.insert_as(name, Namespace::HTML, flags, attributes)
    }

    pub(super) fn insert_as(
        &mut self,
        name: NameId,
        namespace: Namespace,
        flags: ElementFlags,
        attributes: Range32,
    ) -> u32 {
        let place = self.place_in(self.stack.top());
        let node = self.tree.element(name, namespace, attributes);
        self.tree.insert(place, node);
        self.attributes_kept = self.tree.attributes.len();
        self.stack.push(OpenElement { node, name, flags });
        if self.stack.open.len() > self.limits.depth_max {
            self.error = Some(TreeError::TooDeep(self.limits.depth_max));
        }
        node
    }

    pub(super) fn insert_tag(&mut self, tag: TagToken) -> u32 {
        self.insert_element(tag.name, tag.attributes)
    }

    /// Inserts an element that the page implies but does not contain.
    pub(super) fn insert_implied(&mut self, name: NameId) -> u32 {
        self.insert_element(name, Range32 { start: 0, len: 0 })
    }

    /// Inserts an element that has no content.
    pub(super) fn insert_void(&mut self, tag: TagToken) {
        self.insert_tag(tag);
        self.stack.pop();
    }

    /// Inserts an element whose content is text, and switches the tokenizer.
    pub(super) fn insert_raw(&mut self, tag: TagToken, state: TokenizerState) -> RuleOutcome {
        self.insert_tag(tag);
        self.state = state;
        RuleOutcome::Done
    }

    pub(super) fn insert_text(&mut self, text: Range32) {
        if text.len > 0 {
            let place = self.place_in(self.stack.top());
            self.tree.add_text(place, text);
        }
    }

    pub(super) fn insert_comment(&mut self, text: Range32) -> RuleOutcome {
        let place = self.place_in(self.stack.top());
        self.tree.add_comment(place, text);
        RuleOutcome::Done
    }

    /// Switches the insertion mode and reprocesses the token.
    pub(super) fn reprocess_in(&mut self, mode: InsertionMode) -> RuleOutcome {
        self.mode = mode;
        RuleOutcome::Reprocess
    }

    /// The value of a tag's attribute.
    pub(super) fn attribute(&self, tag: TagToken, name: NameId) -> Option<&[u8]> {
        let Range32 { start, len } = tag.attributes;
        let all = &self.tree.attributes[start as usize..(start + len) as usize];
        let found = all.iter().find(|attribute| attribute.name == name)?;
        Some(self.bytes(Range32 { start: found.at, len: found.len }))
    }

    /// "Reset the insertion mode appropriately."
    pub(super) fn reset_mode(&mut self) {
        let open = &self.stack.open;
        let found = open.iter().enumerate().rev().find_map(|(at, open)| {
            let is_first = at == 0;
            if !open.has(IS_HTML) {
                return None;
            }
            match open.name {
                TD | TH if !is_first => Some(InsertionMode::InCell),
                TR => Some(InsertionMode::InRow),
                TBODY | THEAD | TFOOT => Some(InsertionMode::InTableBody),
                CAPTION => Some(InsertionMode::InCaption),
                COLGROUP => Some(InsertionMode::InColumnGroup),
                TABLE => Some(InsertionMode::InTable),
                TEMPLATE => self.template_modes.last().copied(),
                HEAD if !is_first => Some(InsertionMode::InHead),
                BODY => Some(InsertionMode::InBody),
                FRAMESET => Some(InsertionMode::InFrameset),
                HTML if self.head == NONE => Some(InsertionMode::BeforeHead),
                HTML => Some(InsertionMode::AfterHead),
                _ => None,
            }
        });
        self.mode = found.unwrap_or(InsertionMode::InBody);
    }
}

/// White space as the tree's rules define it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}
