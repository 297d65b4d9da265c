//! The parser: what it keeps, and how a token finds the rules that apply to it.
//!
//! It follows the HTML standard, section "Parsing HTML documents", with scripting off and never in
//! quirks mode: a table closes an open paragraph, doctype or not, as in jsoup.

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

/// Steps between two looks at the clock.
const STEPS: usize = 64 * 1024;

/// A start or end tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct TagToken {
    pub(super) name: NameId,
    /// Attributes, as a part of the tree's list.
    pub(super) attributes: Range32,
    pub(super) closes_itself: bool,
}

/// What the tokenizer hands to the tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum HtmlToken {
    Start(TagToken),
    End(NameId),
    Text(Range32),
    /// U+0000, which means something else in every place.
    Nul,
    Comment(Range32),
    Doctype,
    EndOfPage,
}

/// What is to be done with a token after a rule was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleOutcome {
    Done,
    /// Look for the rule that applies now.
    Reprocess,
}

/// The insertion modes of the standard. Raw text and texts in tables need none here.
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

/// How the page is to be read from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenizerState {
    Markup,
    /// Text up to the end tag of the current node, with character references.
    Escapable,
    /// Text up to the end tag of the current node.
    Raw,
    Script,
    /// Text up to the end of the page.
    Plain,
}

#[derive(Debug)]
pub(super) struct HtmlParser<'p> {
    /// The page, its line ends made one kind.
    pub(super) page: &'p str,
    pub(super) at: usize,
    pub(super) has_nul: bool,
    /// Texts that do not stand so in the page.
    pub(super) extra: String,
    pub(super) dialect: HtmlDialect,
    limits: TreeLimits,
    steps: usize,
    pub(super) trouble: Option<TreeError>,

    pub(super) tree: TreeBuilder,
    pub(super) names: NameInterner,
    /// How many of the tree's attributes belong to an element.
    pub(super) attributes_kept: usize,
    /// By name, the last tag that had such an attribute.
    pub(super) attribute_seen: Vec<u32>,
    pub(super) tag_count: u32,

    pub(super) content: TokenizerState,
    pub(super) mode: InsertionMode,
    pub(super) template_modes: Vec<InsertionMode>,
    pub(super) stack: ElementStack,
    pub(super) formatting: FormattingList,
    pub(super) head: u32,
    pub(super) form: u32,
    pub(super) late: AddedAttributes,
    pub(super) frameset_ok: bool,
    /// Whether what is put into a table by mistake goes before it.
    pub(super) fosters: bool,
    /// Whether a line feed that comes next is left out.
    pub(super) skips_line_feed: bool,
    /// Text within a table, until it is known where it goes.
    pub(super) table_text: Vec<Range32>,
}

/// Parses a page.
pub(super) fn parse(
    html: &str,
    dialect: HtmlDialect,
    limits: TreeLimits,
) -> Result<Document, TreeError> {
    let html = html.strip_prefix('\u{feff}').unwrap_or(html);
    // Text written anew may be six times as long as the page, and all of it is counted in 32 bits.
    if html.len() > u32::MAX as usize / 8 {
        return Err(TreeError::TooLong);
    }
    let page = one_kind_of_line_end(html);
    let mut parser = HtmlParser::new(&page, dialect, limits);
    parser.run();
    parser.finish()
}

fn one_kind_of_line_end(html: &str) -> Cow<'_, str> {
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
            trouble: None,
            tree: TreeBuilder::new(page.len()),
            names: NameInterner::default(),
            attributes_kept: 0,
            attribute_seen: vec![0; KNOWN],
            tag_count: 0,
            content: TokenizerState::Data,
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
        while self.at < self.page.len() && self.trouble.is_none() {
            match self.content {
                TokenizerState::Data => self.read_markup(),
                TokenizerState::Rcdata => self.read_escapable(),
                TokenizerState::Rawtext => self.read_raw(),
                TokenizerState::ScriptData => self.read_script(),
                TokenizerState::Plaintext => self.read_plain(),
            }
            // Most rules look through the open elements.
            self.spend(1 + self.stack.open.len() / 8);
        }
        if self.trouble.is_none() {
            if matches!(
                self.content,
                TokenizerState::Rawtext | TokenizerState::Rcdata | TokenizerState::ScriptData
            ) {
                self.stack.pop();
            }
            self.process(HtmlToken::EndOfPage);
        }
    }

    fn finish(mut self) -> Result<Document, TreeError> {
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        self.late.settle(&mut self.tree);
        self.tree.join_pieces(self.page, &mut self.extra);
        if !self.tree.lay_out(self.limits.depth_max) {
            return Err(TreeError::TooDeep(self.limits.depth_max));
        }
        let mut text = String::with_capacity(self.page.len() + self.extra.len());
        text.push_str(self.page);
        text.push_str(&self.extra);
        let TreeBuilder { nodes, attributes, .. } = self.tree;
        Ok(Document::new(nodes, attributes, self.names.into_others(), text))
    }

    /// Counts work and looks at the limits now and then.
    pub(super) fn spend(&mut self, steps: usize) {
        self.steps += steps;
        if self.steps >= STEPS {
            self.steps = 0;
            if self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.trouble = Some(TreeError::TooSlow);
            }
        }
        if self.tree.nodes.len() > self.limits.nodes_max {
            self.trouble = Some(TreeError::TooManyNodes(self.limits.nodes_max));
        }
    }

    /// Applies the rules to a token until one has dealt with it.
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

    /// Whether the rules for SVG and MathML apply.
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

    /// The bytes of a part of the text.
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

    /// Splits off the white space at the start.
    pub(super) fn split_blank(&self, span: Range32) -> (Range32, Range32) {
        let blank = self.bytes(span).iter().take_while(|byte| is_space(**byte)).count() as u32;
        let rest = Range32 { start: span.start + blank, len: span.len - blank };
        (Range32 { len: blank, ..span }, rest)
    }

    /// Where a node goes that belongs to `target`, "the appropriate place for inserting a node".
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

    /// Puts an element into the tree and opens it.
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
            self.trouble = Some(TreeError::TooDeep(self.limits.depth_max));
        }
        node
    }

    pub(super) fn insert_tag(&mut self, tag: TagToken) -> u32 {
        self.insert_element(tag.name, tag.attributes)
    }

    /// Puts an element into the tree that nobody wrote down.
    pub(super) fn insert_phantom(&mut self, name: NameId) -> u32 {
        self.insert_element(name, Range32 { start: 0, len: 0 })
    }

    /// Puts an element into the tree that has no content.
    pub(super) fn insert_void(&mut self, tag: TagToken) {
        self.insert_tag(tag);
        self.stack.pop();
    }

    /// Puts an element into the tree whose content is text alone.
    pub(super) fn insert_raw(&mut self, tag: TagToken, content: TokenizerState) -> RuleOutcome {
        self.insert_tag(tag);
        self.content = content;
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

    /// Goes on in another mode with the same token.
    pub(super) fn reprocess_in(&mut self, mode: InsertionMode) -> RuleOutcome {
        self.mode = mode;
        RuleOutcome::Reprocess
    }

    /// The value of an attribute of a tag.
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

/// White space as the rules of the tree know it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}
