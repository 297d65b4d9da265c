//! The tokenizer: tags and ordinary text. `raw` has the states in which a page has no tags.

use super::charref::reference;
use super::name::NameId;
#[allow(clippy::wildcard_imports)] // All of them are names of elements.
use super::names::*;
use super::parse::{HtmlParser, HtmlToken, TagToken, TokenizerState};
use super::tree::Range32;
use super::{AttributeEntry, HtmlDialect};

/// Ends the name of a tag.
const NAME_END: u8 = 1;
/// Ends the name of an attribute.
const KEY_END: u8 = 2;
/// Must be replaced in a name: a capital letter, or U+0000.
const ODD: u8 = 4;
/// White space within a tag.
const SPACE: u8 = 8;
/// Ends a value without quotes, or must be replaced in it.
const VALUE_END: u8 = 16;

/// The classes above for each byte.
static CLASSES: [u8; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        all[byte] = match byte as u8 {
            b'\t' | b'\n' | 0x0c | b' ' => NAME_END | KEY_END | SPACE | VALUE_END,
            b'/' => NAME_END | KEY_END,
            b'>' => NAME_END | KEY_END | VALUE_END,
            b'=' => KEY_END,
            b'&' => VALUE_END,
            0 => ODD | VALUE_END,
            b'A'..=b'Z' => ODD,
            _ => 0,
        };
        byte += 1;
    }
    all
};

fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Whether a byte ends the name of a tag.
pub(super) fn ends_name(byte: u8) -> bool {
    class(byte) & NAME_END != 0
}

/// Bytes compared one by one before `memchr` takes over, whose call costs more than a short scan.
const NEAR: usize = 16;

/// The next position of one of two bytes, or of U+0000. Returns the length of `bytes` if there is
/// none.
fn find(bytes: &[u8], at: usize, one: u8, other: u8, has_nul: bool) -> usize {
    let near = bytes.len().min(at + NEAR);
    for (index, byte) in bytes[at..near].iter().enumerate() {
        if *byte == one || *byte == other || *byte == 0 {
            return at + index;
        }
    }
    let rest = &bytes[near..];
    let found = if has_nul {
        memchr::memchr3(one, other, 0, rest)
    } else {
        memchr::memchr2(one, other, rest)
    };
    found.map_or(bytes.len(), |found| near + found)
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| class(*byte) & SPACE != 0) {
        at += 1;
    }
    at
}

impl<'p> HtmlParser<'p> {
    fn page_bytes(&self) -> &'p [u8] {
        self.page.as_bytes()
    }

    /// Reads one token in the tokenizer's data state.
    pub(super) fn read_markup(&mut self) {
        let (bytes, at) = (self.page_bytes(), self.at);
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'<'), Some(b'a'..=b'z' | b'A'..=b'Z')) => self.read_start(),
            (Some(b'<'), Some(b'/')) => self.read_end(),
            (Some(b'<'), Some(b'!')) => self.read_declaration(),
            (Some(b'<'), Some(b'?')) => self.read_bogus_comment(at + 1),
            _ => self.read_text(),
        }
    }

    fn read_text(&mut self) {
        let bytes = self.page_bytes();
        let (from, mut at) = (self.at, self.at);
        let mut copy = CopyOnChange::new(from);
        loop {
            at = find(bytes, at, b'<', b'&', self.has_nul);
            match bytes.get(at) {
                Some(b'&') => at = copy.reference(self, at, false),
                Some(b'<') if !opens_markup(bytes.get(at + 1)) => at += 1,
                _ => break,
            }
        }
        self.at = at;
        let text = copy.finish(self, from, at);
        self.text(text);
        if bytes.get(at) == Some(&0) {
            self.at += 1;
            self.process(HtmlToken::Nul);
        }
    }

    /// Passes a text on to the tree's rules.
    pub(super) fn text(&mut self, text: Range32) {
        let text = self.without_first_line_feed(text);
        if text.len > 0 {
            self.process(HtmlToken::Text(text));
        }
    }

    /// Removes a line feed at the start of a text that directly follows `<pre>` or `<textarea>`.
    pub(super) fn without_first_line_feed(&mut self, text: Range32) -> Range32 {
        if self.skips_line_feed && text.len > 0 {
            self.skips_line_feed = false;
            if self.bytes(text).first() == Some(&b'\n') {
                return Range32 { start: text.start + 1, len: text.len - 1 };
            }
        }
        text
    }

    /// The name of a tag, and the position of its end. `None` if the page ends first.
    fn read_name(&mut self, start: usize) -> Option<(NameId, usize)> {
        let bytes = self.page_bytes();
        let (mut at, mut classes) = (start, 0);
        loop {
            let class = class(*bytes.get(at)?);
            if class & NAME_END != 0 {
                return Some((self.name_at(start, at, classes), at));
            }
            classes |= class;
            at += 1;
        }
    }

    fn name_at(&mut self, start: usize, end: usize, classes: u8) -> NameId {
        if classes & ODD == 0 {
            return self.names.number_at(self.page, start, end);
        }
        let mut name = self.page[start..end].to_ascii_lowercase();
        if self.has_nul {
            name = name.replace('\0', "\u{fffd}");
        }
        self.names.number(&name)
    }

    fn read_start(&mut self) {
        self.tree.attributes.truncate(self.attributes_kept);
        let Some((name, at)) = self.read_name(self.at + 1) else {
            return self.ignore_rest();
        };
        let Some((at, closes_itself)) = self.read_attributes(at) else {
            return self.ignore_rest();
        };
        self.at = at;
        let (start, end) = (self.attributes_kept as u32, self.tree.attributes.len() as u32);
        let attributes = Range32 { start, len: end - start };
        self.start(TagToken { name, attributes, closes_itself });
    }

    /// Ignores the rest of the page, which ends inside a tag.
    pub(super) fn ignore_rest(&mut self) {
        self.at = self.page.len();
    }

    fn start(&mut self, tag: TagToken) {
        let is_complete =
            tag.closes_itself && self.dialect == HtmlDialect::Jsoup && !ignores_slash(tag.name);
        if !is_complete {
            self.process(HtmlToken::Start(tag));
            return;
        }
        self.process(HtmlToken::Start(TagToken { closes_itself: false, ..tag }));
        match std::mem::replace(&mut self.state, TokenizerState::Data) {
            TokenizerState::Data | TokenizerState::Plaintext => {
                self.process(HtmlToken::End(tag.name));
            }
            TokenizerState::Rawtext | TokenizerState::Rcdata | TokenizerState::ScriptData => {
                self.skips_line_feed = false;
                self.stack.pop();
            }
        }
    }

    fn read_end(&mut self) {
        let bytes = self.page_bytes();
        let at = self.at + 2;
        match bytes.get(at) {
            Some(b'a'..=b'z' | b'A'..=b'Z') => {}
            Some(b'>') => {
                self.at = at + 1;
                return;
            }
            Some(_) => return self.read_bogus_comment(at),
            None => {
                let text = Range32 { start: self.at as u32, len: 2 };
                self.at = at;
                return self.text(text);
            }
        }
        let Some((name, at)) = self.read_name(at) else {
            return self.ignore_rest();
        };
        match self.skip_attributes(at) {
            Some(at) => {
                self.at = at;
                self.process(HtmlToken::End(name));
            }
            None => self.ignore_rest(),
        }
    }

    /// The position after an end tag. Attributes of an end tag are ignored.
    pub(super) fn skip_attributes(&mut self, at: usize) -> Option<usize> {
        if self.page_bytes().get(at) == Some(&b'>') {
            return Some(at + 1);
        }
        self.tree.attributes.truncate(self.attributes_kept);
        self.read_attributes(at).map(|(at, _)| at)
    }

    /// Reads attributes up to the end of the tag: the position after it, and whether the tag ends
    /// in `/>`. `None` if the page ends first.
    fn read_attributes(&mut self, mut at: usize) -> Option<(usize, bool)> {
        let bytes = self.page_bytes();
        self.tag_count += 1;
        loop {
            at = skip_space(bytes, at);
            match bytes.get(at)? {
                b'>' => return Some((at + 1, false)),
                b'/' => {
                    at += 1;
                    if *bytes.get(at)? == b'>' {
                        return Some((at + 1, true));
                    }
                }
                first => {
                    // The standard allows an equals sign as the first character of a name.
                    let (start, mut classes) = (at, class(*first));
                    at += 1;
                    loop {
                        let class = class(*bytes.get(at)?);
                        if class & KEY_END != 0 {
                            break;
                        }
                        classes |= class;
                        at += 1;
                    }
                    let name = self.name_at(start, at, classes);
                    at = skip_space(bytes, at);
                    let mut value = Range32 { start: at as u32, len: 0 };
                    if *bytes.get(at)? == b'=' {
                        at = skip_space(bytes, at + 1);
                        (value, at) = self.read_value(at)?;
                    }
                    self.add_attribute(name, value);
                }
            }
        }
    }

    /// Adds an attribute, unless the tag already has one with this name.
    fn add_attribute(&mut self, name: NameId, value: Range32) {
        let index = name.index();
        if index >= self.attribute_seen.len() {
            self.attribute_seen.resize(index + 1 + index / 2, 0);
        }
        if std::mem::replace(&mut self.attribute_seen[index], self.tag_count) != self.tag_count {
            self.tree.attributes.push(AttributeEntry { name, at: value.start, len: value.len });
        }
    }

    fn read_value(&mut self, at: usize) -> Option<(Range32, usize)> {
        let bytes = self.page_bytes();
        match *bytes.get(at)? {
            quote @ (b'"' | b'\'') => {
                let start = at + 1;
                let has_nul = self.has_nul;
                let next = |at| find(bytes, at, quote, b'&', has_nul);
                let (value, at) = self.value_from(start, next)?;
                Some((value, at + 1))
            }
            b'>' => Some((Range32 { start: at as u32, len: 0 }, at)),
            _ => self.value_from(at, |mut at| {
                while bytes.get(at).is_some_and(|byte| class(*byte) & VALUE_END == 0) {
                    at += 1;
                }
                at
            }),
        }
    }

    /// A value and the position of its end. `next` finds the next byte that ends the value or must
    /// be replaced.
    fn value_from(
        &mut self,
        start: usize,
        next: impl Fn(usize) -> usize,
    ) -> Option<(Range32, usize)> {
        let bytes = self.page_bytes();
        let mut copy = CopyOnChange::new(start);
        let mut at = start;
        loop {
            at = next(at);
            match *bytes.get(at)? {
                b'&' => at = copy.reference(self, at, true),
                0 => at = copy.nul(self, at),
                _ => return Some((copy.finish(self, start, at), at)),
            }
        }
    }

    /// Part of the page, with U+0000 replaced and, if `resolves`, character references resolved.
    pub(super) fn replaced(&mut self, start: usize, end: usize, resolves: bool) -> Range32 {
        let text = &self.page_bytes()[..end];
        let mut copy = CopyOnChange::new(start);
        let mut at = start;
        loop {
            at = match (resolves, self.has_nul) {
                (true, has_nul) => find(text, at, b'&', b'&', has_nul),
                (false, true) => find(text, at, 0, 0, true),
                (false, false) => end,
            };
            match text.get(at) {
                Some(b'&') => at = copy.reference(self, at, false),
                Some(_) => at = copy.nul(self, at),
                None => return copy.finish(self, start, end),
            }
        }
    }
}

/// A text that is copied to `HtmlParser::extra` once it differs from the page.
struct CopyOnChange {
    /// Start of the copy in `extra`; `None` while the text equals the page.
    start: Option<usize>,
    /// Position in the page up to which the text is copied.
    done: usize,
}

impl CopyOnChange {
    fn new(from: usize) -> Self {
        Self { start: None, done: from }
    }

    fn up_to(&mut self, parser: &mut HtmlParser, at: usize) {
        self.start.get_or_insert(parser.extra.len());
        parser.extra.push_str(&parser.page[self.done..at]);
    }

    /// Replaces the character reference at an ampersand, if there is one. Returns where reading
    /// continues.
    #[cold]
    fn reference(&mut self, parser: &mut HtmlParser, at: usize, in_attribute: bool) -> usize {
        let Some(found) = reference(&parser.page.as_bytes()[at..], in_attribute) else {
            return at + 1;
        };
        self.up_to(parser, at);
        parser.extra.push(found.first);
        parser.extra.extend(found.second);
        self.done = at + found.len;
        self.done
    }

    #[cold]
    fn nul(&mut self, parser: &mut HtmlParser, at: usize) -> usize {
        self.up_to(parser, at);
        parser.extra.push(char::REPLACEMENT_CHARACTER);
        self.done = at + 1;
        self.done
    }

    fn finish(mut self, parser: &mut HtmlParser, from: usize, at: usize) -> Range32 {
        match self.start {
            None => Range32 { start: from as u32, len: (at - from) as u32 },
            Some(start) => {
                self.up_to(parser, at);
                Range32 {
                    start: (parser.page.len() + start) as u32,
                    len: (parser.extra.len() - start) as u32,
                }
            }
        }
    }
}

fn opens_markup(next: Option<&u8>) -> bool {
    next.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?'))
}

/// Whether jsoup ignores the slash in a tag such as `<br/>`: elements without content end anyway,
/// and it never closes the elements that frame the page this early.
fn ignores_slash(name: NameId) -> bool {
    matches!(
        name,
        AREA | BASE
            | BASEFONT
            | BGSOUND
            | BODY
            | BR
            | COL
            | COMMAND
            | EMBED
            | FRAME
            | FRAMESET
            | HEAD
            | HR
            | HTML
            | IMAGE
            | IMG
            | INPUT
            | KEYGEN
            | LINK
            | META
            | PARAM
            | SOURCE
            | TRACK
            | WBR
    )
}
